/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stalls of a container: the union of those of its run queues. Finished ones came through the ring; those that are open at the
 * tick are closed here, at the tick, or where the queue's clock says that they ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"

static int add(struct arena *arena, struct stall_interval **list, size_t *count, size_t *room, uint64_t start, uint64_t end,
               bool above) {
        struct stall_interval *grown;

        if (end <= start)
                return 0;
        grown = arena_grow(arena, *list, *count, room, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        *list = grown;
        grown[(*count)++] = (struct stall_interval) { .start_ns = start, .end_ns = end, .above = above };
        return 0;
}

static int compare_start(const void *a, const void *b) {
        const struct stall_interval *x = a, *y = b;

        return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Until when the open stall of @queue goes: a thread that still waits there has just read its clock. 0: nobody waits there any more. */
static uint64_t open_until(const struct drained *drained, const struct drain_queue *queue) {
        uint64_t until = 0;

        if (drained->clock_source == CLOCK_SOURCE_HOOKS)
                return queue->rec.since_ns ? drained->now_ns : queue->rec.open_ns;
        DRAINED_EACH(drained, head) {
                const struct drain_thread *thread = (const void *) head;
                uint64_t end;

                if (head->kind != DRAIN_THREAD || thread->rec.state != THREAD_WAIT || thread->rec.queue != queue->queue ||
                    !thread->clock_now)
                        continue;
                if (thread->clock_running)
                        return drained->now_ns;
                end = thread->clock_now > queue->rec.open_base
                                ? queue->rec.open_ns + (thread->clock_now - queue->rec.open_base)
                                : queue->rec.open_ns;
                until = end > until ? end : until;
        }
        return until;
}

int bpf_intervals(const struct drained *drained, uint64_t from_ns, struct arena *arena, struct container_sample *container) {
        struct stall_interval *list = NULL;
        size_t count = 0, room = 0, merged = 0;
        int r = 0;

        for (size_t i = 0; i < drained->events_count && r == 0; i++) {
                const struct stall_event *event = &drained->events[i];

                if (event->container == container->id)
                        r = add(arena, &list, &count, &room, event->start_ns > from_ns ? event->start_ns : from_ns,
                                event->end_ns < drained->now_ns ? event->end_ns : drained->now_ns, event->above != 0);
        }
        DRAINED_EACH(drained, head) {
                const struct drain_queue *queue = (const void *) head;
                uint64_t until;

                if (r < 0 || head->kind != DRAIN_QUEUE || queue->rec.container != container->id)
                        continue;
                until = open_until(drained, queue);
                r = add(arena, &list, &count, &room, queue->rec.open_ns > from_ns ? queue->rec.open_ns : from_ns,
                        until < drained->now_ns ? until : drained->now_ns, queue->rec.open_above != 0);
        }
        if (r < 0)
                return r;
        if (count > 0)
                qsort(list, count, sizeof(*list), compare_start);
        for (size_t i = 0; i < count; i++) {
                struct stall_interval *last = merged ? &list[merged - 1] : NULL;

                if (!last || list[i].start_ns > last->end_ns) {
                        list[merged++] = list[i];
                        continue;
                }
                if (list[i].end_ns > last->end_ns)
                        last->end_ns = list[i].end_ns;
                last->above = last->above && list[i].above;
        }
        container->intervals = list;
        container->intervals_count = merged;
        return 0;
}
