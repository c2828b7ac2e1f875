/* SPDX-License-Identifier: Apache-2.0 */
/* The value a limit needs, and the setting that changes it. */
#include "../../agent/judge/remedy.h"
#include "judge_build.h"

#define ID64 "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

Test(judge_remedy, amounts_a_person_would_write) {
        static const struct {
                uint64_t from, to;
        } rows[] = {
                        {0, 0},       {1, 50},      {50, 50},     {51, 100},  {199, 200},
                        {200, 200},   {201, 300},   {430, 500},   {500, 500}, {1999, 2000},
                        {2000, 2000}, {2001, 2500}, {3600, 4000},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_assert_eq(remedy_round_up(rows[i].from), rows[i].to, "row %zu", i);
}

struct need {
        uint64_t burst_p99, burst_p50, gap, period, wanted, at_once, limit;
        unsigned cpus;
        uint64_t milli;
};

Test(judge_remedy, the_smallest_limit_that_would_have_absorbed_what_was_seen) {
        static const struct need rows[] = {
                        /* the design's story: 43 ms every 400 ms at 250m */
                        {43, 43, 357, 100, 500, 1, 250, 4, 500},
                        /* exactly the quota of a round limit, and just above it */
                        {50, 50, 357, 100, 500, 1, 250, 4, 500},
                        {51, 50, 357, 100, 500, 1, 250, 4, 600},
                        /*
                         * bursts follow each other: 30 + 20 ms is two in a period of 100 ms; 31 + 20 still
                         * begins twice
                         */
                        {30, 30, 20, 100, 500, 1, 250, 4, 600},
                        {31, 31, 20, 100, 500, 1, 250, 4, 700},
                        {30, 30, 70, 100, 500, 1, 250, 4, 300},
                        {30, 30, 69, 100, 500, 1, 250, 4, 600},
                        /* a period of 10 ms */
                        {8, 8, 100, 10, 500, 2, 250, 4, 800},
                        /* no more than a CPU for each thread, or all CPUs */
                        {900, 900, 357, 100, 500, 1, 250, 4, 1000},
                        {900, 900, 357, 100, 500, 3, 250, 4, 3000},
                        {900, 900, 357, 100, 500, 48, 250, 4, 4000},
                        {900, 900, 357, 100, 500, 48, 250, 0, 9000},
                        {900, 900, 357, 100, 500, 0, 250, 4, 4000},
                        /* no finished burst: what was wanted on average */
                        {ABSENT, ABSENT, ABSENT, 100, 620, 8, 250, 4, 700},
                        {ABSENT, ABSENT, ABSENT, ABSENT, 48000, 48, 250, 4, 4000},
                        {43, 43, 357, ABSENT, 620, 8, 250, 4, 700},
                        /* always more than what there is */
                        {10, 10, 357, 100, 100, 1, 250, 4, 300},
                        {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, 250, 0, 300},
                        {900, 900, 357, 100, 500, 1, 1000, 4, 1100},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct need *row = &rows[i];
                struct court court;
                court_open(&court, 10000);
                court.facts.burst_cpu_p99_ns = is_known(row->burst_p99) ? row->burst_p99 * MS : ABSENT;
                court.facts.burst_cpu_p50_ns = is_known(row->burst_p50) ? row->burst_p50 * MS : ABSENT;
                court.facts.burst_gap_p50_ns = is_known(row->gap) ? row->gap * MS : ABSENT;
                court.facts.wanted_milli = row->wanted;
                court.facts.runnable_max = row->at_once;
                court.facts.cpus_online = row->cpus;
                uint64_t period = is_known(row->period) ? row->period * MS : ABSENT;
                uint64_t milli = remedy_needed_milli(&court.facts, row->limit, period);
                cr_assert_eq(milli, row->milli, "row %zu: %" PRIu64, i, milli);
                court_close(&court);
        }
}

struct setting {
        enum limit_level level;
        const char *cgroup, *setting, *value, *how, *who;
};

Test(judge_remedy, the_setting_follows_from_whose_group_it_is) {
        static const struct setting rows[] = {
                        {LIMIT_CONTAINER, "/kubepods/burstable/pod1/" ID64, "resources.limits.cpu", "500m",
                         "--subresource resize", "app"},
                        {LIMIT_CONTAINER,
                         "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID64 ".scope",
                         "resources.limits.cpu", "500m", "kubectl patch", "app"},
                        {LIMIT_CONTAINER, "cri-containerd-" ID64 ".scope", "resources.limits.cpu", "500m",
                         "resize", "app"},
                        {LIMIT_CONTAINER, "/../crio-" ID64 ".scope", "resources.limits.cpu", "500m",
                         "resize", "app"},
                        {LIMIT_CONTAINER, "/x/pod9dae2ba7-9594-4920-9822-4320df8538c7/" ID64,
                         "resources.limits.cpu", "500m", "resize", "app"},
                        {LIMIT_POD, "/kubepods/pod1", "spec.resources.limits.cpu", "500m", "spec.resources",
                         "app"},
                        {LIMIT_POD, NULL, "spec.resources.limits.cpu", "500m", "spec.resources", "app"},
                        {LIMIT_CONTAINER, "/docker/" ID64, "--cpus", "0.5",
                         "docker update --cpus 0.5 a1a1a1a1a1a1", "app"},
                        {LIMIT_CONTAINER, "/system.slice/docker-" ID64 ".scope", "--cpus", "0.5",
                         "docker update --cpus 0.5 a1a1a1a1a1a1", "app"},
                        {LIMIT_CONTAINER, "/machine.slice/libpod-" ID64 ".scope", "--cpus", "0.5",
                         "podman update --cpus 0.5 a1a1a1a1a1a1", "app"},
                        {LIMIT_CONTAINER, "/system.slice/web.service", "CPUQuota=", "50%",
                         "systemctl set-property 'web.service' CPUQuota=50%", "app"},
                        {LIMIT_CONTAINER, "/system.slice/a\\x2db.service", "CPUQuota=", "50%",
                         "systemctl set-property 'a\\x2db.service' CPUQuota=50%", "app"},
                        {LIMIT_ANCESTOR, "/machine.slice", "CPUQuota=", "50%",
                         "systemctl set-property 'machine.slice' CPUQuota=50%", "platform"},
                        {LIMIT_ANCESTOR, "machine.slice", "CPUQuota=", "50%",
                         "systemctl set-property 'machine.slice' CPUQuota=50%", "platform"},
                        {LIMIT_CONTAINER, "/lab/app", "cpu.max", "50000 100000",
                         "echo '50000 100000' > '/sys/fs/cgroup/lab/app/cpu.max'", "app"},
                        {LIMIT_ANCESTOR, "/lab", "cpu.max", "50000 100000", "'/sys/fs/cgroup/lab/cpu.max'",
                         "platform"},
                        /* nobody knows whose it is: all three */
                        {LIMIT_CONTAINER, ID64, "the CPU limit", "500m",
                         "resources.limits.cpu: 500m; Docker: --cpus 0.5; a systemd unit: "
                         "CPUQuota=50%",
                         "app"},
                        {LIMIT_CONTAINER, "/", "the CPU limit", "500m", "Kubernetes", "app"},
                        {LIMIT_CONTAINER, NULL, "the CPU limit", "500m", "Kubernetes", "app"},
                        {LIMIT_CONTAINER, "app", "the CPU limit", "500m", "Kubernetes", "app"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct arena *arena = arena_new(1 << 16);
                struct fix fix;
                cr_assert_eq(remedy_set_limit(arena, NULL, rows[i].level, rows[i].cgroup, 500, 100 * MS,
                                              &fix),
                             0);
                cr_assert_str_eq(fix.setting, rows[i].setting, "row %zu: %s", i, fix.setting);
                cr_assert_str_eq(fix.value, rows[i].value, "row %zu: %s", i, fix.value);
                cr_assert(strstr(fix.how, rows[i].how), "row %zu: %s", i, fix.how);
                cr_assert_str_eq(fix.who, rows[i].who, "row %zu", i);
                arena_free(arena);
        }
}

/* A group's name is chosen by whoever made the group. */
Test(judge_remedy, a_name_that_means_something_to_a_shell_gets_into_no_command) {
        static const char *const names[] = {
                        "/x/$(reboot)", "/x/';reboot;'.service", "/x/a b.service", "/x/\x1b[2J.slice",
                        "/x/a\nb",      "/x/`id`.scope",         "/x/\"y",
        };
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                struct arena *arena = arena_new(1 << 16);
                struct fix fix;
                cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, names[i], 500, 100 * MS, &fix),
                             0);
                cr_assert_str_eq(fix.setting, "the CPU limit", "row %zu", i);
                cr_assert_not(strstr(fix.how, names[i] + 3), "row %zu: %s", i, fix.how);
                arena_free(arena);
        }
}

