/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "assemble.h"
#include "backend.h"
#include "capture.h"

#define CAPTURE_TROUBLE_MAX 512

struct probe {
        struct root *root;            /* the caller's */
        struct probe_options options; /* a copy; its strings are owned here */
        char *cgroup, *capture_directory;
        struct probe_trial trials[PROBE_METHOD_COUNT];
        struct probe_backend *backend;
        bool forced;
        uint64_t target_start; /* TARGET_PID: start of the process, 0: not known */

        struct capture *capture; /* NULL: none, or it failed */
        char capture_trouble[CAPTURE_TROUBLE_MAX];

        bool is_replay;
        struct capture_manifest manifest;
        size_t next_tick;
        struct root *tick_root;
};

size_t probe_threads_max(const struct probe_options *options) {
        if (options->threads_max > 0)
                return options->threads_max;
        return options->target.scope == TARGET_NODE ? PROBE_THREADS_DEFAULT_NODE : PROBE_THREADS_DEFAULT;
}

/* ---- opening ---- */

void probe_free(struct probe *probe) {
        if (!probe)
                return;
        if (probe->backend)
                probe->backend->ops->free(probe->backend);
        if (probe->capture)
                root_capture_stop(probe->root);
        capture_free(probe->capture);
        root_free(probe->tick_root);
        capture_manifest_release(&probe->manifest);
        free(probe->cgroup);
        free(probe->capture_directory);
        free(probe);
}

static void probe_freep(struct probe **probe) {
        probe_free(*probe);
}

static int copy_string(const char *text, char **ret_copy) {
        char *copy = text ? strdup(text) : NULL;

        if (text && !copy)
                return -ENOMEM;
        *ret_copy = copy;
        return 0;
}

static int copy_options(struct probe *probe, const struct probe_options *options) {
        probe->options = *options;
        probe->options.threads_max = probe_threads_max(options);
        if (copy_string(options->target.cgroup, &probe->cgroup) < 0 ||
            copy_string(options->capture, &probe->capture_directory) < 0)
                return -ENOMEM;
        probe->options.target.cgroup = probe->cgroup;
        probe->options.capture = probe->capture_directory;
        return 0;
}

static int open_method(struct probe *probe, enum probe_method method, struct why *why) {
        if (method == PROBE_FILES)
                return files_backend_open(&probe->options, &probe->backend, why);
        if (!root_is_live(probe->root)) {
                (void) why_set(why, -EOPNOTSUPP, "this is a folder, not a running kernel");
                return -EOPNOTSUPP;
        }
        return bpf_backend_open(probe->root, &probe->options, method, &probe->backend, why);
}

/* Best first. What failed on the way is kept for doctor and for `missing[]`. */
static int try_methods(struct probe *probe, struct why *why) {
        int r = -EOPNOTSUPP;

        for (unsigned i = 0; i < PROBE_METHOD_COUNT; i++) {
                enum probe_method method = (enum probe_method) i;
                struct probe_trial *trial = &probe->trials[i];
                struct why reason = {.text = ""};

                if (probe->forced && method != probe->options.method)
                        continue;
                r = open_method(probe, method, &reason);
                trial->tried = true;
                trial->error = r;
                if (r == 0)
                        return 0;
                (void) snprintf(trial->text, sizeof(trial->text), "%.*s", (int) sizeof(trial->text) - 1,
                                reason.text[0] ? reason.text : strerror(-r));
                if (r == -ENOMEM)
                        break;
        }
        if (probe->forced)
                (void) why_set(why, r, "method %s: %s", probe_method_name(probe->options.method),
                               probe->trials[probe->options.method].text);
        else
                (void) why_set(why, r, "no method works: %s", strerror(-r));
        return r;
}

