/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

static const struct made_process node = {
                .pid = 10,
                .parent = 1,
                .exe = "/usr/bin/node",
                .name = "MainThread",
                .argv = {"node", "server.js"},
                .environment = {"HOME=/"},
                .rss_kb = 10,
};

Test(runtimes_node, counts_the_workers_of_a_cluster) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process worker = node;
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &node);
        worker.parent = 10;
        /* One that the primary has started for something else. */
        worker.pid = 11;
        fixture_process(&fixture, &worker);
        for (worker.pid = 12; worker.pid < 15; worker.pid++) {
                worker.environment[1] = "NODE_UNIQUE_ID=1";
                fixture_process(&fixture, &worker);
        }
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        row = fixture_row(&list, "node", "cluster workers");
        cr_assert_eq(row->effective, 3);
        cr_assert_eq(row->host_pid, 10);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->source, FROM_CODE);
        cr_assert_eq(row->memory_bytes, 3 * 10 * 1024);
}

Test(runtimes_node, counts_the_pool_where_its_threads_have_names) {
        static const struct {
                unsigned threads;
                const char *variable;
                enum parallelism_source source;
        } rows[] = {
                        {4, NULL, FROM_DEFAULT},
                        {6, "UV_THREADPOOL_SIZE=6", FROM_ENVIRONMENT},
                        {6, NULL, FROM_CODE},
                        {6, "UV_THREADPOOL_SIZE=8", FROM_CODE},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process process = node;
                const struct parallelism *row;

                process.environment[1] = rows[i].variable;
                process.threads[0] = (struct made_threads){"libuv-worker", rows[i].threads};
                process.threads[1] = (struct made_threads){"V8Worker", 4};
                fixture_make(&fixture);
                fixture_process(&fixture, &process);
                struct parallelism_list list = fixture_scan(&fixture);
                cr_assert_eq(list.count, 1);
                row = fixture_row(&list, "node", "UV_THREADPOOL_SIZE");
                cr_expect_eq(row->effective, rows[i].threads);
                cr_expect_eq(row->source, rows[i].source, "row %zu", i);
                cr_expect(row->is_blocking);
        }
}

Test(runtimes_node, a_process_alone_has_no_row) {
        cleanup_fixture struct fixture fixture = {0};

        fixture_make(&fixture);
        fixture_process(&fixture, &node);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}
