/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals in which any thread was stalled, bursts, and how many threads wanted to run at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts_internal.h"
#include "ratio.h"

#define BURST_SHIFT 10
#define LEVELS_EXACT 32 /* of SNAPSHOT_LEVEL_BINS; above them eight bins an octave */

static int compare_start(const void *a, const void *b) {
        const struct stall_interval *x = a, *y = b;
        return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static uint64_t length_of(const struct stall_interval *stall) {
        return stall->end_ns - stall->start_ns;
}

static int compare_longest(const void *a, const void *b) {
        uint64_t x = length_of(a), y = length_of(b);
        return x != y ? (x < y ? 1 : -1) : compare_start(a, b);
}

/*
 * Clips to the window and joins what overlaps or touches: a stall that an ancestor's limit goes on with
 * where the own limit's ends is one stall, only above if all of it was. Returns how many are left.
 */
static size_t join(struct stall_interval *stalls, size_t count, uint64_t from_ns, uint64_t to_ns) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
                struct stall_interval stall = stalls[i];
                if (stall.start_ns < from_ns)
                        stall.start_ns = from_ns;
                if (stall.end_ns > to_ns)
                        stall.end_ns = to_ns;
                if (stall.start_ns >= stall.end_ns)
                        continue;
                struct stall_interval *last = kept > 0 ? &stalls[kept - 1] : NULL;
                if (last && stall.start_ns <= last->end_ns) {
                        if (stall.end_ns > last->end_ns)
                                last->end_ns = stall.end_ns;
                        last->above = last->above && stall.above;
                } else {
                        stalls[kept++] = stall;
                }
        }
        return kept;
}

/* The nearest rank in @stalls, which are sorted longest first. */
static uint64_t exact_quantile(const struct stall_interval *stalls, size_t count, unsigned permille) {
        if (count == 0)
                return ABSENT;
        size_t rank = (size_t) ratio_scale_up(count, permille, 1000);
        return length_of(&stalls[count - rank]);
}

/*
 * How often a stall hurt: single ones of --warn-stall or more, or bursts whose stalls summed to it. Both
 * count the same harm from two sides (a long stall is in a burst), so the higher of the two is taken, never
 * their sum.
 */
static uint64_t count_long(const struct facts_window *window, const struct stall_interval *stalls,
                           size_t count) {
        uint64_t single = 0;
        while (single < count && length_of(&stalls[single]) >= window->options->warn_stall_ns)
                single++;
        uint64_t bursts = facts_growth(window, window->now->bursts_stalled,
                                       window->before ? window->before->bursts_stalled : ABSENT);
        return is_known(bursts) && bursts > single ? bursts : single;
}

int facts_stalls(const struct facts_window *window, struct facts *facts) {
        const struct container_sample *now = window->now;
        if (!facts->measured || !now)
                return 0;

        size_t count = now->intervals_count;
        struct stall_interval *stalls = arena_array(window->arena, count, sizeof(*stalls));
        if (!stalls)
                return -ENOMEM;
        if (count > 0) {
                memcpy(stalls, now->intervals, count * sizeof(*stalls));
                qsort(stalls, count, sizeof(*stalls), compare_start);
                count = join(stalls, count, window->from_ns, window->to_ns);
                qsort(stalls, count, sizeof(*stalls), compare_longest);
        }

        facts->stall_count = count;
        facts->stall_wall_ns = 0;
        for (size_t i = 0; i < count; i++)
                facts->stall_wall_ns += length_of(&stalls[i]);
        facts->stall_longest_ns = count > 0 ? length_of(&stalls[0]) : 0;
        facts->stall_p50_ns = exact_quantile(stalls, count, 500);
        facts->stall_p99_ns = exact_quantile(stalls, count, 990);
        facts->stalls_count = count < FACTS_STALLS_MAX ? count : FACTS_STALLS_MAX;
        if (count > 0)
                memcpy(facts->stalls, stalls, facts->stalls_count * sizeof(*stalls));
        facts->stalls_long = count_long(window, stalls, count);
        return 0;
}

/* The highest number of threads that belongs in bin @i. */
static uint64_t level_highest(size_t i) {
        if (i < LEVELS_EXACT)
                return i;
        size_t octave = (i - LEVELS_EXACT) / 8, eighth = (i - LEVELS_EXACT) % 8;
        uint64_t step = ((uint64_t) LEVELS_EXACT << octave) / 8;
        return ((uint64_t) LEVELS_EXACT << octave) + (eighth + 1) * step - 1;
}

/*
 * The number of threads that was not exceeded in 99 % of the time in which any thread wanted to run. Idle
 * time is left out: how many run at once in a burst does not depend on how rare bursts are.
 */
