/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/memory.h"
#include "../host/root_below.h"
#include "backend.h"

#ifndef THROTTLESCOPE_VERSION
#define THROTTLESCOPE_VERSION "unknown"
#endif

#define TICK_NAME_FORMAT "tick-%03u"
#define MANIFEST_NEW CAPTURE_MANIFEST ".new"

struct capture {
        int fd; /* of the folder */
        char *directory, *tick_directory;
        struct capture_manifest manifest;
        unsigned next; /* number of the next folder; one that could not be finished stays unused */
        unsigned current;
};

/* ---- writing ---- */

static int write_all(int fd, const char *data, size_t length) {
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

/* The whole manifest anew, moved into place: whenever the agent ends, what was captured so far can be replayed. */
static int write_manifest(struct capture *capture, struct why *why) {
        cleanup_free char *text = NULL;

        int r = capture_manifest_format(&capture->manifest, &text);
        if (r < 0)
                return why_set(why, r, "out of memory");
        cleanup_fd int fd = openat(capture->fd, MANIFEST_NEW,
                                   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
        if (r == 0 && renameat(capture->fd, MANIFEST_NEW, capture->fd, CAPTURE_MANIFEST) < 0)
                r = -errno;
        if (r < 0)
                return why_set(why, r, "%s/%s: %s", capture->directory, CAPTURE_MANIFEST, strerror(-r));
        return 0;
}

static int fill_manifest(struct capture_manifest *manifest, const struct probe_options *options,
                         enum probe_method method,
                         const struct probe_trial trials[static PROBE_METHOD_COUNT]) {
        (void) snprintf(manifest->version, sizeof(manifest->version), "%s", THROTTLESCOPE_VERSION);
        manifest->method = method;
        manifest->forced = options->method != PROBE_METHOD_COUNT;
        manifest->target = options->target;
        manifest->warn_stall_ns = options->warn_stall_ns;
        manifest->threads_max = probe_threads_max(options);
        memcpy(manifest->trials, trials, sizeof(manifest->trials));
        manifest->ticks = calloc(CAPTURE_TICKS_MAX, sizeof(*manifest->ticks));
        if (!manifest->ticks)
                return -ENOMEM;
        if (options->target.cgroup) {
                manifest->cgroup = strdup(options->target.cgroup);
                if (!manifest->cgroup)
                        return -ENOMEM;
                manifest->target.cgroup = manifest->cgroup;
        }
        return 0;
}

void capture_free(struct capture *capture) {
        if (!capture)
                return;
        cleanup_fdp(&capture->fd);
        capture_manifest_release(&capture->manifest);
        free(capture->directory);
        free(capture->tick_directory);
        free(capture);
}

static void capture_freep(struct capture **capture) {
        capture_free(*capture);
}

int capture_new(const char *directory, const struct probe_options *options, enum probe_method method,
                const struct probe_trial trials[static PROBE_METHOD_COUNT], struct capture **ret_capture,
                struct why *why) {
        __attribute__((cleanup(capture_freep))) struct capture *capture = calloc(1, sizeof(*capture));

        if (!capture)
                return why_set(why, -ENOMEM, "out of memory");
        capture->fd = -1;
        capture->directory = strdup(directory);
        if (!capture->directory || fill_manifest(&capture->manifest, options, method, trials) < 0)
                return why_set(why, -ENOMEM, "out of memory");

        /* A capture shows command lines and names of everything on the machine: for its owner only. */
        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
                return why_set(why, -errno, "%s: %s", directory, strerror(errno));
        capture->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (capture->fd < 0)
                return why_set(why, -errno, "%s: %s", directory, strerror(errno));
        if (faccessat(capture->fd, CAPTURE_MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return why_set(why, -EEXIST, "%s: there is a capture already; give another folder",
                               directory);
        int r = write_manifest(capture, why);
        if (r < 0)
                return r;
        *ret_capture = take_ptr(capture);
        return 0;
}

int capture_begin(struct capture *capture, struct root *root, const char **ret_directory, struct why *why) {
        char name[32];
        char *path;

        root_capture_stop(root);
        if (capture->manifest.ticks_count >= CAPTURE_TICKS_MAX)
                return why_set(why, -EMFILE, "%s: a capture holds %u ticks at most", capture->directory,
                               CAPTURE_TICKS_MAX);
        (void) snprintf(name, sizeof(name), TICK_NAME_FORMAT, capture->next);
        if (mkdirat(capture->fd, name, 0700) < 0)
                return why_set(why, -errno, "%s/%s: %s", capture->directory, name, strerror(errno));
        capture->current = capture->next++;
        if (asprintf(&path, "%s/%s", capture->directory, name) < 0)
                return why_set(why, -ENOMEM, "out of memory");
        free(capture->tick_directory);
        capture->tick_directory = path;
        int r = root_capture_to(root, path, why);
        if (r < 0)
                return r;
        *ret_directory = path;
        return 0;
}

int capture_commit(struct capture *capture, const struct snapshot *snapshot, struct why *why) {
        struct capture_manifest *manifest = &capture->manifest;

        if (manifest->ticks_count == 0) {
                memcpy(manifest->kernel, snapshot->machine.kernel, sizeof(manifest->kernel));
                memcpy(manifest->hostname, snapshot->machine.hostname, sizeof(manifest->hostname));
                manifest->cpus_online = snapshot->machine.cpus_online;
        }
        manifest->exact = snapshot->exact;
        manifest->ticks[manifest->ticks_count++] = (struct capture_tick){
                        .number = capture->current,
                        .at = snapshot->at,
        };
        return write_manifest(capture, why);
}

/* ---- reading ---- */

int capture_manifest_read(struct root *root, struct capture_manifest *ret_manifest, struct why *why) {
        cleanup_free char *data = NULL;
        size_t length;

        int r = root_read(root, "/" CAPTURE_MANIFEST, CAPTURE_MANIFEST_MAX, &data, &length);
        if (r == -ENOENT)
                return why_set(why, r, "%s: not there", CAPTURE_MANIFEST);
        if (r < 0)
                return why_set(why, r, "%s: %s", CAPTURE_MANIFEST, strerror(-r));
        r = capture_manifest_parse(data, length, ret_manifest, why);
        if (r < 0)
                return why_wrap(why, r, "%s", CAPTURE_MANIFEST);
        return 0;
}

int capture_tick_root(struct root *root, unsigned number, struct root **ret_root, struct why *why) {
        char name[32];

        (void) snprintf(name, sizeof(name), "/" TICK_NAME_FORMAT, number);
        return root_open_below(root, name, ret_root, why);
}
