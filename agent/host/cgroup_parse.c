/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU files of one group. Pure functions over text: a bad value is unknown, never a guess and never a crash. */
#include <string.h>

#include "../base/clock.h"
#include "../base/number.h"
#include "cgroup_internal.h"

/* A cpu.max with one field: the kernel's own default when only the quota is written (cpu_period_quota_parse()). */
#define PERIOD_DEFAULT_US 100000u

/* A file may lack its final newline; nothing else may follow its last field. */
static size_t without_newline(const char *text, size_t length) {
        return length > 0 && text[length - 1] == '\n' ? length - 1 : length;
}

uint64_t cgroup_us_to_ns(uint64_t us) {
        uint64_t ns;

        return is_known(us) && !__builtin_mul_overflow(us, NS_PER_US, &ns) && is_known(ns) ? ns : ABSENT;
}

uint64_t cgroup_milli(uint64_t quota_ns, uint64_t period_ns) {
        unsigned __int128 milli = ((unsigned __int128) quota_ns * 1000 + period_ns / 2) / period_ns;

        if (milli == 0)
                return 1;
        return milli < ABSENT ? (uint64_t) milli : ABSENT - 1;
}

static void set_limit(uint64_t quota_us, uint64_t period_us, struct cgroup_limit *ret_limit) {
        uint64_t quota_ns = cgroup_us_to_ns(quota_us), period_ns = cgroup_us_to_ns(period_us);

        if (is_known(quota_ns) && is_known(period_ns))
                *ret_limit = (struct cgroup_limit){CGROUP_LIMIT_SET, quota_ns, period_ns};
        else
                ret_limit->state = CGROUP_LIMIT_UNKNOWN;
}

void cgroup_parse_max(const char *text, size_t length, struct cgroup_limit *ret_limit) {
        const char *end = text + without_newline(text, length);
        const char *blank = memchr(text, ' ', (size_t) (end - text));
        size_t quota_length = (size_t) ((blank ? blank : end) - text);
        uint64_t quota_us, period_us = PERIOD_DEFAULT_US;

        *ret_limit = (struct cgroup_limit){.state = CGROUP_LIMIT_UNKNOWN};
        if (blank) {
                while (blank < end && *blank == ' ')
                        blank++;
                if (number_parse_u64_n(blank, (size_t) (end - blank), &period_us) < 0 || period_us == 0)
                        return;
        }
        if (quota_length == 3 && memcmp(text, "max", 3) == 0)
                ret_limit->state = CGROUP_LIMIT_NONE;
        else if (number_parse_u64_n(text, quota_length, &quota_us) == 0 && quota_us > 0)
                set_limit(quota_us, period_us, ret_limit);
}

void cgroup_parse_quota(const char *quota, size_t quota_length, const char *period, size_t period_length,
                        struct cgroup_limit *ret_limit) {
        uint64_t quota_us, period_us;

        *ret_limit = (struct cgroup_limit){.state = CGROUP_LIMIT_UNKNOWN};
        quota_length = without_newline(quota, quota_length);
        if (quota_length == 2 && memcmp(quota, "-1", 2) == 0) {
                ret_limit->state = CGROUP_LIMIT_NONE;
                return;
        }
        if (number_parse_u64_n(quota, quota_length, &quota_us) < 0)
                return;
        /* Kernels without the bandwidth controller, and the root of RHEL 6, show 0. */
        if (quota_us == 0) {
                ret_limit->state = CGROUP_LIMIT_NONE;
                return;
        }
        if (!period || number_parse_u64_n(period, without_newline(period, period_length), &period_us) < 0)
                return;
        if (period_us == 0)
                ret_limit->state = CGROUP_LIMIT_NONE;
        else
                set_limit(quota_us, period_us, ret_limit);
}

uint64_t cgroup_parse_number(const char *text, size_t length) {
        uint64_t value;

        return number_parse_u64_n(text, without_newline(text, length), &value) == 0 ? value : ABSENT;
}

struct key {
        const char name[16];
        size_t offset;
        bool in_us;
};

/* "KEY VALUE" lines. Of a key that comes twice, the last counts; a bad value makes it ABSENT. */
static void parse_keys(const char *text, size_t length, const struct key *keys, size_t keys_count,
                       void *out) {
        for (const char *line = text, *end = text + length, *next; line < end; line = next) {
                const char *newline = memchr(line, '\n', (size_t) (end - line)),
                           *stop = newline ? newline : end;
                const char *blank = memchr(line, ' ', (size_t) (stop - line));

                next = newline ? newline + 1 : end;
                if (!blank)
                        continue;
                for (size_t i = 0; i < keys_count; i++) {
                        size_t n = strlen(keys[i].name);
                        uint64_t value = ABSENT;

                        if ((size_t) (blank - line) != n || memcmp(line, keys[i].name, n) != 0)
                                continue;
                        (void) number_parse_u64_n(blank + 1, (size_t) (stop - blank - 1), &value);
                        *(uint64_t *) ((char *) out + keys[i].offset) =
                                        keys[i].in_us ? cgroup_us_to_ns(value) : value;
                }
        }
}

void cgroup_parse_stat(const char *text, size_t length, struct cgroup_cpu_stat *stat) {
        static const struct key keys[] = {
                        {"nr_periods", offsetof(struct cgroup_cpu_stat, nr_periods), false},
                        {"nr_throttled", offsetof(struct cgroup_cpu_stat, nr_throttled), false},
                        {"throttled_usec", offsetof(struct cgroup_cpu_stat, throttled_ns), true},
                        {"throttled_time", offsetof(struct cgroup_cpu_stat, throttled_ns),
                         false}, /* v1: ns */
                        {"nr_bursts", offsetof(struct cgroup_cpu_stat, nr_bursts), false},
                        {"burst_usec", offsetof(struct cgroup_cpu_stat, burst_ns), true},
                        {"burst_time", offsetof(struct cgroup_cpu_stat, burst_ns), false}, /* v1: ns */
                        {"usage_usec", offsetof(struct cgroup_cpu_stat, usage_ns), true},
        };

        parse_keys(text, length, keys, ELEMENTS(keys), stat);
}

void cgroup_parse_stat_local(const char *text, size_t length, struct cgroup_cpu_stat *stat) {
        static const struct key keys[] = {
                        {"throttled_usec", offsetof(struct cgroup_cpu_stat, local_throttled_ns), true},
                        {"throttled_time", offsetof(struct cgroup_cpu_stat, local_throttled_ns), false},
        };

        parse_keys(text, length, keys, ELEMENTS(keys), stat);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123": microseconds. The root's "full" line is always 0 (psi_show()). */
void cgroup_parse_pressure(const char *text, size_t length, struct cgroup_cpu_stat *stat) {
        static const char total[] = " total=";

        for (const char *line = text, *end = text + length, *next; line < end; line = next) {
                const char *newline = memchr(line, '\n', (size_t) (end - line)),
                           *stop = newline ? newline : end;
                const char *value = memmem(line, (size_t) (stop - line), total, sizeof(total) - 1);
                uint64_t us = ABSENT;

                next = newline ? newline + 1 : end;
                if (!value)
                        continue;
                value += sizeof(total) - 1;
                (void) number_parse_u64_n(value, (size_t) (stop - value), &us);
                if (stop - line > 5 && memcmp(line, "some ", 5) == 0)
                        stat->pressure_some_ns = cgroup_us_to_ns(us);
                else if (stop - line > 5 && memcmp(line, "full ", 5) == 0)
                        stat->pressure_full_ns = cgroup_us_to_ns(us);
        }
}
