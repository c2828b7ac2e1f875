/* SPDX-License-Identifier: Apache-2.0 */
/* How old the container is, and on which kernel it runs. */
#include <errno.h>

#include "facts_internal.h"
#include "ratio.h"

#define STARTUP_NS (60 * NS_PER_S)

/* Time since the machine's start. Its wall clock is told in whole seconds, so this is as coarse. */
static uint64_t uptime_ns(const struct snapshot *snapshot) {
        return known_delta(snapshot->at.real_ns, snapshot->machine.boot_real_ns);
}

static uint64_t age_of_threads(const struct facts_window *window) {
        size_t count;
        const struct thread_sample *rows = facts_rows(window->current, window->now, window->id, &count);
        uint64_t first_ns = ABSENT; /* the highest of all numbers */

        for (size_t i = 0; i < count; i++)
                if (rows[i].folded == 0 && rows[i].start_ns < first_ns)
                        first_ns = rows[i].start_ns;
        return known_delta(uptime_ns(window->current), first_ns);
}

/*
 * A first process that sleeps in another PID namespace has no row, and then only its children's age shows. The kernel has counted the
 * periods in which the container wanted to run since its group was made: it is at least as old as these are long.
 */
static uint64_t age_of_periods(const struct container_sample *sample) {
        uint64_t periods = ABSENT, period_ns = ABSENT;

        if (sample->chain.levels_count > 0) {
                periods = sample->chain.levels[0].stat.nr_periods;
                period_ns = sample->chain.levels[0].period_ns;
        }
        if (!is_known(periods) && sample->groups_count > 0) {
                periods = sample->groups[0].nr_periods;
                period_ns = sample->groups[0].period_ns;
        }
        return is_known(periods) && is_known(period_ns) ? ratio_scale(periods, period_ns, 1) : ABSENT;
}

bool facts_is_starting(const struct facts *facts) {
        return is_known(facts->age_ns) && difference_or_zero(facts->age_ns, facts->window_ns) < STARTUP_NS;
}

int facts_origin(const struct facts_window *window, struct facts *facts) {
        const struct snapshot *current = window->current;

        if (current->machine.kernel[0]) {
                facts->kernel = arena_string(window->arena, current->machine.kernel);
                if (!facts->kernel)
                        return -ENOMEM;
        }
        facts->age_ns = age_of_threads(window);
        uint64_t at_least_ns = window->now ? age_of_periods(window->now) : ABSENT;
        if (is_known(facts->age_ns) && is_known(at_least_ns) && at_least_ns > facts->age_ns)
                facts->age_ns = at_least_ns;
        return 0;
}
