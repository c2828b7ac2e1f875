/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_globals.h"

#define EXE "/usr/sbin/mariadbd"
#define CONFIG "/etc/mysql/my.cnf"
#define POOL 2u

/* What MariaDB calls them. */
uint64_t thread_handling, max_connections = 151;
uint32_t threadpool_size = 8, binlog_dump_thread_count, local_connection_thread_count;
uint32_t made_threads __asm__("_ZN9THD_count5countE") = 0;

/* And MySQL. */
uint64_t made_handling __asm__("_ZN26Connection_handler_manager15thread_handlingE") = 0;
uint32_t made_connections __asm__("_ZN26Connection_handler_manager16connection_countE") = 0;

static const struct made_process plain = {
                .pid = 10,
                .exe = EXE,
                .argv = {EXE, "--basedir=/usr"},
                .maps = MADE_MAPS(EXE),
                .threads = {{"mariadbd", 30}},
};

static void make(struct fixture *fixture, const struct made_process *made) {
        fixture_make(fixture);
        fixture_process(fixture, made);
        if (!made->maps)
                return;
        fixture_own_image(fixture, made->exe);
        fixture_global(fixture, 10, &thread_handling, sizeof(thread_handling));
        fixture_global(fixture, 10, &max_connections, sizeof(max_connections));
        fixture_global(fixture, 10, &threadpool_size, sizeof(threadpool_size));
        fixture_global(fixture, 10, &binlog_dump_thread_count, sizeof(binlog_dump_thread_count));
        fixture_global(fixture, 10, &local_connection_thread_count, sizeof(local_connection_thread_count));
        fixture_global(fixture, 10, &made_threads, sizeof(made_threads));
        fixture_global(fixture, 10, &made_handling, sizeof(made_handling));
        fixture_global(fixture, 10, &made_connections, sizeof(made_connections));
}

Test(runtimes_mysql, a_thread_for_each_connection) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        made_threads = 25;
        binlog_dump_thread_count = 2;
        local_connection_thread_count = 3;
        make(&fixture, &plain);
        fixture_file(&fixture, 10, CONFIG, "[client-server]\n!includedir /etc/mysql/conf.d/\n");
        fixture_file(&fixture, 10, "/etc/mysql/conf.d/a.cnf",
                     "[mysqldump]\nmax_connections=7\n[mysqld]\n# it's a comment\nmax-connections = "
                     "151\n[mysql]\n"
                     "max_connections = 8\n");
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        row = fixture_row(&list, "mariadb", "max_connections");
        cr_assert_eq(row->effective, 20);
        cr_assert_eq(row->active, ABSENT);
        cr_assert_eq(row->unit, UNIT_THREADS);
        cr_assert_eq(row->rounding, ROUND_NEVER);
        cr_assert(row->is_blocking);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, "/etc/mysql/conf.d/a.cnf:5: at most 151");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_null(row->unreadable);
}

Test(runtimes_mysql, the_pool_is_the_size_in_memory) {
        static const struct {
                const char *option, *config;
                uint32_t in_force;
                enum parallelism_source source;
                const char *detail;
                uint64_t configured;
        } rows[] = {
                        {NULL, "", 8, FROM_DEFAULT, NULL, ABSENT}, /* as many as its affinity has CPUs */
                        {NULL, "", 3, FROM_UNKNOWN, NULL, ABSENT}, /* SET GLOBAL */
                        {NULL, "[mariadb-10.11]\nthread_pool_size=3\n", 3, FROM_CONFIG, CONFIG ":2", ABSENT},
                        {NULL, "[server]\nloose-thread-pool-size = 2\n", 8, FROM_CONFIG, CONFIG ":2", 2},
                        {NULL, "[mariadb-client]\nthread_pool_size=3\n", 8, FROM_DEFAULT, NULL, ABSENT},
                        {NULL, "thread_pool_size=3\n", 8, FROM_DEFAULT, NULL, ABSENT},
                        {NULL, "[mysqld]\nthread_pool_size_x=3\nthread_pool=3\n", 8, FROM_DEFAULT, NULL,
                         ABSENT},
                        {"--thread-pool-size=4", "[mysqld]\nthread_pool_size=3\n", 4, FROM_ARGUMENT,
                         "thread_pool_size", ABSENT},
                        {"--thread_pool_size", "", 4, FROM_ARGUMENT, "thread_pool_size", ABSENT},
                        {"--no-defaults", "[mysqld]\nthread_pool_size=3\n", 8, FROM_DEFAULT, NULL, ABSENT},
        };

        thread_handling = POOL;
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = plain;
                const struct parallelism *row;

                made.argv[1] = rows[i].option;
                made.argv[2] = rows[i].option ? "4" : NULL;
                threadpool_size = rows[i].in_force;
                make(&fixture, &made);
                fixture_file(&fixture, 10, CONFIG, rows[i].config);
                struct parallelism_list list = fixture_scan(&fixture);
                cr_assert_eq(list.count, 1);
                row = fixture_row(&list, "mariadb", "thread_pool_size");
                cr_expect_eq(row->effective, rows[i].in_force, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                cr_expect_eq(row->rounding, ROUND_UP, "row %zu", i);
                cr_expect(!row->is_blocking, "row %zu", i);
                cr_expect(rows[i].detail ? row->source_detail &&
                                                           strcmp(row->source_detail, rows[i].detail) == 0
                                         : !row->source_detail,
                          "row %zu: %s", i, row->source_detail);
        }
}

Test(runtimes_mysql, a_file_of_its_own_is_the_only_one) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process made = plain;
        const struct parallelism *row;

        thread_handling = POOL;
        made.argv[1] = "--defaults-file=/my.cnf";
        make(&fixture, &made);
        fixture_file(&fixture, 10, CONFIG, "[mysqld]\nthread_pool_size=3\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "mariadb", "thread_pool_size");
        cr_assert_eq(row->effective, 8);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_str_eq(row->unreadable, "/my.cnf of process 10 is not there");
}

Test(runtimes_mysql, without_rights_only_the_configuration_speaks) {
        static const struct {
                const char *config, *setting;
                uint64_t configured;
        } rows[] = {
                        {"[mysqld]\nthread_handling = pool-of-threads\nthread_pool_size = 6\n",
                         "thread_pool_size", 6},
                        {"[mysqld]\nmax_connections = 40\n", "max_connections", 40},
                        {"", "max_connections", ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = plain;
                const struct parallelism *row;

                made.hides = true;
                made.maps = NULL;
                made.exe = NULL;
                make(&fixture, &made);
                fixture_own_image(&fixture, EXE);
                fixture_file(&fixture, 10, CONFIG, rows[i].config);
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "mariadb", rows[i].setting);
                cr_expect_eq(row->effective, ABSENT, "row %zu", i);
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                cr_expect(row->unreadable && strstr(row->unreadable, "the memory of process 10"),
                          "row %zu: %s", i, row->unreadable);
        }
}
