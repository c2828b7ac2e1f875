/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "../../agent/base/memory.h"
#include "../../agent/cmd/options.h"
#include "../../agent/probe/probe.h"

#define WORDS_MAX 12
#define LONG_LINE 70000

/* One parse: space separated flags, newline separated environment, the text of a file (NULL: none). */
struct parse {
        char flags[512], environment[512], name[4], config_flag[12];
        char *argv[WORDS_MAX + 4], *envp[WORDS_MAX];
        char path[64];
        struct options options;
        struct why why;
        int r;
};

static size_t split(char *text, const char *separator, char **out) {
        size_t count = 0;
        char *rest = text, *word;

        while ((word = strsep(&rest, separator)))
                if (*word)
                        out[count++] = word;
        return count;
}

static void write_file(const char *path, const char *text) {
        FILE *file = fopen(path, "we");

        cr_assert_not_null(file);
        cr_assert_geq(fputs(text, file), 0);
        cr_assert_eq(fclose(file), 0);
}

static int parse(struct parse *parse, enum command_set command, const char *flags, const char *environment,
                 const char *file) {
        size_t argc = 1;

        *parse = (struct parse){.name = "x", .config_flag = "--config"};
        parse->argv[0] = parse->name;
        snprintf(parse->flags, sizeof(parse->flags), "%s", flags);
        snprintf(parse->environment, sizeof(parse->environment), "%s", environment);
        if (file) {
                snprintf(parse->path, sizeof(parse->path), "/tmp/cmd_options.%d", (int) getpid());
                write_file(parse->path, file);
                parse->argv[argc++] = parse->config_flag;
                parse->argv[argc++] = parse->path;
        }
        argc += split(parse->flags, " ", parse->argv + argc);
        split(parse->environment, "\n", parse->envp);
        parse->r = options_parse(command, (int) argc, parse->argv, parse->envp, &parse->options,
                                 &parse->why);
        if (file)
                unlink(parse->path);
        return parse->r;
}

static const struct option_row *row(const char *name) {
        for (size_t i = 0; i < option_rows_count; i++)
                if (strcmp(option_rows[i].name, name) == 0)
                        return &option_rows[i];
        cr_assert_fail("no option %s", name);
        return NULL;
}

Test(options, defaults_are_those_of_the_design) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_CHECK, "", "", NULL), 0, "%s", p.why.text);
        cr_expect_eq(p.options.interval_ns, 10 * NS_PER_S);
        cr_expect_eq(p.options.for_ns, 10 * NS_PER_S);
        cr_expect_eq(p.options.summary_ns, 3600 * NS_PER_S);
        cr_expect_eq(p.options.output, (uint64_t) FORM_TEXT);
        cr_expect_eq(p.options.threads, UINT64_C(20));
        cr_expect_eq(p.options.warn_lost_ppm, UINT64_C(50000));
        cr_expect_eq(p.options.warn_stall_ns, 50 * NS_PER_MS);
        cr_expect_eq(p.options.scope, ABSENT);
        cr_expect_eq(p.options.pid, ABSENT);
        cr_expect_eq(p.options.method, ABSENT);
        cr_expect_eq(p.options.exit_code, ABSENT);
        cr_expect_eq(p.options.verbose, UINT64_C(0));
        cr_expect_null(p.options.cgroup);
        cr_expect_null(p.options.root);
        cr_expect_null(p.options.arguments[0]);
        options_release(&p.options);
}

Test(options, flag_beats_environment_beats_file_beats_default) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_WATCH, "--interval 1s",
                           "THROTTLESCOPE_INTERVAL=2s\nTHROTTLESCOPE_SUMMARY=3s",
                           "interval = 4s\nsummary = 5s\nwarn-stall = 60ms\n"),
                     0, "%s", p.why.text);
        cr_expect_eq(p.options.interval_ns, 1 * NS_PER_S);
        cr_expect_eq(p.options.summary_ns, 3 * NS_PER_S);
        cr_expect_eq(p.options.warn_stall_ns, 60 * NS_PER_MS);
        cr_expect_eq(p.options.warn_lost_ppm, UINT64_C(50000));
        options_release(&p.options);
}

