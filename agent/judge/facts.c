/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <errno.h>

#include "../probe/assemble.h"
#include "facts_internal.h"
#include "ratio.h"

uint64_t facts_growth(const struct facts_window *window, uint64_t now, uint64_t before) {
        if (!window->before || !window->before->measured)
                return now;
        uint64_t delta = known_delta(now, before);
        /* A counter that went backwards is not known, unless the probe says that it began anew. */
        return !is_known(delta) && window->now && !window->now->measured_whole ? now : delta;
}

const struct thread_sample *facts_rows(const struct snapshot *snapshot,
                                       const struct container_sample *container, uint64_t id,
                                       size_t *ret_count) {
        *ret_count = 0;
        if (!snapshot || snapshot->threads_count == 0)
                return NULL;
        if (container) {
                *ret_count = container->threads_count;
                return &snapshot->threads[container->first_thread];
        }
        /* Rows are sorted by container: those of one are next to each other. */
        const struct thread_sample *first = NULL;
        for (size_t i = 0; i < snapshot->threads_count; i++) {
                if (snapshot->threads[i].container != id)
                        continue;
                if (!first)
                        first = &snapshot->threads[i];
                (*ret_count)++;
        }
        return first;
}

/* Every figure ABSENT: what no part fills in was not measured. */
static void facts_init(struct facts *facts) {
        *facts = (struct facts){
                        .age_ns = ABSENT,
                        .limit_milli = ABSENT,
                        .quota_ns = ABSENT,
                        .period_ns = ABSENT,
                        .burst_ns = ABSENT,
                        .own_limit_milli = ABSENT,
                        .weight = ABSENT,
                        .request_milli = ABSENT,
                        .declared_limit_milli = ABSENT,
                        .cpu_used_ns = ABSENT,
                        .periods = ABSENT,
                        .periods_throttled = ABSENT,
                        .periods_bursts = ABSENT,
                        .throttled_used_ns = ABSENT,
                        .runqueue_throttled_ns = ABSENT,
                        .ancestor_throttled_ns = ABSENT,
                        .stall_count = ABSENT,
                        .stall_wall_ns = ABSENT,
                        .stall_longest_ns = ABSENT,
                        .stall_p50_ns = ABSENT,
                        .stall_p99_ns = ABSENT,
                        .stalls_long = ABSENT,
                        .quota_ns_lost = ABSENT,
                        .ancestor_ns_lost = ABSENT,
                        .contention_ns_lost = ABSENT,
                        .steal_ns_lost = ABSENT,
                        .machine_steal_ns = ABSENT,
                        .wanted_milli = ABSENT,
                        .runnable_max = ABSENT,
                        .runnable_p99 = ABSENT,
                        .unstalled_milli = ABSENT,
                        .burst_count = ABSENT,
                        .burst_cpu_p50_ns = ABSENT,
                        .burst_cpu_p99_ns = ABSENT,
                        .burst_cpu_max_ns = ABSENT,
                        .burst_gap_p50_ns = ABSENT,
                        .burst_longest_ns = ABSENT,
                        .burst_slowdown_permille = ABSENT,
                        .worst_burst_ns = ABSENT,
                        .worst_burst_stall_ns = ABSENT,
                        .worst_burst_at_ns = ABSENT,
        };
}

/*
 * A container that the previous snapshot had is looked at since then; a new one since the first of its
 * threads was seen, because that is where its counters begin.
 */
static uint64_t window_start(const struct facts_window *window) {
        if (window->before)
                return window->previous->at.mono_ns;
        size_t count;
        const struct thread_sample *rows = facts_rows(window->current, window->now, window->id, &count);
        uint64_t start = window->current->at.mono_ns;
        for (size_t i = 0; i < count; i++)
                if (rows[i].first_ns > 0 && rows[i].first_ns < start)
                        start = rows[i].first_ns;
        return start;
}

static void fill_frame(struct facts_window *window, struct facts *facts) {
        const struct snapshot *current = window->current;

        window->to_ns = current->at.mono_ns;
        window->from_ns = window_start(window);
        facts->window_ns = difference_or_zero(window->to_ns, window->from_ns);
        facts->to = current->at;
        facts->from.mono_ns = difference_or_zero(window->to_ns, facts->window_ns);
        facts->from.real_ns = window->before ? window->previous->at.real_ns
                                             : difference_or_zero(current->at.real_ns, facts->window_ns);
        facts->method = current->method;
        /* A container that is gone still has the final rows of its threads. */
        const struct container_sample *sample = window->now ? window->now : window->before;
        facts->measured = current->method != PROBE_FILES && sample->measured;
        facts->exact = current->exact && facts->measured && window->now;
        facts->cpus_online = current->machine.cpus_online;
        facts->missing = current->missing;
        facts->missing_count = current->missing_count;

        for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                facts->lost[i] = window->previous ? known_delta(current->lost[i], window->previous->lost[i])
                                                  : current->lost[i];
        facts->machine_steal_ns = window->previous ? known_delta(current->machine.steal_ns,
                                                                 window->previous->machine.steal_ns)
                                                   : ABSENT;
}

