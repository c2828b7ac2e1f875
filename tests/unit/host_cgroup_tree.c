/* SPDX-License-Identifier: Apache-2.0 */
/* Listings and processes of groups, mounts that reach above our cgroup namespace, capture and replay. */
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

/* --- a mount that reaches above our cgroup namespace --- */

/* The host's hierarchy in a container whose cgroup namespace begins at @namespace, two levels below the root; NULL: not known. */
static void make_above(struct fixture *fixture, const char *namespace) {
        fixture_make(fixture);
        fixture_write(fixture, "proc/self/cgroup", "0::/\n");
        fixture_write(fixture, "proc/self/mountinfo",
                      "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
                      "32 23 0:28 /../.. /host/cgroup rw - cgroup2 cgroup rw\n");
        fixture_write(fixture, "host/cgroup/cgroup.procs", "1\n");
        fixture_write(fixture, "host/cgroup/other/cpu.max", "90000 100000\n");
        fixture_write(fixture, "host/cgroup/pod/cpu.max", "50000 100000\n");
        fixture_write(fixture, "host/cgroup/pod/a/cpu.max", "20000 100000\n");
        fixture_write(fixture, "host/cgroup/pod/a/x/cpu.max", "10000 100000\n");
        fixture_write(fixture, "host/cgroup/pod/b/cpu.max", "30000 100000\n");
        fixture_write(fixture, "sys/fs/cgroup/cpu.max", "20000 100000\n");
        if (namespace)
                fixture_write(fixture, ".cgroup-namespace", "%s", namespace);
}

Test(host_cgroup_tree, paths_above_our_namespace_are_named_from_the_mounts_top) {
        static const struct {
                char path[16], leaf[16];
                size_t levels;
        } rows[] = {
                        {"/", "/pod/a", 3},
                        {"/x", "/pod/a/x", 4},
                        {"/../b", "/pod/b", 3},
                        {"/..", "/pod", 2},
                        {"/../a/x", "/pod/a/x", 4},
                        {"/../..", "/", 1},
                        {"/../../other", "/other", 2},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct cgroup_chain chain;

                make_above(&fixture, "/pod/a");
                fixture_write(&fixture, "proc/100/cgroup", "0::%s\n", rows[i].path);
                chain = chain_of(&fixture);
                cr_expect_str_eq(chain.levels[0].path, rows[i].leaf, "%s: %s", rows[i].path,
                                 chain.levels[0].path);
                cr_expect_str_eq(chain.path, rows[i].path);
                cr_expect_str_eq(chain.mount, "/host/cgroup");
                cr_expect(chain.levels_count == rows[i].levels, "%s", rows[i].path);
                cr_expect(!chain.parent_hidden);
                cr_assert(cgroup_chain_refresh(fixture.root, &chain) == 0);
                cr_expect(!chain.limit_unknown, "%s", rows[i].path);
        }
}

Test(host_cgroup_tree, usage_is_not_taken_from_a_hierarchy_that_begins_elsewhere) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo",
                      "32 31 0:29 /../.. /host/cpu rw - cgroup cgroup rw,cpu\n"
                      "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
        fixture_write(&fixture, ".cgroup-namespace", "/pod/a");
        fixture_write(&fixture, "proc/100/cgroup", "2:cpuacct:/x\n1:cpu:/x\n");
        fixture_write(&fixture, "host/cpu/pod/a/x/cpu.shares", "1024\n");
        /* A group of that name below our own. */
        fixture_write(&fixture, "sys/fs/cgroup/cpuacct/pod/a/x/cpuacct.usage", "1\n");
        chain = chain_of(&fixture);
        cr_expect_str_eq(chain.levels[0].path, "/pod/a/x");
        for (size_t i = 0; i < chain.levels_count; i++)
                cr_expect(chain.levels[i].stat.usage_ns == ABSENT);
}

Test(host_cgroup_tree, without_the_namespaces_place_our_own_mount_and_the_common_root_are_left) {
        static const char namespaces[][8] = {"", "/pod", "pod/a"};

        for (size_t i = 0; i < ELEMENTS(namespaces); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct cgroup_chain chain;

                make_above(&fixture, i == 0 ? NULL : namespaces[i]);
                fixture_write(&fixture, "proc/100/cgroup", "0::/../b\n");
                cr_expect(look_up(&fixture, &chain) == -ENODATA);
                fixture_write(&fixture, "proc/100/cgroup", "0::/../../other\n");
                chain = chain_of(&fixture);
                cr_expect_str_eq(chain.levels[0].path, "/other");
                fixture_write(&fixture, "proc/100/cgroup", "0::/\n");
                chain = chain_of(&fixture);
                cr_expect_str_eq(chain.mount, "/sys/fs/cgroup");
                fixture_write(&fixture, "proc/100/cgroup", "0::/../../../above\n");
                cr_expect(look_up(&fixture, &chain) == -ENODATA);
        }
}

