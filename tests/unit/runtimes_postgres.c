/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_globals.h"

#define EXE "/usr/lib/postgresql/15/bin/postgres"
#define DATA "/var/lib/postgresql/15/main"
#define CONFIG "/etc/postgresql/15/main/postgresql.conf"

/* What PostgreSQL calls them. */
uint32_t MaxConnections = 100;
uint32_t max_parallel_workers = 8;

static const struct made_process debian = {
                .pid = 10,
                .exe = EXE,
                .argv = {EXE, "-D", DATA, "-c", "config_file=/etc/postgresql/15/main/postgresql.conf"},
                .maps = MADE_MAPS(EXE),
};

static void add(struct fixture *fixture, unsigned pid, const char *title) {
        const struct made_process child = {
                        .pid = pid, .parent = 10, .exe = EXE, .argv = {title, "", ""}, .rss_kb = 100};

        fixture_process(fixture, &child);
}

static void make(struct fixture *fixture, const struct made_process *postmaster) {
        fixture_make(fixture);
        fixture_process(fixture, postmaster);
        fixture_own_image(fixture, EXE);
        if (!postmaster->hides) {
                fixture_global(fixture, 10, &MaxConnections, sizeof(MaxConnections));
                fixture_global(fixture, 10, &max_parallel_workers, sizeof(max_parallel_workers));
        }
        add(fixture, 11, "postgres: 15/main: checkpointer ");
        add(fixture, 12, "postgres: 15/main: autovacuum launcher ");
}

Test(runtimes_postgres, tells_backends_at_work_by_their_titles) {
        static const struct {
                const char *title;
                unsigned backends, active, workers;
        } rows[] = {
                        {"postgres: 15/main: app shop 10.0.0.7(40212) SELECT", 1, 1, 0},
                        {"postgres: app shop [local] SELECT waiting", 1, 1, 0},
                        {"postgres: app shop [local] idle", 1, 0, 0},
                        {"postgres: app shop fe80::1%eth0(5) idle in transaction", 1, 0, 0},
                        {"postgres: app shop [local] idle in transaction (aborted)", 1, 0, 0},
                        {"postgres: 15/main: app shop [local] authentication", 1, 0, 0},
                        {"postgres: app shop [local] startup", 1, 0, 0},
                        {"postgres: big [local] user shop [local] UPDATE", 1, 1, 0},
                        {"postgres: a b(1)x shop [local] idle", 1, 0, 0},
                        {"postgres: 15/main: parallel worker for PID 16917 ", 0, 0, 1},
                        {"postgres: parallel worker for PID 16917 ", 0, 0, 1},
                        {"postgres: 15/main: walsender rep 10.0.0.8(4) streaming 0/3000060", 0, 0, 0},
                        {"postgres: walwriter ", 0, 0, 0},
                        {"postgres: io worker 0", 0, 0, 0},
                        {"postgres: autovacuum worker shop", 0, 0, 0},
                        {"postgres: ", 0, 0, 0},
                        {"postgres: ()", 0, 0, 0},
                        {"postgres: a (5)", 0, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *connections, *workers;

                make(&fixture, &debian);
                add(&fixture, 20, rows[i].title);
                struct parallelism_list list = fixture_scan(&fixture);
                connections = fixture_row(&list, "postgres", "max_connections");
                workers = fixture_row(&list, "postgres", "max_parallel_workers");
                cr_expect_eq(connections->effective, rows[i].backends, "%s", rows[i].title);
                cr_expect_eq(connections->active, rows[i].active, "%s", rows[i].title);
                cr_expect_eq(connections->memory_bytes, rows[i].backends * 100 * 1024, "%s", rows[i].title);
                cr_expect_eq(workers->active, rows[i].workers, "%s", rows[i].title);
                cr_expect_eq(workers->effective, 8, "%s", rows[i].title);
        }
}

Test(runtimes_postgres, rows_of_a_cluster) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        make(&fixture, &debian);
        for (unsigned i = 0; i < 20; i++)
                add(&fixture, 20 + i,
                    i < 15 ? "postgres: app shop [local] SELECT" : "postgres: a b [local] idle");
        fixture_file(&fixture, 10, CONFIG,
                     "# max_connections = 9\ninclude_dir 'conf.d'\nmax_connections = 50 # before\n"
                     "shared_buffers = 128MB\n");
        fixture_file(&fixture, 10, "/etc/postgresql/15/main/conf.d/my.conf", "Max_Parallel_Workers='8'\n");
        fixture_file(&fixture, 10, DATA "/postgresql.auto.conf", "max_connections = '100'\n");
        fixture_write(&fixture, "proc/10/cwd/PG_VERSION", "15\n");
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(list.count, 2);
        row = fixture_row(&list, "postgres", "max_connections");
        cr_assert_eq(row->host_pid, 10);
        cr_assert_str_eq(row->version, "15");
        cr_assert_eq(row->effective, 20);
        cr_assert_eq(row->active, 15);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->rounding, ROUND_NEVER);
        cr_assert(row->is_blocking);
        cr_assert_eq(row->aware, AWARENESS_NONE);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, DATA "/postgresql.auto.conf:1: at most 100");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert(strstr(row->how, "pooler"));

        row = fixture_row(&list, "postgres", "max_parallel_workers");
        cr_assert_eq(row->effective, 8);
        cr_assert_eq(row->active, 0);
        cr_assert_eq(row->rounding, ROUND_UP);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, "/etc/postgresql/15/main/conf.d/my.conf:1");
        cr_assert_null(row->unreadable);
}

