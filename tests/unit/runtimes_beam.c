/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

static const struct made_process erlang = {
                .pid = 10,
                .parent = 1,
                .exe = "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
                .threads = {{"%u_scheduler", 5},
                            {"%u_dirty_cpu_sch", 5},
                            {"%u_dirty_io_sche", 10},
                            {"1_aux", 1}},
};

Test(runtimes_beam, only_the_command_line_says_what_is_online) {
        static const struct {
                const char *argv[8], *threads;
                uint64_t effective;
                bool spins;
                enum parallelism_source source;
        } rows[] = {
                        {{"beam", "-S", "5:3", "--", "-root", "/"}, "%u_scheduler", 3, true, FROM_ARGUMENT},
                        {{"beam", "-S", "5:3", "--"}, "erts_sched_%u", 3, true, FROM_ARGUMENT},
                        {{"beam", "-S", "5", "-sbwt", "none", "--"},
                         "erts_sched_%u",
                         5,
                         false,
                         FROM_ARGUMENT},
                        {{"beam", "-S", ":2", "-SDcpu", "4:4", "--"},
                         "erts_sched_%u",
                         2,
                         true,
                         FROM_ARGUMENT},
                        {{"beam", "-SDcpu", "4:4", "--"}, "erts_sched_%u", ABSENT, true, FROM_DEFAULT},
                        {{"beam", "--", "-S", "5:3"}, "erts_sched_%u", ABSENT, true, FROM_DEFAULT},
                        {{"beam", "-S", "0:0", "--"}, "erts_sched_%u", ABSENT, true, FROM_ARGUMENT},
                        {{"beam", "-S", "9:7", "--"}, "erts_sched_%u", ABSENT, true, FROM_ARGUMENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process process = erlang;
                const struct parallelism *row;

                memcpy(process.argv, rows[i].argv, sizeof(rows[i].argv));
                process.threads[0].name = rows[i].threads;
                fixture_make(&fixture);
                fixture_process(&fixture, &process);
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "beam", "+S");
                cr_expect_eq(row->effective, rows[i].effective, "row %zu: %d", i, (int) row->effective);
                cr_expect_eq(row->spins, rows[i].spins, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect((row->unreadable == NULL) == is_known(row->effective), "row %zu", i);
                cr_expect_eq(row->rounding, ROUND_DOWN);
        }
}

Test(runtimes_beam, one_without_schedulers_is_none) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process process = erlang;

        memset(&process.threads[0], 0, sizeof(process.threads[0]));
        fixture_make(&fixture);
        fixture_process(&fixture, &process);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}
