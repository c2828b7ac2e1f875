/* SPDX-License-Identifier: Apache-2.0 */
/* Stall intervals, bursts and how many threads wanted to run at once. */
#include "judge_build.h"

Test(judge_facts_stalls, count_wall_longest_and_exact_quantiles) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_interval(pair.now, 11000, 11040, false);
        build_interval(pair.now, 12000, 12088, false);
        build_interval(pair.now, 13000, 13010, true);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_count, 3);
        cr_assert_eq(facts->stall_wall_ns, 138 * MS);
        cr_assert_eq(facts->stall_longest_ns, 88 * MS);
        cr_assert_eq(facts->stall_p50_ns, 40 * MS); /* nearest rank: 2nd of 3 */
        cr_assert_eq(facts->stall_p99_ns, 88 * MS);
        cr_assert_eq(facts->stalls_count, 3);
        cr_assert_eq(facts->stalls[0].start_ns, 12000 * MS);
        cr_assert_eq(facts->stalls[1].start_ns, 11000 * MS);
        cr_assert_eq(facts->stalls[2].start_ns, 13000 * MS);
        cr_assert(facts->stalls[2].above);
        build_release(&pair);
}

Test(judge_facts_stalls, quantiles_of_a_hundred) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        /* 50 stalls of 1..50 ms */
        for (uint64_t i = 1; i <= 50; i++)
                build_interval(pair.now, 10000 + i * 100, 10000 + i * 100 + i, false);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_p50_ns, 25 * MS);
        cr_assert_eq(facts->stall_p99_ns, 50 * MS); /* rank 49.5: the 50th */
        cr_assert_eq(facts->stall_wall_ns, 1275 * MS);
        cr_assert_eq(facts->stalls_count, FACTS_STALLS_MAX);
        cr_assert_eq(facts->stalls[0].end_ns - facts->stalls[0].start_ns, 50 * MS);
        cr_assert_eq(facts->stalls[19].end_ns - facts->stalls[19].start_ns, 31 * MS);
        build_release(&pair);
}

Test(judge_facts_stalls, are_clipped_to_the_window) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_interval(pair.now, 9000, 9900, false);   /* before */
        build_interval(pair.now, 9950, 10030, false);  /* across the start */
        build_interval(pair.now, 19980, 20040, false); /* still open at the end */
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_count, 2);
        cr_assert_eq(facts->stall_wall_ns, 50 * MS);
        cr_assert_eq(facts->stall_longest_ns, 30 * MS);
        build_release(&pair);
}

Test(judge_facts_stalls, overlapping_or_touching_ones_are_one) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_interval(pair.now, 11000, 11050, true);
        build_interval(pair.now, 11040, 11070, true);
        build_interval(pair.now, 11070, 11090, false);
        build_interval(pair.now, 11091, 11092, true);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_count, 2);
        cr_assert_eq(facts->stall_wall_ns, 91 * MS);
        cr_assert_eq(facts->stalls[0].end_ns, 11090 * MS);
        cr_assert_not(facts->stalls[0].above, "only above if all of it was");
        cr_assert(facts->stalls[1].above);
        build_release(&pair);
}

Test(judge_facts_stalls, none_is_zero_and_has_no_quantile) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_count, 0);
        cr_assert_eq(facts->stall_wall_ns, 0);
        cr_assert_eq(facts->stall_longest_ns, 0);
        cr_assert_eq(facts->stall_p50_ns, ABSENT);
        cr_assert_eq(facts->stalls_long, 0);
        build_release(&pair);
}

Test(judge_facts_stalls, are_absent_from_files) {
        struct pair pair = build_pair(PROBE_FILES);
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->stall_count, ABSENT);
        cr_assert_eq(facts->stall_wall_ns, ABSENT);
        cr_assert_eq(facts->stalls_long, ABSENT);
        cr_assert_eq(facts->runnable_max, ABSENT);
        cr_assert_eq(facts->runnable_p99, ABSENT);
        cr_assert_eq(facts->burst_count, ABSENT);
        cr_assert_eq(facts->burst_slowdown_permille, ABSENT);
        build_release(&pair);
}

Test(judge_facts_stalls, long_ones_are_at_or_above_the_threshold) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_interval(pair.now, 11000, 11049, false);
        build_interval(pair.now, 12000, 12050, false);
        build_interval(pair.now, 13000, 13051, false);
        pair.now->intervals[0].end_ns += MS - 1; /* 49.999999 ms */
        cr_assert_eq(build_facts(&pair)->stalls_long, 2);
        build_release(&pair);
}

Test(judge_facts_stalls, one_harm_is_not_counted_as_stall_and_as_burst) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        build_interval(pair.now, 11000, 11060, false);
        build_interval(pair.now, 12000, 12060, false);
        pair.before->bursts_stalled = 4;
        pair.now->bursts_stalled = 7;
        cr_assert_eq(build_facts(&pair)->stalls_long, 3, "bursts say more");
        pair.now->bursts_stalled = 5;
        cr_assert_eq(build_facts(&pair)->stalls_long, 2, "single stalls say more");
        pair.now->bursts_stalled = 3;
        cr_assert_eq(build_facts(&pair)->stalls_long, 2, "went backwards");
        pair.now->measured_whole = false;
        cr_assert_eq(build_facts(&pair)->stalls_long, 3, "began anew");
        build_release(&pair);
}

