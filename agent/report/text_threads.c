/* SPDX-License-Identifier: Apache-2.0 */
#include "text_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text_parts.h"

/* Distinct names that are told apart; the threads come sorted, so those beyond are the least harmed. */
#define ROWS_MAX 256
#define GAP 2

/* Threads of one process and name, or the rest (first NULL). Sums, except longest and p99: the highest of them. */
struct row {
        const struct thread_facts *first;
        uint32_t hash; /* of the names: most rows need no look at them */
        uint64_t count;
        uint64_t stall_ns, stalls, longest_ns, p99_ns, delay_ns, run_ns, wait_ns, quota_spent_ns;
};

struct table {
        struct row rows[ROWS_MAX];
        size_t rows_count;
        struct row rest;
        uint64_t quota_spent_ns; /* by all threads */
};

enum column { STALLED, TIMES, LONGEST, P99, DELAYED, RAN, WAITED, SPENT, COLUMN_COUNT };

static const char *const titles[COLUMN_COUNT] = {
                [STALLED] = "stalled", [TIMES] = "times", [LONGEST] = "longest", [P99] = "p99",
                [DELAYED] = "delayed", [RAN] = "ran",     [WAITED] = "waited",   [SPENT] = "quota spent",
};

/* Where all of these are zero, one column of zeros says enough. */
static const bool is_detail[COLUMN_COUNT] = {[TIMES] = true, [LONGEST] = true, [P99] = true, [SPENT] = true};

/* The agent's own number of a process is unique; where it sees none, the container's has to do. */
static bool is_same_process(const struct thread_facts *a, const struct thread_facts *b) {
        return a->host_pid > 0 && b->host_pid > 0 ? a->host_pid == b->host_pid : a->pid == b->pid;
}

static bool is_same_name(const struct thread_facts *a, const struct thread_facts *b) {
        return strncmp(a->name, b->name, PROC_NAME_MAX) == 0 &&
               strncmp(a->process, b->process, PROC_NAME_MAX) == 0;
}

static bool is_same_row(const struct thread_facts *a, const struct thread_facts *b) {
        return is_same_process(a, b) && (a->folded > 0) == (b->folded > 0) && is_same_name(a, b);
}

static uint32_t hash_of(const struct thread_facts *thread) {
        uint32_t hash = 2166136261; /* FNV-1a; only speed hangs on it */

        for (size_t i = 0; i < PROC_NAME_MAX && thread->name[i]; i++)
                hash = (hash ^ (unsigned char) thread->name[i]) * 16777619;
        for (size_t i = 0; i < PROC_NAME_MAX && thread->process[i]; i++)
                hash = (hash ^ (unsigned char) thread->process[i]) * 16777619;
        return hash;
}

static bool is_idle(const struct thread_facts *thread) {
        const uint64_t parts[] = {thread->run_ns, thread->stall_ns, thread->wait_ns,
                                  thread->runqueue_delay_ns};
        for (size_t i = 0; i < ELEMENTS(parts); i++)
                if (is_known(parts[i]) && parts[i] > 0)
                        return false;
        return true;
}

static void take_higher(uint64_t *highest, uint64_t value) {
        if (is_known(value) && (!is_known(*highest) || value > *highest))
                *highest = value;
}

static struct row row_empty(const struct thread_facts *first, uint32_t hash) {
        return (struct row){first, hash, 0, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT};
}

static void row_add(struct row *row, const struct thread_facts *thread) {
        row->count += thread->folded > 0 ? thread->folded : 1;
        known_add(&row->stall_ns, thread->stall_ns);
        known_add(&row->stalls, thread->stalls);
        known_add(&row->delay_ns, thread->runqueue_delay_ns);
        known_add(&row->run_ns, thread->run_ns);
        known_add(&row->wait_ns, thread->wait_ns);
        known_add(&row->quota_spent_ns, thread->quota_spent_ns);
        take_higher(&row->longest_ns, thread->stall_longest_ns);
        take_higher(&row->p99_ns, thread->stall_p99_ns);
}

static void row_merge(struct row *row, const struct row *other) {
        row->count += other->count;
        known_add(&row->stall_ns, other->stall_ns);
        known_add(&row->stalls, other->stalls);
        known_add(&row->delay_ns, other->delay_ns);
        known_add(&row->run_ns, other->run_ns);
        known_add(&row->wait_ns, other->wait_ns);
        known_add(&row->quota_spent_ns, other->quota_spent_ns);
        take_higher(&row->longest_ns, other->longest_ns);
        take_higher(&row->p99_ns, other->p99_ns);
}

