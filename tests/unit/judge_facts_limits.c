/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which limit applies, where it sits, whether an ancestor is the one to name, and the kernel's counters of
 * that level.
 */
#include "judge_build.h"

#define POD "/kubepods/burstable/pod9dae2ba7-9594-4920-9822-4320df8538c7"
#define POD_NAME "pod9dae2ba7-9594-4920-9822-4320df8538c7"
#define APP POD "/app"

static void level_counters(struct cgroup_level *level, uint64_t periods, uint64_t throttled,
                           uint64_t throttled_ms) {
        level->stat.nr_periods = periods;
        level->stat.nr_throttled = throttled;
        level->stat.throttled_ns = throttled_ms * MS;
}

static void group_counters(struct group_level *group, uint64_t periods, uint64_t throttled,
                           uint64_t throttled_ms) {
        group->nr_periods = periods;
        group->nr_throttled = throttled;
        group->throttled_ns = throttled_ms * MS;
}

Test(judge_facts_limits, nothing_visible_is_unknown_and_not_unlimited) {
        struct pair pair = build_pair(PROBE_FILES);
        const struct facts *facts = build_facts(&pair);

        cr_assert_not(facts->has_limit);
        cr_assert(facts->limit_unknown);
        cr_assert_eq(facts->limit_milli, ABSENT);
        cr_assert_eq(facts->own_limit_milli, ABSENT);
        cr_assert_eq(facts->runqueue_throttled_ns, ABSENT);
        build_release(&pair);
}

Test(judge_facts_limits, none_anywhere) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *level[2];
        build_levels(&pair, "/app", ABSENT, level);
        build_levels(&pair, "/", ABSENT, level);
        const struct facts *facts = build_facts(&pair);

        cr_assert_not(facts->has_limit);
        cr_assert_not(facts->limit_unknown);
        cr_assert_not(facts->parent_hidden);
        cr_assert_not(facts->ancestor_is_tighter);
        build_release(&pair);
}

Test(judge_facts_limits, the_containers_own_with_its_counters) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", 25, own);
        level_counters(own[0], 100, 10, 500);
        level_counters(own[1], 200, 38, 2100);
        own[0]->stat.nr_bursts = 4;
        own[1]->stat.nr_bursts = 9;
        own[1]->burst_ns = 0;
        own[1]->weight = 10;
        const struct facts *facts = build_facts(&pair);

        cr_assert(facts->has_limit);
        cr_assert_eq(facts->limit_milli, 250);
        cr_assert_eq(facts->own_limit_milli, 250);
        cr_assert_eq(facts->quota_ns, 25 * MS);
        cr_assert_eq(facts->period_ns, 100 * MS);
        cr_assert_eq(facts->burst_ns, 0);
        cr_assert_eq(facts->limit_level, LIMIT_CONTAINER);
        cr_assert_str_eq(facts->limit_cgroup, "/app");
        cr_assert_eq(facts->weight, 10);
        cr_assert_eq(facts->periods, 100);
        cr_assert_eq(facts->periods_throttled, 28);
        cr_assert_eq(facts->periods_bursts, 5);
        cr_assert_eq(facts->runqueue_throttled_ns, 1600 * MS);
        cr_assert_not(facts->ancestor_is_tighter);
        build_release(&pair);
}

Test(judge_facts_limits, counters_that_went_backwards_or_are_missing_are_absent) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", 25, own);
        level_counters(own[0], 100, 10, 500);
        level_counters(own[1], 99, 11, 499);
        own[0]->stat.nr_throttled = ABSENT;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->periods, ABSENT);
        cr_assert_eq(facts->periods_throttled, ABSENT);
        cr_assert_eq(facts->runqueue_throttled_ns, ABSENT);
        cr_assert_eq(facts->limit_milli, 250);
        build_release(&pair);
}

Test(judge_facts_limits, one_tick_only_has_a_limit_but_no_counters) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", 25, own);
        level_counters(own[1], 99, 11, 499);
        snapshot_free(pair.previous);
        pair.previous = NULL;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->limit_milli, 250);
        cr_assert_eq(facts->periods_throttled, ABSENT);
        cr_assert_eq(facts->runqueue_throttled_ns, ABSENT);
        build_release(&pair);
}

/*
 * own and above: quota per 100 ms of the container's group and of the one above it, which files show;
 * children: sum of the limits below the upper one.
 */
