/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers of the cgroup reader, as tables: pure functions over text. */
#include "../../agent/host/cgroup_internal.h"

#include "host_fixture.h"

#define TEXT(literal) literal, sizeof(literal) - 1

Test(host_cgroup_parse, cpu_max_of_every_shape) {
        static const struct {
                const char *text;
                size_t length;
                enum cgroup_limit_state state;
                uint64_t quota_ns, period_ns;
        } rows[] = {
                        {TEXT("200000 100000\n"), CGROUP_LIMIT_SET, 200000000, 100000000},
                        {TEXT("200000 100000"), CGROUP_LIMIT_SET, 200000000, 100000000},
                        {TEXT("200000   100000\n"), CGROUP_LIMIT_SET, 200000000, 100000000},
                        {TEXT("500000"), CGROUP_LIMIT_SET, 500000000, 100000000},
                        {TEXT("1000 1000000\n"), CGROUP_LIMIT_SET, 1000000, 1000000000},
                        {TEXT("18446744073709551 100000\n"), CGROUP_LIMIT_SET,
                         UINT64_C(18446744073709551000), 100000000},
                        {TEXT("max 100000\n"), CGROUP_LIMIT_NONE, 0, 0},
                        {TEXT("max\n"), CGROUP_LIMIT_NONE, 0, 0},
                        {TEXT("max"), CGROUP_LIMIT_NONE, 0, 0},
                        {TEXT(""), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT(" "), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("0 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 0\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("max 0\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("-1 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 -100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("123max 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("maximum 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 100000 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 100000\n\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 \n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT(" 100000 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000\t100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("1e5 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 1000\0000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("18446744073709552 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("99999999999999999999999 100000\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {TEXT("100000 99999999999999999999999\n"), CGROUP_LIMIT_UNKNOWN, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct cgroup_limit limit;

                cgroup_parse_max(rows[i].text, rows[i].length, &limit);
                cr_expect(limit.state == rows[i].state, "row %zu: %s", i, rows[i].text);
                cr_expect(limit.quota_ns == rows[i].quota_ns && limit.period_ns == rows[i].period_ns,
                          "row %zu", i);
        }
}

Test(host_cgroup_parse, v1_quota_and_period_of_every_shape) {
        static const struct {
                const char *quota, *period;
                enum cgroup_limit_state state;
                uint64_t quota_ns, period_ns;
        } rows[] = {
                        {"50000\n", "100000\n", CGROUP_LIMIT_SET, 50000000, 100000000},
                        {"50000", "100000", CGROUP_LIMIT_SET, 50000000, 100000000},
                        {"-1\n", "100000\n", CGROUP_LIMIT_NONE, 0, 0},
                        {"-1", NULL, CGROUP_LIMIT_NONE, 0, 0},
                        {"-1\n", "garbage\n", CGROUP_LIMIT_NONE, 0, 0},
                        {"0\n", "0\n", CGROUP_LIMIT_NONE, 0, 0},
                        {"0\n", NULL, CGROUP_LIMIT_NONE, 0, 0},
                        {"50000\n", "0\n", CGROUP_LIMIT_NONE, 0, 0},
                        {"50000\n", NULL, CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"50000\n", "", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"50000\n", "-100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"-2\n", "100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"", "100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"max\n", "100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"50000 100000\n", "100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
                        {"99999999999999999999\n", "100000\n", CGROUP_LIMIT_UNKNOWN, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct cgroup_limit limit;

                cgroup_parse_quota(rows[i].quota, strlen(rows[i].quota), rows[i].period,
                                   rows[i].period ? strlen(rows[i].period) : 0, &limit);
                cr_expect(limit.state == rows[i].state, "row %zu: %s", i, rows[i].quota);
                cr_expect(limit.quota_ns == rows[i].quota_ns && limit.period_ns == rows[i].period_ns,
                          "row %zu", i);
        }
}

static struct cgroup_cpu_stat unknown_stat(void) {
        return cgroup_level_unknown().stat;
}

Test(host_cgroup_parse, cpu_stat_of_v2_is_in_microseconds) {
        static const char text[] =
                        "usage_usec 1000\nuser_usec 600\nsystem_usec 400\nnice_usec "
                        "0\ncore_sched.force_idle_usec 0\n"
                        "nr_periods 7\nnr_throttled 3\nthrottled_usec 250\nnr_bursts 2\nburst_usec 5\n";
        struct cgroup_cpu_stat stat = unknown_stat();

        cgroup_parse_stat(text, sizeof(text) - 1, &stat);
        cr_expect(stat.usage_ns == 1000000);
        cr_expect(stat.nr_periods == 7 && stat.nr_throttled == 3);
        cr_expect(stat.throttled_ns == 250000);
        cr_expect(stat.nr_bursts == 2 && stat.burst_ns == 5000);
        cr_expect(stat.local_throttled_ns == ABSENT);
}

Test(host_cgroup_parse, cpu_stat_of_v1_is_in_nanoseconds) {
        static const char text[] = "nr_periods 7\nnr_throttled 3\nthrottled_time 250\nwait_sum 9\nnr_bursts "
                                   "2\nburst_time 5";
        struct cgroup_cpu_stat stat = unknown_stat();

        cgroup_parse_stat(text, sizeof(text) - 1, &stat);
        cr_expect(stat.throttled_ns == 250);
        cr_expect(stat.nr_bursts == 2 && stat.burst_ns == 5, "the last line may lack its newline");
        cr_expect(stat.usage_ns == ABSENT, "v1 has it in cpuacct.usage");
}

Test(host_cgroup_parse, a_bad_value_is_absent_and_the_other_keys_stay) {
        static const struct {
                const char *text;
                size_t length;
        } rows[] = {
                        {TEXT("nr_throttled -3\nnr_periods 7\n")},
                        {TEXT("nr_throttled\nnr_periods 7\n")},
                        {TEXT("nr_throttled \nnr_periods 7\n")},
                        {TEXT("nr_throttled 3 4\nnr_periods 7\n")},
                        {TEXT("nr_throttled 99999999999999999999\nnr_periods 7\n")},
                        {TEXT("nr_throttled 0x3\nnr_periods 7\n")},
                        {TEXT("nr_throttledx 3\nnr_periods 7\n")},
                        {TEXT("xnr_throttled 3\nnr_periods 7\n")},
                        {TEXT(" nr_throttled 3\nnr_periods 7\n")},
                        {TEXT("\n\n\0\xff nr_throttled\nnr_periods 7\n")},
                        {TEXT("nr_periods 6\nnr_periods 7\n")},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct cgroup_cpu_stat stat = unknown_stat();

                cgroup_parse_stat(rows[i].text, rows[i].length, &stat);
                cr_expect(stat.nr_throttled == ABSENT, "row %zu", i);
                cr_expect(stat.nr_periods == 7, "row %zu", i);
        }
}

Test(host_cgroup_parse, a_time_that_overflows_is_absent) {
        struct cgroup_cpu_stat stat = unknown_stat();

        cgroup_parse_stat(TEXT("throttled_usec 18446744073709552\n"), &stat);
        cr_expect(stat.throttled_ns == ABSENT);
        cgroup_parse_stat(TEXT("throttled_usec 18446744073709551\n"), &stat);
        cr_expect(stat.throttled_ns == UINT64_C(18446744073709551000));
}

Test(host_cgroup_parse, cpu_stat_local_of_both_versions) {
        struct cgroup_cpu_stat stat = unknown_stat();

        cgroup_parse_stat_local(TEXT("throttled_usec 12\n"), &stat);
        cr_expect(stat.local_throttled_ns == 12000);
        cgroup_parse_stat_local(TEXT("throttled_time 12\n"), &stat);
        cr_expect(stat.local_throttled_ns == 12);
        cr_expect(stat.throttled_ns == ABSENT);
}

Test(host_cgroup_parse, cpu_pressure) {
        struct cgroup_cpu_stat stat = unknown_stat();

        cgroup_parse_pressure(TEXT("some avg10=1.00 avg60=0.50 avg300=0.10 total=123\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=45\n"),
                              &stat);
        cr_expect(stat.pressure_some_ns == 123000 && stat.pressure_full_ns == 45000);

        stat = unknown_stat();
        cgroup_parse_pressure(TEXT("some avg10=1.00 total=-1\nfull avg10=0.00\nany total=3\n"), &stat);
        cr_expect(stat.pressure_some_ns == ABSENT && stat.pressure_full_ns == ABSENT);
}

Test(host_cgroup_parse, a_file_of_one_number) {
        cr_expect(cgroup_parse_number(TEXT("1024\n")) == 1024);
        cr_expect(cgroup_parse_number(TEXT("1024")) == 1024);
        cr_expect(cgroup_parse_number(TEXT("0\n")) == 0);
        cr_expect(cgroup_parse_number(TEXT("")) == ABSENT);
        cr_expect(cgroup_parse_number(TEXT("-1\n")) == ABSENT);
        cr_expect(cgroup_parse_number(TEXT("1 2\n")) == ABSENT);
        cr_expect(cgroup_parse_number(TEXT("1\n2\n")) == ABSENT);
}

Test(host_cgroup_parse, thousandths_of_a_cpu_to_the_nearest) {
        cr_expect(cgroup_milli(50000000, 100000000) == 500);
        cr_expect(cgroup_milli(33333000, 100000000) == 333);
        cr_expect(cgroup_milli(66666000, 100000000) == 667);
        cr_expect(cgroup_milli(1, 1000000000) == 1, "a limit is never nothing");
        cr_expect(cgroup_milli(UINT64_MAX - 1, 1) == ABSENT - 1);
}

Test(host_cgroup_parse, membership_of_every_layout) {
        static const struct {
                const char *text;
                size_t length;
                enum cgroup_version version; /* UNKNOWN: -ENODATA */
                const char *path, *usage;
        } rows[] = {
                        {TEXT("0::/\n"), CGROUP_V2, "/", NULL},
                        {TEXT("0::/a"), CGROUP_V2, "/a", NULL},
                        {TEXT("0::/../x\n"), CGROUP_V2, "/../x", NULL},
                        {TEXT("0::/a b:c::d\\012\n"), CGROUP_V2, "/a b:c::d\\012", NULL},
                        {TEXT("1:cpu:/g\n0::/x\n"), CGROUP_V1, "/g", NULL},
                        {TEXT("0::/x\n1:cpu:/g\n"), CGROUP_V1, "/g", NULL},
                        {TEXT("2:cpuacct:/a\n1:cpu:/g\n"), CGROUP_V1, "/g", "/a"},
                        {TEXT("4:cpu,cpuacct:/g\n"), CGROUP_V1, "/g", "/g"},
                        {TEXT("4:cpuacct,cpu:/g\n"), CGROUP_V1, "/g", "/g"},
                        {TEXT("4:cpuset,cpu,x:/g\n"), CGROUP_V1, "/g", NULL},
                        {TEXT("3:cpuset:/a\n2:cpuacct:/b\n1:name=cpu:/c\n0::/d\n"), CGROUP_V2, "/d", NULL},
                        {TEXT("0:cpu:/g\n0::/x\n"), CGROUP_V2, "/x", NULL},
                        {TEXT("junk\n:\n::\nx:cpu:/g\n1:cpu\n1:cpu:g\n1:cpu:\n\n0::/x\n"), CGROUP_V2, "/x",
                         NULL},
                        {TEXT("1:cpu:/a\0b\n0::/x\n"), CGROUP_V2, "/x", NULL},
                        {TEXT("3:cpuset:/a\n"), CGROUP_VERSION_UNKNOWN, NULL, NULL},
                        {TEXT(""), CGROUP_VERSION_UNKNOWN, NULL, NULL},
                        {TEXT("0:"), CGROUP_VERSION_UNKNOWN, NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct cgroup_membership membership = {0};
                int r = cgroup_parse_membership(rows[i].text, rows[i].length, &membership);

                if (rows[i].version == CGROUP_VERSION_UNKNOWN) {
                        cr_expect(r == -ENODATA, "row %zu", i);
                        continue;
                }
                cr_assert(r == 0, "row %zu", i);
                cr_expect(membership.version == rows[i].version, "row %zu", i);
                cr_expect(membership.path_length == strlen(rows[i].path) &&
                                          memcmp(membership.path, rows[i].path, membership.path_length) == 0,
                          "row %zu: %.*s", i, (int) membership.path_length, membership.path);
                cr_expect(!membership.usage_path == !rows[i].usage, "row %zu", i);
                if (rows[i].usage && membership.usage_path)
                        cr_expect(membership.usage_length == strlen(rows[i].usage) &&
                                                  memcmp(membership.usage_path, rows[i].usage,
                                                         membership.usage_length) == 0,
                                  "row %zu", i);
        }
}

Test(host_cgroup_parse, mounts_that_count_and_lines_that_do_not) {
        static const char text[] = "31 23 0:28 /deep/er /mnt/b rw - cgroup2 none rw\n"
                                   "32 23 0:29 / /a\\040b\\011c\\012d\\134e rw shared:1 master:2 - cgroup x "
                                   "rw,cpuacct,cpu\n"
                                   "33 23 0:30 /s /mnt/set rw - cgroup x rw,cpuset\n"
                                   "34 23 0:31 net:[4026531840] /mnt/n rw - cgroup x rw,cpu\n"
                                   "35 23 0:31 / relative rw - cgroup x rw,cpu\n"
                                   "36 23 031 / /mnt/device rw - cgroup x rw,cpu\n"
                                   "37 23 0:31 / /mnt/nodash rw shared:1 cgroup x rw,cpu\n"
                                   "38 23 0:31 / /mnt/type rw - cgroup3 x rw,cpu\n"
                                   "39 23 0:31 / /mnt/short - cgroup\n"
                                   "40 23 0:31 / /mnt/cpu rw - tmpfs - cgroup rw,cpu\n"
                                   " - cgroup\n"
                                   "41 23 0:32 /s\\999\\04 /mnt/odd rw - cgroup x rw,name=cpu";
        cleanup_arena struct arena *arena = arena_new(1 << 20);
        struct cgroup_mount *mounts;
        size_t count;

        cr_assert(cgroup_parse_mounts(text, sizeof(text) - 1, arena, &mounts, &count) == 0);
        cr_assert(count == 4, "%zu", count);
        cr_expect_str_eq(mounts[0].point, "/a b\tc\nd\\e");
        cr_expect(mounts[0].version == CGROUP_V1 && mounts[0].has_cpu && mounts[0].has_usage);
        cr_expect(mounts[0].device == 29, "minor numbers below 256 are the device number");
        cr_expect_str_eq(mounts[1].root, "/s");
        cr_expect(!mounts[1].has_cpu && !mounts[1].has_usage, "cpuset is not cpu");
        cr_expect_str_eq(mounts[2].root, "/deep/er");
        cr_expect(mounts[2].version == CGROUP_V2 && mounts[2].has_cpu);
        cr_expect_str_eq(mounts[3].root, "/s\\999\\04");
        cr_expect(!mounts[3].has_cpu);
}

Test(host_cgroup_parse, more_mounts_than_are_kept_leave_the_most_telling_ones) {
        cleanup_arena struct arena *arena = arena_new(8 << 20);
        cleanup_free char *text = calloc(1, 1 << 20);
        struct cgroup_mount *mounts;
        size_t count, length = 0;

        cr_assert(arena && text);
        for (unsigned i = 0; i < 1000; i++)
                length += (size_t) snprintf(text + length, (1 << 20) - length,
                                            "31 23 0:28 /root%0*u /mnt/%u rw - cgroup2 x rw\n",
                                            1000 - (int) i, i, i);
        length += (size_t) snprintf(text + length, (1 << 20) - length,
                                    "31 23 0:28 / /mnt rw - cgroup2 x rw\n");
        cr_assert(cgroup_parse_mounts(text, length, arena, &mounts, &count) == 0);
        cr_expect(count == CGROUP_MOUNTS_MAX);
        cr_expect_str_eq(mounts[0].root, "/");
        cr_expect(strlen(mounts[1].root) == 8, "%s", mounts[1].root);
}

Test(host_cgroup_parse, a_path_is_below_another_at_a_component) {
        static const struct {
                const char *path, *top, *rest; /* NULL: not below */
        } rows[] = {
                        {"/", "/", ""},           {"/a", "/", "/a"},       {"/a", "/a", ""},
                        {"/a/b", "/a", "/b"},     {"/ab", "/a", NULL},     {"/b", "/a", NULL},
                        {"/", "/a", NULL},        {"/../x", "/", NULL},    {"/..", "/", NULL},
                        {"/../x", "/..", "/x"},   {"/../x", "/../x", ""},  {"/../../x", "/..", NULL},
                        {"/../x", "/../y", NULL}, {"/a/../b", "/a", NULL}, {"/a/..b/c..", "/a", "/..b/c.."},
                        {"/...", "/", "/..."},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const char *rest = NULL;
                bool is_below = cgroup_path_below(rows[i].path, rows[i].top, &rest);

                cr_assert(is_below == !!rows[i].rest, "row %zu", i);
                if (is_below)
                        cr_expect_str_eq(rest, rows[i].rest, "row %zu: %s", i, rest);
        }
}
