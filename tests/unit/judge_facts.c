/* SPDX-License-Identifier: Apache-2.0 */
/* The window itself, CPU used, causes and demand, and what was lost on the way. */
#include "judge_build.h"

Test(judge_facts, the_window_is_that_of_the_snapshots) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->window_ns, 10 * NS_PER_S);
        cr_assert_eq(facts->from.mono_ns, 10 * NS_PER_S);
        cr_assert_eq(facts->to.mono_ns, 20 * NS_PER_S);
        cr_assert_eq(facts->to.real_ns, BUILD_REAL_NS + 20 * NS_PER_S);
        cr_assert_eq(facts->from.real_ns, BUILD_REAL_NS + 10 * NS_PER_S);
        cr_assert_eq(facts->method, PROBE_TRACEPOINTS);
        cr_assert(facts->exact);
        cr_assert(facts->measured);
        cr_assert_eq(facts->cpus_online, 4);
        build_release(&pair);
}

Test(judge_facts, a_container_in_neither_is_not_found) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct facts facts;
        cr_assert_eq(facts_of_window(pair.previous, pair.current, 12345, &pair.options, pair.arena, &facts),
                     -ENOENT);
        cr_assert_eq(facts_of_window(NULL, pair.current, 12345, &pair.options, pair.arena, &facts), -ENOENT);
        build_release(&pair);
}

Test(judge_facts, a_new_container_counts_since_its_first_thread_was_seen) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.previous->containers_count = 0;
        build_parts(pair.current, BUILD_ID, 1, 500, 0, 500, 1000)->first_ns = 18000 * MS;
        build_parts(pair.current, BUILD_ID, 2, 0, 0, 0, 1000)->first_ns = 19000 * MS;
        pair.now->exec_ns = 500 * MS;
        build_interval(pair.now, 18000, 18500, false);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->window_ns, 2000 * MS);
        cr_assert_eq(facts->from.real_ns, BUILD_REAL_NS + 18000 * MS);
        cr_assert_eq(facts->wanted_milli, 500); /* 1 s in 2 s */
        cr_assert_eq(facts->cpu_used_ns, 500 * MS);
        cr_assert_eq(facts->stall_wall_ns, 500 * MS);
        build_release(&pair);
}

Test(judge_facts, one_tick_only_without_threads_has_no_window) {
        struct pair pair = build_pair(PROBE_FILES);
        snapshot_free(pair.previous);
        pair.previous = NULL;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->window_ns, 0);
        cr_assert_eq(facts->wanted_milli, ABSENT);
        cr_assert_eq(facts->machine_steal_ns, ABSENT);
        build_release(&pair);
}

Test(judge_facts, a_container_that_is_gone_has_the_final_rows_of_its_threads) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 100, 0, 0, 0);
        struct thread_sample *last = build_parts(pair.current, BUILD_ID, 1, 400, 0, 50, 0);
        last->ended = true;
        build_parts(pair.current, 5, 2, 9000, 0, 0, 0);
        pair.current->containers_count = 0;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 1);
        cr_assert_eq(facts->threads[0].run_ns, 300 * MS);
        cr_assert_eq(facts->quota_ns_lost, 50 * MS);
        cr_assert_eq(facts->stall_count, ABSENT);
        cr_assert_not(facts->exact);
        build_release(&pair);
}

Test(judge_facts, causes_add_up_to_what_the_threads_lost) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *level[2];
        build_levels(&pair, "/s/app", 50, level);
        build_levels(&pair, "/s", 20, level);
        build_parts(pair.current, BUILD_ID, 1, 3000, 400, 1500, 0)->stall_above_ns = 900 * MS;
        build_parts(pair.current, BUILD_ID, 2, 1000, 100, 500, 0)->stall_above_ns = 100 * MS;
        build_fold(pair.current, BUILD_ID, 9, 3, 200, 40);
        const struct facts *facts = build_facts(&pair);
        uint64_t stall = 0, wait = 0;

        cr_assert_eq(facts->quota_ns_lost, 1040 * MS);
        cr_assert_eq(facts->ancestor_ns_lost, 1000 * MS);
        cr_assert_eq(facts->contention_ns_lost, 500 * MS);
        for (size_t i = 0; i < facts->threads_count; i++) {
                stall += facts->threads[i].stall_ns;
                wait += facts->threads[i].wait_ns;
        }
        cr_assert_eq(facts->quota_ns_lost + facts->ancestor_ns_lost, stall);
        cr_assert_eq(facts->contention_ns_lost, wait);
        /* (3000 + 1000 + 200 run, 2040 stall, 500 wait) in 10 s */
        cr_assert_eq(facts->wanted_milli, 674);
        build_release(&pair);
}

/* 4 s run, of which 3.7 s were charged. */
Test(judge_facts, steal_is_what_was_not_charged_and_never_more_than_the_machine_lost) {
        static const struct {
                uint64_t before, now, steal;
        } rows[] = {
                        {1000, 1200, 200},      {1000, 1300, 300},      {1000, 1500, 300},   {1000, 1000, 0},
                        {ABSENT, 1500, ABSENT}, {1000, ABSENT, ABSENT}, {1000, 999, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                build_parts(pair.current, BUILD_ID, 1, 4000, 0, 0, 0)->exec_ns = 3700 * MS;
                pair.previous->machine.steal_ns = is_known(rows[i].before) ? rows[i].before * MS : ABSENT;
                pair.current->machine.steal_ns = is_known(rows[i].now) ? rows[i].now * MS : ABSENT;
                const struct facts *facts = build_facts(&pair);
                cr_assert_eq(facts->steal_ns_lost, is_known(rows[i].steal) ? rows[i].steal * MS : ABSENT,
                             "row %zu", i);
                build_release(&pair);
        }
}

Test(judge_facts, more_charged_than_run_is_no_steal) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.current, BUILD_ID, 1, 4000, 0, 0, 0)->exec_ns = 4001 * MS;
        pair.previous->machine.steal_ns = 0;
        pair.current->machine.steal_ns = 500 * MS;
        cr_assert_eq(build_facts(&pair)->steal_ns_lost, 0);
        build_release(&pair);
}