Test(judge_remedy, amounts_in_each_tools_own_form) {
        static const struct {
                uint64_t milli;
                const char *docker, *systemd, *group;
        } rows[] = {
                        {50, "0.05", "5%", "5000 100000"},          {250, "0.25", "25%", "25000 100000"},
                        {1000, "1", "100%", "100000 100000"},       {1500, "1.5", "150%", "150000 100000"},
                        {12500, "12.5", "1250%", "1250000 100000"}, {333, "0.333", "34%", "33300 100000"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct arena *arena = arena_new(1 << 16);
                struct fix fix;
                cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, "/docker/" ID64, rows[i].milli,
                                              ABSENT, &fix),
                             0);
                cr_assert_str_eq(fix.value, rows[i].docker, "row %zu: %s", i, fix.value);
                cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, "/a.service", rows[i].milli,
                                              ABSENT, &fix),
                             0);
                cr_assert_str_eq(fix.value, rows[i].systemd, "row %zu: %s", i, fix.value);
                cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, "/a", rows[i].milli, ABSENT,
                                              &fix),
                             0);
                cr_assert_str_eq(fix.value, rows[i].group, "row %zu: %s", i, fix.value);
                arena_free(arena);
        }
}

Test(judge_remedy, the_period_stays_what_it_is) {
        struct arena *arena = arena_new(1 << 16);
        struct fix fix;
        cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, "/a", 500, 10 * MS, &fix), 0);
        cr_assert_str_eq(fix.value, "5000 10000");
        arena_free(arena);
}

