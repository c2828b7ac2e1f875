/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the BPF programs and agent/probe/ share: the records of the maps. Only fixed-width integers and byte arrays,
 * largest first, holes named; the user side asserts the sizes. Includes nothing: the includer brings __u64 and friends.
 *
 * All times are nanoseconds of the scheduler's clock (see state.bpf.h; user space adds the offset to CLOCK_MONOTONIC), all counters
 * cumulative since the record was made, but those that say "of the window": valid only while their `window` equals the global one.
 */
#ifndef THROTTLESCOPE_SHARED_H
#define THROTTLESCOPE_SHARED_H

#define NAME_BYTES 16       /* TASK_COMM_LEN */
#define GROUP_NAME_BYTES 96 /* longest seen: "cri-containerd-<64 hex>.scope", 86 */
#define GROUP_DEPTH_MAX 16  /* levels walked upward; Kubernetes in a systemd slice in a VM agent has 8 */
#define CPUS_MAX 1024       /* a power of two: indices are masked with it */

/*
 * Durations: bin 0 is below 2^shift ns; bin 1 + 4*o + s starts at 2^(shift+o) * (1 + s/4). Four bins an octave keep a
 * quantile within 12 % before interpolation, at 144 bytes a thread.
 */
#define STALL_SHIFT 14 /* 16 us: below it lies only the clock's own noise */
#define STALL_BINS 72  /* up to 2^32 ns, 4.3 s */
#define BURST_SHIFT 10
#define BURST_BINS 104 /* up to 2^36 ns, 68 s */
/* Runnable threads: 0..31 exactly, then 8 bins an octave. */
#define LEVEL_BINS 64

#define QUEUE_RING                                                                                          \
        8 /* finished stalls remembered per run queue: a waiting thread sees at most so many one by one */
#define CONTAINER_PAD 3 /* container_rec, with 56 bytes of the hash map before it, is whole cache lines */
#define LEDGER_WORDS 16 /* 1024 periods: which of them ended throttled */

enum thread_state { THREAD_RUN = 1, THREAD_WAIT, THREAD_SLEEP, THREAD_ENDED };
enum measure_scope { MEASURE_NODE, MEASURE_TARGET, MEASURE_SIBLINGS };
enum clock_source { CLOCK_SOURCE_HOOKS, CLOCK_SOURCE_SELF, CLOCK_SOURCE_PELT };

/* The same list, in this order, names `lost.*` in agent/probe/snapshot.h; the user side asserts it. */
enum lost_index {
        LOST_AT_THREADS_FULL,
        LOST_AT_CONTAINERS_FULL,
        LOST_AT_QUEUES_FULL,
        LOST_AT_STALLS_FULL,
        LOST_AT_SWITCHES,
        LOST_AT_MOVES,
        LOST_AT_UNTHROTTLES,
        LOST_AT_LEDGER,
        LOST_AT_COUNT,
};

/* The throttled clock T of a run queue at some moment: T = base + running. */
struct queue_clock {
        __u64 raw; /* its source's own mark of the running throttle, 0: it does not run */
        __u64 base;
        __u64 running; /* for so long, ns */
};

