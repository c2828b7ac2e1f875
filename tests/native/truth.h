/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The truth tests: a workload that times itself (tests/workloads) runs inside one window of the probe, and each figure that we attribute
 * is compared with an independent one: the thread's own clocks, its schedstat, the kernel's counters of its group.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "../../agent/judge/judge.h"
#include "../../agent/probe/probe.h"

#define TRUTH_THREADS_MAX 256
#define TRUTH_GROUPS_MAX 16
#define THREADS_FEW 20
#define STEAL_LEAST_NS 50000000 /* a CPU: /proc/stat tells it in ticks of 10 ms */

struct truth_thread {
        char name[32], role[16];
        uint32_t tid, pid, inner_tid, inner_pid;
        uint64_t group_id;
        uint64_t wall_ns, cpu_ns, exec_ns, run_delay_ns, switches, gap_ns, gap_max_ns, sleep_ns, tail_ns;
        uint64_t children_exec_ns, children_run_delay_ns,
                        children; /* processes or threads that it started and saw end */
};
struct truth_group {
        char cgroup[256];
        uint64_t id, quota_ns, period_ns, nr_periods, nr_throttled, throttled_ns, local_ns, usage_ns;
};
struct truth {
        struct truth_thread threads[TRUTH_THREADS_MAX];
        size_t threads_count;
        struct truth_group groups[TRUTH_GROUPS_MAX];
        size_t groups_count;
        uint64_t processes_cpu_ns; /* all processes of the workload, their ended threads included */
        uint64_t steal_ns; /* of the machine within the run; and its interrupts, which are in run but not in sum_exec_runtime */
        uint64_t irq_ns;
        uint64_t delay_ns; /* run_delay of all threads of the machine; ABSENT: the kernel does not say */
        unsigned cpus;
};

/* The workload's process; it waits at each step for our word. */
struct workload {
        pid_t pid;
        FILE *from, *to;
        char unsupported[256];
};
/* 0 and ready; 1: it says that this machine cannot (unsupported[]); negative errno. */
int workload_start(struct workload *workload, const char *program, const char *arguments,
                   struct truth *truth);
void workload_go(struct workload *workload, struct truth *truth);
/* True once it begins to print its figures; waits for that at most so long. */
bool workload_has_output(const struct workload *workload, int timeout_ms);
/* Reads its truth. 0, or -EPIPE: it ended before. */
int workload_finish(struct workload *workload, struct truth *truth);
/* Begins (SIGUSR1) or ends (SIGUSR2) the window of a workload that runs by itself. */
void workload_mark(const struct workload *workload, int signal_number);
void workload_end(struct workload *workload);

enum truth_check {
        CHECK_THREADS = 1 << 0, /* run, stall + wait, wall of each thread */
        CHECK_QUEUE = 1
                      << 1, /* one busy thread sits on each CPU: the stalls add up to the kernel's own counter */
        CHECK_SUMS = 1 << 2,     /* threads end: the sum of all used CPU time */
        CHECK_NO_STALL = 1 << 3, /* nothing is throttled, verdict contention */
        CHECK_RT = 1 << 4,       /* the fifo thread has no stall */
        CHECK_ABOVE = 1 << 5,    /* all stall is an ancestor's, verdict ancestor-quota */
        CHECK_OWN = 1 << 6,      /* no stall is an ancestor's, verdict quota */
        CHECK_LEDGER = 1 << 7,   /* nearly all CPU time was used in throttled periods */
        CHECK_SLEEP = 1 << 8,    /* sleepers behind a stalled holder: sleep_in_stall is there and bounded */
        CHECK_IDS = 1 << 9,      /* ids of inner PID namespaces */
        CHECK_LOSE = 1 << 10,    /* with every n-th switch overlooked */
        CHECK_LONGEST = 1 << 11, /* the longest stall against the longest gap of a pinned thread */
        CHECK_BURSTS = 1 << 12,  /* burst count and CPU against what was asked for */
        CHECK_READS = 1 << 13,   /* many reads while it runs: intervals open at each add up */
        CHECK_WOKEN = 1
                      << 14, /* its own clock cannot tell sleep from waiting after a wake-up: run_delay only */
        CHECK_WINDOW = 1 << 16, /* it runs before we attach: a window is cut out by signals */
        CHECK_LOCKED = 1 << 15, /* either of the two: see compare_delay() */
        CHECK_FULL = 1 << 17, /* the table holds THREADS_FEW: these are exact, the others counted as lost */
        CHECK_STEAL = 1
                      << 18, /* the CPUs are never idle: what was stolen of them is in run, not in CPU time */
};

struct truth_case {
        const char *name;
        const char *arguments; /* of the workload */
        unsigned group;        /* the target is this one of its groups */
        unsigned checks;
        unsigned loosen_permille; /* added to each tolerance: what kernel.md allows here */
        unsigned way;             /* FEW, OWN of truth.c */
};

/* One measured window and its truth. */
struct measured {
        const struct truth_case *test;
        enum probe_method method;
        bool exact, virtual_machine;
        const struct truth *truth;
        const struct snapshot *before, *after;
        const struct facts *facts;
        const struct judgement *judgement;
};

/* Writes what does not hold; empty: all of it holds. `errors` gets the measured errors for people. */
void truth_compare(const struct measured *measured, char *failure, size_t failure_room, char *errors,
                   size_t errors_room);
