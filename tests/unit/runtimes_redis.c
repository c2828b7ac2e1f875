/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define CONFIG "/etc/redis/redis.conf"

/* As Debian has it: the executable is a link to that of redis-check-rdb, and the title overwrote all else. */
static const struct made_process debian = {
                .pid = 10,
                .exe = "/usr/bin/redis-check-rdb",
                .name = "redis-server",
                .argv = {"redis-server 127.0.0.1:6379", "", ""},
                .threads = {{"bio_close_file", 1}, {"bio_aof", 1}, {"io_thd_%u", 3}, {"jemalloc_bg_thd", 1}},
};

Test(runtimes_redis, counts_its_threads_and_the_main_one) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &debian);
        fixture_file(&fixture, 10, CONFIG, "# io-threads 9\nsave \"\"\nio-threads 4\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "redis", "io-threads");
        cr_assert_eq(row->effective, 4);
        cr_assert_eq(row->unit, UNIT_THREADS);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, CONFIG ":3");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_eq(row->rounding, ROUND_DOWN);
        cr_assert_eq(row->aware, AWARENESS_NONE);
        cr_assert_str_eq(row->threads_name, "io_thd_");
        cr_assert_null(row->unreadable);
}

Test(runtimes_redis, a_file_that_says_another_number_is_not_the_source) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &debian);
        fixture_file(&fixture, 10, CONFIG, "io-threads 2\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "redis", "io-threads");
        cr_assert_eq(row->effective, 4);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_str_eq(row->unreadable, "the command line of process 10 was overwritten by its title");
}

Test(runtimes_redis, one_thread_is_the_default) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process plain = debian;
        const struct parallelism *row;

        fixture_make(&fixture);
        plain.threads[2].count = 0;
        fixture_process(&fixture, &plain);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "redis", "io-threads");
        cr_assert_eq(row->effective, 1);
        cr_assert_eq(row->source, FROM_DEFAULT);
        cr_assert_str_eq(row->threads_name, "redis-server");
}

Test(runtimes_redis, without_a_title_the_arguments_tell) {
        static const struct {
                const char *argv[6];
                enum parallelism_source source;
                const char *detail;
                uint64_t configured;
        } rows[] = {
                        {{"valkey-server"}, FROM_DEFAULT, NULL, ABSENT},
                        {{"valkey-server", "/my.conf"}, FROM_CONFIG, "/my.conf:2", 6},
                        {{"valkey-server", "/my.conf", "--io-threads", "4"},
                         FROM_ARGUMENT,
                         "--io-threads",
                         ABSENT},
                        {{"valkey-server", "--io-threads", "8"}, FROM_ARGUMENT, "--io-threads", 8},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = debian;
                const struct parallelism *row;

                fixture_make(&fixture);
                made.exe = "/usr/local/bin/valkey-server";
                made.name = "valkey-server";
                memset(made.argv, 0, sizeof(made.argv));
                memcpy(made.argv, rows[i].argv, sizeof(rows[i].argv));
                fixture_process(&fixture, &made);
                fixture_file(&fixture, 10, "/my.conf", "port 1\nio-threads 6\n");
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "valkey", "io-threads");
                cr_expect_eq(row->effective, 4, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                if (rows[i].detail)
                        cr_expect_str_eq(row->source_detail, rows[i].detail, "row %zu", i);
                else
                        cr_expect_null(row->source_detail, "row %zu", i);
        }
}

Test(runtimes_redis, children_and_tools_are_no_servers) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process child = debian, tool = debian;

        fixture_make(&fixture);
        child.pid = 11;
        child.parent = 10;
        tool.pid = 30;
        tool.name = "redis-check-rdb";
        fixture_process(&fixture, &debian);
        fixture_process(&fixture, &child);
        fixture_process(&fixture, &tool);
        cr_assert_eq(fixture_scan(&fixture).count, 1);
}