Test(host_cgroup_tree, what_is_listed_above_our_namespace_can_be_looked_up) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_entry *entries;
        struct cgroup_chain chain;
        size_t count;
        bool is_cut;

        make_above(&fixture, NULL);
        cr_assert(cgroup_list(fixture.root, 100, fixture.arena, &entries, &count, &is_cut, &fixture.why) ==
                  0);
        cr_assert(count == 6);
        cr_expect_str_eq(entries[5].path, "/pod/b");
        for (size_t i = 0; i < count; i++) {
                cr_assert(cgroup_chain_of_path(fixture.root, entries[i].path, fixture.arena, &chain,
                                               &fixture.why) == 0);
                cr_expect(chain.levels[0].id == entries[i].id);
        }
        cr_assert(cgroup_chain_of_path(fixture.root, "/host/cgroup/pod/b", fixture.arena, &chain,
                                       &fixture.why) == 0);
        cr_expect_str_eq(chain.path, "/pod/b");
}

/* --- listings --- */

static void make_listing(struct fixture *fixture) {
        make_v2(fixture, "/");
        fixture_write(fixture, "sys/fs/cgroup/b/cpu.max", "max 100000\n");
        fixture_write(fixture, "sys/fs/cgroup/b/cgroup.procs", "5\n");
        fixture_write(fixture, "sys/fs/cgroup/a/cpu.max", "10000 100000\n");
        fixture_write_n(fixture, "sys/fs/cgroup/a/cgroup.procs", "", 0);
        fixture_write(fixture, "sys/fs/cgroup/a/z/cgroup.procs", "7\n7\n6\n0\nx\n");
        fixture_write(fixture, "sys/fs/cgroup/a/c/cgroup.procs", "9\n");
        fixture_write(fixture, "sys/fs/cgroup/a/c.id", "1234 28\n");
        /* Inside a threaded tree only threads can be listed. */
        fixture_write(fixture, "sys/fs/cgroup/t/cgroup.procs.errno", "%d\n", EOPNOTSUPP);
        fixture_write(fixture, "sys/fs/cgroup/t/cgroup.threads", "21\n22\n23\n");
        fixture_write(fixture, "proc/21/status", "Name:\tx\nTgid:\t20\n");
        fixture_write(fixture, "proc/22/status", "Name:\tx\nTgid:\t20\n");
        fixture_write(fixture, "proc/self/cgroup", "0::/\n");
}

Test(host_cgroup_tree, groups_are_listed_depth_first_by_name) {
        static const struct {
                char path[8];
                uint32_t depth;
                bool has_limit;
        } rows[] = {
                        {"/", 0, false},    {"/a", 1, true},  {"/a/c", 2, false},
                        {"/a/z", 2, false}, {"/b", 1, false}, {"/t", 1, false},
        };
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_entry *entries;
        size_t count;
        bool is_cut;
        int r;

        make_listing(&fixture);
        r = cgroup_list(fixture.root, 100, fixture.arena, &entries, &count, &is_cut, &fixture.why);
        cr_assert(r == 0, "%s", fixture.why.text);
        cr_assert(count == ELEMENTS(rows), "%zu", count);
        cr_expect(!is_cut);
        for (size_t i = 0; i < count; i++) {
                cr_expect_str_eq(entries[i].path, rows[i].path);
                cr_expect(entries[i].depth == rows[i].depth, "%s", rows[i].path);
                cr_expect(entries[i].has_limit == rows[i].has_limit, "%s", rows[i].path);
        }
        cr_expect(entries[2].id == 1234);
}

Test(host_cgroup_tree, a_listed_group_has_the_id_of_its_chain) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_entry *entries;
        size_t count;
        bool is_cut;

        make_listing(&fixture);
        cr_assert(cgroup_list(fixture.root, 100, fixture.arena, &entries, &count, &is_cut, &fixture.why) ==
                  0);
        for (size_t i = 0; i < count; i++) {
                struct cgroup_chain chain;

                cr_assert(cgroup_chain_of_path(fixture.root, entries[i].path, fixture.arena, &chain,
                                               &fixture.why) == 0);
                cr_expect(chain.levels[0].id == entries[i].id, "%s", entries[i].path);
        }
}

Test(host_cgroup_tree, a_listing_stops_at_its_maximum_and_says_so) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_entry *entries;
        size_t count;
        bool is_cut;

        make_listing(&fixture);
        for (size_t max = 0; max <= 7; max++) {
                int r = cgroup_list(fixture.root, max, fixture.arena, &entries, &count, &is_cut,
                                    &fixture.why);

                cr_assert(r == 0);
                cr_expect(count == (max < 6 ? max : 6));
                cr_expect(is_cut == (max < 6), "max %zu", max);
        }
}

Test(host_cgroup_tree, without_a_mount_there_is_nothing_to_list) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_entry *entries;
        size_t count;
        bool is_cut;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
        cr_expect(cgroup_list(fixture.root, 9, fixture.arena, &entries, &count, &is_cut, &fixture.why) ==
                  -ENODATA);
}

