/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of the cgroup reader. First the parsers: pure functions over text that may hold anything (NUL bytes, half lines); what
 * they return points into that text or lives in the arena. Then what the files of the reader share.
 */
#include <limits.h>

#include "cgroup.h"
#include "root_internal.h"

/* Groups can be nested without end (a container may do so in its own); the chain keeps the leaf and the upper ones. */
#define CGROUP_LEVELS_MAX 64u
/* Children whose limits are added up; a group with more gets no sum. */
#define CGROUP_CHILDREN_MAX 1024u
/* cpu.stat has about 15 lines; a record that does not fit counts as malformed. */
#define CGROUP_RECORD_MAX 4096u
/* A line of /proc/PID/cgroup is at most PATH_MAX long, and there is one a hierarchy. */
#define CGROUP_MEMBERSHIP_MAX (256u << 10)

/* --- /proc/PID/cgroup and mountinfo: cgroup_mount.c --- */

struct cgroup_membership {
        enum cgroup_version version;
        const char *path; /* the cpu controller's; all text after the second colon, not terminated */
        size_t path_length;
        const char *usage_path; /* v1: cpuacct's; NULL: none */
        size_t usage_length;
};
/* 0, or -ENODATA if no line says where the cpu controller is. */
int cgroup_parse_membership(const char *text, size_t length, struct cgroup_membership *ret_membership);

struct cgroup_mount {
        enum cgroup_version version;
        bool has_cpu, has_usage; /* controllers; on v2 has_cpu is always true */
        uint64_t device;         /* as in st_dev */
        const char *root; /* path in the hierarchy that is mounted, seen from the reader's cgroup namespace: may be "/../x" */
        const char *point;
        unsigned up; /* root is "/..", "/../..": it lies so many levels above the reader's cgroup namespace; else 0 */
};
/* A container can make as many mounts as the kernel lets it. */
#define CGROUP_MOUNTS_MAX 128u
/* The cgroup mounts, those that show the most levels first (that reach above our namespace, then the shortest root), at most CGROUP_MOUNTS_MAX. Lines that do not
 * parse are skipped. 0 or -ENOMEM. */
int cgroup_parse_mounts(const char *text, size_t length, struct arena *arena,
                        struct cgroup_mount **ret_mounts, size_t *ret_count);

/* What the top of the mount is called in our paths: its root, or "/" where that has no name of its own. */
static inline const char *cgroup_mount_top(const struct cgroup_mount *mount) {
        return mount->up > 0 ? "/" : mount->root;
}

/*
 * Is @path the directory @top or below it, cut at a component? *ret_rest is "" or starts with '/'. A rest with ".." lies outside: a path
 * "/../x" is not below "/", but it is below "/..".
 */
bool cgroup_path_below(const char *path, const char *top, const char **ret_rest);

/* --- the files of a level: cgroup_parse.c --- */

struct cgroup_limit {
        enum cgroup_limit_state state;
        uint64_t quota_ns, period_ns; /* only with CGROUP_LIMIT_SET */
};
void cgroup_parse_max(const char *text, size_t length, struct cgroup_limit *ret_limit);
/* v1. @period NULL: the file could not be read. */
void cgroup_parse_quota(const char *quota, size_t quota_length, const char *period, size_t period_length,
                        struct cgroup_limit *ret_limit);
/* A file that is one number, ABSENT if it is not. */
uint64_t cgroup_parse_number(const char *text, size_t length);
/* Sets the keys that are there; the others are left alone. v1 and v2 names, each with its own unit. */
void cgroup_parse_stat(const char *text, size_t length, struct cgroup_cpu_stat *stat);
void cgroup_parse_stat_local(const char *text, size_t length, struct cgroup_cpu_stat *stat);
void cgroup_parse_pressure(const char *text, size_t length, struct cgroup_cpu_stat *stat);
/* @us in nanoseconds, ABSENT if it is or does not fit. */
uint64_t cgroup_us_to_ns(uint64_t us);
/* In thousandths of a CPU, to the nearest, at least 1. */
uint64_t cgroup_milli(uint64_t quota_ns, uint64_t period_ns);

/* --- reading a level: cgroup_level.c --- */