Test(options, target_rows_are_one_option) {
        static const struct {
                char flags[40], environment[80], file[40];
                uint64_t scope, pid;
                char cgroup[8];
        } rows[] = {
                        {"--pid 5", "THROTTLESCOPE_SCOPE=node", "cgroup=/x", ABSENT, 5, ""},
                        {"", "THROTTLESCOPE_SCOPE=node", "cgroup=/x", TARGET_NODE, ABSENT, ""},
                        {"", "", "cgroup=/x", ABSENT, ABSENT, "/x"},
                        {"--scope pod --scope self", "", "pid=7", TARGET_SELF, ABSENT, ""},
                        {"--cgroup /y", "THROTTLESCOPE_CGROUP=/z", "", ABSENT, ABSENT, "/y"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct parse p;

                cr_assert_eq(parse(&p, COMMAND_CHECK, rows[i].flags, rows[i].environment, rows[i].file), 0,
                             "row %zu: %s", i, p.why.text);
                cr_expect_eq(p.options.scope, rows[i].scope, "row %zu", i);
                cr_expect_eq(p.options.pid, rows[i].pid, "row %zu", i);
                cr_expect_str_eq(p.options.cgroup ? p.options.cgroup : "", rows[i].cgroup, "row %zu", i);
                options_release(&p.options);
        }
}

Test(options, words_of_choices_are_the_enums) {
        struct options options;

        for (enum probe_method method = 0; method < PROBE_METHOD_COUNT; method++) {
                cr_assert_eq(option_parse_value(row("method"), probe_method_name(method), &options, NULL),
                             0);
                cr_expect_eq(options.method, (uint64_t) method);
        }
        cr_assert_eq(option_parse_value(row("scope"), "self", &options, NULL), 0);
        cr_expect_eq(options.scope, (uint64_t) TARGET_SELF);
        cr_assert_eq(option_parse_value(row("scope"), "pod", &options, NULL), 0);
        cr_expect_eq(options.scope, (uint64_t) TARGET_POD);
        cr_assert_eq(option_parse_value(row("scope"), "node", &options, NULL), 0);
        cr_expect_eq(options.scope, (uint64_t) TARGET_NODE);
        cr_expect_eq(option_parse_value(row("scope"), "nod", &options, NULL), -EINVAL);
        cr_expect_eq(option_parse_value(row("scope"), "self|pod", &options, NULL), -EINVAL);
        cr_expect_eq(option_parse_value(row("scope"), "", &options, NULL), -EINVAL);
}

Test(options, bounds_are_inside) {
        static const struct {
                char name[16], text[16];
                int r;
        } rows[] = {
                        {"interval", "100ms", 0},
                        {"interval", "99ms", -ERANGE},
                        {"interval", "1h", 0},
                        {"interval", "3601s", -ERANGE},
                        {"interval", "0s", -ERANGE},
                        {"interval", "999999999999h", -ERANGE},
                        {"interval", "10", -EINVAL},
                        {"interval", "-1s", -EINVAL},
                        {"interval", " 1s", -EINVAL},
                        {"for", "24h", 0},
                        {"for", "24h1s", -ERANGE},
                        {"exit-code", "0", -ERANGE},
                        {"exit-code", "1", 0},
                        {"exit-code", "255", 0},
                        {"exit-code", "256", -ERANGE},
                        {"pid", "0", -ERANGE},
                        {"pid", "2147483647", 0},
                        {"pid", "2147483648", -ERANGE},
                        {"pid", "self", -EINVAL},
                        {"threads", "0", 0},
                        {"threads", "10001", -ERANGE},
                        {"threads", "1e3", -EINVAL},
                        {"warn-lost", "0%", -ERANGE},
                        {"warn-lost", "100%", 0},
                        {"warn-lost", "101%", -ERANGE},
                        {"warn-lost", "five", -EINVAL},
                        {"warn-stall", "500us", -ERANGE},
                        {"verbose", "yes", 0},
                        {"verbose", "no", 0},
                        {"verbose", "1", 0},
                        {"verbose", "YES", -EINVAL},
                        {"cgroup", "", -EINVAL},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct options options = {0};
                struct why why = {0};

                cr_expect_eq(option_parse_value(row(rows[i].name), rows[i].text, &options, &why), rows[i].r,
                             "%s %s: %s", rows[i].name, rows[i].text, why.text);
                cr_expect(rows[i].r == 0 || why.text[0], "%s %s: no sentence", rows[i].name, rows[i].text);
        }
}

Test(options, wrong_usage_is_told_in_a_sentence) {
        static const struct {
                enum command_set command;
                char flags[48], environment[80], file[64];
                char sentence[112]; /* what it must contain */
        } rows[] = {
                        {COMMAND_CHECK, "--bogus", "", "", "unknown option --bogus"},
                        {COMMAND_CHECK, "-z", "", "", "unknown option -z"},
                        {COMMAND_CHECK, "-vz", "", "", "unknown option -z"},
                        {COMMAND_CHECK, "--inter 1s", "", "",
                         "the option is --interval, it cannot be shortened"},
                        {COMMAND_CHECK, "--inter=1s", "", "",
                         "the option is --interval, it cannot be shortened"},
                        {COMMAND_CHECK, "--log f", "", "", "has no option --log"},
                        {COMMAND_WATCH, "--for 1s", "", "", "has no option --for"},
                        {COMMAND_RUN, "--root /x", "", "", "has no option --root"},
                        {COMMAND_CHECK, "--output", "", "", "--output needs a value"},
                        {COMMAND_CHECK, "-o", "", "", "-o needs a value"},
                        {COMMAND_CHECK, "--verbose=1", "", "", "--verbose takes no value"},
                        {COMMAND_CHECK, "--interval 10", "", "", "--interval: '10' is not a duration"},
                        {COMMAND_CHECK, "--interval=1ms", "", "",
                         "--interval: 1ms is out of range (100ms to 1h)"},
                        {COMMAND_CHECK, "--warn-lost 0", "", "",
                         "--warn-lost: 0 is out of range (0.0001% to 100%)"},
                        {COMMAND_CHECK, "--output xml", "", "", "--output: 'xml' is none of text|json"},
                        {COMMAND_CHECK, "--pid 1 --cgroup /x", "", "",
                         "--pid and --cgroup exclude each other"},
                        {COMMAND_CHECK, "--scope pod -p 1", "", "", "--scope and --pid exclude each other"},
                        {COMMAND_CHECK, "", "THROTTLESCOPE_PID=1\nTHROTTLESCOPE_SCOPE=pod", "",
                         "environment: THROTTLESCOPE_SCOPE and THROTTLESCOPE_PID exclude each other"},
                        {COMMAND_CHECK, "", "", "pid=1\ncgroup=/x\n",
                         "line 2: pid and cgroup exclude each other"},
                        {COMMAND_CHECK, "", "THROTTLESCOPE_INTERVAL=x", "",
                         "environment: THROTTLESCOPE_INTERVAL: 'x' is not"},
                        {COMMAND_CHECK, "", "", "interval = x\n", "line 1: interval: 'x' is not a duration"},
                        {COMMAND_CHECK, "", "", "\n# c\n\nintervall = 1s\n",
                         "line 4: unknown key 'intervall'"},
                        {COMMAND_CHECK, "", "", "help = yes\n", "line 1: unknown key 'help'"},
                        {COMMAND_CHECK, "", "", "config = /x\n",
                         "line 1: a configuration file cannot name another one"},
                        {COMMAND_CHECK, "", "", "interval 1s\n", "line 1: expected \"name = value\""},
                        {COMMAND_CHECK, "", "", "interval =\n", "line 1: interval: '' is not a duration"},
                        {COMMAND_CHECK, "", "", "= 1s\n", "line 1: unknown key ''"},
                        {COMMAND_CHECK, "", "", "interval=1s\ninterval=2s",
                         "line 2: interval was already set in line 1"},
                        {COMMAND_CHECK, "--interval 1s", "", "interval=bad",
                         "line 1: interval: 'bad' is not a duration"},
                        {COMMAND_CHECK, "--config /nonexistent/f", "", "",
                         "configuration file /nonexistent/f: No such file"},
                        {COMMAND_CHECK, "", "THROTTLESCOPE_CONFIG=/nonexistent/f", "",
                         "/nonexistent/f: No such file"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct parse p;

                cr_expect_lt(parse(&p, rows[i].command, rows[i].flags, rows[i].environment,
                                   rows[i].file[0] ? rows[i].file : NULL),
                             0, "row %zu", i);
                cr_expect(strstr(p.why.text, rows[i].sentence), "row %zu: '%s' instead of '%s'", i,
                          p.why.text, rows[i].sentence);
                options_release(&p.options);
        }
}

Test(options, what_other_commands_take_is_no_error_in_environment_and_file) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_WATCH, "",
                           "THROTTLESCOPE_FOR=1s\nTHROTTLESCOPE_PORT=tcp://10.0.0.1:80", "exit-code = 3\n"),
                     0, "%s", p.why.text);
        options_release(&p.options);
}

