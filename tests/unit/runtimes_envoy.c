/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/local/bin/envoy"

static const struct made_process plain = {
                .pid = 10,
                .parent = 5,
                .exe = EXE,
                .argv = {"envoy", "-c", "/etc/envoy.yaml"},
                .threads = {{"wrk:worker_%u", 8}, {"dog:main_thread", 1}, {"GrpcGoogClient", 1}},
};

Test(runtimes_envoy, counts_its_workers) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        fixture_process(&fixture, &plain);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "envoy", "--concurrency");
        cr_assert_eq(row->effective, 8);
        cr_assert_eq(row->source, FROM_DEFAULT);
        cr_assert_eq(row->aware, AWARENESS_UNKNOWN);
        cr_assert_eq(row->rounding, ROUND_DOWN);
        cr_assert_str_eq(row->threads_name, "wrk:worker_");
        cr_assert_str_eq(row->how, "--concurrency {n}");
        cr_assert_null(row->program);
}

Test(runtimes_envoy, is_set_through_istio_where_that_started_it) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process agent = {.pid = 5,
                                           .parent = 1,
                                           .exe = "/usr/local/bin/pilot-agent",
                                           .argv = {"/usr/local/bin/pilot-agent", "proxy", "sidecar"}};
        struct made_process proxy = plain;
        const struct parallelism *row;

        fixture_make(&fixture);
        proxy.argv[1] = "--concurrency";
        proxy.argv[2] = "8";
        fixture_process(&fixture, &agent);
        fixture_process(&fixture, &proxy);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "envoy", "--concurrency");
        cr_assert_str_eq(row->program, "istio-proxy");
        cr_assert_eq(row->rounding, ROUND_UP);
        cr_assert_eq(row->source, FROM_ARGUMENT);
        cr_assert_str_eq(row->source_detail, "--concurrency 8");
        cr_assert(strstr(row->how, "proxy.istio.io/config"));
}

Test(runtimes_envoy, another_program_of_that_name_is_none) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process other = plain;

        fixture_make(&fixture);
        memset(other.threads, 0, sizeof(other.threads));
        other.threads[0] = (struct made_threads){"worker_%u", 8};
        fixture_process(&fixture, &other);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}
