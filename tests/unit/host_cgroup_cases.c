/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts that other readers of cgroup limits get wrong, one test a layout: its number is that of the fixture in
 * tests/fixtures/cgroup. In each, process 100 is looked up.
 */
#include "../../agent/host/cgroup.h"

#include "host_fixture.h"

#define TARGET 100

static struct cgroup_chain chain_of(struct fixture *fixture) {
        struct cgroup_chain chain;
        int r = cgroup_chain_of_pid(fixture->root, TARGET, fixture->arena, &chain, &fixture->why);

        cr_assert(r == 0, "%d: %s", r, fixture->why.text);
        return chain;
}

static int failure_of(struct fixture *fixture) {
        struct cgroup_chain chain = {.levels_count = 12345};
        int r = cgroup_chain_of_pid(fixture->root, TARGET, fixture->arena, &chain, &fixture->why);

        cr_assert(r < 0);
        cr_expect(chain.levels_count == 12345, "an output is set only on success");
        cr_expect(fixture->why.text[0], "a failure has a sentence");
        return r;
}

static uint64_t limit_of(const struct cgroup_chain *chain) {
        bool is_capped;

        return cgroup_chain_limit_milli(chain, 0, &is_capped);
}

static void expect_limit(const struct cgroup_chain *chain, uint64_t milli, const char *level) {
        cr_expect(limit_of(chain) == milli, "limit: %llu", (unsigned long long) limit_of(chain));
        cr_assert(chain->tightest >= 0);
        cr_expect_str_eq(chain->levels[chain->tightest].path, level);
        cr_expect(!chain->limit_unknown);
}

static void expect_none(const struct cgroup_chain *chain) {
        cr_expect(chain->tightest == -1);
        cr_expect(limit_of(chain) == ABSENT);
        cr_expect(!chain->limit_unknown);
}

Test(host_cgroup_cases, case_01_limit_at_the_root_of_a_namespace) {
        FIXTURE(fixture, "cgroup/01-limit-of-two");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/");
        cr_expect(chain.version == CGROUP_V2);
        cr_expect_str_eq(chain.mount, "/sys/fs/cgroup");
        cr_expect_str_eq(chain.path, "/");
        cr_expect(chain.levels_count == 1);
        cr_expect(chain.levels[0].quota_ns == 200000000 && chain.levels[0].period_ns == 100000000);
        cr_expect(chain.parent_hidden, "the root of the hierarchy has no cpu.max, so this is not it");
}

Test(host_cgroup_cases, case_02_max_is_no_limit) {
        FIXTURE(fixture, "cgroup/02-max");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_none(&chain);
}

Test(host_cgroup_cases, case_03_half_a_cpu) {
        FIXTURE(fixture, "cgroup/03-half-a-cpu");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 500, "/");
}

Test(host_cgroup_cases, case_04_one_and_a_half_is_not_rounded) {
        FIXTURE(fixture, "cgroup/04-one-and-a-half");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1500, "/");
}

Test(host_cgroup_cases, case_05_period_of_a_second) {
        FIXTURE(fixture, "cgroup/05-period-of-a-second");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 10, "/");
        cr_expect(chain.levels[0].period_ns == 1000000000);
}

Test(host_cgroup_cases, case_06_one_field_has_the_default_period) {
        FIXTURE(fixture, "cgroup/06-one-field");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 5000, "/");
        cr_expect(chain.levels[0].period_ns == 100000000);
}

Test(host_cgroup_cases, case_07_no_final_newline) {
        FIXTURE(fixture, "cgroup/07-no-final-newline");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/");
}

Test(host_cgroup_cases, case_08_pod_level_is_named) {
        FIXTURE(fixture, "cgroup/08-pod-level");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/pod");
        cr_expect(chain.tightest == 1);
        cr_assert(chain.levels_count == 3);
        cr_expect_str_eq(chain.levels[0].path, "/pod/ctr");
        cr_expect_str_eq(chain.levels[2].path, "/");
        cr_expect(!chain.parent_hidden);
}