Test(runtimes_postgres, memory_decides_and_files_explain) {
        static const struct {
                const char *argv[6];
                const char *config;
                uint32_t in_force;
                enum parallelism_source source;
                const char *detail;
                uint64_t configured;
        } rows[] = {
                        {{EXE, "-D", DATA}, "", 8, FROM_DEFAULT, NULL, ABSENT},
                        {{EXE, "-D", DATA}, "", 3, FROM_UNKNOWN, NULL, ABSENT},
                        {{EXE, "-D", DATA},
                         "max_parallel_workers=2\n",
                         2,
                         FROM_CONFIG,
                         DATA "/postgresql.conf:1",
                         ABSENT},
                        {{EXE, "-D", DATA},
                         "max_parallel_workers 2\n",
                         8,
                         FROM_CONFIG,
                         DATA "/postgresql.conf:1",
                         2},
                        {{EXE, "-D", DATA},
                         "max_parallel_workers =2\n",
                         8,
                         FROM_CONFIG,
                         DATA "/postgresql.conf:1",
                         2},
                        {{EXE, "-D", DATA},
                         "max_parallel_workers_per_gather = 2\n",
                         8,
                         FROM_DEFAULT,
                         NULL,
                         ABSENT},
                        {{EXE, "-D", DATA}, "max_parallel_workers = lots\n", 8, FROM_DEFAULT, NULL, ABSENT},
                        {{EXE, "-D", DATA, "-c", "max_parallel_workers=4"},
                         "max_parallel_workers = 2\n",
                         4,
                         FROM_ARGUMENT,
                         "max_parallel_workers",
                         ABSENT},
                        {{EXE, "-D", DATA, "--max-parallel-workers=4"},
                         "max_parallel_workers = 2\n",
                         4,
                         FROM_ARGUMENT,
                         "max_parallel_workers",
                         ABSENT},
                        {{EXE, "-D", DATA, "-cmax_parallel_workers=4"},
                         "",
                         4,
                         FROM_ARGUMENT,
                         "max_parallel_workers",
                         ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process postmaster = debian;
                const struct parallelism *row;

                memset(postmaster.argv, 0, sizeof(postmaster.argv));
                memcpy(postmaster.argv, rows[i].argv, sizeof(rows[i].argv));
                max_parallel_workers = rows[i].in_force;
                make(&fixture, &postmaster);
                fixture_file(&fixture, 10, DATA "/postgresql.conf", rows[i].config);
                fixture_file(&fixture, 10, DATA "/postgresql.auto.conf", "# nothing\n");
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "postgres", "max_parallel_workers");
                cr_expect_eq(row->effective, rows[i].in_force, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                cr_expect(rows[i].detail ? row->source_detail &&
                                                           strcmp(row->source_detail, rows[i].detail) == 0
                                         : !row->source_detail,
                          "row %zu: %s", i, row->source_detail);
        }
}

Test(runtimes_postgres, hidden_titles_and_memory_are_said) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process hidden = debian;
        const struct parallelism *row;

        hidden.hides = true;
        hidden.exe = NULL;
        hidden.maps = NULL;
        make(&fixture, &hidden);
        add(&fixture, 20, "postgres: app shop [local] ");
        add(&fixture, 21, "postgres: app shop 10.0.0.7(40212) ");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "postgres", "max_connections");
        cr_assert_eq(row->effective, 2);
        /* update_process_title is off. */
        cr_assert_eq(row->active, ABSENT);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_str_eq(row->unreadable, CONFIG " of process 10 is not there");
        row = fixture_row(&list, "postgres", "max_parallel_workers");
        cr_assert_eq(row->effective, ABSENT);
        cr_assert(strstr(row->unreadable, "the memory of process 10 is not readable"), "%s",
                  row->unreadable);
}

Test(runtimes_postgres, needs_a_postmaster_with_children) {
        cleanup_fixture struct fixture fixture = {0};

        fixture_make(&fixture);
        fixture_process(&fixture, &debian);
        add(&fixture, 10 + 1, "psql");
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}

Test(runtimes_postgres, poolers_are_counted) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        for (unsigned i = 0; i < 3; i++) {
                const struct made_process pooler = {.pid = 10 + i,
                                                    .exe = "/usr/sbin/pgbouncer",
                                                    .argv = {"pgbouncer", "/etc/pgbouncer/pgbouncer.ini"},
                                                    .rss_kb = 10};

                fixture_process(&fixture, &pooler);
        }
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "pgbouncer", "processes");
        cr_assert_eq(row->host_pid, 10);
        cr_assert_eq(row->effective, 3);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->rounding, ROUND_DOWN);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_eq(row->memory_bytes, 30 * 1024);
}
