/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/memory.h"
#include "escaped.h"

#define FILE_MAX ((size_t) 64 << 10)
#define GETOPT_FIRST 256 /* above every letter: getopt's value for row i is GETOPT_FIRST + i */

/*
 * The row of the target that is set at @source or above, -1: none. The three rows that name a target count as one option: a stronger
 * one replaces whichever of them a weaker source has set, and two of them from one source contradict each other.
 */
static int target_row(const struct options *options, enum option_source source) {
        for (size_t i = 0; i < option_rows_count; i++)
                if (option_rows[i].names_target && options->source[i] != SOURCE_DEFAULT &&
                    options->source[i] >= source)
                        return (int) i;
        return -1;
}

static bool is_overruled(const struct options *options, size_t i, enum option_source source) {
        return options->source[i] > source ||
               (option_rows[i].names_target && target_row(options, source + 1) >= 0);
}

/* The row as the person who set it has written it. */
static const char *name_at(const struct option_row *row, enum option_source source) {
        return source == SOURCE_ENVIRONMENT ? row->environment : row->name;
}

static int check_target(const struct options *options, size_t i, enum option_source source,
                        struct why *why) {
        int other = option_rows[i].names_target ? target_row(options, source) : -1;
        const char *dashes = source == SOURCE_FLAG ? "--" : "";

        if (other < 0 || (size_t) other == i)
                return 0;
        return why_set(why, -EINVAL, "%s%s and %s%s exclude each other: name one target", dashes,
                       name_at(&option_rows[other], source), dashes, name_at(&option_rows[i], source));
}

static int set_value(struct options *options, size_t i, enum option_source source, const char *text,
                     struct why *why) {
        int r;

        if (is_overruled(options, i, source))
                return 0;
        r = check_target(options, i, source, why);
        if (r < 0)
                return r;
        r = option_parse_value(&option_rows[i], text, options, why);
        if (r < 0)
                return why_wrap(why, r, "%s%s", source == SOURCE_FLAG ? "--" : "",
                                name_at(&option_rows[i], source));
        options->source[i] = (unsigned char) source;
        return 0;
}

/* Defaults go through the parser too: a bad one cannot hide. */
static int set_defaults(struct options *options, struct why *why) {
        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *row = &option_rows[i];
                int r;

                if (row->type != OPTION_TEXT)
                        *(uint64_t *) ((char *) options + row->offset) = ABSENT;
                if (!row->initial)
                        continue;
                r = set_value(options, i, SOURCE_DEFAULT, row->initial, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Long and short forms for getopt, of the rows that @command takes. */
static void fill_getopt(enum command_set command, struct option longs[static OPTIONS_MAX + 1],
                        char shorts[static 2 * OPTIONS_MAX + 3]) {
        /* "+": stop at the first argument, which may be run's command with options of its own. ":": tell a missing value. */
        size_t n = 0, used = 0;

        if (command == COMMAND_RUN)
                shorts[used++] = '+';
        shorts[used++] = ':';
        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *row = &option_rows[i];
                int has_value = row->type == OPTION_SWITCH ? no_argument : required_argument;

                if (!(row->commands & command))
                        continue;
                longs[n++] = (struct option){row->name, has_value, NULL, GETOPT_FIRST + (int) i};
                if (!row->letter)
                        continue;
                shorts[used++] = row->letter;
                if (has_value)
                        shorts[used++] = ':';
        }
        longs[n] = (struct option){0};
        shorts[used] = '\0';
}

static int row_by_letter(int letter) {
        for (size_t i = 0; i < option_rows_count; i++)
                if (option_rows[i].letter && option_rows[i].letter == letter)
                        return (int) i;
        return -1;
}

static int find_row(const char *name) {
        for (size_t i = 0; i < option_rows_count; i++)
                if (strcmp(option_rows[i].name, name) == 0)
                        return (int) i;
        return -1;
}

/* An option of another command is told apart from a misspelt one. */
static int refuse_flag(const char *command, const char *flag, struct why *why) {
        char name[64] = "";

        if (strncmp(flag, "--", 2) == 0 && strcspn(flag + 2, "=") < sizeof(name))
                memcpy(name, flag + 2, strcspn(flag + 2, "="));
        if (find_row(name) >= 0 && strchr(flag, '=') && option_rows[find_row(name)].type == OPTION_SWITCH)
                return why_set(why, -EINVAL, "--%s takes no value", name);
        if (find_row(name) >= 0)
                return why_set(why, -EINVAL, "%s has no option --%s", command, name);
        return why_set(why, -EINVAL, "unknown option %s (%s --help shows all)", escaped(flag), command);
}

/* getopt takes any beginning of a name; what is short today may fit two options tomorrow. */
static bool is_abbreviated(const struct option_row *row, char *const *argv) {
        const char *flag = optarg && optarg == argv[optind - 1] ? argv[optind - 2] : argv[optind - 1];

        return strcspn(flag + 2, "=") != strlen(row->name);
}

static int parse_flags(enum command_set command, int argc, char **argv, struct options *options,
                       struct why *why) {
        struct option longs[OPTIONS_MAX + 1];
        char shorts[2 * OPTIONS_MAX + 3];
        int c, r;

        fill_getopt(command, longs, shorts);
        opterr = 0;
        optind = 0; /* starts a new parse in glibc and musl, also of another vector */
        while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
                int i = c >= GETOPT_FIRST ? c - GETOPT_FIRST : row_by_letter(c);

                if (c == ':')
                        return why_set(why, -EINVAL, "%s needs a value", escaped(argv[optind - 1]));
                if (c == '?' || i < 0) {
                        char letter[3] = {'-', (char) optopt, '\0'};

                        return refuse_flag(argv[0],
                                           optopt && optopt < GETOPT_FIRST ? letter : argv[optind - 1], why);
                }
                if (c >= GETOPT_FIRST && is_abbreviated(&option_rows[i], argv))
                        return why_set(why, -EINVAL, "the option is --%s, it cannot be shortened",
                                       option_rows[i].name);
                r = set_value(options, (size_t) i, SOURCE_FLAG, optarg ? optarg : "yes", why);
                if (r < 0)
                        return r;
        }
        options->arguments = argv + optind;
        return 0;
}

