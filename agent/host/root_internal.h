/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of the host readers: directories kept open (a file then costs one path component, and no heap), and what root.c
 * and root_capture.c share. Nothing outside agent/host includes this.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "root.h"

struct cgroup_cache;

struct root {
        int fd;    /* the folder, O_PATH; -1: this machine's own "/" */
        bool live; /* a kernel answers below /proc: this machine's root, or the host's mounted in a folder */
        bool has_openat2;     /* 5.6 on; an old container runtime's seccomp filter refuses it */
        bool self_is_foreign; /* /proc/self is a process outside of this root: pid 1 stands for the machine */
        int capture_fd;       /* -1: off */
        uint64_t capture_failures;         /* what could not be saved since root_capture_to() */
        struct cgroup_cache *cgroup_cache; /* cgroup_cache.c; NULL until used */
};

/* Largest listing: more than the default pid_max of a large machine. Beyond: -EFBIG. */
#define ROOT_LIST_MAX 262144u

/* --- paths --- */

/*
 * @path without "." and ".." components (".." above the top is the top) and doubled slashes: either @path itself or @buffer.
 * -EINVAL if it is not absolute, -ENAMETOOLONG beyond PATH_MAX.
 */
int root_clean_path(const char *path, char *buffer, const char **ret_clean);
/* Length of "/proc/X/root", "/proc/X/cwd" or "/proc/X/exe" at the start of @path; 0: none. */
size_t root_magic_prefix(const char *path);

/* --- directories kept open --- */

struct root_dir {
        struct root *root;
        int fd;
        const char *path; /* borrowed: must outlive the directory */
        bool careful;     /* not a kernel file system: a name may be a pipe, a device, a link out */
};

int root_dir_open(struct root *root, const char *path, struct root_dir *ret_dir);
void root_dir_close(struct root_dir *dir);
static inline void root_dir_closep(struct root_dir *dir) {
        root_dir_close(dir);
}
#define cleanup_root_dir __attribute__((cleanup(root_dir_closep)))
/* For the cleanup attribute: nothing to close. */
#define ROOT_DIR_NONE ((struct root_dir){.fd = -1})

/*
 * The file @name (also "12/stat") into @buffer with a NUL behind it. Returns the length, -EFBIG if it does not fit, other negative
 * errno as root_read(). One read() only: right for kernel files that are one record (schedstat, cpu.stat), wrong for lists.
 */
ssize_t root_dir_read(const struct root_dir *dir, const char *name, char *buffer, size_t size);
/* What of the file fits: never -EFBIG. */
ssize_t root_dir_read_head(const struct root_dir *dir, const char *name, char *buffer, size_t size);
/* root_dir_read() for a whole path. */
ssize_t root_read_record(struct root *root, const char *path, char *buffer, size_t size);

struct root_entry {
        const char *name;
        uint64_t inode; /* of a directory of cgroupfs: the group's id */
        bool is_directory;
};
/* Sorted by name. One block: free(*ret_entries). */
int root_dir_list(const struct root_dir *dir, struct root_entry **ret_entries, size_t *ret_count);

/* *ret_subdirectories: their number, SIZE_MAX if only a listing can tell. *ret_device is ABSENT in a folder that did not save it. */
int root_dir_id(const struct root_dir *dir, uint64_t *ret_inode, uint64_t *ret_device,
                size_t *ret_subdirectories);

/* --- root.c for root_capture.c --- */

/* Reads a sidecar of @path ("<path><suffix>") of a folder; the caller frees. */
int root_read_sidecar(const struct root *root, const char *path, const char *suffix, char **ret_data,
                      size_t *ret_length);

/* --- capture and replay: root_capture.c --- */

#define ROOT_SUFFIX_ERRNO ".errno" /* the number: this path could not be read */
#define ROOT_SUFFIX_LINK ".link"   /* a link's target (the kernel's links point at nothing in a folder) */
#define ROOT_SUFFIX_ID ".id"       /* "INODE DEVICE" */
#define ROOT_NAME_LIST                                                                                      \
        ".list" /* in a directory that was listed: "INODE NAME", "INODE NAME/" for a directory, a line each */

static inline bool root_captures(const struct root *root) {
        return root->capture_fd >= 0;
}
void root_capture_data(struct root *root, const char *path, const char *suffix, const void *data,
                       size_t length);
void root_capture_error(struct root *root, const char *path, int error);
void root_capture_id(struct root *root, const char *path, uint64_t inode, uint64_t device);
void root_capture_list(struct root *root, const char *path, const struct root_entry *entries, size_t count);
/* The saved form of a listing; names that no directory can hold are left out. One block, as from root_dir_list(). */
int root_parse_list(const char *data, size_t length, struct root_entry **ret_entries, size_t *ret_count);
void root_capture_directory(struct root *root, const char *path);

/* What the folder noted for a path that is not in it: its negative errno, -ENOENT without a note. */
int root_replay_error(const struct root *root, const char *path);
/* 0, or -ENOENT: no sidecar. */
int root_replay_id(const struct root *root, const char *path, uint64_t *ret_inode, uint64_t *ret_device);
/* A sidecar's name, which a listing of a folder without ".list" must not show. */
bool root_is_sidecar(const char *name);

/* cgroup_cache.c */
void cgroup_cache_free(struct cgroup_cache *cache);
void cgroup_cache_forget(struct root *root);