Test(judge_remedy, a_full_arena_is_an_error) {
        static const char *const groups[] = {"/docker/" ID64, "/a.service", "/a", "/kubepods/x", NULL};
        for (size_t i = 0; i < ELEMENTS(groups); i++) {
                struct arena *arena = arena_new(1);
                struct fix fix;
                cr_assert_eq(remedy_set_limit(arena, NULL, LIMIT_CONTAINER, groups[i], 500, ABSENT, &fix),
                             -ENOMEM, "row %zu", i);
                arena_free(arena);
        }
}

Test(judge_remedy, cgroup_v1_has_its_own_file) {
        struct arena *arena = arena_new(1 << 16);
        struct fix fix;

        cr_assert_eq(remedy_set_limit(arena, "/sys/fs/cgroup/cpu", LIMIT_CONTAINER, "/lab/app", 500,
                                      100 * MS, &fix),
                     0);
        cr_assert_str_eq(fix.setting, "cpu.cfs_quota_us");
        cr_assert_str_eq(fix.value, "50000");
        cr_assert_str_eq(fix.how, "echo 50000 > '/sys/fs/cgroup/cpu/lab/app/cpu.cfs_quota_us'");
        arena_free(arena);
}

/* What follows a large burst in its period: usual ones, but no more than all of them used on average. */
Test(judge_remedy, many_tiny_bursts_in_a_row_are_rare) {
        static const struct {
                uint64_t burst_p99_us, burst_p50_us, gap_us, used_ms, unstalled, limit, milli;
        } rows[] = {
                        /* 60 ms, and 2,380 times 30 us could begin; they used 10 ms a period */
                        {60000, 30, 12, 1000, ABSENT, 250, 700},
                        {60000, 30, 12, ABSENT, ABSENT, 250, 1400},
                        /* once more would fit, and less than the average */
                        {30000, 30000, 20000, 5000, ABSENT, 250, 600},
                        {30000, 30000, 20000, 2000, ABSENT, 250, 500},
                        /* one thread uses no more than one CPU, however many pile up behind it */
                        {300000, 300000, 400000, 1000, 1499, 250, 1000},
                        {300000, 300000, 400000, 1000, 1500, 250, 3000},
                        /* a whole CPU is not used up by one thread: the average hides the bursts */
                        {300000, 300000, 400000, 1000, 1100, 1000, 3000},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court.facts.burst_cpu_p99_ns = rows[i].burst_p99_us * NS_PER_US;
                court.facts.burst_cpu_p50_ns = rows[i].burst_p50_us * NS_PER_US;
                court.facts.burst_gap_p50_ns = rows[i].gap_us * NS_PER_US;
                court.facts.cpu_used_ns = is_known(rows[i].used_ms) ? rows[i].used_ms * MS : ABSENT;
                court.facts.unstalled_milli = rows[i].unstalled;
                court.facts.runnable_max = 8;
                court.facts.cpus_online = 8;
                uint64_t milli = remedy_needed_milli(&court.facts, rows[i].limit, 100 * MS);
                cr_assert_eq(milli, rows[i].milli, "row %zu: %" PRIu64, i, milli);
                court_close(&court);
        }
}
