/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted for a container as a whole, from all CPUs at once: how many threads want to run, bursts, and the stall clock.
 * Sums are atomic. Where two CPUs race for a transition, the one that sees it second finds it done: a time can be off by the
 * race's nanoseconds, a state cannot stick.
 */
#ifndef THROTTLESCOPE_CONTAINER_H
#define THROTTLESCOPE_CONTAINER_H

static __always_inline struct container_rec *container_find(__u64 id) {
        return bpf_map_lookup_elem(&containers, &id);
}

static __always_inline struct container_rec *container_make(__u64 id, __u64 now) {
        struct container_rec *c = container_find(id);
        struct blank *none;

        if (c)
                return c;
        none = blank();
        if (!none)
                return NULL;
        int error = bpf_map_update_elem(&containers, &id, &none->container, BPF_NOEXIST);
        c = container_find(id);
        if (!c) {
                count_lost(LOST_AT_CONTAINERS_FULL, 1);
                return NULL;
        }
        if (!error) {
                c->level_since_ns = now;
                c->burst_partial = 1;
        }
        return c;
}

/* Maxima belong to one window: the first that touches them in a new one starts them anew. */
static __always_inline void container_window(struct container_rec *c) {
        if (c->window == window)
                return;
        c->window = window;
        c->ended_window = 0;
        c->runnable_max = c->runnable > 0 ? c->runnable : 0;
        c->burst_cpu_max_ns = 0;
        c->burst_longest_ns = 0;
        c->worst_ns = 0;
        c->worst_stall_ns = 0;
        c->worst_start_ns = 0;
}

/* How long any of the container's run queues was stalled, up to @now. */
static __always_inline __u64 stall_clock(struct container_rec *c, __u64 now) {
        return c->stall_total_ns + ((__s64) c->stall_open > 0 ? since(now, c->stall_since_ns) : 0);
}

static __always_inline void burst_begin(struct container_rec *c, __u64 now) {
        if (c->burst_end_ns) {
                __u32 bin = duration_bin(since(now, c->burst_end_ns), BURST_SHIFT, BURST_BINS);

                if (bin < BURST_BINS)
                        c->burst_gap_bins[bin]++;
        }
        c->burst_exec_mark = c->exec_ns;
        c->burst_stall_mark = stall_clock(c, now);
        c->burst_start_ns = now;
}

static __always_inline void burst_end(struct container_rec *c, __u64 now) {
        __u64 start = c->burst_start_ns;

        c->burst_start_ns = 0;
        c->burst_end_ns = now;
        if (c->burst_partial) {
                c->burst_partial = 0;
                return;
        }
        __u64 cpu = since(c->exec_ns, c->burst_exec_mark);
        __u64 length = since(now, start);
        __u64 stalled = min_u64(since(stall_clock(c, now), c->burst_stall_mark), length);
        __u32 bin = duration_bin(cpu, BURST_SHIFT, BURST_BINS);

        c->bursts++;
        if (bin < BURST_BINS)
                c->burst_cpu_bins[bin]++;
        if (stalled >= warn_stall_ns)
                c->bursts_stalled++;
        if (cpu > c->burst_cpu_max_ns)
                c->burst_cpu_max_ns = cpu;
        if (length > c->burst_longest_ns)
                c->burst_longest_ns = length;
        if (!c->worst_ns || stalled > c->worst_stall_ns) {
                c->worst_ns = length;
                c->worst_stall_ns = stalled;
                c->worst_start_ns = start;
        }
}

/*
 * One step of a container: @used ns of CPU more, @change threads more (+1, 0, -1) that want to run. Returns the stall clock at @now.
 */
__noinline __u64 container_step(__u64 id, __u64 used, __s64 change, __u64 now) {
        struct container_rec *c = container_find(id);

        if (!c)
                return 0;
        if (used)
                __sync_fetch_and_add(&c->exec_ns, used);
        __u64 clock = stall_clock(c, now);
        if (!change)
                return clock;

        __s64 before = c->runnable;
        __u32 bin = level_bin(before > 0 ? before : 0);

        container_window(c);
        if (bin < LEVEL_BINS)
                __sync_fetch_and_add(&c->level_ns[bin], since(now, c->level_since_ns));
        c->level_since_ns = now;
        __sync_fetch_and_add(&c->runnable, change);

        __s64 after = *(volatile __s64 *) &c->runnable;
        if (after > 0 && (__u64) after > c->runnable_max) /* of 2^32 threads */
                c->runnable_max = after;
        if (after > 0 && !c->burst_start_ns)
                burst_begin(c, now);
        else if (after <= 0 && c->burst_start_ns)
                burst_end(c, now);
        return clock;
}

/* One of its run queues became (+1) or ceased to be (-1) stalled. */
static __always_inline void container_stall(struct container_rec *c, __s64 change, __u64 at) {
        __s64 before = c->stall_open;

        __sync_fetch_and_add(&c->stall_open, change);
        __s64 after = *(volatile __s64 *) &c->stall_open;
        if (before <= 0 && after > 0)
                c->stall_since_ns = at;
        else if (before > 0 && after <= 0)
                __sync_fetch_and_add(&c->stall_total_ns, since(at, c->stall_since_ns));
}

#endif
