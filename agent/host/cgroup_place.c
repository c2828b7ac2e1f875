/* SPDX-License-Identifier: Apache-2.0 */
/* Which hierarchy, and which directory in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_internal.h"

int cgroup_own_version(struct root *root, const struct cgroup_mounts *mounts, enum cgroup_version *ret_version) {
        struct cgroup_membership membership;
        cleanup_free char *text = NULL;
        bool has_v2 = false;
        size_t length;

        if (cgroup_read_own(root, "cgroup", CGROUP_MEMBERSHIP_MAX, &text, &length) == 0 &&
            cgroup_parse_membership(text, length, &membership) == 0) {
                *ret_version = membership.version;
                return 0;
        }
        for (size_t i = 0; i < mounts->count; i++) {
                if (mounts->items[i].version == CGROUP_V1 && mounts->items[i].has_cpu) {
                        *ret_version = CGROUP_V1;
                        return 0;
                }
                has_v2 |= mounts->items[i].version == CGROUP_V2;
        }
        if (!has_v2)
                return -ENODATA;
        *ret_version = CGROUP_V2;
        return 0;
}

bool cgroup_directory(char out[static PATH_MAX], const char *mount, const char *top, const char *path) {
        const char *rest;
        int length;

        if (!cgroup_path_below(path, top, &rest))
                return false;
        length = snprintf(out, PATH_MAX, "%s%s", mount, rest);
        return length > 0 && length < PATH_MAX;
}
