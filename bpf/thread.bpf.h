/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The thread: one open interval at any time (runs, waits, sleeps), so run + stall + wait + sleep is its wall time by
 * construction. Written under the rq lock of the thread's CPU, but for the drain, which only reads (see `sequence`).
 */
#ifndef THROTTLESCOPE_THREAD_H
#define THROTTLESCOPE_THREAD_H

static __always_inline void thread_lock(struct thread_rec *r) {
        r->sequence++;
        barrier();
}

static __always_inline void thread_unlock(struct thread_rec *r) {
        barrier();
        r->sequence++;
}

/* Folds the ended thread @tid into the sums of its process and forgets it. */
__noinline int thread_fold(__u32 tid, __u64 now) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        if (!r)
                return 0;
        struct fold_key key = {.container = r->container, .tgid = r->tgid};
        struct fold_rec *f = bpf_map_lookup_elem(&folds, &key);
        if (!f) {
                struct blank *none = blank();

                if (!none)
                        return 0;
                if (bpf_map_update_elem(&folds, &key, &none->fold, BPF_NOEXIST)) {
                        /* A storm of processes fills the table: from then on they are one sum a container. */
                        key.tgid = 0;
                        bpf_map_update_elem(&folds, &key, &none->fold, BPF_NOEXIST);
                }
                f = bpf_map_lookup_elem(&folds, &key);
                if (!f) {
                        count_lost(LOST_AT_THREADS_FULL, 1);
                        bpf_map_delete_elem(&threads, &tid);
                        return 0;
                }
        }
        if (!f->threads) {
                f->first_ns = r->first_ns;
                f->start_ns = now;
                f->host_tgid = key.tgid ? r->host_tgid : 0;
                f->ns_tgid = key.tgid ? r->ns_tgid : 0;
                __builtin_memcpy(f->process, r->process, NAME_BYTES);
        }
        f->last_ns = now;
        __sync_fetch_and_add(&f->threads, 1);
        __sync_fetch_and_add(&f->wall_ns, since(r->since_ns, r->first_ns));
        __sync_fetch_and_add(&f->run_ns, r->run_ns);
        __sync_fetch_and_add(&f->wait_ns, r->wait_ns);
        __sync_fetch_and_add(&f->stall_ns, r->stall_ns);
        __sync_fetch_and_add(&f->above_ns, r->above_ns);
        __sync_fetch_and_add(&f->sleep_ns, r->sleep_ns);
        __sync_fetch_and_add(&f->sleep_in_stall_ns, r->sleep_in_stall_ns);
        __sync_fetch_and_add(&f->exec_ns, r->exec_ns);
        __sync_fetch_and_add(&f->quota_spent_ns, r->quota_spent_ns);
        __sync_fetch_and_add(&f->stalls, r->stalls);
        __sync_fetch_and_add(&f->switches, r->switches);
        if (f->window != window) {
                f->window = window;
                f->longest_ns = 0;
        }
        if (r->window == window && r->longest_ns > f->longest_ns)
                f->longest_ns = r->longest_ns;
        for (int i = 0; i < STALL_BINS; i++)
                f->bins[i] += r->bins[i];

        /* Its last period is not over: kept apart until it is known how it ended. */
        if (f->period != r->period || f->limit != r->limit) {
                if (f->period_exec_ns && ledger_ask(f->limit, f->period) == 1)
                        __sync_fetch_and_add(&f->quota_spent_ns, f->period_exec_ns);
                f->period = r->period;
                f->limit = r->limit;
                f->period_exec_ns = 0;
        }
        __sync_fetch_and_add(&f->period_exec_ns, r->period_exec_ns);
        bpf_map_delete_elem(&threads, &tid);
        return 0;
}

static __always_inline void thread_names(struct task_struct *p, struct thread_rec *r) {
        BPF_CORE_READ_INTO(&r->name, p, comm);
        BPF_CORE_READ_INTO(&r->process, p, group_leader, comm);
}

/* A pid's numbers: in its innermost namespace, and in the agent's own (0 where it does not reach). */
static __always_inline void pid_numbers(struct pid *pid, __u32 *ret_inner, __u32 *ret_host) {
        struct upid upid = {};
        struct upid *numbers = &pid->numbers[0];
        __u32 level = BPF_CORE_READ(pid, level);

        if (level > 32) /* MAX_PID_NS_LEVEL */
                return;
        bpf_probe_read_kernel(&upid, sizeof(upid), numbers + level);
        *ret_inner = upid.nr;
        if (level < pid_level)
                return;
        bpf_probe_read_kernel(&upid, sizeof(upid), numbers + (pid_level & 31));
        if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace)
                *ret_host = upid.nr;
}

