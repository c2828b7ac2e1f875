/* SPDX-License-Identifier: Apache-2.0 */
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "../base/absent.h"
#include "../base/memory.h"
#include "root_internal.h"
#include "root_path.h"

/* Enough for one record of most files, so that most are read with one call and its end-of-file. */
#define READ_FIRST 4096u

/* A process or group that goes while it is read: three numbers, one meaning. */
static int vanished_is_enoent(int error) {
        return error == -ESRCH || error == -ENODEV ? -ENOENT : error;
}

/* A folder may say why a path is not in it. */
static int settle_error(struct root *root, const char *path, int error) {
        error = vanished_is_enoent(error);
        if (error == -ENOENT && !root->live)
                error = root_replay_error(root, path);
        if (root_captures(root))
                root_capture_error(root, path, error);
        return error;
}

int root_open(const char *directory, struct root **ret_root, struct why *why) {
        struct root *root;
        int fd = -1;

        if (directory && strcmp(directory, "/") != 0) {
                fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0)
                        return why_set(why, -errno, "root folder %s: %s", directory, strerror(errno));
        }
        root = calloc(1, sizeof(*root));
        if (!root) {
                cleanup_fdp(&fd);
                return -ENOMEM;
        }
        root->fd = fd;
        root->capture_fd = -1;
        root->has_openat2 = root_probe_openat2();
        root->live = fd < 0;
        if (fd >= 0) {
                /* A host's root mounted into our container: its /proc is a kernel's, and "self" is not a process of it. */
                cleanup_fd int proc = root_open_path(root, "/proc", O_PATH | O_DIRECTORY);
                struct statfs fs;

                root->live = proc >= 0 && fstatfs(proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
                root->self_is_foreign = root->live;
        }
        *ret_root = root;
        return 0;
}

void root_free(struct root *root) {
        if (!root)
                return;
        root_capture_stop(root);
        cgroup_cache_free(root->cgroup_cache);
        cleanup_fdp(&root->fd);
        free(root);
}

bool root_is_live(const struct root *root) {
        return root->live;
}

/* --- files --- */

