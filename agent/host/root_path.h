/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a path below a root is opened. Three things must not happen: a link or ".." leads out of the root (a folder from a
 * bug report, a hostile container's file system), opening has an effect or waits (pipes, devices), and the common case
 * (this machine's own /proc and /sys) costs more than one system call.
 */
#include <stdbool.h>

#include "root_internal.h"

/* Is @path in the kernel's own file systems of this machine, so that a plain open() is safe? @path is clean. */
bool root_is_kernel_path(const struct root *root, const char *path);
/* Opens the clean @path with @flags (O_PATH, O_DIRECTORY, ...) below the root. A descriptor or negative errno. */
int root_open_path(const struct root *root, const char *path, int flags);
/* Opens @name, taken below @directory_fd: a regular file only (else -EINVAL), for reading. */
int root_open_regular_at(const struct root *root, int directory_fd, const char *name);
/* The clean @path, a regular file, for reading. */
int root_open_regular(const struct root *root, const char *path);
/* Does the file system of @fd hold only what the kernel makes (no pipes, devices, foreign links)? */
bool root_is_kernel_fs(int fd);
bool root_probe_openat2(void);
