/* SPDX-License-Identifier: Apache-2.0 */
/* check: one measured look, worst container first. A captured folder is shown at once, window by window. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "command.h"
#include "session.h"
#include "stop.h"

/* All reports of a node at once: 500 containers of 16 KiB. */
#define CHECK_QUEUE_MAX ((size_t) 12 << 20)
/* A pager may sit on its first page for a while; after an interrupt nobody is there to turn it. */
#define PATIENCE_NS (30 * NS_PER_S)
#define PATIENCE_STOPPED_NS (NS_PER_S)
#define TOTAL_STOPPED_NS (2 * NS_PER_S)
/* How soon it is seen that the target is gone. */
#define ALIVE_INTERVAL_NS (200 * NS_PER_MS)
#define EXTEND_INTERVAL_NS (NS_PER_S)

struct check {
        struct session session;
        struct loop *loop;
        bool interrupted, vanished;
        bool extends; /* the window is read again and again, so that something is left when the target goes */
        size_t containers, measured, warnings; /* of all windows */
};

static int on_signal(const struct signalfd_siginfo *info, void *data) {
        struct check *check = data;

        (void) info;
        check->interrupted = true;
        loop_stop(check->loop, 0);
        return 0;
}

static int on_end(uint64_t missed, void *data) {
        struct check *check = data;

        (void) missed;
        loop_stop(check->loop, 0);
        return 0;
}

static int on_alive(uint64_t missed, void *data) {
        struct check *check = data;

        (void) missed;
        if (probe_target_alive(check->session.probe))
                return 0;
        check->vanished = true;
        loop_stop(check->loop, 0);
        return 0;
}

static int on_extend(uint64_t missed, void *data) {
        struct check *check = data;

        (void) missed;
        /* What went wrong comes up again at the end, where it is told. */
        (void) session_extend(&check->session, clock_now(), NULL);
        return 0;
}

/* "12 containers, 10 fine": the line that stands for those that have no report of their own. */
static void say_rest(struct check *check, const struct window *window) {
        struct text line;
        size_t unmeasured = window->count - window->measured;

        text_init(&line, 256);
        text_add(&line, "%zu container%s, %zu fine", window->count, window->count == 1 ? "" : "s",
                 window->measured - window->lossy);
        if (unmeasured > 0)
                text_add(&line, ", %zu not measured", unmeasured);
        text_add(&line, "\n");
        (void) sink_write(check->session.sink, text_string(&line), line.length);
        text_release(&line);
}

static int report_window(struct check *check) {
        struct session *session = &check->session;
        struct window cleanup_window window = {0};
        bool brief = probe_target(session->probe)->scope == TARGET_NODE &&
                     session->options->output == FORM_TEXT;
        int r = session_judge(session, &window);

        if (r < 0)
                return log_error(r, "the window cannot be judged: %s", strerror(-r));
        window_sort(&window);
        for (size_t i = 0; i < window.count; i++) {
                const struct window_row *row = window.rows[i];

                if (!brief || window_row_is_lossy(&row->facts, &row->judgement, session->options))
                        session_report(session, row);
        }
        if (brief)
                say_rest(check, &window);
        check->containers += window.count;
        check->measured += window.measured;
        check->warnings += window.warnings;
        return 0;
}

static int replay(struct check *check) {
        struct why why = {0};
        int r;

        while ((r = session_read(&check->session, clock_now(), &why)) >= 0) {
                r = report_window(check);
                if (r < 0)
                        return r;
        }
        return r == -ENODATA ? 0 : log_error(r, "%s", why.text);
}

static void say_progress(const struct check *check) {
        const struct session *session = &check->session;
        char length[NUMBER_TEXT_MAX];

        if (isatty(STDERR_FILENO))
                log_notice("measuring %zu container%s for %s by %s", session->current->containers_count,
                           session->current->containers_count == 1 ? "" : "s",
                           number_format_duration(length, session->options->for_ns),
                           probe_method_name(probe_method(session->probe)));
}

static int wait_for_end(struct check *check, struct instant started) {
        struct session *session = &check->session;
        enum target_scope scope = session->target.scope;
        /* Looking would be captured too, in the folder of the first tick. */
        bool can_vanish = (scope == TARGET_PID || scope == TARGET_CGROUP) && !session->options->capture;
        int r = session_set_loop(session, check->loop);

        if (r >= 0)
                r = loop_add_timer(check->loop, started.mono_ns + session->options->for_ns, 0, on_end,
                                   check);
        if (r >= 0 && can_vanish)
                r = loop_add_timer(check->loop, started.mono_ns, ALIVE_INTERVAL_NS, on_alive, check);
        if (r >= 0 && check->extends)
                r = loop_add_timer(check->loop, started.mono_ns + EXTEND_INTERVAL_NS, EXTEND_INTERVAL_NS,
                                   on_extend, check);
        if (r >= 0)
                r = loop_run(check->loop);
        return r < 0 ? log_error(r, "the event loop failed: %s", strerror(-r)) : 0;
}

