/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread rows: the growth of each thread's counters, whatever happened to the thread meanwhile: it was born,
 * it ended, it moved to another group, its number was given out again, or it was folded into the sum of its
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts_internal.h"
#include "ratio.h"

#define STALL_SHIFT 14

typedef const struct thread_sample *row_pointer;

/* Rows sorted by what they are rows of. */
struct row_index {
        row_pointer *rows;
        size_t count;
};

static int compare_u64(uint64_t a, uint64_t b) {
        return (a > b) - (a < b);
}

/*
 * A thread is its number and its start time: numbers are given out again. A sum of ended threads is that of
 * a process, and its start time is when the sum was begun.
 */
static int compare_identity(const struct thread_sample *a, const struct thread_sample *b) {
        int c = (a->folded > 0) - (b->folded > 0);
        if (c == 0 && a->folded > 0) {
                c = compare_u64(a->host_pid, b->host_pid);
                if (c == 0)
                        c = compare_u64(a->pid, b->pid);
        } else if (c == 0) {
                c = compare_u64(a->global_tid, b->global_tid);
        }
        return c != 0 ? c : compare_u64(a->start_ns, b->start_ns);
}

static int compare_rows(const void *a, const void *b) {
        return compare_identity(*(const row_pointer *) a, *(const row_pointer *) b);
}

static int row_index_make(struct row_index *ret_index, const struct thread_sample *rows, size_t count,
                          struct arena *arena) {
        row_pointer *sorted = arena_array(arena, count, sizeof(row_pointer));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                sorted[i] = &rows[i];
        if (count > 0)
                qsort(sorted, count, sizeof(row_pointer), compare_rows);
        *ret_index = (struct row_index){sorted, count};
        return 0;
}

static const struct thread_sample *row_index_find(const struct row_index *index,
                                                  const struct thread_sample *row) {
        if (index->count == 0)
                return NULL;
        row_pointer *found = bsearch(&row, index->rows, index->count, sizeof(row_pointer), compare_rows);
        return found ? *found : NULL;
}

/*
 * Its row in the previous snapshot, under whatever container; NULL if its counters began within the window.
 */
static const struct thread_sample *find_before(const struct facts_window *window,
                                               const struct row_index *before,
                                               const struct thread_sample *row) {
        const struct thread_sample *found = row_index_find(before, row);

        /*
         * Counters go with a thread that moves to another group. Rare, so a walk will do; who was seen first
         * only after the previous snapshot cannot be in it.
         */
        if (!found && window->previous && row->folded == 0 && row->first_ns <= window->previous->at.mono_ns)
                for (size_t i = 0; i < window->previous->threads_count && !found; i++) {
                        const struct thread_sample *other = &window->previous->threads[i];
                        if (other->container != row->container && compare_identity(other, row) == 0)
                                found = other;
                }
        /* Lost and found again: counting began anew. */
        if (found && is_known(row->first_ns) && is_known(found->at_ns) && row->first_ns > found->at_ns)
                found = NULL;
        return found;
}

/* The figures that grow, in one order for both kinds of struct. */
#define COUNTERS(X)                                                                                         \
        X(run_ns)                                                                                           \
        X(wait_ns)                                                                                          \
        X(stall_ns)                                                                                         \
        X(stall_above_ns)                                                                                   \
        X(sleep_ns)                                                                                         \
        X(sleep_in_stall_ns)                                                                                \
        X(exec_ns)                                                                                          \
        X(quota_spent_ns)                                                                                   \
        X(stalls)                                                                                           \
        X(switches)                                                                                         \
        X(runqueue_delay_ns)

static void base_add(struct thread_sample *base, const struct thread_sample *row) {
#define X(name) known_add(&base->name, row->name);
        COUNTERS(X)
#undef X
        for (size_t i = 0; i < SNAPSHOT_STALL_BINS; i++)
                base->stall_bins[i] = (uint16_t) (base->stall_bins[i] + row->stall_bins[i]);
}

static bool is_of_process(const struct thread_sample *row, const struct thread_sample *fold) {
        return row->host_pid == fold->host_pid && row->pid == fold->pid;
}

/*
 * What the previous window already counted of a sum's threads. A thread that lived at the previous snapshot
 * and ended since is folded with all its figures, also those of before: they are taken off, at most for as
 * many threads as were folded.
 */
static uint32_t fold_base(const struct thread_sample *row, const struct thread_sample *found,
                          const struct row_index *before, const struct row_index *now,
                          struct thread_sample *ret_base) {
        uint32_t folded = row->folded;

        *ret_base = (struct thread_sample){0};
        if (found) {
                *ret_base = *found;
                folded = row->folded > found->folded ? row->folded - found->folded : 0;
        }
        uint32_t left = folded;
        for (size_t i = 0; i < before->count && left > 0; i++) {
                const struct thread_sample *gone = before->rows[i];
                if (gone->folded > 0 || gone->ended || !is_of_process(gone, row) ||
                    row_index_find(now, gone))
                        continue;
                base_add(ret_base, gone);
                left--;
        }
        return folded;
}