Test(host_cgroup_cases, case_09_the_lowest_level_wins_not_the_outermost) {
        FIXTURE(fixture, "cgroup/09-leaf-is-tighter");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1000, "/pod/ctr");
        cr_expect(chain.tightest == 0);
        cr_expect(chain.levels[1].limit == CGROUP_LIMIT_SET && chain.levels[1].quota_ns == 500000000);
}

Test(host_cgroup_cases, case_10_a_leaf_without_the_controller_has_its_parents_limit) {
        FIXTURE(fixture, "cgroup/10-no-controller-at-leaf");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 3000, "/pod");
        cr_expect(chain.levels[0].limit == CGROUP_LIMIT_NONE);
        cr_expect(chain.levels[0].weight == ABSENT && chain.levels[0].stat.nr_periods == ABSENT);
}

Test(host_cgroup_cases, case_11_a_slice_above_the_pod_is_named) {
        FIXTURE(fixture, "cgroup/11-slice-level");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2500, "/kube.slice");
        cr_expect(chain.tightest == 2 && chain.levels_count == 4);
}

Test(host_cgroup_cases, case_12_a_bind_mounts_root_is_cut_from_the_path) {
        FIXTURE(fixture, "cgroup/12-host-path-bind-mount");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1500, "/kubepods/pod1/c1");
        cr_expect(chain.levels_count == 1);
        cr_expect(chain.parent_hidden, "what lies above the bind mount is not visible");
        cr_expect_str_eq(chain.path, "/kubepods/pod1/c1");
}

Test(host_cgroup_cases, case_13_a_child_below_a_bind_mount) {
        FIXTURE(fixture, "cgroup/13-bind-mount-child");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1500, "/kubepods/pod1/c1");
        cr_expect(chain.levels_count == 2);
        cr_expect(chain.levels[0].quota_ns == 300000000);
        cr_expect_str_eq(chain.levels[0].path, "/kubepods/pod1/c1/child");
}

Test(host_cgroup_cases, case_14_a_root_is_cut_at_a_component_only) {
        FIXTURE(fixture, "cgroup/14-prefix-boundary");

        cr_expect(failure_of(&fixture) == -ENODATA);
}

Test(host_cgroup_cases, case_15_outside_of_our_mount_the_targets_own_is_used) {
        FIXTURE(fixture, "cgroup/15-outside-of-our-mount");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/../other");
        cr_expect_str_eq(chain.mount, "/proc/100/root/sys/fs/cgroup");
        cr_expect_str_eq(chain.path, "/../other");
        cr_expect(chain.parent_hidden);
}

Test(host_cgroup_cases, case_16_v1_bind_mount) {
        FIXTURE(fixture, "cgroup/16-v1-bind-mount");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/kubepods/pod1/c1");
        cr_expect(chain.version == CGROUP_V1);
        cr_expect_str_eq(chain.mount, "/sys/fs/cgroup/cpu,cpuacct");
        cr_expect(chain.levels[0].stat.usage_ns == 123456789);
        cr_expect(chain.parent_hidden);
}

Test(host_cgroup_cases, case_17_v1_controllers_in_the_other_order) {
        FIXTURE(fixture, "cgroup/17-v1-cpuacct-first");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2000, "/kubepods/pod1/c1");
}

Test(host_cgroup_cases, case_18_v1_cpu_mounted_alone) {
        FIXTURE(fixture, "cgroup/18-v1-cpu-alone");
        struct cgroup_chain chain = chain_of(&fixture);
        const struct cgroup_level *leaf = &chain.levels[0];

        expect_limit(&chain, 3000, "/g");
        cr_expect(leaf->weight == 1024);
        cr_expect(leaf->stat.nr_periods == 10 && leaf->stat.nr_throttled == 3);
        cr_expect(leaf->stat.throttled_ns == 12345678, "v1 counts in nanoseconds");
        cr_expect(leaf->stat.usage_ns == 5000000, "from the hierarchy of cpuacct");
        cr_expect(leaf->stat.pressure_some_ns == ABSENT);
        cr_expect(chain.levels[1].stat.usage_ns == 999999999);
        cr_expect(!chain.parent_hidden);
}

Test(host_cgroup_cases, case_19_v1_parent_is_named) {
        FIXTURE(fixture, "cgroup/19-v1-parent");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 500, "/pod");
        cr_expect(chain.tightest == 1);
}

