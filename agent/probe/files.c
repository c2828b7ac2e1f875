/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method files: cgroup files and /proc, no privileges. What it cannot know stays absent: stall and wait are one figure
 * (runqueue_delay_ns), threads that start and end between two ticks are never seen, and of a thread that ended only the figures of
 * the tick before are known (it may have run up to its end unseen). Threads are placed by their process' group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../host/proc.h"
#include "assemble.h"
#include "backend.h"
#include "files.h"
#include "target_group.h"
#include "target_name.h"

#define PIDS_MAX 65536u

/* ---- containers ---- */

static bool same_process(struct root *root, pid_t pid, uint64_t *start, struct arena *arena) {
        struct proc_process process;

        if (proc_process(root, pid, arena, &process) < 0)
                return false;
        if (*start == 0)
                *start = process.start_ticks;
        return process.start_ticks == *start;
}

/* The process that named the target may end before its container does: then the group it was in goes on naming it. */
static int list_containers(struct files_tick *tick, struct target_container **ret_list, size_t *ret_count,
                           bool *ret_cut, struct why *why) {
        struct files_backend *backend = tick->backend;
        const struct target_request *request = &backend->options->target;
        struct arena *arena = tick->snapshot->arena;
        int r = -ENOENT;

        if (request->scope != TARGET_PID)
                return target_list_groups(tick->root, request, arena, ret_list, ret_count, ret_cut, why);

        if (same_process(tick->root, request->pid, &backend->pinned_start, tick->scratch))
                r = target_list_groups(tick->root, request, arena, ret_list, ret_count, ret_cut, why);
        else
                (void) why_set(why, r, "there is no process %d any more", (int) request->pid);
        if (r == 0) {
                const struct target_container *container = *ret_list;
                free(backend->pinned);
                backend->pinned = NULL;
                /* A path within the process' own mount leads nowhere without it. */
                if (*ret_count > 0 && container->chain.levels_count > 0 &&
                    strncmp(container->chain.mount, "/proc/", 6) != 0) {
                        backend->pinned = strdup(container->chain.levels[0].path);
                        if (!backend->pinned)
                                return -ENOMEM;
                }
                return 0;
        }
        if (r != -ENOENT || !backend->pinned)
                return r;

        struct target_request group = {.scope = TARGET_CGROUP, .cgroup = backend->pinned};
        return target_list_groups(tick->root, &group, arena, ret_list, ret_count, ret_cut, why);
}

static int read_containers(struct files_tick *tick, struct why *why) {
        struct target_container *list;
        size_t count;
        bool cut;

        int r = list_containers(tick, &list, &count, &cut, why);
        if (r < 0)
                return r;
        if (cut)
                tick->backend->lost[LOST_CONTAINERS_FULL]++;

        struct container_sample *containers = arena_array(tick->snapshot->arena, count, sizeof(*containers));
        if (!containers)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                container_sample_init(&containers[i]);
                container_sample_from_target(&containers[i], &list[i]);
                containers[i].first_pid = 0;
        }
        tick->snapshot->containers = containers;
        tick->snapshot->containers_count = count;
        return 0;
}

/* ---- processes ---- */

static uint32_t path_depth(const char *path) {
        uint32_t depth = 0;

        for (const char *p = path; *p; p++)
                depth += *p == '/' && p[1] && p[1] != '/';
        return depth;
}