struct two_levels {
        uint64_t own, above, children;
        const char *name;
        bool is_tighter;
        enum limit_level level;
        uint64_t milli;
};

Test(judge_facts_limits, an_ancestor_is_named_only_if_it_is_tighter_than_what_lies_below) {
        static const struct two_levels rows[] = {
                        /* the sum of what lies below is known */
                        {25, 30, 299, "/slice", false, LIMIT_CONTAINER, 250},
                        {25, 30, 300, "/slice", false, LIMIT_CONTAINER, 250},
                        {25, 30, 301, "/slice", true, LIMIT_CONTAINER, 250},
                        {25, 20, 250, "/slice", true, LIMIT_ANCESTOR, 200},
                        /* a child has no limit */
                        {25, 30, ABSENT, "/slice", true, LIMIT_CONTAINER, 250},
                        {ABSENT, 30, ABSENT, "/slice", true, LIMIT_ANCESTOR, 300},
                        /*
                         * one container in its Pod: the same limit twice, and a sandbox that was not
                         * recognized
                         */
                        {25, 25, 250, POD, false, LIMIT_CONTAINER, 250},
                        {25, 25, ABSENT, POD, false, LIMIT_CONTAINER, 250},
                        {25, 30, ABSENT, POD, false, LIMIT_CONTAINER, 250},
                        /* a limit for the Pod itself */
                        {25, 20, 250, POD, true, LIMIT_POD, 200},
                        {40, 50, 800, POD, true, LIMIT_CONTAINER, 400},
                        {40, 30, ABSENT, POD, true, LIMIT_POD, 300},
                        {ABSENT, 30, ABSENT, POD, true, LIMIT_POD, 300},
                        /* containers' limits rounded up in steps of 10m each: still the sum */
                        {42, 41, 420, POD, false, LIMIT_CONTAINER, 420},
                        {42, 83, 840, POD, false, LIMIT_CONTAINER, 420},
                        {100, 190, 2000, POD, false, LIMIT_CONTAINER, 1000},
                        {100, 189, 2000, POD, true, LIMIT_CONTAINER, 1000},
                        /* nobody above */
                        {25, ABSENT, ABSENT, "/slice", false, LIMIT_CONTAINER, 250},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                struct cgroup_level *level[2];
                build_levels(&pair, "/x/app", rows[i].own, level);
                build_levels(&pair, rows[i].name, rows[i].above, level);
                level[1]->children_limit_milli = rows[i].children;
                const struct facts *facts = build_facts(&pair);

                cr_assert_eq(facts->ancestor_is_tighter, rows[i].is_tighter, "row %zu", i);
                cr_assert_eq(facts->limit_level, rows[i].level, "row %zu", i);
                cr_assert_eq(facts->limit_milli, rows[i].milli, "row %zu: %" PRIu64, i, facts->limit_milli);
                cr_assert_eq(facts->own_limit_milli, is_known(rows[i].own) ? rows[i].own * 10 : ABSENT,
                             "row %zu", i);
                build_release(&pair);
        }
}

Test(judge_facts_limits, an_ancestor_only_the_scheduler_shows_is_compared_with_the_own_limit) {
        static const struct {
                uint64_t own, above;
                bool is_tighter;
                enum limit_level level;
        } rows[] = {
                        {25, 24, true, LIMIT_ANCESTOR},
                        {25, 25, false,
                         LIMIT_CONTAINER}, /* though only the upper one acted: their periods differ */
                        {25, 26, true, LIMIT_CONTAINER}, /* the own one did nothing, this one did */
                        {ABSENT, 100, true, LIMIT_ANCESTOR},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                struct cgroup_level *level[2];
                struct group_level *group[2];
                build_levels(&pair, "/", rows[i].own, level);
                level[0]->id = level[1]->id = 10;
                pair.before->chain.parent_hidden = pair.now->chain.parent_hidden = true;
                build_groups(&pair, 10, "app", rows[i].own, group);
                build_groups(&pair, 9, "machine.slice", rows[i].above, group);
                group_counters(group[1], 50, 20, 100);
                build_groups(&pair, 1, "", ABSENT, group);
                const struct facts *facts = build_facts(&pair);

                cr_assert_eq(facts->ancestor_is_tighter, rows[i].is_tighter, "row %zu", i);
                cr_assert_eq(facts->limit_level, rows[i].level, "row %zu", i);
                cr_assert_not(facts->parent_hidden, "the groups reach the root");
                cr_assert_not(facts->limit_unknown);
                if (rows[i].level == LIMIT_ANCESTOR) {
                        cr_assert_str_eq(facts->limit_cgroup, "machine.slice");
                        cr_assert_eq(facts->periods, 50);
                        cr_assert_eq(facts->periods_throttled, 20);
                }
                build_release(&pair);
        }
}

