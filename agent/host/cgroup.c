/* SPDX-License-Identifier: Apache-2.0 */
/* From a process or a path to its chain of groups. */
#include "cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "cgroup_internal.h"

#define DELETED " (deleted)"
/* A process that is moved while it is looked up is looked up again so often. */
#define MOVES_MAX 3u

/* What is looked for, and how what is found is read. */
struct search {
        struct root *root;
        struct arena *arena;
        enum cgroup_version version;
        const char *path;
        bool is_from_top; /* path is named from the top of the mount, as people do it; else as /proc/PID/cgroup shows it */
        const char *usage_path; /* the process' cpuacct group; NULL: taken to be the same */
};

static const char *shown(char out[static CGROUP_SHOWN_MAX], const char *foreign) {
        return text_escape(out, CGROUP_SHOWN_MAX, foreign, strlen(foreign));
}

/* --- the levels of a chain --- */

/* On failure the level is unknown. *ret_device: ABSENT if not known. */
static int read_level(struct root *root, struct cgroup_chain *chain, size_t i, uint64_t *ret_device) {
        struct cgroup_level *level = &chain->levels[i];
        char directory[PATH_MAX], usage[PATH_MAX];
        const char *path = level->path, *top = chain->levels[chain->levels_count - 1].path;
        bool has_usage = chain->usage_mount && i >= chain->usage_from &&
                         cgroup_directory(usage, chain->usage_mount, chain->usage_top, path);
        struct cgroup_reading reading = {.level = cgroup_level_unknown(), .device = ABSENT};
        int r = -ENAMETOOLONG;

        if (cgroup_directory(directory, chain->mount, top, path))
                r = cgroup_level_read(root, chain->version, directory, has_usage ? usage : NULL, &reading);
        *level = reading.level;
        level->path = path;
        *ret_device = reading.device;
        return r;
}

static bool is_tighter(const struct cgroup_level *a, const struct cgroup_level *b) {
        return (unsigned __int128) a->quota_ns * b->period_ns <
               (unsigned __int128) b->quota_ns * a->period_ns;
}

static void find_tightest(struct cgroup_chain *chain) {
        chain->tightest = -1;
        chain->limit_unknown = chain->levels_cut;
        for (size_t i = 0; i < chain->levels_count; i++) {
                const struct cgroup_level *level = &chain->levels[i];

                if (level->limit == CGROUP_LIMIT_UNKNOWN)
                        chain->limit_unknown = true;
                if (level->limit == CGROUP_LIMIT_SET &&
                    (chain->tightest < 0 || is_tighter(level, &chain->levels[chain->tightest])))
                        chain->tightest = (int) i;
        }
}

int cgroup_chain_refresh(struct root *root, struct cgroup_chain *chain) {
        uint64_t device;

        for (size_t i = 0; i < chain->levels_count; i++)
                (void) read_level(root, chain, i, &device);
        find_tightest(chain);
        return 0;
}

/* One level for @path and each of its parents down to @top; in between, what is too deep is left out. */
static int make_levels(struct arena *arena, const char *path, const char *top, struct cgroup_chain *chain) {
        size_t base = strcmp(top, "/") == 0 ? 0 : strlen(top), length = strlen(path), depth = 1, skip;

        while (length > base && path[length - 1] == '/')
                length--;
        for (size_t i = base; i < length; i++)
                depth += path[i] == '/';
        skip = depth > CGROUP_LEVELS_MAX ? depth - CGROUP_LEVELS_MAX : 0;
        chain->levels_cut = skip > 0;
        chain->levels_count = depth - skip;
        chain->levels = arena_array(arena, chain->levels_count, sizeof(*chain->levels));
        if (!chain->levels)
                return -ENOMEM;
        for (size_t i = 0; i < chain->levels_count; i++) {
                chain->levels[i] = cgroup_level_unknown();
                chain->levels[i].path = i + 1 == chain->levels_count ? arena_string(arena, top)
                                                                     : arena_string_n(arena, path, length);
                if (!chain->levels[i].path)
                        return -ENOMEM;
                for (size_t up = 0; up < (i == 0 ? skip + 1 : 1) && length > base; up++)
                        while (path[--length] != '/')
                                ;
        }
        return 0;
}

