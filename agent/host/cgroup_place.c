/* SPDX-License-Identifier: Apache-2.0 */
/* Which hierarchy, and which directory in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_internal.h"

int cgroup_own_version(struct root *root, const struct cgroup_mounts *mounts,
                       enum cgroup_version *ret_version) {
        struct cgroup_membership membership;
        cleanup_free char *text = NULL;
        bool has_v2 = false;
        size_t length;

        if (mounts->version != CGROUP_VERSION_UNKNOWN) {
                *ret_version = mounts->version;
                return 0;
        }
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

/* A capture holds what was found; what was looked at to find it would be the whole tree, and its pids are the capturer's. */
#define NAMESPACE_FILE "/.cgroup-namespace"
#define SEARCH_ARENA_MAX ((size_t) 32 << 20)

static unsigned count_components(const char *path) {
        unsigned count = 0;

        for (; *path; path++)
                count += path[0] == '/' && path[1] && path[1] != '/';
        return count;
}

/* Our own group is somewhere in the tree; above its path within the namespace is the namespace's root. */
static int find_namespace(struct root *root, const struct cgroup_mount *mount, const char *directory) {
        cleanup_arena struct arena *arena = arena_new(SEARCH_ARENA_MAX);
        cleanup_free char *text = NULL, *own = NULL, *found = NULL;
        struct cgroup_membership membership = {.version = CGROUP_VERSION_UNKNOWN};
        const char *whole, *rest;
        size_t length = 0, n;
        int r;

        if (!arena)
                return -ENOMEM;
        r = root_read(root, "/proc/self/cgroup", CGROUP_MEMBERSHIP_MAX, &text, &length);
        if (r == 0)
                r = cgroup_parse_membership(text, length, &membership);
        if (r < 0 || membership.version != mount->version || !membership.path)
                return -ENODATA;
        own = strndup(membership.path, membership.path_length);
        if (!own)
                return -ENOMEM;
        /* Somebody moved us out of the namespace that we were started in. */
        if (!cgroup_path_below(own, "/", &rest))
                return -ENODATA;
        r = cgroup_find_process(root, directory, mount->up + count_components(rest), getpid(), arena,
                                &whole);
        if (r < 0)
                return r == -ENOMEM ? r : -ENODATA;
        n = strlen(whole) - strlen(rest);
        if (strlen(whole) < strlen(rest) || strcmp(whole + n, rest) != 0)
                return -ENODATA;
        found = strndup(whole, n);
        if (!found)
                return -ENOMEM;
        cgroup_cache_set_namespace(root, found);
        return 0;
}

/* "" is remembered where it can't be found: the search is dear, and would be made for every process. */
static int namespace_root(struct root *root, const struct cgroup_mount *mount, const char *directory,
                          const char **ret_path) {
        const char *known = cgroup_cache_namespace(root);
        cleanup_free char *saved = NULL;
        int r = 0;

        if (!known && root->live) {
                int capture_fd = root->capture_fd;

                root->capture_fd = -1;
                r = find_namespace(root, mount, directory);
                root->capture_fd = capture_fd;
        } else if (!known) {
                r = root_read(root, NAMESPACE_FILE, PATH_MAX, &saved, NULL);
                if (r == 0)
                        cgroup_cache_set_namespace(root, saved);
        }
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                cgroup_cache_set_namespace(root, "");
        known = cgroup_cache_namespace(root);
        if (!known || known[0] != '/' || count_components(known) != mount->up)
                return -ENODATA;
        root_capture_file(root, NAMESPACE_FILE, known, strlen(known));
        *ret_path = known;
        return 0;
}

int cgroup_path_from_top(struct root *root, const struct cgroup_mount *mount, const char *directory,
                         const char *path, struct arena *arena, const char **ret_path) {
        const char *base = "", *rest = path, *checked;
        unsigned up = 0;
        size_t n = 0;

        if (mount->up == 0) {
                if (!cgroup_path_below(path, mount->root, &rest))
                        return -ENODATA;
                *ret_path = path;
                return 0;
        }
        for (; strncmp(rest, "/..", 3) == 0 && (rest[3] == '/' || !rest[3]); rest += 3)
                up++;
        if (up > mount->up || (rest[0] && !cgroup_path_below(rest, "/", &checked)))
                return -ENODATA;
        if (up < mount->up) {
                int r = namespace_root(root, mount, directory, &base);

                if (r < 0)
                        return r;
                n = strlen(base);
                for (unsigned i = 0; i < up; i++)
                        while (n > 0 && base[--n] != '/')
                                ;
        }
        if (strcmp(rest, "/") == 0)
                rest = "";
        *ret_path = n + strlen(rest) > 0 ? arena_format(arena, "%.*s%s", (int) n, base, rest) : "/";
        return *ret_path ? 0 : -ENOMEM;
}

bool cgroup_directory(char out[static PATH_MAX], const char *mount, const char *top, const char *path) {
        const char *rest;
        int length;

        if (!cgroup_path_below(path, top, &rest))
                return false;
        length = snprintf(out, PATH_MAX, "%s%s", mount, rest);
        return length > 0 && length < PATH_MAX;
}
