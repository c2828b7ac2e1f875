/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The BPF backend, split by duty: bpf_load.c (what is loaded and attached), bpf_drain.c (kernel → struct drained), bpf_sweep.c (what is
 * dead leaves the maps), bpf_assemble.c and bpf_intervals.c (struct drained + files → snapshot), bpf_saved.c (struct drained ↔ a file).
 */
#include <linux/types.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../bpf/shared.h"
#include "backend.h"
#include "kernel.h"

struct throttlescope_bpf;

/* One tick's harvest: the iterators' records one after another, and what came through the ring. */
#define DRAINED_BYTES_MAX ((size_t) 32 << 20) /* 16,384 threads, 2,048 containers and their queues: 16 MiB */
#define DRAINED_EVENTS_MAX 131072u            /* 3 MiB; a container throttled on 8 CPUs gives 800 in 10 s */

struct drained {
        unsigned char *records;
        size_t records_bytes, records_room;
        struct stall_event *events;
        size_t events_count, events_room;
        uint64_t from_ns,
                        now_ns; /* the window, CLOCK_MONOTONIC; from is when we attached, at the first tick */
        uint64_t clock_offset_ns; /* CLOCK_MONOTONIC minus the scheduler's clock, which all times in the records are of */
        uint64_t lost[LOST_AT_COUNT]; /* cumulative */
        uint32_t window;
        uint32_t clock_source;
};

/* Calls for each whole record of @kind; stops at the first malformed one (-EBADMSG). */
const struct drain_head *drained_next(const struct drained *drained, const struct drain_head *previous);
#define DRAINED_EACH(drained, head)                                                                         \
        for (const struct drain_head *head = drained_next(drained, NULL); head;                             \
             head = drained_next(drained, head))
int drained_add(struct drained *drained, const void *record, size_t bytes);
int drained_add_event(struct drained *drained, const struct stall_event *event);
struct drained *drained_new(void);
void drained_release(struct drained *drained); /* NULL is fine */
static inline void drained_releasep(struct drained **drained) {
        drained_release(*drained);
}
#define cleanup_drained __attribute__((cleanup(drained_releasep)))

enum bpf_iterator {
        ITERATE_THREADS,
        ITERATE_ENDED,
        ITERATE_FOLDS,
        ITERATE_CONTAINERS,
        ITERATE_QUEUES,
        ITERATE_COUNT
};

/* The last published figures of a thread: what is estimated at a tick must not shrink at the next. */
struct thread_floor {
        uint32_t tid;
        uint64_t start_ns;
        uint64_t run_ns, wait_ns, stall_ns, sleep_ns, exec_ns, quota_spent_ns;
};

struct bpf_backend {
        struct probe_backend base;
        struct probe_options options;
        struct root *live_root;             /* borrowed; NULL in a replay */
        struct throttlescope_bpf *skeleton; /* NULL in a replay */
        struct ring_buffer *ring;
        struct bpf_link *iterators[ITERATE_COUNT];
        struct drained *pending; /* stalls that came between ticks */
        uint64_t last_ns;
        uint64_t clock_offset_ns; /* as of the last tick */
        uint64_t events_dropped;
        uint64_t swept_ns; /* when groups were last swept, and their generation then */
        uint32_t swept_generation;
        enum clock_source clock_source;

        /* kept by assemble() from tick to tick */
        struct thread_floor *floors;
        size_t floors_count;
        uint64_t last_assembled_ns;
        uint64_t *roots; /* ids last given to the kernel, sorted */
        size_t roots_count;
};

static inline struct bpf_backend *bpf_backend_of(struct probe_backend *backend) {
        return (struct bpf_backend *) backend;
}

/* A moment of the records, as CLOCK_MONOTONIC. */
static inline uint64_t drained_mono(const struct drained *drained, uint64_t moment_ns) {
        return moment_ns + drained->clock_offset_ns;
}

/* bpf_load.c */
int bpf_load(struct bpf_backend *backend, enum probe_method method, uint64_t target_id, struct why *why);
void bpf_unload(struct bpf_backend *backend);
/* bpf_drain.c */
int bpf_drain_tick(struct probe_backend *base, struct instant at, struct drained **ret_drained,
                   struct why *why);
int bpf_drain_ring(struct probe_backend *base);
int bpf_ring_event(void *context, void *data, size_t size);
/* bpf_sweep.c: after a drain; what fails is tried again at the next tick. */
void bpf_sweep(struct bpf_backend *backend, const struct drained *drained);
/* Tells the kernel which groups are containers (MEASURE_NODE). */
void bpf_name_roots(struct bpf_backend *backend, const struct snapshot *snapshot);
/* bpf_assemble.c */
int bpf_assemble(struct probe_backend *base, const struct drained *drained, struct root *root,
                 struct snapshot *snapshot, struct why *why);
/* bpf_intervals.c: the disjoint, sorted stalls of each of the snapshot's containers within the window, in its arena. */
int bpf_intervals(const struct drained *drained, uint64_t from_ns, struct snapshot *snapshot);
/* bpf_saved.c */
int bpf_drained_save(const struct drained *drained, const char *directory, struct why *why);
int bpf_drained_parse(const char *text, size_t length, struct drained **ret_drained, struct why *why);
int bpf_drained_load(struct probe_backend *base, struct root *root, struct drained **ret_drained,
                     struct why *why);
