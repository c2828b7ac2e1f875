/* SPDX-License-Identifier: Apache-2.0 */
/* memcached: -t event loops, 4 unless said otherwise, whatever the number of CPUs. They have a name of their own since 1.6.18. */
#include <errno.h>
#include <string.h>

#include "runtime.h"

#define RUNTIME "memcached"
#define WORKER "mc-worker"
#define DEFAULT_THREADS 4u

static const char *threads_option(const struct process *process) {
        const char *threads = process_option(process, "-t");

        return threads ? threads : process_option(process, "--threads");
}

static int add(struct process_set *set, struct process *process) {
        struct parallelism row = parallelism_of(RUNTIME, process);
        const char *option = threads_option(process);
        ssize_t workers = process_count_threads(process, WORKER);
        uint64_t said = DEFAULT_THREADS;
        bool is_said = option && parallelism_parse(option, &said) >= 0;

        row.setting = "-t";
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_DOWN;
        row.how = "-t {n} on its command line, then restart";
        row.source = is_said ? FROM_ARGUMENT : FROM_DEFAULT;
        if (is_said)
                row.source_detail = "-t";
        if (workers > 0) {
                row.effective = (uint64_t) workers;
                row.threads_name = WORKER;
        } else if (workers == 0 && said < process->threads_count) {
                /* All are called alike: what it was told stands, if there are enough threads for it. */
                row.effective = said;
        } else {
                row.unreadable = workers == 0 ? arena_format(set->arena,
                                                             "process %u has fewer threads than -t says: it "
                                                             "is only starting, or another program",
                                                             process->pid)
                                              : process_explain(process, "the list of threads",
                                                                (int) workers);
                if (!row.unreadable)
                        return -ENOMEM;
        }
        if (is_known(row.effective) && is_said && said != row.effective)
                row.configured = said;
        return process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                int r = strcmp(process_program(process), RUNTIME) == 0 ? add(set, process) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_memcached = {.name = RUNTIME, .find = find};