Test(host_cgroup_cases, case_20_v1_quota_zero_is_no_limit) {
        FIXTURE(fixture, "cgroup/20-v1-quota-0");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_none(&chain);
}

Test(host_cgroup_cases, case_21_hybrid_takes_the_hierarchy_that_has_the_controller) {
        FIXTURE(fixture, "cgroup/21-hybrid-v1-wins");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 700, "/g");
        cr_expect(chain.version == CGROUP_V1);
}

Test(host_cgroup_cases, case_22_hybrid_with_the_v2_line_first) {
        FIXTURE(fixture, "cgroup/22-hybrid-v2-line-first");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 800, "/y");
}

Test(host_cgroup_cases, case_23_cpuset_is_not_cpu) {
        FIXTURE(fixture, "cgroup/23-cpuset-is-not-cpu");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 900, "/b");
        cr_expect_str_eq(chain.mount, "/sys/fs/cgroup/cpu");
}

Test(host_cgroup_cases, case_24_a_named_hierarchy_does_not_make_it_v1) {
        FIXTURE(fixture, "cgroup/24-named-hierarchy");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1100, "/g");
        cr_expect(chain.version == CGROUP_V2);
}

Test(host_cgroup_cases, case_25_a_root_that_is_no_path_does_no_harm) {
        FIXTURE(fixture, "cgroup/25-nsfs-root");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1200, "/g");
}

Test(host_cgroup_cases, case_26_an_escaped_mount_point) {
        FIXTURE(fixture, "cgroup/26-escaped-mount-point");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1300, "/g");
        cr_expect_str_eq(chain.mount, "/sys/fs/c group\\x");
}

Test(host_cgroup_cases, case_27_a_dash_in_the_mount_point_and_any_number_of_optional_fields) {
        FIXTURE(none, "cgroup/27-dash-and-optional-fields-0");
        FIXTURE(one, "cgroup/27-dash-and-optional-fields-1");
        FIXTURE(three, "cgroup/27-dash-and-optional-fields-2");
        struct cgroup_chain chain;

        chain = chain_of(&none);
        expect_limit(&chain, 1400, "/g");
        chain = chain_of(&one);
        expect_limit(&chain, 1410, "/g");
        chain = chain_of(&three);
        expect_limit(&chain, 1420, "/g");
}

Test(host_cgroup_cases, case_28_super_options_with_spaces) {
        FIXTURE(fixture, "cgroup/28-super-options-with-spaces");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1600, "/g");
}

Test(host_cgroup_cases, case_29_a_colon_in_a_name) {
        FIXTURE(fixture, "cgroup/29-colon-in-name");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1700, "/a:b/c");
}

Test(host_cgroup_cases, case_30_a_path_longer_than_256_bytes) {
        FIXTURE(fixture, "cgroup/30-long-path");
        struct cgroup_chain chain = chain_of(&fixture);

        cr_expect(strlen(chain.path) > 256);
        expect_limit(&chain, 1800, chain.path);
}

Test(host_cgroup_cases, case_31_a_mountinfo_line_longer_than_64_kib) {
        cleanup_fixture struct fixture fixture = {0};
        static const char head[] = "26 1 0:25 / / rw,relatime - overlay overlay rw,lowerdir=",
                          tail[] = "\n31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup rw\n";
        static char text[sizeof(head) + (70 << 10) + sizeof(tail)];
        struct cgroup_chain chain;

        fixture_make(&fixture);
        memset(text, 'l', sizeof(text));
        memcpy(text, head, sizeof(head) - 1);
        memcpy(text + sizeof(text) - sizeof(tail), tail, sizeof(tail));
        fixture_write_n(&fixture, "proc/self/mountinfo", text, sizeof(text) - 1);
        fixture_write(&fixture, "proc/100/cgroup", "0::/g\n");
        fixture_write(&fixture, "sys/fs/cgroup/cgroup.procs", "1\n");
        fixture_write(&fixture, "sys/fs/cgroup/g/cpu.max", "185000 100000\n");
        chain = chain_of(&fixture);
        expect_limit(&chain, 1850, "/g");
}

