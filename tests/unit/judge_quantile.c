/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles from the kernel's bins: bin 0 is below 2^shift; then four an octave. With shift 10 the edges are
 * 1024, 1280, 1536, 1792, 2048, 2560, …
 */
#include "judge_build.h"

#define BINS 16

Test(judge_quantile, empty_is_absent) {
        uint32_t bins[BINS] = {0};
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, ABSENT), ABSENT);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, 7), ABSENT);
        cr_assert_eq(facts_quantile_u32(bins, 0, 10, 500, ABSENT), ABSENT);
}

Test(judge_quantile, bin_zero_reaches_from_nothing_to_two_to_the_shift) {
        uint32_t bins[BINS] = {4};
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, ABSENT), 512);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 1000, ABSENT), 1024);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 0, ABSENT), 0);
}

Test(judge_quantile, bins_are_quarters_of_an_octave) {
        static const struct {
                size_t bin;
                uint64_t start, end;
        } rows[] = {
                        {1, 1024, 1280}, {2, 1280, 1536}, {3, 1536, 1792}, {4, 1792, 2048},
                        {5, 2048, 2560}, {8, 3584, 4096}, {9, 4096, 5120},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint32_t bins[BINS] = {0};
                bins[rows[i].bin] = 10;
                cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 0, ABSENT), rows[i].start, "bin %zu",
                             rows[i].bin);
                cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 1000, ABSENT), rows[i].end, "bin %zu",
                             rows[i].bin);
        }
}

Test(judge_quantile, interpolates_inside_of_the_bin_the_rank_falls_in) {
        uint32_t bins[BINS] = {0};
        bins[1] = 90;
        bins[5] = 10;
        /* rank 50 of 90 in 1024..1280; rank 95 is the 5th of 10 in 2048..2560; rank 99 the 9th */
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, ABSENT), 1024 + 256 * 50 / 90);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 950, ABSENT), 2048 + 256);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 990, ABSENT), 2508);
}

Test(judge_quantile, a_rank_at_the_edge_stays_in_the_lower_bin) {
        uint32_t bins[BINS] = {0};
        bins[1] = 50;
        bins[5] = 50;
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 499, ABSENT), 1279);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, ABSENT), 1280);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 501, ABSENT), 2048 + 512 / 500);
}

Test(judge_quantile, is_capped_at_the_known_maximum) {
        uint32_t bins[BINS] = {0};
        bins[5] = 1;
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 990, 2100), 2100);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 10, 2100), 2053);
}

Test(judge_quantile, the_last_bin_reaches_up_to_the_known_maximum) {
        uint32_t bins[BINS] = {0};
        bins[BINS - 1] = 2; /* begins at 2^13 * 1.5 = 12288 */
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 1000, 100000), 100000);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 500, 100000), 12288 + (100000 - 12288) / 2);
        cr_assert_eq(facts_quantile_u32(bins, BINS, 10, 1000, ABSENT), 14336);
}

Test(judge_quantile, full_counters_do_not_overflow) {
        uint32_t bins[SNAPSHOT_BURST_BINS];
        memset(bins, 0xff, sizeof(bins));
        uint64_t p50 = facts_quantile_u32(bins, SNAPSHOT_BURST_BINS, 10, 500, ABSENT);
        /*
         * 104 equal bins: half of them are bins 0..51, the edge is the start of bin 52: octave 12, quarter 3
         */
        cr_assert_eq(p50, (UINT64_C(1) << 22) + 3 * (UINT64_C(1) << 20));
}
