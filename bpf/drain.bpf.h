/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tick: iterators over our own maps write out what user space needs in one read, and with it what only the kernel knows at
 * this moment (the throttled clock of an open interval). Over the maps, not over the tasks: an iterator over tasks sees only those of
 * the reader's PID namespace, and a sidecar's siblings are not in it.
 */
#ifndef THROTTLESCOPE_DRAIN_H
#define THROTTLESCOPE_DRAIN_H

union drain_any {
        struct drain_thread thread;
        struct drain_level level;
        struct drain_fold fold;
        struct drain_container container;
        struct drain_queue queue;
};

/* An iterator can be preempted, so not per CPU; only one reads: user space holds one iterator open at a time. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, union drain_any);
} drain_space SEC(".maps");

static __always_inline union drain_any *drain_begin(void) {
        __u32 zero = 0;

        return bpf_map_lookup_elem(&drain_space, &zero);
}

/* The levels of a container's group and all above it, as the scheduler has them: no namespace hides them. */
static __always_inline void drain_levels(struct seq_file *seq, struct task_struct *p,
                                         const struct thread_rec *r, union drain_any *any) {
        struct task_group *tg = BPF_CORE_READ(p, sched_task_group);
        struct drain_level *out = &any->level;
        __u32 index = 0;
        bool inside = false;

        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                struct task_group *parent = BPF_CORE_READ(tg, parent);
                __u64 id;

                if (!tg || !parent)
                        break;
                id = group_id(tg);
                if (id == r->container)
                        inside = true;
                if (inside) {
                        const char *name = BPF_CORE_READ(tg, css.cgroup, kn, name);

                        out->head.kind = DRAIN_LEVEL;
                        out->head.bytes = sizeof(*out);
                        out->container = r->container;
                        out->id = id;
                        out->index = index++;
                        out->pad = 0;
                        out->quota_ns = BPF_CORE_READ(tg, cfs_bandwidth.quota);
                        out->period_ns = BPF_CORE_READ(tg, cfs_bandwidth.period);
                        out->nr_periods = (__u32) BPF_CORE_READ(tg, cfs_bandwidth.nr_periods);
                        out->nr_throttled = (__u32) BPF_CORE_READ(tg, cfs_bandwidth.nr_throttled);
                        out->throttled_ns = BPF_CORE_READ(tg, cfs_bandwidth.throttled_time);
                        if (bpf_core_field_exists(tg->cfs_bandwidth.burst)) {
                                out->burst_ns = BPF_CORE_READ(tg, cfs_bandwidth.burst);
                                out->nr_bursts = (__u32) BPF_CORE_READ(tg, cfs_bandwidth.nr_burst);
                                out->burst_time_ns = BPF_CORE_READ(tg, cfs_bandwidth.burst_time);
                        } else {
                                out->burst_ns = out->nr_bursts = out->burst_time_ns = ~0ULL;
                        }
                        __u64 key = (__u64) tg;
                        struct group_rec *g = bpf_map_lookup_elem(&groups, &key);

                        out->periods_seen = g && g->ledger_begun ? g->periods_seen : ~0ULL;
                        out->throttled_seen = g && g->ledger_begun ? g->throttled_seen : ~0ULL;
                        bpf_probe_read_kernel_str(out->name, sizeof(out->name), name);
                        bpf_seq_write(seq, out, sizeof(*out));
                }
                tg = parent;
        }
}

/* False: it was written to meanwhile. */
static __always_inline bool drain_copy(struct drain_thread *out, struct thread_rec *value) {
        bpf_probe_read_kernel(&out->rec, sizeof(out->rec), value);
        return !(out->rec.sequence & 1) && *(volatile __u32 *) &value->sequence == out->rec.sequence;
}

static __always_inline int drain_one_thread(struct bpf_iter__bpf_map_elem *ctx) {
        struct seq_file *seq = ctx->meta->seq;
        struct thread_rec *value = ctx->value;
        union drain_any *any = drain_begin();

        clock_note_here();
        if (!value || !any)
                return 0;
        struct drain_thread *out = &any->thread;
        out->head.kind = DRAIN_THREAD;
        out->head.bytes = sizeof(*out);
        /* A record is written within a microsecond: if it still changes at the third try, the next tick has it. (No loop: up to 6.1 one
         * that begins with a call is refused.) */
        if (!drain_copy(out, value) && !drain_copy(out, value))
                drain_copy(out, value);
        __u64 now = clock_guess();
        out->now_ns = now;
        out->clock_now = 0;
        out->clock_running = 0;
        out->exec_now = 0;
        out->alive = 0;
        out->stall_clock = 0;
        out->quota_pending_ns = 0;
        if (out->rec.limit && out->rec.period_exec_ns && ledger_ask(out->rec.limit, out->rec.period) == 1)
                out->quota_pending_ns = out->rec.period_exec_ns;
        struct container_rec *c = container_find(out->rec.container);
        if (c)
                out->stall_clock = stall_clock(c, now);

        /* The record is not marked as ended, so the task was there when it was last written; is it still the same one? */
        struct task_struct *p = (void *) out->rec.task;
        bool alive = out->rec.state != THREAD_ENDED && BPF_CORE_READ(p, pid) == (int) out->rec.tid &&
                     BPF_CORE_READ(p, start_boottime) == out->rec.start_ns;
        if (alive) {
                struct queue_clock clock;

                out->alive = 1;
                out->exec_now = BPF_CORE_READ(p, se.sum_exec_runtime);
                BPF_CORE_READ_INTO(&out->rec.name, p, comm);
                BPF_CORE_READ_INTO(&out->rec.process, p, group_leader, comm);
                if (out->rec.state == THREAD_WAIT) {
                        struct cfs_rq *q = BPF_CORE_READ(p, se.cfs_rq);

                        __u64 value = queue_clock(q, false, false, now, &clock);
                        if ((__u64) q == out->rec.queue) {
                                out->clock_now = value;
                                out->clock_running = clock.raw ? clock.running + 1 : 0;
                        }
                }
        }
        bpf_seq_write(seq, out, sizeof(*out));
        if (alive && c && c->levels_window != window) {
                c->levels_window = window;
                drain_levels(seq, p, value, any);
        }
        return 0;
}

#endif
