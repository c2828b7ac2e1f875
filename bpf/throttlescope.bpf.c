// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who was stalled by a CPU quota, for how long, and who spent it: summed per thread in the scheduler's own tracepoints.
 *
 * The subject is always the task in the hook's arguments, never the current one. Each program is off until user space has found
 * by trial that this kernel takes it. Order of includes: kernel types, differences, maps, then upward from groups to threads.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "shared.h"

#include "compat.bpf.h"
#include "state.bpf.h"

#include "group.bpf.h"

#include "container.bpf.h"
#include "queue.bpf.h"
#include "thread.bpf.h"

#include "drain.bpf.h"

char LICENSE[] SEC("license") = "GPL";

__u64 switches_seen;

SEC("?tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
        struct task_group *out = prev->sched_task_group, *in = next->sched_task_group;
        bool measure_out = prev->pid && group_is_measured(out, prev),
             measure_in = next->pid && group_is_measured(in, prev);
        struct thread_rec *r;

        run_queue_learn(next);
        if (!measure_out && !measure_in)
                return 0;
        if (lose_switches && ++switches_seen % lose_switches == 0)
                return 0;
        __u64 now = clock_now(measure_out ? prev->se.cfs_rq : next->se.cfs_rq);
        if (measure_out) {
                r = thread_find(prev);
                if (!r && thread_make(address_of(prev), now, THREAD_RUN))
                        r = thread_find(prev);
                if (r)
                        thread_switch_out(prev, r, now);
        }
        if (measure_in) {
                r = thread_find(next);
                if (r)
                        thread_switch_in(next, r, now);
                else
                        thread_make(address_of(next), now, THREAD_RUN);
        }
        return 0;
}

static __always_inline int wakes(struct task_struct *p) {
        if (!group_is_measured(p->sched_task_group, p))
                return 0;
        __u64 now = clock_now(p->se.cfs_rq);
        struct thread_rec *r = thread_find(p);

        if (r) {
                thread_wakes(p, r, now);
                return 0;
        }
        if (p->on_cpu || !thread_make(address_of(p), now, THREAD_WAIT))
                return 0;
        r = thread_find(p);
        if (r) {
                thread_lock(r);
                thread_open(r, p->se.cfs_rq, true, true, now);
                thread_unlock(r);
        }
        return 0;
}

SEC("?tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p) {
        return wakes(p);
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p) {
        return wakes(p);
}

/* Before the move: the thread is still on its old CPU's queue, whose rq lock is held if it waits there. */
SEC("?tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int dest_cpu) {
        struct task_group *tg = p->sched_task_group;

        if (!group_is_measured(tg, p))
                return 0;
        struct thread_rec *r = thread_find(p);
        if (!r || r->state != THREAD_WAIT)
                return 0;
        struct cfs_rq *to = group_queue(tg, dest_cpu);
        if (r->queue == (__u64) to)
                return 0;
        __u64 now = clock_now(p->se.cfs_rq);
        thread_lock(r);
        thread_close(p, r, p->se.cfs_rq, true, now, now);
        thread_open(r, to, false, false, now);
        thread_unlock(r);
        return 0;
}

/* Without sched_move_task: fires once a process (or thread), after the move. Threads that wait find out when they next run. */
SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *group, const char *path, struct task_struct *task, bool threadgroup) {
        __u32 key = threadgroup ? task->tgid | MOVED_PROCESS : task->pid;
        __u64 now = clock_guess();

        if (!group_is_measured(task->sched_task_group, task) && !thread_find(task))
                return 0;
        *group_seen_byte(task->sched_task_group) = GROUP_MEASURED;
        if (bpf_map_update_elem(&moves, &key, &now, BPF_ANY))
                count_lost(LOST_AT_MOVES, 1);
        return 0;
}

/* Around the move of a waiting thread: close on the old queue, open on the new one. */
static __always_inline int move_begins(struct task_struct *p) {
        struct thread_rec *r = thread_find(p);

        if (!r || r->state != THREAD_WAIT)
                return 0;
        __u64 now = clock_guess();
        thread_lock(r);
        thread_close(p, r, p->se.cfs_rq, false, now, now);
        r->queue = 0;
        thread_unlock(r);
        return 0;
}

