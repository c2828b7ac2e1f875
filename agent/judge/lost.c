/* SPDX-License-Identifier: Apache-2.0 */
#include "lost.h"

#include "../base/clock.h"
#include "ratio.h"

/*
 * Long stalls are a warning from six a minute on, as the design has it, whatever the window is; and never a
 * single one: in a window of ten seconds one stall would already be "six a minute", but one stall a day is
 * not. The rate has one percent to give, because windows end a little after their tick.
 */
#define LONG_STALLS_PER_MINUTE 6
#define LONG_STALLS_MIN 2
#define LONG_RATE_TOLERANCE_PERCENT 1

static uint64_t lower_of(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static void lost_from_causes(const struct facts *facts, struct lost_time *lost) {
        lost->quota_ns = known_or_zero(facts->quota_ns_lost);
        lost->ancestor_ns = known_or_zero(facts->ancestor_ns_lost);
        lost->contention_ns = known_or_zero(facts->contention_ns_lost);
        lost->steal_ns = known_or_zero(facts->steal_ns_lost);
        lost->is_known = is_known(facts->quota_ns_lost);
        lost->wanted_ns = lost_by_limits(lost) + lost->contention_ns;
        for (size_t i = 0; i < facts->threads_count; i++)
                lost->wanted_ns += known_or_zero(facts->threads[i].run_ns);
}

/* What limits did in the window as the kernel's own counters say, each 0 if nothing, ABSENT if not known. */
static void throttled_of(const struct facts *facts, uint64_t *ret_own_ns, uint64_t *ret_above_ns) {
        *ret_own_ns = facts->runqueue_throttled_ns;
        *ret_above_ns = facts->ancestor_throttled_ns;
        /*
         * Before 6.6 no counter says how long; a throttled period of the level above can have taken any of
         * the delay.
         */
        if (!is_known(*ret_above_ns) && facts->has_limit && facts->limit_level != LIMIT_CONTAINER &&
            known_or_zero(facts->periods_throttled) > 0)
                *ret_above_ns = facts->window_ns;
        /* A Pod's sum throttles beside its containers: that is the own limit at work. */
        if (!facts->ancestor_is_tighter && is_known(*ret_above_ns)) {
                known_add(ret_own_ns, *ret_above_ns);
                *ret_above_ns = 0;
        }
}

/*
 * A thread is on one run queue at a time, so it cannot have been stalled for longer than all queues of its
 * group together were throttled, nor for longer than its delay.
 */
static void lost_from_delays(const struct facts *facts, uint64_t own_ns, uint64_t above_ns,
                             struct lost_time *lost) {
        uint64_t throttled_ns = known_or_zero(own_ns) + known_or_zero(above_ns), bound_ns = 0, delay_ns = 0;

        for (size_t i = 0; i < facts->threads_count; i++) {
                const struct thread_facts *thread = &facts->threads[i];
                uint64_t delay = known_or_zero(thread->runqueue_delay_ns),
                         threads = thread->folded > 0 ? thread->folded : 1;
                lost->is_known |= is_known(thread->runqueue_delay_ns);
                lost->wanted_ns += known_or_zero(thread->run_ns) + delay;
                delay_ns += delay;
                bound_ns += lower_of(delay, ratio_scale(throttled_ns, threads, 1));
        }
        if (throttled_ns > 0)
                lost->ancestor_ns = ratio_scale(bound_ns, known_or_zero(above_ns), throttled_ns);
        lost->quota_ns = bound_ns - lost->ancestor_ns;
        lost->contention_ns = delay_ns - bound_ns;
        /* Without a counter of a limit that is there (or may be), the delay may be its doing. */
        lost->is_undecided = lost->contention_ns > 0 && !is_known(own_ns) && !is_known(above_ns) &&
                             (facts->has_limit || facts->limit_unknown || facts->parent_hidden);
}

/* CPU time used; where it is not known, as much as the limit grants: then what was lost is not overstated. */
static uint64_t most_used_ns(const struct facts *facts) {
        if (is_known(facts->cpu_used_ns))
                return facts->cpu_used_ns;
        if (!facts->has_limit)
                return facts->window_ns;
        return ratio_scale(facts->window_ns, facts->limit_milli, 1000);
}

/*
 * From 6.6 on (where the clock from above is known) a queue's clocks run only while threads wait there. What they counted beyond the delays of
 * the threads we see was the delay of others: in another PID namespace, or ended within the window. At least as much as the clocks say,
 * then; a quarter is left to what the readings are apart.
 */
static void add_unseen(const struct facts *facts, uint64_t own_ns, uint64_t above_ns,
                       struct lost_time *lost) {
        uint64_t throttled_ns = known_or_zero(own_ns) + known_or_zero(above_ns), delay_ns, ran_ns = 0;

        if (!lost->is_known || !is_known(facts->ancestor_throttled_ns))
                return;
        delay_ns = lost_by_limits(lost) + lost->contention_ns;
        if (delay_ns + delay_ns / 3 >= throttled_ns)
                return;
        for (size_t i = 0; i < facts->threads_count; i++)
                ran_ns += known_or_zero(facts->threads[i].run_ns);
        if (is_known(facts->cpu_used_ns) && facts->cpu_used_ns > ran_ns)
                lost->wanted_ns += facts->cpu_used_ns - ran_ns;
        lost->wanted_ns += throttled_ns - delay_ns;
        lost->quota_ns = known_or_zero(own_ns);
        lost->ancestor_ns = known_or_zero(above_ns);
        lost->contention_ns = 0;
}

struct lost_time lost_time_of(const struct facts *facts) {
        struct lost_time lost = {0};
        uint64_t own_ns, above_ns;

        if (facts->measured) {
                lost_from_causes(facts, &lost);
                return lost;
        }
        lost.is_bound = true;
        throttled_of(facts, &own_ns, &above_ns);
        lost_from_delays(facts, own_ns, above_ns, &lost);
        add_unseen(facts, own_ns, above_ns, &lost);
        if (!lost.is_known && (is_known(own_ns) || is_known(above_ns))) {
                /* No threads, but the group's own counters: one thread a queue is all that can be assumed. */
                lost.is_known = true;
                lost.quota_ns = known_or_zero(own_ns);
                lost.ancestor_ns = known_or_zero(above_ns);
                lost.wanted_ns = most_used_ns(facts) + lost_by_limits(&lost);
        }
        return lost;
}

bool lost_is_notable(const struct lost_time *lost, uint64_t part_ns) {
        return ratio_reaches(part_ns, lost->wanted_ns, LOST_NOTABLE_PPM);
}

static bool are_long_stalls_frequent(const struct facts *facts) {
        uint64_t count = known_or_zero(facts->stalls_long);
        return count >= LONG_STALLS_MIN &&
               (ratio_wide) count * 60 * NS_PER_S * (100 + LONG_RATE_TOLERANCE_PERCENT) >=
                               (ratio_wide) facts->window_ns * LONG_STALLS_PER_MINUTE * 100;
}

enum severity lost_severity(const struct facts *facts, const struct judge_options *options,
                            const struct lost_time *lost) {
        uint64_t stall_ns = lost_by_limits(lost);

        if (!lost->is_known)
                return SEVERITY_NONE;
        if (ratio_reaches(stall_ns, lost->wanted_ns, options->warn_lost_ppm) ||
            are_long_stalls_frequent(facts))
                return SEVERITY_WARNING;
        return stall_ns > 0 || known_or_zero(facts->stall_count) > 0 ? SEVERITY_INFO : SEVERITY_NONE;
}

enum severity lost_part_severity(const struct facts *facts, const struct judge_options *options,
                                 const struct lost_time *lost, uint64_t part_ns) {
        bool is_enough = ratio_reaches(part_ns, lost->wanted_ns, options->warn_lost_ppm);

        if (is_enough || part_ns >= lost_by_limits(lost) - part_ns)
                return lost_severity(facts, options, lost);
        return SEVERITY_INFO;
}
