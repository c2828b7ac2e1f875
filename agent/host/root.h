/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The root handle: every file of the host is read relative to it, so any folder can be the host ("--root"), and
 * everything read can be saved ("--capture") to be replayed. Paths are absolute as the kernel names them
 * ("/proc/12/cgroup") and are taken below the root; ".." never leaves it.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/why.h"

struct root;

/* @directory NULL or "/": this machine. 0 or negative errno with a sentence. */
int root_open(const char *directory, struct root **ret_root, struct why *why);
void root_free(struct root *root);
/* A replayed folder: the machine's own clock, ids and live queries do not apply. */
bool root_is_live(const struct root *root);

/* From now on each file, link and directory list that is read is also written below @directory, under its own path.
 * Files that could not be read are noted ("<path>.errno" with the number), so that a replay fails the same way. */
int root_capture_to(struct root *root, const char *directory, struct why *why);
void root_capture_stop(struct root *root);
/* Is what is read saved: is it worth making what root_capture_file() would save? */
bool root_is_captured(const struct root *root);
/* How many files could not be saved since root_capture_to() (disk full, name too long): the folder is incomplete by so many. */
uint64_t root_capture_failures(const struct root *root);
/* Files named "environ" are never saved as read: they hold secrets. Their reader saves here what of @path may be kept. */
void root_capture_file(struct root *root, const char *path, const void *data, size_t length);

#define ROOT_FILE_MAX (16u << 20)
/*
 * Whole file, NUL-terminated, at most @max bytes (-EFBIG beyond). Returns 0; the caller frees *ret_data. ret_length may be NULL.
 * -ENOENT, -ESRCH and -ENODEV (a cgroup or process that vanished while read) are all returned as -ENOENT.
 */
int root_read(struct root *root, const char *path, size_t max, char **ret_data, size_t *ret_length);
/*
 * A regular file opened for reading, for who reads parts of it (memory, an ELF file). Nothing read through it is ever saved by a
 * capture. A descriptor, or negative errno as root_read().
 */
int root_open_file(struct root *root, const char *path);
/* Target of a symbolic link. The caller frees. */
int root_read_link(struct root *root, const char *path, char **ret_target);
/* Names in a directory but "." and "..", sorted, NULL-terminated; free with root_names_free(). */
int root_list(struct root *root, const char *path, char ***ret_names);
void root_names_free(char **names);
/* Inode and device of a file or directory: a cgroup directory's inode is its kernel id (kernfs: 64 bit). */
int root_id(struct root *root, const char *path, uint64_t *ret_inode, uint64_t *ret_device);
