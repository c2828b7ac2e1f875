/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of groups, beyond the layouts of host_cgroup_cases.c. */
#include "../../agent/host/cgroup.h"

#include "../../agent/host/cgroup_internal.h"
#include "host_fixture.h"

#define V2_MOUNT "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"

/* A v2 machine whose process 100 is in @path. */
static void make_v2(struct fixture *fixture, const char *path) {
        fixture_make(fixture);
        fixture_write(fixture, "proc/self/mountinfo", V2_MOUNT);
        fixture_write(fixture, "proc/100/cgroup", "0::%s\n", path);
        fixture_write(fixture, "sys/fs/cgroup/cgroup.procs", "1\n");
}

static int look_up(struct fixture *fixture, struct cgroup_chain *ret_chain) {
        return cgroup_chain_of_pid(fixture->root, 100, fixture->arena, ret_chain, &fixture->why);
}

static struct cgroup_chain chain_of(struct fixture *fixture) {
        struct cgroup_chain chain;
        int r = look_up(fixture, &chain);

        cr_assert(r == 0, "%d: %s", r, fixture->why.text);
        return chain;
}

/* --- what a level says --- */

Test(host_cgroup, a_v2_level_has_all_its_figures) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;
        const struct cgroup_level *level = NULL;

        make_v2(&fixture, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "30000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max.burst", "5000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.weight", "10\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.stat",
                      "usage_usec 9\nnr_periods 5\nnr_throttled 4\nthrottled_usec 3\nnr_bursts "
                      "2\nburst_usec 1\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.stat.local", "throttled_usec 8\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.pressure",
                      "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 "
                      "avg300=0.00 total=6\n");
        fixture_write(&fixture, "sys/fs/cgroup/a.id", "4294967297 28\n");
        chain = chain_of(&fixture);
        level = &chain.levels[0];
        cr_expect(level->id == 4294967297);
        cr_expect(level->quota_ns == 30000000 && level->period_ns == 100000000 &&
                  level->burst_ns == 5000000);
        cr_expect(level->weight == 10);
        cr_expect(level->stat.usage_ns == 9000 && level->stat.nr_periods == 5 &&
                  level->stat.nr_throttled == 4);
        cr_expect(level->stat.throttled_ns == 3000 && level->stat.nr_bursts == 2 &&
                  level->stat.burst_ns == 1000);
        cr_expect(level->stat.local_throttled_ns == 8000);
        cr_expect(level->stat.pressure_some_ns == 7000 && level->stat.pressure_full_ns == 6000);
}

Test(host_cgroup, what_an_old_kernel_lacks_is_absent) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "30000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.stat",
                      "nr_periods 5\nnr_throttled 4\nthrottled_usec 3\n");
        chain = chain_of(&fixture);
        cr_expect(chain.levels[0].burst_ns == ABSENT);
        cr_expect(chain.levels[0].stat.nr_bursts == ABSENT && chain.levels[0].stat.burst_ns == ABSENT);
        cr_expect(chain.levels[0].stat.local_throttled_ns == ABSENT);
        cr_expect(chain.levels[0].stat.pressure_some_ns == ABSENT);
}

Test(host_cgroup, an_unreadable_limit_is_unknown_not_none) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max.errno", "%d\n", EACCES);
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.weight", "10\n");
        chain = chain_of(&fixture);
        cr_expect(chain.levels[0].limit == CGROUP_LIMIT_UNKNOWN);
        cr_expect(chain.limit_unknown && chain.tightest == -1);
        cr_expect(chain.levels[0].weight == 10);
}

Test(host_cgroup, a_group_that_vanished_is_unknown_after_a_refresh) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/a/b");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "90000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/b/cpu.max", "30000 100000\n");
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 0);
        cr_assert(remove(fixture_path(&fixture, "sys/fs/cgroup/a/b/cpu.max")) == 0);
        cr_assert(remove(fixture_path(&fixture, "sys/fs/cgroup/a/b")) == 0);
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        cr_expect(chain.levels[0].limit == CGROUP_LIMIT_UNKNOWN);
        cr_expect(chain.levels[0].id == ABSENT && chain.levels[0].stat.nr_periods == ABSENT);
        cr_expect_str_eq(chain.levels[0].path, "/a/b");
        cr_expect(chain.tightest == 1 && chain.limit_unknown);
}

Test(host_cgroup, levels_of_one_ratio_are_named_from_below) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/a/b");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "10000 20000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 0);
}