/* 333333 us in 1 s against 33333 us in 100 ms: in thousandths both are 333, and the second is lower. */
Test(judge_facts_limits, ratios_are_compared_exactly) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2], *above[2];
        build_levels(&pair, "/a/app", 0, own);
        build_levels(&pair, "/a", 0, above);
        own[1]->quota_ns = 333333 * NS_PER_US;
        own[1]->period_ns = NS_PER_S;
        above[1]->quota_ns = 33333 * NS_PER_US;
        above[1]->period_ns = 100 * MS;
        cr_assert_eq(build_facts(&pair)->limit_level, LIMIT_ANCESTOR);
        above[1]->quota_ns = 333333 * NS_PER_US;
        above[1]->period_ns = NS_PER_S;
        cr_assert_eq(build_facts(&pair)->limit_level, LIMIT_CONTAINER, "of equal ones the container's own");
        build_release(&pair);
}

Test(judge_facts_limits, the_largest_numbers_do_not_overflow) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2], *above[2];
        build_levels(&pair, "/a/app", 0, own);
        build_levels(&pair, "/a", 0, above);
        own[1]->quota_ns = ABSENT - 1;
        own[1]->period_ns = 1;
        above[1]->quota_ns = ABSENT - 2;
        above[1]->period_ns = 1;
        const struct facts *facts = build_facts(&pair);
        cr_assert_eq(facts->limit_level, LIMIT_ANCESTOR);
        cr_assert_eq(facts->limit_milli, ABSENT - 1);
        build_release(&pair);
}

Test(judge_facts_limits, a_malformed_level_that_the_scheduler_shows_is_known) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *level[2];
        struct group_level *group[2];
        build_levels(&pair, "/app", ABSENT, level);
        level[1]->limit = CGROUP_LIMIT_UNKNOWN;
        pair.now->chain.limit_unknown = true;
        cr_assert(build_facts(&pair)->limit_unknown);

        build_groups(&pair, 10, "app", 25, group);
        build_groups(&pair, 1, "", ABSENT, group);
        const struct facts *facts = build_facts(&pair);
        cr_assert_not(facts->limit_unknown);
        cr_assert_eq(facts->limit_milli, 250);
        build_release(&pair);
}

Test(judge_facts_limits, files_and_groups_are_matched_by_id) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2], *top[2];
        struct group_level *group[2];
        /* Files leave the middle level out. */
        build_levels(&pair, "/m/app", 50, own);
        build_levels(&pair, "/", ABSENT, top);
        own[0]->id = own[1]->id = 10;
        top[0]->id = top[1]->id = 1;
        build_groups(&pair, 10, "app", 50, group);
        build_groups(&pair, 1, "", ABSENT, group);
        group_counters(group[1], 7, 7, 7);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->limit_milli, 500);
        cr_assert_eq(facts->periods, 0, "of the container's own group");
        build_release(&pair);
}

/* The container's limit is the lower number, but the ancestor, shared with others, did the stalling. */
Test(judge_facts_limits, the_limit_that_did_the_stalling_is_shown) {
        static const struct {
                uint64_t stall, above;
                enum limit_level level;
        } rows[] = {{1000, 499, LIMIT_CONTAINER},
                    {1000, 500, LIMIT_POD},
                    {1000, 1000, LIMIT_POD},
                    {0, 0, LIMIT_CONTAINER}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                struct cgroup_level *own[2], *pod[2];
                build_levels(&pair, APP, 40, own);
                build_levels(&pair, POD, 50, pod);
                pod[1]->children_limit_milli = 800;
                build_parts(pair.current, BUILD_ID, 1, 100, 0, rows[i].stall, 0)->stall_above_ns =
                                rows[i].above * MS;
                const struct facts *facts = build_facts(&pair);

                cr_assert_eq(facts->limit_level, rows[i].level, "row %zu", i);
                cr_assert_eq(facts->own_limit_milli, 400);
                cr_assert_eq(facts->ancestor_ns_lost, rows[i].above * MS);
                cr_assert_eq(facts->quota_ns_lost, (rows[i].stall - rows[i].above) * MS);
                build_release(&pair);
        }
}

