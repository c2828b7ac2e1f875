/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../base/log.h"
#include "../base/memory.h"
#include "../judge/lost.h"
#include "../judge/ratio.h"
#include "../probe/assemble.h"
#include "../probe/capture.h"
#include "../runtimes/saved.h"
#include "command.h"
#include "scope.h"

#define WINDOW_ARENA_MAX ((size_t) 64 << 20)
#define TEXT_REPORT_MAX ((size_t) 64 << 10)
#define NOTICE_MAX 600

_Static_assert((int) PROBE_HOOKS == 0 && (int) PROBE_TRACEPOINTS == 1 && (int) PROBE_FILES == 2, "--method");
_Static_assert((int) TARGET_SELF == 0 && (int) TARGET_POD == 1 && (int) TARGET_NODE == 2, "--scope");

int session_init(struct session *session, const struct options *options, int fd, size_t queue_max) {
        *session = (struct session){.options = options, .fallback = TARGET_SCOPE_COUNT, .probe_fd = -1};
        text_init(&session->rendered, TEXT_REPORT_MAX);
        return sink_new(fd, queue_max, &session->sink);
}

static int open_probe(struct session *session, struct why *why) {
        const struct options *options = session->options;
        struct probe_options probe_options = {
                        .target = session->target,
                        .method = is_known(options->method) ? (enum probe_method) options->method
                                                            : PROBE_METHOD_COUNT,
                        .warn_stall_ns = options->warn_stall_ns,
                        .capture = options->capture,
        };

        return probe_open(session->root, &probe_options, &session->probe, why);
}

int session_open(struct session *session, struct why *why) {
        int r = root_open(session->options->root, &session->root, why);

        if (r < 0)
                return r;
        r = scanner_new(session->options->root, &session->scanner, why);
        if (r < 0)
                return r;
        session->target = scope_target(session->root, session->options, session->fallback);
        return open_probe(session, why);
}

static int forward_drain(int fd, uint32_t events, void *data) {
        struct session *session = data;

        (void) fd;
        (void) events;
        /* What could not be drained is counted as lost by the probe and comes with the next snapshot. */
        (void) probe_drain(session->probe);
        return 0;
}

static int watch_probe(struct session *session) {
        int fd = session->loop ? probe_fd(session->probe) : -1, r;

        if (fd < 0)
                return 0;
        r = loop_add_io(session->loop, fd, EPOLLIN, forward_drain, session);
        if (r >= 0)
                session->probe_fd = fd;
        return r;
}

static void close_probe(struct session *session) {
        if (session->probe_fd >= 0)
                (void) loop_remove_io(session->loop, session->probe_fd);
        session->probe_fd = -1;
        probe_free(session->probe);
        session->probe = NULL;
        snapshot_free(session->previous);
        snapshot_free(session->current);
        session->previous = session->current = NULL;
}

int session_reopen(struct session *session, struct why *why) {
        int r;

        close_probe(session);
        r = open_probe(session, why);
        if (r < 0)
                return r;
        return watch_probe(session);
}

int session_set_loop(struct session *session, struct loop *loop) {
        session->loop = loop;
        sink_set_loop(session->sink, loop);
        return session->probe ? watch_probe(session) : 0;
}

void session_release(struct session *session) {
        close_probe(session);
        scanner_free(session->scanner);
        root_free(session->root);
        sink_free(session->sink);
        text_release(&session->rendered);
        *session = (struct session){.probe_fd = -1};
}

static int read_snapshot(struct session *session, struct instant at, struct snapshot **ret_snapshot,
                         struct why *why) {
        struct snapshot *snapshot;
        int r = probe_read(session->probe, at, &snapshot, why);

        if (r < 0)
                return r;
        known_add(&snapshot->lost[LOST_TICKS], session->ticks_lost);
        known_add(&snapshot->lost[LOST_OUTPUT], sink_lost(session->sink));
        session->replay = snapshot->at.mono_ns != at.mono_ns;
        *ret_snapshot = snapshot;
        return 0;
}

int session_read(struct session *session, struct instant at, struct why *why) {
        struct snapshot *snapshot;
        int r = read_snapshot(session, at, &snapshot, why);

        if (r < 0)
                return r;
        snapshot_free(session->previous);
        session->previous = session->current;
        session->current = snapshot;
        return 0;
}

int session_extend(struct session *session, struct instant at, struct why *why) {
        struct snapshot *snapshot;
        int r;

        if (!session->previous)
                return session_read(session, at, why);
        r = read_snapshot(session, at, &snapshot, why);
        if (r < 0)
                return r;
        snapshot_free(session->current);
        session->current = snapshot;
        return 0;
}

void session_forget(struct session *session) {
        snapshot_free(session->previous);
        session->previous = NULL;
}

bool session_is_replay(const struct session *session) {
        return session->replay;
}

