/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of Python: gunicorn, uvicorn and Celery. The interpreter's lock leaves one thread of a process at work, so it is the worker processes
 * that use CPUs. They are told by their script or module, or by their titles where the module setproctitle is there.
 */
#include <errno.h>
#include <string.h>

#include "runtime.h"

struct server {
        const char *name;
        const char *master, *worker; /* titles; NULL: it sets none */
        const char *needs;           /* argument without which it has no workers; NULL: none */
        /* Its workers begin anew in an interpreter of their own; else they are copies with the same arguments. */
        bool spawns;
        bool serves_alone; /* without workers the process does the work itself */
        const char *setting, *options[2];
        const char *variables[2];  /* the stronger one first */
        const char *configuration; /* below the working directory, or behind the option -c */
        bool counts_cpus;          /* one for each CPU of the machine where nothing is said; else one */
        const char *how;
};
static const struct server servers[] = {
                {
                                .name = "gunicorn",
                                .master = "gunicorn: master [",
                                .worker = "gunicorn: worker [",
                                .setting = "--workers",
                                .options = {"--workers", "-w"},
                                .variables = {"WEB_CONCURRENCY"},
                                .configuration = "gunicorn.conf.py",
                                .how = "--workers {n}, or WEB_CONCURRENCY={n} in its environment where "
                                       "nothing "
                                       "else says it, then restart",
                },
                {
                                .name = "uvicorn",
                                .spawns = true,
                                .serves_alone = true,
                                .setting = "--workers",
                                .options = {"--workers"},
                                .variables = {"UVICORN_WORKERS", "WEB_CONCURRENCY"},
                                .how = "--workers {n}, or WEB_CONCURRENCY={n} in its environment, then "
                                       "restart",
                },
                {
                                .name = "celery",
                                .master = "[celeryd: ",
                                .worker = "[celeryd: ",
                                .needs = "worker",
                                .setting = "--concurrency",
                                .options = {"--concurrency", "-c"},
                                .counts_cpus = true,
                                .how = "--concurrency {n}, then restart",
                },
};

struct tree {
        const struct server *server;
        const struct process *master;
        struct arena *arena;
        bool is_said; /* by the configuration */
        uint64_t workers;
        const char *at;
};

static bool is_python(const struct process *process) {
        const char *program = process_program(process);

        return strncmp(program, "python", 6) == 0 || strncmp(program, "pypy", 4) == 0;
}

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* The interpreter runs script @name, or the module of that name. */
static bool runs(const struct process *process, const char *name) {
        size_t length = strlen(name);

        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];

                if (strcmp(argument, "-W") == 0 || strcmp(argument, "-X") == 0) {
                        i++;
                        continue;
                }
                if (strcmp(argument, "-m") == 0) {
                        const char *module = i + 1 < process->argc ? process->argv[i + 1] : "";

                        return strncmp(module, name, length) == 0 &&
                               (module[length] == '\0' || module[length] == '.');
                }
                if (strcmp(argument, "-c") == 0)
                        return false;
                if (argument[0] != '-')
                        return strcmp(last_component(argument), name) == 0;
        }
        return false;
}

static bool has_title(const struct process *process, const struct server *server) {
        return (server->master && process_title_has_prefix(process, server->master)) ||
               (server->worker && process_title_has_prefix(process, server->worker));
}

static bool is_server(const struct process *process, const struct server *server) {
        if (has_title(process, server))
                return !process->exe || is_python(process);
        return is_python(process) && runs(process, server->name) &&
               (!server->needs || process_argument(process, server->needs) > 0);
}

static bool is_spawned(const struct process *process) {
        static const char spawn[] = "from multiprocessing.spawn import spawn_main";
        const char *code = process_option(process, "-c");

        return is_python(process) && code && strncmp(code, spawn, strlen(spawn)) == 0;
}

static bool belongs(const struct process *process, void *data) {
        const struct tree *tree = data;

        return process->parent == tree->master->host_pid &&
               (tree->server->spawns ? is_spawned(process) : is_server(process, tree->server));
}

/* --- where the number comes from --- */

/* "workers = 4", "workers=4" and, of which only the place is told, an expression. */
static void read_configuration(struct process *master, struct tree *tree, const char *path) {
        const char *text, *name = "workers";
        unsigned number = 0;

        if (process_read_file(master, path, &text, NULL) < 0)
                return;
        for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *p = line;
                uint64_t workers;

                number++;
                if (strncmp(p, name, strlen(name)) != 0)
                        continue;
                p += strlen(name);
                p += strspn(p, " \t");
                if (p[0] != '=' || p[1] == '=')
                        continue;
                p++;
                p += strspn(p, " \t");
                const char *value = arena_string_n(tree->arena, p, strcspn(p, " \t\r\n#"));
                tree->is_said = true;
                tree->workers = value && parallelism_parse(value, &workers) >= 0 ? workers : ABSENT;
                tree->at = arena_format(tree->arena, "%s:%u", path, number);
        }
}

