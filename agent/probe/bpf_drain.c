/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"
#include "throttlescope.skel.h"

struct drained *drained_new(void) {
        return calloc(1, sizeof(struct drained));
}

void drained_release(struct drained *drained) {
        if (!drained)
                return;
        free(drained->records);
        free(drained->events);
        free(drained);
}

static size_t record_bytes(uint32_t kind) {
        switch (kind) {
        case DRAIN_THREAD:
                return sizeof(struct drain_thread);
        case DRAIN_LEVEL:
                return sizeof(struct drain_level);
        case DRAIN_FOLD:
                return sizeof(struct drain_fold);
        case DRAIN_CONTAINER:
                return sizeof(struct drain_container);
        case DRAIN_QUEUE:
                return sizeof(struct drain_queue);
        default:
                return 0;
        }
}

const struct drain_head *drained_next(const struct drained *drained, const struct drain_head *previous) {
        size_t at = 0;
        const struct drain_head *head;

        if (previous)
                at = (size_t) ((const unsigned char *) previous - drained->records) + previous->bytes;
        if (at + sizeof(*head) > drained->records_bytes)
                return NULL;
        head = (const struct drain_head *) (const void *) (drained->records + at);
        return head->bytes == record_bytes(head->kind) && at + head->bytes <= drained->records_bytes ? head
                                                                                                     : NULL;
}

static int records_room(struct drained *drained, size_t more) {
        size_t room = drained->records_room ? drained->records_room : 64u << 10;
        unsigned char *grown;

        if (drained->records_bytes + more > DRAINED_BYTES_MAX)
                return -ENOBUFS;
        while (room < drained->records_bytes + more)
                room *= 2;
        if (room == drained->records_room)
                return 0;
        grown = realloc(drained->records, room);
        if (!grown)
                return -ENOMEM;
        drained->records = grown;
        drained->records_room = room;
        return 0;
}

int drained_add(struct drained *drained, const void *record, size_t bytes) {
        int r = records_room(drained, bytes);

        if (r < 0)
                return r;
        memcpy(drained->records + drained->records_bytes, record, bytes);
        drained->records_bytes += bytes;
        return 0;
}

int drained_add_event(struct drained *drained, const struct stall_event *event) {
        if (drained->events_count == drained->events_room) {
                size_t room = drained->events_room ? drained->events_room * 2 : 256;
                struct stall_event *grown;

                if (drained->events_count >= DRAINED_EVENTS_MAX)
                        return -ENOBUFS;
                grown = reallocarray(drained->events, room, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                drained->events = grown;
                drained->events_room = room;
        }
        drained->events[drained->events_count++] = *event;
        return 0;
}

int bpf_ring_event(void *context, void *data, size_t size) {
        struct bpf_backend *backend = context;

        if (size < sizeof(struct stall_event) || drained_add_event(backend->pending, data) < 0)
                backend->events_dropped++;
        return 0;
}

int bpf_drain_ring(struct probe_backend *base) {
        int r = ring_buffer__consume(bpf_backend_of(base)->ring);

        return r < 0 ? r : 0;
}

/* Reads an iterator to its end, straight into the harvest. */
static int drain_iterator(struct bpf_backend *backend, enum bpf_iterator which, struct drained *drained) {
        cleanup_fd int fd = bpf_iter_create(bpf_link__fd(backend->iterators[which]));

        if (fd < 0)
                return -errno;
        for (;;) {
                int r = records_room(drained, 32u << 10);
                if (r < 0)
                        return r;
                ssize_t n = read(fd, drained->records + drained->records_bytes,
                                 drained->records_room - drained->records_bytes);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                drained->records_bytes += (size_t) n;
        }
}

static void read_lost(struct bpf_backend *backend, struct drained *drained) {
        int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(backend->skeleton->maps.lost);
        cleanup_free uint64_t *values = cpus > 0 ? calloc((size_t) cpus, sizeof(uint64_t)) : NULL;

        for (uint32_t i = 0; values && i < LOST_AT_COUNT; i++) {
                if (bpf_map_lookup_elem(fd, &i, values) < 0)
                        continue;
                for (int cpu = 0; cpu < cpus; cpu++)
                        drained->lost[i] += values[cpu];
        }
        drained->lost[LOST_AT_STALLS_FULL] += backend->events_dropped;
}

/* As clock_offset() in bpf/state.bpf.h. */
static uint64_t measured_offset(const __u64 offsets[static 2]) {
        return !offsets[1] || (offsets[0] && offsets[0] < offsets[1]) ? offsets[0] : offsets[1];
}

/*
 * The offset between the clocks, steady from tick to tick. A measured one is too large by the delay in its measuring (tens of milliseconds
 * where virtual CPUs wait for real ones), never too small; real clocks drift apart by less than 200 ppm.
 */
static uint64_t steady_offset(const struct bpf_backend *backend, uint64_t measured, uint64_t now_ns) {
        uint64_t most = backend->clock_offset_ns + (now_ns - backend->last_ns) / 5000;

        return backend->clock_offset_ns && measured > most ? most : measured;
}

int bpf_drain_tick(struct probe_backend *base, struct instant at, struct drained **ret_drained,
                   struct why *why) {
        struct bpf_backend *backend = bpf_backend_of(base);
        struct throttlescope_bpf *skeleton = backend->skeleton;
        cleanup_drained struct drained *drained = NULL, *next = drained_new();
        int r = 0;

        if (!next)
                return -ENOMEM;
        bpf_drain_ring(base);
        drained = backend->pending;
        backend->pending = take_ptr(next);

        sched_yield(); /* brings the scheduler's clock of this CPU up to date: clock_note_here() */
        for (int i = 0; i < ITERATE_COUNT && r == 0; i++)
                r = drain_iterator(backend, i, drained);
        if (r < 0)
                return why_set(why, r, "cannot read the kernel's maps: %s", strerror(-r));
        read_lost(backend, drained);
        drained->from_ns = backend->last_ns;
        drained->now_ns = at.mono_ns;
        drained->clock_source = backend->clock_source;
        drained->clock_offset_ns = backend->clock_offset_ns =
                        steady_offset(backend, measured_offset(skeleton->bss->clock_offsets), at.mono_ns);
        drained->window = skeleton->data->window;
        backend->last_ns = at.mono_ns;
        /* From here on maxima are the next window's, and each group looks at its limits again. */
        skeleton->data->window++;
        skeleton->data->generation++;
        bpf_sweep(backend, drained);
        *ret_drained = take_ptr(drained);
        return 0;
}
