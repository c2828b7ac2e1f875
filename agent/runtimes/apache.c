/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apache httpd: processes with worker threads (event, worker) or without (prefork), as many as its configuration allows, whatever the number
 * of CPUs. A worker belongs to one connection and waits for it most of the time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config_file.h"
#include "runtime.h"

#define RUNTIME "apache"
#define SETTING "MaxRequestWorkers"
#define HELPERS 2u /* threads of a child besides its workers: the main one and the listener */

struct server {
        struct process *master;
        struct arena *arena;
        struct config_reader reader;
        char folder[256]; /* ServerRoot */
        char mpm[16];     /* "event", "worker", "prefork"; "": not known */
        unsigned skipped; /* depth of blocks that are for another one */
        uint64_t most;
        const char *most_at;
};

static bool is_apache(const struct process *process) {
        const char *program = process_program(process);

        return strcmp(program, "apache2") == 0 || strcmp(program, "httpd") == 0;
}

/* "<IfModule mpm_event_module>" and "mpm_event.c": is it a module that decides, and another than the one in use? */
static bool is_for_another(const struct server *server, const char *module) {
        bool is_negated = module[0] == '!';
        size_t length = strlen(server->mpm);

        module += is_negated;
        if (strncmp(module, "mpm_", 4) != 0 || length == 0)
                return false;
        module += 4;
        return (strncmp(module, server->mpm, length) == 0 && strchr("_.", module[length]) != NULL) ==
               is_negated;
}

static void visit(const struct config_statement *statement, void *data) {
        struct server *server = data;
        const char *word = statement->words[0], *value = statement->count > 1 ? statement->words[1] : "";
        static const char prefix[] = "mpm_";

        if (strcasecmp(word, "<IfModule") == 0) {
                if (server->skipped > 0 || is_for_another(server, value))
                        server->skipped++;
        } else if (strcasecmp(word, "</IfModule>") == 0) {
                server->skipped -= server->skipped > 0;
        } else if (server->skipped > 0) {
                return;
        } else if (strcasecmp(word, "ServerRoot") == 0 && value[0] == '/') {
                (void) snprintf(server->folder, sizeof(server->folder), "%s", value);
                server->reader.folder = server->folder;
        } else if (strcasecmp(word, "LoadModule") == 0) {
                if (strncmp(value, prefix, strlen(prefix)) == 0)
                        (void) snprintf(server->mpm, sizeof(server->mpm), "%.*s",
                                        (int) strcspn(value + strlen(prefix), "_"), value + strlen(prefix));
        } else if (strcasecmp(word, SETTING) == 0 || strcasecmp(word, "MaxClients") == 0) {
                if (parallelism_parse(value, &server->most) >= 0)
                        server->most_at = arena_format(server->arena, "%s:%u: at most %u", statement->path,
                                                       statement->line, (unsigned) server->most);
        }
}

/* What it was built with: Debian's folder, that of the official image, those of others. */
static const char *default_configuration(const struct process *master) {
        if (strcmp(process_program(master), "apache2") == 0)
                return "/etc/apache2/apache2.conf";
        return master->exe && strncmp(master->exe, "/usr/local/apache2/", 19) == 0
                               ? "/usr/local/apache2/conf/httpd.conf"
                               : "/etc/httpd/conf/httpd.conf";
}

static int explain_source(struct process_set *set, struct server *server, struct parallelism *row) {
        const char *path = process_option(server->master, "-f"),
                   *folder = process_option(server->master, "-d"), *slash;

        if (!path)
                path = default_configuration(server->master);
        /* ServerRoot as built in is the configuration's own folder, or the one above "conf". */
        slash = strrchr(path, '/');
        if (!folder && slash)
                folder = arena_string_n(set->arena, path, (size_t) (slash - path));
        if (folder)
                (void) snprintf(server->folder, sizeof(server->folder), "%s", folder);
        size_t length = strlen(server->folder);
        if (length > 5 && strcmp(server->folder + length - 5, "/conf") == 0)
                server->folder[length - 5] = '\0';
        server->reader = (struct config_reader){
                        .process = server->master,
                        .include = "Include",
                        .include_optional = "IncludeOptional",
                        .folder = server->folder,
                        .visit = visit,
                        .data = server,
        };
        config_read(&server->reader, path);
        if (server->most_at) {
                row->source = FROM_CONFIG;
                row->source_detail = server->most_at;
        } else if (server->reader.error < 0 || server->reader.cut) {
                row->unreadable = process_explain(server->master, "all of its configuration",
                                                  server->reader.error < 0 ? server->reader.error : -EFBIG);
                return row->unreadable ? 0 : -ENOMEM;
        } else {
                row->source = FROM_DEFAULT;
        }
        return 0;
}

static bool belongs(const struct process *process, void *data) {
        const struct server *server = data;

        return process->parent == server->master->host_pid && is_apache(process);
}

static int add_master(struct process_set *set, struct process *master) {
        struct server server = {.master = master, .arena = set->arena};
        struct parallelism row = parallelism_of(RUNTIME, master);
        uint64_t children = 0, workers = 0;
        int r;

        for (size_t i = 0; i < set->count; i++) {
                const struct process *child = &set->processes[i];

                if (!belongs(child, &server))
                        continue;
                children++;
                /* One of a single thread beside others serves no request itself: it starts CGI programs. */
                if (child->threads_count > HELPERS)
                        workers += child->threads_count - HELPERS;
        }
        row.setting = SETTING;
        row.effective = workers > 0 ? workers : children;
        row.unit = workers > 0 ? UNIT_THREADS : UNIT_PROCESSES;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_NEVER;
        row.is_blocking = true;
        if (row.unit == UNIT_PROCESSES) {
                row.memory_bytes = process_set_memory(set, belongs, &server);
                (void) snprintf(server.mpm, sizeof(server.mpm), "prefork");
        }
        r = explain_source(set, &server, &row);
        return r < 0 ? r : process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                const struct process *parent = process_set_parent(set, process);
                /* With "-X" there is one process that does all. */
                bool is_master = is_apache(process) && !(parent && is_apache(parent));
                int r = is_master ? add_master(set, process) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_apache = {.name = RUNTIME, .find = find};
