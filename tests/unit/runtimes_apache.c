/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/sbin/apache2"
#define CONFIG "/etc/apache2/apache2.conf"

static void add(struct fixture *fixture, unsigned pid, unsigned parent, unsigned threads) {
        const struct made_process process = {
                        .pid = pid,
                        .parent = parent,
                        .exe = EXE,
                        .argv = {EXE, "-DFOREGROUND"},
                        .rss_kb = 50,
                        .threads = {{"apache2", threads - 1}},
        };

        fixture_process(fixture, &process);
}

Test(runtimes_apache, adds_the_workers_of_its_children_up) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, 1);
        add(&fixture, 11, 10, 1); /* of mod_cgid */
        add(&fixture, 12, 10, 27);
        add(&fixture, 13, 10, 27);
        add(&fixture, 14, 9, 27);
        /* The second is of another model, the third of another server. */
        fixture_file(&fixture, 10, CONFIG,
                     "IncludeOptional mods-enabled/*.load\ninclude mods-enabled/*.conf\n"
                     "<IfModule !mpm_event_module>\n MaxRequestWorkers 3\n</IfModule>\n");
        fixture_file(&fixture, 10, "/etc/apache2/mods-enabled/mpm.load",
                     "# MaxRequestWorkers 1\nLoadModule mpm_event_module /usr/lib/mod_mpm_event.so\n");
        fixture_file(&fixture, 10, "/etc/apache2/mods-enabled/mpm.conf",
                     "<IfModule mpm_event_module>\n<IfModule x_module>\n</IfModule>\n"
                     "maxrequestworkers   150\n</IfModule>\n"
                     "<IfModule mpm_prefork_module>\n<IfModule x_module>\n MaxRequestWorkers 1\n"
                     "</IfModule>\nMaxRequestWorkers 2\n</IfModule>\n");
        struct parallelism_list list = fixture_scan(&fixture);

        /* Another master, whose own parent is not in this container. */
        cr_assert_eq(list.count, 2);
        row = &list.rows[0];
        cr_assert_str_eq(row->runtime, "apache");
        cr_assert_str_eq(row->setting, "MaxRequestWorkers");
        cr_assert_eq(row->effective, 50);
        cr_assert_eq(row->unit, UNIT_THREADS);
        cr_assert_eq(row->host_pid, 10);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, "/etc/apache2/mods-enabled/mpm.conf:4: at most 150");
        cr_assert_eq(row->rounding, ROUND_NEVER);
        cr_assert(row->is_blocking);
        cr_assert_eq(row->configured, ABSENT);
}

Test(runtimes_apache, without_worker_threads_the_children_count) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, 1);
        for (unsigned i = 0; i < 5; i++)
                add(&fixture, 11 + i, 10, 1);
        fixture_file(&fixture, 10, CONFIG,
                     "<IfModule mpm_prefork_module>\nMaxClients 256\n</IfModule>\n"
                     "<IfModule mpm_event_module>\nMaxRequestWorkers 400\n</IfModule>\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "apache", "MaxRequestWorkers");
        cr_assert_eq(row->effective, 5);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->memory_bytes, 5 * 50 * 1024);
        cr_assert_str_eq(row->source_detail, CONFIG ":2: at most 256");
}

Test(runtimes_apache, what_is_not_said_is_a_default_only_if_all_was_read) {
        static const struct {
                const char *config;
                enum parallelism_source source;
        } rows[] = {
                        {"ServerName x\n", FROM_DEFAULT},
                        {"Include /gone.conf\n", FROM_UNKNOWN},
                        {"ServerRoot \"/srv\"\nInclude a.conf\n", FROM_CONFIG},
                        {"Include apache2.conf\n", FROM_UNKNOWN}, /* in circles */
                        {NULL, FROM_UNKNOWN},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row;

                fixture_make(&fixture);
                add(&fixture, 10, 1, 1);
                add(&fixture, 11, 10, 27);
                if (rows[i].config)
                        fixture_file(&fixture, 10, CONFIG, rows[i].config);
                fixture_file(&fixture, 10, "/srv/a.conf", "MaxRequestWorkers 25\n");
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "apache", "MaxRequestWorkers");
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect((row->unreadable != NULL) == (rows[i].source == FROM_UNKNOWN), "row %zu", i);
                cr_expect_eq(row->effective, 25, "row %zu", i);
        }
}

Test(runtimes_apache, finds_the_configuration_of_the_official_image) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process master = {.pid = 10,
                                            .parent = 1,
                                            .exe = "/usr/local/apache2/bin/httpd",
                                            .argv = {"httpd", "-DFOREGROUND"}};

        fixture_make(&fixture);
        fixture_process(&fixture, &master);
        fixture_file(&fixture, 10, "/usr/local/apache2/conf/httpd.conf",
                     "Include conf/extra/httpd-mpm.conf\n");
        fixture_file(&fixture, 10, "/usr/local/apache2/conf/extra/httpd-mpm.conf",
                     "MaxRequestWorkers 400\n");
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_str_eq(fixture_row(&list, "apache", "MaxRequestWorkers")->source_detail,
                         "/usr/local/apache2/conf/extra/httpd-mpm.conf:1: at most 400");
}
