/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node.js: one thread runs the program, so it is the processes of a cluster that use CPUs; how many there are is the program's own decision.
 * libuv's pool has four threads whatever the number of CPUs, and begins with its first work.
 */
#include <errno.h>
#include <string.h>

#include "runtime.h"

#define RUNTIME "node"
#define POOL "UV_THREADPOOL_SIZE"
#define POOL_THREAD "libuv-worker" /* named since libuv 1.50 */

static bool is_node(const struct process *process) {
        const char *program = process_program(process);

        return strcmp(program, "node") == 0 || strcmp(program, "nodejs") == 0;
}

/* A worker of a cluster: its primary has started it with a number of its own. */
static bool is_worker(struct process *process) {
        const char *value;

        return is_node(process) && process_variable(process, "NODE_UNIQUE_ID", &value) > 0;
}

struct tree {
        struct process_set *set;
        const struct process *primary;
};

static bool belongs(const struct process *process, void *data) {
        const struct tree *tree = data;
        struct process *found;

        if (process->parent != tree->primary->host_pid)
                return false;
        found = process_set_find(tree->set, process->host_pid);
        return found && is_worker(found);
}

static int add_cluster(struct process_set *set, struct process *primary) {
        struct tree tree = {.set = set, .primary = primary};
        struct parallelism row = parallelism_of(RUNTIME, primary);

        row.effective = 0;
        for (size_t i = 0; i < set->count; i++)
                row.effective += belongs(&set->processes[i], &tree);
        if (row.effective == 0)
                return 0;
        row.setting = "cluster workers";
        row.source = FROM_CODE;
        row.rounding = ROUND_UP;
        row.unit = UNIT_PROCESSES;
        row.memory_bytes = process_set_memory(set, belongs, &tree);
        row.how = "{n} workers where the program forks them";
        return process_set_add(set, &row);
}

/* Where its threads have names; without them the pool cannot be told from V8's threads. */
static int add_pool(struct process_set *set, struct process *process) {
        struct parallelism row = parallelism_of(RUNTIME, process);
        ssize_t threads = process_count_threads(process, POOL_THREAD);
        const char *value;
        uint64_t said = ABSENT;

        if (threads <= 0)
                return 0;
        int r = process_variable(process, POOL, &value);
        row.setting = POOL;
        row.effective = (uint64_t) threads;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_UP;
        /* Files, names and compression: most of them wait. */
        row.is_blocking = true;
        row.threads_name = POOL_THREAD;
        row.how = "UV_THREADPOOL_SIZE={n} in its environment, then restart";
        if (r < 0) {
                row.unreadable = process_explain(process, "the environment", r);
                if (!row.unreadable)
                        return -ENOMEM;
        } else if (r > 0 && parallelism_parse(value, &said) >= 0 && said == row.effective) {
                row.source = FROM_ENVIRONMENT;
                row.source_detail = POOL;
        } else {
                /* The program may set the variable itself before its first use. */
                row.source = r == 0 && threads == 4 ? FROM_DEFAULT : FROM_CODE;
        }
        return process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                int r;

                if (!is_node(process))
                        continue;
                r = add_cluster(set, process);
                if (r >= 0)
                        r = add_pool(set, process);
                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_node = {.name = RUNTIME, .find = find};