static const char *environment_value(char *const *environment, const char *name) {
        size_t length = strlen(name);

        for (; environment && *environment; environment++)
                if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
                        return *environment + length + 1;
        return NULL;
}

static int parse_environment(char *const *environment, struct options *options, struct why *why) {
        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *row = &option_rows[i];
                const char *value =
                                row->environment ? environment_value(environment, row->environment) : NULL;
                int r;

                /* Templates leave variables empty rather than out. */
                if (!value || *value == '\0')
                        continue;
                r = set_value(options, i, SOURCE_ENVIRONMENT, value, why);
                if (r < 0)
                        return why_wrap(why, r, "environment");
        }
        return 0;
}

static char *trim(char *text) {
        size_t length;

        text += strspn(text, " \t\r");
        length = strlen(text);
        while (length > 0 && strchr(" \t\r", text[length - 1]))
                text[--length] = '\0';
        return text;
}

/* A # at the start or after a blank begins a comment: it may stand inside a path. */
static void cut_comment(char *line) {
        for (char *p = line; *p; p++)
                if (*p == '#' && (p == line || p[-1] == ' ' || p[-1] == '\t')) {
                        *p = '\0';
                        return;
                }
}

static int parse_line(char *line, unsigned number, unsigned *lines, struct options *options,
                      struct why *why) {
        char *value = strchr(line, '='), *key;
        int i, r;

        if (!value)
                return why_set(why, -EINVAL, "expected \"name = value\"");
        *value++ = '\0';
        key = trim(line);
        value = trim(value);
        i = find_row(key);
        if (i < 0 || !option_rows[i].environment)
                return why_set(why, -EINVAL, "unknown key '%s'", escaped(key));
        if (option_rows[i].offset == offsetof(struct options, config))
                return why_set(why, -EINVAL, "a configuration file cannot name another one");
        if (lines[i])
                return why_set(why, -EINVAL, "%s was already set in line %u", key, lines[i]);
        lines[i] = number;
        if (is_overruled(options, (size_t) i, SOURCE_FILE)) {
                /* Checked all the same: a file is right or wrong as a whole. */
                struct options scratch;

                r = option_parse_value(&option_rows[i], value, &scratch, why);
                return r < 0 ? why_wrap(why, r, "%s", key) : 0;
        }
        return set_value(options, (size_t) i, SOURCE_FILE, value, why);
}

int options_parse_file(char *text, size_t length, struct options *options, struct why *why) {
        unsigned lines[OPTIONS_MAX] = {0}, number = 0;
        char *next = text;

        if (memchr(text, '\0', length))
                return why_set(why, -EINVAL, "this is not a text file");
        while (next) {
                char *line = next;
                int r;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                number++;
                cut_comment(line);
                line = trim(line);
                if (*line == '\0')
                        continue;
                r = parse_line(line, number, lines, options, why);
                if (r < 0)
                        return why_wrap(why, r, "line %u", number);
        }
        return 0;
}

/* Not through a root handle: this file is the agent's own, also when it reads another machine's. */
static int read_file(const char *path, char **ret_text, size_t *ret_length) {
        cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        cleanup_free char *text = malloc(FILE_MAX + 1);
        size_t length = 0;

        if (fd < 0)
                return -errno;
        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(fd, text + length, FILE_MAX + 1 - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                length += (size_t) n;
                if (length > FILE_MAX)
                        return -EFBIG;
                if (n == 0)
                        break;
        }
        text[length] = '\0';
        *ret_text = take_ptr(text);
        *ret_length = length;
        return 0;
}

int options_parse(enum command_set command, int argc, char **argv, char *const *environment,
                  struct options *ret_options, struct why *why) {
        size_t length = 0;
        int r;

        *ret_options = (struct options){0};
        r = set_defaults(ret_options, why);
        if (r < 0)
                return r;
        r = parse_flags(command, argc, argv, ret_options, why);
        if (r < 0 || ret_options->help == 1 || ret_options->version == 1)
                return r;
        r = parse_environment(environment, ret_options, why);
        if (r < 0 || !ret_options->config)
                return r;
        r = read_file(ret_options->config, &ret_options->file_text, &length);
        if (r < 0)
                return why_set(why, r, "configuration file %s: %s", escaped(ret_options->config),
                               strerror(-r));
        r = options_parse_file(ret_options->file_text, length, ret_options, why);
        return r < 0 ? why_wrap(why, r, "configuration file %s", escaped(ret_options->config)) : 0;
}

void options_release(struct options *options) {
        free(options->file_text);
        *options = (struct options){0};
}