/* The target must exist now; once it was there, its end is an ordinary event. */
static int check_target(struct probe *probe, struct why *why) {
        cleanup_arena struct arena *arena = arena_new(SNAPSHOT_ARENA_MAX);
        struct proc_process process;
        struct cgroup_chain chain;

        if (!arena)
                return why_set(why, -ENOMEM, "out of memory");
        if (probe->options.target.scope == TARGET_CGROUP)
                return cgroup_chain_of_path(probe->root, probe->options.target.cgroup, arena, &chain, why);
        if (probe->options.target.scope != TARGET_PID)
                return 0;
        int r = proc_process(probe->root, probe->options.target.pid, arena, &process);
        if (r < 0)
                return why_set(why, r, "process %d: %s", (int) probe->options.target.pid,
                               r == -ENOENT ? "there is none" : strerror(-r));
        probe->target_start = process.start_ticks;
        return 0;
}

static int open_replay(struct probe *probe, struct why *why) {
        struct capture_manifest *manifest = &probe->manifest;

        if (probe->options.capture)
                return why_set(why, -EINVAL,
                               "this folder is a capture already: copy it instead of capturing its replay");
        if (manifest->ticks_count == 0)
                return why_set(why, -ENODATA, "%s: the capture holds no tick", CAPTURE_MANIFEST);
        probe->is_replay = true;
        probe->options.target = manifest->target;
        probe->options.method = manifest->forced ? manifest->method : PROBE_METHOD_COUNT;
        probe->options.warn_stall_ns = manifest->warn_stall_ns;
        probe->options.threads_max = manifest->threads_max;
        probe->forced = manifest->forced;
        memcpy(probe->trials, manifest->trials, sizeof(probe->trials));
        if (manifest->method == PROBE_FILES)
                return files_backend_open(&probe->options, &probe->backend, why);
        return bpf_backend_replay(&probe->options, manifest->method, &probe->backend, why);
}

static int open_live(struct probe *probe, struct why *why) {
        int r = check_target(probe, why);
        if (r < 0)
                return r;
        r = try_methods(probe, why);
        if (!probe->backend || !probe->options.capture)
                return r;
        r = capture_new(probe->options.capture, &probe->options, probe->backend->method, probe->trials,
                        &probe->capture, why);
        return r < 0 ? why_wrap(why, r, "capture") : 0;
}

int probe_open(struct root *root, const struct probe_options *options, struct probe **ret_probe,
               struct why *why) {
        __attribute__((cleanup(probe_freep))) struct probe *probe = calloc(1, sizeof(*probe));
        int r = -ENOENT;

        if (!probe)
                return why_set(why, -ENOMEM, "out of memory");
        probe->root = root;
        probe->forced = options->method != PROBE_METHOD_COUNT;
        probe->manifest.method = PROBE_METHOD_COUNT;
        if (copy_options(probe, options) < 0)
                return why_set(why, -ENOMEM, "out of memory");

        /* The machine's own root is never a capture, whatever lies there. */
        if (!root_is_live(root))
                r = capture_manifest_read(root, &probe->manifest, why);
        if (r < 0 && r != -ENOENT)
                return r;
        r = r == 0 ? open_replay(probe, why) : open_live(probe, why);
        if (r < 0)
                return r;
        *ret_probe = take_ptr(probe);
        return 0;
}

/* ---- a tick ---- */

static const char *remedy_of(int error) {
        if (error == -EPERM || error == -EACCES)
                return "run as root or with the capabilities BPF and PERFMON (before Linux 5.8: SYS_ADMIN); "
                       "`throttlescope doctor` "
                       "says what stands in the way";
        return "`throttlescope doctor` says what stands in the way";
}

