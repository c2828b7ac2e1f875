/* SPDX-License-Identifier: Apache-2.0 */
/* Other ways than a higher limit. */
#include "../../agent/judge/remedy.h"
#include "judge_build.h"

#define ID64 "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

static void open_limited(struct court *court, const char *cgroup) {
        court_open(court, 10000);
        court_limit(court, LIMIT_CONTAINER, cgroup, 250, 250);
        court->facts.cpu_used_ns = 1080 * MS;
        court->facts.burst_ns = 0;
        court->facts.burst_cpu_p99_ns = 43 * MS;
}

Test(judge_remedy_other, removing_a_limit) {
        static const struct {
                const char *cgroup, *v1_mount, *how;
        } rows[] = {
                        {"/kubepods/pod1/x", NULL, "only resources.requests.cpu: 150m, no"},
                        {NULL, NULL, "only resources.requests.cpu: 150m, no"},
                        {"/docker/" ID64, NULL, "--cpu-shares"},
                        {"/machine.slice/libpod-" ID64 ".scope", NULL, "--cpu-shares"},
                        {"/system.slice/a.service", NULL, "systemctl set-property 'a.service' CPUQuota="},
                        {"/lab/a", NULL, "echo max > '/sys/fs/cgroup/lab/a/cpu.max'"},
                        {"/lab/a", "/sys/fs/cgroup/cpu",
                         "echo -1 > '/sys/fs/cgroup/cpu/lab/a/cpu.cfs_quota_us'"},
                        {"/lab/a", "/x'y", "echo max > "},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                struct fix fix;
                open_limited(&court, rows[i].cgroup);
                court.facts.cgroup_v1_mount = rows[i].v1_mount;
                cr_assert_eq(remedy_remove_limit(&court.facts, court.arena, &fix), 1);
                cr_assert(strstr(fix.how, rows[i].how), "row %zu: %s", i, fix.how);
                court_close(&court);
        }
}

Test(judge_remedy_other, a_declared_request_stands_and_other_levels_are_not_ours) {
        struct court court;
        struct fix fix;
        open_limited(&court, "/kubepods/pod1/x");
        court.facts.request_milli = 123;
        cr_assert_eq(remedy_remove_limit(&court.facts, court.arena, &fix), 1);
        cr_assert(strstr(fix.how, "requests.cpu: 123m"), "%s", fix.how);
        court.facts.request_milli = court.facts.cpu_used_ns = ABSENT;
        cr_assert_eq(remedy_remove_limit(&court.facts, court.arena, &fix), 1);
        cr_assert(strstr(fix.how, "only resources.requests.cpu, no"), "%s", fix.how);
        court.facts.limit_level = LIMIT_POD;
        cr_assert_eq(remedy_remove_limit(&court.facts, court.arena, &fix), 0);
        court.facts.has_limit = false;
        cr_assert_eq(remedy_remove_limit(&court.facts, court.arena, &fix), 0);
        court_close(&court);
}

Test(judge_remedy_other, burst_credit_only_where_it_would_do) {
        static const struct {
                uint64_t burst_us, credit, used_ms;
                const char *value;
        } rows[] = {
                        {43000, 0, 1080, "18000"}, {25000, 0, 1080, NULL}, {25001, 0, 1080, "1"},
                        {50000, 0, 1080, "25000"}, {50001, 0, 1080, NULL}, {43000, ABSENT, 1080, NULL},
                        {43000, 0, 2499, "18000"}, {43000, 0, 2500, NULL}, {43000, 0, ABSENT, NULL},
                        {ABSENT, 0, 1080, NULL},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                struct fix fix;
                open_limited(&court, "/kubepods/pod1/x");
                court.facts.burst_cpu_p99_ns =
                                is_known(rows[i].burst_us) ? rows[i].burst_us * NS_PER_US : ABSENT;
                court.facts.burst_ns = rows[i].credit;
                court.facts.cpu_used_ns = is_known(rows[i].used_ms) ? rows[i].used_ms * MS : ABSENT;
                cr_assert_eq(remedy_burst_credit(&court.facts, court.arena, &fix), rows[i].value != NULL,
                             "row %zu", i);
                if (rows[i].value) {
                        cr_assert_str_eq(fix.value, rows[i].value, "row %zu: %s", i, fix.value);
                        cr_assert_str_eq(fix.who, "node");
                }
                court_close(&court);
        }
}

