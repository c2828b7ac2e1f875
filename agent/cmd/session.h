/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What check, watch and run share: root, probe, the previous and the current snapshot (owned here), and the way of a window
 * through facts and judge to a report in the sink.
 */
#include "../base/loop.h"
#include "../judge/judge.h"
#include "../probe/probe.h"
#include "../report/report.h"
#include "../runtimes/scan.h"
#include "options.h"
#include "sink.h"

struct session {
        const struct options *options;
        struct target_request target;
        enum target_scope
                        fallback; /* where the options name none; TARGET_SCOPE_COUNT: what fits the place */
        struct root *root;
        struct probe *probe;
        struct scanner *scanner; /* what runs in the containers */
        bool looks_at_all;       /* every container is reported, not only those that lost something */
        struct snapshot *previous, *current;
        struct sink *sink;
        struct loop *loop;
        int probe_fd; /* as registered with the loop, -1: none */
        bool replay;  /* the snapshots come from a captured folder, with times of their own */
        uint64_t ticks_lost;
        struct text rendered;
};

/* One container of a window with what was made of it. */
struct window_row {
        const struct container_sample *sample; /* of the current snapshot */
        struct report_identity identity;       /* what else it points to is the snapshot's */
        char container_id[65];
        struct facts facts;
        struct judgement judgement;
};

struct window {
        struct arena *arena;
        struct window_row **rows; /* as in the snapshot, until window_sort() */
        size_t count;
        size_t warnings, measured,
                        lossy; /* containers with a warning, with a verdict, that lost something */
};

/* Opens the sink on @fd, so that whatever follows can be said. 0 or -ENOMEM. */
int session_init(struct session *session, const struct options *options, int fd, size_t queue_max);
/* Opens root and probe. 0 or negative errno with a sentence. */
int session_open(struct session *session, struct why *why);
/* Closes and opens the probe: its target had gone. On failure there is no probe; call again later. */
int session_reopen(struct session *session, struct why *why);
void session_release(struct session *session);

/* Sink and probe become sources of @loop. */
int session_set_loop(struct session *session, struct loop *loop);

/* One more snapshot; the current one becomes the previous. As probe_read(). A failure keeps both. */
int session_read(struct session *session, struct instant at, struct why *why);
/* The same, but the previous one stays: the window grows. Only for method files, whose figures are all cumulative. */
int session_extend(struct session *session, struct instant at, struct why *why);
/* Drops the previous snapshot: no window reaches across this moment. */
void session_forget(struct session *session);
/* After the first read: does the folder of --root hold a capture, to be shown without waiting? */
bool session_is_replay(const struct session *session);
/* Facts and verdicts of the window between the two snapshots (of all time seen, if there is only one). 0 or negative errno. */
int session_judge(const struct session *session, struct window *ret_window);
void window_release(struct window *window);
#define cleanup_window __attribute__((cleanup(window_release)))

/* Worst first: by severity, then by thread time lost to limits, then by time waited. */
void window_sort(struct window *window);
/*
 * Did it lose something worth a report: a warning; a finding while throttling was at work; or waiting and steal of --warn-lost or more.
 */
bool window_row_is_lossy(const struct facts *facts, const struct judgement *judgement,
                         const struct options *options);
/* Nothing at all to be told, and no throttling, however short. */
bool window_row_is_lossless(const struct facts *facts, const struct judgement *judgement);

/* Strings are the sample's; @container_id is filled if its group's name holds one, and must live as long. */
struct report_identity session_identity(const struct container_sample *sample, char container_id[static 65]);

/* Nothing can be measured: the reason and the ways out on standard error, and as a notice where machines read. */
void session_say_unmeasurable(struct session *session, const struct why *why);

/* Rendered in the form asked for and handed to the sink; what is lost there is counted there. */
void session_report(struct session *session, const struct window_row *row);
/* Fills in identity and version. */
void session_summary(struct session *session, const struct container_sample *sample,
                     struct report_summary *summary);
void session_notice(struct session *session, struct instant at, const char *level, const char *format, ...)
                __attribute__((format(printf, 4, 5)));
