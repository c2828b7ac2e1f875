/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of target.h: the parsed form of a group's path. Offsets and pointers are into the path that was parsed. */
#include <stdbool.h>
#include <stddef.h>

enum target_name_kind {
        TARGET_NAME_OTHER,     /* slices, sessions, a namespace's root: the group stands for itself */
        TARGET_NAME_POD,       /* the Pod's own group */
        TARGET_NAME_CONTAINER, /* a runtime's leaf, or something below it */
        TARGET_NAME_SERVICE,   /* a systemd service, or something below it */
        TARGET_NAME_COUNT,
};

struct target_name {
        enum target_name_kind kind;
        const char *id; /* 64 hex digits, NULL: none */
        size_t levels_below; /* how many components the path goes deeper than the container's (or service's) own group */
        size_t pod_end; /* length of the path up to the end of the Pod's uid, 0: no Pod in the path */
};

void target_name_parse(const char *path, struct target_name *ret_name);
/* Length of @path without its last @levels components; at least 1 ("/"). */
size_t target_name_cut(const char *path, size_t levels);
/* @path is @group (its first @group_length bytes) or below it. */
bool target_name_is_below(const char *path, const char *group, size_t group_length);
/* Both as one process reads them from /proc/PID/cgroup: is @other a container of the Pod that @own is in (or @own itself)? */
bool target_name_same_pod(const char *own, const char *other);
