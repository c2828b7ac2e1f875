/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command that run starts: everything a wrapper owes it and those outside. It keeps the terminal, the process group, the signal
 * mask and all descriptors; signals reach it once; its stops, its end and its orphans are ours to handle.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

struct child {
        pid_t pid;
        int start_fd;   /* closing it lets the command go, -1: it is going */
        int error_fd;   /* carries the errno of a failed exec, -1: read */
        bool has_tty;   /* there is a controlling terminal: job control means us as well */
        int exec_error; /* errno why it could not be executed, 0: none known */
        int wait_status;
        bool ended;
};

/*
 * Forks the process of @command. It waits for child_start(), but never longer than @patience_ns: whatever is set up meanwhile must not
 * hold it up. @mask: the signal mask it gets. 0 or negative errno.
 */
int child_new(char *const *command, const sigset_t *mask, uint64_t patience_ns, struct child *ret_child);
void child_start(struct child *child);
void child_release(struct child *child); /* descriptors only */

/* All signals that can be caught. */
void child_signals(sigset_t *ret_set);
/* After the command's end: a signal while the process ends must not change its exit status. */
void child_ignore_signals(void);
/* A signal other than SIGCHLD that came to us: passes it on, unless the kernel or the sender has given it to both already. */
void child_forward(const struct child *child, const struct signalfd_siginfo *info);
/* SIGCHLD: reaps whoever has ended (as PID 1 also orphans), stops with a child that was stopped. */
void child_reap(struct child *child);
/* After the end: 128 + n for a signal, 126 and 127 if the command could not be executed. */
int child_exit_status(const struct child *child);
