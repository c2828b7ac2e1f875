/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options as text, in both directions, and what is printed about the table. */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "escaped.h"

#define HELP_COLUMNS 100
#define HELP_INDENT 31
static uint64_t *number_place(const struct option_row *row, struct options *options) {
        return (uint64_t *) ((char *) options + row->offset);
}

static const char **text_place(const struct option_row *row, struct options *options) {
        return (const char **) ((char *) options + row->offset);
}

/* "90s", "1h": the largest unit that divides, so that nothing is lost and the parser takes it back. */
static void add_duration(struct text *out, uint64_t ns) {
        static const struct {
                const char *name;
                uint64_t ns;
        } units[] = {
                        {"h", 3600 * NS_PER_S}, {"m", 60 * NS_PER_S}, {"s", NS_PER_S},
                        {"ms", NS_PER_MS},      {"us", NS_PER_US},    {"ns", 1},
        };
        size_t i = 0;

        while (i + 1 < ELEMENTS(units) && ns % units[i].ns != 0)
                i++;
        text_add(out, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
}

static void add_share(struct text *out, uint64_t ppm) {
        uint64_t fraction = ppm % 10000;
        int digits = 4;

        text_add(out, "%" PRIu64, ppm / 10000);
        for (; fraction > 0 && fraction % 10 == 0; digits--)
                fraction /= 10;
        if (fraction > 0)
                text_add(out, ".%0*" PRIu64, digits, fraction);
        text_add(out, "%%");
}

static void add_number(struct text *out, const struct option_row *row, uint64_t value) {
        switch (row->type) {
        case OPTION_DURATION:
                add_duration(out, value);
                return;
        case OPTION_SHARE:
                add_share(out, value);
                return;
        case OPTION_SWITCH:
                text_add(out, "%s", value ? "yes" : "no");
                return;
        case OPTION_NUMBER:
        case OPTION_CHOICE:
        case OPTION_TEXT:
        case OPTION_TYPE_COUNT:
                text_add(out, "%" PRIu64, value);
                return;
        }
}

/* Word @index of "a|b|c"; NULL past the end. */
static const char *choice_word(const char *words, uint64_t index, size_t *ret_length) {
        for (; index > 0; index--) {
                words = strchr(words, '|');
                if (!words)
                        return NULL;
                words++;
        }
        *ret_length = strcspn(words, "|");
        return words;
}

static int parse_choice(const char *words, const char *text, uint64_t *ret_index, struct why *why) {
        size_t length;
        const char *word;

        for (uint64_t i = 0; (word = choice_word(words, i, &length)); i++)
                if (strlen(text) == length && strncmp(word, text, length) == 0) {
                        *ret_index = i;
                        return 0;
                }
        return why_set(why, -EINVAL, "'%s' is none of %s", escaped(text), words);
}

static int parse_switch(const char *text, uint64_t *ret_value, struct why *why) {
        static const char *const words[2][3] = {{"no", "false", "0"}, {"yes", "true", "1"}};

        for (uint64_t value = 0; value < 2; value++)
                for (size_t i = 0; i < ELEMENTS(words[value]); i++)
                        if (strcmp(words[value][i], text) == 0) {
                                *ret_value = value;
                                return 0;
                        }
        return why_set(why, -EINVAL, "'%s' is neither yes nor no", escaped(text));
}

static int parse_bounded(const struct option_row *row, const char *text, uint64_t *ret_value,
                         struct why *why) {
        struct text bounds cleanup_text = {.max = 128};
        uint64_t value = 0;
        uint32_t ppm = 0;
        int r;

        if (row->type == OPTION_DURATION)
                r = number_parse_duration(text, &value);
        else if (row->type == OPTION_SHARE) {
                r = number_parse_share(text, &ppm);
                value = ppm;
        } else
                r = number_parse_u64(text, &value);
        if (r == -EINVAL)
                return why_set(why, r, "'%s' is not a %s", escaped(text),
                               row->type == OPTION_DURATION ? "duration with its unit (500ms, 10s, 1m)"
                               : row->type == OPTION_SHARE  ? "share (5%, 0.5%)"
                                                            : "number");
        if (r < 0 || value < row->min || value > row->max) {
                add_number(&bounds, row, row->min);
                text_add(&bounds, " to ");
                add_number(&bounds, row, row->max);
                return why_set(why, -ERANGE, "%s is out of range (%s)", escaped(text), text_string(&bounds));
        }
        *ret_value = value;
        return 0;
}

int option_parse_value(const struct option_row *row, const char *text, struct options *options,
                       struct why *why) {
        switch (row->type) {
        case OPTION_SWITCH:
                return parse_switch(text, number_place(row, options), why);
        case OPTION_CHOICE:
                return parse_choice(row->value, text, number_place(row, options), why);
        case OPTION_NUMBER:
        case OPTION_DURATION:
        case OPTION_SHARE:
                return parse_bounded(row, text, number_place(row, options), why);
        case OPTION_TEXT:
                if (*text == '\0')
                        return why_set(why, -EINVAL, "the value is empty");
                *text_place(row, options) = text;
                return 0;
        case OPTION_TYPE_COUNT:
                break;
        }
        return -EINVAL;
}

bool option_format_value(const struct option_row *row, const struct options *options, struct text *out) {
        struct options *place = (struct options *) options; /* only read through it */
        const char *word;
        size_t length;

        if (row->type == OPTION_TEXT) {
                if (!*text_place(row, place))
                        return false;
                text_add(out, "%s", *text_place(row, place));
                return true;
        }
        if (!is_known(*number_place(row, place)))
                return false;
        if (row->type == OPTION_CHOICE) {
                word = choice_word(row->value, *number_place(row, place), &length);
                if (!word)
                        return false;
                text_add_n(out, word, length);
        } else
                add_number(out, row, *number_place(row, place));
        return true;
}

void options_wrap(struct text *out, const char *words, size_t indent) {
        size_t column = indent;

        while (*words) {
                size_t length = strcspn(words, " ");

                if (column > indent && column + 1 + length > HELP_COLUMNS) {
                        text_add(out, "\n%*s", (int) indent, "");
                        column = indent;
                }
                text_add(out, "%s%.*s", column > indent ? " " : "", (int) length, words);
                column += length + (column > indent);
                words += length;
                words += strspn(words, " ");
        }
        text_add(out, "\n");
}

void options_help(enum command_set command, struct text *out) {
        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *row = &option_rows[i];
                char left[64], short_form[8] = "    ", words[512];

                if (!(row->commands & command))
                        continue;
                if (row->letter)
                        (void) snprintf(short_form, sizeof(short_form), "-%c, ", row->letter);
                (void) snprintf(left, sizeof(left), "  %s--%s%s%s", short_form, row->name,
                                row->value ? " " : "", row->value ? row->value : "");
                if (strlen(left) + 1 > HELP_INDENT)
                        text_add(out, "%s\n%*s", left, HELP_INDENT, "");
                else
                        text_add(out, "%-*s", HELP_INDENT, left);
                (void) snprintf(words, sizeof(words), "%s%s%s%s", row->help,
                                row->type != OPTION_SWITCH && row->initial ? " (" : "",
                                row->type != OPTION_SWITCH && row->initial ? row->initial : "",
                                row->type != OPTION_SWITCH && row->initial ? ")" : "");
                options_wrap(out, words, HELP_INDENT);
        }
}

void options_print(enum command_set command, const struct options *options, struct text *out) {
        static const char *const sources[SOURCE_COUNT] = {
                        [SOURCE_DEFAULT] = "default",
                        [SOURCE_FILE] = "file",
                        [SOURCE_ENVIRONMENT] = "environment",
                        [SOURCE_FLAG] = "flag",
        };

        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *row = &option_rows[i];
                struct text value cleanup_text = {.max = 8192};

                if (!(row->commands & command) || !row->environment)
                        continue;
                /* What is not set, and the file itself, which a file cannot name, stand there as comments. */
                if (!option_format_value(row, options, &value))
                        text_add(out, "# %s =\n", row->name);
                else
                        text_add(out, "%s%s = %s  # %s\n", strcmp(row->name, "config") == 0 ? "# " : "",
                                 row->name, text_string(&value), sources[options->source[i]]);
        }
}