/* The end of the window. Returns an exit status, as far as measuring goes. */
static int finish(struct check *check, struct instant started) {
        struct session *session = &check->session;
        char length[NUMBER_TEXT_MAX], covered[NUMBER_TEXT_MAX];
        struct instant ended = clock_now();
        struct why why = {0};
        int r = check->extends ? session_extend(session, ended, &why) : session_read(session, ended, &why);

        number_format_duration(length, ended.mono_ns - started.mono_ns);
        check->vanished |= r == -ENOENT;
        if (r < 0 && (r != -ENOENT || !session->previous)) {
                (void) log_error(r, "after %s: %s", length, why.text);
                return r == -ENOENT ? EXIT_CANNOT_MEASURE : EXIT_FAILED;
        }
        if (report_window(check) < 0)
                return EXIT_FAILED;
        if (check->vanished)
                session_notice(session, ended, "warning",
                               "the target was gone after %s: the report is about the %s before", length,
                               number_format_duration(covered,
                                                      session->current->at.mono_ns - started.mono_ns));
        return EXIT_OK;
}

static int measure(struct check *check) {
        struct session *session = &check->session;
        struct instant started = {0};
        struct why why = {0};
        int r = session_open(session, &why);

        if (r >= 0) {
                started = clock_now();
                r = session_read(session, started, &why);
        }
        if (r < 0) {
                session_say_unmeasurable(session, &why);
                return EXIT_CANNOT_MEASURE;
        }
        if (session_is_replay(session))
                return replay(check) < 0 ? EXIT_FAILED : EXIT_OK;
        say_progress(check);
        /* With --capture each reading is saved, and what is saved has to give this report again. */
        check->extends = probe_method(session->probe) == PROBE_FILES && !session->options->capture;
        return wait_for_end(check, started) < 0 ? EXIT_FAILED : finish(check, started);
}

/* Measuring is over: what is queued goes out, and the first signal from now on cuts that short. */
static bool deliver(struct check *check) {
        struct session *session = &check->session;
        cleanup_fd int cancel_fd = stop_fd();
        uint64_t lost;

        sink_set_loop(session->sink, NULL);
        if (check->interrupted)
                (void) sink_flush(session->sink, PATIENCE_STOPPED_NS, TOTAL_STOPPED_NS, cancel_fd);
        else
                (void) sink_flush(session->sink, PATIENCE_NS, UINT64_MAX, cancel_fd);
        lost = sink_lost(session->sink);
        if (lost == 0)
                return true;
        (void) log_error(-EIO, "standard output is %s: %" PRIu64 " report%s lost",
                         sink_is_closed(session->sink) ? "closed" : "too slow", lost, lost == 1 ? "" : "s");
        return false;
}

static int status_of(const struct check *check) {
        const struct options *options = check->session.options;

        if (check->containers == 0)
                return log_error(EXIT_CANNOT_MEASURE,
                                 "no container was found: name one with --pid or --cgroup");
        if (check->measured == 0)
                return EXIT_CANNOT_MEASURE;
        return check->warnings > 0 && is_known(options->exit_code) ? (int) options->exit_code : EXIT_OK;
}

static int run_check(const struct options *options, char **arguments) {
        struct check check = {0};
        int status = EXIT_FAILED, r;

        (void) arguments;
        r = session_init(&check.session, options, STDOUT_FILENO, CHECK_QUEUE_MAX);
        check.session.looks_at_all = true;
        if (r >= 0)
                r = stop_listen(&check.loop, on_signal, &check);
        if (r < 0)
                (void) log_error(r, "cannot start: %s", strerror(-r));
        else {
                status = measure(&check);
                if (status == EXIT_OK)
                        status = status_of(&check);
                if (!deliver(&check))
                        status = EXIT_FAILED;
        }
        session_release(&check.session);
        stop_ignore();
        loop_free(check.loop);
        return status;
}

const struct command command_check = {
                .name = "check",
                .arguments = "[OPTION...]",
                .summary = "one measured look, a full report on standard output",
                .description = "Measures for the time of --for and reports each container, the worst first. "
                               "With --scope node, the text form shows only containers that lost something, "
                               "and counts the others. SIGINT or SIGTERM ends it early, with the report of "
                               "the time so far. --root DIR with a folder made by --capture shows the same "
                               "report again, without waiting.",
                .statuses = COMMAND_STATUSES "  N    with --exit-code N: a container has a warning\n",
                .set = COMMAND_CHECK,
                .run = run_check,
};
