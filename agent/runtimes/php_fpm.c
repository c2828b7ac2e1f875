/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP-FPM: each pool has so many children as its file allows, whatever the number of CPUs. A child serves one request at a time, and mostly
 * waits while it does. Processes are told by their titles, which overwrite the environment.
 */
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "runtime.h"

#define RUNTIME "php-fpm"
#define SETTING "pm.max_children"
#define MASTER "php-fpm: master process ("
#define CHILD "php-fpm: pool "

struct pool {
        struct arena *arena;
        const struct process *master;
        const char *name;
        bool is_inside, is_static;
        uint64_t most;
        const char *path;
        unsigned line;
};

static void visit(const struct config_statement *statement, void *data) {
        struct pool *pool = data;
        const char *word = statement->words[0];
        size_t length = strlen(pool->name);

        if (word[0] == '[') {
                pool->is_inside = strncmp(word + 1, pool->name, length) == 0 &&
                                  strcmp(word + 1 + length, "]") == 0;
                return;
        }
        if (!pool->is_inside || statement->count < 2)
                return;
        if (strcmp(word, "pm") == 0)
                pool->is_static = strcmp(statement->words[1], "static") == 0;
        if (strcmp(word, SETTING) == 0 && parallelism_parse(statement->words[1], &pool->most) >= 0) {
                pool->path = arena_string(pool->arena, statement->path);
                pool->line = statement->line;
        }
}

static int explain_source(struct process_set *set, struct process *master, struct pool *pool,
                          struct parallelism *row) {
        const char *begin = master->argv[0] + strlen(MASTER), *end = strrchr(begin, ')'),
                   *path = arena_string_n(set->arena, begin, end ? (size_t) (end - begin) : strlen(begin));
        struct config_reader reader = {
                        .process = master,
                        .syntax = CONFIG_INI,
                        .include = "include",
                        .visit = visit,
                        .data = pool,
        };

        if (!path)
                return -ENOMEM;
        config_read(&reader, path);
        row->how = arena_format(set->arena, "pm.max_children = {n} in the pool [%s] of %s, then reload",
                                pool->name, pool->path ? pool->path : path);
        if (!row->how)
                return -ENOMEM;
        if (pool->path) {
                row->source = FROM_CONFIG;
                row->source_detail =
                                pool->is_static ? arena_format(set->arena, "%s:%u", pool->path, pool->line)
                                                : arena_format(set->arena, "%s:%u: at most %u", pool->path,
                                                               pool->line, (unsigned) pool->most);
                /* Those that come and go with the work are below their maximum without any edit. */
                if (pool->is_static || pool->most < row->effective)
                        row->configured = pool->most == row->effective ? ABSENT : pool->most;
                return row->source_detail ? 0 : -ENOMEM;
        }
        row->unreadable = process_explain(master,
                                          reader.error < 0 || reader.cut ? path : "the file of its pool",
                                          reader.error < 0 ? reader.error
                                          : reader.cut     ? -EFBIG
                                                           : -ENOENT);
        return row->unreadable ? 0 : -ENOMEM;
}

static bool belongs(const struct process *process, void *data) {
        const struct pool *pool = data;

        return process->parent == pool->master->host_pid && process_title_has_prefix(process, CHILD) &&
               strcmp(process->argv[0] + strlen(CHILD), pool->name) == 0;
}

static int add_pool(struct process_set *set, struct process *master, const char *name) {
        struct pool pool = {.arena = set->arena, .master = master, .name = name};
        struct parallelism row = parallelism_of(RUNTIME, master);
        int r;

        row.setting = SETTING;
        row.effective = 0;
        for (size_t i = 0; i < set->count; i++)
                row.effective += belongs(&set->processes[i], &pool);
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_UP;
        row.unit = UNIT_PROCESSES;
        row.is_blocking = true;
        row.memory_bytes = process_set_memory(set, belongs, &pool);
        r = explain_source(set, master, &pool, &row);
        return r < 0 ? r : process_set_add(set, &row);
}

/* A child of @master whose pool has no older one. */
static bool begins_pool(const struct process_set *set, const struct process *master,
                        const struct process *child) {
        struct pool pool = {.master = master};

        if (child->parent != master->host_pid || !process_title_has_prefix(child, CHILD))
                return false;
        pool.name = child->argv[0] + strlen(CHILD);
        for (const struct process *other = set->processes; other < child; other++)
                if (belongs(other, &pool))
                        return false;
        return true;
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *master = &set->processes[i];

                if (!process_title_has_prefix(master, MASTER))
                        continue;
                for (size_t k = 0; k < set->count; k++) {
                        const struct process *child = &set->processes[k];
                        int r = begins_pool(set, master, child)
                                                ? add_pool(set, master, child->argv[0] + strlen(CHILD))
                                                : 0;

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

const struct runtime runtime_php_fpm = {.name = RUNTIME, .find = find};
