/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/bin/python3.11"
#define SPAWN "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
#define TRACKER "from multiprocessing.resource_tracker import main;main(4)"

static void add(struct fixture *fixture, unsigned pid, unsigned parent, const char *const *argv,
                const char *variable) {
        struct made_process process = {
                        .pid = pid,
                        .parent = parent,
                        .exe = EXE,
                        .environment = {"HOME=/", variable},
                        .rss_kb = 10,
        };

        for (size_t i = 0; argv[i]; i++)
                process.argv[i] = argv[i];
        fixture_process(fixture, &process);
}

/* A master with three copies of itself. */
static const struct parallelism *copies(struct fixture *fixture, const char *const *argv,
                                        const char *variable, const char *config, const char *runtime,
                                        const char *setting) {
        static struct parallelism_list list;

        fixture_make(fixture);
        for (unsigned i = 0; i < 4; i++)
                add(fixture, 10 + i, i == 0 ? 1 : 10, argv, variable);
        if (config)
                fixture_write_n(fixture, "proc/10/cwd/gunicorn.conf.py", config, strlen(config));
        list = fixture_scan(fixture);
        cr_assert_eq(list.count, 1);
        return fixture_row(&list, runtime, setting);
}

Test(runtimes_python, counts_the_workers_of_gunicorn) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const argv[] = {"python3", "-W", "ignore", "/usr/bin/gunicorn", "-w", "3", "a:b", NULL};
        const struct parallelism *row = copies(&fixture, argv, NULL, NULL, "gunicorn", "--workers");

        cr_assert_eq(row->effective, 3);
        cr_assert_eq(row->host_pid, 10);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->memory_bytes, 3 * 10 * 1024);
        cr_assert_eq(row->source, FROM_ARGUMENT);
        cr_assert_str_eq(row->source_detail, "-w 3");
        cr_assert_eq(row->rounding, ROUND_UP);
        cr_assert_eq(row->aware, AWARENESS_NONE);
        cr_assert_not(is_known(row->configured));
}

Test(runtimes_python, says_where_the_number_of_gunicorn_comes_from) {
        static const struct {
                const char *argv[6];
                const char *variable, *config;
                enum parallelism_source source;
                const char *detail;
                uint64_t configured;
        } rows[] = {
                        {{"p", "-m", "gunicorn", "--workers=2"},
                         "WEB_CONCURRENCY=3",
                         NULL,
                         FROM_ARGUMENT,
                         "--workers 2",
                         2},
                        {{"p", "/b/gunicorn", "a"},
                         "WEB_CONCURRENCY=3",
                         NULL,
                         FROM_ENVIRONMENT,
                         "WEB_CONCURRENCY",
                         ABSENT},
                        {{"p", "/b/gunicorn", "a"},
                         "WEB_CONCURRENCY=3",
                         "bind = 1\nworkers = 3 # x\n",
                         FROM_CONFIG,
                         "gunicorn.conf.py:2",
                         ABSENT},
                        {{"p", "/b/gunicorn", "a"},
                         NULL,
                         "workers=2\n",
                         FROM_CONFIG,
                         "gunicorn.conf.py:1",
                         2},
                        {{"p", "/b/gunicorn", "a"},
                         NULL,
                         "workers = cpu_count() * 2 + 1\n",
                         FROM_CONFIG,
                         "gunicorn.conf.py:1",
                         ABSENT},
                        {{"p", "/b/gunicorn", "a"},
                         NULL,
                         "workers_x = 3\nworkers == 3\n",
                         FROM_UNKNOWN,
                         NULL,
                         ABSENT},
                        {{"p", "/b/gunicorn", "a"}, NULL, NULL, FROM_UNKNOWN, NULL, ABSENT},
                        {{"gunicorn: master [a]"},
                         "WEB_CONCURRENCY=3",
                         NULL,
                         FROM_ENVIRONMENT,
                         "WEB_CONCURRENCY",
                         ABSENT},
                        {{"gunicorn: master [a]"}, "WEB_CONCURRENCY=2", NULL, FROM_UNKNOWN, NULL, ABSENT},
                        {{"gunicorn: master [a]"},
                         NULL,
                         "workers = 3\n",
                         FROM_CONFIG,
                         "gunicorn.conf.py:1",
                         ABSENT},
                        {{"gunicorn: master [a]"}, NULL, "workers = 2\n", FROM_UNKNOWN, NULL, ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = copies(&fixture, rows[i].argv, rows[i].variable,
                                                       rows[i].config, "gunicorn", "--workers");

                cr_expect_eq(row->effective, 3, "row %zu", i);
                cr_expect_eq(row->source, rows[i].source, "row %zu: %s", i,
                             parallelism_source_name(row->source));
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                cr_expect((row->source_detail != NULL) == (rows[i].detail != NULL), "row %zu", i);
                if (row->source_detail && rows[i].detail)
                        cr_expect_str_eq(row->source_detail, rows[i].detail, "row %zu", i);
                cr_expect((row->unreadable != NULL) == (rows[i].source == FROM_UNKNOWN), "row %zu", i);
        }
}

Test(runtimes_python, one_worker_of_gunicorn_is_its_default) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const argv[] = {"p", "/b/gunicorn", "a", NULL};

        fixture_make(&fixture);
        add(&fixture, 10, 1, argv, NULL);
        cr_assert_eq(fixture_scan(&fixture).count, 0, "a master without a worker");
        add(&fixture, 11, 10, argv, NULL);
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(fixture_row(&list, "gunicorn", "--workers")->effective, 1);
        cr_assert_eq(list.rows[0].source, FROM_DEFAULT);
}

