/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis and Valkey: commands run on one thread; io-threads (of which the main thread is one) read, parse and write for it. Fixed numbers,
 * one unless configured. The title overwrites command line and environment, so a configuration is looked for where it usually is.
 */
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "runtime.h"

#define SETTING "io-threads"
#define THREAD "io_thd_"

static const struct flavour {
        const char *name, *server;
        const char *files[4]; /* of distributions and images, NULL-terminated */
} flavours[] = {
                {"redis",
                 "redis-server",
                 {"/etc/redis/redis.conf", "/etc/redis.conf", "/usr/local/etc/redis/redis.conf"}},
                {"valkey",
                 "valkey-server",
                 {"/etc/valkey/valkey.conf", "/etc/valkey.conf", "/usr/local/etc/valkey/valkey.conf"}},
};

/*
 * Its executable may be a link to the same file as redis-check-rdb, and then says that; what it was started as remains the name of its main
 * thread. A child that saves has another one.
 */
static const struct flavour *flavour_of(const struct process *process) {
        const char *program = process_program(process);

        for (size_t i = 0; i < ELEMENTS(flavours); i++) {
                const char *server = flavours[i].server;
                size_t family = strlen(flavours[i].name);
                bool is_family = strncmp(program, flavours[i].name, family) == 0 && program[family] == '-';

                if (is_family && (strcmp(program, server) == 0 || strcmp(process->name, server) == 0))
                        return &flavours[i];
        }
        return NULL;
}

struct said {
        struct arena *arena;
        uint64_t threads; /* ABSENT: not said */
        const char *at;
};

static void visit(const struct config_statement *statement, void *data) {
        struct said *said = data;

        if (statement->count < 2 || strcmp(statement->words[0], SETTING) != 0 ||
            parallelism_parse(statement->words[1], &said->threads) < 0)
                return;
        said->at = arena_format(said->arena, "%s:%u", statement->path, statement->line);
}

static void read_file(struct process *process, const char *path, struct said *said) {
        struct config_reader reader = {
                        .process = process, .include = "include", .visit = visit, .data = said};

        config_read(&reader, path);
}

/* Its title has the address: "redis-server *:6379". Only where it sets none, the arguments are still there. */
static bool has_arguments(const struct process *process) {
        return process->argc > 0 && !strchr(process->argv[0], ' ');
}

static int explain_source(struct process_set *set, struct process *process, const struct flavour *flavour,
                          struct parallelism *row) {
        struct said said = {.arena = set->arena, .threads = ABSENT};
        const char *option;

        if (has_arguments(process)) {
                option = process_option(process, "--io-threads");
                if (process->argc > 1 && process->argv[1][0] != '-')
                        read_file(process, process->argv[1], &said);
                if (option && parallelism_parse(option, &said.threads) >= 0) {
                        row->source = FROM_ARGUMENT;
                        row->source_detail = "--io-threads";
                } else {
                        row->source = said.at ? FROM_CONFIG : FROM_DEFAULT;
                        row->source_detail = said.at;
                }
                if (is_known(said.threads) && is_known(row->effective) && said.threads != row->effective)
                        row->configured = said.threads;
                return 0;
        }
        /* One that says another number may be that of nobody: only what agrees is taken for the source. */
        for (const char *const *path = flavour->files; *path; path++) {
                read_file(process, *path, &said);
                if (is_known(said.threads) && said.threads == row->effective) {
                        row->source = FROM_CONFIG;
                        row->source_detail = said.at;
                        return 0;
                }
        }
        if (row->effective == 1) {
                row->source = FROM_DEFAULT;
                return 0;
        }
        row->unreadable = process_explain(process, "the command line", -ENODATA);
        return row->unreadable ? 0 : -ENOMEM;
}

static int add(struct process_set *set, struct process *process, const struct flavour *flavour) {
        struct parallelism row = parallelism_of(flavour->name, process);
        ssize_t threads = process_count_threads(process, THREAD);
        int r;

        row.setting = SETTING;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_DOWN;
        row.how = "io-threads {n} in its configuration, then restart";
        if (threads >= 0)
                row.effective = (uint64_t) threads + 1;
        row.threads_name = threads == 0 ? flavour->server : THREAD;
        r = explain_source(set, process, flavour, &row);
        if (r >= 0 && threads < 0) {
                row.unreadable = process_explain(process, "the list of threads", (int) threads);
                r = row.unreadable ? 0 : -ENOMEM;
        }
        return r < 0 ? r : process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                const struct process *parent = process_set_parent(set, process);
                const struct flavour *flavour = flavour_of(process);
                /* A child that writes a snapshot is the server's fork. */
                int r = flavour && !(parent && flavour_of(parent)) ? add(set, process, flavour) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_redis = {.name = "redis", .find = find};
