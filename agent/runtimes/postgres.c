/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL: a process for each connection, and helpers for parallel queries. All of its numbers are fixed, none follows CPUs or a quota.
 * Titles tell which backend has a query; the numbers in force are read from the postmaster, which exports them for extensions.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config_file.h"
#include "global_number.h"
#include "runtime.h"

#define RUNTIME "postgres"
#define TITLE "postgres: "
#define WORKER "parallel worker for PID "

enum setting { CONNECTIONS, WORKERS, SETTINGS };

static const struct {
        const char *name, *symbol;
        uint64_t by_default;
} settings[SETTINGS] = {
                [CONNECTIONS] = {"max_connections", "MaxConnections", 100},
                [WORKERS] = {"max_parallel_workers", "max_parallel_workers", 8},
};

struct said {
        uint64_t number; /* ABSENT: nowhere */
        enum parallelism_source source;
        const char *at;
};

struct cluster {
        struct arena *arena;
        struct process *postmaster;
        struct said said[SETTINGS];
        int error; /* of the configuration that could not be read, negative errno */
        const char *error_path;

        uint64_t backends, active, workers;
        bool has_states; /* update_process_title is on */
};

/* --- processes --- */

static bool is_postgres(const struct process *process) {
        const char *program = process_program(process);

        return strcmp(program, "postgres") == 0 || strcmp(program, "postmaster") == 0;
}

static bool is_child_of(const struct process *process, const struct process *postmaster) {
        return process->parent == postmaster->host_pid && process_title_has_prefix(process, TITLE);
}

/* "NAME: " in front of what it does, where cluster_name is set: "15/main". */
static bool has_role(const struct process *process, const char *role) {
        const char *text = process->argv[0] + strlen(TITLE), *at = strstr(text, role);

        return at && (at == text || (at >= text + 2 && strncmp(at - 2, ": ", 2) == 0));
}

/*
 * What a client's backend does: "postgres: USER DATABASE HOST(PORT) SELECT", "[local]" for a socket. The last such mark counts: names may
 * hold anything. NULL: it serves no client.
 */
static const char *backend_state(const struct process *process) {
        const char *text = process->argv[0] + strlen(TITLE), *state = NULL;

        for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
                size_t host = strcspn(at + 1, " "), digits;
                const char *end = at + 1 + host, *open = memchr(at + 1, '(', host);

                if (open) {
                        digits = strspn(open + 1, "0123456789");
                        if (open > at + 1 && digits > 0 && open + 1 + digits == end - 1 && end[-1] == ')')
                                state = end;
                } else if (host == 7 && strncmp(at + 1, "[local]", 7) == 0) {
                        state = end;
                }
        }
        return state && !has_role(process, "walsender ") ? state + strspn(state, " ") : NULL;
}

static bool is_at_work(const char *state) {
        static const char *const others[] = {"idle", "authentication", "initializing", "startup"};

        for (size_t i = 0; i < ELEMENTS(others); i++)
                if (strncmp(state, others[i], strlen(others[i])) == 0)
                        return false;
        return true;
}

static bool is_backend(const struct process *process, void *data) {
        const struct cluster *cluster = data;

        return is_child_of(process, cluster->postmaster) && backend_state(process);
}

static bool is_worker(const struct process *process, void *data) {
        const struct cluster *cluster = data;

        return is_child_of(process, cluster->postmaster) && has_role(process, WORKER);
}

static void count(const struct process_set *set, struct cluster *cluster) {
        cluster->has_states = true;
        for (size_t i = 0; i < set->count; i++) {
                const struct process *process = &set->processes[i];

                if (is_worker(process, cluster)) {
                        cluster->workers++;
                } else if (is_backend(process, cluster)) {
                        const char *state = backend_state(process);

                        cluster->backends++;
                        cluster->active += is_at_work(state);
                        cluster->has_states &= state[0] != '\0';
                }
        }
}

/* --- what was configured --- */

