/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/probe/target.h"
#include "../../agent/probe/target_group.h"
#include "../../agent/probe/target_name.h"
#include "probe_fixture.h"

#define POD_CGROUPFS "/kubepods/burstable/pod" UID_1
#define POD_SYSTEMD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_1_SYSTEMD ".slice"
#define POD_KIND                                                                                            \
        "/docker/" ID_C "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"           \
        "kubelet-kubepods-burstable-pod" UID_1_SYSTEMD ".slice"
#define POD_STATIC "/kubepods/besteffort/pod0123456789abcdef0123456789abcdef"

static const struct {
        const char *path;
        enum target_name_kind kind;
        size_t level;
        const char *id;
} rows[] = {
                {"/", TARGET_NAME_OTHER, 0, NULL},
                {"", TARGET_NAME_OTHER, 0, NULL},
                {POD_CGROUPFS, TARGET_NAME_POD, 0, NULL},
                {POD_CGROUPFS "/" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_CGROUPFS "/" ID_A "/", TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_CGROUPFS "/" ID_A "/init.scope", TARGET_NAME_CONTAINER, 1, ID_A},
                {POD_CGROUPFS "/" ID_A "/system.slice/a.service", TARGET_NAME_CONTAINER, 2, ID_A},
                {POD_CGROUPFS "/" ID_A "/docker/" ID_B, TARGET_NAME_CONTAINER, 2, ID_A},
                {POD_CGROUPFS "/crio-" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_CGROUPFS "/something", TARGET_NAME_CONTAINER, 0, NULL},
                {"/kubepods/pod" UID_1 "/" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_STATIC "/" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_SYSTEMD, TARGET_NAME_POD, 0, NULL},
                {POD_SYSTEMD "/cri-containerd-" ID_A ".scope", TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_SYSTEMD "/cri-containerd-" ID_A ".scope/a/b", TARGET_NAME_CONTAINER, 2, ID_A},
                {POD_SYSTEMD "/crio-" ID_A ".scope/container", TARGET_NAME_CONTAINER, 1, ID_A},
                {POD_SYSTEMD "/crio-conmon-" ID_A ".scope", TARGET_NAME_OTHER, 0, NULL},
                {"/kubepods.slice/kubepods-pod" UID_1_SYSTEMD ".slice/docker-" ID_A ".scope",
                 TARGET_NAME_CONTAINER, 0, ID_A},
                {"/system.slice/containerd.service/kubepods-besteffort-pod" UID_1_SYSTEMD
                 ".slice:cri-containerd:" ID_A,
                 TARGET_NAME_CONTAINER, 0, ID_A},
                {POD_KIND, TARGET_NAME_POD, 0, NULL},
                {POD_KIND "/cri-containerd-" ID_A ".scope", TARGET_NAME_CONTAINER, 0, ID_A},
                {"/docker/" ID_C "/kubelet.slice/kubelet.service", TARGET_NAME_CONTAINER, 2, ID_C},
                {"/docker/" ID_C "/kubelet/kubepods/pod" UID_1 "/" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {"/docker/" ID_A, TARGET_NAME_CONTAINER, 0, ID_A},
                {"/docker/" ID_A "/docker/" ID_B, TARGET_NAME_CONTAINER, 0, ID_B},
                {"/system.slice/docker-" ID_A ".scope", TARGET_NAME_CONTAINER, 0, ID_A},
                {"/machine.slice/libpod-" ID_A ".scope/container", TARGET_NAME_CONTAINER, 1, ID_A},
                {"/machine.slice/libpod-conmon-" ID_A ".scope", TARGET_NAME_OTHER, 0, NULL},
                {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope",
                 TARGET_NAME_CONTAINER, 0, ID_A},
                {"/../cri-containerd-" ID_A ".scope", TARGET_NAME_CONTAINER, 0, ID_A},
                {"/../../crio-" ID_A ".scope/container", TARGET_NAME_CONTAINER, 1, ID_A},
                {"/system.slice/nginx.service", TARGET_NAME_SERVICE, 0, NULL},
                {"/system.slice/nginx.service/sub/group", TARGET_NAME_SERVICE, 2, NULL},
                {"/user.slice/user-0.slice/user@0.service/app.slice/web.service", TARGET_NAME_SERVICE, 0,
                 NULL},
                {"/user.slice/user-0.slice/user@0.service/app.slice/term.scope", TARGET_NAME_OTHER, 0, NULL},
                {"/user.slice/user-0.slice/session-1.scope", TARGET_NAME_OTHER, 0, NULL},
                /* Not quite. */
                {"/kubepods/podcast", TARGET_NAME_OTHER, 0, NULL},
                {"/kubepods/pod" UID_1 "0", TARGET_NAME_OTHER, 0, NULL},
                {"/kubepods/pod9dae2ba7-9594_4920-9822-4320df8538c7", TARGET_NAME_OTHER, 0, NULL},
                {"/kubepods/xpod" UID_1, TARGET_NAME_OTHER, 0, NULL},
                {"/docker/" ID_A "0", TARGET_NAME_OTHER, 0, NULL},
                {"/docker/A1A1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1",
                 TARGET_NAME_OTHER, 0, NULL},
                {"/.service", TARGET_NAME_OTHER, 0, NULL},
};

Test(target, knows_the_runtimes_names) {
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct target_name name;
                char id[65];

                target_name_parse(rows[i].path, &name);
                cr_expect(name.kind == rows[i].kind, "row %zu %s: kind %d", i, rows[i].path,
                          (int) name.kind);
                cr_expect(target_container_level(rows[i].path) == rows[i].level, "row %zu %s: level %zu", i,
                          rows[i].path, name.levels_below);
                bool found = target_container_id(rows[i].path, id);
                cr_expect(found == !!rows[i].id, "row %zu %s: id", i, rows[i].path);
                if (found && rows[i].id)
                        cr_expect_str_eq(id, rows[i].id, "row %zu %s", i, rows[i].path);
        }
}