static uint64_t or_zero(uint64_t value) {
        return is_known(value) ? value : 0;
}

/* Most harmed first; rows alike keep the order of the threads, which lie in one array. */
static int row_compare(const void *a, const void *b) {
        const struct row *x = a, *y = b;
        const uint64_t keys[][2] = {
                        {or_zero(x->stall_ns), or_zero(y->stall_ns)},
                        {or_zero(x->delay_ns), or_zero(y->delay_ns)},
                        {or_zero(x->run_ns), or_zero(y->run_ns)},
        };
        for (size_t i = 0; i < ELEMENTS(keys); i++)
                if (keys[i][0] != keys[i][1])
                        return keys[i][0] > keys[i][1] ? -1 : 1;
        return x->first < y->first ? -1 : x->first > y->first;
}

static void table_fill(struct table *table, const struct facts *facts, size_t rows_max) {
        table->rows_count = 0;
        table->rest = row_empty(NULL, 0);
        table->quota_spent_ns = 0;
        for (size_t i = 0; i < facts->threads_count; i++) {
                const struct thread_facts *thread = &facts->threads[i];
                uint32_t hash = hash_of(thread);
                size_t r = 0;
                table->quota_spent_ns += or_zero(thread->quota_spent_ns);
                while (r < table->rows_count &&
                       (table->rows[r].hash != hash || !is_same_row(table->rows[r].first, thread)))
                        r++;
                if (r == table->rows_count && (is_idle(thread) || r == ROWS_MAX)) {
                        row_add(&table->rest, thread);
                        continue;
                }
                if (r == table->rows_count)
                        table->rows[table->rows_count++] = row_empty(thread, hash);
                row_add(&table->rows[r], thread);
        }
        qsort(table->rows, table->rows_count, sizeof(table->rows[0]), row_compare);
        for (; table->rows_count > rows_max; table->rows_count--)
                row_merge(&table->rest, &table->rows[table->rows_count - 1]);
}

static char *add_duration(char out[static NUMBER_TEXT_MAX], uint64_t ns) {
        if (!is_known(ns))
                snprintf(out, NUMBER_TEXT_MAX, "-");
        else if (ns == 0)
                snprintf(out, NUMBER_TEXT_MAX, "0");
        else
                number_format_duration(out, ns);
        return out;
}

static uint64_t cell_value(const struct row *row, enum column column) {
        switch (column) {
        case STALLED:
                return row->stall_ns;
        case TIMES:
                return row->stalls;
        case LONGEST:
                return row->longest_ns;
        case P99:
                return row->p99_ns;
        case DELAYED:
                return row->delay_ns;
        case RAN:
                return row->run_ns;
        case WAITED:
                return row->wait_ns;
        case SPENT:
                return row->quota_spent_ns;
        case COLUMN_COUNT:
                break;
        }
        return ABSENT;
}

static char *cell_text(const struct table *table, const struct row *row, enum column column,
                       char out[static NUMBER_TEXT_MAX]) {
        uint64_t value = cell_value(row, column);
        /* No stall has no length: a dash is easier to skip than a zero. */
        if ((column == LONGEST || column == P99) && value == 0)
                value = ABSENT;
        if (!is_known(value))
                snprintf(out, NUMBER_TEXT_MAX, "-");
        else if (column == TIMES)
                snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64, value);
        else if (column == SPENT && table->quota_spent_ns > 0)
                parts_percent(out, (double) value / (double) table->quota_spent_ns);
        else
                add_duration(out, value);
        return out;
}

/* The n-th line of the table: the rows, then the rest if there is any. */
static const struct row *line_row(const struct table *table, size_t line) {
        if (line < table->rows_count)
                return &table->rows[line];
        return line == table->rows_count && table->rest.count > 0 ? &table->rest : NULL;
}

/* 0: nothing to show in this column. */
static size_t column_width(const struct table *table, enum column column) {
        char cell[NUMBER_TEXT_MAX];
        const struct row *row;
        size_t width = strlen(titles[column]);
        bool wanted = false;
        for (size_t line = 0; (row = line_row(table, line)); line++) {
                size_t columns = text_columns(cell_text(table, row, column, cell));
                uint64_t value = cell_value(row, column);
                wanted |= is_known(value) && (value > 0 || !is_detail[column]);
                width = columns > width ? columns : width;
        }
        return wanted ? width + GAP : 0;
}

