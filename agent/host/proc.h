/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Readers of /proc: processes, their threads and the machine. Foreign text is kept raw here and escaped on output. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/absent.h"
#include "../base/memory.h"
#include "root.h"

#define PROC_NAME_MAX 16 /* TASK_COMM_LEN, with the NUL */
#define PROC_NS_DEPTH_MAX 8

struct proc_thread {
        pid_t tid;           /* in the reader's PID namespace */
        pid_t container_tid; /* last number of NSpid; 0: not read (see proc_container_tid()) */
        char name[PROC_NAME_MAX];
        uint64_t run_ns, runqueue_delay_ns, timeslices; /* schedstat; ABSENT without CONFIG_SCHED_INFO */
        uint64_t start_ticks; /* /proc/PID/stat field 22: tells a reused tid apart */
        char state;           /* 'R', 'S', … or 0 */
};
/* All threads of @pid, sorted by tid. A thread that ends while reading is skipped. At most @max (ret_cut then). -ENOENT: process gone.
 * container_tid is not read. */
int proc_threads(struct root *root, pid_t pid, size_t max, struct arena *arena,
                 struct proc_thread **ret_threads, size_t *ret_count, bool *ret_cut);
/*
 * The same at half the cost: of a thread that is in @previous (an earlier result for this process) with counters not above those of now,
 * only schedstat is read; name, start and container_tid are taken over, state is 0.
 */
int proc_threads_again(struct root *root, pid_t pid, const struct proc_thread *previous,
                       size_t previous_count, size_t max, struct arena *arena,
                       struct proc_thread **ret_threads, size_t *ret_count, bool *ret_cut);
/* Number of thread @tid of @pid in its innermost PID namespace; 0: gone. As dear as all else about a thread, and not needed where
 * proc_process.pid_depth is 1: there it is @tid. */
pid_t proc_container_tid(struct root *root, pid_t pid, pid_t tid);

struct proc_process {
        pid_t pid, parent;
        pid_t container_pid; /* innermost PID namespace's number; equals pid where there is one namespace */
        unsigned pid_depth;  /* how many numbers NSpid had */
        char name[PROC_NAME_MAX]; /* comm of the main thread */
        const char *command;      /* argv joined by blanks, first 256 bytes, raw; "" for kernel threads */
        uint32_t uid, threads;    /* uid: the effective one */
        uint64_t start_ticks;
};
int proc_process(struct root *root, pid_t pid, struct arena *arena, struct proc_process *ret_process);
/* All pids visible, sorted. Returns 0, 1 if there are more than @max, or negative errno. */
int proc_pids(struct root *root, size_t max, struct arena *arena, pid_t **ret_pids, size_t *ret_count);

struct proc_machine {
        unsigned cpus_online;  /* 0: unknown */
        uint64_t steal_ns;     /* /proc/stat, all CPUs; ABSENT if the line has none */
        uint64_t boot_real_ns; /* btime; ABSENT if not readable */
        char kernel[128];      /* /proc/sys/kernel/osrelease */
        char hostname[128];    /* /proc/sys/kernel/hostname */
};
int proc_machine(struct root *root, struct proc_machine *ret_machine);

/* Status facts for doctor: Cap*, Seccomp, NoNewPrivs, NSpid depth of @pid (0: ourselves). */
struct proc_rights {
        uint64_t effective, permitted, bounding;
        unsigned seccomp; /* 0 off, 1 strict, 2 filter */
        bool no_new_privs;
        unsigned pid_depth;
        uint64_t pid_namespace; /* inode of ns/pid; ABSENT if not readable */
        uint32_t uid;
};
int proc_rights(struct root *root, pid_t pid, struct proc_rights *ret_rights);
