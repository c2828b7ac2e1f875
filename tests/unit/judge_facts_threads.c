/* SPDX-License-Identifier: Apache-2.0 */
/* Thread rows of a window: who is the same thread, and what grew. */
#include "judge_build.h"

static const struct thread_facts *row_of(const struct facts *facts, uint32_t tid) {
        for (size_t i = 0; i < facts->threads_count; i++)
                if (facts->threads[i].tid == tid && facts->threads[i].folded == 0)
                        return &facts->threads[i];
        return NULL;
}

static const struct thread_facts *fold_of(const struct facts *facts, uint32_t pid) {
        for (size_t i = 0; i < facts->threads_count; i++)
                if (facts->threads[i].pid == pid && facts->threads[i].folded > 0)
                        return &facts->threads[i];
        return NULL;
}

Test(judge_facts_threads, a_window_is_the_difference_of_two_readings) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct thread_sample *before = build_parts(pair.previous, BUILD_ID, 1, 1000, 200, 300, 3500);
        struct thread_sample *now = build_parts(pair.current, BUILD_ID, 1, 4000, 700, 1300, 9000);
        before->stall_above_ns = 50 * MS;
        now->stall_above_ns = 90 * MS;
        before->sleep_in_stall_ns = 5 * MS;
        now->sleep_in_stall_ns = 25 * MS;
        before->quota_spent_ns = 10 * MS;
        now->quota_spent_ns = 60 * MS;
        before->stalls = 3;
        now->stalls = 15;
        before->switches = 100;
        now->switches = 900;
        now->stall_longest_ns = 88 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 1);
        const struct thread_facts *row = &facts->threads[0];
        cr_assert_eq(row->run_ns, 3000 * MS);
        cr_assert_eq(row->wait_ns, 500 * MS);
        cr_assert_eq(row->stall_ns, 1000 * MS);
        cr_assert_eq(row->sleep_ns, 5500 * MS);
        cr_assert_eq(row->wall_ns, 10000 * MS);
        cr_assert_eq(row->run_ns + row->wait_ns + row->stall_ns + row->sleep_ns, row->wall_ns);
        cr_assert_eq(row->exec_ns, 3000 * MS);
        cr_assert_eq(row->stall_above_ns, 40 * MS);
        cr_assert_eq(row->sleep_in_stall_ns, 20 * MS);
        cr_assert_eq(row->quota_spent_ns, 50 * MS);
        cr_assert_eq(row->stalls, 12);
        cr_assert_eq(row->switches, 800);
        cr_assert_eq(row->stall_longest_ns, 88 * MS);
        cr_assert_eq(row->runqueue_delay_ns, ABSENT);
        cr_assert_eq(row->pid, 100);
        cr_assert_str_eq(row->name, "t1");
        cr_assert_str_eq(row->process, "app");
        build_release(&pair);
}

