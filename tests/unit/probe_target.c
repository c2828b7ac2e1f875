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