static uint64_t runnable_quantile(const struct facts_window *window, unsigned permille, uint64_t highest) {
        uint64_t grown[SNAPSHOT_LEVEL_BINS] = {0};
        ratio_wide total = 0, sum = 0;

        for (size_t i = 1; i < SNAPSHOT_LEVEL_BINS; i++) {
                grown[i] = known_or_zero(
                                facts_growth(window, window->now->level_ns[i],
                                             window->before ? window->before->level_ns[i] : ABSENT));
                total += grown[i];
        }
        for (size_t i = 1; i < SNAPSHOT_LEVEL_BINS; i++) {
                sum += grown[i];
                if (grown[i] == 0 || sum * 1000 < total * permille)
                        continue;
                uint64_t level = i + 1 == SNAPSHOT_LEVEL_BINS && is_known(highest) ? highest
                                                                                   : level_highest(i);
                return is_known(highest) && level > highest ? highest : level;
        }
        return total == 0 ? 0 : ABSENT;
}

/*
 * How many ran at once while none was held. Light sleepers pile up behind a stall and wait for CPUs together when it ends: in any figure with
 * that in it each program looks parallel. Where one queue stalls a slice before the others, their run counts and its time does not: a
 * little too high.
 */
static uint64_t unstalled_level(const struct facts_window *window, const struct facts *facts) {
        uint64_t active_ns = 0;

        for (size_t i = 1; i < SNAPSHOT_LEVEL_BINS; i++)
                active_ns += known_or_zero(
                                facts_growth(window, window->now->level_ns[i],
                                             window->before ? window->before->level_ns[i] : ABSENT));
        if (!is_known(window->sums.run_ns) || !is_known(facts->stall_wall_ns) ||
            active_ns <= facts->stall_wall_ns)
                return ABSENT;
        return ratio_scale(window->sums.run_ns, 1000, active_ns - facts->stall_wall_ns);
}

static void fill_bins(const struct facts_window *window, const uint32_t *now, const uint32_t *before,
                      uint32_t *ret_bins) {
        for (size_t i = 0; i < SNAPSHOT_BURST_BINS; i++)
                ret_bins[i] = (uint32_t) known_or_zero(
                                facts_growth(window, now[i], before ? before[i] : ABSENT));
}

/* How much longer the worst burst took than it would have without its stalls. */
static uint64_t slowdown(const struct facts *facts) {
        if (known_or_zero(facts->burst_count) == 0 || !is_known(facts->worst_burst_stall_ns))
                return ABSENT;
        if (facts->worst_burst_stall_ns == 0)
                return 1000;
        if (!is_known(facts->worst_burst_ns) || facts->worst_burst_ns <= facts->worst_burst_stall_ns)
                return ABSENT;
        return ratio_scale(facts->worst_burst_ns, 1000, facts->worst_burst_ns - facts->worst_burst_stall_ns);
}

void facts_bursts(const struct facts_window *window, struct facts *facts) {
        const struct container_sample *now = window->now, *before = window->before;
        uint32_t bins[SNAPSHOT_BURST_BINS];
        if (!facts->measured || !now)
                return;

        facts->runnable_max = now->runnable_max;
        facts->runnable_p99 = runnable_quantile(window, 990, now->runnable_max);
        facts->unstalled_milli = unstalled_level(window, facts);
        facts->burst_count = facts_growth(window, now->bursts, before ? before->bursts : ABSENT);
        if (known_or_zero(facts->burst_count) > 0) {
                facts->burst_cpu_max_ns = now->burst_cpu_max_ns;
                facts->burst_longest_ns = now->burst_longest_ns;
                facts->worst_burst_ns = now->worst_burst_ns;
                facts->worst_burst_stall_ns = now->worst_burst_stall_ns;
                facts->worst_burst_at_ns = now->worst_burst_at_ns;
        }
        facts->burst_slowdown_permille = slowdown(facts);

        fill_bins(window, now->burst_cpu_bins, before ? before->burst_cpu_bins : NULL, bins);
        uint64_t highest = known_or_zero(facts->burst_cpu_max_ns) > 0 ? facts->burst_cpu_max_ns : ABSENT;
        facts->burst_cpu_p50_ns = facts_quantile_u32(bins, SNAPSHOT_BURST_BINS, BURST_SHIFT, 500, highest);
        facts->burst_cpu_p99_ns = facts_quantile_u32(bins, SNAPSHOT_BURST_BINS, BURST_SHIFT, 990, highest);
        fill_bins(window, now->burst_gap_bins, before ? before->burst_gap_bins : NULL, bins);
        facts->burst_gap_p50_ns = facts_quantile_u32(bins, SNAPSHOT_BURST_BINS, BURST_SHIFT, 500, ABSENT);
}