static int read_all(int fd, size_t max, char **ret_data, size_t *ret_length) {
        size_t room = READ_FIRST < max ? READ_FIRST : max, length = 0;
        cleanup_free char *data = malloc(room + 1);

        if (!data)
                return -ENOMEM;
        for (;;) {
                ssize_t n;

                if (length == room) {
                        /* One byte past the maximum tells a file that just fits from one that does not. */
                        size_t more = room < max / 4 ? room * 4 : max + 1;
                        char *grown;

                        if (room > max)
                                return -EFBIG;
                        grown = realloc(data, more + 1);
                        if (!grown)
                                return -ENOMEM;
                        data = grown;
                        room = more;
                }
                n = read(fd, data + length, room - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        data[length] = '\0';
        *ret_length = length;
        *ret_data = take_ptr(data);
        return 0;
}

int root_read(struct root *root, const char *path, size_t max, char **ret_data, size_t *ret_length) {
        char buffer[PATH_MAX];
        size_t length;
        char *data;
        int r = root_clean_path(path, buffer, &path);

        if (r < 0)
                return r;
        cleanup_fd int fd = root_open_regular(root, path);

        r = fd < 0 ? fd : read_all(fd, max < ROOT_FILE_MAX ? max : ROOT_FILE_MAX, &data, &length);
        if (r < 0)
                return settle_error(root, path, r);
        if (root_captures(root))
                root_capture_data(root, path, "", data, length);
        if (ret_length)
                *ret_length = length;
        *ret_data = data;
        return 0;
}

int root_open_file(struct root *root, const char *path) {
        char buffer[PATH_MAX];
        int r = root_clean_path(path, buffer, &path);

        if (r < 0)
                return r;
        r = root_open_regular(root, path);
        if (r == -ENOENT && !root->live)
                r = root_replay_error(root, path);
        return vanished_is_enoent(r);
}

int root_read_sidecar(const struct root *root, const char *path, const char *suffix, char **ret_data,
                      size_t *ret_length) {
        char name[PATH_MAX];
        int length = snprintf(name, sizeof(name), "%s%s", path, suffix);

        if (length < 0 || (size_t) length >= sizeof(name))
                return -ENAMETOOLONG;
        cleanup_fd int fd = root_open_regular(root, name);

        return fd < 0 ? fd : read_all(fd, ROOT_FILE_MAX, ret_data, ret_length);
}

/* --- links --- */

static ssize_t read_link(const struct root *root, const char *path, char *target, size_t size) {
        const char *name = strrchr(path, '/') + 1;
        char parent[PATH_MAX];
        ssize_t n;

        if (root_is_kernel_path(root, path) && root->fd < 0) {
                n = readlink(path, target, size);
                return n < 0 ? -errno : n;
        }
        memcpy(parent, path, (size_t) (name - path));
        parent[name - path - (name - path > 1)] = '\0';
        cleanup_fd int fd = root_open_path(root, parent, O_PATH | O_DIRECTORY);

        if (fd < 0)
                return fd;
        n = readlinkat(fd, name, target, size);
        return n < 0 ? -errno : n;
}

int root_read_link(struct root *root, const char *path, char **ret_target) {
        char buffer[PATH_MAX], target[PATH_MAX];
        cleanup_free char *copy = NULL;
        ssize_t n;
        int r = root_clean_path(path, buffer, &path);

        if (r < 0)
                return r;
        n = read_link(root, path, target, sizeof(target));
        if (n == (ssize_t) sizeof(target))
                n = -ENAMETOOLONG;
        if ((n == -ENOENT || n == -EINVAL || n == -ENOTDIR) && !root->live) {
                size_t length = 0;

                if (root_read_sidecar(root, path, ROOT_SUFFIX_LINK, &copy, &length) == 0)
                        n = length < PATH_MAX ? (ssize_t) length : -ENAMETOOLONG;
                else if (n == -EINVAL)
                        n = -ENOENT; /* saved as a file, and never as a link */
        }
        if (n < 0)
                return settle_error(root, path, (int) n);
        if (!copy)
                copy = strndup(target, (size_t) n);
        if (!copy)
                return -ENOMEM;
        if (root_captures(root))
                root_capture_data(root, path, ROOT_SUFFIX_LINK, copy, (size_t) n);
        *ret_target = take_ptr(copy);
        return 0;
}

/* --- directories --- */

int root_dir_open(struct root *root, const char *path, struct root_dir *ret_dir) {
        char buffer[PATH_MAX];
        const char *clean;
        bool careful;
        int fd, r = root_clean_path(path, buffer, &clean);

        if (r < 0)
                return r;
        fd = root_open_path(root, clean, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
        if (fd < 0)
                return settle_error(root, clean, fd);
        careful = !root_is_kernel_path(root, clean) && !root_is_kernel_fs(fd);
        if (root_captures(root))
                root_capture_directory(root, clean);
        *ret_dir = (struct root_dir){.root = root, .fd = fd, .path = path, .careful = careful};
        return 0;
}

void root_dir_close(struct root_dir *dir) {
        cleanup_fdp(&dir->fd);
        dir->fd = -1;
}

static int dir_settle_error(const struct root_dir *dir, const char *name, int error) {
        char path[PATH_MAX], buffer[PATH_MAX];
        const char *clean;
        int length;

        error = vanished_is_enoent(error);
        if (dir->root->live && !root_captures(dir->root))
                return error;
        length = snprintf(path, sizeof(path), "%s/%s", dir->path, name);
        if (length < 0 || (size_t) length >= sizeof(path) || root_clean_path(path, buffer, &clean) < 0)
                return error;
        return settle_error(dir->root, clean, error);
}

/* One read. @is_head: what does not fit is not wanted. */
static ssize_t read_record(int fd, char *buffer, size_t size, bool is_head) {
        ssize_t n;

        do
                n = read(fd, buffer, size - is_head);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if ((size_t) n == size)
                return -EFBIG;
        buffer[n] = '\0';
        return n;
}

static ssize_t dir_read(const struct root_dir *dir, const char *name, char *buffer, size_t size,
                        bool is_head) {
        char path[PATH_MAX], clean_buffer[PATH_MAX];
        const char *clean;
        ssize_t n;
        int length;
        cleanup_fd int fd =
                        dir->careful ? root_open_regular_at(dir->root, dir->fd, name)
                                     : openat(dir->fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return dir_settle_error(dir, name, dir->careful ? fd : -errno);
        n = read_record(fd, buffer, size, is_head);
        if (n < 0)
                return dir_settle_error(dir, name, (int) n);
        if (!root_captures(dir->root))
                return n;
        length = snprintf(path, sizeof(path), "%s/%s", dir->path, name);
        if (length > 0 && (size_t) length < sizeof(path) && root_clean_path(path, clean_buffer, &clean) == 0)
                root_capture_data(dir->root, clean, "", buffer, (size_t) n);
        return n;
}

ssize_t root_dir_read(const struct root_dir *dir, const char *name, char *buffer, size_t size) {
        return dir_read(dir, name, buffer, size, false);
}

ssize_t root_dir_read_head(const struct root_dir *dir, const char *name, char *buffer, size_t size) {
        return dir_read(dir, name, buffer, size, true);
}

ssize_t root_read_record(struct root *root, const char *path, char *buffer, size_t size) {
        char clean[PATH_MAX];
        ssize_t n = root_clean_path(path, clean, &path);

        if (n < 0)
                return n;
        cleanup_fd int fd = root_open_regular(root, path);

        n = fd < 0 ? fd : read_record(fd, buffer, size, false);
        if (n < 0)
                return settle_error(root, path, (int) n);
        if (root_captures(root))
                root_capture_data(root, path, "", buffer, (size_t) n);
        return n;
}

/* --- identity --- */

/* Of a folder's entry without a saved identity the inode serves as a key; the device says nothing about the captured machine. */
static int identity(struct root *root, const char *path, const struct stat *st, uint64_t *ret_inode,
                    uint64_t *ret_device) {
        if (root->live) {
                *ret_inode = st->st_ino;
                *ret_device = st->st_dev;
        } else if (root_replay_id(root, path, ret_inode, ret_device) < 0) {
                *ret_inode = st->st_ino;
                *ret_device = ABSENT;
        }
        if (root_captures(root))
                root_capture_id(root, path, *ret_inode, *ret_device);
        return 0;
}

int root_id(struct root *root, const char *path, uint64_t *ret_inode, uint64_t *ret_device) {
        char buffer[PATH_MAX];
        struct stat st = {0};
        int r = root_clean_path(path, buffer, &path);

        if (r < 0)
                return r;
        cleanup_fd int fd = root_open_path(root, path, O_PATH);

        r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
        /* Of a namespace ("/proc/12/ns/pid") a folder holds the identity alone. */
        if (r == -ENOENT && !root->live && root_replay_id(root, path, ret_inode, ret_device) == 0)
                return 0;
        if (r < 0)
                return settle_error(root, path, r);
        return identity(root, path, &st, ret_inode, ret_device);
}

int root_dir_id(const struct root_dir *dir, uint64_t *ret_inode, uint64_t *ret_device,
                size_t *ret_subdirectories) {
        char buffer[PATH_MAX];
        const char *clean;
        struct stat st;
        int r;

        if (fstat(dir->fd, &st) < 0)
                return -errno;
        /* kernfs counts a directory's subdirectories in its links (kernfs_refresh_inode()); few others do. */
        *ret_subdirectories =
                        dir->root->live && !dir->careful && st.st_nlink >= 2 ? st.st_nlink - 2 : SIZE_MAX;
        if (dir->root->live && !root_captures(dir->root)) {
                *ret_inode = st.st_ino;
                *ret_device = st.st_dev;
                return 0;
        }
        r = root_clean_path(dir->path, buffer, &clean);
        return r < 0 ? r : identity(dir->root, clean, &st, ret_inode, ret_device);
}
