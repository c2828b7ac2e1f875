/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The options: one row each (flag, environment name, type, bounds, default, help), from which parsing, --help and
 * --print-config are made. A flag beats the environment, which beats the configuration file, which beats the default.
 * Texts are borrowed from the arguments, the environment, or the file's text, which the struct owns.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/absent.h"
#include "../base/text.h"
#include "../base/why.h"

/* Which commands take an option: bits of a set. */
enum command_set {
        COMMAND_WATCH = 1,
        COMMAND_RUN = 2,
        COMMAND_CHECK = 4,
        COMMAND_DOCTOR = 8,
        COMMAND_ALL = 15,
};

enum option_type {
        OPTION_SWITCH, /* yes or no; as a flag it takes no value */
        OPTION_NUMBER,
        OPTION_DURATION, /* ns; the unit is part of the text */
        OPTION_SHARE,    /* parts per million; "5%" */
        OPTION_CHOICE,   /* index into the words of `value` */
        OPTION_TEXT,
        OPTION_TYPE_COUNT,
};

enum option_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_FLAG, SOURCE_COUNT };

enum output_form { FORM_TEXT, FORM_JSON };

#define OPTIONS_MAX 32

/* Every value that is not a text is a uint64_t: one type for all rows. ABSENT: not set. */
struct options {
        uint64_t interval_ns, for_ns, summary_ns;
        uint64_t output; /* enum output_form */
        uint64_t method; /* enum probe_method */
        uint64_t scope;  /* enum target_scope: self, pod or node */
        uint64_t pid;
        uint64_t threads;
        uint64_t warn_lost_ppm, warn_stall_ns;
        uint64_t exit_code;
        uint64_t verbose, help, version, print_config;
        const char *cgroup, *root, *capture, *config, *log;

        unsigned char source[OPTIONS_MAX]; /* enum option_source, by row */
        char **arguments;                  /* what follows the options, NULL-terminated */
        char *file_text;
};

struct option_row {
        const char *name;        /* the flag without its dashes, and the key in a file */
        char letter;             /* 0: none */
        const char *environment; /* NULL: flag only */
        enum option_type type;
        size_t offset;
        uint64_t min, max;   /* of a number, a duration (ns) or a share (ppm), both allowed */
        const char *initial; /* NULL: not set */
        const char *value;   /* what stands for the value in the help; the words of a choice: "text|json" */
        enum command_set commands;
        bool names_target; /* of these rows only one may be set */
        const char *help;
};

extern const struct option_row option_rows[];
extern const size_t option_rows_count;

/*
 * @argv[0] is the command's name. @environment: NULL-terminated, as environ. An option of the environment or the file that
 * this command does not take is not an error: both are shared by all commands. 0, or -EINVAL, -ERANGE, a failure to read
 * the file, … with a sentence. With --help or --version among the flags nothing else is looked at.
 * *ret_options is filled also on failure and always needs options_release().
 */
int options_parse(enum command_set command, int argc, char **argv, char *const *environment,
                  struct options *ret_options, struct why *why);
void options_release(struct options *options);

/* One value into its place: 0, or -EINVAL / -ERANGE with a sentence that names the value, not where it came from. */
int option_parse_value(const struct option_row *row, const char *text, struct options *options,
                       struct why *why);
/* The value as the parser takes it; false if it is not set. */
bool option_format_value(const struct option_row *row, const struct options *options, struct text *out);
/* Reads "key = value" lines into @options where nothing stronger is set; @text is written to. */
int options_parse_file(char *text, size_t length, struct options *options, struct why *why);

/* @words with a line end, broken at blanks to lines of 100 columns; the text is already in column @indent. */
void options_wrap(struct text *out, const char *words, size_t indent);
/* The option lines of a command's --help. */
void options_help(enum command_set command, struct text *out);
/* All effective values, each with where it comes from; can be read back with --config. */
void options_print(enum command_set command, const struct options *options, struct text *out);
