/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader remembers. The machine's own cgroup mounts: on a node mountinfo has thousands of lines, and the kernel says when it
 * changed. And within one tick the levels that many containers share, so that 500 containers cost 500 leaves and not 500 chains.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_internal.h"
#include "root_path.h"

#define MOUNTINFO_OWN_MAX (16u << 20)
#define MOUNTINFO_FOREIGN_MAX (4u << 20)
#define MOUNTS_ARENA_MAX ((size_t) 16 << 20)
/* 2,000 containers with a Pod each, paths of 300 bytes. */
#define LEVELS_ARENA_MAX ((size_t) 4 << 20)
#define BUCKETS 1024u
/* The newest ones: a node has two; containers that are read through their own mounts are few. */
#define TOPS_TRIED 16u

struct remembered {
        struct remembered *next;
        uint64_t hash;
        const char *directory;
        struct cgroup_reading reading;
};

struct top {
        struct top *next;
        const char *directory;
        bool has_parent;
};

struct cgroup_cache {
        int mountinfo_fd; /* only polled; -1: nothing remembered */
        struct arena *mounts_arena;
        struct cgroup_mounts mounts;

        char *namespace_root; /* NULL: not looked for yet, "": not found */

        struct arena *levels_arena; /* NULL: not within a tick */
        struct remembered *buckets[BUCKETS];
        struct top *tops; /* one a hierarchy, and one a container that is read through its own mount */
};

static struct cgroup_cache *cache_of(struct root *root) {
        if (!root->cgroup_cache) {
                root->cgroup_cache = calloc(1, sizeof(*root->cgroup_cache));
                if (root->cgroup_cache)
                        root->cgroup_cache->mountinfo_fd = -1;
        }
        return root->cgroup_cache;
}

static void forget_levels(struct cgroup_cache *cache) {
        arena_free(cache->levels_arena);
        cache->levels_arena = NULL;
        cache->tops = NULL;
        memset(cache->buckets, 0, sizeof(cache->buckets));
}

static void forget_mounts(struct cgroup_cache *cache) {
        cleanup_fdp(&cache->mountinfo_fd);
        cache->mountinfo_fd = -1;
        arena_free(cache->mounts_arena);
        cache->mounts_arena = NULL;
        /* With other mounts it may be found after all. */
        if (cache->namespace_root && !cache->namespace_root[0])
                free(take_ptr(cache->namespace_root));
}

void cgroup_cache_forget(struct root *root) {
        struct cgroup_cache *cache = root->cgroup_cache;
        bool in_tick;

        if (!cache)
                return;
        in_tick = cache->levels_arena;
        forget_levels(cache);
        forget_mounts(cache);
        if (in_tick)
                cgroup_tick_begin(root);
}

void cgroup_cache_free(struct cgroup_cache *cache) {
        if (!cache)
                return;
        forget_levels(cache);
        forget_mounts(cache);
        free(cache->namespace_root);
        free(cache);
}

/* --- mounts --- */

int cgroup_read_own(struct root *root, const char *name, size_t max, char **ret_data, size_t *ret_length) {
        char path[64];
        int r = -ENOENT;

        (void) snprintf(path, sizeof(path), "/proc/self/%s", name);
        if (!root->self_is_foreign)
                r = root_read(root, path, max, ret_data, ret_length);
        /* Pid 1 stands for a machine whose "self" is none of its processes, or was not saved. */
        if (r == -ENOENT && (root->self_is_foreign || !root->live)) {
                (void) snprintf(path, sizeof(path), "/proc/1/%s", name);
                r = root_read(root, path, max, ret_data, ret_length);
        }
        return r;
}

static int parse(const char *text, size_t length, struct cgroup_mounts *ret_mounts) {
        cleanup_arena struct arena *arena = arena_new(MOUNTS_ARENA_MAX);
        struct cgroup_mount *mounts;
        size_t count;
        int r;

        if (!arena)
                return -ENOMEM;
        r = cgroup_parse_mounts(text, length, arena, &mounts, &count);
        if (r < 0)
                return r;
        *ret_mounts = (struct cgroup_mounts){mounts, count, CGROUP_VERSION_UNKNOWN, take_ptr(arena)};
        return 0;
}

/* Has the mount table changed since the descriptor was opened or asked last? (mounts_poll() in fs/namespace) */
static bool has_changed(int fd) {
        struct pollfd entry = {.fd = fd, .events = POLLPRI};

        return poll(&entry, 1, 0) != 0;
}