Test(target, knows_a_pods_group) {
        cr_expect(target_is_pod_group("pod" UID_1));
        cr_expect(target_is_pod_group("pod0123456789abcdef0123456789abcdef"));
        cr_expect(target_is_pod_group("kubepods-pod" UID_1_SYSTEMD ".slice"));
        cr_expect(target_is_pod_group("kubelet-kubepods-burstable-pod" UID_1_SYSTEMD ".slice"));
        cr_expect(target_is_pod_group("kubepods-besteffort-pod0123456789abcdef0123456789abcdef.slice"));
        cr_expect(!target_is_pod_group("kubepods-burstable.slice"));
        cr_expect(!target_is_pod_group("pod"));
        cr_expect(!target_is_pod_group(""));
        cr_expect(!target_is_pod_group("pod" UID_1 ".slicer"));
        cr_expect(!target_is_pod_group("kubepods-pod" UID_1_SYSTEMD ".slice:cri-containerd:" ID_A));
        cr_expect(!target_is_pod_group(ID_A));
}

Test(target, cuts_a_path_from_its_end) {
        cr_expect(target_name_cut("/a/bc/d", 0) == 7);
        cr_expect(target_name_cut("/a/bc/d", 1) == 5);
        cr_expect(target_name_cut("/a/bc//d/", 1) == 5);
        cr_expect(target_name_cut("/a/bc/d", 3) == 1);
        cr_expect(target_name_cut("/a/bc/d", 99) == 1);
        cr_expect(target_name_cut("/", 1) == 1);
}

Test(target, tells_siblings_from_strangers) {
        static const struct {
                const char *own, *other;
                bool same;
        } pods[] = {
                        {POD_CGROUPFS "/" ID_A, POD_CGROUPFS "/" ID_B, true},
                        {POD_CGROUPFS "/" ID_A, POD_CGROUPFS "/" ID_B "/sub", true},
                        {POD_CGROUPFS "/" ID_A, "/kubepods/burstable/pod" UID_2 "/" ID_B, false},
                        {POD_CGROUPFS "/" ID_A, "/system.slice/ssh.service", false},
                        {POD_SYSTEMD "/cri-containerd-" ID_A ".scope",
                         POD_SYSTEMD "/cri-containerd-" ID_B ".scope", true},
                        {"/", "/", true},
                        {"/", "/below", true},
                        {"/", "/../cri-containerd-" ID_B ".scope", true},
                        {"/", "/../" ID_B "/sub", true},
                        {"/", "/../../crio-" ID_B ".scope/container", true},
                        {"/",
                         "/../../kubepods-burstable-pod" UID_1_SYSTEMD ".slice/cri-containerd-" ID_B
                         ".scope",
                         false},
                        {"/", "/../../pod" UID_1 "/" ID_B, false},
                        {"/", "/../../../system.slice/docker-" ID_B ".scope", false},
                        {"/", "/../../../../docker/" ID_B, false},
                        {"/", "/../../../init.scope", false},
                        {"/docker/" ID_A, "/docker/" ID_B, false},
                        {"/docker/" ID_A, "/docker/" ID_A "/x", true},
        };

        for (size_t i = 0; i < ELEMENTS(pods); i++)
                cr_expect(target_name_same_pod(pods[i].own, pods[i].other) == pods[i].same,
                          "row %zu: %s, %s", i, pods[i].own, pods[i].other);
}