struct cgroup_reading {
        struct cgroup_level level; /* without path */
        uint64_t device;           /* ABSENT: not known */
};
/*
 * @usage_directory: where cpuacct.usage is, NULL: nowhere (or v2). On failure (-ENOENT: the group is gone) *ret_reading is an
 * unknown level. Within a tick each directory is read once.
 */
int cgroup_level_read(struct root *root, enum cgroup_version version, const char *directory,
                      const char *usage_directory, struct cgroup_reading *ret_reading);
struct cgroup_level cgroup_level_unknown(void);
/* The limit of the group @name below @dir ("": of @dir itself). */
void cgroup_limit_read(const struct root_dir *dir, enum cgroup_version version, const char *name,
                       struct cgroup_limit *ret_limit);
/* Only whether there is one, for listings: a file less on v1. */
bool cgroup_has_limit(const struct root_dir *dir, enum cgroup_version version);
/* Is the group at a mount's top below another one, so that a cgroup namespace or a bind mount hides the rest? */
bool cgroup_top_has_parent(struct root *root, enum cgroup_version version, const char *directory);

/* --- what is remembered: cgroup_cache.c --- */

struct cgroup_mounts {
        const struct cgroup_mount *items;
        size_t count;
        enum cgroup_version version; /* of our own CPU controller; UNKNOWN: not looked at yet */
        struct arena *owner;         /* NULL: the cache */
};
static inline void cgroup_mounts_release(struct cgroup_mounts *mounts) {
        arena_free(mounts->owner);
}
#define cleanup_cgroup_mounts __attribute__((cleanup(cgroup_mounts_release)))
/* The cgroup mounts of this machine as we see them. */
int cgroup_own_mounts(struct root *root, struct cgroup_mounts *ret_mounts);
/* The sentence for a hierarchy that is not found: it may be /proc that is missing. Returns @error. */
int cgroup_no_mount(struct root *root, int error, struct why *why);
/* Those in a process' mountinfo, which is foreign text: parsed in an arena of their own, so that they can't fill the snapshot's. */
int cgroup_mounts_of(struct root *root, pid_t pid, struct cgroup_mounts *ret_mounts);
/* The file of the process that stands for ourselves: "mountinfo", "cgroup". */
int cgroup_read_own(struct root *root, const char *name, size_t max, char **ret_data, size_t *ret_length);
const struct cgroup_reading *cgroup_cache_find(struct root *root, const char *directory);
void cgroup_cache_add(struct root *root, const char *directory, const struct cgroup_reading *reading);
/* Answers of cgroup_top_has_parent() within the tick. */
bool cgroup_cache_find_top(struct root *root, const char *directory, bool *ret_has_parent);
void cgroup_cache_add_top(struct root *root, const char *directory, bool has_parent);

/* --- where a hierarchy is read: cgroup_place.c --- */

/* Which hierarchy holds the cpu controller, for paths that people give and for listings. -ENODATA: none. */
int cgroup_own_version(struct root *root, const struct cgroup_mounts *mounts,
                       enum cgroup_version *ret_version);
/* Directory of the group @path in the hierarchy whose group @top is mounted at @mount; false: too long or not below. */
bool cgroup_directory(char out[static PATH_MAX], const char *mount, const char *top, const char *path);
/*
 * @path as /proc/PID/cgroup shows it to us, named from the top of @mount, whose directory is @directory. The same text unless the mount
 * reaches above our cgroup namespace (the host's /sys/fs/cgroup in a container): there "/../b" is "/kubepods/pod1/b", which takes to
 * know the namespace's own place. -ENODATA: that could not be found, or the path leads elsewhere.
 */
int cgroup_path_from_top(struct root *root, const struct cgroup_mount *mount, const char *directory,
                         const char *path, struct arena *arena, const char **ret_path);
/* The group at @depth below @directory that has process @pid in it. -ENOENT: none. cgroup_list.c */
int cgroup_find_process(struct root *root, const char *directory, unsigned depth, pid_t pid,
                        struct arena *arena, const char **ret_path);
/* Where our cgroup namespace begins: NULL if not looked for yet, "" if not found. cgroup_cache.c */
const char *cgroup_cache_namespace(struct root *root);
void cgroup_cache_set_namespace(struct root *root, const char *path);
/* How much of a foreign path a sentence shows. */
#define CGROUP_SHOWN_MAX 200