Test(host_cgroup, ratios_are_compared_exactly) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        /* They differ in the seventeenth digit, which a double does not hold. */
        make_v2(&fixture, "/a/b");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "10000000000000000 1000000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/b/cpu.max", "10000000000000001 1000000\n");
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 1);
}

/* --- the children's sum --- */

Test(host_cgroup, a_pods_level_knows_the_sum_of_its_containers_limits) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/pod/c1");
        fixture_write(&fixture, "sys/fs/cgroup/pod/cpu.max", "42000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/c1/cpu.max", "25000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/c2/cpu.max", "16700 100000\n");
        /* The sandbox and a runtime's monitor have no limit and want no CPU. */
        fixture_write(&fixture, "sys/fs/cgroup/pod/pause/cpu.max", "max 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/pause/cpu.weight", "1\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/pause/cgroup.procs", "12\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/crio-conmon-aa.scope/cpu.max", "max 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/pod/crio-conmon-aa.scope/cpu.weight", "100\n");
        chain = chain_of(&fixture);
        cr_expect(chain.levels[1].children_limit_milli == 250 + 167);
        cr_expect(chain.levels[0].children_limit_milli == ABSENT, "no children, no sum");
        cr_expect(chain.levels[2].children_limit_milli == ABSENT, "no limit, no question");
}

Test(host_cgroup, a_child_without_a_limit_leaves_no_sum) {
        static const struct {
                char cpu_max[32], weight[8], procs[16];
        } rows[] = {
                        {"max 100000\n", "100\n", "12\n"},   /* a container */
                        {"max 100000\n", "1\n", "12\n13\n"}, /* least weight, but more than a sandbox */
                        {"garbage\n", "1\n", "12\n"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct cgroup_chain chain;

                make_v2(&fixture, "/pod/c1");
                fixture_write(&fixture, "sys/fs/cgroup/pod/cpu.max", "42000 100000\n");
                fixture_write(&fixture, "sys/fs/cgroup/pod/c1/cpu.max", "25000 100000\n");
                fixture_write(&fixture, "sys/fs/cgroup/pod/c2/cpu.max", "%s", rows[i].cpu_max);
                fixture_write(&fixture, "sys/fs/cgroup/pod/c2/cpu.weight", "%s", rows[i].weight);
                fixture_write(&fixture, "sys/fs/cgroup/pod/c2/cgroup.procs", "%s", rows[i].procs);
                chain = chain_of(&fixture);
                cr_expect(chain.levels[1].children_limit_milli == ABSENT, "row %zu", i);
        }
}

/* --- where it is read --- */

Test(host_cgroup, usage_is_not_taken_from_another_cpuacct_group) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo",
                      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                      "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
        fixture_write(&fixture, "proc/100/cgroup", "2:cpuacct:/a\n1:cpu:/a/b\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpu/a/b/cpu.shares", "1024\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/cpuacct.usage", "3\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/a/cpuacct.usage", "2\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/a/b/cpuacct.usage", "1\n");
        chain = chain_of(&fixture);
        cr_assert(chain.levels_count == 3);
        cr_expect(chain.levels[0].stat.usage_ns == ABSENT, "the process is not in cpuacct's /a/b");
        cr_expect(chain.levels[1].stat.usage_ns == 2 && chain.levels[2].stat.usage_ns == 3);
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        cr_expect(chain.levels[0].stat.usage_ns == ABSENT && chain.levels[1].stat.usage_ns == 2);
}

Test(host_cgroup, cpuacct_may_be_mounted_deeper_than_cpu) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo",
                      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                      "33 31 0:30 /a /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
        fixture_write(&fixture, "proc/100/cgroup", "2:cpuacct:/a/b\n1:cpu:/a/b\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpu/a/b/cpu.shares", "1024\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/cpuacct.usage", "2\n");
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/b/cpuacct.usage", "1\n");
        chain = chain_of(&fixture);
        cr_assert(chain.levels_count == 3);
        cr_expect(chain.levels[0].stat.usage_ns == 1 && chain.levels[1].stat.usage_ns == 2);
        cr_expect(chain.levels[2].stat.usage_ns == ABSENT);
}

