/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parsers behind proc.h: pure functions over text that may hold anything, NUL bytes included. */
#include "proc.h"

/* "RUN DELAY SLICES": 0 or -EINVAL. */
struct proc_schedstat {
        uint64_t run_ns, runqueue_delay_ns, timeslices;
};
int proc_parse_schedstat(const char *text, size_t length, struct proc_schedstat *ret_schedstat);

struct proc_stat {
        char name[PROC_NAME_MAX]; /* raw: may hold blanks, parentheses, newlines; cut at 15 bytes */
        char state;
        pid_t parent;
        uint32_t threads;
        uint64_t start_ticks;
};
/* /proc/PID/stat and /proc/PID/task/TID/stat: 0 or -EINVAL. */
int proc_parse_stat(const char *text, size_t length, struct proc_stat *ret_stat);

/* What of /proc/PID/status is used. */
struct proc_status {
        uint32_t uid; /* effective */
        unsigned pid_depth;
        pid_t container_pid; /* last number of NSpid; 0: the line is missing (before 4.1) */
        uint64_t effective, permitted, bounding;
        unsigned seccomp;
        bool no_new_privs;
};
int proc_parse_status(const char *text, size_t length, struct proc_status *ret_status);

/* /proc/stat: steal (ABSENT if the line has no such column), btime (ABSENT if missing) and the number of "cpuN" lines. */
struct proc_machine_stat {
        uint64_t steal_ns, boot_real_ns;
        unsigned cpus;
};
void proc_parse_machine_stat(const char *text, size_t length, struct proc_machine_stat *ret_stat);
/* "0-3,7": how many; 0: malformed. */
unsigned proc_parse_cpu_list(const char *text, size_t length);
/* argv with its NULs made blanks, without trailing ones, into @out (at least 1 byte). */
void proc_join_command(const char *text, size_t length, char *out, size_t room);
/* "pid:[4026531836]"; ABSENT if it is not of that form. */
uint64_t proc_parse_namespace(const char *link);