Test(options, an_empty_variable_is_not_set) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_WATCH, "", "THROTTLESCOPE_INTERVAL=\nTHROTTLESCOPE_PID=", NULL), 0,
                     "%s", p.why.text);
        cr_expect_eq(p.options.interval_ns, 10 * NS_PER_S);
        options_release(&p.options);
}

Test(options, a_bad_variable_that_a_flag_overrules_does_no_harm) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_WATCH, "--interval 1s", "THROTTLESCOPE_INTERVAL=x", NULL), 0, "%s",
                     p.why.text);
        options_release(&p.options);
}

Test(options, file_takes_comments_blanks_and_crlf) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_RUN, "", "",
                           "# all\r\n\t interval=1s\r\n  log =  /a#b c  # the log\r\n#verbose=no\nverbose = "
                           "true"),
                     0, "%s", p.why.text);
        cr_expect_eq(p.options.interval_ns, NS_PER_S);
        cr_expect_str_eq(p.options.log, "/a#b c");
        cr_expect_eq(p.options.verbose, UINT64_C(1));
        options_release(&p.options);
}

Test(options, file_that_is_binary_or_too_large_is_refused) {
        char text[] = "interval = 1s\0x\n", *large = malloc(LONG_LINE + 1);
        struct options options = {0};
        struct why why = {0};
        struct parse p;

        cr_assert_eq(options_parse_file(text, sizeof(text) - 1, &options, &why), -EINVAL);
        cr_expect(strstr(why.text, "not a text file"), "%s", why.text);
        cr_assert_not_null(large);
        memset(large, '#', LONG_LINE);
        large[LONG_LINE] = '\0';
        cr_expect_eq(parse(&p, COMMAND_CHECK, "", "", large), -EFBIG);
        options_release(&p.options);
        free(large);
}

