/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "sink.h"

#define PAGE_MAX ((size_t) 64 << 10)
#define PATIENCE_NS (30 * NS_PER_S)

const char *command_version(void) {
        return THROTTLESCOPE_VERSION;
}

/* 0, or EXIT_FAILED if the reader did not take it. */
static int print(int fd, struct text *page) {
        struct sink *sink;
        int status = EXIT_FAILED;

        if (sink_new(fd, PAGE_MAX + 64, &sink) >= 0) {
                (void) sink_write(sink, text_string(page), page->length);
                (void) sink_flush(sink, PATIENCE_NS, PATIENCE_NS, -1);
                status = sink_lost(sink) == 0 ? EXIT_OK : EXIT_FAILED;
                sink_free(sink);
        }
        text_release(page);
        return status;
}

static void add_overview(const struct command *const *commands, size_t count, struct text *page) {
        text_add(page, "throttlescope says which threads a CPU limit stalls, when, for how long, and which "
                       "setting to change.\n\n");
        text_add(page, "usage: throttlescope COMMAND [OPTION...]\n\n");
        for (size_t i = 0; i < count; i++)
                text_add(page, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
        text_add(page, "\n  throttlescope COMMAND --help   its options\n"
                       "  throttlescope --version        the version\n");
}

static void add_help(const struct command *command, struct text *page) {
        text_add(page, "usage: throttlescope %s %s\n\n", command->name, command->arguments);
        options_wrap(page, command->description, 0);
        text_add(page, "\nOptions:\n");
        options_help(command->set, page);
        text_add(page, "\n");
        options_wrap(page,
                     "Each option can also be set by an environment variable (--warn-stall: "
                     "THROTTLESCOPE_WARN_STALL) "
                     "or a line of the --config file (warn-stall = 50ms). A flag beats the environment, "
                     "which beats "
                     "the file.",
                     0);
        text_add(page, "\nExit status:\n%s", command->statuses);
}

/* A closed standard descriptor would be given to the next file that is opened. These cannot be written or read, which is the truth. */
static void occupy_standard_descriptors(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
                        (void) open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* A closed output is an error code. Not for run: it has the signal blocked, and its command must find it as it was. */
static void ignore_closed_pipes(const struct command *command) {
        struct sigaction ignore = {.sa_handler = SIG_IGN};

        if (!command || command->set != COMMAND_RUN)
                (void) sigaction(SIGPIPE, &ignore, NULL);
}

static int start(const struct command *command, int argc, char **argv) {
        struct options options;
        struct text page;
        struct why why = {0};
        int status = EXIT_USAGE, r;

        text_init(&page, PAGE_MAX);
        r = options_parse(command->set, argc, argv, environ, &options, &why);
        if (r < 0)
                (void) log_error(r, "%s: %s", command->name, why.text);
        else if (options.help == 1) {
                add_help(command, &page);
                status = print(STDOUT_FILENO, &page);
        } else if (options.version == 1) {
                text_add(&page, "throttlescope %s\n", command_version());
                status = print(STDOUT_FILENO, &page);
        } else if (options.arguments[0] && !command->takes_arguments)
                (void) log_error(-EINVAL, "%s takes no argument: %s", command->name, options.arguments[0]);
        else if (options.print_config == 1) {
                options_print(command->set, &options, &page);
                status = print(STDOUT_FILENO, &page);
        } else {
                if (options.verbose == 1)
                        log_set_level(LOG_DEBUG);
                status = command->run(&options, options.arguments);
        }
        options_release(&options);
        return status;
}

static const struct command *find(const struct command *const *commands, size_t count, const char *name) {
        for (size_t i = 0; i < count; i++)
                if (strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        return NULL;
}

int dispatch(const struct command *const *commands, size_t count, int argc, char **argv) {
        const char *name = argc > 1 ? argv[1] : NULL;
        const struct command *command = name ? find(commands, count, name) : NULL;
        struct text page;

        occupy_standard_descriptors();
        ignore_closed_pipes(command);
        if (command)
                return start(command, argc - 1, argv + 1);
        text_init(&page, PAGE_MAX);
        if (name && strcmp(name, "--version") == 0) {
                text_add(&page, "throttlescope %s\n", command_version());
                return print(STDOUT_FILENO, &page);
        }
        if (name && (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)) {
                command = argc > 2 ? find(commands, count, argv[2]) : NULL;
                if (command)
                        add_help(command, &page);
                else
                        add_overview(commands, count, &page);
                return print(STDOUT_FILENO, &page);
        }
        if (name)
                return log_error(EXIT_USAGE, "unknown command %s (throttlescope --help shows all)", name);
        add_overview(commands, count, &page);
        (void) print(STDERR_FILENO, &page);
        return EXIT_USAGE;
}