static __always_inline struct thread_rec *thread_find(struct task_struct *p) {
        __u32 tid = p->pid;
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        return r && r->task == (__u64) p && r->state != THREAD_ENDED ? r : NULL;
}

/* Makes the record of the task at @address, measured from now on. 1; 0: not in a container of ours, or no room. */
__noinline int thread_make(__u64 address, __u64 now, __u32 state) {
        struct task_struct *p = (void *) address;
        __u64 tg = (__u64) BPF_CORE_READ(p, sched_task_group);
        __u32 tid = BPF_CORE_READ(p, pid);

        if (!group_update(tg))
                return 0;
        struct group_rec *g = bpf_map_lookup_elem(&groups, &tg);
        struct blank *none = blank();
        if (!g || !none)
                return 0;
        if (bpf_map_lookup_elem(&threads, &tid))
                thread_fold(tid, now); /* its number was given out again before the tick came */
        if (bpf_map_update_elem(&threads, &tid, &none->thread, BPF_NOEXIST)) {
                count_lost(LOST_AT_THREADS_FULL, 1);
                return 0;
        }
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);
        if (!r)
                return 0;
        thread_lock(r);
        r->task = address;
        r->start_ns = BPF_CORE_READ(p, start_boottime);
        r->group = tg;
        r->container = g->container;
        r->limit = g->limit;
        r->above_levels = g->above_levels;
        r->generation = generation;
        r->first_ns = now;
        r->since_ns = now;
        r->state = state;
        r->exec_mark = BPF_CORE_READ(p, se.sum_exec_runtime);
        r->tid = tid;
        r->tgid = BPF_CORE_READ(p, tgid);
        pid_numbers(BPF_CORE_READ(p, thread_pid), &r->ns_tid, &r->host_tid);
        pid_numbers(BPF_CORE_READ(p, group_leader, thread_pid), &r->ns_tgid, &r->host_tgid);
        thread_names(p, r);
        thread_unlock(r);

        if (container_make(r->container, now) && state != THREAD_SLEEP)
                container_step(r->container, 0, 1, now);
        return 1;
}

/* Its group was moved, or the tree or a limit changed: finds its container and limit again. */
__noinline int thread_regroup(__u32 tid, __u64 tg, __u64 now) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        if (!r)
                return 0;
        r->group = tg;
        r->generation = generation;
        if (!group_update(tg))
                return 0; /* left the target: goes on under the container it was in */
        struct group_rec *g = bpf_map_lookup_elem(&groups, &tg);
        if (!g)
                return 0;
        if (r->limit != g->limit) {
                r->limit = g->limit;
                r->period_exec_ns = 0;
                r->period = 0;
        }
        r->above_levels = g->above_levels;
        if (r->container == g->container)
                return 0;
        __u64 old = r->container;
        r->container = g->container;
        container_make(r->container, now);
        if (r->state == THREAD_SLEEP) {
                r->sleep_mark = container_step(r->container, 0, 0, now);
                return 0;
        }
        container_step(old, 0, -1, now);
        container_step(r->container, 0, 1, now);
        return 0;
}

static __always_inline void thread_follow(struct task_struct *p, struct thread_rec *r, __u64 now) {
        struct task_group *tg = p->sched_task_group;

        if (r->group == (__u64) tg && r->generation == generation)
                return;
        *group_seen_byte(tg) = GROUP_MEASURED;
        thread_regroup(r->tid, address_of(tg), now);
}

/* A period has ended since the thread was last charged: settles what it used in it. @used ns are to be charged now. */
__noinline int thread_settle_period(__u32 tid, __u64 period, __u64 used, __u64 now) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        if (!r)
                return 0;
        /* A run over a period's end: what lies after it is this period's, it ran without a break. */
        __u64 begin = since(period_start((void *) r->limit), clock_offset());
        __u64 here = begin && now > begin ? min_u64(used, now - begin) : used;

        if (r->period && r->period + 1 == period)
                r->period_exec_ns += used - here;
        int throttled = ledger_ask(r->limit, r->period);
        if (throttled > 0)
                r->quota_spent_ns += r->period_exec_ns;
        else if (throttled < 0 && r->period_exec_ns)
                count_lost(LOST_AT_LEDGER, r->period_exec_ns);
        r->period = period;
        r->period_exec_ns = here;
        return 0;
}

