/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What watch remembers of a container between two summary lines: sums, and its worst minute. Pure: time comes as an argument.
 * Minutes are counted from the first window of a summary, and each window belongs to the minute it began in.
 */
#include "../judge/facts.h"
#include "../report/report.h"

struct history_entry {
        uint64_t id;
        struct instant since; /* begin of the first window */
        uint64_t windows, windows_lossless;
        uint64_t stall_wall_ns, cpu_used_ns; /* ABSENT: never measured */
        uint64_t minute, minute_stall_ns;    /* the running one: its number, and what was stalled in it */
        uint64_t worst_stall_ns, worst_minute;
        bool seen;            /* in the newest window */
        bool told_unmeasured; /* that it cannot be measured has been said; stays for the entry's life */
};

#define HISTORY_MAX 4096u

struct history {
        struct history_entry *entries; /* sorted by id */
        size_t count, room;
};

void history_release(struct history *history);

/* The entry of container @id, made if there is none: -ENOMEM, or -ENOSPC beyond HISTORY_MAX. */
int history_get(struct history *history, uint64_t id, struct history_entry **ret_entry);
void history_add(struct history_entry *entry, const struct facts *facts, bool lossless);
/* The summary of what was added; the entry starts anew with the next window. */
void history_summarize(struct history_entry *entry, struct instant at, struct report_summary *ret_summary);

/* Before a window's containers are added: nobody was seen. */
void history_begin(struct history *history);
/* Takes out an entry that was not seen since history_begin(); false: none left. */
bool history_take_gone(struct history *history, struct history_entry *ret_entry);