struct report_identity session_identity(const struct container_sample *sample,
                                        char container_id[static 65]) {
        return (struct report_identity){
                        .cgroup = sample->cgroup,
                        .container_id = sample->cgroup && target_container_id(sample->cgroup, container_id)
                                                        ? container_id
                                                        : NULL,
                        .request_milli = ABSENT,
                        .process_id = sample->first_pid,
        };
}

static bool was_throttled(const struct facts *facts) {
        const uint64_t losses[] = {facts->quota_ns_lost, facts->ancestor_ns_lost, facts->stall_wall_ns,
                                   facts->periods_throttled};

        for (size_t i = 0; i < ELEMENTS(losses); i++)
                if (is_known(losses[i]) && losses[i] > 0)
                        return true;
        return false;
}

bool window_row_is_lossless(const struct facts *facts, const struct judgement *judgement) {
        return judgement->severity == SEVERITY_NONE && !was_throttled(facts);
}

bool window_row_is_lossy(const struct facts *facts, const struct judgement *judgement,
                         const struct options *options) {
        struct lost_time lost;

        if (judgement->severity == SEVERITY_WARNING)
                return true;
        if (judgement->severity == SEVERITY_NONE || judgement->verdict == VERDICT_NOT_MEASURED)
                return false;
        if (was_throttled(facts))
                return true;
        /* Everybody waits a little on a busy node: only what would be a warning if a limit had done it. */
        lost = lost_time_of(facts);
        return ratio_reaches(lost.contention_ns + lost.steal_ns, lost.wanted_ns, options->warn_lost_ppm);
}

/* A container whose group is gone has figures, but no name any more; the snapshot before still had it. */
static const struct container_sample *known_by_name(const struct session *session,
                                                    const struct container_sample *sample) {
        const struct container_sample *before = NULL;

        if (!sample->cgroup && session->previous)
                before = snapshot_container(session->previous, sample->id);
        return before ? before : sample;
}

static int compare_pids(const void *a, const void *b) {
        const pid_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* The processes of its threads, for where its group cannot be seen. */
static int processes_of(const struct session *session, const struct container_sample *sample,
                        struct arena *arena, struct scan_request *request) {
        const struct thread_sample *threads = session->current->threads + sample->first_thread;
        pid_t *pids = arena_array(arena, sample->threads_count, sizeof(*pids));
        size_t count = 0, kept = 0;

        if (!pids)
                return -ENOMEM;
        for (size_t i = 0; i < sample->threads_count; i++)
                if (threads[i].host_pid > 0 && !threads[i].ended)
                        pids[count++] = (pid_t) threads[i].host_pid;
        if (count > 0)
                qsort(pids, count, sizeof(*pids), compare_pids);
        for (size_t i = 0; i < count; i++)
                if (kept == 0 || pids[kept - 1] != pids[i])
                        pids[kept++] = pids[i];
        request->pids = pids;
        request->pids_count = kept;
        return 0;
}

/* What its runtimes have in force: 1 and *ret_list, 0: not known, negative errno. A replay takes what was found then. */
static int look_at_runtimes(const struct session *session, const struct container_sample *sample,
                            bool is_needed, struct arena *arena, struct parallelism_list *ret_list) {
        struct scan_request request = {
                        .container = sample->id,
                        .chain = sample->chain.levels_count > 0 ? &sample->chain : NULL,
                        .cpus_online = session->current->machine.cpus_online,
                        .now_ns = session->current->at.mono_ns,
                        .is_needed = is_needed || session->looks_at_all,
        };
        struct root *root = probe_root(session->probe);
        int r;

        if (session->replay) {
                struct why why = {0};

                r = parallelism_load(root, sample->id, arena, ret_list, &why);
                if (r == -ENOENT)
                        return 0;
                if (r < 0 && r != -ENOMEM)
                        (void) log_warning(r, "what ran in a container is not known: %s", why.text);
                return r < 0 ? (r == -ENOMEM ? r : 0) : 1;
        }
        r = processes_of(session, sample, arena, &request);
        if (r >= 0)
                r = scanner_look(session->scanner, &request, ret_list);
        if (r == 1 && root_is_captured(root) && parallelism_save(root, sample->id, ret_list) < 0)
                return -ENOMEM;
        return r;
}

static int judge_container(const struct session *session, const struct container_sample *sample,
                           struct window *window) {
        const struct facts_options facts_options = {.warn_stall_ns = session->options->warn_stall_ns};
        const struct judge_options judge_options = {
                        .warn_lost_ppm = (uint32_t) session->options->warn_lost_ppm,
                        .warn_stall_ns = session->options->warn_stall_ns,
        };
        struct window_row *row = arena_alloc(window->arena, sizeof(*row));
        struct parallelism_list *list = arena_alloc(window->arena, sizeof(*list));
        int r;

        if (!row || !list)
                return -ENOMEM;
        row->sample = sample;
        row->identity = session_identity(known_by_name(session, sample), row->container_id);
        row->identity.process_id = sample->first_pid;
        r = facts_of_window(session->previous, session->current, sample->id, &facts_options, window->arena,
                            &row->facts);
        if (r < 0)
                return r;
        r = look_at_runtimes(session, sample, was_throttled(&row->facts), window->arena, list);
        if (r >= 0)
                r = facts_add_parallelism(&row->facts, r == 1 ? list : NULL, window->arena);
        if (r < 0)
                return r;
        r = judge(&row->facts, &judge_options, window->arena, &row->judgement);
        if (r < 0)
                return r;
        window->rows[window->count++] = row;
        window->warnings += row->judgement.severity == SEVERITY_WARNING;
        window->measured += row->judgement.verdict != VERDICT_NOT_MEASURED;
        window->lossy += window_row_is_lossy(&row->facts, &row->judgement, session->options);
        return 0;
}

int session_judge(const struct session *session, struct window *ret_window) {
        struct window cleanup_window window = {.arena = arena_new(WINDOW_ARENA_MAX)};
        const struct snapshot *snapshot = session->current;

        window.rows = window.arena ? arena_array(window.arena, snapshot->containers_count,
                                                 sizeof(*window.rows))
                                   : NULL;
        if (!window.rows)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->containers_count; i++) {
                int r = judge_container(session, &snapshot->containers[i], &window);

                if (r < 0)
                        return r;
        }
        scanner_sweep(session->scanner, snapshot->at.mono_ns);
        *ret_window = window;
        window.arena = NULL;
        return 0;
}

