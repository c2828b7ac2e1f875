/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parsers of the cgroup reader and of saved folders. The first byte chooses one; the rest is what a kernel, a container or a
 * bug report may put into the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/host/cgroup_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void claim(int holds) {
        if (!holds)
                abort();
}

static void check_limit(const struct cgroup_limit *limit) {
        claim(limit->state < CGROUP_LIMIT_STATE_COUNT);
        if (limit->state != CGROUP_LIMIT_SET) {
                claim(limit->quota_ns == 0 && limit->period_ns == 0);
                return;
        }
        claim(limit->quota_ns > 0 && limit->period_ns > 0 && is_known(limit->quota_ns) &&
              is_known(limit->period_ns));
        claim(cgroup_milli(limit->quota_ns, limit->period_ns) > 0);
        claim(is_known(cgroup_milli(limit->quota_ns, limit->period_ns)));
}

static void check_limits(const char *text, size_t length) {
        const char *cut = memchr(text, 'P', length);
        struct cgroup_limit limit;

        cgroup_parse_max(text, length, &limit);
        check_limit(&limit);
        if (cut)
                cgroup_parse_quota(text, (size_t) (cut - text), cut + 1, length - (size_t) (cut + 1 - text),
                                   &limit);
        else
                cgroup_parse_quota(text, length, NULL, 0, &limit);
        check_limit(&limit);
        (void) cgroup_parse_number(text, length);
}

static void check_stat(const char *text, size_t length) {
        struct cgroup_cpu_stat stat = {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT,
                                       ABSENT, ABSENT, ABSENT, ABSENT};

        cgroup_parse_stat(text, length, &stat);
        cgroup_parse_stat_local(text, length, &stat);
        cgroup_parse_pressure(text, length, &stat);
}

static void check_membership(const char *text, size_t length) {
        struct cgroup_membership membership;

        if (cgroup_parse_membership(text, length, &membership) < 0)
                return;
        claim(membership.version == CGROUP_V1 || membership.version == CGROUP_V2);
        claim(membership.path >= text && membership.path + membership.path_length <= text + length);
        claim(membership.path_length > 0 && membership.path[0] == '/');
        claim(!memchr(membership.path, '\n', membership.path_length));
        claim(!memchr(membership.path, '\0', membership.path_length));
        if (membership.usage_path)
                claim(membership.version == CGROUP_V1 && membership.usage_path[0] == '/');
}

static void check_mounts(const char *text, size_t length) {
        struct arena *arena = arena_new(4 << 20);
        struct cgroup_mount *mounts;
        const char *rest;
        size_t count;

        claim(arena != NULL);
        if (cgroup_parse_mounts(text, length, arena, &mounts, &count) == 0) {
                claim(count <= CGROUP_MOUNTS_MAX);
                for (size_t i = 0; i < count; i++) {
                        claim(mounts[i].root[0] == '/' && mounts[i].point[0] == '/');
                        claim(i == 0 || mounts[i].up == 0 || mounts[i - 1].up >= mounts[i].up);
                        claim(cgroup_mount_top(&mounts[i])[0] == '/');
                        if (cgroup_path_below("/a/b/../c", mounts[i].root, &rest))
                                claim(!strstr(rest, "/../"));
                        if (cgroup_path_below(mounts[i].root, mounts[i].root, &rest))
                                claim(rest[0] == '\0');
                }
        }
        arena_free(arena);
}

static void check_list(const char *text, size_t length) {
        struct root_entry *entries;
        size_t count;

        if (root_parse_list(text, length, &entries, &count) < 0)
                return;
        for (size_t i = 0; i < count; i++) {
                claim(entries[i].name[0] && !strchr(entries[i].name, '/'));
                claim(strcmp(entries[i].name, ".") != 0 && strcmp(entries[i].name, "..") != 0);
                claim(i == 0 || strcmp(entries[i - 1].name, entries[i].name) <= 0);
        }
        free(entries);
}

static void check_path(const char *text, size_t length) {
        char *path = malloc(length + 1), *buffer = malloc(PATH_MAX);
        const char *clean, *rest;

        claim(path && buffer);
        memcpy(path, text, length);
        path[length] = '\0';
        (void) root_magic_prefix(path);
        if (root_clean_path(path, buffer, &clean) == 0) {
                claim(clean[0] == '/' && strlen(clean) <= strlen(path));
                claim(!strstr(clean, "//") && !strstr(clean, "/./") && !strstr(clean, "/../"));
                claim(cgroup_path_below(clean, "/", &rest));
        }
        free(path);
        free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static void (*const checks[])(const char *, size_t) = {
                        check_limits, check_stat, check_membership, check_mounts, check_list, check_path,
        };
        char *text;

        if (size == 0)
                return 0;
        /* Of its exact size, without a NUL behind it: one byte too far is seen. */
        text = malloc(size - 1 ? size - 1 : 1);
        claim(text != NULL);
        memcpy(text, data + 1, size - 1);
        checks[data[0] % ELEMENTS(checks)](text, size - 1);
        free(text);
        return 0;
}
