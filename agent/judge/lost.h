/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time that threads wanted to run and could not, by cause: what verdict, severity and rules all start
 * from. With BPF these are the measured causes; from files they are upper bounds of what limits can have
 * done, and the rest.
 */
#include "judge.h"

struct lost_time {
        bool is_known;     /* something is known of this container's window */
        bool is_bound;     /* from files: quota and ancestor are at most this, contention is at least this */
        bool is_undecided; /* from files: delay is there, but nothing tells stall and wait apart */
        uint64_t wanted_ns;                                      /* run + stall + wait */
        uint64_t quota_ns, ancestor_ns, contention_ns, steal_ns; /* 0 where not known */
};

struct lost_time lost_time_of(const struct facts *facts);
static inline uint64_t lost_by_limits(const struct lost_time *lost) {
        return lost->quota_ns + lost->ancestor_ns;
}

/*
 * A cause is notable from 1 % of the wanted time on: figures agree with independent ones within 1 %, so less
 * than that may be noise.
 */
#define LOST_NOTABLE_PPM 10000
bool lost_is_notable(const struct lost_time *lost, uint64_t part_ns);

/* How bad the stalls are (both kinds of limit together). */
enum severity lost_severity(const struct facts *facts, const struct judge_options *options,
                            const struct lost_time *lost);
/*
 * The severity of the finding for one of the two kinds: that of the whole if @part_ns is at least half of it
 * or bad enough alone.
 */
enum severity lost_part_severity(const struct facts *facts, const struct judge_options *options,
                                 const struct lost_time *lost, uint64_t part_ns);
