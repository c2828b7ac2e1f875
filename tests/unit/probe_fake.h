/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stands in for the BPF backend: the linker takes these instead of the archive's. One container, whose figures come half from the
 * "kernel" (fake_kernel_ns) and half from a file, as with the real one.
 */
#include <inttypes.h>

#include "../../agent/base/number.h"
#include "../../agent/probe/assemble.h"
#include "../../agent/probe/backend.h"
#include "probe_fixture.h"

static int fake_hooks_error = -EPERM, fake_tracepoints_error = -EPERM;
static uint64_t fake_kernel_ns = 7;
static unsigned fake_open, fake_drained; /* what is not freed yet */

struct drained {
        uint64_t figure;
};

static int fake_drain_tick(struct probe_backend *backend, struct instant at, struct drained **ret_drained,
                           struct why *why) {
        (void) backend, (void) at, (void) why;
        struct drained *drained = malloc(sizeof(*drained));
        drained->figure = fake_kernel_ns;
        fake_drained++;
        *ret_drained = drained;
        return 0;
}

static int fake_assemble(struct probe_backend *backend, const struct drained *drained, struct root *root,
                         struct snapshot *snapshot, struct why *why) {
        (void) backend, (void) why;
        cr_assert(proc_machine(root, &snapshot->machine) == 0);
        snapshot->containers = arena_array(snapshot->arena, 1, sizeof(*snapshot->containers));
        snapshot->containers_count = 1;
        container_sample_init(&snapshot->containers[0]);
        snapshot->containers[0].id = 12;
        snapshot->containers[0].measured = true;
        snapshot->containers[0].stall_ns = drained->figure;
        snapshot->exact = backend->method == PROBE_HOOKS;
        return snapshot_sort(snapshot);
}

static int fake_save(const struct drained *drained, const char *directory, struct why *why) {
        char path[256];
        snprintf(path, sizeof(path), "%s/maps.json", directory);
        FILE *file = fopen(path, "we");
        if (!file)
                return why_set(why, -errno, "%s: %s", path, strerror(errno));
        fprintf(file, "%" PRIu64, drained->figure);
        return fclose(file) == 0 ? 0 : why_set(why, -EIO, "%s", path);
}

static int fake_load(struct probe_backend *backend, struct root *root, struct drained **ret_drained,
                     struct why *why) {
        cleanup_free char *data = NULL;
        uint64_t figure;

        (void) backend;
        int r = root_read(root, "/maps.json", 100, &data, NULL);
        if (r < 0)
                return why_set(why, r, "maps.json: %s", strerror(-r));
        if (number_parse_u64(data, &figure) < 0)
                return why_set(why, -EINVAL, "maps.json: not a number");
        struct drained *drained = malloc(sizeof(*drained));
        drained->figure = figure;
        fake_drained++;
        *ret_drained = drained;
        return 0;
}

static void fake_drained_free(struct drained *drained) {
        fake_drained -= !!drained;
        free(drained);
}

static int fake_fd(const struct probe_backend *backend) {
        (void) backend;
        return 99;
}

static int fake_drain(struct probe_backend *backend) {
        (void) backend;
        return 3;
}

static void fake_free(struct probe_backend *backend) {
        fake_open--;
        free(backend);
}

static const struct backend_ops fake_ops = {
                .drain_tick = fake_drain_tick,
                .assemble = fake_assemble,
                .drained_save = fake_save,
                .drained_load = fake_load,
                .drained_free = fake_drained_free,
                .fd = fake_fd,
                .drain = fake_drain,
                .free = fake_free,
};

int bpf_backend_replay(const struct probe_options *options, enum probe_method method,
                       struct probe_backend **ret_backend, struct why *why) {
        (void) options, (void) why;
        struct probe_backend *backend = calloc(1, sizeof(*backend));
        backend->ops = &fake_ops;
        backend->method = method;
        fake_open++;
        *ret_backend = backend;
        return 0;
}

int bpf_backend_open(struct root *root, const struct probe_options *options, enum probe_method method,
                     struct probe_backend **ret_backend, struct why *why) {
        int error = method == PROBE_HOOKS ? fake_hooks_error : fake_tracepoints_error;

        (void) root;
        if (error < 0)
                return why_set(why, error, "the kernel refused %s",
                               method == PROBE_HOOKS ? "fentry" : "tp_btf");
        return bpf_backend_replay(options, method, ret_backend, why);
}