Test(host_cgroup_cases, case_32_a_mount_source_of_any_name) {
        FIXTURE(fixture, "cgroup/32-source-none");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 1900, "/g");
}

Test(host_cgroup_cases, case_33_of_several_mounts_the_one_that_shows_most_is_used) {
        FIXTURE(fixture, "cgroup/33-two-mounts");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2100, "/pod/ctr");
        cr_expect_str_eq(chain.mount, "/sys/fs/cgroup/cpu");
        cr_expect(chain.levels_count == 3);
}

Test(host_cgroup_cases, case_34_the_type_of_sys_fs_cgroup_decides_nothing) {
        FIXTURE(fixture, "cgroup/34-sysfs-below");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2200, "/");
        cr_expect(chain.version == CGROUP_V1);
        cr_expect(chain.parent_hidden, "a v1 root has a release_agent; a sandbox shows its own tree");
}

Test(host_cgroup_cases, case_35_proc_cgroups_decides_nothing) {
        FIXTURE(fixture, "cgroup/35-proc-cgroups-lacks-cpu");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 2300, "/g");
}

Test(host_cgroup_cases, case_36_no_mount_is_unknown_not_unlimited) {
        FIXTURE(fixture, "cgroup/36-no-mount");

        cr_expect(failure_of(&fixture) == -ENODATA);
}

Test(host_cgroup_cases, case_37_a_hidden_parent_is_said_and_its_throttling_is_seen) {
        FIXTURE(fixture, "cgroup/37-parent-hidden");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_none(&chain);
        cr_expect(chain.parent_hidden);
        cr_expect(chain.levels[0].stat.local_throttled_ns == 777000);
}

Test(host_cgroup_cases, case_38_a_deleted_group_is_gone) {
        FIXTURE(fixture, "cgroup/38-deleted");

        cr_expect(failure_of(&fixture) == -ENOENT);
}

Test(host_cgroup_cases, case_39_changes_show_at_the_next_look) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo",
                      "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
        fixture_write(&fixture, "sys/fs/cgroup/cgroup.procs", "1\n");
        fixture_write(&fixture, "proc/100/cgroup", "0::/a\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "100000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/b/cpu.max", "20000 100000\n");
        chain = chain_of(&fixture);
        expect_limit(&chain, 1000, "/a");

        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "300000 100000\n");
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        expect_limit(&chain, 3000, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        expect_limit(&chain, 500, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
        expect_none(&chain);

        fixture_write(&fixture, "proc/100/cgroup", "0::/b\n");
        chain = chain_of(&fixture);
        expect_limit(&chain, 200, "/b");
}

Test(host_cgroup_cases, case_40_48_cpus_and_a_period_of_a_second) {
        FIXTURE(fixture, "cgroup/40-many-cpus-and-a-long-period");
        struct cgroup_chain chain = chain_of(&fixture);

        expect_limit(&chain, 48000, "/g");
}

Test(host_cgroup_cases, case_41_a_quota_above_the_cpus_is_no_limit) {
        FIXTURE(fixture, "cgroup/41-above-the-node");
        struct cgroup_chain chain = chain_of(&fixture);
        bool is_capped = false;

        expect_limit(&chain, 96000, "/g");
        cr_expect(cgroup_chain_limit_milli(&chain, 8, &is_capped) == 8000);
        cr_expect(is_capped);
        cr_expect(cgroup_chain_limit_milli(&chain, 96, &is_capped) == 96000);
        cr_expect(!is_capped);
}

Test(host_cgroup_cases, case_42_malformed_is_unknown_there_and_the_walk_goes_on) {
        FIXTURE(fixture, "cgroup/42-malformed");
        struct cgroup_chain chain = chain_of(&fixture);

        cr_assert(chain.levels_count == 6);
        for (size_t i = 0; i < 4; i++)
                cr_expect(chain.levels[i].limit == CGROUP_LIMIT_UNKNOWN, "%s", chain.levels[i].path);
        cr_expect(chain.tightest == 4);
        cr_expect(limit_of(&chain) == 2000);
        cr_expect(chain.limit_unknown, "a tighter limit may exist");
}
