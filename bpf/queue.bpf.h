/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run queues: the throttled clock of a cfs_rq, and the stalls of the threads on it.
 *
 * The throttled clock T of a cfs_rq is the time it was throttled, by itself or by an ancestor. Three sources:
 *   HOOKS  kept here from tg_throttle_down() and tg_unthrottle_up().
 *   SELF   the kernel's throttled_clock_self, from 6.6 on. It runs only while threads are queued there.
 *   PELT   the kernel's throttled_clock_pelt, before; a clock that may run slow with the CPU's frequency: an estimate.
 * A waiting thread remembers T of its queue; the difference when it gets the CPU is its stall, in both throttle models.
 */
#ifndef THROTTLESCOPE_QUEUE_H
#define THROTTLESCOPE_QUEUE_H

/* Now, for an event that has the lock of @q's rq. */
static __always_inline __u64 clock_now(struct cfs_rq *q) {
        __u64 now = q->rq->clock;

        clock_note(now);
        if (clock_source == CLOCK_SOURCE_PELT) {
                __u32 cpu = q->rq->cpu;

                if (cpu < CPUS_MAX)
                        pelt_offsets[cpu] = now - pelt_now(q->rq);
        }
        return now;
}

/* The load clock of @q's CPU at @now; where its lock is not held (not @here) and the clock stands, from its last switch. */
static __always_inline __u64 pelt_clock_at(struct cfs_rq *q, const bool here, __u64 now) {
        struct rq *rq = BPF_CORE_READ(q, rq);
        __u32 cpu = BPF_CORE_READ(rq, cpu);

        if (here)
                return pelt_now(rq);
        return cpu < CPUS_MAX ? now - pelt_offsets[cpu] : 0;
}

/* The record of a queue; a record left by a group whose address was reused is started anew. */
static __always_inline struct queue_rec *queue_get(struct cfs_rq *q, __u64 tg, __u64 id, __u64 container) {
        __u64 key = (__u64) q;
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &key);
        struct blank *none;

        if (rec && rec->group_id == id) {
                if (container)
                        rec->container = container;
                return rec;
        }
        none = blank();
        if (!none)
                return NULL;
        if (bpf_map_update_elem(&queues, &key, &none->queue, BPF_ANY)) {
                count_lost(LOST_AT_QUEUES_FULL, 1);
                return NULL;
        }
        rec = bpf_map_lookup_elem(&queues, &key);
        if (!rec)
                return NULL;
        rec->group = tg;
        rec->group_id = id;
        rec->container = container;
        rec->cpu = BPF_CORE_READ(q, rq, cpu);
        return rec;
}

static __always_inline void stall_emit(__u64 container, __u64 start, __u64 end, __u64 above) {
        struct stall_event event = {
                        .container = container,
                        .start_ns = start,
                        .end_ns = end,
                        .above = above,
        };
        /* User space drains at the tick; only a filling buffer wakes it. */
        __u64 flags = bpf_ringbuf_query(&stalls, BPF_RB_AVAIL_DATA) >
                                                      bpf_ringbuf_query(&stalls, BPF_RB_RING_SIZE) / 2
                                      ? BPF_RB_FORCE_WAKEUP
                                      : BPF_RB_NO_WAKEUP;

        if (bpf_ringbuf_output(&stalls, &event, sizeof(event), flags))
                count_lost(LOST_AT_STALLS_FULL, 1);
}

static __always_inline void queue_remember(struct queue_rec *rec, __u64 start, __u64 end, __u64 above) {
        struct stall_span *span = &rec->ring[rec->ring_next & (QUEUE_RING - 1)];

        span->start_ns = start;
        span->end_ns = end;
        span->above = above;
        rec->ring_next++;
        stall_emit(rec->container, start, end, above);
}

/* Threads are stalled on this queue from @at on. */
static __always_inline void queue_open(struct queue_rec *rec, __u64 at, __u64 raw, __u64 base, __u32 above) {
        struct container_rec *c;

        if (rec->open_ns)
                return;
        rec->open_ns = at;
        rec->open_raw = raw;
        rec->open_base = base;
        rec->open_above = above;
        c = container_find(rec->container);
        if (!c)
                return;
        if (!above)
                c->own_stall_ns = at;
        container_stall(c, 1, at);
}

static __always_inline void queue_close(struct queue_rec *rec, __u64 at) {
        struct container_rec *c;

        if (!rec->open_ns)
                return;
        if (at > rec->open_ns)
                queue_remember(rec, rec->open_ns, at, rec->open_above);
        rec->open_ns = 0;
        c = container_find(rec->container);
        if (c)
                container_stall(c, -1, at);
}

/* Its release was not seen when it happened; now it is known to be over. */
static __always_inline void queue_released(struct queue_rec *rec, __u64 now) {
        count_lost(LOST_AT_UNTHROTTLES, 1);
        queue_close(rec, now);
        rec->total_ns += since(now, rec->since_ns);
        rec->since_ns = 0;
}

