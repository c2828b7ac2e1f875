/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * "Absent" is a value: a figure that could not be measured is never shown as zero. Every measured u64
 * of a snapshot, of the facts and of a report may be ABSENT; the forms leave such a field out.
 */
#include <stdbool.h>
#include <stdint.h>

#define ABSENT UINT64_MAX

static inline bool is_known(uint64_t value) {
        return value != ABSENT;
}

/* Difference of two readings of one counter; ABSENT if either is, or if the counter went backwards. */
static inline uint64_t known_delta(uint64_t now, uint64_t before) {
        return is_known(now) && is_known(before) && now >= before ? now - before : ABSENT;
}

/* Adds @value to *@sum; an ABSENT sum takes the value over, an ABSENT value changes nothing. */
static inline void known_add(uint64_t *sum, uint64_t value) {
        if (is_known(value))
                *sum = is_known(*sum) ? *sum + value : value;
}
