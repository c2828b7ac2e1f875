/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Time is an argument: the clock is read in cmd/ only, and passed down as an instant. */
#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

struct instant {
        uint64_t mono_ns; /* CLOCK_MONOTONIC: all differences; the clock of bpf_ktime_get_ns() */
        uint64_t real_ns; /* CLOCK_REALTIME: for people only */
};

struct instant clock_now(void);
/* Wall-clock time of a monotonic moment, as seen from @at. */
uint64_t clock_real_ns(const struct instant *at, uint64_t mono_ns);

#define CLOCK_TEXT_MAX 40
/* RFC 3339 UTC with @digits (0, 3, 6, 9) fractional digits: "2026-11-30T12:00:30Z". */
char *clock_format(char out[static CLOCK_TEXT_MAX], uint64_t real_ns, unsigned digits);
/* Only the time of day with milliseconds: "12:00:14.312Z". */
char *clock_format_time(char out[static CLOCK_TEXT_MAX], uint64_t real_ns);
