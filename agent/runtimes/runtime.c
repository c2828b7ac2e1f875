/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtimes share: rows, and the processes of a container. */
#include "runtime.h"

#include <errno.h>
#include <string.h>

#include "../base/number.h"

#define NUMBER_MAX 65536u

const char *parallelism_source_name(enum parallelism_source source) {
        static const char *const names[FROM_COUNT] = {
                        [FROM_UNKNOWN] = "unknown",
                        [FROM_DEFAULT] = "default",
                        [FROM_ENVIRONMENT] = "environment",
                        [FROM_ARGUMENT] = "argument",
                        [FROM_CONFIG] = "config",
                        [FROM_LIBRARY] = "library",
                        [FROM_CODE] = "code",
        };

        return names[source];
}

struct parallelism parallelism_of(const char *runtime, const struct process *process) {
        return (struct parallelism){
                        .runtime = runtime,
                        .host_pid = process->host_pid,
                        .pid = process->pid,
                        .effective = ABSENT,
                        .configured = ABSENT,
                        .affinity = process->affinity,
                        .memory_bytes = ABSENT,
                        .active = ABSENT,
                        .leaving = ABSENT,
        };
}

int parallelism_parse(const char *text, uint64_t *ret_number) {
        uint64_t number;
        int r = number_parse_u64(text, &number);

        if (r < 0)
                return r;
        if (number > NUMBER_MAX)
                return -ERANGE;
        *ret_number = number;
        return 0;
}

unsigned process_cpus(const struct process_set *set, const struct process *process, bool of_machine) {
        return of_machine ? set->cpus_online : process->affinity;
}

int process_set_add(struct process_set *set, const struct parallelism *row) {
        struct parallelism *grown;

        if (set->found_count >= PARALLELISM_MAX) {
                set->omitted++;
                return 0;
        }
        grown = arena_grow(set->arena, set->found, set->found_count, &set->found_room, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        set->found = grown;
        set->found[set->found_count++] = *row;
        return 0;
}

struct process *process_set_find(const struct process_set *set, uint32_t host_pid) {
        size_t low = 0, high = set->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (set->processes[middle].host_pid < host_pid)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < set->count && set->processes[low].host_pid == host_pid ? &set->processes[low] : NULL;
}

struct process *process_set_parent(const struct process_set *set, const struct process *process) {
        return process->parent > 0 ? process_set_find(set, process->parent) : NULL;
}

uint64_t process_set_memory(const struct process_set *set,
                            bool (*belongs)(const struct process *process, void *data), void *data) {
        uint64_t sum = 0;

        for (size_t i = 0; i < set->count; i++) {
                if (!belongs(&set->processes[i], data))
                        continue;
                if (!is_known(set->processes[i].rss_anon_bytes))
                        return ABSENT;
                sum += set->processes[i].rss_anon_bytes;
        }
        return sum;
}
