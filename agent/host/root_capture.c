/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read, saved so that the same functions read it again: a file lies at its own path, and what a plain file cannot say
 * (an error, a link's target, an identity, a complete listing) in a sidecar beside it. Paths here are clean.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/memory.h"
#include "../base/number.h"
#include "root_internal.h"

/* The largest errno the kernel returns (MAX_ERRNO). */
#define ERRNO_LAST 4095

int root_capture_to(struct root *root, const char *directory, struct why *why) {
        int fd;

        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
                return why_set(why, -errno, "capture folder %s: %s", directory, strerror(errno));
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return why_set(why, -errno, "capture folder %s: %s", directory, strerror(errno));
        root_capture_stop(root);
        root->capture_fd = fd;
        root->capture_failures = 0;
        /* What is remembered was not saved in this folder. */
        cgroup_cache_forget(root);
        return 0;
}

void root_capture_stop(struct root *root) {
        cleanup_fdp(&root->capture_fd);
        root->capture_fd = -1;
}

uint64_t root_capture_failures(const struct root *root) {
        return root->capture_failures;
}

/* Makes the directories above @relative, or @relative too. */
static int make_directories(int fd, const char *relative, bool whole) {
        char path[PATH_MAX];
        size_t length = strlen(relative);

        if (length >= sizeof(path))
                return -ENAMETOOLONG;
        memcpy(path, relative, length + 1);
        for (size_t i = 1; i <= length; i++) {
                if (path[i] != '/' && !(whole && i == length))
                        continue;
                path[i] = '\0';
                if (mkdirat(fd, path, 0700) < 0 && errno != EEXIST)
                        return -errno;
                path[i] = i == length ? '\0' : '/';
        }
        return 0;
}

static int create(int fd, const char *relative) {
        for (unsigned i = 0; i < 2; i++) {
                int r = openat(fd, relative, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

                if (r >= 0)
                        return r;
                if (errno != ENOENT || i > 0)
                        break;
                r = make_directories(fd, relative, false);
                if (r < 0)
                        return r;
        }
        return -errno;
}

static int write_file(int directory_fd, const char *relative, const char *data, size_t length) {
        cleanup_fd int fd = create(directory_fd, relative);

        if (fd < 0)
                return fd;
        while (length > 0) {
                ssize_t n = write(fd, data, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                length -= (size_t) n;
        }
        return 0;
}

static bool join(char out[static PATH_MAX], const char *path, const char *suffix) {
        int length = snprintf(out, PATH_MAX, "%s%s", path + 1,
                              path[1] ? suffix : suffix + (suffix[0] == '/'));

        return length > 0 && length < PATH_MAX;
}

/* An environment holds secrets: nobody but its reader knows which part may be kept (root_capture_file()). */
static bool is_secret(const char *path) {
        const char *name = strrchr(path, '/');

        return name && strcmp(name, "/environ") == 0;
}

static void save(struct root *root, const char *path, const char *suffix, const void *data, size_t length) {
        char relative[PATH_MAX], stale[PATH_MAX];

        if (!join(relative, path, suffix) || write_file(root->capture_fd, relative, data, length) < 0) {
                root->capture_failures++;
                return;
        }
        /* It could be read after all. */
        if (join(stale, path, ROOT_SUFFIX_ERRNO))
                (void) unlinkat(root->capture_fd, stale, 0);
}

void root_capture_data(struct root *root, const char *path, const char *suffix, const void *data,
                       size_t length) {
        if (!is_secret(path))
                save(root, path, suffix, data, length);
}

bool root_is_captured(const struct root *root) {
        return root_captures(root);
}

void root_capture_file(struct root *root, const char *path, const void *data, size_t length) {
        char buffer[PATH_MAX];

        if (root_captures(root) && root_clean_path(path, buffer, &path) == 0)
                save(root, path, "", data, length);
}

/* -ENOENT needs no note: what is not in the folder is not there. */
void root_capture_error(struct root *root, const char *path, int error) {
        char relative[PATH_MAX], text[16];
        int length = snprintf(text, sizeof(text), "%d\n", -error);

        if (error != -ENOENT && (!join(relative, path, ROOT_SUFFIX_ERRNO) ||
                                 write_file(root->capture_fd, relative, text, (size_t) length) < 0)) {
                root->capture_failures++;
                return;
        }
        /* It was there before; a directory stays, for what was read in it. */
        if (join(relative, path, ""))
                (void) unlinkat(root->capture_fd, relative, 0);
}

void root_capture_id(struct root *root, const char *path, uint64_t inode, uint64_t device) {
        char text[64];
        int length = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n", inode, device);

        root_capture_data(root, path, ROOT_SUFFIX_ID, text, (size_t) length);
}

void root_capture_directory(struct root *root, const char *path) {
        char relative[PATH_MAX];

        if (!path[1])
                return;
        if (!join(relative, path, "") || make_directories(root->capture_fd, relative, true) < 0) {
                root->capture_failures++;
                return;
        }
        if (join(relative, path, ROOT_SUFFIX_ERRNO))
                (void) unlinkat(root->capture_fd, relative, 0);
}

/* --- replay --- */

int root_replay_error(const struct root *root, const char *path) {
        cleanup_free char *data = NULL;
        size_t length;
        uint64_t number;

        if (root_read_sidecar(root, path, ROOT_SUFFIX_ERRNO, &data, &length) < 0)
                return -ENOENT;
        length -= length > 0 && data[length - 1] == '\n';
        if (number_parse_u64_n(data, length, &number) < 0 || number == 0 || number > ERRNO_LAST)
                return -ENOENT;
        return -(int) number;
}

int root_replay_id(const struct root *root, const char *path, uint64_t *ret_inode, uint64_t *ret_device) {
        cleanup_free char *data = NULL;
        uint64_t inode, device;
        const char *blank;
        size_t length;

        if (root_read_sidecar(root, path, ROOT_SUFFIX_ID, &data, &length) < 0)
                return -ENOENT;
        length -= length > 0 && data[length - 1] == '\n';
        blank = memchr(data, ' ', length);
        if (!blank || number_parse_u64_n(data, (size_t) (blank - data), &inode) < 0 ||
            number_parse_u64_n(blank + 1, length - (size_t) (blank + 1 - data), &device) < 0)
                return -ENOENT;
        *ret_inode = inode;
        *ret_device = device;
        return 0;
}

bool root_is_sidecar(const char *name) {
        static const char suffixes[][8] = {ROOT_SUFFIX_ERRNO, ROOT_SUFFIX_LINK, ROOT_SUFFIX_ID};
        size_t length = strlen(name);

        if (strcmp(name, ROOT_NAME_LIST) == 0)
                return true;
        for (size_t i = 0; i < ELEMENTS(suffixes); i++) {
                size_t n = strlen(suffixes[i]);

                if (length > n && strcmp(name + length - n, suffixes[i]) == 0)
                        return true;
        }
        return false;
}
