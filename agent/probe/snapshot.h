/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One snapshot a tick: everything that was read, nothing judged. All counters are cumulative since the thread or
 * container was first seen, so that any two snapshots of one probe make a window. The arena owns all of it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "../base/absent.h"
#include "../base/clock.h"
#include "../base/memory.h"
#include "../host/cgroup.h"
#include "../host/proc.h"

enum probe_method { PROBE_HOOKS, PROBE_TRACEPOINTS, PROBE_FILES, PROBE_METHOD_COUNT };

/*
 * Distribution of durations: logarithmic, four bins an octave. Bin 0 is everything below 2^SHIFT ns; bin i > 0 starts
 * at 2^(SHIFT + (i-1)/4) * (1 + ((i-1)%4)/4). Filled in the kernel, so its layout is in bpf/shared.h; these are copies.
 */
#define SNAPSHOT_STALL_BINS 72
#define SNAPSHOT_BURST_BINS 104
#define SNAPSHOT_LEVEL_BINS 64 /* runnable threads: 0..31 exact, then 8 an octave */

struct thread_sample {
        uint32_t global_tid; /* key within the probe; the init PID namespace's number with BPF, the reader's with files */
        uint32_t host_pid, host_tid; /* in the agent's own PID namespace; 0: not visible there */
        uint32_t pid, tid;           /* in the container's PID namespace */
        char name[PROC_NAME_MAX], process[PROC_NAME_MAX];
        uint64_t start_ns;  /* boot clock at thread start: with global_tid it tells a reused id apart */
        uint64_t container; /* id of its container's group */
        bool ended;         /* ended since the previous snapshot: these are its final figures */
        uint32_t folded;    /* > 0: not a thread but the sum of so many ended threads of one process */
        bool realtime;      /* RT, deadline or stop class when last seen */

        uint64_t first_ns, at_ns; /* CLOCK_MONOTONIC: counted from .. up to; wall = at - first */
        uint64_t run_ns, wait_ns, stall_ns, sleep_ns; /* up to at_ns, open interval included */
        uint64_t stall_above_ns; /* part of stall_ns in which only groups above the container were throttled */
        uint64_t sleep_in_stall_ns;
        uint64_t exec_ns; /* sum_exec_runtime: what the quota is charged with */
        uint64_t quota_spent_ns;
        uint64_t stalls, switches; /* stalls: finished or open ones, counted when they end or at the tick */
        uint64_t stall_longest_ns; /* of this window */
        uint16_t stall_bins[SNAPSHOT_STALL_BINS];
        uint64_t runqueue_delay_ns; /* method files only */
};

struct stall_interval {
        uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
        bool above;                /* only groups above the container were throttled */
};

/* One level as the scheduler's own groups show it: also ancestors that a cgroup namespace hides. */
struct group_level {
        uint64_t id;
        char name[96];                          /* last component, raw; "" for the root */
        uint64_t quota_ns, period_ns, burst_ns; /* quota ABSENT: no limit */
        uint64_t nr_periods, nr_throttled, throttled_ns, nr_bursts, burst_time_ns;
        uint64_t periods_seen,
                        throttled_seen; /* of these, since the probe first looked at this limit; ABSENT: it did not */
};

struct container_sample {
        uint64_t id;               /* cgroup id of its group */
        const char *cgroup;        /* path if the cgroup tree is visible, else the group's name, else NULL */
        struct cgroup_chain chain; /* from files; levels_count 0 if not visible */
        struct group_level
                        *groups; /* from the scheduler; [0] = the container's own group; NULL with files */
        size_t groups_count;

        bool measured;       /* BPF figures below are valid */
        bool measured_whole; /* it was already tracked at the previous snapshot */
        struct stall_interval
                        *intervals; /* finished or open in this window, clipped to it, sorted, disjoint */
        size_t intervals_count;
        uint64_t runnable_now;
        uint64_t level_ns[SNAPSHOT_LEVEL_BINS]; /* time spent with so many runnable threads, cumulative */
        uint64_t runnable_max;                  /* of this window */
        uint64_t bursts, burst_cpu_max_ns, burst_longest_ns; /* count cumulative, maxima of this window */
        uint64_t bursts_stalled; /* bursts whose stalls summed to --warn-stall or more, cumulative */
        uint64_t worst_burst_ns, worst_burst_stall_ns, worst_burst_at_ns; /* of this window */
        uint32_t burst_cpu_bins[SNAPSHOT_BURST_BINS], burst_gap_bins[SNAPSHOT_BURST_BINS];
        uint64_t throttled_used_ns; /* quota spent by all its threads: CPU in periods that ended throttled */
        uint64_t exec_ns, run_ns, wait_ns, stall_ns, stall_above_ns; /* all threads, ended ones too */

        uint32_t first_thread, threads_count; /* its rows in snapshot.threads (sorted by container) */
        uint32_t first_pid; /* some live process in it, in the reader's namespace; 0: none seen */
};

/* X-macro: what can be dropped. Names are those of `lost.*` in the report. */
#define LOST_LIST(X)                                                                                        \
        X(THREADS_FULL, threads_full, "the table of threads was full")                                      \
        X(CONTAINERS_FULL, containers_full, "the table of containers was full")                             \
        X(QUEUES_FULL, queues_full, "the table of run queues was full")                                     \
        X(STALLS_FULL, stalls_full, "the ring of stall intervals was full")                                 \
        X(SWITCHES, switches, "a switch that the kernel did not show, repaired from sched_info")            \
        X(MOVES, moves, "a group move while waiting whose old run queue could not be read")                 \
        X(UNTHROTTLES, unthrottles, "an unthrottle that was not seen, noticed later")                       \
        X(LEDGER, ledger, "ns of CPU time whose period's end was not seen")                                 \
        X(TICKS, ticks, "ticks that were missed")                                                           \
        X(THREADS_READ, threads_read, "threads beyond the reading limit")                                   \
        X(OUTPUT, output, "reports that could not be written")

enum lost_reason {
#define X(upper, lower, text) LOST_##upper,
        LOST_LIST(X)
#undef X
                        LOST_REASON_COUNT,
};

struct missing_item {
        const char *what, *why, *remedy;
};

struct snapshot {
        struct arena *arena;
        struct instant at;
        enum probe_method method;
        bool exact;
        struct proc_machine machine;
        struct container_sample *containers;
        size_t containers_count;
        struct thread_sample *threads; /* sorted by container */
        size_t threads_count;
        uint64_t lost[LOST_REASON_COUNT]; /* cumulative */
        struct missing_item *missing;
        size_t missing_count;
};

void snapshot_free(struct snapshot *snapshot); /* NULL is fine */
