/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MariaDB and MySQL: a thread for each connection, or MariaDB's pool, which has a group of threads for each CPU of the affinity and knows no
 * quota. What is in force is read from memory: both export their settings for plugins.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "config_file.h"
#include "global_number.h"
#include "runtime.h"

#define HANDLING_POOL 2u /* thread_handling: SCHEDULER_TYPES of both */

enum setting { HANDLING, POOL_SIZE, CONNECTIONS, SETTINGS };

static const char *const names[SETTINGS] = {
                [HANDLING] = "thread_handling",
                [POOL_SIZE] = "thread_pool_size",
                [CONNECTIONS] = "max_connections",
};

#define DEFAULT_CONNECTIONS 151u

/* Of its memory. */
enum number { NUMBER_HANDLING, NUMBER_POOL, NUMBER_MOST, NUMBER_THREADS, NUMBER_DUMPS, NUMBER_LOCAL };

struct said {
        const char *value; /* NULL: nowhere */
        enum parallelism_source source;
        const char *at;
};

struct database {
        struct arena *arena;
        struct process *process;
        const char *name; /* "mariadb", "mysql" */
        struct said said[SETTINGS];
        bool is_inside; /* a section that the server reads */
        int error;      /* of a configuration that could not be read, negative errno */
        const char *error_path;

        uint64_t handling, pool_size, most, connections; /* ABSENT: not readable */
        int memory_error;
};

static bool is_database(const struct process *process) {
        const char *program = process_program(process);

        return strcmp(program, "mariadbd") == 0 || strcmp(program, "mysqld") == 0;
}

/* --- what was configured --- */

/* "[mysqld]", "[mariadb-10.11]", but not "[mysqldump]". */
static bool is_section_of_server(const char *word) {
        static const char *const sections[] = {"mariadbd", "mariadb", "mysqld", "server"};

        for (size_t i = 0; i < ELEMENTS(sections); i++) {
                size_t length = strlen(sections[i]);

                if (strncmp(word + 1, sections[i], length) != 0)
                        continue;
                word += 1 + length;
                return strcmp(word, "]") == 0 || (word[0] == '-' && isdigit((unsigned char) word[1]));
        }
        return false;
}

/* Dashes stand for underscores. The length of the name, 0: another option. */
static size_t match(const char *word, enum setting setting) {
        const char *name = names[setting];
        size_t i = 0;

        for (; name[i]; i++)
                if (word[i] != name[i] && !(name[i] == '_' && word[i] == '-'))
                        return 0;
        return word[i] == '\0' || word[i] == '=' ? i : 0;
}

static void visit(const struct config_statement *statement, void *data) {
        struct database *database = data;
        const char *word = statement->words[0];

        if (word[0] == '[') {
                database->is_inside = is_section_of_server(word);
                return;
        }
        if (!database->is_inside || statement->count < 2)
                return;
        if (strncmp(word, "loose-", 6) == 0 || strncmp(word, "loose_", 6) == 0)
                word += 6;
        for (enum setting setting = 0; setting < SETTINGS; setting++)
                if (match(word, setting) > 0)
                        database->said[setting] = (struct said){
                                        .value = arena_string(database->arena, statement->words[1]),
                                        .source = FROM_CONFIG,
                                        .at = arena_format(database->arena, "%s:%u", statement->path,
                                                           statement->line),
                        };
}

static void read_config(struct database *database, const char *path, bool is_optional) {
        struct config_reader reader = {
                        .process = database->process,
                        .syntax = CONFIG_INI,
                        .include = "!include",
                        .include_optional = "!includedir",
                        .visit = visit,
                        .data = database,
        };

        database->is_inside = false;
        config_read(&reader, path);
        if (is_optional && reader.error == -ENOENT && !reader.cut)
                return;
        if (database->error == 0 && (reader.error < 0 || reader.cut)) {
                database->error = reader.error < 0 ? reader.error : -EFBIG;
                database->error_path = path;
        }
}

/* Weakest first: its files, then its command line. */
static void read_said(struct database *database) {
        const struct process *process = database->process;
        const char *only = process_option(process, "--defaults-file");

        if (only) {
                read_config(database, only, false);
        } else if (process_argument(process, "--no-defaults") == 0) {
                read_config(database, "/etc/my.cnf", true);
                read_config(database, "/etc/mysql/my.cnf", true);
        }
        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];

                if (strncmp(argument, "--", 2) != 0)
                        continue;
                for (enum setting setting = 0; setting < SETTINGS; setting++) {
                        size_t length = match(argument + 2, setting);
                        const char *value = argument + 2 + length;

                        if (length == 0)
                                continue;
                        /* "--name=value" and "--name value" */
                        value = value[0] == '='         ? value + 1
                                : i + 1 < process->argc ? process->argv[i + 1]
                                                        : "";
                        database->said[setting] = (struct said){
                                        .value = value, .source = FROM_ARGUMENT, .at = names[setting]};
                }
        }
}

/* --- what is in force --- */

static uint64_t without(uint64_t all, uint64_t others) {
        return is_known(others) && others <= all ? all - others : all;
}

static void take_memory(struct database *database, const struct global_number *numbers) {
        database->handling = numbers[NUMBER_HANDLING].value;
        database->pool_size = numbers[NUMBER_POOL].value;
        database->most = numbers[NUMBER_MOST].value;
        database->connections = numbers[NUMBER_THREADS].value;
}

