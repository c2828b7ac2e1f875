/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stalls of a container: the union of those of its run queues. Finished ones came through the ring; those that are open at the
 * tick are closed here, at the tick, or where the queue's clock says that they ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"

struct list {
        struct stall_interval *intervals;
        size_t count, room;
        uint64_t from_ns, to_ns; /* the window */
};

/* @start and @end are CLOCK_MONOTONIC; what lies outside the window was, or will be, in another one. */
static int add(struct arena *arena, struct list *list, uint64_t start, uint64_t end, bool above) {
        struct stall_interval *grown;

        start = start > list->from_ns ? start : list->from_ns;
        end = end < list->to_ns ? end : list->to_ns;
        if (end <= start)
                return 0;
        grown = arena_grow(arena, list->intervals, list->count, &list->room, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        list->intervals = grown;
        grown[list->count++] = (struct stall_interval) { .start_ns = start, .end_ns = end, .above = above };
        return 0;
}

static int compare_start(const void *a, const void *b) {
        const struct stall_interval *x = a, *y = b;

        return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/*
 * Until when the open stall of @queue goes, in the records' time: a thread that still waits there has just read its clock. UINT64_MAX: it
 * goes on; 0: nobody waits there any more.
 */
static uint64_t open_until(const struct drained *drained, const struct drain_queue *queue) {
        uint64_t until = 0;

        if (drained->clock_source == CLOCK_SOURCE_HOOKS)
                return queue->rec.since_ns ? UINT64_MAX : 0;
        DRAINED_EACH(drained, head) {
                const struct drain_thread *thread = (const void *) head;
                uint64_t end;

                if (head->kind != DRAIN_THREAD || thread->rec.state != THREAD_WAIT || thread->rec.queue != queue->queue ||
                    !thread->clock_now)
                        continue;
                if (thread->clock_running)
                        return UINT64_MAX;
                end = queue->rec.open_ns;
                if (thread->clock_now > queue->rec.open_base)
                        end += thread->clock_now - queue->rec.open_base;
                until = end > until ? end : until;
        }
        return until;
}

static int collect(const struct drained *drained, struct arena *arena, uint64_t container, struct list *list) {
        int r = 0;

        for (size_t i = 0; i < drained->events_count && r == 0; i++) {
                const struct stall_event *event = &drained->events[i];

                if (event->container == container)
                        r = add(arena, list, drained_mono(drained, event->start_ns), drained_mono(drained, event->end_ns),
                                event->above != 0);
        }
        DRAINED_EACH(drained, head) {
                const struct drain_queue *queue = (const void *) head;
                uint64_t until;

                if (r < 0 || head->kind != DRAIN_QUEUE || queue->rec.container != container)
                        continue;
                until = open_until(drained, queue);
                r = add(arena, list, drained_mono(drained, queue->rec.open_ns),
                        until == UINT64_MAX ? UINT64_MAX : drained_mono(drained, until), queue->rec.open_above != 0);
        }
        return r;
}

int bpf_intervals(const struct drained *drained, uint64_t from_ns, struct arena *arena, struct container_sample *container) {
        struct list list = { .from_ns = from_ns, .to_ns = drained->now_ns };
        size_t merged = 0;
        int r = collect(drained, arena, container->id, &list);

        if (r < 0)
                return r;
        if (list.count > 0)
                qsort(list.intervals, list.count, sizeof(*list.intervals), compare_start);
        for (size_t i = 0; i < list.count; i++) {
                const struct stall_interval *next = &list.intervals[i];
                struct stall_interval *last = merged ? &list.intervals[merged - 1] : NULL;

                if (!last || next->start_ns > last->end_ns) {
                        list.intervals[merged++] = *next;
                        continue;
                }
                if (next->end_ns > last->end_ns)
                        last->end_ns = next->end_ns;
                last->above = last->above && next->above;
        }
        container->intervals = list.intervals;
        container->intervals_count = merged;
        return 0;
}