void window_release(struct window *window) {
        arena_free(window->arena);
        *window = (struct window){0};
}

/* Thread time lost to limits where it was measured, else what the kernel counts for the group: only an order. */
static uint64_t lost_to_limits(const struct facts *facts) {
        if (is_known(facts->quota_ns_lost) || is_known(facts->ancestor_ns_lost))
                return known_or_zero(facts->quota_ns_lost) + known_or_zero(facts->ancestor_ns_lost);
        return known_or_zero(facts->runqueue_throttled_ns);
}

static int compare(uint64_t a, uint64_t b) {
        return (a > b) - (a < b);
}

static int compare_rows(const void *a, const void *b) {
        const struct window_row *const *x = a, *const *y = b;
        int r = compare((*y)->judgement.severity, (*x)->judgement.severity);

        if (r == 0)
                r = compare(lost_to_limits(&(*y)->facts), lost_to_limits(&(*x)->facts));
        if (r == 0)
                r = compare(known_or_zero((*y)->facts.contention_ns_lost),
                            known_or_zero((*x)->facts.contention_ns_lost));
        return r ? r : compare((*x)->sample->id, (*y)->sample->id);
}

void window_sort(struct window *window) {
        if (window->count > 1)
                qsort(window->rows, window->count, sizeof(struct window_row *), compare_rows);
}

void session_say_unmeasurable(struct session *session, const struct why *why) {
        (void) log_error(-EPERM, "nothing can be measured here: %s", why->text);
        log_notice("ways out: the wrapper (throttlescope run), kubectl debug with the application's uid, "
                   "shareProcessNamespace with the same uid, a DaemonSet; throttlescope doctor says what "
                   "stands in the way");
        if (session->options->output == FORM_JSON)
                session_notice(session, clock_now(), "warning", "nothing can be measured here: %s",
                               why->text);
}

/* A report that could not be rendered is as lost as one that could not be written. */
static void deliver(struct session *session, int r) {
        const struct text *text = &session->rendered;

        if (r < 0 || text->cut)
                sink_drop(session->sink);
        else
                (void) sink_write(session->sink, text_string(text), text->length);
        text_release(&session->rendered);
}

void session_report(struct session *session, const struct window_row *row) {
        const struct report report = {
                        .identity = row->identity,
                        .facts = &row->facts,
                        .judgement = &row->judgement,
                        .version = command_version(),
                        .threads_max = (unsigned) session->options->threads,
        };
        int r = 0;

        if (session->options->output == FORM_JSON)
                r = report_json(&report, &session->rendered);
        else
                report_text(&report, &session->rendered);
        deliver(session, r);
}

void session_summary(struct session *session, const struct container_sample *sample,
                     struct report_summary *summary) {
        char container_id[65];
        int r = 0;

        summary->identity = session_identity(sample, container_id);
        summary->version = command_version();
        if (session->options->output == FORM_JSON)
                r = report_summary_json(summary, &session->rendered);
        else
                report_summary_text(summary, &session->rendered);
        deliver(session, r);
}

void session_notice(struct session *session, struct instant at, const char *level, const char *format, ...) {
        char words[NOTICE_MAX];
        const struct report_notice notice = {
                        .at = at, .level = level, .text = words, .version = command_version()};
        va_list arguments;
        int r = 0;

        va_start(arguments, format);
        if (vsnprintf(words, sizeof(words), format, arguments) < 0)
                r = -EINVAL;
        va_end(arguments);
        if (r == 0 && session->options->output == FORM_JSON)
                r = report_notice_json(&notice, &session->rendered);
        else if (r == 0)
                report_notice_text(&notice, &session->rendered);
        deliver(session, r);
}
