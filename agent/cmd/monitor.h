/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent that goes on: what watch and run share. Each tick judges one window, speaks about containers that lost something, and keeps
 * the history for the summary lines. Whatever fails here is told once and counted, and the next tick tries again.
 */
#include "history.h"
#include "session.h"

struct monitor {
        struct session session;
        struct history history;
        enum probe_method method; /* as last told */
        struct instant last;      /* end of the newest window */
        uint64_t next_summary_ns; /* ABSENT: only at the end */
        uint64_t output_told;     /* lost records that were told about */
        bool gone, failing, closed_told;
        bool brief;           /* the running window is summed up, but not reported */
        bool target_is_final; /* once gone it cannot come back: a process */
};

/* The session is open. First snapshot, so that the first window begins now. @summary_ns 0: no summaries but the last. */
int monitor_start(struct monitor *monitor, uint64_t summary_ns, struct why *why);
/* The end of a window; @missed windows were not looked at in time. -ENOENT: the target is gone for good; else 0. */
int monitor_tick(struct monitor *monitor, struct instant at, uint64_t missed);
/* Report of the running window and the summaries; then waits at most a moment for the output. */
void monitor_finish(struct monitor *monitor, struct instant at);
void monitor_release(struct monitor *monitor);