/* Another process with the same names: then the row needs the process' number. */
static bool has_twin(const struct table *table, const struct row *row) {
        for (size_t i = 0; i < table->rows_count; i++) {
                const struct thread_facts *a = table->rows[i].first, *b = row->first;
                if (!is_same_process(a, b) && is_same_name(a, b))
                        return true;
        }
        return false;
}

static bool is_rest_idle(const struct row *row) {
        const uint64_t parts[] = {row->stall_ns, row->delay_ns, row->run_ns, row->wait_ns};

        for (size_t i = 0; i < ELEMENTS(parts); i++)
                if (or_zero(parts[i]) > 0)
                        return false;
        return !row->first;
}

static char *row_label(const struct table *table, const struct row *row, char *out, size_t room,
                       size_t max_columns) {
        char process[4 * PROC_NAME_MAX], name[4 * PROC_NAME_MAX], number[16] = "", times[32] = "",
                                                                  whole[256], cut[256];
        if (!row->first) {
                snprintf(out, room, "%" PRIu64 " %s%s%s", row->count,
                         table->rows_count > 0 ? "other" : "thread", row->count == 1 ? "" : "s",
                         is_rest_idle(row) ? " slept" : "");
                return out;
        }
        const struct thread_facts *thread = row->first;
        parts_name(process, sizeof(process), thread->process, PROC_NAME_MAX, PARTS_ALL);
        parts_name(name, sizeof(name), thread->name, PROC_NAME_MAX, PARTS_ALL);
        if (has_twin(table, row))
                snprintf(number, sizeof(number), "[%" PRIu32 "]",
                         thread->pid > 0 ? thread->pid : thread->host_pid);
        if (row->count > 1)
                snprintf(times, sizeof(times), " ×%" PRIu64, row->count);
        bool one_name = strcmp(process, name) == 0 || name[0] == '\0';
        snprintf(whole, sizeof(whole), "%s%s%s%s%s", process, number, one_name ? "" : " ",
                 one_name ? "" : name, thread->folded > 0 ? " (ended)" : "");
        size_t left = max_columns > text_columns(times) ? max_columns - text_columns(times) : 0;
        snprintf(out, room, "%s%s", parts_shorten(cut, sizeof(cut), whole, left), times);
        return out;
}

static void add_padded(struct text *out, const char *left, size_t columns) {
        size_t has = text_columns(left);
        text_add(out, "  %s%*s", left, has < columns ? (int) (columns - has) : 0, "");
}

static void add_right(struct text *out, const char *right, size_t columns) {
        size_t has = text_columns(right);
        text_add(out, "%*s%s", has < columns ? (int) (columns - has) : 0, "", right);
}

void text_threads(const struct report *report, struct text *out) {
        struct table table;
        size_t widths[COLUMN_COUNT], figures = 0, names = strlen("threads");
        char label[512], cell[NUMBER_TEXT_MAX];
        const struct row *row;

        table_fill(&table, report->facts, report->threads_max);
        if (!line_row(&table, 0) || (table.rows_count == 0 && report->threads_max > 0))
                return; /* no threads, or all of them slept */
        for (enum column c = 0; c < COLUMN_COUNT; c++)
                figures += widths[c] = column_width(&table, c);
        size_t names_max = PARTS_COLUMNS - 2 - figures;
        for (size_t line = 0; (row = line_row(&table, line)); line++) {
                size_t columns = text_columns(row_label(&table, row, label, sizeof(label), names_max));
                names = columns > names ? columns : names;
        }
        add_padded(out, "threads", names);
        for (enum column c = 0; c < COLUMN_COUNT; c++)
                if (widths[c] > 0)
                        add_right(out, titles[c], widths[c]);
        text_add(out, "\n");
        for (size_t line = 0; (row = line_row(&table, line)); line++) {
                bool idle = is_rest_idle(row); /* a row of zeros tells nothing */
                add_padded(out, row_label(&table, row, label, sizeof(label), names_max), idle ? 0 : names);
                for (enum column c = 0; c < COLUMN_COUNT; c++)
                        if (widths[c] > 0 && !idle)
                                add_right(out, cell_text(&table, row, c, cell), widths[c]);
                text_add(out, "\n");
        }
}