struct thread_rec {
        __u64 task;      /* address of the task_struct: with start_ns it tells a reused tid apart */
        __u64 start_ns;  /* boot clock */
        __u64 group;     /* address of its task_group when last seen */
        __u64 container; /* cgroup id of its container's group */
        __u64 limit;     /* address of the task_group whose periods its ledger follows, 0: none */
        __u64 first_ns;
        __u64 since_ns;           /* the open interval began then */
        __u64 queue;              /* while it waits: address of its cfs_rq ... */
        __u64 clock_open;         /* ... and that queue's throttled clock when the interval began */
        struct queue_clock clock; /* as last read */
        __u64 sleep_mark;         /* while it sleeps: its container's stall clock then */
        __u64 exec_mark;          /* sum_exec_runtime when last accounted */
        __u64 exec_ns;
        __u64 run_ns;
        __u64 wait_ns;
        __u64 stall_ns;
        __u64 above_ns; /* part of stall_ns: only groups above the container were throttled */
        __u64 sleep_ns;
        __u64 sleep_in_stall_ns;
        __u64 quota_spent_ns;
        __u64 period;         /* nr_periods of the limit's group when last accounted */
        __u64 period_exec_ns; /* used in that period, not known yet whether it ends throttled */
        __u64 stalls;
        __u64 switches;
        __u64 longest_ns;   /* longest stall of the window */
        __u64 book_from_ns; /* while a stall is booked: see thread_book() */
        __u64 book_to_ns;
        __u64 book_left_ns;
        __u32 window;
        __u32 generation; /* of the group tree when container and limit were resolved */
        __u32 sequence;   /* odd while being written */
        __u32 state;
        __u32 tid; /* init PID namespace: the key */
        __u32 tgid;
        __u32 host_tid; /* in the agent's PID namespace, 0: not visible there */
        __u32 host_tgid;
        __u32 ns_tid; /* in its own innermost PID namespace */
        __u32 ns_tgid;
        __u32 above_levels; /* levels from its own group to its container's, both counted: deeper throttles are above */
        __u32 realtime;
        char name[NAME_BYTES];
        char process[NAME_BYTES];
        __u16 bins[STALL_BINS];
};

struct ended_key {
        __u64 start_ns;
        __u32 tid;
        __u32 pad;
};

/* Ended threads of one process, summed: when very many end in one window, or when their record was needed. */
struct fold_key {
        __u64 container;
        __u32 tgid;
        __u32 pad;
};
struct fold_rec {
        __u64 threads;
        __u64 first_ns;
        __u64 last_ns;
        __u64 wall_ns;
        __u64 run_ns;
        __u64 wait_ns;
        __u64 stall_ns;
        __u64 above_ns;
        __u64 sleep_ns;
        __u64 sleep_in_stall_ns;
        __u64 exec_ns;
        __u64 quota_spent_ns;
        __u64 period;
        __u64 period_exec_ns;
        __u64 limit;
        __u64 stalls;
        __u64 switches;
        __u64 longest_ns;
        __u64 start_ns;
        __u32 window;
        __u32 host_tgid;
        __u32 ns_tgid;
        __u32 pad;
        char process[NAME_BYTES];
        __u16 bins[STALL_BINS];
};

struct container_rec {
        /* A hash map's value begins 8 bytes before a cache line, behind its key, which each look-up reads: what is written at each switch
         * is kept from there to the next line, so that it is one line that CPUs hand to one another. */
        __u32 levels_window; /* its levels were given out in this window */
        __u32 burst_partial; /* the open burst began before we looked */
        /* the line that each switch touches */
        __s64 runnable; /* threads that run, wait or are stalled now */
        __u64 level_since_ns;
        __u64 exec_ns;
        __u64 burst_start_ns; /* 0: nothing to run */
        __u64 stall_open;     /* run queues with stalled threads now */
        __u64 stall_since_ns;
        __u64 stall_total_ns; /* the stall clock: how long any queue was, without the open part */
        __u32 window;
        __u32 runnable_max; /* of the window */
        /* the next ones */
        __u64 own_stall_ns; /* when a stall by a limit of the container itself last began */
        __u64 burst_end_ns; /* of the last burst */
        __u64 burst_exec_mark;
        __u64 burst_stall_mark;
        __u64 bursts;
        __u64 bursts_stalled; /* bursts whose stalls summed to warn_stall_ns or more */
        __u64 threads_ended;
        /* of the window */
        __u64 burst_cpu_max_ns;
        __u64 burst_longest_ns;
        __u64 worst_ns;       /* the burst that its stalls stretched most: its length, */
        __u64 worst_stall_ns; /* the stalls in it, */
        __u64 worst_start_ns; /* and when it began */
        __u32 ended_window;   /* threads that ended in the window and were kept one by one */
        __u32 pad;
        __u64 level_ns[LEVEL_BINS];
        __u32 burst_cpu_bins[BURST_BINS];
        __u32 burst_gap_bins[BURST_BINS];
        __u64 pad_to_line[CONTAINER_PAD];
};