Test(target, finds_the_group_of_the_cpu_controller) {
        static const struct {
                const char *text, *path;
        } files[] = {
                        {"0::/a\n", "/a"},
                        {"0::/a", "/a"},
                        {"3:cpuset:/set\n2:cpu,cpuacct:/cpu/one\n0::/unified\n", "/cpu/one"},
                        {"1:cpuacct,cpu:/one\n", "/one"},
                        {"5:cpuset:/x\n1:name=systemd:/y\n0::/z\n", "/z"},
                        {"1:name=cpu:/y\n", NULL},
                        {"0::relative\n", NULL},
                        {"0:\n", NULL},
                        {"", NULL},
                        {"\n\n:::\n", NULL},
                        {"0::/with:colons:in it\n", "/with:colons:in it"},
        };

        for (size_t i = 0; i < ELEMENTS(files); i++) {
                const char *path = NULL;
                size_t length = 0;
                int r = target_group_parse(files[i].text, &path, &length);
                cr_expect((r == 0) == !!files[i].path, "row %zu", i);
                if (r == 0 && files[i].path)
                        cr_expect(length == strlen(files[i].path) &&
                                                  strncmp(path, files[i].path, length) == 0,
                                  "row %zu", i);
        }
}

/* ---- listing ---- */

static const struct target_container *list(const struct host *host, struct target_request request,
                                           struct arena *arena, size_t *ret_count) {
        struct target_container *containers = NULL;
        struct why why = {.text = ""};
        bool cut = true;

        int r = target_list(host->root, &request, arena, &containers, ret_count, &cut, &why);
        cr_assert(r == 0, "%d: %s", r, why.text);
        cr_assert(!cut);
        return containers;
}

static bool has(const struct target_container *containers, size_t count, const char *path) {
        for (size_t i = 0; i < count; i++)
                if (strcmp(containers[i].path, path) == 0)
                        return true;
        return false;
}

Test(target, on_a_node_containers_and_limited_groups_that_stand_alone) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        struct host host;
        size_t count;

        host_begin(&host, "/system.slice/throttlescope.service");
        host_group(&host, "/system.slice", 0, 0, "");
        host_group(&host, "/system.slice/throttlescope.service", 0, 0, "");
        host_group(&host, "/system.slice/limited.service", 10000, 0, "77\n");
        host_group(&host, "/system.slice/docker-" ID_C ".scope", 0, 0, "");
        host_group(&host, "/kubepods", 300000, 0, "");
        host_group(&host, "/kubepods/pod" UID_1, 20000, 0, "");
        host_group(&host, "/kubepods/pod" UID_1 "/" ID_A, 20000, 0, "78\n");
        host_group(&host, "/kubepods/pod" UID_1 "/" ID_A "/nested", 5000, 0, "79\n");
        host_group(&host, "/kubepods/pod" UID_1 "/" ID_B, 0, 0, "");
        host_group(&host, "/kubepods/pod" UID_1 "/crio-conmon-" ID_B ".scope", 0, 0, "");
        const struct target_container *containers =
                        list(&host, (struct target_request){.scope = TARGET_NODE}, arena, &count);
        cr_expect(count == 4, "%zu", count);
        cr_expect(has(containers, count, "/system.slice/limited.service"));
        cr_expect(has(containers, count, "/system.slice/docker-" ID_C ".scope"));
        cr_expect(has(containers, count, "/kubepods/pod" UID_1 "/" ID_A));
        cr_expect(has(containers, count, "/kubepods/pod" UID_1 "/" ID_B));
        for (size_t i = 0; i < count; i++)
                if (strcmp(containers[i].path, "/kubepods/pod" UID_1 "/" ID_A) == 0)
                        cr_expect(containers[i].a_pid == 78 && is_known(containers[i].id));
        host_end(&host);
}

Test(target, finds_host_containers_by_their_processes_behind_a_namespace) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        struct host host;
        size_t count;

        host_begin(&host, "/");
        host_process(&host, 100, "app", 0, 1, 1, "/../../pod" UID_2 "/" ID_A);
        host_process(&host, 101, "app", 0, 1, 1, "/../../pod" UID_2 "/" ID_A "/sub");
        host_process(&host, 102, "sshd", 0, 1, 1, "/../../../system.slice/ssh.service");
        host_process(&host, 103, "app", 0, 1, 1, "/../" ID_B);
        const struct target_container *containers =
                        list(&host, (struct target_request){.scope = TARGET_NODE}, arena, &count);
        cr_expect(count == 2, "%zu", count);
        cr_expect(has(containers, count, "/../../pod" UID_2 "/" ID_A));
        cr_expect(has(containers, count, "/../" ID_B));
        host_end(&host);
}

