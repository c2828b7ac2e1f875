/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stalls of a container: the union of those of its run queues. Finished ones came through the ring; those that are open at the
 * tick are closed here, at the tick, or where the queue's clock says that they ended. The records are gone through once for all
 * containers together: a node has hundreds of them, and ten thousand threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"

struct row {
        uint64_t container;
        struct stall_interval interval;
};

struct rows {
        struct row *items;
        size_t count, room;
        uint64_t from_ns, to_ns; /* the window */
};

/* @start and @end are CLOCK_MONOTONIC; what lies outside the window was, or will be, in another one. */
static int add(struct rows *rows, uint64_t container, uint64_t start, uint64_t end, bool above) {
        start = start > rows->from_ns ? start : rows->from_ns;
        end = end < rows->to_ns ? end : rows->to_ns;
        if (end <= start)
                return 0;
        if (rows->count == rows->room) {
                size_t room = rows->room ? rows->room * 2 : 256;
                struct row *grown = reallocarray(rows->items, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                rows->items = grown;
                rows->room = room;
        }
        rows->items[rows->count++] =
                        (struct row){container, {.start_ns = start, .end_ns = end, .above = above}};
        return 0;
}

static int compare(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

static int compare_rows(const void *a, const void *b) {
        const struct row *x = a, *y = b;
        int r = compare(x->container, y->container);

        return r ? r : compare(x->interval.start_ns, y->interval.start_ns);
}

/* A queue whose stall is open, and until when it goes, in the records' time: UINT64_MAX: it goes on; 0: nobody waits there any more. */
struct open_queue {
        const struct drain_queue *queue;
        uint64_t until;
};

static int compare_queues(const void *a, const void *b) {
        const struct open_queue *x = a, *y = b;

        return compare(x->queue->queue, y->queue->queue);
}

/* A thread that still waits on @queue has just read its clock. */
static void look_at_clock(struct open_queue *open, const struct drain_thread *thread) {
        uint64_t base = open->queue->rec.open_base, end = open->queue->rec.open_ns;

        if (thread->clock_running)
                end = UINT64_MAX;
        else if (thread->clock_now > base)
                end += thread->clock_now - base;
        if (end > open->until)
                open->until = end;
}

static void find_ends(const struct drained *drained, struct open_queue *open, size_t count) {
        qsort(open, count, sizeof(*open), compare_queues);
        DRAINED_EACH(drained, head) {
                const struct drain_thread *thread = (const void *) head;
                struct drain_queue key;
                struct open_queue *found;

                if (head->kind != DRAIN_THREAD || thread->rec.state != THREAD_WAIT || !thread->clock_now)
                        continue;
                key.queue = thread->rec.queue;
                found = bsearch(&(struct open_queue){.queue = &key}, open, count, sizeof(*open),
                                compare_queues);
                if (found)
                        look_at_clock(found, thread);
        }
}

static int collect_open(const struct drained *drained, struct rows *rows) {
        bool hooks = drained->clock_source == CLOCK_SOURCE_HOOKS;
        cleanup_free struct open_queue *open = NULL;
        size_t count = 0;
        int r = 0;

        DRAINED_EACH(drained, head)
        count += head->kind == DRAIN_QUEUE;
        if (count == 0)
                return 0;
        open = calloc(count, sizeof(*open));
        if (!open)
                return -ENOMEM;
        count = 0;
        DRAINED_EACH(drained, head) {
                const struct drain_queue *queue = (const void *) head;

                if (head->kind == DRAIN_QUEUE)
                        open[count++] = (struct open_queue){queue,
                                                            hooks && queue->rec.since_ns ? UINT64_MAX : 0};
        }
        if (!hooks)
                find_ends(drained, open, count);
        for (size_t i = 0; i < count && r == 0; i++) {
                const struct queue_rec *rec = &open[i].queue->rec;

                r = add(rows, rec->container, drained_mono(drained, rec->open_ns),
                        open[i].until == UINT64_MAX ? UINT64_MAX : drained_mono(drained, open[i].until),
                        rec->open_above != 0);
        }
        return r;
}

static int collect(const struct drained *drained, struct rows *rows) {
        for (size_t i = 0; i < drained->events_count; i++) {
                const struct stall_event *event = &drained->events[i];
                int r = add(rows, event->container, drained_mono(drained, event->start_ns),
                            drained_mono(drained, event->end_ns), event->above != 0);

                if (r < 0)
                        return r;
        }
        return collect_open(drained, rows);
}

/* The first row of a container, or where it would be. */
static size_t first_row(const struct rows *rows, uint64_t container) {
        size_t low = 0, high = rows->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (rows->items[middle].container < container)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Joins what overlaps or touches. */
static int merge(const struct rows *rows, struct arena *arena, struct container_sample *container) {
        size_t first = first_row(rows, container->id), end = first;

        while (end < rows->count && rows->items[end].container == container->id)
                end++;
        if (end == first)
                return 0;
        container->intervals = arena_array(arena, end - first, sizeof(*container->intervals));
        if (!container->intervals)
                return -ENOMEM;
        for (size_t i = first; i < end; i++) {
                const struct stall_interval *next = &rows->items[i].interval;
                struct stall_interval *last = NULL;

                if (container->intervals_count > 0)
                        last = &container->intervals[container->intervals_count - 1];
                if (!last || next->start_ns > last->end_ns) {
                        container->intervals[container->intervals_count++] = *next;
                        continue;
                }
                if (next->end_ns > last->end_ns)
                        last->end_ns = next->end_ns;
                last->above = last->above && next->above;
        }
        return 0;
}

int bpf_intervals(const struct drained *drained, uint64_t from_ns, struct snapshot *snapshot) {
        struct rows rows = {.from_ns = from_ns, .to_ns = drained->now_ns};
        int r = collect(drained, &rows);

        if (r == 0 && rows.count > 0) {
                qsort(rows.items, rows.count, sizeof(*rows.items), compare_rows);
                for (size_t i = 0; i < snapshot->containers_count && r == 0; i++)
                        r = merge(&rows, snapshot->arena, &snapshot->containers[i]);
        }
        free(rows.items);
        return r;
}
