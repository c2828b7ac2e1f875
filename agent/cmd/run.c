/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: the wrapper. The command comes first: it starts at the latest START_PATIENCE_NS after us, runs also where nothing can be
 * measured, and its exit status is ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/memory.h"
#include "child.h"
#include "command.h"
#include "monitor.h"

/* The command waits this long for the probe, so that its first moments are measured too; not a moment longer. */
#define START_PATIENCE_NS (250 * NS_PER_MS)

struct run {
        struct monitor monitor;
        struct loop *loop;
        struct child child;
        bool measures;
};

static int on_signal(const struct signalfd_siginfo *info, void *data) {
        struct run *run = data;

        if (info->ssi_signo == SIGCHLD)
                child_reap(&run->child);
        else
                child_forward(&run->child, info);
        if (run->child.ended)
                loop_stop(run->loop, 0);
        return 0;
}

static int on_tick(uint64_t missed, void *data) {
        struct run *run = data;

        if (run->measures && monitor_tick(&run->monitor, clock_now(), missed) < 0)
                run->measures = false;
        return 0;
}

static int listen_to_all(struct run *run) {
        sigset_t set;
        int r = loop_new(&run->loop);

        if (r < 0)
                return r;
        child_signals(&set);
        return loop_add_signals(run->loop, &set, on_signal, run);
}

/* Where reports go. A log that cannot be opened must not keep the command from running. */
static int open_log(const char *path) {
        int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644)
                      : -1;

        if (path && fd < 0)
                (void) log_warning(-errno, "%s: %s; reports go to standard error", path, strerror(errno));
        return fd;
}

static int begin(struct run *run, const struct options *options, int fd, struct why *why) {
        struct session *session = &run->monitor.session;
        uint64_t interval_ns = options->interval_ns;
        int r = session_init(session, options, fd, SINK_QUEUE_MAX);

        if (r < 0)
                return why_set(why, r, "%s", strerror(-r));
        session->fallback = TARGET_SELF;
        r = session_open(session, why);
        if (r >= 0)
                r = monitor_start(&run->monitor, 0, why);
        if (r < 0)
                return r;
        r = session_set_loop(session, run->loop);
        if (r >= 0)
                r = loop_add_timer(run->loop, run->monitor.last.mono_ns + interval_ns, interval_ns, on_tick,
                                   run);
        return r < 0 ? why_set(why, r, "the event loop: %s", strerror(-r)) : 0;
}

/* Without a loop there are no figures and no signals any more, but the command is still waited for. */
static void wait_without_loop(struct run *run) {
        while (!run->child.ended) {
                (void) poll(NULL, 0, 100);
                child_reap(&run->child);
        }
}

static int run_command(struct run *run, const struct options *options, char **command, int fd) {
        struct why why = {0};
        int r = child_new(command, loop_original_mask(run->loop), START_PATIENCE_NS, &run->child);

        if (r < 0)
                return log_error(r, "%s cannot be started: %s", command[0], strerror(-r));
        run->measures = begin(run, options, fd, &why) >= 0;
        if (!run->measures && sink_is_ready(STDERR_FILENO))
                (void) log_warning(-EPERM, "%s runs without being measured: %s", command[0], why.text);
        child_start(&run->child);
        r = loop_run(run->loop);
        if (r < 0) {
                run->measures = false;
                (void) log_warning(r, "the event loop failed, %s goes on without being measured: %s",
                                   command[0], strerror(-r));
                wait_without_loop(run);
        }
        if (run->child.exec_error)
                (void) log_error(-run->child.exec_error, "%s: %s", command[0],
                                 strerror(run->child.exec_error));
        else if (run->measures)
                monitor_finish(&run->monitor, clock_now());
        return 0;
}

static int run_run(const struct options *options, char **arguments) {
        struct run run = {.child = {.start_fd = -1, .error_fd = -1}};
        cleanup_fd int log_fd = -1;
        int status = EXIT_FAILED, r;

        if (!arguments[0]) {
                (void) log_error(-EINVAL, "run needs a command: throttlescope run [OPTION...] -- COMMAND "
                                          "[ARGUMENT...]");
                return EXIT_USAGE;
        }
        log_fd = open_log(options->log);
        r = listen_to_all(&run);
        if (r < 0)
                (void) log_error(r, "cannot start: %s", strerror(-r));
        else if (run_command(&run, options, arguments, log_fd >= 0 ? log_fd : STDERR_FILENO) >= 0)
                status = child_exit_status(&run.child);
        child_release(&run.child);
        monitor_release(&run.monitor);
        child_ignore_signals();
        loop_free(run.loop);
        return status;
}

const struct command command_run = {
                .name = "run",
                .arguments = "[OPTION...] [--] COMMAND [ARGUMENT...]",
                .summary = "starts COMMAND, watches its container, exits with its status",
                .description = "COMMAND keeps the terminal, its standard output and error, its signal mask "
                               "and its process group. Signals are passed on to it. Reports go to standard "
                               "error: each --interval in which something was lost, and one line at the "
                               "end. COMMAND starts at most 250 ms after the wrapper, whether measuring has "
                               "begun or not, and runs also where nothing can be measured.",
                .statuses = "  n    COMMAND's own; 128 + n: signal n ended it\n"
                            "  1    COMMAND could not be started\n"
                            "  2    wrong usage\n"
                            "  126  COMMAND cannot be executed\n"
                            "  127  COMMAND was not found\n",
                .set = COMMAND_RUN,
                .takes_arguments = true,
                .run = run_run,
};
