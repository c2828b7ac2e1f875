/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads work on CPU as a pool, whatever the program is: from the threads' own figures alone. Light sleepers pile up as runnable
 * while their group is throttled, so being runnable is no sign; having run is.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "ratio.h"

/*
 * A thread is of a pool if it ran for more than 1 % of the window; or for more than 5 % of what the busiest one did, because under a
 * small limit many threads share so little that none reaches the 1 %.
 */
#define BUSY_OF_WINDOW_PERCENT 1
#define BUSY_OF_BUSIEST_PERCENT 5

/* From this many CPUs on a number that a formula gives is a hint: below it, every small number is some formula's. */
#define FORMULA_CPUS_MIN 8

typedef const struct thread_facts *row_pointer;

uint64_t facts_threads_in(const struct thread_facts *thread) {
        return thread->folded > 0 ? thread->folded : 1;
}

uint64_t facts_busy_threshold(const struct facts *facts) {
        uint64_t busiest_ns = 0, of_window_ns = facts->window_ns * BUSY_OF_WINDOW_PERCENT / 100;

        for (size_t i = 0; i < facts->threads_count; i++) {
                uint64_t run_ns = known_or_zero(facts->threads[i].run_ns);
                if (facts->threads[i].folded == 0 && run_ns > busiest_ns)
                        busiest_ns = run_ns;
        }
        uint64_t of_busiest_ns = busiest_ns * BUSY_OF_BUSIEST_PERCENT / 100;
        return of_busiest_ns < of_window_ns ? of_busiest_ns : of_window_ns;
}

bool facts_is_busy(const struct thread_facts *thread, uint64_t threshold_ns) {
        /* Threads that ended one after the other (one a request) were no pool, however many they were. */
        return !thread->ended && thread->folded == 0 && known_or_zero(thread->run_ns) > threshold_ns;
}

/* Length of a name without the number at its end: "worker-12" and "worker-3" are one pool. */
static size_t stem_length(const char *name) {
        size_t length = strnlen(name, PROC_NAME_MAX), stem = length;
        while (stem > 0 && isdigit((unsigned char) name[stem - 1]))
                stem--;
        return stem > 0 ? stem : length;
}

static int compare_stems(const void *a, const void *b) {
        const struct thread_facts *x = *(const row_pointer *) a, *y = *(const row_pointer *) b;
        int c = strncmp(x->process, y->process, PROC_NAME_MAX);
        if (c != 0)
                return c;
        size_t x_length = stem_length(x->name), y_length = stem_length(y->name),
               length = x_length < y_length ? x_length : y_length;
        c = memcmp(x->name, y->name, length);
        return c != 0 ? c : (x_length > y_length) - (x_length < y_length);
}

/* Adds the group of @count rows at @rows, and keeps the one with most busy threads; of equals the one that ran more. */
static void take_group(struct pool *pool, const row_pointer *rows, size_t count, uint64_t threshold_ns) {
        uint64_t busy = 0, run_ns = 0;

        for (size_t i = 0; i < count; i++) {
                busy += facts_is_busy(rows[i], threshold_ns);
                run_ns += known_or_zero(rows[i]->run_ns);
        }
        pool->busy += busy;
        if (busy < pool->group_busy || (busy == pool->group_busy && run_ns <= pool->group_run_ns))
                return;
        pool->group_busy = busy;
        pool->group_threads = count;
        pool->group_run_ns = run_ns;
        memcpy(pool->process, rows[0]->process, PROC_NAME_MAX);
        memset(pool->name, 0, PROC_NAME_MAX);
        memcpy(pool->name, rows[0]->name, count > 1 ? stem_length(rows[0]->name) : PROC_NAME_MAX);
}

/*
 * Threads whose number is another's business: those that hand Go's few processors to each other, and those that mostly wait (their row is
 * judged by how many ran at once).
 */
static bool is_explained(const struct facts *facts, const struct thread_facts *thread) {
        for (size_t i = 0; i < facts->parallelism_count; i++) {
                const struct parallelism_facts *row = &facts->parallelism[i];
                if ((row->row->is_blocking || row->row->rounding == ROUND_UP_FROM_TWO) &&
                    facts_is_of_row(thread, row))
                        return true;
        }
        return false;
}

int facts_pool(const struct facts *facts, struct arena *arena, struct pool *ret_pool) {
        struct pool pool = {0};
        size_t count = 0;
        uint64_t threshold_ns = facts_busy_threshold(facts);
        row_pointer *rows = arena_array(arena, facts->threads_count, sizeof(row_pointer));
        if (!rows)
                return -ENOMEM;

        for (size_t i = 0; i < facts->threads_count; i++)
                if (!facts->threads[i].ended && facts->threads[i].folded == 0 &&
                    !is_explained(facts, &facts->threads[i]))
                        rows[count++] = &facts->threads[i];
        if (count > 0)
                qsort(rows, count, sizeof(row_pointer), compare_stems);
        for (size_t first = 0, next; first < count; first = next) {
                for (next = first + 1; next < count && compare_stems(&rows[first], &rows[next]) == 0; next++)
                        ;
                take_group(&pool, &rows[first], next - first, threshold_ns);
        }
        *ret_pool = pool;
        return 0;
}

const char *facts_resembles(uint64_t number, unsigned cpus) {
        const struct {
                uint64_t number;
                const char *words;
        } formulas[] = {
                        {cpus - UINT64_C(1), "one less than the CPUs"},
                        {cpus + UINT64_C(1), "one more than the CPUs"},
                        {cpus * UINT64_C(2), "two for each CPU"},
                        {cpus * UINT64_C(2) + 1, "two for each CPU, and one"},
                        {cpus * UINT64_C(3) / 2 + 1, "one and a half for each CPU, and one"},
                        {cpus / 2, "one for two CPUs"},
                        {8 + (cpus - UINT64_C(8)) * 5 / 8, "a JVM's rule for garbage collectors"},
        };

        if (cpus < 2 || number == 0)
                return NULL;
        if (number == cpus)
                return "one for each CPU";
        for (size_t i = 0; i < ELEMENTS(formulas) && cpus >= FORMULA_CPUS_MIN; i++)
                if (number == formulas[i].number)
                        return formulas[i].words;
        return NULL;
}