Test(judge_facts_threads, a_thread_only_in_the_current_one_counts_since_it_was_seen) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.current, BUILD_ID, 1, 30, 20, 10, 1940)->first_ns = 18000 * MS;
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->run_ns, 30 * MS);
        cr_assert_eq(row->stall_ns, 10 * MS);
        cr_assert_eq(row->wall_ns, 2000 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, one_tick_only_counts_since_first_seen) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        snapshot_free(pair.previous);
        pair.previous = NULL;
        build_parts(pair.current, BUILD_ID, 1, 3000, 0, 0, 12000);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads[0].run_ns, 3000 * MS);
        cr_assert_eq(facts->threads[0].wall_ns, 15000 * MS);
        cr_assert_eq(facts->window_ns, 15000 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, the_same_number_with_another_start_is_another_thread) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 4000, 0, 0, 1000)->start_ns = 111;
        struct thread_sample *now = build_parts(pair.current, BUILD_ID, 1, 50, 0, 0, 950);
        now->start_ns = 222;
        now->first_ns = 19000 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 1);
        cr_assert_eq(facts->threads[0].run_ns, 50 * MS);
        cr_assert_eq(facts->threads[0].wall_ns, 1000 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, an_ended_thread_has_its_last_part_and_its_wall_time) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 1000, 0, 0, 4000);
        struct thread_sample *now = build_parts(pair.current, BUILD_ID, 1, 1600, 100, 300, 5000);
        now->ended = true;
        now->at_ns = 12000 * MS;
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert(row->ended);
        cr_assert_eq(row->run_ns, 600 * MS);
        cr_assert_eq(row->wall_ns, 2000 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, a_number_reused_after_an_end_gives_two_rows) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 1000, 0, 0, 0)->start_ns = 5;
        struct thread_sample *ended = build_parts(pair.current, BUILD_ID, 1, 1400, 0, 0, 0);
        ended->start_ns = 5;
        ended->ended = true;
        build_parts(pair.current, BUILD_ID, 1, 70, 0, 0, 0)->start_ns = 9;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 2);
        cr_assert_eq(facts->threads[0].run_ns, 400 * MS);
        cr_assert(facts->threads[0].ended);
        cr_assert_eq(facts->threads[1].run_ns, 70 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, a_counter_that_went_backwards_is_absent) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 1000, 500, 0, 0);
        build_parts(pair.current, BUILD_ID, 1, 999, 600, 0, 0);
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->run_ns, ABSENT);
        cr_assert_eq(row->wait_ns, 100 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, counting_begun_anew_within_the_window_counts_since_then) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 1000, 0, 0, 0);
        build_parts(pair.current, BUILD_ID, 1, 400, 0, 0, 600)->first_ns = 19000 * MS;
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->run_ns, 400 * MS);
        cr_assert_eq(row->wall_ns, 1000 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, counters_go_with_a_thread_that_moves_to_another_container) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_container(pair.previous, 5);
        build_parts(pair.previous, 5, 1, 4000, 0, 0, 1000);
        build_parts(pair.current, BUILD_ID, 1, 4700, 0, 0, 1000);
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->run_ns, 700 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, a_sum_of_ended_threads_gives_its_growth_and_how_many) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_fold(pair.previous, BUILD_ID, 200, 10, 100, 40);
        build_fold(pair.current, BUILD_ID, 200, 17, 180, 90);
        build_fold(pair.current, BUILD_ID, 300, 4, 8, 0);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 2);
        cr_assert_eq(fold_of(facts, 200)->folded, 7);
        cr_assert_eq(fold_of(facts, 200)->run_ns, 80 * MS);
        cr_assert_eq(fold_of(facts, 200)->stall_ns, 50 * MS);
        cr_assert_eq(fold_of(facts, 200)->wall_ns, 130 * MS);
        cr_assert_eq(fold_of(facts, 300)->folded, 4);
        cr_assert_eq(fold_of(facts, 300)->run_ns, 8 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, a_sum_that_did_not_grow_is_no_row) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_fold(pair.previous, BUILD_ID, 200, 10, 100, 40);
        build_fold(pair.current, BUILD_ID, 200, 10, 100, 40);
        cr_assert_eq(build_facts(&pair)->threads_count, 0);
        build_release(&pair);
}

Test(judge_facts_threads, a_sum_and_a_thread_of_one_number_are_not_the_same) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 200, 500, 0, 0, 0)->start_ns = 3;
        build_parts(pair.current, BUILD_ID, 200, 600, 0, 0, 0)->start_ns = 3;
        build_fold(pair.current, BUILD_ID, 200, 2, 30, 0);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads_count, 2);
        cr_assert_eq(row_of(facts, 200)->run_ns, 100 * MS);
        cr_assert_eq(fold_of(facts, 200)->run_ns, 30 * MS);
        build_release(&pair);
}

/*
 * Three lived at the last tick with 100, 200 and 300 ms; the first two ended in a crowd and were folded with
 * 150 and 260; the third still lives. New in the sum is 50 + 60, the 5 of a thread never seen, and its count
 * is 3.
 */
Test(judge_facts_threads, what_was_counted_of_a_thread_before_it_was_folded_is_not_counted_twice) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 100, 0, 10, 0)->stall_bins[3] = 4;
        build_parts(pair.previous, BUILD_ID, 2, 200, 0, 20, 0);
        build_parts(pair.previous, BUILD_ID, 3, 300, 0, 30, 0);
        build_parts(pair.current, BUILD_ID, 3, 310, 0, 30, 0);
        build_fold(pair.current, BUILD_ID, 100, 3, 150 + 260 + 5, 12 + 20);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(fold_of(facts, 100)->run_ns, 115 * MS);
        cr_assert_eq(fold_of(facts, 100)->stall_ns, 2 * MS);
        cr_assert_eq(fold_of(facts, 100)->folded, 3);
        cr_assert_eq(row_of(facts, 3)->run_ns, 10 * MS);
        build_release(&pair);
}

/*
 * An ended thread that had a row of its own was never folded, and no more are taken off than were folded:
 * one of the two that are gone.
 */
