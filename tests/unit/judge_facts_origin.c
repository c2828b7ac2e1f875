/* SPDX-License-Identifier: Apache-2.0 */
/* How old a container is, on which kernel, and how parallel it was while nothing held it. */
#include "judge_build.h"

/* The machine has been up for 1,000 s at the end of the window. */
static struct pair build_up(void) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.current->machine.boot_real_ns = pair.current->at.real_ns - 1000 * NS_PER_S;
        return pair;
}

Test(judge_facts_origin, age_is_that_of_the_oldest_thread) {
        struct pair pair = build_up();
        build_thread(pair.current, BUILD_ID, 1)->start_ns = 970 * NS_PER_S;
        build_thread(pair.current, BUILD_ID, 2)->start_ns = 990 * NS_PER_S;
        build_fold(pair.current, BUILD_ID, 100, 3, 10, 0); /* its start is when the sum began */
        cr_assert_eq(build_facts(&pair)->age_ns, 30 * NS_PER_S);
        build_release(&pair);
}

/* A first process that sleeps has no row; but the group's periods show that somebody was there before. */
Test(judge_facts_origin, the_kernels_count_of_periods_is_a_least_age) {
        struct pair pair = build_up();
        struct group_level *group[2];
        build_thread(pair.current, BUILD_ID, 1)->start_ns = 999 * NS_PER_S;
        build_groups(&pair, 5, "app", 25, group);
        group[1]->nr_periods = 1200;
        cr_assert_eq(build_facts(&pair)->age_ns, 120 * NS_PER_S);
        group[1]->nr_periods = 9;
        cr_assert_eq(build_facts(&pair)->age_ns, 1 * NS_PER_S);
        build_release(&pair);

        struct cgroup_level *level[2];
        pair = build_up();
        build_thread(pair.current, BUILD_ID, 1)->start_ns = 999 * NS_PER_S;
        build_levels(&pair, "/app", 25, level);
        level[1]->stat.nr_periods = 500;
        cr_assert_eq(build_facts(&pair)->age_ns, 50 * NS_PER_S);
        build_release(&pair);
}

Test(judge_facts_origin, without_a_thread_or_the_machines_start_it_is_not_known) {
        struct pair pair = build_up();
        cr_assert_eq(build_facts(&pair)->age_ns, ABSENT);
        build_thread(pair.current, BUILD_ID, 1)->start_ns = 970 * NS_PER_S;
        pair.current->machine.boot_real_ns = ABSENT;
        cr_assert_eq(build_facts(&pair)->age_ns, ABSENT);
        build_release(&pair);
}

Test(judge_facts_origin, kernel_and_what_nobody_declared) {
        struct pair pair = build_up();
        cr_assert_null(build_facts(&pair)->kernel);
        snprintf(pair.current->machine.kernel, sizeof(pair.current->machine.kernel), "6.12.1");
        cr_assert_str_eq(build_facts(&pair)->kernel, "6.12.1");
        cr_assert_eq(pair.facts.request_milli, ABSENT);
        cr_assert_eq(pair.facts.declared_limit_milli, ABSENT);
        cr_assert_null(pair.facts.parallelism);
        build_release(&pair);
}

/* 6 s of wanting to run, 2 s of them stalled: what ran did so in 4 s. */
Test(judge_facts_origin, parallelism_of_the_time_without_a_stall) {
        static const struct {
                uint64_t run, wait, active, milli;
        } rows[] = {
                        {4000, 0, 6000, 1000},   {8000, 5000, 6000, 2000}, {0, 0, 6000, 0},
                        {4000, 0, 2000, ABSENT}, {4000, 0, 0, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_up();
                build_parts(pair.previous, BUILD_ID, 1, 0, 0, 0, 0);
                build_parts(pair.current, BUILD_ID, 1, rows[i].run, rows[i].wait, 2000, 0);
                build_interval(pair.now, 12000, 14000, false);
                pair.now->level_ns[1] = rows[i].active * MS / 2;
                pair.now->level_ns[8] = rows[i].active * MS / 2;
                pair.now->level_ns[0] = 4000 * MS;
                cr_assert_eq(build_facts(&pair)->unstalled_milli, rows[i].milli, "row %zu: %" PRIu64, i,
                             pair.facts.unstalled_milli);
                build_release(&pair);
        }
}
