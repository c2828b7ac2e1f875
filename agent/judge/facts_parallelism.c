/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtimes of a container have in force, beside the limit that applies to them, and which threads are theirs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "facts_internal.h"
#include "ratio.h"

#define NUMBER_MARK "{n}"

static uint64_t at_least(uint64_t value, uint64_t least) {
        return value > least ? value : least;
}

uint64_t facts_parallelism_for(const struct facts *facts, const struct parallelism *row, uint64_t milli) {
        /* A limit above the CPUs that it may use is none. */
        unsigned cpus = row->affinity > 0 ? row->affinity : facts->cpus_online;
        if (cpus > 0 && milli > (uint64_t) cpus * 1000)
                milli = (uint64_t) cpus * 1000;
        if (!is_known(milli))
                return ABSENT;
        switch (row->rounding) {
        case ROUND_UP:
                return at_least(ratio_scale_up(milli, 1, 1000), 1);
        case ROUND_UP_FROM_TWO:
                /* The runtime's own rule knows no less than 2, but no more than its CPUs either. */
                return row->affinity == 1 ? 1 : at_least(ratio_scale_up(milli, 1, 1000), 2);
        case ROUND_DOWN:
                return at_least(milli / 1000, 1);
        case ROUND_TO_ONE:
                return 1;
        case ROUND_NEVER:
                break;
        }
        return ABSENT;
}

/* The sentence with the number in it, wherever and however often the runtime wants it. NULL: out of memory. */
static const char *fill_number(const char *how, uint64_t number, struct arena *arena) {
        char digits[24];
        size_t room = strlen(how) + 1, used = 0;

        snprintf(digits, sizeof(digits), "%" PRIu64, number);
        for (const char *at = how; (at = strstr(at, NUMBER_MARK)); at += strlen(NUMBER_MARK))
                room += strlen(digits);
        char *filled = arena_alloc(arena, room);
        if (!filled)
                return NULL;
        for (const char *mark; (mark = strstr(how, NUMBER_MARK)); how = mark + strlen(NUMBER_MARK))
                used += (size_t) snprintf(filled + used, room - used, "%.*s%s", (int) (mark - how), how,
                                          digits);
        snprintf(filled + used, room - used, "%s", how);
        return filled;
}

static bool is_same_process(const struct thread_facts *thread, const struct parallelism *row) {
        if (thread->host_pid > 0 && row->host_pid > 0)
                return thread->host_pid == row->host_pid;
        return thread->pid > 0 && thread->pid == row->pid;
}

static const char *process_name(const struct facts *facts, const struct parallelism *row) {
        for (size_t i = 0; i < facts->threads_count; i++)
                if (is_same_process(&facts->threads[i], row))
                        return facts->threads[i].process;
        return NULL;
}

static bool has_prefix(const char *name, const char *prefix) {
        return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool facts_is_of_row(const struct thread_facts *thread, const struct parallelism_facts *facts) {
        const struct parallelism *row = facts->row;
        bool has_name = !row->threads_name || has_prefix(thread->name, row->threads_name);

        if (row->unit == UNIT_THREADS)
                return has_name && is_same_process(thread, row);
        /* The master only watches its workers. */
        if (is_same_process(thread, row) && row->effective != 1)
                return false;
        return row->threads_name ? has_name
                                 : facts->process && strncmp(thread->process, facts->process,
                                                             PROC_NAME_MAX) == 0;
}

static void add_threads(const struct facts *facts, struct parallelism_facts *out) {
        uint64_t busy_ns = facts_busy_threshold(facts);

        out->process = process_name(facts, out->row);
        for (size_t i = 0; i < facts->threads_count; i++) {
                const struct thread_facts *thread = &facts->threads[i];
                if (!facts_is_of_row(thread, out))
                        continue;
                out->threads += facts_threads_in(thread);
                out->threads_busy += facts_is_busy(thread, busy_ns);
                known_add(&out->run_ns, thread->run_ns);
                known_add(&out->stall_ns, thread->stall_ns);
                known_add(&out->quota_spent_ns, thread->quota_spent_ns);
        }
}

static int fill_row(const struct facts *facts, const struct parallelism *row, struct arena *arena,
                    struct parallelism_facts *out) {
        /* Of those that wait for something else most of the time only those at work want a CPU. */
        uint64_t counted = row->is_blocking ? row->active : row->effective;

        *out = (struct parallelism_facts){
                        .row = row,
                        .recommended = facts->has_limit && is_known(facts->limit_milli)
                                                       ? facts_parallelism_for(facts, row,
                                                                               facts->limit_milli)
                                                       : ABSENT,
                        .surplus = ABSENT,
                        .surplus_memory_bytes = ABSENT,
                        .run_ns = ABSENT,
                        .stall_ns = ABSENT,
                        .quota_spent_ns = ABSENT,
        };
        if (is_known(out->recommended) && is_known(counted))
                out->surplus = difference_or_zero(counted, out->recommended);
        if (row->unit == UNIT_PROCESSES && !row->is_blocking && is_known(out->surplus) &&
            is_known(row->memory_bytes))
                out->surplus_memory_bytes = ratio_scale(row->memory_bytes, out->surplus, row->effective);
        if (is_known(out->recommended) && row->how) {
                out->how = fill_number(row->how, out->recommended, arena);
                if (!out->how)
                        return -ENOMEM;
        }
        add_threads(facts, out);
        return 0;
}

int facts_add_parallelism(struct facts *facts, const struct parallelism_list *list, struct arena *arena) {
        if (!list)
                return 0;
        struct parallelism_facts *rows = arena_array(arena, list->count, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        unsigned affinity = 0;

        for (size_t i = 0; i < list->count; i++) {
                int r = fill_row(facts, &list->rows[i], arena, &rows[i]);
                if (r < 0)
                        return r;
                if (list->rows[i].affinity > affinity)
                        affinity = list->rows[i].affinity;
        }
        facts->parallelism = rows;
        facts->parallelism_count = list->count;
        facts->parallelism_omitted = list->omitted;
        facts->affinity = affinity;
        return 0;
}
