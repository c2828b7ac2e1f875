/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HAProxy: one thread for each CPU of its affinity unless nbthread says otherwise; no release knows the quota. With a master, the worker is
 * its child; a worker of before a reload stays until its last connection ends.
 */
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "runtime.h"

#define RUNTIME "haproxy"
#define SETTING "nbthread"

/* What the section "global" says. */
struct global {
        struct arena *arena;
        bool is_inside;
        uint64_t threads, threads_max; /* nbthread, thread-hard-limit; ABSENT: not said */
        const char *threads_at, *threads_max_at;
};

/* Keywords that begin a section (doc/configuration.txt, 2 and the chapters behind it). */
static bool begins_section(const char *word) {
        static const char *const sections[] = {
                        "global",      "defaults",  "frontend",    "backend",  "listen",
                        "peers",       "resolvers", "mailers",     "userlist", "program",
                        "http-errors", "ring",      "cache",       "fcgi-app", "log-forward",
                        "crt-store",   "traces",    "log-profile", "acme",
        };

        for (size_t i = 0; i < ELEMENTS(sections); i++)
                if (strcmp(word, sections[i]) == 0)
                        return true;
        return false;
}

static void visit(const struct config_statement *statement, void *data) {
        struct global *global = data;
        bool is_max = strcmp(statement->words[0], "thread-hard-limit") == 0;
        uint64_t number;

        if (begins_section(statement->words[0])) {
                global->is_inside = strcmp(statement->words[0], "global") == 0;
                return;
        }
        if (!global->is_inside || statement->count < 2 ||
            (!is_max && strcmp(statement->words[0], SETTING) != 0) ||
            parallelism_parse(statement->words[1], &number) < 0)
                return;
        const char *at = arena_format(global->arena, "%s:%u", statement->path, statement->line);
        *(is_max ? &global->threads_max : &global->threads) = number;
        *(is_max ? &global->threads_max_at : &global->threads_at) = at;
}

static bool is_haproxy(const struct process *process) {
        return strcmp(process_program(process), RUNTIME) == 0;
}

/* The files of "-f", each a file or a folder, and those behind "--". Returns the first, NULL if there is none. */
static const char *read_configuration(struct process *process, struct config_reader *reader) {
        const char *first = NULL;
        bool is_file = false, only_files = false;

        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];

                if (only_files || is_file) {
                        first = first ? first : argument;
                        config_read(reader, argument);
                        is_file = false;
                } else {
                        only_files = strcmp(argument, "--") == 0;
                        is_file = strcmp(argument, "-f") == 0;
                }
        }
        return first;
}

static int explain_source(struct process_set *set, struct process *process, struct parallelism *row) {
        struct global global = {.arena = set->arena, .threads = ABSENT, .threads_max = ABSENT};
        struct config_reader reader = {.process = process, .visit = visit, .data = &global};
        const char *first = read_configuration(process, &reader);

        row->how = arena_format(set->arena, "nbthread {n} in the section global of %s, then reload",
                                first ? first : "its configuration");
        if (!row->how)
                return -ENOMEM;
        if (!first || reader.error < 0 || reader.cut) {
                row->unreadable = process_explain(process, first ? first : "the configuration",
                                                  reader.error < 0 ? reader.error : -ENOENT);
                if (!row->unreadable)
                        return -ENOMEM;
        }
        if (is_known(global.threads)) {
                row->source = FROM_CONFIG;
                row->source_detail = global.threads_at;
                if (is_known(row->effective) && row->effective != global.threads)
                        row->configured = global.threads;
        } else if (is_known(global.threads_max) && global.threads_max == row->effective) {
                row->source = FROM_CONFIG;
                row->source_detail = global.threads_max_at;
        } else if (!row->unreadable) {
                row->source = FROM_DEFAULT;
        }
        return 0;
}

static bool has_child(const struct process_set *set, const struct process *process) {
        for (size_t i = 0; i < set->count; i++)
                if (set->processes[i].parent == process->host_pid && is_haproxy(&set->processes[i]))
                        return true;
        return false;
}

/* Younger workers of the same master: this one is finishing. */
static bool is_leaving(const struct process_set *set, const struct process *process) {
        const struct process *master = process_set_parent(set, process);

        if (!master || !is_haproxy(master))
                return false;
        for (size_t i = 0; i < set->count; i++) {
                const struct process *other = &set->processes[i];

                if (other != process && other->parent == process->parent && is_haproxy(other) &&
                    other->start_ticks > process->start_ticks)
                        return true;
        }
        return false;
}

/* @worker is among the youngest of its master: older ones finish their last connections. */
static uint64_t count_leaving(const struct process_set *set, const struct process *worker) {
        const struct process *master = process_set_parent(set, worker);
        uint64_t threads = 0;

        if (!master || !is_haproxy(master))
                return 0;
        for (size_t i = 0; i < set->count; i++) {
                const struct process *other = &set->processes[i];

                if (other->parent == worker->parent && other->start_ticks < worker->start_ticks &&
                    is_haproxy(other))
                        threads += other->threads_count;
        }
        return threads;
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                uint64_t leaving;
                int r;

                if (!is_haproxy(process) || has_child(set, process) || is_leaving(set, process))
                        continue;
                struct parallelism row = parallelism_of(RUNTIME, process);

                row.setting = SETTING;
                row.effective = process->threads_count;
                row.aware = AWARENESS_NONE;
                row.rounding = ROUND_DOWN;
                row.threads_name = RUNTIME;
                leaving = count_leaving(set, process);
                if (leaving > 0)
                        row.leaving = leaving;
                r = explain_source(set, process, &row);
                if (r >= 0)
                        r = process_set_add(set, &row);
                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_haproxy = {.name = RUNTIME, .find = find};
