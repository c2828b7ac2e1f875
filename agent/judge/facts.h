/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Facts: what two snapshots of one container say about the window between them. Pure arithmetic, no opinion.
 * Field names follow the report contract (docs/report.md). ABSENT: not measured.
 */
#include "../probe/snapshot.h"
#include "../runtimes/runtime.h"

struct thread_facts {
        uint32_t pid, tid, host_pid, host_tid; /* 0: not known in that namespace */
        char process[PROC_NAME_MAX], name[PROC_NAME_MAX];
        uint64_t run_ns, wait_ns, stall_ns, stall_above_ns, sleep_ns, sleep_in_stall_ns;
        uint64_t stalls, stall_longest_ns, stall_p50_ns, stall_p99_ns;
        uint64_t quota_spent_ns, exec_ns, switches;
        uint64_t runqueue_delay_ns; /* files */
        uint64_t wall_ns;           /* how much of the window it was there for */
        uint32_t folded;            /* > 0: sum of so many ended threads of one process */
        bool ended;
};

/* One setting of one runtime (runtimes/), beside the limit that applies to it. */
struct parallelism_facts {
        const struct parallelism *row;
        uint64_t recommended; /* by the row's own rounding; ABSENT: no limit, or the limit does not decide it */
        uint64_t surplus;     /* in force beyond that; of those that block, at work beyond that */
        uint64_t surplus_memory_bytes; /* what the surplus processes hold */
        const char *how;               /* with the number in it; NULL without a recommendation */
        const char *process; /* name of the process, which all of a tree of workers have; NULL: it has no thread here */

        /* Its threads among the thread rows; 0 or ABSENT where none of them can be told to be its own. */
        uint64_t threads;                          /* that were there */
        uint64_t threads_busy;                     /* that worked as those of a pool do */
        uint64_t run_ns, stall_ns, quota_spent_ns; /* their sums */
};

enum limit_level { LIMIT_CONTAINER, LIMIT_POD, LIMIT_ANCESTOR, LIMIT_LEVEL_COUNT };

#define FACTS_STALLS_MAX 20

struct facts {
        uint64_t window_ns;
        struct instant from, to;
        enum probe_method method;
        bool exact, measured; /* measured: thread figures from the kernel, not only files */
        unsigned cpus_online;
        const char *kernel; /* its release; NULL: not known */
        uint64_t age_ns;    /* of the container, at the end of the window: at least this */

        bool has_limit, limit_unknown, parent_hidden;
        uint64_t limit_milli, quota_ns, period_ns, burst_ns; /* of the tightest level */
        enum limit_level limit_level;
        const char *limit_cgroup;
        const char *cgroup_v1_mount; /* where the cpu hierarchy of cgroup v1 is mounted, NULL: v2, or not known */
        uint64_t own_limit_milli; /* the container's own level, ABSENT: none */
        bool ancestor_is_tighter; /* the tightest limit above is tighter than what lies below it asks for */
        uint64_t weight;
        uint64_t request_milli,
                        declared_limit_milli; /* what its owner asked for; ABSENT: not declared to us */

        uint64_t cpu_used_ns;
        uint64_t periods, periods_throttled, periods_bursts, throttled_used_ns; /* of the tightest level */
        uint64_t runqueue_throttled_ns, ancestor_throttled_ns;

        uint64_t stall_count, stall_wall_ns, stall_longest_ns, stall_p50_ns, stall_p99_ns;
        struct stall_interval stalls[FACTS_STALLS_MAX]; /* the longest, longest first */
        size_t stalls_count;
        uint64_t stalls_long; /* stalls, or stalls within one burst, of --warn-stall or more */

        uint64_t quota_ns_lost, ancestor_ns_lost, contention_ns_lost, steal_ns_lost; /* causes.* */
        uint64_t machine_steal_ns;

        uint64_t wanted_milli, runnable_max, runnable_p99;
        /* Threads that ran at once, on average over the time in which any wanted to and none was stalled. */
        uint64_t unstalled_milli;

