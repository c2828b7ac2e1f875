/* SPDX-License-Identifier: Apache-2.0 */
/* Where a quota puts steps into latency: cases computed by hand. */
#include "judge_build.h"

struct steps_row {
        uint64_t limit, period, credit, burst, at_once, unstalled;
        unsigned cpus;
        size_t count;
        uint64_t steps_us[FACTS_STEPS_MAX];
};

Test(judge_steps, by_hand) {
        static const struct steps_row rows[] = {
                        /* the design's: 25 ms per 100 ms, bursts of 43 ms, one thread: 100 - 25, 200 - 25 */
                        {250, 100, 0, 43, 1, ABSENT, 4, 2, {75000, 175000}},
                        {250, 100, 0, 25, 1, ABSENT, 4, 1, {75000}},
                        {250, 100, 0, 26, 1, ABSENT, 4, 2, {75000, 175000}},
                        {250, 100, 0, 400, 1, ABSENT, 4, 3, {75000, 175000, 275000}},
                        /* four on CPU use it up in 25 / 4 ms; more than there are CPUs do not run at once */
                        {250, 100, 0, 20, 4, ABSENT, 4, 1, {93750}},
                        {250, 100, 0, 20, 48, ABSENT, 4, 1, {93750}},
                        {250, 100, 0, 20, 4, ABSENT, 0, 1, {93750}},
                        /* eight that piled up behind the stalls of one */
                        {250, 100, 0, 20, 8, 1499, 4, 1, {75000}},
                        {250, 100, 0, 20, 8, 1500, 4, 1, {93750}},
                        /* a whole CPU: one thread never gets there, two do after 50 ms */
                        {1000, 100, 0, 150, 1, ABSENT, 4, 0, {0}},
                        {1000, 100, 0, 150, 2, ABSENT, 4, 2, {50000, 150000}},
                        /* 5 of 48 CPUs: 500 / 48 */
                        {5000, 100, 0, 300, 48, ABSENT, 48, 1, {89583}},
                        /* credit is spent first */
                        {250, 100, 20, 43, 1, ABSENT, 4, 2, {55000, 155000}},
                        {250, 100, 75, 120, 1, ABSENT, 4, 0, {0}},
                        /* 10 ms: many short steps */
                        {500, 10, 0, 5, 1, ABSENT, 4, 1, {5000}},
                        /* not known */
                        {250, 100, 0, ABSENT, 1, ABSENT, 4, 0, {0}},
                        {250, 100, 0, 43, ABSENT, ABSENT, 4, 0, {0}},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint64_t steps[FACTS_STEPS_MAX] = {0};
                struct court court;
                court_open(&court, 10000);
                court_limit(&court, LIMIT_CONTAINER, "/a", rows[i].limit, rows[i].limit);
                court.facts.period_ns = rows[i].period * MS;
                court.facts.quota_ns = rows[i].limit * rows[i].period * NS_PER_US;
                court.facts.burst_ns = rows[i].credit * MS;
                court.facts.burst_cpu_p99_ns = is_known(rows[i].burst) ? rows[i].burst * MS : ABSENT;
                court.facts.runnable_p99 = rows[i].at_once;
                court.facts.unstalled_milli = rows[i].unstalled;
                court.facts.cpus_online = rows[i].cpus;
                court.facts.stall_count = 1;
                size_t count = facts_latency_steps(&court.facts, steps);
                cr_assert_eq(count, rows[i].count, "row %zu: %zu", i, count);
                for (size_t k = 0; k < count; k++)
                        cr_assert_eq(steps[k] / NS_PER_US, rows[i].steps_us[k], "row %zu: %" PRIu64, i,
                                     steps[k]);
                court.facts.stall_count = 0;
                cr_assert_eq(facts_latency_steps(&court.facts, steps), 0, "nothing stalled");
                court.facts.stall_count = ABSENT;
                cr_assert_eq(facts_latency_steps(&court.facts, steps), 0);
                court_close(&court);
        }
}
