/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS (60 * NS_PER_S)

void history_release(struct history *history) {
        free(history->entries);
        *history = (struct history){0};
}

static size_t position(const struct history *history, uint64_t id) {
        size_t low = 0, high = history->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (history->entries[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void clear(struct history_entry *entry) {
        *entry = (struct history_entry){
                        .id = entry->id,
                        .stall_wall_ns = ABSENT,
                        .cpu_used_ns = ABSENT,
                        .seen = entry->seen,
                        .told_unmeasured = entry->told_unmeasured,
        };
}

int history_get(struct history *history, uint64_t id, struct history_entry **ret_entry) {
        size_t at = position(history, id);

        if (at < history->count && history->entries[at].id == id) {
                *ret_entry = &history->entries[at];
                return 0;
        }
        if (history->count == HISTORY_MAX)
                return -ENOSPC;
        if (history->count == history->room) {
                size_t room = history->room ? history->room * 2 : 8;
                struct history_entry *entries = reallocarray(history->entries, room, sizeof(*entries));

                if (!entries)
                        return -ENOMEM;
                history->entries = entries;
                history->room = room;
        }
        memmove(&history->entries[at + 1], &history->entries[at],
                (history->count - at) * sizeof(*history->entries));
        history->count++;
        history->entries[at] = (struct history_entry){.id = id};
        clear(&history->entries[at]);
        *ret_entry = &history->entries[at];
        return 0;
}

static void close_minute(struct history_entry *entry) {
        if (entry->minute_stall_ns > entry->worst_stall_ns) {
                entry->worst_stall_ns = entry->minute_stall_ns;
                entry->worst_minute = entry->minute;
        }
        entry->minute_stall_ns = 0;
}

void history_add(struct history_entry *entry, const struct facts *facts, bool lossless) {
        uint64_t minute;

        if (entry->windows == 0)
                entry->since = facts->from;
        minute = facts->from.mono_ns > entry->since.mono_ns
                                 ? (facts->from.mono_ns - entry->since.mono_ns) / MINUTE_NS
                                 : 0;
        if (minute != entry->minute)
                close_minute(entry);
        entry->minute = minute;
        if (is_known(facts->stall_wall_ns))
                entry->minute_stall_ns += facts->stall_wall_ns;
        known_add(&entry->stall_wall_ns, facts->stall_wall_ns);
        known_add(&entry->cpu_used_ns, facts->cpu_used_ns);
        entry->windows++;
        entry->windows_lossless += lossless;
}

void history_summarize(struct history_entry *entry, struct instant at, struct report_summary *ret_summary) {
        uint64_t since = entry->windows > 0 ? entry->since.mono_ns : at.mono_ns;

        close_minute(entry);
        *ret_summary = (struct report_summary){
                        .at = at,
                        .window_ns = at.mono_ns > since ? at.mono_ns - since : 0,
                        .windows = entry->windows,
                        .windows_lossless = entry->windows_lossless,
                        .stall_wall_ns = entry->stall_wall_ns,
                        .cpu_used_ns = entry->cpu_used_ns,
                        .worst_minute_stall_ns = entry->worst_stall_ns,
                        /* From today's idea of the time, so that a stepped clock cannot place it outside of the window. */
                        .worst_minute_at_ns =
                                        entry->worst_stall_ns > 0
                                                        ? clock_real_ns(&at,
                                                                        since + entry->worst_minute * MINUTE_NS)
                                                        : 0,
        };
        clear(entry);
}

void history_begin(struct history *history) {
        for (size_t i = 0; i < history->count; i++)
                history->entries[i].seen = false;
}

bool history_take_gone(struct history *history, struct history_entry *ret_entry) {
        for (size_t i = 0; i < history->count; i++) {
                if (history->entries[i].seen)
                        continue;
                *ret_entry = history->entries[i];
                history->count--;
                memmove(&history->entries[i], &history->entries[i + 1],
                        (history->count - i) * sizeof(*history->entries));
                return true;
        }
        return false;
}
