/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The target: which groups are looked at, and what is a container among them. A container is its group and every group below it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"
#include "../base/why.h"
#include "../host/cgroup.h"
#include "../host/root.h"

enum target_scope { TARGET_SELF, TARGET_POD, TARGET_NODE, TARGET_PID, TARGET_CGROUP, TARGET_SCOPE_COUNT };

struct target_request {
        enum target_scope scope;
        pid_t pid;          /* TARGET_PID: in our PID namespace */
        const char *cgroup; /* TARGET_CGROUP: as cgroup_chain_of_path() takes it */
};

/* One container that files can see. Strings in the arena given to target_list(). */
struct target_container {
        uint64_t id; /* cgroup id of its group; ABSENT if the group is not visible */
        const char *path;
        pid_t a_pid; /* a live process in it, 0: none */
        struct cgroup_chain chain;
};

/*
 * The group of a process that is its container's: the runtime's leaf on its path (64-hex id, "docker-….scope", "cri-containerd-….scope",
 * "crio-….scope", "libpod-….scope", systemd "….service"), else its own group. Gives the number of levels to go up from the
 * process' own group (0: the group itself).
 */
size_t target_container_level(const char *cgroup_path);

/* Groups of the kubelet's pod level: "pod<uid>" or "kubepods-…-pod<uid>.slice". */
bool target_is_pod_group(const char *component);
/* 64 hex digits of the container, from a group's name; false if there are none. */
bool target_container_id(const char *cgroup_path, char out[static 65]);

/*
 * The containers of the request as files show them, again at every tick (they come and go). With TARGET_NODE: every group that is a
 * runtime's container, and every limited group that has no container below or above it. TARGET_POD from files needs a shared PID namespace:
 * containers are those of all visible processes. 0; -ENOENT the named process or group does not exist; other negative errno.
 */
int target_list(struct root *root, const struct target_request *request, struct arena *arena,
                struct target_container **ret_containers, size_t *ret_count, bool *ret_cut, struct why *why);