/* --- where it is read --- */

/*
 * Do equal names mean equal groups in both hierarchies? Below a cgroup namespace's root names say nothing about what is above it: a
 * process that was put into a group of its own in one hierarchy only has the path "/" in both.
 */
static bool is_parallel(const struct search *search, const struct cgroup_mount *mount,
                        const struct cgroup_mount *usage, const struct cgroup_chain *chain) {
        if (usage == mount)
                return true;
        if (usage->up != mount->up)
                return false;
        if (mount->up > 0)
                return !search->usage_path || strcmp(search->usage_path, search->path) == 0;
        return strcmp(usage->root, mount->root) != 0 ||
               cgroup_top_has_parent(search->root, CGROUP_V1, chain->mount) ==
                               cgroup_top_has_parent(search->root, CGROUP_V1, chain->usage_mount);
}

/* cpuacct counts what cpu.stat of v1 does not; often it is mounted with cpu, but it can be a hierarchy of its own. */
static int find_usage(const struct search *search, const struct cgroup_mount *mount,
                      const struct cgroup_mounts *mounts, const char *prefix, struct cgroup_chain *chain) {
        const char *rest, *path = chain->levels[0].path;

        if (search->version != CGROUP_V1)
                return 0;
        for (size_t i = 0; i < mounts->count && !chain->usage_mount; i++) {
                const struct cgroup_mount *usage = mount->has_usage ? mount : &mounts->items[i];

                if (!usage->has_usage || !cgroup_path_below(path, cgroup_mount_top(usage), &rest))
                        continue;
                chain->usage_mount = arena_format(search->arena, "%s%s", prefix, usage->point);
                chain->usage_top = arena_string(search->arena, cgroup_mount_top(usage));
                if (!chain->usage_mount || !chain->usage_top)
                        return -ENOMEM;
                if (!is_parallel(search, mount, usage, chain)) {
                        chain->usage_mount = NULL;
                        return 0;
                }
        }
        /* A group of that name is the process' own only where its cpuacct path leads through it. */
        while (search->usage_path && mount->up == 0 && chain->usage_from < chain->levels_count &&
               !cgroup_path_below(search->usage_path, chain->levels[chain->usage_from].path, &rest))
                chain->usage_from++;
        return 0;
}

/*
 * @path: named from the mount's top. -ENOENT: the group is not below this mount after all; -ENODATA: what lies at the mount's point is
 * another mount.
 */
static int chain_below(const struct search *search, const struct cgroup_mount *mount, const char *path,
                       const struct cgroup_mounts *mounts, const char *prefix,
                       struct cgroup_chain *ret_chain) {
        struct cgroup_chain chain = {.version = search->version, .path = search->path, .tightest = -1};
        const char *top = cgroup_mount_top(mount);
        uint64_t device;
        int r;

        chain.mount = arena_format(search->arena, "%s%s", prefix, mount->point);
        if (!chain.mount)
                return -ENOMEM;
        r = make_levels(search->arena, path, top, &chain);
        if (r < 0)
                return r;
        r = find_usage(search, mount, mounts, prefix, &chain);
        if (r < 0)
                return r;
        r = read_level(search->root, &chain, 0, &device);
        if (r < 0)
                return r;
        if (is_known(device) && device != mount->device)
                return -ENODATA;
        for (size_t i = 1; i < chain.levels_count; i++)
                (void) read_level(search->root, &chain, i, &device);
        find_tightest(&chain);
        chain.parent_hidden = (top[1] && strncmp(top, "/..", 3) != 0) ||
                              cgroup_top_has_parent(search->root, chain.version, chain.mount);
        *ret_chain = chain;
        return 0;
}