Test(judge_facts_threads, no_more_is_taken_off_a_sum_than_was_folded) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 1000, 0, 0, 0)->ended = true;
        build_parts(pair.previous, BUILD_ID, 2, 100, 0, 0, 0);
        build_parts(pair.previous, BUILD_ID, 3, 50, 0, 0, 0);
        build_fold(pair.previous, BUILD_ID, 100, 5, 7000, 0);
        build_fold(pair.current, BUILD_ID, 100, 6, 7120, 0);
        const struct thread_facts *fold = fold_of(build_facts(&pair), 100);

        cr_assert_eq(fold->folded, 1);
        cr_assert_eq(fold->run_ns, 20 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, a_thread_of_another_process_is_not_taken_off_a_sum) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.previous, BUILD_ID, 1, 100, 0, 0, 0); /* process 100, gone */
        build_fold(pair.current, BUILD_ID, 200, 1, 130, 0);
        cr_assert_eq(fold_of(build_facts(&pair), 200)->run_ns, 130 * MS);
        build_release(&pair);
}

Test(judge_facts_threads, are_sorted_by_stall_then_run_and_sleepers_come_last) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_parts(pair.current, BUILD_ID, 1, 0, 0, 0, 10000);
        build_parts(pair.current, BUILD_ID, 2, 500, 0, 0, 0);
        build_parts(pair.current, BUILD_ID, 3, 100, 0, 200, 0);
        build_parts(pair.current, BUILD_ID, 4, 300, 0, 200, 0);
        build_parts(pair.current, BUILD_ID, 5, 0, 0, 900, 0);
        build_parts(pair.current, BUILD_ID, 6, 0, 0, 0, 10000);
        const struct facts *facts = build_facts(&pair);
        static const uint32_t order[] = {5, 4, 3, 2, 1, 6};

        cr_assert_eq(facts->threads_count, ELEMENTS(order));
        for (size_t i = 0; i < ELEMENTS(order); i++)
                cr_assert_eq(facts->threads[i].tid, order[i], "place %zu", i);
        build_release(&pair);
}

Test(judge_facts_threads, from_files_carry_delay_and_never_a_stall) {
        struct pair pair = build_pair(PROBE_FILES);
        build_thread(pair.previous, BUILD_ID, 1)->runqueue_delay_ns = 100 * MS;
        build_thread(pair.previous, BUILD_ID, 2);
        struct thread_sample *one = build_thread(pair.current, BUILD_ID, 1);
        struct thread_sample *two = build_thread(pair.current, BUILD_ID, 2);
        one->runqueue_delay_ns = 700 * MS;
        one->run_ns = 10 * MS;
        two->runqueue_delay_ns = 900 * MS;
        two->run_ns = 20 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->threads[0].tid, 2);
        cr_assert_eq(facts->threads[0].runqueue_delay_ns, 900 * MS);
        cr_assert_eq(facts->threads[1].runqueue_delay_ns, 600 * MS);
        cr_assert_eq(facts->threads[1].run_ns, 10 * MS);
        cr_assert_eq(facts->threads[1].stall_ns, ABSENT);
        cr_assert_eq(facts->threads[1].wait_ns, ABSENT);
        cr_assert_eq(facts->threads[1].stalls, ABSENT);
        cr_assert_eq(facts->threads[1].stall_p99_ns, ABSENT);
        cr_assert_eq(facts->threads[1].quota_spent_ns, ABSENT);
        cr_assert_eq(facts->threads[1].wall_ns, 10000 * MS);
        build_release(&pair);
}

/*
 * Bins of shift 14: bin 1 is 16384..20480 ns, bin 2 20480..24576. 60 stalls before, 10 in the window: 9 in
 * bin 1, 1 in bin 2.
 */
Test(judge_facts_threads, quantiles_are_of_the_window_only) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct thread_sample *before = build_thread(pair.previous, BUILD_ID, 1);
        struct thread_sample *now = build_thread(pair.current, BUILD_ID, 1);
        before->stall_bins[5] = 60;
        now->stall_bins[5] = 60;
        now->stall_bins[1] = 9;
        now->stall_bins[2] = 1;
        now->stall_longest_ns = 21000;
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->stall_p50_ns, 16384 + 4096 * 5 / 9);
        cr_assert_eq(row->stall_p99_ns, 21000);
        build_release(&pair);
}

Test(judge_facts_threads, a_bin_that_wrapped_still_gives_its_growth) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        struct thread_sample *before = build_thread(pair.previous, BUILD_ID, 1);
        struct thread_sample *now = build_thread(pair.current, BUILD_ID, 1);
        before->stall_bins[1] = 65535;
        now->stall_bins[1] = 3;
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->stall_p50_ns, 16384 + 2048);
        build_release(&pair);
}

Test(judge_facts_threads, without_stalls_there_is_no_quantile) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_thread(pair.current, BUILD_ID, 1);
        const struct thread_facts *row = row_of(build_facts(&pair), 1);

        cr_assert_eq(row->stalls, 0);
        cr_assert_eq(row->stall_p50_ns, ABSENT);
        cr_assert_eq(row->stall_p99_ns, ABSENT);
        build_release(&pair);
}
