/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/sbin/haproxy"
#define CONFIG "/etc/haproxy/haproxy.cfg"

static const struct made_process master = {.pid = 10,
                                           .parent = 1,
                                           .exe = EXE,
                                           .argv = {EXE, "-W", "-f", CONFIG}},
                                 worker = {
                                                 .pid = 11,
                                                 .parent = 10,
                                                 .exe = EXE,
                                                 .argv = {EXE, "-W", "-f", CONFIG},
                                                 .threads = {{"haproxy", 47}},
                                                 .cpus = "ffff,ffffffff",
};

/* The row of a master and a worker of 48 threads whose configuration is @config. */
static const struct parallelism *row_with(struct fixture *fixture, const char *config) {
        static struct parallelism_list list;

        fixture_process(fixture, &master);
        fixture_process(fixture, &worker);
        if (config)
                fixture_file(fixture, 11, CONFIG, config);
        list = fixture_scan(fixture);
        cr_assert_eq(list.count, 1);
        return fixture_row(&list, "haproxy", "nbthread");
}

Test(runtimes_haproxy, counts_the_worker_and_names_the_line) {
        cleanup_fixture struct fixture fixture = {0};
        fixture_make(&fixture);
        const struct parallelism *row =
                        row_with(&fixture, "# nbthread 1\nglobal\n  maxconn 10 # nbthread 2\n"
                                           "  nbthread 48\ndefaults\n  nbthread 3\n");

        cr_assert_eq(row->effective, 48);
        cr_assert_eq(row->host_pid, 11);
        cr_assert_eq(row->affinity, 48);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, CONFIG ":4");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_eq(row->leaving, ABSENT);
        cr_assert_eq(row->aware, AWARENESS_NONE);
        cr_assert_eq(row->rounding, ROUND_DOWN);
        cr_assert_str_eq(row->how, "nbthread {n} in the section global of " CONFIG ", then reload");
        cr_assert_null(row->unreadable);
}

Test(runtimes_haproxy, says_where_the_number_comes_from) {
        static const struct {
                char config[96];
                enum parallelism_source source;
                uint64_t configured;
        } rows[] = {
                        {"global\n", FROM_DEFAULT, ABSENT},
                        {"", FROM_DEFAULT, ABSENT},
                        {"global\n thread-hard-limit 48\n", FROM_CONFIG, ABSENT},
                        {"global\n thread-hard-limit 64\n", FROM_DEFAULT, ABSENT},
                        {"global\n nbthread 4\n", FROM_CONFIG, 4}, /* edited since, not reloaded */
                        {"global\n nbthread \"48\"\n", FROM_CONFIG, ABSENT},
                        {"global\n nbthread x\n", FROM_DEFAULT, ABSENT},
                        {"global\n nbthread 99999999999999999999\n", FROM_DEFAULT, ABSENT},
                        {"frontend f\n nbthread 4\nglobal\n nbthread 48", FROM_CONFIG, ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                fixture_make(&fixture);
                const struct parallelism *row = row_with(&fixture, rows[i].config);

                cr_expect_eq(row->source, rows[i].source, "row %zu: %s", i,
                             parallelism_source_name(row->source));
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
        }
}

Test(runtimes_haproxy, an_unreadable_configuration_is_no_default) {
        cleanup_fixture struct fixture fixture = {0};
        fixture_make(&fixture);
        const struct parallelism *row = row_with(&fixture, NULL);

        cr_assert_eq(row->effective, 48);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_str_eq(row->unreadable, CONFIG " of process 11 is not there");
}

Test(runtimes_haproxy, reads_all_files_of_a_folder_in_their_order) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process single = worker;

        fixture_make(&fixture);
        single.argv[1] = "-f";
        single.argv[2] = "/etc/haproxy";
        single.argv[3] = "--";
        single.argv[4] = "/last.cfg";
        single.parent = 1;
        fixture_process(&fixture, &single);
        fixture_file(&fixture, 11, "/etc/haproxy/a.cfg", "global\n nbthread 4\n");
        fixture_file(&fixture, 11, "/etc/haproxy/b.cfg", "global\n nbthread 8\n");
        fixture_file(&fixture, 11, "/last.cfg", "global\n nbthread 48\n");
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_str_eq(fixture_row(&list, "haproxy", "nbthread")->source_detail, "/last.cfg:2");
}

Test(runtimes_haproxy, an_old_worker_is_leaving) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process younger = worker;

        fixture_make(&fixture);
        younger.pid = 200; /* its start follows from it */
        younger.threads[0].count = 3;
        fixture_process(&fixture, &younger);
        fixture_file(&fixture, 200, CONFIG, "global\n nbthread 4\n");
        fixture_process(&fixture, &master);
        fixture_process(&fixture, &worker);
        struct parallelism_list list = fixture_scan(&fixture);
        const struct parallelism *row = fixture_row(&list, "haproxy", "nbthread");

        cr_assert_eq(row->host_pid, 200);
        cr_assert_eq(row->effective, 4);
        cr_assert_eq(row->leaving, 48);
}

Test(runtimes_haproxy, is_told_by_its_arguments_where_exe_is_denied) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process other = worker;

        fixture_make(&fixture);
        other.exe = NULL;
        other.hides = true;
        other.name = "haproxy";
        fixture_process(&fixture, &other);
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(fixture_row(&list, "haproxy", "nbthread")->effective, 48);
}