static void fill_quantiles(struct thread_facts *out, const struct thread_sample *row,
                           const struct thread_sample *base) {
        uint32_t bins[SNAPSHOT_STALL_BINS];

        /* The bins are 16 bits wide and wrap; their difference does not care. */
        for (size_t i = 0; i < SNAPSHOT_STALL_BINS; i++)
                bins[i] = (uint16_t) (row->stall_bins[i] - (base ? base->stall_bins[i] : 0));
        uint64_t longest = row->stall_longest_ns > 0 ? row->stall_longest_ns : ABSENT;
        out->stall_longest_ns = row->stall_longest_ns;
        out->stall_p50_ns = facts_quantile_u32(bins, SNAPSHOT_STALL_BINS, STALL_SHIFT, 500, longest);
        out->stall_p99_ns = facts_quantile_u32(bins, SNAPSHOT_STALL_BINS, STALL_SHIFT, 990, longest);
}

/*
 * Files know nothing but run and delay; the scheduler's hooks tell stall and wait apart and need no delay.
 */
static void hide_unmeasured(struct thread_facts *out, bool measured) {
        if (measured) {
                out->runqueue_delay_ns = ABSENT;
                return;
        }
        out->wait_ns = out->stall_ns = out->stall_above_ns = ABSENT;
        out->sleep_ns = out->sleep_in_stall_ns = ABSENT;
        out->stalls = out->stall_longest_ns = out->stall_p50_ns = out->stall_p99_ns = ABSENT;
        out->quota_spent_ns = out->exec_ns = ABSENT;
}

static uint64_t wall_of(const struct thread_facts *out, const struct thread_sample *row,
                        const struct thread_sample *found) {
        if (row->folded > 0) {
                uint64_t wall = ABSENT;
                known_add(&wall, out->run_ns);
                known_add(&wall, out->wait_ns);
                known_add(&wall, out->stall_ns);
                known_add(&wall, out->sleep_ns);
                return is_known(out->sleep_ns) ? wall : ABSENT;
        }
        return known_delta(row->at_ns, found ? found->at_ns : row->first_ns);
}

static void fill_row(struct thread_facts *out, const struct facts_window *window,
                     const struct thread_sample *row, const struct row_index *before,
                     const struct row_index *now, bool measured) {
        const struct thread_sample *found = find_before(window, before, row), *base = found;
        struct thread_sample sum;

        *out = (struct thread_facts){
                        .pid = row->pid,
                        .tid = row->tid,
                        .host_pid = row->host_pid,
                        .host_tid = row->host_tid,
                        .ended = row->ended,
        };
        memcpy(out->name, row->name, sizeof(out->name));
        memcpy(out->process, row->process, sizeof(out->process));
        if (row->folded > 0) {
                out->folded = fold_base(row, found, before, now, &sum);
                base = &sum;
        }
#define X(field) out->field = base ? known_delta(row->field, base->field) : row->field;
        COUNTERS(X)
#undef X
        fill_quantiles(out, row, base);
        hide_unmeasured(out, measured);
        out->wall_ns = wall_of(out, row, found);
}

static int compare_harm(const void *a, const void *b) {
        const struct thread_facts *x = a, *y = b;
        const uint64_t keys[][2] = {
                        {known_or_zero(y->stall_ns), known_or_zero(x->stall_ns)},
                        {known_or_zero(y->runqueue_delay_ns), known_or_zero(x->runqueue_delay_ns)},
                        {known_or_zero(y->run_ns), known_or_zero(x->run_ns)},
                        /* Only so that equal rows come in the same order every time. */
                        {x->host_pid, y->host_pid},
                        {x->host_tid, y->host_tid},
                        {x->pid, y->pid},
                        {x->tid, y->tid},
        };
        for (size_t i = 0; i < ELEMENTS(keys); i++)
                if (keys[i][0] != keys[i][1])
                        return compare_u64(keys[i][0], keys[i][1]);
        return 0;
}

int facts_threads(struct facts_window *window, struct facts *facts) {
        struct row_index before, now;
        size_t now_count, before_count, kept = 0;
        const struct thread_sample *now_rows =
                        facts_rows(window->current, window->now, window->id, &now_count);
        const struct thread_sample *before_rows = NULL;

        before_count = 0;
        if (window->before)
                before_rows = facts_rows(window->previous, window->before, window->id, &before_count);
        int r = row_index_make(&before, before_rows, before_count, window->arena);
        if (r < 0)
                return r;
        r = row_index_make(&now, now_rows, now_count, window->arena);
        if (r < 0)
                return r;
        struct thread_facts *rows = arena_array(window->arena, now_count, sizeof(*rows));
        if (!rows)
                return -ENOMEM;

        struct thread_sums *sums = &window->sums;
        /* Without a thread nothing ran: that is known, if we were looking. */
        uint64_t none = facts->measured ? 0 : ABSENT;
        *sums = (struct thread_sums){none, none, none, none, none, none, ABSENT};
        for (size_t i = 0; i < now_count; i++) {
                struct thread_facts *row = &rows[kept];
                fill_row(row, window, &now_rows[i], &before, &now, facts->measured);
                /*
                 * A sum of ended threads stays in the table; it is a row only of the window in which it
                 * grew.
                 */
                if (now_rows[i].folded > 0 && row->folded == 0)
                        continue;
                kept++;
                known_add(&sums->run_ns, row->run_ns);
                known_add(&sums->wait_ns, row->wait_ns);
                known_add(&sums->stall_ns, row->stall_ns);
                known_add(&sums->stall_above_ns, row->stall_above_ns);
                known_add(&sums->exec_ns, row->exec_ns);
                known_add(&sums->quota_spent_ns, row->quota_spent_ns);
                known_add(&sums->runqueue_delay_ns, row->runqueue_delay_ns);
        }
        if (kept > 0)
                qsort(rows, kept, sizeof(*rows), compare_harm);
        facts->threads = rows;
        facts->threads_count = kept;
        return 0;
}