/* Why not better: the trials, in one sentence. */
static int missing_by_method(const struct probe *probe, struct snapshot *snapshot) {
        const struct probe_trial *hooks = &probe->trials[PROBE_HOOKS],
                                 *tracepoints = &probe->trials[PROBE_TRACEPOINTS];
        const char *what = snapshot->method == PROBE_FILES ? MISSING_THREAD_STALL : "exact stalls";
        char why[sizeof(hooks->text) + sizeof(tracepoints->text) + 32];

        if (snapshot->method != PROBE_FILES && snapshot->exact)
                return 0;
        if (probe->forced) {
                (void) snprintf(why, sizeof(why), "method %s was asked for",
                                probe_method_name(snapshot->method));
                return snapshot_add_missing(snapshot, what, why, "leave out --method");
        }
        if (snapshot->method == PROBE_HOOKS)
                return 0; /* the best there is; what makes it inexact is the backend's to say */
        if (hooks->error == -EOPNOTSUPP && strcmp(hooks->text, tracepoints->text) == 0)
                return snapshot_add_missing(snapshot, what, hooks->text, "run on the machine itself");
        if (snapshot->method == PROBE_FILES)
                (void) snprintf(why, sizeof(why), "hooks: %s; tracepoints: %s", hooks->text,
                                tracepoints->text);
        else
                (void) snprintf(why, sizeof(why), "hooks: %s", hooks->text);
        return snapshot_add_missing(
                        snapshot, what, why,
                        remedy_of(snapshot->method == PROBE_FILES ? tracepoints->error : hooks->error));
}

static int complete(const struct probe *probe, struct snapshot *snapshot) {
        int r = missing_by_method(probe, snapshot);

        if (r == 0 && probe->capture_trouble[0])
                r = snapshot_add_missing(snapshot, "the capture of this tick", probe->capture_trouble,
                                         "give --capture an empty folder with room for it");
        return r;
}

static void free_drained(const struct probe *probe, struct drained *drained) {
        if (probe->backend->ops->drained_free)
                probe->backend->ops->drained_free(drained);
}

/* A capture that fails must not cost the measurement: it ends, and every snapshot from then on says so. */
static void capture_failed(struct probe *probe, const struct why *why) {
        (void) snprintf(probe->capture_trouble, sizeof(probe->capture_trouble), "%s", why->text);
        root_capture_stop(probe->root);
        capture_free(probe->capture);
        probe->capture = NULL;
}

/* A file that could not be saved (its name too long, say) makes this tick's folder incomplete, not the capture useless. */
static int missing_in_capture(const struct probe *probe, struct snapshot *snapshot) {
        uint64_t failures = root_capture_failures(probe->root);
        char why[64];

        if (failures == 0)
                return 0;
        (void) snprintf(why, sizeof(why), "%" PRIu64 " files could not be saved", failures);
        return snapshot_add_missing(snapshot, "a part of the capture of this tick", why,
                                    "see whether its disk is full");
}

/* @drained: NULL with a backend that drains nothing. */
static int assemble(struct probe *probe, const struct drained *drained, struct root *root, struct instant at,
                    struct snapshot **ret_snapshot, struct why *why) {
        cleanup_snapshot struct snapshot *snapshot = NULL;

        int r = snapshot_new(at, probe->backend->method, &snapshot);
        if (r < 0) {
                (void) why_set(why, r, "out of memory");
                return r;
        }
        /* A level that containers share is read once: it costs less, and all of them (and a replay) see the same figures. */
        cgroup_tick_begin(root);
        r = probe->backend->ops->assemble(probe->backend, drained, root, snapshot, why);
        cgroup_tick_end(root);
        if (r < 0)
                return r;
        *ret_snapshot = take_ptr(snapshot);
        return 0;
}