/*
 * Reads the throttled clock of @q into the record. @direct: @q may be dereferenced. @here: the caller holds that queue's rq lock, so its
 * clock is fresh. Returns T.
 */
static __always_inline __u64 queue_clock(struct cfs_rq *q, const bool direct, const bool here, __u64 now,
                                         struct queue_clock *ret) {
        ret->base = 0;
        ret->raw = 0;
        ret->running = 0;
        if (clock_source == CLOCK_SOURCE_HOOKS) {
                __u64 key = (__u64) q;
                struct queue_rec *rec = bpf_map_lookup_elem(&queues, &key);

                if (!rec)
                        return 0;
                /* A kprobe is skipped while a map system call runs on its CPU: the kernel's own count tells what was missed. */
                if (here && rec->since_ns && !FIELD(direct, q, throttle_count))
                        queue_released(rec, now);
                ret->base = rec->total_ns;
                ret->raw = rec->since_ns;
                ret->running = rec->since_ns ? since(now, rec->since_ns) : 0;
        } else if (clock_source == CLOCK_SOURCE_SELF) {
                if (!bpf_core_field_exists(q->throttled_clock_self))
                        return 0;
                ret->base = FIELD(direct, q, throttled_clock_self_time);
                ret->raw = FIELD(direct, q, throttled_clock_self);
                if (ret->raw)
                        ret->running = since(now, ret->raw);
        } else {
                ret->base = pelt_throttled_total(q);
                if (FIELD(direct, q, throttle_count)) {
                        ret->raw = pelt_throttled_since(q);
                        ret->running = since(pelt_clock_at(q, here, now), ret->raw);
                        ret->raw |= 1; /* never 0 while it runs */
                }
        }
        return ret->base + ret->running;
}

/* Is the lowest throttled group above the container? Levels of the container itself are looked at from the leaf up. */
static __always_inline bool queue_throttled_above(struct task_group *tg, __u32 cpu, __u32 own_levels) {
        for (__u32 i = 0; i < GROUP_DEPTH_MAX; i++) {
                if (i >= own_levels || !tg)
                        break;
                struct cfs_rq *q = group_queue(tg, cpu);

                if (q && throttled_itself(q))
                        return false;
                tg = BPF_CORE_READ(tg, parent);
        }
        return true;
}

/* A stall that the kernel's clock says is over is closed; the clock tells how long it was, whenever we look. */
static __always_inline void queue_settle(struct queue_rec *rec, const struct queue_clock *clock, __u64 now) {
        if (!rec->open_ns || rec->open_raw == clock->raw)
                return;
        queue_close(rec, min_u64(rec->open_ns + since(clock->base, rec->open_base), now));
}

/*
 * Without hooks: brings the stall of the queue at @address in step with the kernel's clock, which thread @tid has just read into its record,
 * at any event that has it in hand. With hooks they have done that, but for the first thread that wakes on a throttled queue.
 */
__noinline int queue_sync(__u64 address, __u32 tid, __u64 now) {
        __u64 key = address;
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &key);
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        if (!r)
                return 0;
        if (clock_source == CLOCK_SOURCE_HOOKS) {
                if (rec && !rec->open_ns && rec->since_ns) {
                        rec->container = r->container;
                        queue_open(rec, now, rec->since_ns, r->clock.base, rec->depth >= r->above_levels);
                }
                return 0;
        }
        if (rec)
                queue_settle(rec, &r->clock, now);
        if (!r->clock.raw || (rec && rec->open_ns))
                return 0;
        struct task_group *tg = (void *) r->group;
        rec = queue_get((void *) address, r->group, group_id(tg), r->container);
        if (!rec)
                return 0;
        /* Only SELF stands still while the queue is empty: else the stall is not older than this thread's interval. */
        __u64 at = now - r->clock.running;
        if (clock_source != CLOCK_SOURCE_SELF && at < r->since_ns)
                at = r->since_ns;
        queue_open(rec, at, r->clock.raw, r->clock.base,
                   queue_throttled_above(tg, rec->cpu, r->above_levels));
        return 0;
}

/* How much of [@from, @to] lies in stalls that are known of the queue at @address, the open one included. */
__noinline __u64 queue_overlap(__u64 address, __u64 from, __u64 to) {
        __u64 key = address, sum = 0;
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &key);

        if (!rec)
                return 0;
        for (int i = 0; i < QUEUE_RING; i++) {
                __u64 start = rec->ring[i].start_ns, end = min_u64(rec->ring[i].end_ns, to);

                sum += since(end, start > from ? start : from);
        }
        if (rec->open_ns)
                sum += since(to, rec->open_ns > from ? rec->open_ns : from);
        return sum;
}

#endif
