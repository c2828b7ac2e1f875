/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernels, told by the existence of a field or a type, never by a version. `direct` says
 * that the pointer came out of a typed tracepoint argument and may be dereferenced; else it is read with a helper.
 * It is always a constant, so one of the two branches disappears.
 */
#ifndef THROTTLESCOPE_COMPAT_H
#define THROTTLESCOPE_COMPAT_H

#define FIELD(direct, pointer, field) ((direct) ? (pointer)->field : BPF_CORE_READ(pointer, field))
#define NO_QUOTA (~0ULL)

/* 5.14 renamed task_struct.state to __state: 2f064a59a11f. */
struct task_struct___state {
        long state;
} __attribute__((preserve_access_index));

#define TASK_DEAD 0x80

static __always_inline bool task_is_dead(struct task_struct *p) {
        if (bpf_core_field_exists(p->__state))
                return p->__state & TASK_DEAD;
        return ((struct task_struct___state *) p)->state & TASK_DEAD;
}

/*
 * Wants to run though it was switched out. `prev_state` of the tracepoint can be stale when a signal is pending; on_rq is
 * not. From 6.12 on a sleeping thread may stay queued for a while, marked sched_delayed.
 */
static __always_inline bool task_is_runnable(struct task_struct *p) {
        if (p->on_rq != 1)
                return false;
        if (bpf_core_field_exists(p->se.sched_delayed))
                return !p->se.sched_delayed;
        return true;
}

/* RT, deadline and stop tasks are below 100: a CFS quota does not hold them. */
#define MAX_RT_PRIO 100

/* h_nr_running became h_nr_queued in 6.14: 7b8a702d9438. Threads queued on this cfs_rq and below. */
struct cfs_rq___queued {
        unsigned int h_nr_queued;
} __attribute__((preserve_access_index));
struct cfs_rq___running {
        unsigned int h_nr_running;
} __attribute__((preserve_access_index));

static __always_inline __u64 queue_threads(struct cfs_rq *q) {
        struct cfs_rq___queued *new = (void *) q;
        struct cfs_rq___running *old = (void *) q;

        if (bpf_core_field_exists(new->h_nr_queued))
                return BPF_CORE_READ(new, h_nr_queued);
        return BPF_CORE_READ(old, h_nr_running);
}

/* throttled_clock_task(_time) became throttled_clock_pelt(_time) in 5.18 and its stable branches: 64eaf50731ac. */
struct cfs_rq___task {
        __u64 throttled_clock_task;
        __u64 throttled_clock_task_time;
} __attribute__((preserve_access_index));

static __always_inline __u64 pelt_throttled_since(struct cfs_rq *q) {
        struct cfs_rq___task *old = (void *) q;

        if (bpf_core_field_exists(q->throttled_clock_pelt))
                return BPF_CORE_READ(q, throttled_clock_pelt);
        return BPF_CORE_READ(old, throttled_clock_task);
}

static __always_inline __u64 pelt_throttled_total(struct cfs_rq *q) {
        struct cfs_rq___task *old = (void *) q;

        if (bpf_core_field_exists(q->throttled_clock_pelt_time))
                return BPF_CORE_READ(q, throttled_clock_pelt_time);
        return BPF_CORE_READ(old, throttled_clock_task_time);
}

/* rq_clock_pelt(): the clock that throttled_clock_pelt is taken from. */
static __always_inline __u64 pelt_now(struct rq *rq) {
        __u64 clock = BPF_CORE_READ(rq, clock_pelt);

        if (bpf_core_field_exists(rq->lost_idle_time))
                clock -= BPF_CORE_READ(rq, lost_idle_time);
        return clock;
}

/* Begin of the current quota period, from the timer that ends it (its clock is CLOCK_MONOTONIC); 0: not known. */
static __always_inline __u64 period_start(struct task_group *limit) {
        if (!bpf_core_field_exists(limit->cfs_bandwidth.period_timer.node.expires))
                return 0;
        __u64 expires = BPF_CORE_READ(limit, cfs_bandwidth.period_timer.node.expires);
        __u64 period = BPF_CORE_READ(limit, cfs_bandwidth.period);
        return expires > period ? expires - period : 0;
}

/*
 * Registers hold a kprobe's arguments, and each architecture has its own: asked for by existence too, so that one object serves
 * both.
 */
struct pt_regs___x86 {
        unsigned long di;
        unsigned long si;
} __attribute__((preserve_access_index));
struct user_pt_regs___arm64 {
        __u64 regs[2];
} __attribute__((preserve_access_index));

static __always_inline void *kprobe_argument(struct pt_regs *ctx, const int index) {
        struct pt_regs___x86 *x86 = (void *) ctx;
        struct user_pt_regs___arm64 *arm64 = (void *) ctx;

        if (bpf_core_field_exists(x86->di))
                return (void *) (index ? BPF_CORE_READ(x86, si) : BPF_CORE_READ(x86, di));
        if (bpf_core_field_exists(arm64->regs))
                return (void *) (index ? BPF_CORE_READ(arm64, regs[1]) : BPF_CORE_READ(arm64, regs[0]));
        return NULL;
}

static __always_inline __u64 group_id(struct task_group *tg) {
        return BPF_CORE_READ(tg, css.cgroup, kn, id);
}

/* This queue itself has run out, not only a group above it. */
static __always_inline bool throttled_itself(struct cfs_rq *q) {
        return BPF_CORE_READ_BITFIELD_PROBED(q, throttled);
}

/*
 * The queue of a group on a CPU. tg->cfs_rq was an array of pointers, beside one of entities, tg->se; in 7.x it is a per-CPU pointer and the
 * other is gone. (Asked by a field: for a type that is not in the kernel's BTF libbpf would look into the modules', which takes
 * CAP_SYS_ADMIN.) A CPU's offset is then the distance of its idle task's queue, the root group's on that CPU for ever, from the root group's
 * own.
 */
#define QUEUES_ARE_PER_CPU (!bpf_core_field_exists(((struct task_group *) 0)->se))

static __always_inline struct cfs_rq *group_queue_of_rq(struct task_group *tg, struct rq *rq) {
        struct cfs_rq *q = NULL;

        if (QUEUES_ARE_PER_CPU) {
                struct task_struct *idle = BPF_CORE_READ(rq, idle);
                __u64 here = (__u64) BPF_CORE_READ(idle, se.cfs_rq);
                __u64 root = (__u64) BPF_CORE_READ(idle, sched_task_group, cfs_rq);

                return (void *) ((__u64) BPF_CORE_READ(tg, cfs_rq) + (here - root));
        }
        bpf_probe_read_kernel(&q, sizeof(q), BPF_CORE_READ(tg, cfs_rq) + BPF_CORE_READ(rq, cpu));
        return q;
}

#endif
