/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/memory.h"
#include "command.h"

/* What the forked process needs to become the command. */
struct plan {
        char *const *command;
        const sigset_t *mask;
        struct sigaction on_child; /* as we found it */
        int start_fd, error_fd;
        uint64_t patience_ns;
};

/* The part of the forked process: waits until we are ready, becomes the command, or says why it cannot. */
static _Noreturn void become(const struct plan *plan) {
        struct pollfd start = {.fd = plan->start_fd, .events = POLLIN};
        char *const *command = plan->command;
        int error_fd = plan->error_fd, error;

        /* Readable when our end is closed, also by our death. Signals are still blocked, so nothing cuts this short. */
        (void) poll(&start, 1, (int) (plan->patience_ns / NS_PER_MS));
        (void) sigaction(SIGCHLD, &plan->on_child, NULL);
        (void) sigprocmask(SIG_SETMASK, plan->mask, NULL);
        (void) execvp(command[0], command);
        error = errno;
        /* A pipe takes four bytes; if the reader is gone there is nobody to tell. */
        if (write(error_fd, &error, sizeof(error)) < 0)
                error = errno;
        _exit(EXIT_NOT_EXECUTABLE);
}

static bool has_controlling_tty(void) {
        cleanup_fd int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

        return fd >= 0;
}

int child_new(char *const *command, const sigset_t *mask, uint64_t patience_ns, struct child *ret_child) {
        cleanup_fd int start_read = -1, start_write = -1, error_read = -1, error_write = -1;
        struct sigaction on_child = {.sa_handler = SIG_DFL};
        struct plan plan = {.command = command, .mask = mask, .patience_ns = patience_ns};
        int start[2], error[2];
        pid_t pid;

        if (pipe2(start, O_CLOEXEC) < 0)
                return -errno;
        start_read = start[0];
        start_write = start[1];
        if (pipe2(error, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        error_read = error[0];
        error_write = error[1];
        plan.start_fd = start_read;
        plan.error_fd = error_write;
        /* Who started us may have it ignored, which lets children vanish unseen. */
        if (sigaction(SIGCHLD, &on_child, &plan.on_child) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                /* Else its own copy would keep the pipe from ever ending. */
                close(start_write);
                become(&plan);
        }
        *ret_child = (struct child){
                        .pid = pid,
                        .start_fd = take_fd(start_write),
                        .error_fd = take_fd(error_read),
                        .has_tty = has_controlling_tty(),
        };
        return 0;
}

void child_start(struct child *child) {
        if (child->start_fd >= 0)
                close(child->start_fd);
        child->start_fd = -1;
}

void child_release(struct child *child) {
        child_start(child);
        if (child->error_fd >= 0)
                close(child->error_fd);
        child->error_fd = -1;
}

void child_signals(sigset_t *ret_set) {
        sigfillset(ret_set);
        sigdelset(ret_set, SIGKILL);
        sigdelset(ret_set, SIGSTOP);
}

void child_ignore_signals(void) {
        for (int number = 1; number <= SIGRTMAX; number++)
                if (number != SIGKILL && number != SIGSTOP)
                        (void) signal(number, SIG_IGN);
}

/*
 * Ctrl-C, a window's new size and the like go from the kernel to every process of the foreground group: the command has them if it is
 * still in ours. A hangup goes to the session's leader alone.
 */
static bool command_has_it(const struct child *child, const struct signalfd_siginfo *info) {
        bool same_group = getpgid(child->pid) == getpgrp();

        if (!same_group)
                return false;
        if (info->ssi_code == SI_KERNEL)
                return info->ssi_signo != SIGHUP || getsid(0) != getpid();
        /* The command signals its whole group, of which we are: kill(0, SIGTERM) to its workers is not meant to come back. */
        return info->ssi_code <= 0 && info->ssi_pid == (uint32_t) child->pid;
}

void child_forward(const struct child *child, const struct signalfd_siginfo *info) {
        int number = (int) info->ssi_signo;

        /* Our own: SIGPIPE for a closed output, SIGXFSZ for a full log. */
        if (child->ended || (info->ssi_code == SI_USER && info->ssi_pid == (uint32_t) getpid()) ||
            command_has_it(child, info))
                return;
        /* What is queued with a value (real-time signals mostly) keeps it. An error means that it has just ended. */
        if (info->ssi_code == SI_QUEUE)
                (void) sigqueue(child->pid, number,
                                (union sigval){.sival_ptr = (void *) (uintptr_t) info->ssi_ptr});
        else
                (void) kill(child->pid, number);
}

static void read_exec_error(struct child *child) {
        int error;

        if (child->error_fd >= 0 && read(child->error_fd, &error, sizeof(error)) == sizeof(error))
                child->exec_error = error;
}

/*
 * Whoever started us (a shell) waits for us, so it must see us stop. SIGSTOP for the command alone, without a terminal, is somebody's
 * debugging: if we stopped as well, nothing would wake us when it goes on.
 */
static void stop_too(const struct child *child, int number) {
        if (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU || child->has_tty)
                (void) raise(SIGSTOP);
}

void child_reap(struct child *child) {
        for (;;) {
                int status;
                pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);

                if (pid < 0 && errno == EINTR)
                        continue;
                if (pid <= 0)
                        return;
                if (pid != child->pid)
                        continue;
                if (WIFSTOPPED(status)) {
                        stop_too(child, WSTOPSIG(status));
                        continue;
                }
                child->wait_status = status;
                child->ended = true;
                read_exec_error(child);
        }
}

int child_exit_status(const struct child *child) {
        if (child->exec_error)
                return child->exec_error == ENOENT || child->exec_error == ENOTDIR ? EXIT_NOT_FOUND
                                                                                   : EXIT_NOT_EXECUTABLE;
        if (WIFSIGNALED(child->wait_status))
                return EXIT_SIGNAL_BASE + WTERMSIG(child->wait_status);
        return WEXITSTATUS(child->wait_status);
}
