/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Envoy: an event loop a worker thread. How many is decided once at the start: --concurrency, else the CPUs, of which only newer releases
 * subtract what the quota denies.
 */
#include <errno.h>
#include <string.h>

#include "runtime.h"

#define RUNTIME "envoy"
#define WORKER "wrk:worker_"

/* Istio's agent starts it, with the number that the annotation of the Pod, or the limit, gives. */
static bool is_of_istio(const struct process_set *set, const struct process *process) {
        const struct process *parent = process_set_parent(set, process);

        return parent && strcmp(process_program(parent), "pilot-agent") == 0;
}

static int add(struct process_set *set, struct process *process) {
        struct parallelism row = parallelism_of(RUNTIME, process);
        const char *argument = process_option(process, "--concurrency");
        ssize_t workers = process_count_threads(process, WORKER);
        uint64_t said;

        /* Another program of that name, or one that is only starting. */
        if (workers == 0)
                return 0;
        row.setting = "--concurrency";
        if (workers > 0)
                row.effective = (uint64_t) workers;
        row.rounding = ROUND_DOWN;
        row.threads_name = WORKER;
        row.how = "--concurrency {n}";
        if (is_of_istio(set, process)) {
                /* Its own rule for the number that it hands over. */
                row.program = "istio-proxy";
                row.rounding = ROUND_UP;
                row.how = "concurrency: {n} in the annotation proxy.istio.io/config of the Pod";
        }
        if (workers < 0) {
                row.unreadable = process_explain(process, "the list of threads", (int) workers);
                if (!row.unreadable)
                        return -ENOMEM;
        }
        if (argument && parallelism_parse(argument, &said) >= 0) {
                row.source = FROM_ARGUMENT;
                row.source_detail = arena_format(set->arena, "--concurrency %s", argument);
                if (!row.source_detail)
                        return -ENOMEM;
        } else {
                row.source = FROM_DEFAULT;
        }
        return process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                int r = strcmp(process_program(&set->processes[i]), RUNTIME) == 0
                                        ? add(set, &set->processes[i])
                                        : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_envoy = {.name = RUNTIME, .find = find};