Test(runtimes_python, an_environment_that_is_not_readable_is_no_default) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process process = {
                        .pid = 10, .parent = 1, .argv = {"python3", "/b/gunicorn", "a"}, .hides = true};

        fixture_make(&fixture);
        fixture_process(&fixture, &process);
        process.pid = 11;
        process.parent = 10;
        fixture_process(&fixture, &process);
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        cr_assert_eq(list.rows[0].effective, 1);
        cr_assert_eq(list.rows[0].source, FROM_UNKNOWN);
        cr_assert(strstr(list.rows[0].unreadable, "CAP_SYS_PTRACE"));
}

Test(runtimes_python, uvicorn_spawns_its_workers) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const master[] = {"python3", "/usr/bin/uvicorn", "a:b", NULL},
                          *const worker[] = {"python3", "-B", "-c", SPAWN, "--multiprocessing-fork", NULL},
                          *const tracker[] = {"python3", "-B", "-c", TRACKER, NULL};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, master, "WEB_CONCURRENCY=2");
        add(&fixture, 11, 10, tracker, NULL);
        add(&fixture, 12, 10, worker, NULL);
        add(&fixture, 13, 10, worker, NULL);
        add(&fixture, 14, 13, worker, NULL);
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        row = fixture_row(&list, "uvicorn", "--workers");
        cr_assert_eq(row->effective, 2);
        cr_assert_eq(row->source, FROM_ENVIRONMENT);
        cr_assert_eq(row->memory_bytes, 2 * 10 * 1024);
}

Test(runtimes_python, uvicorn_alone_is_one) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const argv[] = {"python3", "-m", "uvicorn", "a:b", NULL};

        fixture_make(&fixture);
        add(&fixture, 10, 1, argv, NULL);
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(fixture_row(&list, "uvicorn", "--workers")->effective, 1);
        cr_assert_eq(list.rows[0].source, FROM_DEFAULT);
        cr_assert_eq(list.rows[0].memory_bytes, 10 * 1024);
}

Test(runtimes_python, celery_says_where_its_number_comes_from) {
        static const struct {
                const char *argv[6];
                enum parallelism_source source;
                const char *detail;
        } rows[] = {
                        {{"p", "/b/celery", "-A", "a", "worker", "-c3"}, FROM_ARGUMENT, "-c 3"},
                        {{"p", "/b/celery", "worker", "--autoscale=9,3"}, FROM_ARGUMENT, "--autoscale"},
                        {{"p", "/b/celery", "worker"}, FROM_UNKNOWN, NULL},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const char *argv[7] = {0};

                memcpy(argv, rows[i].argv, sizeof(rows[i].argv));
                const struct parallelism *row =
                                copies(&fixture, argv, NULL, NULL, "celery", "--concurrency");
                cr_expect_eq(row->effective, 3);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                if (row->source_detail && rows[i].detail)
                        cr_expect_str_eq(row->source_detail, rows[i].detail, "row %zu", i);
        }
}

Test(runtimes_python, celery_has_one_for_each_cpu_of_the_machine) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const argv[] = {"p", "-m", "celery", "worker", NULL};

        fixture_make(&fixture);
        for (unsigned i = 0; i < 9; i++)
                add(&fixture, 10 + i, i == 0 ? 1 : 10, argv, NULL);
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(fixture_row(&list, "celery", "--concurrency")->effective, 8);
        cr_assert_eq(list.rows[0].source, FROM_DEFAULT);
}

Test(runtimes_python, others_are_none) {
        cleanup_fixture struct fixture fixture = {0};
        const char *const beat[] = {"p", "/b/celery", "beat", NULL},
                          *const editor[] = {"p", "/b/edit", "/b/gunicorn", NULL},
                          *const code[] = {"p", "-c", "print()", "uvicorn", NULL},
                          *const module[] = {"p", "-m", "uvicornish", NULL};
        struct made_process other = {
                        .pid = 30, .parent = 1, .exe = "/usr/bin/vi", .argv = {"vi", "/b/uvicorn"}};

        fixture_make(&fixture);
        add(&fixture, 10, 1, beat, NULL);
        add(&fixture, 11, 10, beat, NULL);
        add(&fixture, 12, 1, editor, NULL);
        add(&fixture, 13, 12, editor, NULL);
        add(&fixture, 14, 1, code, NULL);
        add(&fixture, 15, 1, module, NULL);
        fixture_process(&fixture, &other);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}