Test(options, run_stops_at_its_command) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_RUN, "--interval 1s sh --interval 2s -v", "", NULL), 0, "%s",
                     p.why.text);
        cr_expect_eq(p.options.interval_ns, NS_PER_S);
        cr_expect_eq(p.options.verbose, UINT64_C(0));
        cr_expect_str_eq(p.options.arguments[0], "sh");
        cr_expect_str_eq(p.options.arguments[3], "-v");
        options_release(&p.options);
        cr_assert_eq(parse(&p, COMMAND_RUN, "-v -- --odd -v", "", NULL), 0, "%s", p.why.text);
        cr_expect_str_eq(p.options.arguments[0], "--odd");
        options_release(&p.options);
}

Test(options, help_is_given_whatever_the_environment_says) {
        struct parse p;

        cr_assert_eq(parse(&p, COMMAND_CHECK, "--help", "THROTTLESCOPE_INTERVAL=x", NULL), 0);
        cr_expect_eq(p.options.help, UINT64_C(1));
        options_release(&p.options);
}

/* What --print-config shows, given back as a file, is the same configuration. */
Test(options, printed_configuration_can_be_read_back) {
        struct text first, second;
        struct parse p, q;

        text_init(&first, 8192);
        text_init(&second, 8192);
        cr_assert_eq(parse(&p, COMMAND_CHECK,
                           "--pid 4 --interval 1500ms --warn-lost 0.5% --for 1h30m -o json --capture /a#b "
                           "-v",
                           "", NULL),
                     0, "%s", p.why.text);
        options_print(COMMAND_CHECK, &p.options, &first);
        cr_expect(strstr(text_string(&first), "for = 90m  # flag\n"), "%s", text_string(&first));
        cr_expect(strstr(text_string(&first), "warn-lost = 0.5%  # flag\n"), "%s", text_string(&first));
        cr_assert_eq(parse(&q, COMMAND_CHECK, "", "", text_string(&first)), 0, "%s", q.why.text);
        for (size_t i = 0; i < option_rows_count; i++) {
                struct text a, b;
                bool set, set_again;

                text_init(&a, 256);
                text_init(&b, 256);
                set = option_format_value(&option_rows[i], &p.options, &a);
                set_again = option_format_value(&option_rows[i], &q.options, &b);
                if (strcmp(option_rows[i].name, "config") != 0) {
                        cr_expect_eq(set, set_again, "%s", option_rows[i].name);
                        cr_expect_str_eq(text_string(&a), text_string(&b), "%s", option_rows[i].name);
                }
                text_release(&a);
                text_release(&b);
        }
        text_release(&first);
        text_release(&second);
        options_release(&p.options);
        options_release(&q.options);
}