/* A task group as the programs know it, keyed by its address; `id` tells a reused address apart. */
struct group_rec {
        __u64 id;
        __u64 container;
        __u64 limit; /* address of the tightest limited group at or above it, 0: none */
        __u32 above_levels;
        __u32 generation;
        /* the ledger, where this group is a limit: which of its last periods ended throttled */
        __u64 ledger_begun;
        __u64 periods_seen; /* how many have ended since, and how many of them throttled */
        __u64 throttled_seen;
        __u64 period;
        __u64 throttled;
        __u64 ledger[LEDGER_WORDS];
};

struct stall_span {
        __u64 start_ns;
        __u64 end_ns;
        __u64 above;
};

/* A cfs_rq: one group on one CPU. Keyed by its address. Written under its CPU's rq lock. */
struct queue_rec {
        __u64 group; /* address of the task_group, checked against reuse */
        __u64 group_id;
        __u64 container;
        __u64 total_ns;  /* own throttled clock, kept from the hooks: finished part */
        __u64 since_ns;  /* own clock running since, 0: not */
        __u64 open_ns;   /* a stall of its threads is open since, 0: none */
        __u64 open_raw;  /* the kernel clock's own start of that stall, tells two stalls apart */
        __u64 open_base; /* the throttled clock when it began */
        __u32 open_above;
        __u32 depth; /* hooks: levels up to the group that is throttled; 0: itself */
        __u32 ring_next;
        __u32 cpu;
        struct stall_span ring[QUEUE_RING];
};

/* Ring buffer: a stall of a run queue has ended. */
struct stall_event {
        __u64 container;
        __u64 start_ns;
        __u64 end_ns;
        __u64 above;
};

/* What the iterators write: records of these kinds one after another, each with this head. */
enum drain_kind { DRAIN_THREAD = 1, DRAIN_LEVEL, DRAIN_FOLD, DRAIN_CONTAINER, DRAIN_QUEUE };
struct drain_head {
        __u32 kind;
        __u32 bytes; /* of the whole record */
};
struct drain_thread {
        struct drain_head head;
        __u64 now_ns;
        __u64 clock_now;        /* its queue's throttled clock now, if it waits */
        __u64 clock_running;    /* that clock runs (its queue is throttled) */
        __u64 exec_now;         /* sum_exec_runtime now */
        __u64 stall_clock;      /* its container's stall clock now */
        __u64 quota_pending_ns; /* of period_exec_ns, what is known to belong to a throttled period */
        __u64 alive;            /* the task is still the one that was measured */
        struct thread_rec rec;
};
struct drain_level {
        struct drain_head head;
        __u64 container;
        __u64 id;
        __u64 quota_ns; /* all ones: no limit */
        __u64 period_ns;
        __u64 burst_ns; /* all ones: this kernel has none; so below */
        __u64 nr_periods;
        __u64 nr_throttled;
        __u64 throttled_ns;
        __u64 nr_bursts;
        __u64 burst_time_ns;
        __u64 periods_seen; /* of the ledger's own, since this limit was first looked at; all ones: it keeps none */
        __u64 throttled_seen;
        __u32 index; /* 0 is the container's own group */
        __u32 pad;
        char name[GROUP_NAME_BYTES];
};
struct drain_fold {
        struct drain_head head;
        __u64 quota_pending_ns;
        struct fold_key key;
        struct fold_rec rec;
};
struct drain_container {
        struct drain_head head;
        __u64 now_ns;
        __u64 id;
        struct container_rec rec;
};
struct drain_queue {
        struct drain_head head;
        __u64 now_ns;
        __u64 queue;
        struct queue_rec rec;
};

#endif