/* "name = value", "name=value", "name value". Dashes stand for underscores on the command line. */
static bool is_setting(const char *word, enum setting setting, const char **ret_rest) {
        const char *name = settings[setting].name;

        for (; *name; name++, word++)
                if (tolower((unsigned char) *word) != *name && !(*name == '_' && *word == '-'))
                        return false;
        *ret_rest = word + (*word == '=');
        return *word == '\0' || *word == '=';
}

static void take(struct cluster *cluster, enum setting setting, const char *value,
                 enum parallelism_source source, const char *at) {
        uint64_t number;

        if (at && parallelism_parse(value, &number) >= 0)
                cluster->said[setting] = (struct said){.number = number, .source = source, .at = at};
}

static void visit(const struct config_statement *statement, void *data) {
        struct cluster *cluster = data;
        size_t next = 1;
        const char *value;

        for (enum setting setting = 0; setting < SETTINGS; setting++) {
                if (!is_setting(statement->words[0], setting, &value))
                        continue;
                if (!value[0] && statement->count > next)
                        value = statement->words[next++];
                /* "name =value" and "name = value" */
                value += value[0] == '=';
                if (!value[0] && statement->count > next)
                        value = statement->words[next];
                take(cluster, setting, value, FROM_CONFIG,
                     arena_format(cluster->arena, "%s:%u", statement->path, statement->line));
        }
}

static void read_config(struct cluster *cluster, const char *path) {
        struct config_reader reader = {
                        .process = cluster->postmaster,
                        .include = "include",
                        .include_optional = "include_dir",
                        .visit = visit,
                        .data = cluster,
        };

        config_read(&reader, path);
        if (cluster->error == 0 && (reader.error < 0 || reader.cut)) {
                cluster->error = reader.error < 0 ? reader.error : -EFBIG;
                cluster->error_path = path;
        }
}

/* "config_file" and the like, as "--config-file=X", "--config_file=X", "-c config_file=X"; NULL: not there. */
static const char *option(const struct process *process, const char *name) {
        const char *found = NULL;

        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];
                size_t k = 0;

                argument += strncmp(argument, "--", 2) == 0 || strncmp(argument, "-c", 2) == 0 ? 2 : 0;
                while (name[k] && (argument[k] == name[k] || (argument[k] == '-' && name[k] == '_')))
                        k++;
                if (!name[k] && argument[k] == '=')
                        found = argument + k + 1;
        }
        return found;
}

/* Weakest first: the file, what ALTER SYSTEM wrote, the command line. */
static int read_said(struct cluster *cluster) {
        struct process *postmaster = cluster->postmaster;
        const char *folder = process_option(postmaster, "-D"), *file = option(postmaster, "config_file"),
                   *number, *at;

        for (size_t i = 0; i < SETTINGS; i++)
                cluster->said[i].number = ABSENT;
        /* It works in its data folder, which it may know by PGDATA alone, or only from its file. */
        if (!folder || folder[0] != '/')
                folder = NULL;
        if (!file)
                file = folder ? arena_format(cluster->arena, "%s/postgresql.conf", folder)
                              : "postgresql.conf";
        at = folder ? arena_format(cluster->arena, "%s/postgresql.auto.conf", folder)
                    : "postgresql.auto.conf";
        if (!file || !at)
                return -ENOMEM;
        read_config(cluster, file);
        read_config(cluster, at);
        number = process_option(postmaster, "-N");
        if (number)
                take(cluster, CONNECTIONS, number, FROM_ARGUMENT, "-N");
        for (enum setting setting = 0; setting < SETTINGS; setting++) {
                number = option(postmaster, settings[setting].name);
                if (number)
                        take(cluster, setting, number, FROM_ARGUMENT, settings[setting].name);
        }
        return 0;
}

/* @in_force: what the postmaster has in its memory, ABSENT where that is not readable. */
static int explain_source(struct cluster *cluster, enum setting setting, uint64_t in_force,
                          struct parallelism *row) {
        const struct said *said = &cluster->said[setting];

        if (is_known(said->number)) {
                row->source = said->source;
                row->source_detail = said->at;
                if (is_known(in_force) && said->number != in_force)
                        row->configured = said->number;
        } else if (cluster->error < 0) {
                row->unreadable = process_explain(cluster->postmaster, cluster->error_path, cluster->error);
                if (!row->unreadable)
                        return -ENOMEM;
        } else if (!is_known(in_force) || in_force == settings[setting].by_default) {
                row->source = FROM_DEFAULT;
        }
        return 0;
}

