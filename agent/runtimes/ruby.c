/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of Ruby: Puma and Unicorn. The interpreter's lock leaves one thread of a process at work, so it is the processes that use CPUs. They
 * are told by their titles, which overwrite the arguments but not the environment.
 */
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "runtime.h"

struct server {
        const char *name, *master, *worker, *setting;
        const char *variable;          /* read by the server itself; NULL: none is */
        const char *configurations[2]; /* below the working directory */
        bool is_blocking;              /* a worker has one request at a time */
        const char *how;
};
static const struct server servers[] = {
                {
                                .name = "puma",
                                .master = "puma ",
                                .worker = "puma: cluster worker ",
                                .setting = "workers",
                                .variable = "WEB_CONCURRENCY",
                                .configurations = {"config/puma.rb"},
                                .how = "WEB_CONCURRENCY={n} in its environment, or workers {n} in its "
                                       "configuration, "
                                       "then restart",
                },
                {
                                .name = "unicorn",
                                .master = "unicorn master",
                                .worker = "unicorn worker[",
                                .setting = "worker_processes",
                                .configurations = {"config/unicorn.rb", "unicorn.conf.rb"},
                                .is_blocking = true,
                                .how = "worker_processes {n} in its configuration, then restart",
                },
};

struct tree {
        struct arena *arena;
        const struct server *server;
        const struct process *master;
        bool is_said;
        uint64_t workers; /* ABSENT: an expression */
        const char *at;
};

static bool belongs(const struct process *process, void *data) {
        const struct tree *tree = data;

        return process->parent == tree->master->host_pid &&
               process_title_has_prefix(process, tree->server->worker);
}

/* The last assignment counts. Conditions are not followed: only a number that is in force is believed. */
static void visit(const struct config_statement *statement, void *data) {
        struct tree *tree = data;

        if (statement->count < 2 || strcmp(statement->words[0], tree->server->setting) != 0)
                return;
        tree->is_said = true;
        tree->workers = ABSENT;
        (void) parallelism_parse(statement->words[1], &tree->workers);
        tree->at = arena_format(tree->arena, "%s:%u", statement->path, statement->line);
}

static void read_configuration(struct process *master, struct tree *tree) {
        const struct server *server = tree->server;
        struct config_reader named = {.process = master, .visit = visit, .data = tree};
        const char *title = strstr(master->argv[0], " -c ");

        /* Unicorn's title keeps its arguments. */
        if (title) {
                title += 4;
                const char *path = arena_string_n(tree->arena, title, strcspn(title, " "));

                if (path)
                        config_read(&named, path);
                return;
        }
        for (size_t i = 0; i < ELEMENTS(server->configurations) && !tree->is_said; i++) {
                struct config_reader reader = {.process = master, .visit = visit, .data = tree};

                if (server->configurations[i])
                        config_read(&reader, server->configurations[i]);
        }
}

/* Both have no more than one process unless somebody asked for more. */
static int explain_source(struct process *master, struct tree *tree, struct parallelism *row) {
        const char *value = NULL;
        uint64_t number;
        int r = tree->server->variable ? process_variable(master, tree->server->variable, &value) : 0;

        if (r == 1 && (strcmp(value, "auto") == 0 ||
                       (parallelism_parse(value, &number) >= 0 && number == row->effective))) {
                row->source = FROM_ENVIRONMENT;
                row->source_detail = tree->server->variable;
                if (strcmp(value, "auto") == 0)
                        row->aware = AWARENESS_QUOTA;
                return 0;
        }
        read_configuration(master, tree);
        if (tree->is_said && (!is_known(tree->workers) || tree->workers == row->effective)) {
                row->source = FROM_CONFIG;
                row->source_detail = tree->at;
                return 0;
        }
        if (tree->server->is_blocking && row->effective == 1) {
                row->source = FROM_DEFAULT;
                return 0;
        }
        row->unreadable = r < 0 ? process_explain(master, "the environment", r)
                                : process_explain(master, "the command line", -ENODATA);
        return row->unreadable ? 0 : -ENOMEM;
}

/* "puma 5.6.5 (tcp://…) [app]": what stands behind the name. */
static const char *version_of(struct arena *arena, const struct process *master) {
        const char *begin = strchr(master->argv[0], ' ');

        if (!begin)
                return NULL;
        begin++;
        size_t length = strspn(begin, "0123456789.");
        return length > 0 && begin[length] == ' ' ? arena_string_n(arena, begin, length) : NULL;
}

static int add_tree(struct process_set *set, const struct server *server, struct process *master) {
        struct tree tree = {.arena = set->arena, .server = server, .master = master, .workers = ABSENT};
        struct parallelism row = parallelism_of(server->name, master);
        uint64_t workers = 0;
        int r;

        for (size_t i = 0; i < set->count; i++)
                workers += belongs(&set->processes[i], &tree);
        row.version = version_of(set->arena, master);
        row.setting = server->setting;
        row.unit = UNIT_PROCESSES;
        row.rounding = ROUND_UP;
        row.is_blocking = server->is_blocking;
        row.aware = AWARENESS_NONE;
        row.how = server->how;
        row.effective = workers;
        row.memory_bytes = process_set_memory(set, belongs, &tree);
        if (workers == 0) {
                /* Puma's single mode: the process serves itself. */
                row.effective = 1;
                row.memory_bytes = master->rss_anon_bytes;
                row.source = FROM_DEFAULT;
                return process_set_add(set, &row);
        }
        r = explain_source(master, &tree, &row);
        return r < 0 ? r : process_set_add(set, &row);
}

/* "puma 5.6.5 (": not a script of that name with its arguments. */
static bool is_master(const struct server *server, const struct process *process) {
        return process_title_has_prefix(process, server->master) &&
               (!process->exe || strncmp(process_program(process), "ruby", 4) == 0);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++)
                for (size_t k = 0; k < ELEMENTS(servers); k++) {
                        int r = is_master(&servers[k], &set->processes[i])
                                                ? add_tree(set, &servers[k], &set->processes[i])
                                                : 0;

                        if (r < 0)
                                return r;
                }
        return 0;
}

const struct runtime runtime_ruby = {.name = "ruby", .find = find};