/* The first mount that reaches the path: they are sorted by how much they show. -ENODATA: none; else why the best one did not do. */
static int chain_from(const struct search *search, const struct cgroup_mounts *mounts, const char *prefix,
                      struct cgroup_chain *ret_chain) {
        int error = -ENODATA;

        for (size_t i = 0; i < mounts->count; i++) {
                const struct cgroup_mount *mount = &mounts->items[i];
                char directory[PATH_MAX];
                const char *path = search->path, *rest;
                int r, length;

                if (mount->version != search->version || !mount->has_cpu)
                        continue;
                length = snprintf(directory, sizeof(directory), "%s%s", prefix, mount->point);
                if (length < 0 || (size_t) length >= sizeof(directory))
                        continue;
                if (search->is_from_top)
                        r = cgroup_path_below(path, cgroup_mount_top(mount), &rest) ? 0 : -ENODATA;
                else
                        r = cgroup_path_from_top(search->root, mount, directory, path, search->arena, &path);
                if (r == 0)
                        r = chain_below(search, mount, path, mounts, prefix, ret_chain);
                if (r >= 0 || r == -ENOMEM)
                        return r;
                if (error == -ENODATA && r != -ENOENT)
                        error = r;
        }
        return error;
}

/* --- of a process --- */

/* Our own mounts first: they are the ones that may show the levels above a container. */
static int chain_of_search(const struct search *search, pid_t pid, struct cgroup_chain *ret_chain,
                           struct why *why) {
        cleanup_cgroup_mounts struct cgroup_mounts own = {0}, theirs = {0};
        char name[CGROUP_SHOWN_MAX], prefix[32];
        int r, error;

        error = cgroup_own_mounts(search->root, &own);
        if (error == 0)
                error = chain_from(search, &own, "", ret_chain);
        if (error == 0 || error == -ENOMEM)
                return error;
        if (pid != 0) {
                r = cgroup_mounts_of(search->root, pid, &theirs);
                if (r == 0) {
                        (void) snprintf(prefix, sizeof(prefix), "/proc/%d/root", pid);
                        r = chain_from(search, &theirs, prefix, ret_chain);
                }
                if (r == 0 || r == -ENOMEM)
                        return r;
                if (r == -EACCES || r == -EPERM)
                        return why_set(why, r,
                                       "process %d: its control group is only visible through "
                                       "/proc/%d/root: %s",
                                       pid, pid, strerror(-r));
        }
        if (error == -EACCES || error == -EPERM)
                return why_set(why, error, "control group %s: %s", shown(name, search->path),
                               strerror(-error));
        return why_set(why, -ENODATA, "control group %s: no mount of the CPU controller reaches it",
                       shown(name, search->path));
}

/* A removed group's path ends so; but nothing keeps a living group from such a name. */
static bool is_deleted(const char *path) {
        size_t length = strlen(path), n = sizeof(DELETED) - 1;

        return length > n && strcmp(path + length - n, DELETED) == 0;
}

static int read_membership(struct root *root, const char *file, struct search *search, struct why *why) {
        struct cgroup_membership membership;
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        r = root_read(root, file, CGROUP_MEMBERSHIP_MAX, &text, &length);
        if (r == -ENOENT)
                return why_set(why, r, "%s: no such process", file);
        if (r < 0)
                return why_set(why, r, "%s: %s", file, strerror(-r));
        r = cgroup_parse_membership(text, length, &membership);
        if (r < 0)
                return why_set(why, r, "%s names no group of the CPU controller", file);
        search->version = membership.version;
        search->path = arena_string_n(search->arena, membership.path, membership.path_length);
        search->usage_path = NULL;
        if (!search->path)
                return -ENOMEM;
        if (membership.usage_path) {
                search->usage_path = arena_string_n(search->arena, membership.usage_path,
                                                    membership.usage_length);
                if (!search->usage_path)
                        return -ENOMEM;
        }
        return 0;
}

int cgroup_chain_of_pid(struct root *root, pid_t pid, struct arena *arena, struct cgroup_chain *ret_chain,
                        struct why *why) {
        struct search search = {.root = root, .arena = arena};
        char file[32], name[CGROUP_SHOWN_MAX];
        const char *before;
        int r, error;

        if (pid == 0)
                (void) snprintf(file, sizeof(file), "/proc/self/cgroup");
        else
                (void) snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
        r = read_membership(root, file, &search, why);
        for (unsigned i = 0; r == 0; i++) {
                error = chain_of_search(&search, pid, ret_chain, why);
                if (error == 0 || error == -ENOMEM)
                        return error;
                if (is_deleted(search.path))
                        return why_set(why, -ENOENT, "control group %s is gone", shown(name, search.path));
                /* Gone, or moved to a group that can be found? */
                before = search.path;
                r = read_membership(root, file, &search, why);
                if (r == 0 && (strcmp(before, search.path) == 0 || i == MOVES_MAX))
                        return error;
        }
        return r;
}