/* The current period of the limit at @limit, which holds @p: without a helper where it is on one of the lowest levels, as it mostly is. */
static __always_inline __u64 limit_period(struct task_struct *p, __u64 limit) {
        struct task_group *tg = p->sched_task_group;

        if ((__u64) tg != limit)
                tg = tg->parent;
        if ((__u64) tg != limit)
                tg = tg->parent;
        if ((__u64) tg != limit)
                tg = tg->parent;
        if ((__u64) tg == limit)
                return (__u32) tg->cfs_bandwidth.nr_periods;
        struct task_group *far = (void *) limit;
        return (__u32) BPF_CORE_READ(far, cfs_bandwidth.nr_periods);
}

/* CPU time used up to now, into the ledger of its limit's periods. Returns it. */
static __always_inline __u64 thread_charge(struct task_struct *p, struct thread_rec *r, __u64 now) {
        __u64 exec = p->se.sum_exec_runtime;
        __u64 used = since(exec, r->exec_mark);

        r->exec_mark = exec;
        r->exec_ns += used;
        if (!r->limit)
                return used;
        __u64 period = limit_period(p, r->limit);
        if (r->period == period)
                r->period_exec_ns += used;
        else
                thread_settle_period(r->tid, period, used, now);
        return used;
}

static __always_inline void thread_stalled_once(struct thread_rec *r, __u64 ns) {
        __u32 bin = duration_bin(ns, STALL_SHIFT, STALL_BINS);

        r->stalls++;
        if (bin < STALL_BINS)
                r->bins[bin]++;
        if (r->window != window) {
                r->window = window;
                r->longest_ns = 0;
        }
        if (ns > r->longest_ns)
                r->longest_ns = ns;
}

/* Books the part of one remembered stall of the queue that lies in what is being booked: see thread_book(). A function, not the loop's body. */
__noinline int thread_book_span(__u32 tid, __u64 queue, __u32 index) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &queue);

        if (!r || !rec)
                return 0;
        struct stall_span *span = &rec->ring[index & (QUEUE_RING - 1)];
        __u64 start = span->start_ns > r->book_from_ns ? span->start_ns : r->book_from_ns;
        __u64 part = min_u64(since(min_u64(span->end_ns, r->book_to_ns), start), r->book_left_ns);

        if (!part)
                return 0;
        r->book_left_ns -= part;
        if (span->above)
                r->above_ns += part;
        if (part >= 1ULL << STALL_SHIFT)
                thread_stalled_once(r, part);
        return 0;
}

/*
 * Books @stall ns of the interval [@from, @to] on the queue at @queue: how many single stalls those were, how long each, and how much of it
 * was caused above the container. A thread that gets no CPU for several periods is stalled once in each.
 */
__noinline int thread_book(__u32 tid, __u64 queue, __u64 from, __u64 to, __u64 stall) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);
        struct queue_rec *rec = bpf_map_lookup_elem(&queues, &queue);

        if (!r)
                return 0;
        r->stall_ns += stall;
        r->book_from_ns = from;
        r->book_to_ns = to;
        r->book_left_ns = stall;
        for (__u32 i = 0; rec && i < QUEUE_RING; i++)
                thread_book_span(tid, queue, i);
        __u64 rest = r->book_left_ns;
        if (!rest)
                return 0;
        /* Still open, or never seen to begin: the own limit is seen when it stops the thread that ran. */
        bool is_open = rec && rec->open_ns;
        struct container_rec *c = container_find(r->container);
        if (is_open ? rec->open_above : !c || c->own_stall_ns < from)
                r->above_ns += rest;
        if (rest >= 1ULL << STALL_SHIFT && (is_open || rest == stall))
                thread_stalled_once(r, rest);
        return 0;
}

/*
 * The group moved while its thread waited, and nothing told us at once: the old queue's clock can't be had any more, but its stalls
 * were remembered, and cgroup_attach_task told when. Books and returns the stall of [since, @now]; the thread is on @queue now.
 */