/* Which of the two it is shows in the names that its memory has; @database->memory_error where that is not readable. */
static void read_memory(struct database *database) {
        struct global_number mariadb[] = {
                        [NUMBER_HANDLING] = {"thread_handling", 8, 0},
                        [NUMBER_POOL] = {"threadpool_size", 4, 0},
                        [NUMBER_MOST] = {"max_connections", 8, 0},
                        [NUMBER_THREADS] = {"_ZN9THD_count5countE", 4, 0},
                        [NUMBER_DUMPS] = {"binlog_dump_thread_count", 4, 0},
                        [NUMBER_LOCAL] = {"local_connection_thread_count", 4, 0},
        };
        struct global_number mysql[] = {
                        [NUMBER_HANDLING] = {"_ZN26Connection_handler_manager15thread_handlingE", 8, 0},
                        [NUMBER_POOL] = {"threadpool_size", 4, 0}, /* Percona's */
                        [NUMBER_MOST] = {"max_connections", 8, 0},
                        [NUMBER_THREADS] = {"_ZN26Connection_handler_manager16connection_countE", 4, 0},
        };

        database->name = strcmp(process_program(database->process), "mysqld") == 0 ? "mysql" : "mariadb";
        database->memory_error =
                        global_numbers_read(database->process, "mariadb", mariadb, ELEMENTS(mariadb));
        take_memory(database, mariadb);
        if (database->memory_error < 0)
                return;
        if (is_known(database->connections)) {
                /*
                 * Threads_connected and Threads_cached: a thread keeps its session for the next client. Who sends a binary log, or
                 * serves the server itself, is no client.
                 */
                database->name = "mariadb";
                database->connections = without(database->connections, mariadb[NUMBER_DUMPS].value);
                database->connections = without(database->connections, mariadb[NUMBER_LOCAL].value);
                return;
        }
        database->memory_error = global_numbers_read(database->process, "mysql", mysql, ELEMENTS(mysql));
        take_memory(database, mysql);
        if (database->memory_error == 0 && !is_known(database->connections))
                database->memory_error = -ENOENT; /* stripped of all names */
}

static bool has_pool(const struct database *database) {
        const char *said = database->said[HANDLING].value;

        return is_known(database->handling) ? database->handling == HANDLING_POOL
                                            : said && strcmp(said, "pool-of-threads") == 0;
}

/* --- rows --- */

/* @in_force and @by_default may be ABSENT: not readable, not known. */
static int explain_source(const struct database *database, enum setting setting, uint64_t in_force,
                          uint64_t by_default, struct parallelism *row) {
        const struct said *said = &database->said[setting];
        uint64_t number;

        if (said->value && said->at && parallelism_parse(said->value, &number) >= 0) {
                row->source = said->source;
                row->source_detail = said->at;
                if (!is_known(in_force) || number != in_force)
                        row->configured = number;
        } else if (database->error < 0) {
                row->unreadable = process_explain(database->process, database->error_path, database->error);
                if (!row->unreadable)
                        return -ENOMEM;
        } else if (!is_known(in_force) || in_force == by_default) {
                row->source = FROM_DEFAULT;
        }
        if (database->memory_error < 0) {
                row->unreadable = process_explain(database->process,
                                                  database->memory_error == -ENOENT ? "the table of symbols"
                                                                                    : "the memory",
                                                  database->memory_error);
                if (!row->unreadable)
                        return -ENOMEM;
        }
        return 0;
}

static int add_pool(struct process_set *set, struct database *database) {
        struct parallelism row = parallelism_of(database->name, database->process);
        unsigned cpus = process_cpus(set, database->process, false);
        int r = explain_source(database, POOL_SIZE, database->pool_size, cpus > 0 ? cpus : ABSENT, &row);

        if (r < 0)
                return r;
        row.setting = names[POOL_SIZE];
        row.effective = database->pool_size;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_UP;
        row.how = "SET GLOBAL thread_pool_size = {n}, and thread_pool_size = {n} below [mysqld] for the "
                  "next "
                  "start";
        return process_set_add(set, &row);
}

static int add_connections(struct process_set *set, struct database *database) {
        struct parallelism row = parallelism_of(database->name, database->process);
        int r = explain_source(database, CONNECTIONS, database->most, DEFAULT_CONNECTIONS, &row);

        if (r < 0)
                return r;
        row.setting = names[CONNECTIONS];
        row.effective = database->connections;
        row.aware = AWARENESS_NONE;
        row.rounding = ROUND_NEVER;
        row.is_blocking = true;
        row.how = strcmp(database->name, "mariadb") == 0
                                  ? "thread_handling = pool-of-threads, or smaller pools in the clients"
                                  : "smaller pools in the clients, or a proxy that pools in front";
        if (is_known(database->most)) {
                row.source_detail = arena_format(database->arena, "%s%sat most %u",
                                                 row.source_detail ? row.source_detail : "",
                                                 row.source_detail ? ": " : "", (unsigned) database->most);
                if (!row.source_detail)
                        return -ENOMEM;
        }
        return process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct database database = {.arena = set->arena, .process = &set->processes[i]};
                int r;

                if (!is_database(database.process))
                        continue;
                read_said(&database);
                read_memory(&database);
                if (database.memory_error == -ENOMEM)
                        return -ENOMEM;
                r = has_pool(&database) ? add_pool(set, &database) : add_connections(set, &database);
                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_mysql = {.name = "mysql", .find = find};