static __always_inline int move_ends(struct task_struct *p) {
        struct thread_rec *r = thread_find(p);

        if (!r)
                return 0;
        *group_seen_byte(p->sched_task_group) = GROUP_MEASURED;
        __u64 now = clock_guess();
        thread_lock(r);
        thread_follow(p, r, now);
        if (r->state == THREAD_WAIT) {
                r->wait_ns += since(now, r->since_ns); /* the move itself: on no queue, it waits for locks */
                thread_open(r, p->se.cfs_rq, true, false, now);
        }
        thread_unlock(r);
        return 0;
}

SEC("?fentry/sched_move_task")
int BPF_PROG(on_move_begins, struct task_struct *p) {
        return move_begins(p);
}

SEC("?fexit/sched_move_task")
int BPF_PROG(on_move_ends, struct task_struct *p) {
        return move_ends(p);
}

/*
 * The own throttled clock. Both functions are passed as pointers to walk_tg_tree_from(), so they are never inlined; both run under
 * the lock of @rq, half of the releases on another CPU. throttle_count is the value before the change.
 */
static __always_inline int throttle_begins(struct task_group *tg, struct rq *rq) {
        struct cfs_rq *q = group_queue_of_rq(tg, rq);
        __u64 now = BPF_CORE_READ(rq, clock), key = (__u64) tg;

        if (!q || BPF_CORE_READ(q, throttle_count))
                return 0;
        struct group_rec *g = bpf_map_lookup_elem(&groups, &key);
        __u64 id = group_id(tg);
        struct queue_rec *rec = queue_get(q, key, id, g && g->id == id ? g->container : 0);
        if (!rec)
                return 0;
        if (rec->since_ns)
                queue_released(rec, now);
        rec->since_ns = now;
        /* The walk goes down from the group that ran out: its record, if the parent is held too, tells how far up that is. */
        struct task_group *parent = BPF_CORE_READ(tg, parent);
        rec->depth = 0;
        if (parent) {
                __u64 above = (__u64) group_queue_of_rq(parent, rq);
                struct queue_rec *upper = bpf_map_lookup_elem(&queues, &above);

                if (upper && upper->since_ns && upper->group == (__u64) parent)
                        rec->depth = upper->depth + 1;
        }
        /* The running thread is not stalled before it stops: at its switch, or (6.18 on) when it leaves the kernel. */
        struct cfs_rq *running = BPF_CORE_READ(rq, curr, se.cfs_rq);
        if (g && rec->container && queue_threads(q) > (running == q))
                queue_open(rec, now, now, rec->total_ns, rec->depth >= g->above_levels);
        return 0;
}

static __always_inline int throttle_ends(struct task_group *tg, struct rq *rq) {
        struct cfs_rq *q = group_queue_of_rq(tg, rq);
        __u64 now = BPF_CORE_READ(rq, clock), key = (__u64) q;

        if (!q || BPF_CORE_READ(q, throttle_count) != 1)
                return 0;
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &key);
        if (!rec || !rec->since_ns)
                return 0;
        queue_close(rec, now);
        rec->total_ns += since(now, rec->since_ns);
        rec->since_ns = 0;
        return 0;
}

SEC("?fentry/tg_throttle_down")
int BPF_PROG(on_throttle, struct task_group *tg, void *rq) {
        return throttle_begins(tg, rq);
}

SEC("?fentry/tg_unthrottle_up")
int BPF_PROG(on_unthrottle, struct task_group *tg, void *rq) {
        return throttle_ends(tg, rq);
}

SEC("?kprobe/tg_throttle_down")
int on_throttle_kprobe(struct pt_regs *ctx) {
        return throttle_begins(kprobe_argument(ctx, 0), kprobe_argument(ctx, 1));
}

SEC("?kprobe/tg_unthrottle_up")
int on_unthrottle_kprobe(struct pt_regs *ctx) {
        return throttle_ends(kprobe_argument(ctx, 0), kprobe_argument(ctx, 1));
}

/*
 * Before attaching: in which PID namespace is the agent (/proc would show it only from its own mount's namespace down), and what time has the
 * scheduler?
 */
