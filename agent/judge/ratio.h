/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Exact integer arithmetic for limits and shares. A quota times a period, or a duration times a million,
 * does not fit in 64 bits; a double would round a limit that is equal into one that is tighter.
 */
#include <stdbool.h>
#include <stdint.h>

#include "../base/absent.h"

__extension__ typedef unsigned __int128 ratio_wide;

static inline uint64_t known_or_zero(uint64_t value) {
        return is_known(value) ? value : 0;
}

/* @a - @b, but never below zero: two figures that were not read at the same moment. */
static inline uint64_t difference_or_zero(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* @a * @b / @c, rounded down. ABSENT if @c is 0; the largest known value if it does not fit. */
static inline uint64_t ratio_scale(uint64_t a, uint64_t b, uint64_t c) {
        if (c == 0)
                return ABSENT;
        ratio_wide result = (ratio_wide) a * b / c;
        return result < ABSENT ? (uint64_t) result : ABSENT - 1;
}

/* The same, rounded up. */
static inline uint64_t ratio_scale_up(uint64_t a, uint64_t b, uint64_t c) {
        if (c == 0)
                return ABSENT;
        ratio_wide result = ((ratio_wide) a * b + c - 1) / c;
        return result < ABSENT ? (uint64_t) result : ABSENT - 1;
}

/* @a / @b < @c / @d. */
static inline bool ratio_is_below(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
        return (ratio_wide) a * d < (ratio_wide) c * b;
}

/* @part is at least @ppm millionths of @whole. Nothing is never a share of anything. */
static inline bool ratio_reaches(uint64_t part, uint64_t whole, uint64_t ppm) {
        return part > 0 && (ratio_wide) part * 1000000 >= (ratio_wide) whole * ppm;
}