static void say(struct parallelism *row, enum parallelism_source source, const char *detail,
                uint64_t number) {
        row->source = source;
        row->source_detail = detail;
        if (is_known(number) && number != row->effective)
                row->configured = number;
}

/* 1: an argument says it; 0; -ENOMEM. */
static int say_argument(struct tree *tree, struct parallelism *row) {
        for (size_t i = 0; i < ELEMENTS(tree->server->options); i++) {
                const char *option = tree->server->options[i],
                           *value = option ? process_option(tree->master, option) : NULL;
                uint64_t number;

                if (!value || parallelism_parse(value, &number) < 0)
                        continue;
                const char *detail = arena_format(tree->arena, "%s %s", option, value);
                if (!detail)
                        return -ENOMEM;
                say(row, FROM_ARGUMENT, detail, number);
                return 1;
        }
        return 0;
}

/* 1: a variable says it; 0: none does; negative errno: not readable. */
static int say_variable(struct process *master, struct tree *tree, struct parallelism *row) {
        for (size_t i = 0; i < ELEMENTS(tree->server->variables) && tree->server->variables[i]; i++) {
                const char *value;
                uint64_t number;
                int r = process_variable(master, tree->server->variables[i], &value);

                if (r < 0)
                        return r;
                if (r == 0 || parallelism_parse(value, &number) < 0)
                        continue;
                say(row, FROM_ENVIRONMENT, tree->server->variables[i], number);
                return 1;
        }
        return 0;
}

static int say_unknown(struct process *master, struct parallelism *row, const char *what, int error) {
        row->unreadable = process_explain(master, what, error);
        return row->unreadable ? 0 : -ENOMEM;
}

/* The stronger ones first. A title hides the arguments: then only a number that is in force is believed. */
static int explain_source(struct process_set *set, struct process *master, struct tree *tree,
                          struct parallelism *row) {
        const struct server *server = tree->server;
        bool is_hidden = has_title(master, server);
        const char *path = is_hidden ? NULL : process_option(master, "-c"), *ignored;
        uint64_t by_default = server->counts_cpus ? set->cpus_online : 1;
        int r = is_hidden ? 0 : say_argument(tree, row);

        if (r != 0)
                return r < 0 ? r : 0;
        if (process_argument(master, "--autoscale") > 0 || process_option(master, "--autoscale")) {
                row->source = FROM_ARGUMENT;
                row->source_detail = "--autoscale";
                return 0;
        }
        if (server->configuration)
                read_configuration(master, tree, path ? path : server->configuration);
        if (tree->is_said && (!is_hidden || tree->workers == row->effective)) {
                say(row, FROM_CONFIG, tree->at, tree->workers);
                return 0;
        }
        r = say_variable(master, tree, row);
        if (r > 0 && is_hidden && is_known(row->configured)) {
                say(row, FROM_UNKNOWN, NULL, ABSENT);
                row->configured = ABSENT;
                r = 0;
        }
        if (r > 0)
                return 0;
        if (is_hidden)
                return say_unknown(master, row, "the command line", -ENODATA);
        if (r < 0)
                return say_unknown(master, row, "the environment", r);
        /* What only gunicorn reads, and the code of an application, may have said it. */
        if (row->effective != by_default || process_variable(master, "GUNICORN_CMD_ARGS", &ignored) > 0)
                return say_unknown(master, row, "what says the number of workers", -ENOENT);
        row->source = FROM_DEFAULT;
        return 0;
}

/* --- rows --- */

static int add(struct process_set *set, const struct server *server, struct process *master) {
        struct tree tree = {.server = server, .master = master, .arena = set->arena, .workers = ABSENT};
        struct parallelism row = parallelism_of(server->name, master);
        int r;

        row.effective = 0;
        for (size_t i = 0; i < set->count; i++)
                row.effective += belongs(&set->processes[i], &tree);
        row.memory_bytes = process_set_memory(set, belongs, &tree);
        if (row.effective == 0) {
                /* One that has only begun, or whose pool is of threads. */
                if (!server->serves_alone)
                        return 0;
                row.effective = 1;
                row.memory_bytes = master->rss_anon_bytes;
        }
        row.setting = server->setting;
        row.unit = UNIT_PROCESSES;
        row.rounding = ROUND_UP;
        row.aware = AWARENESS_NONE;
        row.how = server->how;
        r = explain_source(set, master, &tree, &row);
        return r < 0 ? r : process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++)
                for (size_t k = 0; k < ELEMENTS(servers); k++) {
                        struct process *process = &set->processes[i];
                        const struct process *parent;

                        if (!is_server(process, &servers[k]))
                                continue;
                        parent = process_set_parent(set, process);
                        /* A worker. */
                        if (parent && is_server(parent, &servers[k]))
                                continue;
                        int r = add(set, &servers[k], process);
                        if (r < 0)
                                return r;
                }
        return 0;
}

const struct runtime runtime_python = {.name = "python", .find = find};
