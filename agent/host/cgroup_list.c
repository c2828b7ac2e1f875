/* SPDX-License-Identifier: Apache-2.0 */
/* The whole tree of groups, and the processes in them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/number.h"
#include "../base/text.h"
#include "cgroup_internal.h"

/* 2 million processes; the kernel's own maximum is 4 million. A group with more is cut. */
#define PROCS_MAX ROOT_FILE_MAX

/* A tree is walked with a stack of our own: how deep it is, a container decides. */
struct waiting {
        const char *path; /* within the hierarchy */
        uint64_t id;
        uint32_t depth;
};
struct walk {
        struct root *root;
        struct arena *arena;
        const char *mount, *top;
        struct waiting *stack;
        size_t count, room;
};

static int push(struct walk *walk, const char *path, uint64_t id, uint32_t depth) {
        if (!path)
                return -ENOMEM;
        walk->stack = arena_grow(walk->arena, walk->stack, walk->count, &walk->room, sizeof(*walk->stack));
        if (!walk->stack)
                return -ENOMEM;
        walk->stack[walk->count++] = (struct waiting){path, id, depth};
        return 0;
}

/* Puts the groups below @at on the stack, the first name on top. A group that vanishes meanwhile has none. */
static int push_children(struct walk *walk, const struct root_dir *dir, const struct waiting *at,
                         size_t max) {
        cleanup_free struct root_entry *entries = NULL;
        uint64_t id, device;
        size_t count, subdirectories;
        int r;

        if (root_dir_id(dir, &id, &device, &subdirectories) < 0 || subdirectories == 0 ||
            root_dir_list(dir, &entries, &count) < 0)
                return 0;
        for (size_t i = count; i-- > 0;) {
                if (!entries[i].is_directory)
                        continue;
                /* No more than the caller takes are kept waiting. */
                if (walk->count > max)
                        break;
                r = push(walk,
                         arena_format(walk->arena, "%s/%s", strcmp(at->path, "/") == 0 ? "" : at->path,
                                      entries[i].name),
                         entries[i].inode, at->depth + 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int open_waiting(const struct walk *walk, const struct waiting *at, char directory[static PATH_MAX],
                        struct root_dir *ret_dir) {
        if (!cgroup_directory(directory, walk->mount, walk->top, at->path))
                return -ENAMETOOLONG;
        return root_dir_open(walk->root, directory, ret_dir);
}

/* The mount that shows the most of the CPU hierarchy. */
static int own_hierarchy(struct root *root, struct cgroup_mounts *ret_mounts,
                         const struct cgroup_mount **ret_mount, struct why *why) {
        enum cgroup_version version = CGROUP_VERSION_UNKNOWN;
        int r = cgroup_own_mounts(root, ret_mounts);

        if (r == 0)
                r = cgroup_own_version(root, ret_mounts, &version);
        for (size_t i = 0; r == 0 && i < ret_mounts->count; i++) {
                const struct cgroup_mount *mount = &ret_mounts->items[i];
                uint64_t id, device;

                if (mount->version != version || !mount->has_cpu ||
                    root_id(root, mount->point, &id, &device) < 0 ||
                    (is_known(device) && device != mount->device))
                        continue;
                *ret_mount = mount;
                return 0;
        }
        r = r == -ENOMEM ? r : -ENODATA;
        cgroup_no_mount(root, r, why);
        return r;
}

int cgroup_list(struct root *root, size_t max, struct arena *arena, struct cgroup_entry **ret_entries,
                size_t *ret_count, bool *ret_cut, struct why *why) {
        cleanup_cgroup_mounts struct cgroup_mounts mounts = {0};
        struct walk walk = {.root = root, .arena = arena};
        struct cgroup_entry *entries = NULL;
        const struct cgroup_mount *mount = NULL;
        uint64_t id, device;
        size_t count = 0, room = 0;
        int r;

        r = own_hierarchy(root, &mounts, &mount, why);
        if (r < 0)
                return r;
        walk.mount = mount->point;
        walk.top = cgroup_mount_top(mount);
        r = root_id(root, mount->point, &id, &device);
        if (r == 0)
                r = push(&walk, arena_string(arena, walk.top), id, 0);
        while (r == 0 && walk.count > 0 && count < max) {
                struct waiting at = walk.stack[--walk.count];
                cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
                char directory[PATH_MAX];

                if (open_waiting(&walk, &at, directory, &dir) < 0)
                        continue;
                r = push_children(&walk, &dir, &at, max);
                if (r < 0)
                        return r;
                entries = arena_grow(arena, entries, count, &room, sizeof(*entries));
                if (!entries)
                        return -ENOMEM;
                entries[count++] = (struct cgroup_entry){
                                .path = at.path,
                                .id = at.id,
                                .depth = at.depth,
                                .has_limit = cgroup_has_limit(&dir, mount->version),
                };
        }
        if (r < 0)
                return r;
        *ret_entries = entries;
        *ret_count = count;
        *ret_cut = walk.count > 0;
        return 0;
}

static bool has_process(const struct walk *walk, const char *directory, pid_t pid) {
        char path[PATH_MAX + sizeof("/cgroup.procs")], line[16];
        cleanup_free char *text = NULL;
        size_t n = (size_t) snprintf(line, sizeof(line), "%d\n", pid);

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
        if (root_read(walk->root, path, PROCS_MAX, &text, NULL) < 0)
                return false;
        for (const char *p = text; (p = strstr(p, line)); p += n)
                if (p == text || p[-1] == '\n')
                        return true;
        return false;
}

int cgroup_find_process(struct root *root, const char *directory, unsigned depth, pid_t pid,
                        struct arena *arena, const char **ret_path) {
        struct walk walk = {.root = root, .arena = arena, .mount = directory, .top = "/"};
        int r = push(&walk, "/", 0, 0);

        while (r == 0 && walk.count > 0) {
                struct waiting at = walk.stack[--walk.count];
                cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
                char group[PATH_MAX];

                if (open_waiting(&walk, &at, group, &dir) < 0)
                        continue;
                if (at.depth < depth)
                        r = push_children(&walk, &dir, &at, SIZE_MAX);
                else if (has_process(&walk, group, pid)) {
                        *ret_path = at.path;
                        return 0;
                }
        }
        return r < 0 ? r : -ENOENT;
}

/* --- processes --- */

struct pids {
        pid_t *items;
        size_t count, room;
};

/* The process that the thread @tid belongs to; 0: gone. */
static pid_t process_of(struct root *root, pid_t tid) {
        cleanup_free char *text = NULL;
        char path[64], *line;
        uint64_t value;

        (void) snprintf(path, sizeof(path), "/proc/%d/status", tid);
        if (root_read(root, path, CGROUP_RECORD_MAX * 4, &text, NULL) < 0)
                return 0;
        line = strstr(text, "\nTgid:\t");
        if (!line || number_parse_u64_n(line + 7, strcspn(line + 7, "\n"), &value) < 0 || value > INT32_MAX)
                return 0;
        return (pid_t) value;
}

/* A line a number. 0 stands for a process outside of the reader's PID namespace. 1: there are more than @max. */
static int add_pids(const struct walk *walk, const char *text, size_t length, bool are_threads, size_t max,
                    struct pids *pids) {
        for (const char *line = text, *end = text + length, *next; line < end; line = next) {
                const char *newline = memchr(line, '\n', (size_t) (end - line));
                uint64_t value;
                pid_t pid;

                next = newline ? newline + 1 : end;
                if (number_parse_u64_n(line, (size_t) ((newline ? newline : end) - line), &value) < 0 ||
                    value == 0 || value > INT32_MAX)
                        continue;
                pid = are_threads ? process_of(walk->root, (pid_t) value) : (pid_t) value;
                if (pid == 0 || (pids->count > 0 && pids->items[pids->count - 1] == pid))
                        continue;
                if (pids->count == max)
                        return 1;
                pids->items = arena_grow(walk->arena, pids->items, pids->count, &pids->room,
                                         sizeof(*pids->items));
                if (!pids->items)
                        return -ENOMEM;
                pids->items[pids->count++] = pid;
        }
        return 0;
}

static int read_pids(const struct walk *walk, const char *directory, size_t max, struct pids *pids) {
        char path[PATH_MAX + sizeof("/cgroup.threads")];
        cleanup_free char *text = NULL;
        bool are_threads;
        size_t length;
        int r;

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
        r = root_read(walk->root, path, PROCS_MAX, &text, &length);
        are_threads = r == -EOPNOTSUPP;
        if (are_threads) {
                (void) snprintf(path, sizeof(path), "%s/cgroup.threads", directory);
                r = root_read(walk->root, path, PROCS_MAX, &text, &length);
        }
        return r < 0 ? r : add_pids(walk, text, length, are_threads, max, pids);
}

static int pid_compare(const void *a, const void *b) {
        const pid_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

int cgroup_pids(struct root *root, const struct cgroup_chain *chain, bool recursive, size_t max,
                struct arena *arena, pid_t **ret_pids, size_t *ret_count) {
        struct walk walk = {
                        .root = root,
                        .arena = arena,
                        .mount = chain->mount,
                        .top = chain->levels[chain->levels_count - 1].path,
        };
        struct pids pids = {0};
        size_t kept = 0;
        int r, cut = 0;

        r = push(&walk, chain->levels[0].path, chain->levels[0].id, 0);
        for (bool is_first = true; r >= 0 && walk.count > 0 && cut == 0; is_first = false) {
                struct waiting at = walk.stack[--walk.count];
                cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
                char directory[PATH_MAX];

                r = open_waiting(&walk, &at, directory, &dir);
                if (r == 0)
                        r = cut = read_pids(&walk, directory, max, &pids);
                if (r >= 0 && recursive)
                        r = push_children(&walk, &dir, &at, max);
                /* Groups come and go below; only the one that was asked for must be there. */
                if (r < 0 && r != -ENOMEM && !is_first)
                        r = 0;
        }
        if (r < 0)
                return r;
        if (pids.count > 1)
                qsort(pids.items, pids.count, sizeof(*pids.items), pid_compare);
        for (size_t i = 0; i < pids.count; i++)
                if (kept == 0 || pids.items[kept - 1] != pids.items[i])
                        pids.items[kept++] = pids.items[i];
        *ret_pids = pids.items;
        *ret_count = kept;
        return cut;
}