/*
 * Measured on a real cluster: a Pod of 100m + 50m with quota 15 ms showed 21 throttled periods beside 306 of
 * the leaf.
 */
Test(judge_facts_limits, a_pod_that_throttles_beside_its_containers_is_the_own_limit_at_work) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2], *pod[2];
        build_levels(&pair, APP, 10, own);
        build_levels(&pair, POD, 15, pod);
        pod[0]->children_limit_milli = pod[1]->children_limit_milli = 150;
        level_counters(own[0], 0, 0, 0);
        level_counters(own[1], 310, 306, 27000);
        level_counters(pod[0], 0, 0, 0);
        level_counters(pod[1], 310, 21, 800);
        build_parts(pair.current, BUILD_ID, 1, 1000, 0, 8000, 0)->stall_above_ns = 600 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_not(facts->ancestor_is_tighter);
        cr_assert_eq(facts->limit_level, LIMIT_CONTAINER);
        cr_assert_eq(facts->quota_ns_lost, 8000 * MS);
        cr_assert_eq(facts->ancestor_ns_lost, 0);
        cr_assert_eq(facts->periods_throttled, 306);
        build_release(&pair);
}

/* The siblings' limits are not known. The own limit never acted, the Pod's did. */
Test(judge_facts_limits, a_pod_whose_containers_are_not_known_is_named_by_what_it_did) {
        static const struct {
                uint64_t own_throttled, pod_throttled;
                bool is_tighter;
        } rows[] = {{0, 9, true}, {1, 9, false}, {0, 0, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                struct cgroup_level *own[2];
                struct group_level *group[2];
                build_levels(&pair, "/", 40, own);
                level_counters(own[0], 0, 0, 0);
                level_counters(own[1], 100, rows[i].own_throttled, rows[i].own_throttled);
                build_groups(&pair, 10, "app", 40, group);
                build_groups(&pair, 9, POD_NAME, 50, group);
                group_counters(group[1], 100, rows[i].pod_throttled, rows[i].pod_throttled * 10);
                build_groups(&pair, 1, "", ABSENT, group);
                build_parts(pair.current, BUILD_ID, 1, 1000, 0, 90, 0)->stall_above_ns = 90 * MS;
                const struct facts *facts = build_facts(&pair);

                cr_assert_eq(facts->ancestor_is_tighter, rows[i].is_tighter, "row %zu", i);
                cr_assert_eq(facts->ancestor_ns_lost, rows[i].is_tighter ? 90 * MS : 0, "row %zu", i);
                cr_assert_eq(facts->limit_level, rows[i].is_tighter ? LIMIT_POD : LIMIT_CONTAINER, "row %zu",
                             i);
                build_release(&pair);
        }
}

/*
 * A node that is itself in a limited group (kind): its limit did nothing, the Pod's sum throttled beside the
 * container.
 */
Test(judge_facts_limits, an_ancestor_that_did_nothing_is_not_named) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2], *pod[2], *node[2];
        build_levels(&pair, "/kind" APP, 25, own);
        build_levels(&pair, "/kind" POD, 25, pod);
        build_levels(&pair, "/kind", 200, node);
        pod[1]->children_limit_milli = 250;
        level_counters(own[0], 0, 0, 0);
        level_counters(own[1], 100, 50, 900);
        level_counters(pod[0], 0, 0, 0);
        level_counters(pod[1], 100, 30, 900);
        level_counters(node[0], 7, 7, 7);
        level_counters(node[1], 107, 7, 7);
        build_parts(pair.current, BUILD_ID, 1, 1000, 0, 900, 0)->stall_above_ns = 300 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_not(facts->ancestor_is_tighter);
        cr_assert_eq(facts->quota_ns_lost, 900 * MS);
        build_release(&pair);
}

/* Local clock 8 s -> 9.3 s, own counter 2 s -> 2.5 s: 800 ms came from above. */
Test(judge_facts_limits, what_came_from_above_is_the_local_clock_less_the_own_counter) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", 25, own);
        level_counters(own[0], 100, 10, 2000);
        level_counters(own[1], 200, 20, 2500);
        own[0]->stat.local_throttled_ns = 8000 * MS;
        own[1]->stat.local_throttled_ns = 9300 * MS;
        cr_assert_eq(build_facts(&pair)->ancestor_throttled_ns, 800 * MS);
        own[1]->stat.local_throttled_ns = 8499 * MS;
        cr_assert_eq(build_facts(&pair)->ancestor_throttled_ns, 0, "never below zero");
        own[0]->stat.local_throttled_ns = ABSENT;
        cr_assert_eq(build_facts(&pair)->ancestor_throttled_ns, ABSENT);
        build_release(&pair);
}