SEC("?iter/task")
int whoami(struct bpf_iter__task *ctx) {
        struct task_struct *self = (void *) bpf_get_current_task();
        struct pid *pid = BPF_CORE_READ(self, thread_pid);
        struct task_struct *any = ctx->task;
        struct upid upid = {};

        if (!any)
                return 0;
        clock_note_here();
        if (pid_namespace)
                return 0;
        pid_level = BPF_CORE_READ(pid, level) & 31;
        bpf_probe_read_kernel(&upid, sizeof(upid), &pid->numbers[0] + pid_level);
        pid_namespace = BPF_CORE_READ(upid.ns, ns.inum);
        return 0;
}

/* Once, after attaching: threads that sleep, wait or run already. Sees only our own PID namespace; the others come by themselves. */
SEC("?iter/task")
int seed(struct bpf_iter__task *ctx) {
        struct task_struct *p = ctx->task;

        if (!p || !p->pid || !group_is_measured(p->sched_task_group, p) || thread_find(p))
                return 0;
        __u64 now = clock_guess();
        bool waits = !p->on_cpu && task_is_runnable(p);
        if (!thread_make(address_of(p), now,
                         p->on_cpu ? THREAD_RUN
                         : waits   ? THREAD_WAIT
                                   : THREAD_SLEEP) ||
            !waits)
                return 0;
        struct thread_rec *r = thread_find(p);
        if (r) {
                thread_lock(r);
                thread_open(r, p->se.cfs_rq, true, false, now);
                thread_unlock(r);
        }
        return 0;
}

/* Of the threads, and of those that have ended: user space attaches it to both maps. */
SEC("?iter/bpf_map_elem")
int drain_threads(struct bpf_iter__bpf_map_elem *ctx) {
        return drain_one_thread(ctx);
}

SEC("?iter/bpf_map_elem")
int drain_folds(struct bpf_iter__bpf_map_elem *ctx) {
        struct fold_rec *f = ctx->value;
        union drain_any *any = drain_begin();

        if (!f || !ctx->key || !any)
                return 0;
        struct drain_fold *out = &any->fold;
        out->head.kind = DRAIN_FOLD;
        out->head.bytes = sizeof(*out);
        bpf_probe_read_kernel(&out->key, sizeof(out->key), ctx->key);
        bpf_probe_read_kernel(&out->rec, sizeof(out->rec), f);
        out->quota_pending_ns = 0;
        if (out->rec.limit && out->rec.period_exec_ns && ledger_ask(out->rec.limit, out->rec.period) == 1)
                out->quota_pending_ns = out->rec.period_exec_ns;
        bpf_seq_write(ctx->meta->seq, out, sizeof(*out));
        return 0;
}

SEC("?iter/bpf_map_elem")
int drain_containers(struct bpf_iter__bpf_map_elem *ctx) {
        union drain_any *any = drain_begin();

        if (!ctx->value || !ctx->key || !any)
                return 0;
        struct drain_container *out = &any->container;
        out->head.kind = DRAIN_CONTAINER;
        out->head.bytes = sizeof(*out);
        out->now_ns = clock_guess();
        bpf_probe_read_kernel(&out->id, sizeof(out->id), ctx->key);
        bpf_probe_read_kernel(&out->rec, sizeof(out->rec), ctx->value);
        bpf_seq_write(ctx->meta->seq, out, sizeof(*out));
        return 0;
}

SEC("?iter/bpf_map_elem")
int drain_queues(struct bpf_iter__bpf_map_elem *ctx) {
        struct queue_rec *rec = ctx->value;
        union drain_any *any = drain_begin();

        if (!rec || !ctx->key || !any || !rec->open_ns)
                return 0;
        struct drain_queue *out = &any->queue;
        out->head.kind = DRAIN_QUEUE;
        out->head.bytes = sizeof(*out);
        out->now_ns = clock_guess();
        bpf_probe_read_kernel(&out->queue, sizeof(out->queue), ctx->key);
        bpf_probe_read_kernel(&out->rec, sizeof(out->rec), rec);
        bpf_seq_write(ctx->meta->seq, out, sizeof(*out));
        return 0;
}