Test(host_cgroup, a_mount_that_another_one_covers_is_not_read) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        /* The first would show as much, but the directory there is of device 77. */
        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo",
                      "31 23 0:28 / /covered rw - cgroup2 cgroup rw\n"
                      "32 31 0:77 / /covered rw - tmpfs tmpfs rw\n"
                      "33 23 0:28 / /other rw - cgroup2 cgroup rw\n");
        fixture_write(&fixture, "proc/100/cgroup", "0::/g\n");
        fixture_write(&fixture, "covered/g/cpu.max", "10000 100000\n");
        fixture_write(&fixture, "covered/g.id", "5 77\n");
        fixture_write(&fixture, "other/g/cpu.max", "20000 100000\n");
        fixture_write(&fixture, "other/g.id", "6 28\n");
        chain = chain_of(&fixture);
        cr_expect_str_eq(chain.mount, "/other");
        cr_expect(chain.levels[0].quota_ns == 20000000 && chain.levels[0].id == 6);
}

Test(host_cgroup, a_process_whose_root_is_closed_to_us_is_an_access_error) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/../other");
        fixture_write(&fixture, "proc/100/mountinfo",
                      "31 23 0:28 /../other /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
        fixture_write(&fixture, "proc/100/root/sys/fs/cgroup.errno", "%d\n", EACCES);
        cr_expect(look_up(&fixture, &chain) == -EACCES);
        cr_expect(strstr(fixture.why.text, "/proc/100/root"), "%s", fixture.why.text);
}

Test(host_cgroup, a_process_that_is_gone_is_enoent) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo", V2_MOUNT);
        cr_expect(look_up(&fixture, &chain) == -ENOENT);
        cr_expect(strstr(fixture.why.text, "no such process"), "%s", fixture.why.text);
}

Test(host_cgroup, a_living_group_may_be_named_deleted) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/g (deleted)");
        fixture_write(&fixture, "sys/fs/cgroup/g (deleted)/cpu.max", "10000 100000\n");
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 0);
}

Test(host_cgroup, foreign_names_are_escaped_in_a_sentence) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/evil\x1b[31m");
        cr_expect(look_up(&fixture, &chain) == -ENODATA);
        cr_expect(!strchr(fixture.why.text, '\x1b') && strstr(fixture.why.text, "evil\\x1b"), "%s",
                  fixture.why.text);
}

Test(host_cgroup, groups_nested_too_deep_keep_the_leaf_and_the_upper_levels) {
        cleanup_fixture struct fixture fixture = {0};
        char path[512] = "", name[1024];
        struct cgroup_chain chain;

        for (unsigned i = 0; i < 99; i++)
                (void) snprintf(path + 2 * i, 3, "/d");
        make_v2(&fixture, path);
        (void) snprintf(name, sizeof(name), "sys/fs/cgroup%s/cpu.max", path);
        fixture_write(&fixture, name, "50000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/d/cpu.max", "40000 100000\n");
        chain = chain_of(&fixture);
        cr_assert(chain.levels_count == CGROUP_LEVELS_MAX);
        cr_expect_str_eq(chain.levels[0].path, path);
        cr_expect(strlen(chain.levels[1].path) == 2 * (CGROUP_LEVELS_MAX - 2));
        cr_expect_str_eq(chain.levels[CGROUP_LEVELS_MAX - 1].path, "/");
        cr_expect(chain.tightest == CGROUP_LEVELS_MAX - 2);
        cr_expect(chain.limit_unknown);
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        cr_expect(chain.limit_unknown);
}

/* --- of a path --- */

