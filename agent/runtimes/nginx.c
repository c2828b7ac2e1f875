/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx and what is built on it: one worker process for each CPU of the machine where worker_processes says auto. Processes are told by their
 * titles, which overwrite the environment as well. Workers of before a reload end when their last connection does.
 */
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "runtime.h"

#define RUNTIME "nginx"
#define SETTING "worker_processes"
#define MASTER "nginx: master process"
#define WORKER "nginx: worker process"
#define LEAVING "nginx: worker process is shutting down"

struct main_context {
        struct arena *arena;
        bool is_said, is_auto;
        uint64_t workers; /* ABSENT: "auto", or not a number */
        const char *at;
};

static void visit(const struct config_statement *statement, void *data) {
        struct main_context *context = data;

        if (statement->depth > 0 || statement->count < 2 || strcmp(statement->words[0], SETTING) != 0)
                return;
        context->is_said = true;
        context->is_auto = strcmp(statement->words[1], "auto") == 0;
        context->workers = ABSENT;
        (void) parallelism_parse(statement->words[1], &context->workers);
        context->at = arena_format(context->arena, "%s:%u%s", statement->path, statement->line,
                                   context->is_auto ? ": auto" : "");
}

/*
 * The title is one text: "nginx: master process nginx -c FILE -g TEXT". What stands behind @option, up to the next option or the end;
 * NULL: nothing.
 */
static const char *title_option(struct arena *arena, const char *title, const char *option) {
        const char *at = strstr(title, option), *end;

        if (!at)
                return NULL;
        at += strlen(option);
        end = strstr(at, " -");
        return arena_string_n(arena, at, end ? (size_t) (end - at) : strlen(at));
}

static const char *default_configuration(const struct process *master) {
        return master->exe && strstr(master->exe, "openresty") ? "/usr/local/openresty/nginx/conf/nginx.conf"
                                                               : "/etc/nginx/nginx.conf";
}

static int explain_source(struct process_set *set, struct process *master, struct parallelism *row) {
        struct main_context context = {.arena = set->arena, .workers = ABSENT};
        struct config_reader reader = {
                        .process = master,
                        .syntax = CONFIG_BRACES,
                        .include = "include",
                        .visit = visit,
                        .data = &context,
        };
        const char *text = title_option(set->arena, master->argv[0], " -g "),
                   *path = title_option(set->arena, master->argv[0], " -c ");

        path = path ? path : default_configuration(master);
        if (text)
                config_read_text(&reader, "-g", text, strlen(text));
        bool is_argument = context.is_said;
        if (!is_argument)
                config_read(&reader, path);
        if (!context.is_said && (reader.error < 0 || reader.cut)) {
                row->unreadable = process_explain(master, path, reader.error < 0 ? reader.error : -EFBIG);
                return row->unreadable ? 0 : -ENOMEM;
        }
        row->source = is_argument ? FROM_ARGUMENT : context.is_said ? FROM_CONFIG : FROM_DEFAULT;
        row->source_detail = context.at;
        if (is_known(context.workers) && context.workers != row->effective)
                row->configured = context.workers;
        if (!row->how)
                row->how = arena_format(set->arena, "worker_processes {n}; in %s, then reload",
                                        is_argument ? "its argument -g" : path);
        return row->how ? 0 : -ENOMEM;
}

static bool belongs(const struct process *process, void *data) {
        const struct process *master = data;

        return process->parent == master->host_pid && process_title_has_prefix(process, WORKER);
}

static bool is_controlled(const struct process_set *set) {
        for (size_t i = 0; i < set->count; i++)
                if (strcmp(process_program(&set->processes[i]), "nginx-ingress-controller") == 0)
                        return true;
        return false;
}

static int add_master(struct process_set *set, struct process *master) {
        struct parallelism row = parallelism_of(RUNTIME, master);
        uint64_t leaving = 0;
        int r;

        row.effective = 0;
        for (size_t i = 0; i < set->count; i++) {
                if (!belongs(&set->processes[i], master))
                        continue;
                if (process_title_has_prefix(&set->processes[i], LEAVING))
                        leaving++;
                else
                        row.effective++;
        }
        row.setting = SETTING;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_UP;
        row.unit = UNIT_PROCESSES;
        row.memory_bytes = process_set_memory(set, belongs, master);
        if (leaving > 0)
                row.leaving = leaving;
        if (is_controlled(set)) {
                /* pkg/util/runtime/cpu_linux.go of ingress-nginx: ceil of its own quota. */
                row.program = "ingress-nginx";
                row.aware = AWARENESS_QUOTA;
                row.how = "worker-processes: \"{n}\" in the controller's ConfigMap";
        }
        r = explain_source(set, master, &row);
        if (r >= 0 && !row.how)
                row.how = "worker_processes {n}; in its configuration, then reload";
        return r < 0 ? r : process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                int r = process_title_has_prefix(&set->processes[i], MASTER)
                                        ? add_master(set, &set->processes[i])
                                        : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_nginx = {.name = RUNTIME, .find = find};
