/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/number.h"
#include "../probe/assemble.h"

/* At the end the output gets this long after its last progress, and this long in all. */
#define PATIENCE_NS (NS_PER_S)
#define PATIENCE_TOTAL_NS (2 * NS_PER_S)
/* A shorter window at the end is not worth a report, only a place in the summary. */
#define LAST_REPORT_MIN_NS (100 * NS_PER_MS)

static void summarize(struct monitor *monitor, struct history_entry *entry, const struct snapshot *snapshot,
                      struct instant at) {
        const struct container_sample *sample = snapshot ? snapshot_container(snapshot, entry->id) : NULL;
        struct report_summary summary;

        if (!sample || entry->windows == 0)
                return;
        history_summarize(entry, at, &summary);
        session_summary(&monitor->session, sample, &summary);
}

static void summarize_all(struct monitor *monitor, struct instant at) {
        for (size_t i = 0; i < monitor->history.count; i++)
                summarize(monitor, &monitor->history.entries[i], monitor->session.current, at);
}

/* A container that ended has its summary at once: its name is still known. */
static void summarize_gone(struct monitor *monitor, struct instant at) {
        struct history_entry entry;

        while (history_take_gone(&monitor->history, &entry))
                summarize(monitor, &entry, monitor->session.previous, at);
}

static void speak(struct monitor *monitor, const struct window_row *row) {
        struct history_entry *entry = NULL;
        bool unmeasured = row->judgement.verdict == VERDICT_NOT_MEASURED;

        /* First seen at this very moment: its first window begins now. */
        if (row->facts.window_ns == 0)
                return;

        if (history_get(&monitor->history, row->sample->id, &entry) >= 0) {
                entry->seen = true;
                history_add(entry, &row->facts, window_row_is_lossless(&row->facts, &row->judgement));
        }
        if (monitor->brief)
                return;
        if (window_row_is_lossy(&row->facts, &row->judgement, monitor->session.options) ||
            (unmeasured && (!entry || !entry->told_unmeasured)))
                session_report(&monitor->session, row);
        if (entry)
                entry->told_unmeasured = unmeasured;
}

static int judge_window(struct monitor *monitor, struct instant at) {
        struct window cleanup_window window = {0};
        int r = session_judge(&monitor->session, &window);

        if (r < 0)
                return r;
        window_sort(&window);
        history_begin(&monitor->history);
        for (size_t i = 0; i < window.count; i++)
                speak(monitor, window.rows[i]);
        summarize_gone(monitor, at);
        return 0;
}

/* What the agent has to say about itself since the last tick. */
static void tell_changes(struct monitor *monitor, struct instant at) {
        struct session *session = &monitor->session;
        enum probe_method method = probe_method(session->probe);
        uint64_t lost = sink_lost(session->sink);

        if (method != monitor->method) {
                const struct probe_trial *trial = &probe_trials(session->probe)[monitor->method];

                session_notice(session, at, "warning", "the method is now %s, it was %s%s%s",
                               probe_method_name(method), probe_method_name(monitor->method),
                               trial->error ? ": " : "", trial->error ? trial->text : "");
                monitor->method = method;
        }
        if (sink_is_closed(session->sink) && !monitor->closed_told && sink_is_ready(STDERR_FILENO)) {
                monitor->closed_told = true;
                log_notice("the output is closed: going on, but reports are lost");
        }
        if (lost > monitor->output_told && !sink_is_closed(session->sink)) {
                session_notice(session, at, "warning", "%" PRIu64 " reports could not be written",
                               lost - monitor->output_told);
                monitor->output_told = sink_lost(session->sink);
        }
}

/* The target had gone. Opening a probe is not cheap: only when there is something to open it for. */
static int look_again(struct monitor *monitor, struct instant at, struct why *why) {
        struct session *session = &monitor->session;
        int r = session->probe ? session_read(session, at, why) : -ENOENT;

        if (r >= 0) {
                session_forget(session);
                return r;
        }
        if (session->probe && !probe_target_alive(session->probe))
                return r;
        r = session_reopen(session, why);
        return r < 0 ? r : session_read(session, at, why);
}

static int tell_failure(struct monitor *monitor, struct instant at, int r, const struct why *why) {
        if (r == -ENOENT && !monitor->gone) {
                monitor->gone = true;
                summarize_all(monitor, at);
                history_release(&monitor->history);
                session_notice(&monitor->session, at, "warning", "the target is gone%s",
                               monitor->target_is_final ? ": nothing is left to watch"
                                                        : "; waiting for it to come back");
        } else if (r != -ENOENT && !monitor->failing) {
                monitor->failing = true;
                session_notice(&monitor->session, at, "warning", "this window is lost, going on: %s",
                               why->text);
        }
        if (r == -ENOENT)
                return monitor->target_is_final ? r : 0;
        monitor->session.ticks_lost++;
        return 0;
}

int monitor_start(struct monitor *monitor, uint64_t summary_ns, struct why *why) {
        struct session *session = &monitor->session;
        struct instant at = clock_now();
        int r = session_read(session, at, why);

        if (r < 0)
                return r;
        monitor->method = probe_method(session->probe);
        monitor->target_is_final = session->target.scope == TARGET_PID;
        monitor->last = at;
        monitor->next_summary_ns = summary_ns > 0 ? at.mono_ns + summary_ns : ABSENT;
        return 0;
}

int monitor_tick(struct monitor *monitor, struct instant at, uint64_t missed) {
        struct session *session = &monitor->session;
        bool was_gone = monitor->gone || !session->probe;
        struct why why = {0};
        int r;

        session->ticks_lost += missed;
        r = was_gone ? look_again(monitor, at, &why) : session_read(session, at, &why);
        if (r < 0)
                return tell_failure(monitor, at, r, &why);
        if (was_gone)
                session_notice(session, at, "info", "the target is back");
        else if (monitor->failing)
                session_notice(session, at, "info", "windows are read again");
        monitor->gone = monitor->failing = false;
        monitor->last = at;
        tell_changes(monitor, at);
        /* A fresh probe has nothing to compare with yet. */
        r = session->previous ? judge_window(monitor, at) : 0;
        if (r < 0)
                return tell_failure(monitor, at, r, &(struct why){"out of memory"});
        if (at.mono_ns >= monitor->next_summary_ns) {
                summarize_all(monitor, at);
                while (monitor->next_summary_ns <= at.mono_ns)
                        monitor->next_summary_ns += session->options->summary_ns;
        }
        /* Named by a process: its last window has been reported, its group may well go on without it. */
        if (monitor->target_is_final && !probe_target_alive(session->probe))
                return tell_failure(monitor, at, -ENOENT, &why);
        return 0;
}

void monitor_finish(struct monitor *monitor, struct instant at) {
        struct session *session = &monitor->session;
        uint64_t lost;

        monitor->brief = at.mono_ns < monitor->last.mono_ns + LAST_REPORT_MIN_NS;
        if (session->probe && !monitor->gone && at.mono_ns > monitor->last.mono_ns)
                (void) monitor_tick(monitor, at, 0);
        summarize_all(monitor, at);
        sink_set_loop(session->sink, NULL);
        (void) sink_flush(session->sink, PATIENCE_NS, PATIENCE_TOTAL_NS, -1);
        lost = sink_lost(session->sink);
        if (lost > 0 && sink_is_ready(STDERR_FILENO))
                (void) log_warning(-EIO, "%" PRIu64 " report%s could not be written", lost,
                                   lost == 1 ? "" : "s");
}

void monitor_release(struct monitor *monitor) {
        history_release(&monitor->history);
        session_release(&monitor->session);
}