/* Counters of the kernel's own began with the group, not with us: they need two readings. */
static uint64_t usage_of_group(const struct facts_window *window) {
        if (!window->before || !window->now || window->before->chain.levels_count == 0 ||
            window->now->chain.levels_count == 0)
                return ABSENT;
        return known_delta(window->now->chain.levels[0].stat.usage_ns,
                           window->before->chain.levels[0].stat.usage_ns);
}

static void fill_used(const struct facts_window *window, struct facts *facts) {
        const struct container_sample *now = window->now, *before = window->before;

        facts->cpu_used_ns = usage_of_group(window);
        if (!is_known(facts->cpu_used_ns) && now && facts->measured)
                facts->cpu_used_ns = facts_growth(window, now->exec_ns, before ? before->exec_ns : ABSENT);
        if (!is_known(facts->cpu_used_ns))
                facts->cpu_used_ns = window->sums.exec_ns;
        if (!is_known(facts->cpu_used_ns))
                facts->cpu_used_ns = window->sums.run_ns;
        if (now && facts->measured)
                facts->throttled_used_ns = facts_growth(window, now->throttled_used_ns,
                                                        before ? before->throttled_used_ns : ABSENT);
        /* The probe keeps it a thread only, and threads are there in the last window of a container as well. */
        if (!is_known(facts->throttled_used_ns) && facts->measured)
                facts->throttled_used_ns = window->sums.quota_spent_ns;
}

static void take_higher(uint64_t *sum, uint64_t value) {
        if (is_known(value) && (!is_known(*sum) || value > *sum))
                *sum = value;
}

/* Where rows are missing, the container's own totals are more complete than the sum of what is left. */
static void complete_sums(const struct facts_window *window, const struct facts *facts,
                          struct thread_sums *sums) {
        const struct container_sample *now = window->now;
        const struct container_sample *before =
                        window->before ? window->before : now; /* unread without one */

        if (!now || (known_or_zero(facts->lost[LOST_THREADS_FULL]) == 0 &&
                     known_or_zero(facts->lost[LOST_THREADS_READ]) == 0))
                return;
        take_higher(&sums->run_ns, facts_growth(window, now->run_ns, before->run_ns));
        take_higher(&sums->wait_ns, facts_growth(window, now->wait_ns, before->wait_ns));
        take_higher(&sums->stall_ns, facts_growth(window, now->stall_ns, before->stall_ns));
        take_higher(&sums->stall_above_ns,
                    facts_growth(window, now->stall_above_ns, before->stall_above_ns));
        take_higher(&sums->exec_ns, facts_growth(window, now->exec_ns, before->exec_ns));
}

static void fill_causes(const struct facts_window *window, struct facts *facts) {
        const struct thread_sums *sums = &window->sums;
        uint64_t wanted = sums->run_ns;

        if (facts->measured) {
                /* Without a limit of its own all of it came from above, also what no event has told of yet. */
                uint64_t from_above = is_known(facts->own_limit_milli) ? known_or_zero(sums->stall_above_ns)
                                                                       : known_or_zero(sums->stall_ns);
                uint64_t above = facts->ancestor_is_tighter ? from_above : 0;
                if (is_known(sums->stall_ns)) {
                        facts->ancestor_ns_lost = above < sums->stall_ns ? above : sums->stall_ns;
                        facts->quota_ns_lost = sums->stall_ns - facts->ancestor_ns_lost;
                }
                facts->contention_ns_lost = sums->wait_ns;
                /*
                 * Run between switches minus what the kernel charged is steal and interrupts; never more
                 * than the machine lost.
                 */
                if (is_known(facts->machine_steal_ns) && is_known(sums->run_ns) && is_known(sums->exec_ns)) {
                        uint64_t gap = difference_or_zero(sums->run_ns, sums->exec_ns);
                        facts->steal_ns_lost = gap < facts->machine_steal_ns ? gap : facts->machine_steal_ns;
                }
                known_add(&wanted, sums->stall_ns);
                known_add(&wanted, sums->wait_ns);
        } else {
                known_add(&wanted, sums->runqueue_delay_ns);
        }
        if (is_known(wanted))
                facts->wanted_milli = ratio_scale(wanted, 1000, facts->window_ns);
}

int facts_of_window(const struct snapshot *previous, const struct snapshot *current, uint64_t id,
                    const struct facts_options *options, struct arena *arena, struct facts *ret_facts) {
        struct facts_window window = {
                        .previous = previous,
                        .current = current,
                        .before = previous ? snapshot_container(previous, id) : NULL,
                        .now = snapshot_container(current, id),
                        .options = options,
                        .arena = arena,
                        .id = id,
        };
        struct facts facts;

        if (!window.before && !window.now)
                return -ENOENT;
        facts_init(&facts);
        fill_frame(&window, &facts);
        int r = facts_threads(&window, &facts);
        if (r < 0)
                return r;
        complete_sums(&window, &facts, &window.sums);
        r = facts_limits(&window, &facts);
        if (r < 0)
                return r;
        r = facts_origin(&window, &facts);
        if (r < 0)
                return r;
        r = facts_stalls(&window, &facts);
        if (r < 0)
                return r;
        facts_bursts(&window, &facts);
        fill_used(&window, &facts);
        fill_causes(&window, &facts);
        *ret_facts = facts;
        return 0;
}