static void expect_pids(struct fixture *fixture, const char *path, bool recursive, const pid_t *pids,
                        size_t count) {
        struct cgroup_chain chain;
        size_t found_count;
        pid_t *found;

        cr_assert(cgroup_chain_of_path(fixture->root, path, fixture->arena, &chain, &fixture->why) == 0);
        cr_assert(cgroup_pids(fixture->root, &chain, recursive, 100, fixture->arena, &found, &found_count) ==
                  0);
        cr_assert(found_count == count, "%s: %zu", path, found_count);
        for (size_t i = 0; i < count; i++)
                cr_expect(found[i] == pids[i], "%s: %d", path, found[i]);
}

Test(host_cgroup_tree, processes_of_a_group_and_of_those_below) {
        cleanup_fixture struct fixture fixture = {0};

        make_listing(&fixture);
        expect_pids(&fixture, "/a", false, NULL, 0);
        expect_pids(&fixture, "/a", true, (pid_t[]){6, 7, 9}, 3);
        expect_pids(&fixture, "/a/z", true, (pid_t[]){6, 7}, 2);
        expect_pids(&fixture, "/t", false, (pid_t[]){20}, 1);
        expect_pids(&fixture, "/", true, (pid_t[]){1, 5, 6, 7, 9, 20}, 6);
}

Test(host_cgroup_tree, more_processes_than_asked_for_are_cut_and_said) {
        cleanup_fixture struct fixture fixture = {0};
        struct cgroup_chain chain;
        size_t count;
        pid_t *pids;

        make_listing(&fixture);
        cr_assert(cgroup_chain_of_path(fixture.root, "/", fixture.arena, &chain, &fixture.why) == 0);
        cr_expect(cgroup_pids(fixture.root, &chain, true, 3, fixture.arena, &pids, &count) == 1);
        cr_expect(count == 3);
        cr_expect(cgroup_pids(fixture.root, &chain, false, 1, fixture.arena, &pids, &count) == 0);
        cr_expect(count == 1);
}

/* --- capture and replay --- */

static void expect_same_chain(const struct cgroup_chain *a, const struct cgroup_chain *b) {
        cr_expect_str_eq(a->mount, b->mount);
        cr_expect_str_eq(a->path, b->path);
        cr_expect(a->version == b->version && a->tightest == b->tightest);
        cr_expect(a->parent_hidden == b->parent_hidden && a->limit_unknown == b->limit_unknown);
        cr_assert(a->levels_count == b->levels_count);
        for (size_t i = 0; i < a->levels_count; i++) {
                struct cgroup_level x = a->levels[i], y = b->levels[i];

                cr_expect_str_eq(x.path, y.path);
                cr_expect(x.id == y.id && x.limit == y.limit && x.quota_ns == y.quota_ns &&
                          x.period_ns == y.period_ns);
                cr_expect(x.burst_ns == y.burst_ns && x.weight == y.weight);
                cr_expect(x.children_limit_milli == y.children_limit_milli);
                cr_expect(memcmp(&x.stat, &y.stat, sizeof(x.stat)) == 0, "%s", x.path);
        }
}

Test(host_cgroup_tree, a_captured_chain_replays_with_ids_errors_and_children) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};
        struct cgroup_entry *entries, *copied;
        struct cgroup_chain chain, replayed;
        size_t count, copied_count;
        bool is_cut;

        make_listing(&fixture);
        fixture_write(&fixture, "proc/100/cgroup", "0::/a/c\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/c/cpu.max.errno", "%d\n", EACCES);
        fixture_write(&fixture, "sys/fs/cgroup/a/z/cpu.max", "7000 100000\n");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.stat", "nr_periods 5\nusage_usec 6\n");
        fixture_make(&copy);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        chain = chain_of(&fixture);
        cr_assert(cgroup_list(fixture.root, 100, fixture.arena, &entries, &count, &is_cut, &fixture.why) ==
                  0);
        cr_expect(root_capture_failures(fixture.root) == 0);

        cr_assert(cgroup_chain_of_pid(copy.root, 100, copy.arena, &replayed, &copy.why) == 0, "%s",
                  copy.why.text);
        expect_same_chain(&chain, &replayed);
        cr_expect(replayed.levels[0].limit == CGROUP_LIMIT_UNKNOWN);
        cr_assert(cgroup_list(copy.root, 100, copy.arena, &copied, &copied_count, &is_cut, &copy.why) == 0);
        cr_assert(copied_count == count);
        for (size_t i = 0; i < count; i++) {
                cr_expect_str_eq(copied[i].path, entries[i].path);
                cr_expect(copied[i].id == entries[i].id && copied[i].has_limit == entries[i].has_limit);
        }
}

Test(host_cgroup_tree, a_capture_holds_what_was_remembered_before_it) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};
        struct cgroup_chain chain, replayed;

        make_v2(&fixture, "/a");
        fixture_write(&fixture, "sys/fs/cgroup/a/cpu.max", "10000 100000\n");
        fixture_make(&copy);
        cgroup_tick_begin(fixture.root);
        chain = chain_of(&fixture);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        chain = chain_of(&fixture);
        root_capture_stop(fixture.root);
        cr_assert(cgroup_chain_of_pid(copy.root, 100, copy.arena, &replayed, &copy.why) == 0, "%s",
                  copy.why.text);
        expect_same_chain(&chain, &replayed);
}
