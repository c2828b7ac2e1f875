/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Did more work at once than the limit has CPUs, and was that what used the quota up? What the rules about parallelism and about bursts both
 * start from, so that they never blame the same stalls on two things.
 */
#include "lost.h"

struct excess {
        uint64_t allowed; /* CPUs of the limit, rounded up; ABSENT: no limit is known */
        uint64_t at_once; /* threads that wanted to run at once, 99th percentile; ABSENT: not measured */
        const struct parallelism_facts
                        *row; /* the setting to blame; NULL: a program that nobody recognised, or none */
        struct pool pool;     /* of the threads that no setting accounts for */
        uint64_t recommended; /* what the row or pool should be; ABSENT: no number */
        uint64_t busy;        /* threads of the row or pool that worked */
        bool collides;        /* limits stalled, and more than they have CPUs for worked at the same time */
        bool is_far;          /* at least twice as many */
};

/* 0 or -ENOMEM. */
int excess_of(const struct facts *facts, const struct lost_time *lost, struct arena *arena,
              struct excess *ret_excess);
