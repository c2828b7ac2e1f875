/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF backend's life: found by trial, opened live, or opened without a kernel for a replay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "bpf_internal.h"

static void bpf_free(struct probe_backend *base) {
        struct bpf_backend *backend = bpf_backend_of(base);

        bpf_unload(backend);
        drained_release(backend->pending);
        free(backend->floors);
        free(backend->roots);
        free(backend);
}

static int bpf_fd(const struct probe_backend *base) {
        return ring_buffer__epoll_fd(((const struct bpf_backend *) base)->ring);
}

static const struct backend_ops bpf_ops = {
                .drain_tick = bpf_drain_tick,
                .assemble = bpf_assemble,
                .drained_save = bpf_drained_save,
                .drained_load = bpf_drained_load,
                .drained_free = drained_release,
                .fd = bpf_fd,
                .drain = bpf_drain_ring,
                .free = bpf_free,
};

static struct bpf_backend *backend_new(const struct probe_options *options, enum probe_method method) {
        struct bpf_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return NULL;
        backend->base.ops = &bpf_ops;
        backend->base.method = method;
        backend->options = *options;
        backend->pending = drained_new();
        return backend;
}

/* The kernel's number of the group that the request names: its own for self, pid and cgroup; for a Pod one among its containers. */
static int target_group_id(struct root *root, const struct target_request *request, uint64_t *ret_id,
                           struct why *why) {
        cleanup_arena struct arena *arena = arena_new(16u << 20);
        struct cgroup_chain chain;
        size_t level = 0;
        int r;

        *ret_id = 0;
        if (request->scope == TARGET_NODE)
                return 0;
        if (!arena)
                return -ENOMEM;
        if (request->scope == TARGET_CGROUP)
                r = cgroup_chain_of_path(root, request->cgroup, arena, &chain, why);
        else
                r = cgroup_chain_of_pid(root, request->scope == TARGET_PID ? request->pid : 0, arena, &chain,
                                        why);
        if (r < 0)
                return r;
        if (request->scope != TARGET_CGROUP)
                level = target_container_level(chain.path);
        if (level >= chain.levels_count)
                level = chain.levels_count ? chain.levels_count - 1 : 0;
        if (chain.levels_count == 0 || !is_known(chain.levels[level].id))
                return why_set(why, -ENODATA, "the kernel's number of the group %s is not visible from here",
                               chain.path);
        *ret_id = chain.levels[level].id;
        return 0;
}

int bpf_backend_open(struct root *root, const struct probe_options *options, enum probe_method method,
                     struct probe_backend **ret_backend, struct why *why) {
        struct bpf_backend *backend = backend_new(options, method);
        uint64_t id;
        int r;

        if (!backend || !backend->pending) {
                if (backend)
                        bpf_free(&backend->base);
                return -ENOMEM;
        }
        backend->live_root = root;
        r = target_group_id(root, &options->target, &id, why);
        if (r == 0)
                r = bpf_load(backend, method, id, why);
        if (r < 0) {
                bpf_free(&backend->base);
                return r;
        }
        backend->last_ns = clock_now().mono_ns;
        *ret_backend = &backend->base;
        return 0;
}

int bpf_backend_replay(const struct probe_options *options, enum probe_method method,
                       struct probe_backend **ret_backend, struct why *why) {
        struct bpf_backend *backend = backend_new(options, method);

        (void) why;
        if (!backend)
                return -ENOMEM;
        *ret_backend = &backend->base;
        return 0;
}