        uint64_t burst_count, burst_cpu_p50_ns, burst_cpu_p99_ns, burst_cpu_max_ns, burst_gap_p50_ns,
                        burst_longest_ns;
        uint64_t burst_slowdown_permille; /* 1000 = not slowed; ABSENT without bursts */
        uint64_t worst_burst_ns, worst_burst_stall_ns, worst_burst_at_ns;

        struct thread_facts *
                        threads; /* all of them, sorted by stall, then run (files: by runqueue_delay, then run) */
        size_t threads_count;
        uint64_t lost[LOST_REASON_COUNT]; /* in this window */
        const struct missing_item *missing;
        size_t missing_count;

        /* Filled by facts_add_parallelism(); NULL: nobody looked. */
        const struct parallelism_facts *parallelism;
        size_t parallelism_count;
        uint64_t parallelism_omitted; /* settings beyond PARALLELISM_MAX */
        unsigned affinity; /* CPUs that its recognised processes may use, the most of any; 0: not known */
};

struct facts_options {
        uint64_t warn_stall_ns;
};

/*
 * Facts of container @id over (previous, current). @previous NULL: since the probe saw it first. Arrays in @arena. 0; -ENOENT: the
 * container is in neither; -ENOMEM.
 */
int facts_of_window(const struct snapshot *previous, const struct snapshot *current, uint64_t id,
                    const struct facts_options *options, struct arena *arena, struct facts *ret_facts);

/*
 * Adds what the runtimes of the container said. @list stays in use as long as @facts; texts are made in @arena. NULL: they were not
 * looked at. 0 or -ENOMEM.
 */
int facts_add_parallelism(struct facts *facts, const struct parallelism_list *list, struct arena *arena);

/*
 * How long a request waits that comes when the quota of a period is used up: the first, second, … refill after it. Written to @ret_steps
 * in nanoseconds; returns how many, 0 if no stall is to be expected.
 */
#define FACTS_STEPS_MAX 3
size_t facts_latency_steps(const struct facts *facts, uint64_t ret_steps[static FACTS_STEPS_MAX]);

/* Threads that work on CPU as a pool does, of any program. Sums over its processes. */
struct pool {
        uint64_t busy; /* threads that ran as those of a pool do */
        /* The group of threads of one process name and one name (but for its number) with most of them: */
        uint64_t group_threads, group_busy, group_run_ns;
        char process[PROC_NAME_MAX], name[PROC_NAME_MAX];
};
int facts_pool(const struct facts *facts, struct arena *arena, struct pool *ret_pool); /* 0 or -ENOMEM */
/* A thread that ran for longer than this in the window works as one of a pool. */
uint64_t facts_busy_threshold(const struct facts *facts);
bool facts_is_busy(const struct thread_facts *thread, uint64_t threshold_ns);
uint64_t facts_threads_in(const struct thread_facts *thread); /* a row of folded threads stands for many */
/* How programs come by such a number on a machine of @cpus: "two for each CPU". NULL: no rule that is known. */
const char *facts_resembles(uint64_t number, unsigned cpus);

/* The window began in the container's first minute: what programs do then they do once. */
bool facts_is_starting(const struct facts *facts);

/* Below one and a half threads at once it was one at a time: a program with one thread, or behind one lock. */
#define FACTS_SERIAL_MILLI 1500

/* What @row's own rule makes of so many CPUs; ABSENT if no limit decides it. */
uint64_t facts_parallelism_for(const struct facts *facts, const struct parallelism *row, uint64_t milli);
/* @thread is one of those that @row counts. */
bool facts_is_of_row(const struct thread_facts *thread, const struct parallelism_facts *row);

/* Value below which @permille of the distribution lies, interpolated in its bin and capped at @max_ns. ABSENT if empty. */
uint64_t facts_quantile_u32(const uint32_t *bins, size_t count, unsigned shift, unsigned permille,
                            uint64_t max_ns);