Test(judge_facts, from_files_no_cause_is_guessed_but_demand_is_known) {
        struct pair pair = build_pair(PROBE_FILES);
        build_thread(pair.previous, BUILD_ID, 1);
        struct thread_sample *now = build_thread(pair.current, BUILD_ID, 1);
        now->run_ns = 1000 * MS;
        now->runqueue_delay_ns = 4000 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->quota_ns_lost, ABSENT);
        cr_assert_eq(facts->ancestor_ns_lost, ABSENT);
        cr_assert_eq(facts->contention_ns_lost, ABSENT);
        cr_assert_eq(facts->steal_ns_lost, ABSENT);
        cr_assert_eq(facts->wanted_milli, 500);
        cr_assert_not(facts->exact);
        cr_assert_not(facts->measured);
        build_release(&pair);
}

/* The probe says it of threads only; in the window in which a container goes its threads are all there is. */
Test(judge_facts, spent_in_throttled_periods_is_what_its_threads_spent) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.before->throttled_used_ns = pair.now->throttled_used_ns = ABSENT;
        build_thread(pair.previous, BUILD_ID, 1)->quota_spent_ns = 100 * MS;
        build_thread(pair.current, BUILD_ID, 1)->quota_spent_ns = 350 * MS;
        build_thread(pair.previous, BUILD_ID, 2)->quota_spent_ns = 0;
        build_thread(pair.current, BUILD_ID, 2)->quota_spent_ns = 20 * MS;
        cr_assert_eq(build_facts(&pair)->throttled_used_ns, 270 * MS);
        build_release(&pair);
}

Test(judge_facts, used_is_the_kernels_counter_else_what_was_charged) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct cgroup_level *level[2];
        build_levels(&pair, "/app", 50, level);
        pair.before->exec_ns = 100 * MS;
        pair.now->exec_ns = 900 * MS;
        pair.before->throttled_used_ns = 10 * MS;
        pair.now->throttled_used_ns = 60 * MS;
        cr_assert_eq(build_facts(&pair)->cpu_used_ns, 800 * MS);
        level[0]->stat.usage_ns = 2000 * MS;
        level[1]->stat.usage_ns = 2810 * MS;
        cr_assert_eq(build_facts(&pair)->cpu_used_ns, 810 * MS);
        cr_assert_eq(pair.facts.throttled_used_ns, 50 * MS);
        level[1]->stat.usage_ns = 1999 * MS;
        cr_assert_eq(build_facts(&pair)->cpu_used_ns, 800 * MS, "it went backwards");
        build_release(&pair);
}

Test(judge_facts, a_container_tracked_anew_counts_from_zero) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.before->exec_ns = 900 * MS;
        pair.now->exec_ns = 100 * MS;
        pair.now->measured_whole = false;
        cr_assert_eq(build_facts(&pair)->cpu_used_ns, 100 * MS);
        pair.before->exec_ns = ABSENT;
        pair.before->measured = false;
        cr_assert_eq(build_facts(&pair)->cpu_used_ns, 100 * MS, "not tracked before");
        build_release(&pair);
}

Test(judge_facts, totals_stand_in_for_rows_that_were_lost) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.current, BUILD_ID, 1, 1000, 0, 300, 0);
        pair.now->run_ns = 5000 * MS;
        pair.now->stall_ns = 2000 * MS;
        cr_assert_eq(build_facts(&pair)->quota_ns_lost, 300 * MS, "every row is there");
        pair.previous->lost[LOST_THREADS_FULL] = 3;
        pair.current->lost[LOST_THREADS_FULL] = 12;
        const struct facts *facts = build_facts(&pair);
        cr_assert_eq(facts->quota_ns_lost, 2000 * MS);
        cr_assert_eq(facts->wanted_milli, 700);
        cr_assert_eq(facts->lost[LOST_THREADS_FULL], 9);
        cr_assert_eq(facts->lost[LOST_TICKS], 0);
        build_release(&pair);
}

Test(judge_facts, without_threads_nothing_was_lost) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        const struct facts *facts = build_facts(&pair);
        cr_assert_eq(facts->quota_ns_lost, 0);
        cr_assert_eq(facts->contention_ns_lost, 0);
        cr_assert_eq(facts->wanted_milli, 0);
        build_release(&pair);
}

Test(judge_facts, a_full_arena_is_an_error_and_leaves_the_output_alone) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        for (uint32_t tid = 1; tid < BUILD_ROOM; tid++)
                build_thread(pair.current, BUILD_ID, tid);
        arena_free(pair.arena);
        pair.arena = arena_new(1024);
        pair.facts.window_ns = 4711;
        cr_assert_eq(snapshot_sort(pair.current), 0);
        cr_assert_eq(facts_of_window(pair.previous, pair.current, BUILD_ID, &pair.options, pair.arena,
                                     &pair.facts),
                     -ENOMEM);
        cr_assert_eq(pair.facts.window_ns, 4711);
        build_release(&pair);
}