static void make_v1_tree(struct fixture *fixture) {
        fixture_make(fixture);
        fixture_write(fixture, "proc/self/cgroup", "3:memory:/\n1:cpu:/\n0::/\n");
        fixture_write(fixture, "proc/self/mountinfo",
                      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                      "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                      "34 31 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        fixture_write(fixture, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        fixture_write(fixture, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
        fixture_write(fixture, "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "50000\n");
        fixture_write(fixture, "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
        fixture_write(fixture, "sys/fs/cgroup/memory/m/cgroup.procs", "1\n");
        fixture_write(fixture, "sys/fs/cgroup/u/cgroup.procs", "1\n");
}

Test(host_cgroup, a_group_can_be_named_by_its_path_or_by_its_directory) {
        static const char names[][40] = {"/a/b", "a/b", "/a/b/", "/sys/fs/cgroup/cpu/a/b",
                                         "/sys/fs/cgroup/cpu/a/b//"};
        cleanup_fixture struct fixture fixture = {0};

        make_v1_tree(&fixture);
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                struct cgroup_chain chain;
                int r = cgroup_chain_of_path(fixture.root, names[i], fixture.arena, &chain, &fixture.why);

                cr_assert(r == 0, "%s: %s", names[i], fixture.why.text);
                cr_expect_str_eq(chain.path, "/a/b");
                cr_expect_str_eq(chain.mount, "/sys/fs/cgroup/cpu");
                cr_expect(chain.levels_count == 3 && chain.tightest == 0);
        }
}

Test(host_cgroup, the_root_group_can_be_named) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v1_tree(&fixture);
        cr_assert(cgroup_chain_of_path(fixture.root, "/", fixture.arena, &chain, &fixture.why) == 0);
        cr_expect(chain.levels_count == 1);
        cr_assert(cgroup_chain_of_path(fixture.root, "/sys/fs/cgroup/cpu", fixture.arena, &chain,
                                       &fixture.why) == 0);
        cr_expect(chain.levels_count == 1);
        cr_expect_str_eq(chain.path, "/");
}

Test(host_cgroup, a_path_that_is_no_group_of_the_controller_is_refused) {
        static const struct {
                char name[40];
                int error;
        } rows[] = {
                        {"/sys/fs/cgroup/memory/m", -EINVAL}, /* another controller */
                        {"/sys/fs/cgroup/u", -EINVAL},        /* the v2 tree, which has no cpu here */
                        {"/nope", -ENOENT},
                        {"/a/b/c", -ENOENT},
                        {"/a/../b", -EINVAL},
                        {"/..", -EINVAL},
                        {"..", -EINVAL},
                        {"/a//b", -EINVAL},
                        {"", -EINVAL},
        };
        cleanup_fixture struct fixture fixture = {0};

        make_v1_tree(&fixture);
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct cgroup_chain chain;
                int r;

                fixture.why.text[0] = '\0';
                r = cgroup_chain_of_path(fixture.root, rows[i].name, fixture.arena, &chain, &fixture.why);
                cr_expect(r == rows[i].error, "%s: %d", rows[i].name, r);
                cr_expect(fixture.why.text[0], "%s", rows[i].name);
        }
}

Test(host_cgroup, a_path_below_a_bind_mount_can_be_named_both_ways) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/cgroup", "0::/pod/c\n");
        fixture_write(&fixture, "proc/self/mountinfo",
                      "31 23 0:28 /pod/c /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
        fixture_write(&fixture, "sys/fs/cgroup/x/cpu.max", "10000 100000\n");
        cr_assert(cgroup_chain_of_path(fixture.root, "/pod/c/x", fixture.arena, &chain, &fixture.why) == 0);
        cr_expect_str_eq(chain.path, "/pod/c/x");
        cr_assert(cgroup_chain_of_path(fixture.root, "/sys/fs/cgroup/x", fixture.arena, &chain,
                                       &fixture.why) == 0);
        cr_expect_str_eq(chain.path, "/pod/c/x");
        cr_expect(chain.levels_count == 2 && chain.parent_hidden);
}

/* --- a tick --- */

Test(host_cgroup, within_a_tick_a_level_is_read_once) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        make_v2(&fixture, "/a/b");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "10000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
        cgroup_tick_begin(fixture.root);
        chain = chain_of(&fixture);
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 1 && chain.levels[1].quota_ns == 10000000);
        cr_expect_str_eq(chain.levels[1].path, "/a");
        cgroup_tick_end(fixture.root);
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 0 && chain.levels[1].quota_ns == 50000000);
        cgroup_tick_begin(fixture.root);
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "5000 100000\n");
        cgroup_tick_begin(fixture.root);
        chain = chain_of(&fixture);
        cr_expect(chain.tightest == 1, "a new tick remembers nothing of the last one");
}

/* --- this machine --- */

Test(host_cgroup, our_own_chain_can_be_read_twice_or_says_why_not) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain, again;
        int r;

        fixture_open(&fixture, NULL);
        r = cgroup_chain_of_pid(fixture.root, 0, fixture.arena, &chain, &fixture.why);
        if (r < 0) {
                cr_expect(r == -ENODATA && fixture.why.text[0], "%d: %s", r, fixture.why.text);
                cr_skip_test("no CPU controller is mounted here");
        }
        cr_assert(cgroup_chain_of_pid(fixture.root, getpid(), fixture.arena, &again, &fixture.why) == 0);
        cr_expect(chain.levels_count == again.levels_count);
        cr_expect(chain.levels[0].id != ABSENT && chain.levels[0].id == again.levels[0].id);
        cr_assert(cgroup_chain_of_path(fixture.root, chain.levels[0].path, fixture.arena, &again,
                                       &fixture.why) == 0);
        cr_expect(chain.levels[0].id == again.levels[0].id);
}
