/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erlang and Elixir: a scheduler thread for each CPU, of which only those online run anything. Since OTP 23 the quota of its own group sets the
 * number online once, at the start. The threads tell the total, so what is online is known only where the command line says it.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "runtime.h"

#define RUNTIME "beam"
#define NAME "erts_sched_"    /* since OTP 26: erts_sched_1 */
#define OLD_NAME "_scheduler" /* before: 1_scheduler */

/* "1_scheduler", but not "1_dirty_cpu_sch". */
static bool is_old_scheduler(const char *name) {
        size_t digits = strspn(name, "0123456789");

        return digits > 0 && strcmp(name + digits, OLD_NAME) == 0;
}

/* *ret_is_new: their names begin alike. Negative errno. */
static ssize_t count_schedulers(struct process *process, bool *ret_is_new) {
        const struct process_thread *threads;
        size_t count;
        ssize_t found = process_count_threads(process, NAME);

        *ret_is_new = found > 0;
        if (found != 0)
                return found;
        int r = process_threads(process, &threads, &count);
        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++)
                found += is_old_scheduler(threads[i].name);
        return found;
}

/* The emulator's own options end at the first "--": what stands behind it is the program's. "-S 5:3", "-S5:3"; erl turns "+S" into "-S". */
static const char *emulator_option(const struct process *process, const char *letter) {
        const char *found = NULL;
        size_t length = strlen(letter);

        for (size_t i = 1; i < process->argc && strcmp(process->argv[i], "--") != 0; i++) {
                const char *argument = process->argv[i];

                if ((argument[0] != '-' && argument[0] != '+') || strncmp(argument + 1, letter, length) != 0)
                        continue;
                argument += 1 + length;
                if (argument[0] == '\0' && i + 1 < process->argc)
                        found = process->argv[++i];
                else if (isdigit((unsigned char) argument[0]) || argument[0] == ':')
                        found = argument;
        }
        return found;
}

/* "TOTAL:ONLINE", "TOTAL", ":ONLINE"; both are ABSENT where they are not said, or count from the number of CPUs (0, negative). */
static void parse_schedulers(struct arena *arena, const char *text, uint64_t *ret_total,
                             uint64_t *ret_online) {
        const char *colon = strchr(text, ':'),
                   *total = colon ? arena_string_n(arena, text, (size_t) (colon - text)) : text;
        uint64_t number;

        *ret_total = *ret_online = ABSENT;
        if (total && parallelism_parse(total, &number) >= 0 && number > 0)
                *ret_total = number;
        if (colon && parallelism_parse(colon + 1, &number) >= 0 && number > 0)
                *ret_online = number;
}

/* Schedulers that are never idle without spinning a while, unless "+sbwt none" says so. */
static bool spins(const struct process *process) {
        const char *threshold = emulator_option(process, "sbwt");

        return !threshold || strcmp(threshold, "none") != 0;
}

static int add(struct process_set *set, struct process *process) {
        struct parallelism row = parallelism_of(RUNTIME, process);
        const char *said = emulator_option(process, "S");
        uint64_t total = ABSENT, online = ABSENT;
        bool is_new;
        ssize_t threads = count_schedulers(process, &is_new);

        /* One that is only starting. */
        if (threads == 0)
                return 0;
        row.setting = "+S";
        row.rounding = ROUND_DOWN;
        row.spins = spins(process);
        row.threads_name = is_new ? NAME : NULL;
        row.how = "+S {n}:{n} in ERL_FLAGS, ELIXIR_ERL_OPTIONS or vm.args, then restart; +sbwt none stops "
                  "the "
                  "schedulers' busy waiting";
        if (said)
                parse_schedulers(set->arena, said, &total, &online);
        if (is_known(online) && (threads < 0 || online <= (uint64_t) threads)) {
                row.effective = online;
        } else if (is_known(total) && threads > 0 && total == (uint64_t) threads) {
                row.effective = total;
        } else if (threads == 1) {
                row.effective = 1;
        } else {
                /* Of how many the quota has left online, its memory would have to say. */
                row.unreadable =
                                threads < 0 ? process_explain(process, "the list of threads", (int) threads)
                                            : arena_format(set->arena,
                                                           "how many of the %u schedulers of process %u are "
                                                           "online is not readable: its command line does "
                                                           "not say it; +S TOTAL:ONLINE would",
                                                           (unsigned) threads, process->pid);
                if (!row.unreadable)
                        return -ENOMEM;
        }
        row.source = said ? FROM_ARGUMENT : FROM_DEFAULT;
        if (said) {
                row.source_detail = arena_format(set->arena, "+S %s", said);
                if (!row.source_detail)
                        return -ENOMEM;
        }
        return process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                const char *program = process_program(&set->processes[i]);
                int r = strcmp(program, "beam.smp") == 0 ? add(set, &set->processes[i]) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_beam = {.name = RUNTIME, .find = find};