Test(target, own_container_goes_up_to_the_runtimes_leaf) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        struct host host;
        size_t count;

        host_begin(&host, POD_SYSTEMD "/crio-" ID_A ".scope/container");
        host_group(&host, POD_SYSTEMD, 60000, 0, "");
        host_group(&host, POD_SYSTEMD "/crio-" ID_A ".scope", 40000, 0, "");
        host_group(&host, POD_SYSTEMD "/crio-" ID_A ".scope/container", 30000, 0, "900\n");
        const struct target_container *own =
                        list(&host, (struct target_request){.scope = TARGET_SELF}, arena, &count);
        cr_assert(count == 1);
        cr_expect_str_eq(own->path, POD_SYSTEMD "/crio-" ID_A ".scope");
        cr_expect_str_eq(own->chain.levels[0].path, POD_SYSTEMD "/crio-" ID_A ".scope");
        cr_expect(own->chain.levels[0].quota_ns == 40 * NS_PER_MS);
        cr_expect(own->chain.tightest == 0, "the tighter group inside is the container's own affair");
        cr_expect_str_eq(own->chain.levels[1].path, POD_SYSTEMD);
        host_end(&host);
}

Test(target, own_container_in_a_private_namespace_is_the_namespaces_root) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        static const struct {
                const char *group, *container;
        } groups[] = {
                        {"/", "/"},
                        {"/init", "/"}, /* Docker in Docker moves everything into such a group */
                        {"/system.slice/web.service", "/system.slice/web.service"},
                        {"/user.slice/session-1.scope", "/user.slice/session-1.scope"},
        };

        for (size_t i = 0; i < ELEMENTS(groups); i++) {
                struct host host;
                size_t count;
                host_begin(&host, groups[i].group);
                host_write(&host, "/sys/fs/cgroup/cgroup.type", "domain\n");
                if (groups[i].group[1])
                        host_group(&host, groups[i].group, 0, 0, "900\n");
                host_group(&host, "", 10000, 0, "");
                const struct target_container *own =
                                list(&host, (struct target_request){.scope = TARGET_SELF}, arena, &count);
                cr_assert(count == 1);
                cr_expect_str_eq(own->path, groups[i].container, "%s", groups[i].group);
                cr_expect(own->chain.parent_hidden);
                host_end(&host);
        }
}

Test(target, a_group_is_taken_as_it_is_given) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        struct host host;
        size_t count;

        host_begin(&host, "/");
        host_group(&host, "/a", 20000, 0, "");
        host_group(&host, "/a/b", 10000, 0, "5\n");
        const struct target_container *group = list(
                        &host, (struct target_request){.scope = TARGET_CGROUP, .cgroup = "/sys/fs/cgroup/a"},
                        arena, &count);
        cr_assert(count == 1);
        cr_expect_str_eq(group->path, "/a");
        cr_expect(group->a_pid == 5);
        host_end(&host);
}

Test(target, says_what_is_not_there) {
        cleanup_arena struct arena *arena = arena_new(1u << 20);
        struct target_container *containers = NULL;
        struct host host;
        struct why why;
        size_t count;
        bool cut;

        host_begin(&host, "/");
        int r = target_list(host.root, &(struct target_request){.scope = TARGET_PID, .pid = 4711}, arena,
                            &containers, &count, &cut, &why);
        cr_expect(r == -ENOENT && strstr(why.text, "4711"), "%s", why.text);
        r = target_list(host.root, &(struct target_request){.scope = TARGET_CGROUP, .cgroup = "/gone"},
                        arena, &containers, &count, &cut, &why);
        cr_expect(r == -ENOENT && strstr(why.text, "/gone"), "%s", why.text);
        host_remove(&host, "/proc/self");
        r = target_list(host.root, &(struct target_request){.scope = TARGET_SELF}, arena, &containers,
                        &count, &cut, &why);
        cr_expect(r == -ENOENT && strstr(why.text, "/proc/self/cgroup"), "%s", why.text);
        host_write(&host, "/proc/50/cgroup", "0::/x (deleted)\n");
        r = target_list(host.root, &(struct target_request){.scope = TARGET_PID, .pid = 50}, arena,
                        &containers, &count, &cut, &why);
        cr_expect(r == -ENOENT);
        cr_expect(!containers);
        host_end(&host);
}
