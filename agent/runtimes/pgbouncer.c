/* SPDX-License-Identifier: Apache-2.0 */
/* PgBouncer: one thread a process; where one CPU is too little, several processes share a port by so_reuseport. */
#include <errno.h>
#include <string.h>

#include "runtime.h"

#define RUNTIME "pgbouncer"

static bool is_pgbouncer(const struct process *process, void *data) {
        (void) data;
        return strcmp(process_program(process), RUNTIME) == 0;
}

static int find(struct process_set *set) {
        struct process *first = NULL;
        uint64_t count = 0;

        for (size_t i = 0; i < set->count; i++) {
                if (!is_pgbouncer(&set->processes[i], NULL))
                        continue;
                first = first ? first : &set->processes[i];
                count++;
        }
        if (!first)
                return 0;
        struct parallelism row = parallelism_of(RUNTIME, first);

        row.setting = "processes";
        row.effective = count;
        row.unit = UNIT_PROCESSES;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_DOWN;
        row.memory_bytes = process_set_memory(set, is_pgbouncer, NULL);
        row.how = "start {n} of them (so_reuseport = 1 lets several share a port)";
        /* There is no setting: whoever starts them decides. */
        row.source = count == 1 ? FROM_DEFAULT : FROM_UNKNOWN;
        return process_set_add(set, &row);
}

const struct runtime runtime_pgbouncer = {.name = RUNTIME, .find = find};
