/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The subcommands. Each has a file of its own, takes parsed options and returns an exit status; only here, in main.c and
 * in the session is anything said to people.
 */
#include "options.h"

/* Documented in docs/cli.md and in --help; a test checks each. */
enum exit_status {
        EXIT_OK = 0,
        EXIT_FAILED = 1,           /* failed while running */
        EXIT_USAGE = 2,            /* wrong usage: an option, the environment, the configuration file */
        EXIT_CANNOT_MEASURE = 3,   /* nothing can be measured here */
        EXIT_NOT_EXECUTABLE = 126, /* run: the command cannot be executed */
        EXIT_NOT_FOUND = 127,      /* run: there is no such command */
        EXIT_SIGNAL_BASE = 128,    /* run: the command was ended by signal n: 128 + n */
};

struct command {
        const char *name;
        const char *arguments;   /* of the usage line: "[OPTION...] [--] COMMAND [ARGUMENT...]" */
        const char *summary;     /* one line */
        const char *description; /* a few lines for --help */
        const char *statuses;    /* what its exit statuses mean, lines for --help */
        enum command_set set;
        bool takes_arguments;
        int (*run)(const struct options *options, char **arguments);
};

#define COMMAND_STATUSES                                                                                    \
        "  0    done, whatever was found\n"                                                                 \
        "  1    failed while running, or a report could not be written\n"                                   \
        "  2    wrong usage\n"                                                                              \
        "  3    nothing can be measured here\n"

extern const struct command command_watch, command_run, command_check, command_doctor;

/* "throttlescope 0.1.0" is printed by main; reports carry the bare number. */
const char *command_version(void);
