/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock) {
        struct timespec now;

        /* Cannot fail for these two clocks; a clock before 1970 counts as 1970. */
        if (clock_gettime(clock, &now) < 0 || now.tv_sec < 0)
                return 0;
        return (uint64_t) now.tv_sec * NS_PER_S + (uint64_t) now.tv_nsec;
}

struct instant clock_now(void) {
        return (struct instant){
                        .mono_ns = read_clock(CLOCK_MONOTONIC),
                        .real_ns = read_clock(CLOCK_REALTIME),
        };
}

uint64_t clock_real_ns(const struct instant *at, uint64_t mono_ns) {
        uint64_t real_ns;

        if (mono_ns <= at->mono_ns)
                return at->real_ns > at->mono_ns - mono_ns ? at->real_ns - (at->mono_ns - mono_ns) : 0;
        if (__builtin_add_overflow(at->real_ns, mono_ns - at->mono_ns, &real_ns))
                return UINT64_MAX;
        return real_ns;
}

/* Digits are cut, not rounded: a moment is never shown later than it was. */
static const char *format_fraction(char out[static 16], uint64_t real_ns, unsigned digits) {
        static const uint64_t unit[] = {NS_PER_S, NS_PER_MS, NS_PER_US, 1};

        out[0] = '\0';
        if (digits > 9)
                digits = 9;
        if (digits >= 3)
                (void) snprintf(out, 16, ".%0*u", (int) (digits / 3 * 3),
                                (unsigned) (real_ns % NS_PER_S / unit[digits / 3]));
        return out;
}

char *clock_format(char out[static CLOCK_TEXT_MAX], uint64_t real_ns, unsigned digits) {
        time_t seconds = (time_t) (real_ns / NS_PER_S);
        char fraction[16], day[24];
        struct tm utc;

        out[0] = '\0';
        if (gmtime_r(&seconds, &utc) && strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) > 0)
                (void) snprintf(out, CLOCK_TEXT_MAX, "%s%sZ", day,
                                format_fraction(fraction, real_ns, digits));
        return out;
}

char *clock_format_time(char out[static CLOCK_TEXT_MAX], uint64_t real_ns) {
        unsigned second = (unsigned) (real_ns / NS_PER_S % 86400);
        char fraction[16];

        (void) snprintf(out, CLOCK_TEXT_MAX, "%02u:%02u:%02u%sZ", second / 3600, second / 60 % 60,
                        second % 60, format_fraction(fraction, real_ns, 3));
        return out;
}