static int read_live(struct probe *probe, struct instant at, struct snapshot **ret_snapshot,
                     struct why *why) {
        const struct backend_ops *ops = probe->backend->ops;
        cleanup_snapshot struct snapshot *snapshot = NULL;
        struct drained *drained = NULL;
        const char *directory = NULL;
        struct why trouble = {.text = "it could not be written"};

        int r = ops->drain_tick(probe->backend, at, &drained, why);
        if (r < 0)
                return r;
        if (probe->capture && capture_begin(probe->capture, probe->root, &directory, &trouble) < 0)
                capture_failed(probe, &trouble);
        r = assemble(probe, drained, probe->root, at, &snapshot, why);
        if (r == 0 && probe->capture) {
                int c = ops->drained_save ? ops->drained_save(drained, directory, &trouble) : 0;
                if (c == 0)
                        c = capture_commit(probe->capture, snapshot, &trouble);
                if (c < 0)
                        capture_failed(probe, &trouble);
                else
                        r = missing_in_capture(probe, snapshot);
        }
        free_drained(probe, drained);
        if (!snapshot)
                return r;
        if (r == 0)
                r = complete(probe, snapshot);
        if (r < 0)
                return why_set(why, r, "out of memory");
        *ret_snapshot = take_ptr(snapshot);
        return 0;
}

static int read_replay(struct probe *probe, struct snapshot **ret_snapshot, struct why *why) {
        const struct backend_ops *ops = probe->backend->ops;
        cleanup_snapshot struct snapshot *snapshot = NULL;
        struct drained *drained = NULL;

        if (probe->next_tick == probe->manifest.ticks_count)
                return why_set(why, -ENODATA, "the capture ends here");
        const struct capture_tick *tick = &probe->manifest.ticks[probe->next_tick++];
        root_free(probe->tick_root);
        probe->tick_root = NULL;
        int r = capture_tick_root(probe->root, tick->number, &probe->tick_root, why);
        if (r == 0 && ops->drained_load)
                r = ops->drained_load(probe->backend, probe->tick_root, &drained, why);
        if (r == 0)
                r = assemble(probe, drained, probe->tick_root, tick->at, &snapshot, why);
        free_drained(probe, drained);
        if (!snapshot)
                return why_wrap(why, r, "tick %u", tick->number);
        r = complete(probe, snapshot);
        if (r < 0)
                return why_set(why, r, "out of memory");
        *ret_snapshot = take_ptr(snapshot);
        return 0;
}

int probe_read(struct probe *probe, struct instant at, struct snapshot **ret_snapshot, struct why *why) {
        return probe->is_replay ? read_replay(probe, ret_snapshot, why)
                                : read_live(probe, at, ret_snapshot, why);
}

/* ---- the rest ---- */

enum probe_method probe_method(const struct probe *probe) {
        return probe->backend->method;
}

const struct probe_trial *probe_trials(const struct probe *probe) {
        return probe->trials;
}

struct root *probe_root(const struct probe *probe) {
        return probe->tick_root ? probe->tick_root : probe->root;
}

const struct target_request *probe_target(const struct probe *probe) {
        return &probe->options.target;
}

int probe_fd(const struct probe *probe) {
        return !probe->is_replay && probe->backend->ops->fd ? probe->backend->ops->fd(probe->backend) : -1;
}

int probe_drain(struct probe *probe) {
        return !probe->is_replay && probe->backend->ops->drain ? probe->backend->ops->drain(probe->backend)
                                                               : 0;
}

bool probe_target_alive(struct probe *probe) {
        const struct target_request *target = &probe->options.target;
        cleanup_arena struct arena *arena = NULL;
        struct proc_process process;
        struct cgroup_chain chain;

        if (probe->is_replay)
                return probe->next_tick < probe->manifest.ticks_count;
        /* Named by its process, the target ends with it, though its group may stay. */
        if (probe->backend->ops->alive && target->scope != TARGET_PID)
                return probe->backend->ops->alive(probe->backend, probe->root);
        if (target->scope != TARGET_PID && target->scope != TARGET_CGROUP)
                return true;
        arena = arena_new(SNAPSHOT_ARENA_MAX);
        if (!arena)
                return true; /* not known is not gone */
        if (target->scope == TARGET_CGROUP)
                return cgroup_chain_of_path(probe->root, target->cgroup, arena, &chain, NULL) != -ENOENT;

        int r = proc_process(probe->root, target->pid, arena, &process);
        return r != -ENOENT &&
               (r < 0 || probe->target_start == 0 || process.start_ticks == probe->target_start);
}