int cgroup_own_mounts(struct root *root, struct cgroup_mounts *ret_mounts) {
        /* A folder does not say when it changes, and a capture must hold what each tick needs. */
        bool remember = root->live && !root_captures(root);
        struct cgroup_cache *cache = remember ? cache_of(root) : NULL;
        cleanup_free char *text = NULL;
        cleanup_fd int fd = -1;
        size_t length;
        int r;

        if (cache && cache->mountinfo_fd >= 0) {
                if (!has_changed(cache->mountinfo_fd)) {
                        *ret_mounts = cache->mounts;
                        return 0;
                }
                forget_mounts(cache);
        }
        /* Opened before it is read: a change in between is seen at the next call. */
        if (cache)
                fd = root_open_path(root,
                                    root->self_is_foreign ? "/proc/1/mountinfo" : "/proc/self/mountinfo",
                                    O_RDONLY | O_NONBLOCK);
        r = cgroup_read_own(root, "mountinfo", MOUNTINFO_OWN_MAX, &text, &length);
        if (r < 0)
                return r;
        r = parse(text, length, ret_mounts);
        if (r < 0 || fd < 0)
                return r;
        cache->mountinfo_fd = take_fd(fd);
        cache->mounts_arena = take_ptr(ret_mounts->owner);
        (void) cgroup_own_version(root, ret_mounts, &ret_mounts->version);
        cache->mounts = *ret_mounts;
        return 0;
}

int cgroup_mounts_of(struct root *root, pid_t pid, struct cgroup_mounts *ret_mounts) {
        cleanup_free char *text = NULL;
        char path[64];
        size_t length;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
        r = root_read(root, path, MOUNTINFO_FOREIGN_MAX, &text, &length);
        return r < 0 ? r : parse(text, length, ret_mounts);
}

const char *cgroup_cache_namespace(struct root *root) {
        return root->cgroup_cache ? root->cgroup_cache->namespace_root : NULL;
}

void cgroup_cache_set_namespace(struct root *root, const char *path) {
        struct cgroup_cache *cache = cache_of(root);

        if (!cache)
                return;
        free(cache->namespace_root);
        cache->namespace_root = strdup(path);
}

/* --- levels --- */

void cgroup_tick_begin(struct root *root) {
        struct cgroup_cache *cache = cache_of(root);

        if (!cache)
                return; /* no memory for it: every level is read each time */
        forget_levels(cache);
        cache->levels_arena = arena_new(LEVELS_ARENA_MAX);
}

void cgroup_tick_end(struct root *root) {
        if (root->cgroup_cache)
                forget_levels(root->cgroup_cache);
}

static uint64_t hash_of(const char *text) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

        for (; *text; text++)
                hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        return hash;
}

const struct cgroup_reading *cgroup_cache_find(struct root *root, const char *directory) {
        struct cgroup_cache *cache = root->cgroup_cache;
        uint64_t hash;

        if (!cache || !cache->levels_arena)
                return NULL;
        hash = hash_of(directory);
        for (const struct remembered *entry = cache->buckets[hash % BUCKETS]; entry; entry = entry->next)
                if (entry->hash == hash && strcmp(entry->directory, directory) == 0)
                        return &entry->reading;
        return NULL;
}

/* A full arena means that the rest is read each time: slower, not wrong. */
void cgroup_cache_add(struct root *root, const char *directory, const struct cgroup_reading *reading) {
        struct cgroup_cache *cache = root->cgroup_cache;
        struct remembered *entry;

        if (!cache || !cache->levels_arena)
                return;
        entry = arena_alloc(cache->levels_arena, sizeof(*entry));
        if (!entry)
                return;
        entry->directory = arena_string(cache->levels_arena, directory);
        if (!entry->directory)
                return;
        entry->hash = hash_of(directory);
        entry->reading = *reading;
        entry->next = cache->buckets[entry->hash % BUCKETS];
        cache->buckets[entry->hash % BUCKETS] = entry;
}

bool cgroup_cache_find_top(struct root *root, const char *directory, bool *ret_has_parent) {
        struct cgroup_cache *cache = root->cgroup_cache;
        unsigned tried = 0;

        if (!cache)
                return false;
        for (const struct top *top = cache->tops; top && tried < TOPS_TRIED; top = top->next, tried++)
                if (strcmp(top->directory, directory) == 0) {
                        *ret_has_parent = top->has_parent;
                        return true;
                }
        return false;
}

void cgroup_cache_add_top(struct root *root, const char *directory, bool has_parent) {
        struct cgroup_cache *cache = root->cgroup_cache;
        struct top *top;

        if (!cache || !cache->levels_arena)
                return;
        top = arena_alloc(cache->levels_arena, sizeof(*top));
        if (!top)
                return;
        top->directory = arena_string(cache->levels_arena, directory);
        if (!top->directory)
                return;
        top->has_parent = has_parent;
        top->next = cache->tops;
        cache->tops = top;
}

int cgroup_no_mount(struct root *root, int error, struct why *why) {
        cleanup_free char *mounts = NULL;
        int r = root_read(root, "/proc/self/mountinfo", ROOT_FILE_MAX, &mounts, NULL);

        if (r < 0)
                return why_set(why, error, "/proc/self/mountinfo cannot be read (%s): is /proc mounted?",
                               strerror(-r));
        return why_set(why, error, "no CPU controller is mounted here");
}
