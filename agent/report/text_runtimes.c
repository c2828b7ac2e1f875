/* SPDX-License-Identifier: Apache-2.0 */
#include "text_runtimes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"
#include "text_parts.h"

#define LINES_MAX 4
#define OTHERS_MAX 6 /* settings that are named on the last line */
#define NAME_COLUMNS 40
#define DETAIL_COLUMNS 60

/* "go 1.24.1", "prometheus (go 1.24.1)": escaped and short. */
static void add_program(struct text *out, const struct parallelism *row) {
        char program[PARTS_NAME_MAX], version[PARTS_NAME_MAX];

        parts_name(version, sizeof(version), row->version, PARTS_ALL, NAME_COLUMNS);
        if (row->program)
                text_add(out, "%s (",
                         parts_name(program, sizeof(program), row->program, PARTS_ALL, NAME_COLUMNS));
        text_add(out, "%s%s%s%s", row->runtime, version[0] ? " " : "", version, row->program ? ")" : "");
}

static void add_setting(struct text *out, const struct parallelism *row) {
        char setting[PARTS_NAME_MAX];

        parts_name(setting, sizeof(setting), row->setting, PARTS_ALL, NAME_COLUMNS);
        text_add(out, "%s%s", setting[0] ? " " : "", setting);
        if (is_known(row->effective))
                text_add(out, " %" PRIu64, row->effective);
}

/* "220 MiB": three figures would promise more than pages that come and go can keep. */
static char *format_bytes(char out[static NUMBER_TEXT_MAX], uint64_t bytes) {
        static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        for (; bytes >= 10240 && unit + 1 < ELEMENTS(units); unit++)
                bytes /= 1024;
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " %s", bytes, units[unit]);
        return out;
}

static void add_numbers(struct text *out, const struct parallelism_facts *facts) {
        const struct parallelism *row = facts->row;
        const char *unit = row->unit == UNIT_PROCESSES ? "process" : "thread",
                   *plural = row->unit == UNIT_PROCESSES ? "es" : "s";
        char bytes[NUMBER_TEXT_MAX];

        if (is_known(row->active))
                text_add(out, ", %" PRIu64 " at work", row->active);
        if (is_known(row->leaving) && row->leaving > 0)
                text_add(out, ", %" PRIu64 " more leaving", row->leaving);
        if (is_known(row->configured) && row->configured != row->effective)
                text_add(out, "; its configuration says %" PRIu64 " by now", row->configured);
        if (!is_known(facts->surplus) || facts->surplus == 0)
                return;
        text_add(out, "; the limit suggests %" PRIu64 " %s%s", facts->recommended, unit,
                 facts->recommended == 1 ? "" : plural);
        if (is_known(facts->surplus_memory_bytes) && facts->surplus_memory_bytes > 0)
                text_add(out, ", %" PRIu64 " beyond that hold %s", facts->surplus,
                         format_bytes(bytes, facts->surplus_memory_bytes));
}

static void add_row(struct text *out, const struct parallelism_facts *facts) {
        const struct parallelism *row = facts->row;
        char detail[PARTS_NAME_MAX], sentence[PARTS_SENTENCE_MAX];
        struct text cleanup_text line;

        text_init(&line, PARTS_SENTENCE_MAX - 1);
        add_program(&line, row);
        if (row->pid > 0)
                text_add(&line, " [%" PRIu32 "]", row->pid);
        text_add(&line, ":");
        add_setting(&line, row);
        if (row->source != FROM_UNKNOWN) {
                parts_name(detail, sizeof(detail), row->source_detail, PARTS_ALL, DETAIL_COLUMNS);
                text_add(&line, " (%s%s%s)", parallelism_source_name(row->source), detail[0] ? ": " : "",
                         detail);
        }
        add_numbers(&line, facts);
        if (row->unreadable)
                text_add(&line, "; %s", parts_sentence(sentence, sizeof(sentence), row->unreadable));
        parts_wrap(out, "runtime", text_string(&line));
}

/* All that needs no line of its own, and what there was no room for. */
static void add_others(struct text *out, const struct facts *facts,
                       const struct parallelism_facts *const *rows, size_t count) {
        struct text cleanup_text line;
        uint64_t unnamed = facts->parallelism_omitted + facts->parallelism_count;

        text_init(&line, PARTS_SENTENCE_MAX - 1);
        for (size_t i = 0; i < count && i < OTHERS_MAX; i++) {
                text_add(&line, "%s", i > 0 ? ", " : "");
                add_program(&line, rows[i]->row);
                add_setting(&line, rows[i]->row);
                unnamed--;
        }
        /* Those with lines of their own were named, too. */
        unnamed -= facts->parallelism_count - count;
        if (unnamed > 0)
                text_add(&line, "%s%" PRIu64 " more", count > 0 ? ", and " : "", unnamed);
        if (line.length > 0)
                parts_wrap(out, "runtimes", text_string(&line));
}

void text_runtimes(const struct report *report, struct text *out) {
        const struct parallelism_facts *rows[PARALLELISM_MAX];
        size_t lines = 0;

        if (!report->facts->parallelism)
                return;
        size_t count = rows_in_order(report->facts, rows);
        while (lines < count && lines < LINES_MAX && row_matters(rows[lines]))
                add_row(out, rows[lines++]);
        add_others(out, report->facts, rows + lines, count - lines);
}
