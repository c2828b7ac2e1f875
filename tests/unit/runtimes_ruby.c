/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/bin/ruby3.1"
#define TITLE "puma 5.6.5 (tcp://0.0.0.0:3000) [app]"

static void add(struct fixture *fixture, unsigned pid, unsigned parent, const char *title,
                const char *variable) {
        const struct made_process process = {
                        .pid = pid,
                        .parent = parent,
                        .exe = EXE,
                        .argv = {title},
                        .environment = {"HOME=/", variable},
                        .rss_kb = 10,
                        .threads = {{"puma srv tp 00%u", parent == 1 ? 0 : 5}},
        };

        fixture_process(fixture, &process);
}

/* A cluster of three with this in the environment and in config/puma.rb (NULL: none). */
static const struct parallelism *cluster(struct fixture *fixture, const char *variable, const char *config) {
        static struct parallelism_list list;

        fixture_make(fixture);
        add(fixture, 10, 1, TITLE, variable);
        for (unsigned i = 0; i < 3; i++)
                add(fixture, 20 + i, 10, "puma: cluster worker 0: 10 [app]", variable);
        if (config)
                fixture_write_n(fixture, "proc/10/cwd/config/puma.rb", config, strlen(config));
        list = fixture_scan(fixture);
        cr_assert_eq(list.count, 1);
        return fixture_row(&list, "puma", "workers");
}

Test(runtimes_ruby, counts_the_workers_of_a_cluster) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row = cluster(&fixture, "WEB_CONCURRENCY=3", NULL);

        cr_assert_str_eq(row->version, "5.6.5");
        cr_assert_eq(row->effective, 3);
        cr_assert_eq(row->host_pid, 10);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->memory_bytes, 3 * 10 * 1024);
        cr_assert_eq(row->source, FROM_ENVIRONMENT);
        cr_assert_str_eq(row->source_detail, "WEB_CONCURRENCY");
        cr_assert_eq(row->rounding, ROUND_UP);
        cr_assert_not(row->is_blocking);
        cr_assert_eq(row->aware, AWARENESS_NONE);
}

Test(runtimes_ruby, says_where_the_number_comes_from) {
        static const struct {
                const char *variable, *config;
                enum parallelism_source source;
                enum awareness aware;
        } rows[] = {
                        {"WEB_CONCURRENCY=auto", NULL, FROM_ENVIRONMENT, AWARENESS_QUOTA},
                        {"WEB_CONCURRENCY=3", "workers 2\n", FROM_ENVIRONMENT, AWARENESS_NONE},
                        {"WEB_CONCURRENCY=2", "# it's\nworkers 3\n", FROM_CONFIG, AWARENESS_NONE},
                        {NULL, "workers 3 if true\n", FROM_CONFIG, AWARENESS_NONE},
                        {NULL, "workers ENV.fetch(\"X\") { 3 }\n", FROM_CONFIG, AWARENESS_NONE},
                        {NULL, "workers 2\n", FROM_UNKNOWN, AWARENESS_NONE},
                        {NULL, NULL, FROM_UNKNOWN, AWARENESS_NONE},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = cluster(&fixture, rows[i].variable, rows[i].config);

                cr_expect_eq(row->source, rows[i].source, "row %zu: %s", i,
                             parallelism_source_name(row->source));
                cr_expect_eq(row->aware, rows[i].aware, "row %zu", i);
                cr_expect((row->unreadable != NULL) == (rows[i].source == FROM_UNKNOWN), "row %zu", i);
        }
}

Test(runtimes_ruby, a_single_process_serves_itself) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, TITLE, NULL);
        add(&fixture, 11, 1, "puma_worker_killer", NULL);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "puma", "workers");
        cr_assert_eq(row->effective, 1);
        cr_assert_eq(row->source, FROM_DEFAULT);
}

Test(runtimes_ruby, another_program_called_puma_is_none) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process other = {
                        .pid = 10, .parent = 1, .exe = "/usr/bin/vim", .argv = {"puma in the dark"}};

        fixture_make(&fixture);
        fixture_process(&fixture, &other);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}

Test(runtimes_ruby, unicorn_keeps_its_arguments_in_the_title) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, "unicorn master -c /app/unicorn.rb -E production", NULL);
        add(&fixture, 11, 10, "unicorn worker[0] -c /app/unicorn.rb -E production", NULL);
        add(&fixture, 12, 10, "unicorn worker[1] -c /app/unicorn.rb -E production", NULL);
        fixture_file(&fixture, 10, "/app/unicorn.rb", "timeout 30\n\nworker_processes 2\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "unicorn", "worker_processes");
        cr_assert_eq(row->effective, 2);
        cr_assert(row->is_blocking);
        cr_assert_null(row->version);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, "/app/unicorn.rb:3");
}
