/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/bin/memcached"

Test(runtimes_memcached, counts_named_workers) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {
                        .pid = 10,
                        .exe = EXE,
                        .argv = {"memcached", "-m", "64", "-t", "6"},
                        .threads = {{"mc-worker", 6}, {"mc-log", 1}, {"mc-lrumaint", 1}},
        };
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &made);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "memcached", "-t");
        cr_assert_eq(row->effective, 6);
        cr_assert_eq(row->source, FROM_ARGUMENT);
        cr_assert_str_eq(row->source_detail, "-t");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_eq(row->rounding, ROUND_DOWN);
        cr_assert_eq(row->aware, AWARENESS_NONE);
        cr_assert_str_eq(row->threads_name, "mc-worker");
        cr_assert_null(row->unreadable);
}

/* Before 1.6.18 every thread was called as the program. */
Test(runtimes_memcached, without_names_its_arguments_tell) {
        static const struct {
                const char *argv[4];
                unsigned threads;
                uint64_t effective;
                enum parallelism_source source;
        } rows[] = {
                        {{"memcached"}, 9, 4, FROM_DEFAULT},
                        {{"memcached", "-t8"}, 13, 8, FROM_ARGUMENT},
                        {{"memcached", "--threads=2"}, 7, 2, FROM_ARGUMENT},
                        {{"memcached", "-t", "many"}, 9, 4, FROM_DEFAULT},
                        {{"memcached", "-t", "8"}, 3, ABSENT, FROM_ARGUMENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = {
                                .pid = 10, .exe = EXE, .threads = {{"memcached", rows[i].threads}}};
                const struct parallelism *row;

                fixture_make(&fixture);
                memcpy(made.argv, rows[i].argv, sizeof(rows[i].argv));
                fixture_process(&fixture, &made);
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "memcached", "-t");
                cr_expect_eq(row->effective, rows[i].effective, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect((row->unreadable != NULL) == !is_known(rows[i].effective), "row %zu", i);
                cr_expect_null(row->threads_name, "row %zu", i);
        }
}
