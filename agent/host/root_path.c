/* SPDX-License-Identifier: Apache-2.0 */
#include "root_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "../base/memory.h"

#ifndef CGROUP_SUPER_MAGIC
#define CGROUP_SUPER_MAGIC 0x27e0eb
#endif
#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

int root_clean_path(const char *path, char *buffer, const char **ret_clean) {
        size_t length = strlen(path), out = 0;

        if (path[0] != '/')
                return -EINVAL;
        if (length >= PATH_MAX)
                return -ENAMETOOLONG;
        if (!strstr(path, "/.") && !strstr(path, "//")) {
                *ret_clean = path;
                return 0;
        }
        for (const char *p = path; *p;) {
                const char *component = p + strspn(p, "/");
                size_t n = strcspn(component, "/");

                p = component + n;
                if (n == 0 || (n == 1 && component[0] == '.'))
                        continue;
                if (n == 2 && component[0] == '.' && component[1] == '.') {
                        while (out > 0 && buffer[--out] != '/')
                                ;
                        continue;
                }
                buffer[out++] = '/';
                memcpy(buffer + out, component, n);
                out += n;
        }
        if (out == 0)
                buffer[out++] = '/';
        buffer[out] = '\0';
        *ret_clean = buffer;
        return 0;
}

size_t root_magic_prefix(const char *path) {
        static const char names[][5] = {"root", "cwd", "exe"};
        const char *name;

        if (strncmp(path, "/proc/", 6) != 0)
                return 0;
        name = strchr(path + 6, '/');
        if (!name)
                return 0;
        name++;
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                size_t n = strlen(names[i]);

                if (strncmp(name, names[i], n) == 0 && (name[n] == '/' || name[n] == '\0'))
                        return (size_t) (name - path) + n;
        }
        return 0;
}

bool root_is_kernel_path(const struct root *root, const char *path) {
        return root->live && (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0) &&
               root_magic_prefix(path) == 0;
}

bool root_is_kernel_fs(int fd) {
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        return fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC ||
               fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC;
}

static int openat2_in_root(int directory_fd, const char *relative, int flags) {
        struct open_how how = {
                        .flags = (unsigned) flags | O_CLOEXEC,
                        .resolve = RESOLVE_IN_ROOT,
        };

        /* -EAGAIN: a rename or mount elsewhere raced with a ".." inside a link. */
        for (unsigned i = 0; i < 8; i++) {
                int fd = (int) syscall(SYS_openat2, directory_fd, relative, &how, sizeof(how));

                if (fd >= 0)
                        return fd;
                if (errno != EAGAIN)
                        break;
        }
        return -errno;
}

bool root_probe_openat2(void) {
        cleanup_fd int fd = openat2_in_root(AT_FDCWD, ".", O_PATH);

        return fd >= 0;
}

/* Without openat2(): component by component, and no links at all. */
static int walk(int directory_fd, const char *relative, int flags) {
        cleanup_fd int held = -1;
        int at = directory_fd;

        for (;;) {
                char name[NAME_MAX + 1];
                size_t n = strcspn(relative, "/");
                bool is_last = relative[n] == '\0';
                int fd;

                if (n == 0 || n > NAME_MAX)
                        return n == 0 ? -EINVAL : -ENAMETOOLONG;
                memcpy(name, relative, n);
                name[n] = '\0';
                fd = openat(at, name, O_NOFOLLOW | O_CLOEXEC | (is_last ? flags : O_PATH | O_DIRECTORY));
                if (fd < 0)
                        return -errno;
                if (is_last)
                        return fd;
                cleanup_fdp(&held);
                at = held = fd;
                relative += n + 1;
        }
}

static int open_beneath(const struct root *root, int directory_fd, const char *relative, int flags) {
        while (*relative == '/')
                relative++;
        if (!*relative)
                relative = ".";
        return root->has_openat2 ? openat2_in_root(directory_fd, relative, flags)
                                 : walk(directory_fd, relative, flags);
}

/*
 * The directory that a process' link "root" or "cwd" names, or its "exe". RESOLVE_IN_ROOT refuses these links (nd_jump_link(): -EXDEV,
 * measured on 6.18), so they are followed by themselves, and only where procfs makes them: in a folder, a link of that
 * name could point anywhere. Never with anything but O_PATH: what an "exe" is on is not known yet.
 */
static int open_magic(const struct root *root, const char *path, size_t length) {
        char process[64];
        size_t directory = length;
        cleanup_fd int fd = -1;
        struct statfs fs;
        int r;

        while (path[directory - 1] != '/')
                directory--;
        if (directory > sizeof(process))
                return -ENOENT;
        memcpy(process, path, directory - 1);
        process[directory - 1] = '\0';
        fd = root->fd < 0 ? open(process, O_PATH | O_DIRECTORY | O_CLOEXEC)
                          : open_beneath(root, root->fd, process, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return root->fd < 0 ? -errno : fd;
        if (fstatfs(fd, &fs) < 0)
                return -errno;
        if (fs.f_type != PROC_SUPER_MAGIC)
                return -ENOENT;
        memcpy(process, path + directory, length - directory);
        process[length - directory] = '\0';
        r = openat(fd, process, O_PATH | O_CLOEXEC);
        return r < 0 ? -errno : r;
}

int root_open_path(const struct root *root, const char *path, int flags) {
        size_t magic = root->live ? root_magic_prefix(path) : 0;
        cleanup_fd int base = -1;
        int fd;

        if (magic > 0) {
                base = open_magic(root, path, magic);
                if (base < 0)
                        return base;
                if (path[magic] == '\0' && flags == O_PATH)
                        return take_fd(base);
                return open_beneath(root, base, path + magic, flags);
        }
        if (root->fd >= 0)
                return open_beneath(root, root->fd, path, flags);
        fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* What O_PATH found is looked at before it is opened: opening a device can have an effect, and a pipe can wait. */
static int reopen_regular(int path_fd) {
        char name[64];
        struct stat st;
        int fd;

        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
        fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int root_open_regular_at(const struct root *root, int directory_fd, const char *name) {
        cleanup_fd int fd = open_beneath(root, directory_fd, name, O_PATH);

        return fd < 0 ? fd : reopen_regular(fd);
}

int root_open_regular(const struct root *root, const char *path) {
        cleanup_fd int fd = -1;

        if (root_is_kernel_path(root, path))
                return root_open_path(root, path, O_RDONLY | O_NONBLOCK);
        fd = root_open_path(root, path, O_PATH);
        return fd < 0 ? fd : reopen_regular(fd);
}