static int claim_add(struct files_tick *tick, pid_t pid, size_t container) {
        struct files_claim *grown = arena_grow(tick->scratch, tick->claims, tick->claims_count,
                                               &tick->claims_room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        tick->claims = grown;
        grown[tick->claims_count++] = (struct files_claim){
                        .pid = pid,
                        .container = (uint32_t) container,
                        .depth = path_depth(tick->snapshot->containers[container].cgroup),
        };
        return 0;
}

/* The group's own list of processes. -ENODATA: the group cannot be seen. */
static int claim_by_group(struct files_tick *tick, size_t index) {
        const struct container_sample *container = &tick->snapshot->containers[index];
        pid_t *pids;
        size_t count;

        if (container->chain.levels_count == 0)
                return -ENODATA;
        int r = cgroup_pids(tick->root, &container->chain, true, PIDS_MAX, tick->scratch, &pids, &count);
        if (r < 0)
                return r == -ENOMEM ? r : -ENODATA;
        tick->backend->lost[LOST_THREADS_READ] += r > 0;
        for (size_t i = 0; i < count; i++) {
                r = claim_add(tick, pids[i], index);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Where the group cannot be seen: the processes whose /proc/PID/cgroup is at or below it. */
static int claim_by_paths(struct files_tick *tick, const bool *hidden) {
        const struct snapshot *snapshot = tick->snapshot;
        pid_t *pids;
        size_t count;

        int r = proc_pids(tick->root, PIDS_MAX, tick->scratch, &pids, &count);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (size_t i = 0; i < count; i++) {
                const char *path;
                r = target_group_of_pid(tick->root, pids[i], tick->scratch, &path);
                if (r == -ENOMEM)
                        return r;
                for (size_t c = 0; r == 0 && c < snapshot->containers_count; c++) {
                        const char *group = snapshot->containers[c].cgroup;
                        if (hidden[c] && target_name_is_below(path, group, strlen(group)))
                                r = claim_add(tick, pids[i], c);
                }
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

static int compare_claims(const void *a, const void *b) {
        const struct files_claim *x = a, *y = b;

        if (x->pid != y->pid)
                return x->pid < y->pid ? -1 : 1;
        return (x->depth < y->depth) - (x->depth > y->depth);
}

/* Every process once, in the deepest of the containers that have it (a container in a container). */
static int read_claims(struct files_tick *tick) {
        size_t count = tick->snapshot->containers_count, kept = 0;
        bool any_hidden = false;

        bool *hidden = arena_array(tick->scratch, count, sizeof(*hidden));
        if (!hidden)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                int r = claim_by_group(tick, i);
                if (r == -ENOMEM)
                        return r;
                hidden[i] = r < 0;
                any_hidden |= hidden[i];
        }
        if (any_hidden) {
                int r = claim_by_paths(tick, hidden);
                if (r < 0)
                        return r;
        }

        if (tick->claims_count > 0)
                qsort(tick->claims, tick->claims_count, sizeof(*tick->claims), compare_claims);
        for (size_t i = 0; i < tick->claims_count; i++) {
                const struct files_claim *claim = &tick->claims[i];
                if (kept > 0 && tick->claims[kept - 1].pid == claim->pid)
                        continue;
                struct container_sample *container = &tick->snapshot->containers[claim->container];
                if (container->first_pid == 0)
                        container->first_pid = (uint32_t) claim->pid;
                tick->claims[kept++] = *claim;
        }
        tick->claims_count = kept;
        return 0;
}

/* ---- the backend ---- */

static int files_drain_tick(struct probe_backend *backend, struct instant at, struct drained **ret_drained,
                            struct why *why) {
        (void) backend, (void) at, (void) why;
        *ret_drained = NULL;
        return 0;
}

static int assemble(struct files_tick *tick, struct why *why) {
        struct files_backend *backend = tick->backend;
        struct snapshot *snapshot = tick->snapshot;

        /* A folder without machine facts can still be judged. */
        (void) proc_machine(tick->root, &snapshot->machine);
        int r = read_containers(tick, why);
        if (r < 0)
                return r;
        r = read_claims(tick);
        if (r == 0)
                r = files_read_threads(tick);
        if (r == 0)
                r = snapshot_sort(snapshot);
        if (r == 0)
                r = files_missing(tick->root, backend->options->target.scope, snapshot);
        if (r < 0)
                return why_set(why, r,
                               r == -ENOMEM ? "out of memory while reading files"
                                            : "two containers have one id");
        backend->previous_ns = snapshot->at.mono_ns;
        memcpy(snapshot->lost, backend->lost, sizeof(snapshot->lost));
        return 0;
}

static int files_assemble(struct probe_backend *base, const struct drained *drained, struct root *root,
                          struct snapshot *snapshot, struct why *why) {
        cleanup_arena struct arena *scratch = arena_new(FILES_SCRATCH_MAX);
        struct files_tick tick = {
                        .backend = (struct files_backend *) base,
                        .root = root,
                        .snapshot = snapshot,
                        .scratch = scratch,
        };

        (void) drained;
        if (!scratch)
                return -ENOMEM;
        snapshot->exact = false;
        return assemble(&tick, why);
}

static void files_free(struct probe_backend *base) {
        struct files_backend *backend = (struct files_backend *) base;

        if (!backend)
                return;
        free(backend->threads);
        free(backend->pinned);
        free(backend);
}

static const struct backend_ops files_ops = {
                .drain_tick = files_drain_tick,
                .assemble = files_assemble,
                .free = files_free,
};

int files_backend_open(const struct probe_options *options, struct probe_backend **ret_backend,
                       struct why *why) {
        struct files_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return why_set(why, -ENOMEM, "out of memory");
        backend->base.ops = &files_ops;
        backend->base.method = PROBE_FILES;
        backend->options = options;
        *ret_backend = &backend->base;
        return 0;
}
