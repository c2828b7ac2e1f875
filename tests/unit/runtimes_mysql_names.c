/* SPDX-License-Identifier: Apache-2.0 */
/* MySQL's names in memory; a program of its own, because MariaDB's beside them would win. */
#include "runtimes_globals.h"

#define EXE "/usr/sbin/mysqld"

uint64_t max_connections = 151;
uint64_t made_handling __asm__("_ZN26Connection_handler_manager15thread_handlingE") = 0;
uint32_t made_connections __asm__("_ZN26Connection_handler_manager16connection_countE") = 17;

Test(runtimes_mysql_names, mysql_counts_its_connections) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {
                        .pid = 10,
                        .exe = EXE,
                        .argv = {"mysqld", "--max-connections=200"},
                        .maps = MADE_MAPS(EXE),
        };
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &made);
        fixture_own_image(&fixture, EXE);
        fixture_global(&fixture, 10, &max_connections, sizeof(max_connections));
        fixture_global(&fixture, 10, &made_handling, sizeof(made_handling));
        fixture_global(&fixture, 10, &made_connections, sizeof(made_connections));
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        row = fixture_row(&list, "mysql", "max_connections");
        cr_assert_eq(row->effective, 17);
        cr_assert(row->is_blocking);
        cr_assert_eq(row->source, FROM_ARGUMENT);
        /* SET GLOBAL since. */
        cr_assert_str_eq(row->source_detail, "max_connections: at most 151");
        cr_assert_eq(row->configured, 200);
        cr_assert_null(row->unreadable);
}

Test(runtimes_mysql_names, an_unknown_executable_is_said) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE, .argv = {"mysqld"}, .maps = MADE_MAPS(EXE)};
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &made);
        fixture_write(&fixture, EXE + 1, "no program\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "mysql", "max_connections");
        cr_assert_eq(row->effective, ABSENT);
        cr_assert(row->unreadable);
}