Test(options, every_row_is_sound) {
        for (size_t i = 0; i < option_rows_count; i++) {
                const struct option_row *r = &option_rows[i];
                char expected[64] = "THROTTLESCOPE_";
                size_t used = strlen(expected);

                for (const char *c = r->name; *c; c++)
                        expected[used++] = *c == '-' ? '_' : (char) (*c - 'a' + 'A');
                if (r->environment)
                        cr_expect_str_eq(r->environment, expected);
                cr_expect(strncmp(r->name, "port", 4) != 0 && strncmp(r->name, "service", 7) != 0,
                          "%s: Kubernetes sets this for a Service named throttlescope", r->name);
                cr_expect(r->help && r->help[0] && r->help[strlen(r->help) - 1] != '.', "%s", r->name);
                cr_expect((r->value == NULL) == (r->type == OPTION_SWITCH), "%s", r->name);
                for (size_t k = 0; k < i; k++) {
                        cr_expect_str_neq(r->name, option_rows[k].name);
                        cr_expect_neq(r->offset, option_rows[k].offset, "%s", r->name);
                        cr_expect(!r->letter || r->letter != option_rows[k].letter, "%s", r->name);
                }
        }
}

Test(options, help_fits_and_names_each_option) {
        static const enum command_set commands[] = {COMMAND_WATCH, COMMAND_RUN, COMMAND_CHECK,
                                                    COMMAND_DOCTOR};

        for (size_t c = 0; c < ELEMENTS(commands); c++) {
                struct text help;
                char *rest, *line;

                text_init(&help, 65536);
                text_add(&help, "\n");
                options_help(commands[c], &help);
                for (size_t i = 0; i < option_rows_count; i++) {
                        char flag[40], letter[8] = "\n      ";

                        if (option_rows[i].letter)
                                snprintf(letter, sizeof(letter), "\n  -%c, ", option_rows[i].letter);
                        snprintf(flag, sizeof(flag), "%s--%s ", letter, option_rows[i].name);
                        cr_expect_eq(strstr(text_string(&help), flag) != NULL,
                                     (option_rows[i].commands & commands[c]) != 0, "%s",
                                     option_rows[i].name);
                }
                rest = help.data;
                while ((line = strsep(&rest, "\n")))
                        cr_expect_leq(strlen(line), (size_t) 100, "%s", line);
                text_release(&help);
        }
}