/* --- of a path --- */

/*
 * A full path ("/sys/fs/cgroup/cpu/x") as one in the hierarchy ("/x"): the longest mount point counts, since one hierarchy may be mounted
 * in another's tree. Not a full path: unchanged. -EINVAL: it is in another controller's hierarchy.
 */
static int path_in_hierarchy(const struct search *search, const struct cgroup_mounts *mounts,
                             const char *path, const char **ret_path) {
        const struct cgroup_mount *best = NULL;
        const char *rest, *best_rest = NULL, *joined;

        for (size_t i = 0; i < mounts->count; i++) {
                const struct cgroup_mount *mount = &mounts->items[i];

                if (mount->point[1] && cgroup_path_below(path, mount->point, &rest) &&
                    (!best || strlen(mount->point) > strlen(best->point))) {
                        best = mount;
                        best_rest = rest;
                }
        }
        if (best && (best->version != search->version || !best->has_cpu))
                return -EINVAL;
        if (best && cgroup_mount_top(best)[1])
                joined = arena_format(search->arena, "%s%s", best->root, best_rest);
        else
                joined = arena_string(search->arena, best ? (best_rest[0] ? best_rest : "/") : path);
        if (!joined)
                return -ENOMEM;
        *ret_path = joined;
        return 0;
}

int cgroup_chain_of_path(struct root *root, const char *path, struct arena *arena,
                         struct cgroup_chain *ret_chain, struct why *why) {
        cleanup_cgroup_mounts struct cgroup_mounts mounts = {0};
        struct search search = {.root = root, .arena = arena, .is_from_top = true};
        char name[CGROUP_SHOWN_MAX], *given;
        const char *rest;
        size_t length;
        int r;

        given = arena_format(arena, "%s%s", path[0] == '/' ? "" : "/", path);
        if (!given)
                return -ENOMEM;
        for (length = strlen(given); length > 1 && given[length - 1] == '/'; length--)
                given[length - 1] = '\0';
        if (!path[0] || strstr(given, "//") || !cgroup_path_below(given, "/", &rest))
                return why_set(why, -EINVAL, "control group %s: not a path of a group", shown(name, path));
        r = cgroup_own_mounts(root, &mounts);
        if (r == 0)
                r = cgroup_own_version(root, &mounts, &search.version);
        if (r < 0) {
                cgroup_no_mount(root, -ENODATA, why);
                return why_wrap(why, -ENODATA, "control group %s", shown(name, given));
        }
        r = path_in_hierarchy(&search, &mounts, given, &search.path);
        if (r == -EINVAL)
                return why_set(why, r, "control group %s is in the hierarchy of another controller",
                               shown(name, given));
        if (r < 0)
                return r;
        r = chain_from(&search, &mounts, "", ret_chain);
        if (r == -ENODATA)
                return why_set(why, -ENOENT, "control group %s: no such group of the CPU controller",
                               shown(name, given));
        if (r < 0 && r != -ENOMEM)
                return why_set(why, r, "control group %s: %s", shown(name, given), strerror(-r));
        return r;
}

uint64_t cgroup_chain_limit_milli(const struct cgroup_chain *chain, unsigned cpus, bool *ret_capped) {
        const struct cgroup_level *level;
        uint64_t milli;

        *ret_capped = false;
        if (chain->tightest < 0)
                return ABSENT;
        level = &chain->levels[chain->tightest];
        milli = cgroup_milli(level->quota_ns, level->period_ns);
        if (cpus == 0 || milli <= (uint64_t) cpus * 1000)
                return milli;
        *ret_capped = true;
        return (uint64_t) cpus * 1000;
}