/* Measured: an unlimited container in a namespace had nr_throttled 0, but 81 to 327 ms local. */
Test(judge_facts_limits, a_limit_above_the_namespace_is_proven_by_the_local_clock) {
        static const struct {
                uint64_t own, own_throttled, local_ms;
                bool is_proven;
        } rows[] = {
                        {ABSENT, 0, 327, true},
                        {ABSENT, 0, 0, false},
                        {25, 0, 327, true},
                        {25, 5, 327, false}, /* may be the Pod's sum beside the own limit */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_FILES);
                struct cgroup_level *own[2];
                build_levels(&pair, "/", rows[i].own, own);
                pair.now->chain.parent_hidden = true;
                level_counters(own[0], 0, 0, 0);
                level_counters(own[1], 10, rows[i].own_throttled, rows[i].own_throttled);
                own[0]->stat.local_throttled_ns = 0;
                own[1]->stat.local_throttled_ns = rows[i].local_ms * MS;
                const struct facts *facts = build_facts(&pair);

                cr_assert_eq(facts->ancestor_is_tighter, rows[i].is_proven, "row %zu", i);
                cr_assert_eq(facts->limit_unknown, rows[i].is_proven, "row %zu", i);
                cr_assert(facts->parent_hidden);
                build_release(&pair);
        }
}

Test(judge_facts_limits, nothing_is_hidden_where_the_groups_reach_the_root) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *own[2];
        struct group_level *group[2];
        build_levels(&pair, "/", ABSENT, own);
        pair.now->chain.parent_hidden = true;
        level_counters(own[0], 0, 0, 0);
        level_counters(own[1], 10, 0, 0);
        own[0]->stat.local_throttled_ns = 0;
        own[1]->stat.local_throttled_ns = 327 * MS;
        build_groups(&pair, 10, "app", ABSENT, group);
        build_groups(&pair, 1, "", ABSENT, group);
        const struct facts *facts = build_facts(&pair);

        cr_assert_not(facts->ancestor_is_tighter);
        cr_assert_not(facts->limit_unknown);
        build_release(&pair);
}

Test(judge_facts_limits, whoever_has_no_limit_was_stalled_from_above) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", ABSENT, own); /* the ancestor's limit was removed meanwhile */
        build_parts(pair.current, BUILD_ID, 1, 1000, 0, 90, 0)->stall_above_ns = 90 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert(facts->ancestor_is_tighter);
        cr_assert_eq(facts->ancestor_ns_lost, 90 * MS);
        cr_assert_eq(facts->quota_ns_lost, 0);
        build_release(&pair);
}

Test(judge_facts_limits, from_files_the_level_that_acted_is_shown) {
        struct pair pair = build_pair(PROBE_FILES);
        struct cgroup_level *own[2], *above[2];
        build_levels(&pair, "/s/app", 40, own);
        build_levels(&pair, "/s", 50, above);
        level_counters(own[0], 0, 0, 0);
        level_counters(own[1], 90, 0, 0);
        level_counters(above[0], 0, 0, 0);
        level_counters(above[1], 100, 60, 3000);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->limit_level, LIMIT_ANCESTOR);
        cr_assert_eq(facts->limit_milli, 500);
        cr_assert_eq(facts->periods_throttled, 60);
        cr_assert_eq(facts->runqueue_throttled_ns, 0, "the container's own level");
        build_release(&pair);
}

Test(judge_facts_limits, the_mount_is_named_as_a_person_finds_it) {
        static const struct {
                char seen[64], told[64];
        } rows[] = {
                        {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu"},
                        {"/proc/4711/root/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu"},
                        {"/proc/4711/rooted", "/proc/4711/rooted"},
                        {"/processes/root/cpu", "/processes/root/cpu"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_FILES);
                struct cgroup_level *level[2];

                build_levels(&pair, "/app", 25, level);
                pair.now->chain.version = CGROUP_V1;
                pair.now->chain.mount = rows[i].seen;
                cr_expect_str_eq(build_facts(&pair)->cgroup_v1_mount, rows[i].told, "row %zu", i);
                build_release(&pair);
        }
}