/* A quota of one slice (5 ms) at least, in steps of 5 ms, 10 ms at least. */
Test(judge_remedy_other, shorter_periods) {
        static const struct {
                uint64_t limit, period_ms, shorter_ms;
        } rows[] = {
                        {250, 100, 20}, {500, 100, 10},    {1000, 100, 10},       {5000, 100, 10},
                        {240, 100, 25}, {50, 100, ABSENT}, {60, 100, 85},         {250, 20, ABSENT},
                        {250, 21, 20},  {0, 100, ABSENT},  {ABSENT, 100, ABSENT}, {250, ABSENT, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_limited(&court, "/a");
                court.facts.limit_milli = rows[i].limit;
                court.facts.period_ns = is_known(rows[i].period_ms) ? rows[i].period_ms * MS : ABSENT;
                uint64_t period = remedy_shorter_period(&court.facts);
                cr_assert_eq(period, is_known(rows[i].shorter_ms) ? rows[i].shorter_ms * MS : ABSENT,
                             "row %zu: %" PRIu64, i, period);
                court_close(&court);
        }
}

Test(judge_remedy_other, a_period_is_set_together_with_its_quota) {
        static const struct {
                const char *cgroup, *v1_mount, *how, *who;
        } rows[] = {
                        {"/kubepods/pod1/x", NULL, "cpuCFSQuotaPeriod", "node"},
                        {NULL, NULL, "cpuCFSQuotaPeriod", "node"},
                        {"/docker/" ID64, NULL, "--cpu-period 20000 with --cpu-quota 5000", "app"},
                        {"/a.service", NULL, "CPUQuotaPeriodSec=20ms", "app"},
                        {"/lab/a", NULL, "echo '5000 20000' > '/sys/fs/cgroup/lab/a/cpu.max'", "app"},
                        {"/lab/a", "/sys/fs/cgroup/cpu",
                         "echo 5000 > '/sys/fs/cgroup/cpu/lab/a/cpu.cfs_quota_us' && echo 20000 > "
                         "'/sys/fs/cgroup/cpu/lab/a/cpu.cfs_period_us'",
                         "app"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                struct fix fix;
                open_limited(&court, rows[i].cgroup);
                court.facts.cgroup_v1_mount = rows[i].v1_mount;
                cr_assert_eq(remedy_period(&court.facts, 20 * MS, court.arena, &fix), 1);
                cr_assert_str_eq(fix.value, "20 ms");
                cr_assert(strstr(fix.how, rows[i].how), "row %zu: %s", i, fix.how);
                cr_assert_str_eq(fix.who, rows[i].who, "row %zu", i);
                cr_assert_eq(remedy_period(&court.facts, 100 * MS, court.arena, &fix), 0, "it is that");
                cr_assert_eq(remedy_period(&court.facts, ABSENT, court.arena, &fix), 0);
                court_close(&court);
        }
}

Test(judge_remedy_other, consequences_name_two_runtimes_at_most) {
        struct court court;
        open_limited(&court, "/a");
        court.facts.cpus_online = 48;
        for (int i = 0; i < 3; i++) {
                struct parallelism *row = court_runtime(&court, "jvm", i == 0 ? "a\x1b" : "b", 1);
                row->aware = AWARENESS_QUOTA;
                row->follows = i == 0;
        }
        court_scanned(&court);
        cr_assert_str_eq(remedy_consequences(&court.facts, 3000, court.arena),
                         "a\\x1b becomes 3 by itself; b becomes 3 with the next start");
        cr_assert_str_eq(remedy_consequences(&court.facts, 900, court.arena), "", "nothing changes");
        court.facts.cpus_online = 0;
        cr_assert_str_eq(remedy_consequences(&court.facts, ABSENT, court.arena), "",
                         "it would become a number that is not known");
        court_close(&court);
}

Test(judge_remedy_other, a_full_arena_is_an_error) {
        struct court court;
        struct fix fix;
        open_limited(&court, "/lab/a");
        struct arena *arena = arena_new(1);
        cr_assert_eq(remedy_remove_limit(&court.facts, arena, &fix), -ENOMEM);
        cr_assert_eq(remedy_burst_credit(&court.facts, arena, &fix), -ENOMEM);
        cr_assert_eq(remedy_period(&court.facts, 20 * MS, arena, &fix), -ENOMEM);
        arena_free(arena);
        court_close(&court);
}