__noinline __u64 thread_moved(__u32 tid, __u64 queue, __u64 now) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);
        __u64 stall = 0, part, old_queue;
        struct queue_rec *rec;

        if (!r)
                return 0;
        __u64 from = r->since_ns;
        __u32 process = r->tgid | MOVED_PROCESS;
        __u64 *at = bpf_map_lookup_elem(&moves, &tid);
        if (!at || *at < from)
                at = bpf_map_lookup_elem(&moves, &process);
        if (!at || *at < from || *at > now) {
                count_lost(LOST_AT_MOVES, 1);
                return 0;
        }
        __u64 moved = *at;
        old_queue = r->queue;
        rec = bpf_map_lookup_elem(&queues, &old_queue);
        if (rec) {
                struct cfs_rq *old = (void *) old_queue;

                /* Still that group's queue? Then its clock says whether the stall goes on without us. */
                if (clock_source != CLOCK_SOURCE_HOOKS &&
                    BPF_CORE_READ(old, tg, css.cgroup, kn, id) == rec->group_id) {
                        struct queue_clock clock;

                        queue_clock(old, false, false, now, &clock);
                        queue_settle(rec, &clock, now);
                }
                part = queue_overlap(old_queue, from, moved);
                thread_book(tid, old_queue, from, moved, part);
                stall = part;
        }
        part = queue_overlap(queue, moved, now);
        if (part)
                thread_book(tid, queue, moved, now, part);
        return stall + part;
}

/* Begins to wait on @q. @here: the caller holds the lock of @q's rq. */
static __always_inline void thread_open(struct thread_rec *r, struct cfs_rq *q, const bool direct,
                                        const bool here, __u64 now) {
        r->state = THREAD_WAIT;
        r->since_ns = now;
        r->queue = (__u64) q;
        r->clock_open = queue_clock(q, direct, here, now, &r->clock);
        if (r->clock.raw)
                queue_sync(address_of(q), r->tid, now);
}

/*
 * The interval that the thread waited, [since, @until], becomes stall and wait; normally @until is now. @q: the queue it is on. @here: its
 * rq lock is held.
 */
static __always_inline void thread_close(struct task_struct *p, struct thread_rec *r, struct cfs_rq *q,
                                         const bool here, __u64 until, __u64 now) {
        __u64 total = since(until, r->since_ns), stall = 0;

        r->realtime = p->prio < MAX_RT_PRIO;
        if (!r->realtime) {
                __u64 clock = queue_clock(q, true, here, now, &r->clock);

                if (r->queue != (__u64) q) {
                        queue_sync(address_of(q), r->tid, now);
                        stall = min_u64(thread_moved(r->tid, address_of(q), until), total);
                } else {
                        stall = since(clock, r->clock_open);
                        if (r->clock.raw && now - r->clock.running >= until)
                                stall = since(stall, r->clock.running); /* began after @until */
                        stall = min_u64(stall, total);
                        if (stall) {
                                queue_sync(address_of(q), r->tid, now);
                                thread_book(r->tid, address_of(q), r->since_ns, until, stall);
                        }
                }
        }
        r->wait_ns += total - stall;
        r->since_ns = until;
}

/* Slept until @until, when its container's stall clock was @stall_clock. */
static __always_inline void thread_slept(struct thread_rec *r, __u64 until, __u64 stall_clock) {
        __u64 total = since(until, r->since_ns);

        r->sleep_ns += total;
        r->sleep_in_stall_ns += min_u64(since(stall_clock, r->sleep_mark), total);
        r->since_ns = until;
}

static __always_inline void thread_ran(struct thread_rec *r, __u64 until) {
        r->run_ns += since(until, r->since_ns);
        r->since_ns = until;
}

/* The last switch of a thread. Its record is kept until the tick, but where very many end: then it goes into its process' sums. */
__noinline int thread_ends(__u32 tid, __u64 now) {
        struct thread_rec *r = bpf_map_lookup_elem(&threads, &tid);

        if (!r)
                return 0;
        r->state = THREAD_ENDED;
        thread_names((void *) r->task, r);
        thread_unlock(r);
        struct container_rec *c = container_find(r->container);
        if (c) {
                struct ended_key key = {.start_ns = r->start_ns, .tid = tid};

                __sync_fetch_and_add(&c->threads_ended, 1);
                container_window(c);
                if (c->ended_window < ended_max && !bpf_map_update_elem(&ended, &key, r, BPF_ANY)) {
                        c->ended_window++;
                        bpf_map_delete_elem(&threads, &tid);
                        return 0;
                }
        }
        thread_fold(tid, now);
        return 0;
}

/*
 * A switch that the kernel did not show: the next thread looks as if it had waited (or slept) through its whole run. Its last
 * arrival on the CPU is in sched_info.
 */