/* --- rows --- */

static struct parallelism row_of(const struct cluster *cluster, enum setting setting) {
        struct parallelism row = parallelism_of(RUNTIME, cluster->postmaster);
        const char *version;
        size_t length;

        row.setting = settings[setting].name;
        row.unit = UNIT_PROCESSES;
        row.aware = AWARENESS_NONE;
        row.is_blocking = true;
        if (process_read_file(cluster->postmaster, "PG_VERSION", &version, &length) == 0)
                row.version = arena_string_n(cluster->arena, version, strcspn(version, "\r\n"));
        return row;
}

static int add_connections(struct process_set *set, struct cluster *cluster, uint64_t in_force) {
        struct parallelism row = row_of(cluster, CONNECTIONS);
        int r = explain_source(cluster, CONNECTIONS, in_force, &row);
        uint64_t most = is_known(in_force) ? in_force : cluster->said[CONNECTIONS].number;

        if (r < 0)
                return r;
        row.effective = cluster->backends;
        if (cluster->has_states)
                row.active = cluster->active;
        row.rounding = ROUND_NEVER;
        row.memory_bytes = process_set_memory(set, is_backend, cluster);
        row.how = "fewer connections at work: a pooler in front (PgBouncer: default_pool_size), or smaller "
                  "pools in the clients";
        if (is_known(most)) {
                row.source_detail = arena_format(cluster->arena, "%s%sat most %u",
                                                 row.source_detail ? row.source_detail : "",
                                                 row.source_detail ? ": " : "", (unsigned) most);
                if (!row.source_detail)
                        return -ENOMEM;
        }
        return process_set_add(set, &row);
}

static int add_workers(struct process_set *set, struct cluster *cluster, uint64_t in_force, int error) {
        struct parallelism row = row_of(cluster, WORKERS);
        int r = explain_source(cluster, WORKERS, in_force, &row);

        if (r < 0)
                return r;
        row.effective = in_force;
        row.active = cluster->workers;
        row.rounding = ROUND_UP;
        row.how = "ALTER SYSTEM SET max_parallel_workers = {n}, then SELECT pg_reload_conf(); "
                  "max_parallel_workers_per_gather = 0 keeps a query to one process";
        if (!is_known(in_force)) {
                row.configured = cluster->said[WORKERS].number;
                row.unreadable = process_explain(cluster->postmaster, "the memory",
                                                 error < 0 ? error : -ENOENT);
                if (!row.unreadable)
                        return -ENOMEM;
        }
        return process_set_add(set, &row);
}

static int add_cluster(struct process_set *set, struct process *postmaster) {
        struct cluster cluster = {.arena = set->arena, .postmaster = postmaster};
        struct global_number in_force[SETTINGS];
        int r = read_said(&cluster), error;

        if (r < 0)
                return r;
        for (size_t i = 0; i < SETTINGS; i++)
                in_force[i] = (struct global_number){.symbol = settings[i].symbol, .bytes = 4};
        error = global_numbers_read(postmaster, RUNTIME, in_force, SETTINGS);
        if (error == -ENOMEM)
                return error;
        count(set, &cluster);
        r = add_connections(set, &cluster, in_force[CONNECTIONS].value);
        return r < 0 ? r : add_workers(set, &cluster, in_force[WORKERS].value, error);
}

/* Its children have titles; it keeps its own command line. */
static bool has_children(const struct process_set *set, const struct process *postmaster) {
        for (size_t i = 0; i < set->count; i++)
                if (is_child_of(&set->processes[i], postmaster))
                        return true;
        return false;
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                bool is_postmaster = is_postgres(process) && !process_title_has_prefix(process, TITLE) &&
                                     has_children(set, process);
                int r = is_postmaster ? add_cluster(set, process) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_postgres = {.name = RUNTIME, .find = find};