Test(judge_facts_stalls, bursts_figures_are_of_the_window) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.before->bursts = 10;
        pair.now->bursts = 35;
        /* 43 ms: 2^25 = 33.55 ms, quarter 8.39 ms: bin 1 + 4 * 15 + 1 is 41.94..50.33 ms */
        pair.before->burst_cpu_bins[0] = 5;
        pair.now->burst_cpu_bins[0] = 5;
        pair.now->burst_cpu_bins[62] = 25;
        /* 357 ms: 2^28 = 268 ms: bin 1 + 4 * 18 + 1 is 335.5..402.7 ms */
        pair.now->burst_gap_bins[74] = 25;
        pair.now->burst_cpu_max_ns = 44 * MS;
        pair.now->burst_longest_ns = 214 * MS;
        pair.now->worst_burst_ns = 214 * MS;
        pair.now->worst_burst_stall_ns = 167 * MS;
        pair.now->worst_burst_at_ns = 14312 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->burst_count, 25);
        cr_assert_eq(facts->burst_cpu_p50_ns, 44 * MS, "46.1 ms interpolated, capped at the known maximum");
        cr_assert_eq(facts->burst_cpu_p99_ns, 44 * MS);
        cr_assert_eq(facts->burst_cpu_max_ns, 44 * MS);
        cr_assert_eq(facts->burst_gap_p50_ns, 335544320 + 33554432);
        cr_assert_eq(facts->burst_longest_ns, 214 * MS);
        cr_assert_eq(facts->worst_burst_at_ns, 14312 * MS);
        cr_assert_eq(facts->burst_slowdown_permille, 4553); /* 214 / 47 */
        build_release(&pair);
}

Test(judge_facts_stalls, bursts_slowdown_table) {
        static const struct {
                uint64_t bursts, length_ms, stall_ms, permille;
        } rows[] = {
                        {0, 0, 0, ABSENT}, /* no bursts */
                        {1, 50, 0, 1000},  /* not slowed */
                        {1, 100, 50, 2000},       {1, 100, 99, 100000},
                        {1, 100, 100, ABSENT}, /* nothing left to divide by */
                        {1, 100, 101, ABSENT},    {1, ABSENT, 5, ABSENT},
                        {1, 100, ABSENT, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                pair.now->bursts = rows[i].bursts;
                pair.now->worst_burst_ns = is_known(rows[i].length_ms) ? rows[i].length_ms * MS : ABSENT;
                pair.now->worst_burst_stall_ns = is_known(rows[i].stall_ms) ? rows[i].stall_ms * MS : ABSENT;
                cr_assert_eq(build_facts(&pair)->burst_slowdown_permille, rows[i].permille, "row %zu", i);
                build_release(&pair);
        }
}

Test(judge_facts_stalls, bursts_without_one_the_maxima_of_an_older_window_do_not_show) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.before->bursts = pair.now->bursts = 9;
        pair.now->burst_cpu_max_ns = 44 * MS;
        pair.now->burst_longest_ns = 214 * MS;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->burst_count, 0);
        cr_assert_eq(facts->burst_cpu_max_ns, ABSENT);
        cr_assert_eq(facts->burst_longest_ns, ABSENT);
        cr_assert_eq(facts->burst_cpu_p50_ns, ABSENT);
        build_release(&pair);
}

/*
 * 9.9 s idle, 60 ms with one thread, 39.5 ms with four, 0.5 ms with eight: of 100 busy ms, 99 % have at most
 * four.
 */
Test(judge_facts_stalls, runnable_p99_is_weighted_by_time_and_leaves_idleness_out) {
        struct pair pair = build_pair(PROBE_TRACEPOINTS);
        pair.before->level_ns[0] = 500 * MS;
        pair.before->level_ns[8] = 1000 * MS;
        pair.now->level_ns[0] = 500 * MS + 9900 * MS;
        pair.now->level_ns[1] = 60 * MS;
        pair.now->level_ns[4] = 395 * MS / 10;
        pair.now->level_ns[8] = 1000 * MS + MS / 2;
        pair.now->runnable_max = 8;
        const struct facts *facts = build_facts(&pair);

        cr_assert_eq(facts->runnable_p99, 4);
        cr_assert_eq(facts->runnable_max, 8);
        build_release(&pair);
}

Test(judge_facts_stalls, runnable_p99_boundary) {
        static const struct {
                uint64_t low_us, high_us, p99;
        } rows[] = {{989, 11, 9}, {990, 10, 2}, {991, 9, 2}, {0, 0, 0}, {0, 1, 9}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                pair.now->level_ns[2] = rows[i].low_us * NS_PER_US;
                pair.now->level_ns[9] = rows[i].high_us * NS_PER_US;
                pair.now->runnable_max = 9;
                cr_assert_eq(build_facts(&pair)->runnable_p99, rows[i].p99, "row %zu", i);
                build_release(&pair);
        }
}

Test(judge_facts_stalls, runnable_above_31_a_bin_stands_for_its_highest_and_is_capped_at_the_maximum) {
        static const struct {
                size_t bin;
                uint64_t max, p99;
        } rows[] = {
                        {31, 31, 31},      {32, 400, 35}, /* 32..35 */
                        {39, 400, 63},                    /* 60..63 */
                        {40, 400, 71},                    /* 64..71 */
                        {47, 400, 127},                   /* 120..127 */
                        {40, 66, 66},                     /* the maximum is known to be less */
                        {63, 4000, 4000},                 /* the last one is open: 480 and more */
                        {63, ABSENT, 511},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct pair pair = build_pair(PROBE_TRACEPOINTS);
                pair.now->level_ns[rows[i].bin] = 5 * MS;
                pair.now->runnable_max = rows[i].max;
                cr_assert_eq(build_facts(&pair)->runnable_p99, rows[i].p99, "row %zu", i);
                build_release(&pair);
        }
}