static __always_inline void thread_repair_in(struct task_struct *p, struct thread_rec *r, __u64 now) {
        struct cfs_rq *q = p->se.cfs_rq;
        __u64 arrival = p->sched_info.last_arrival;

        count_lost(LOST_AT_SWITCHES, 1);
        if (arrival < r->since_ns || arrival > now)
                arrival = r->since_ns;
        if (r->state == THREAD_SLEEP)
                thread_slept(r, arrival, container_step(r->container, 0, 1, now));
        else
                thread_close(p, r, q, true, arrival, now);
        r->state = THREAD_RUN;
}

static __always_inline void thread_switch_out(struct task_struct *p, struct thread_rec *r, __u64 now) {
        struct cfs_rq *q = p->se.cfs_rq;

        thread_lock(r);
        thread_follow(p, r, now);
        if (r->state != THREAD_RUN)
                thread_repair_in(p, r, now);
        thread_ran(r, now);
        __u64 used = thread_charge(p, r, now);
        bool runnable = task_is_runnable(p);
        r->switches++;
        __u64 stall_clock = container_step(r->container, used, runnable ? 0 : -1, now);
        if (runnable) {
                thread_open(r, q, true, true, now);
        } else if (task_is_dead(p)) {
                thread_ends(r->tid, now); /* unlocks it, it may be gone then */
                return;
        } else {
                r->state = THREAD_SLEEP;
                r->sleep_mark = stall_clock;
        }
        thread_unlock(r);
}

/* Waited since r->since_ns, but its queue's clock was not read then: the stalls that are known of the queue are its own. */
static __always_inline void thread_waited_unseen(struct thread_rec *r, __u64 queue, __u64 now) {
        __u64 from = r->since_ns, stall = queue_overlap(queue, from, now);

        if (stall)
                thread_book(r->tid, queue, from, now, stall);
        r->wait_ns += since(now - from, stall);
        r->since_ns = now;
}

/* It left the CPU unseen: what it used since is known; the rest it slept, or waited beside the stalls that are known of its queue. */
static __always_inline void thread_repair_out(struct task_struct *p, struct thread_rec *r, bool slept,
                                              __u64 now) {
        __u64 used = thread_charge(p, r, now);
        __u64 left = min_u64(r->since_ns + used, now);
        __u64 stall_clock = container_step(r->container, used, 0, now);

        count_lost(LOST_AT_SWITCHES, 1);
        thread_ran(r, left);
        if (slept) {
                r->sleep_mark = stall_clock;
                thread_slept(r, now, stall_clock);
                return;
        }
        thread_waited_unseen(r, address_of(p->se.cfs_rq), now);
}

/* Its wake-up was not shown: since when it is queued is in sched_info, as long as it has not arrived; the rest as above. */
static __always_inline void thread_repair_wake(struct task_struct *p, struct thread_rec *r, struct cfs_rq *q,
                                               __u64 now) {
        __u64 queued = p->sched_info.last_queued;

        count_lost(LOST_AT_SWITCHES, 1);
        if (queued < r->since_ns || queued > now)
                queued = now;
        thread_slept(r, queued, container_step(r->container, 0, 1, now));
        thread_waited_unseen(r, address_of(q), now);
}

static __always_inline void thread_switch_in(struct task_struct *p, struct thread_rec *r, __u64 now) {
        struct cfs_rq *q = p->se.cfs_rq;

        thread_lock(r);
        thread_follow(p, r, now);
        if (r->state == THREAD_WAIT) {
                thread_close(p, r, q, true, now, now);
        } else if (r->state == THREAD_SLEEP) {
                thread_repair_wake(p, r, q, now);
        } else {
                thread_repair_out(p, r, false, now);
        }
        r->state = THREAD_RUN;
        r->since_ns = now;
        r->exec_mark = p->se.sum_exec_runtime;
        thread_unlock(r);
}

static __always_inline void thread_wakes(struct task_struct *p, struct thread_rec *r, __u64 now) {
        /* Wake-ups of threads that run or wait happen, thousands in a signal storm. One that is in fact not on a CPU left it unseen. */
        if (r->state == THREAD_WAIT || (r->state == THREAD_RUN && p->on_cpu))
                return;
        thread_lock(r);
        thread_follow(p, r, now);
        if (r->state == THREAD_RUN)
                thread_repair_out(p, r, true, now);
        else
                thread_slept(r, now, container_step(r->container, 0, 1, now));
        thread_open(r, p->se.cfs_rq, true, true, now);
        thread_unlock(r);
}

#endif
