/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options. Names in the environment are spelled out, so that they can be searched for. A Service named "throttlescope"
 * makes Kubernetes set THROTTLESCOPE_PORT, THROTTLESCOPE_PORT_… and THROTTLESCOPE_SERVICE_…: never name an option so.
 */
#include "options.h"

#include "../base/clock.h"
#include "../base/memory.h"

#define AT(field) offsetof(struct options, field)
#define TENTH (100 * NS_PER_MS)
#define MINUTE (60 * NS_PER_S)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define ALL COMMAND_ALL

/* Two lines an option: what it is, and its help. */
/* clang-format off */
const struct option_row option_rows[] = {
        { "scope", 0, "THROTTLESCOPE_SCOPE", OPTION_CHOICE, AT(scope), 0, 0, NULL, "self|pod|node", ALL, true,
          "the container this runs in, every container of its Pod, or of the node (run: self. Else what fits the place: in a Pod pod, "
          "with the host's PID namespace node; in another container self; on a host node)" },
        { "pid", 'p', "THROTTLESCOPE_PID", OPTION_NUMBER, AT(pid), 1, INT32_MAX, NULL, "N", ALL, true,
          "the container of process N" },
        { "cgroup", 0, "THROTTLESCOPE_CGROUP", OPTION_TEXT, AT(cgroup), 0, 0, NULL, "PATH", ALL, true,
          "this group and those below it: /kubepods/pod1 or /sys/fs/cgroup/kubepods/pod1" },
        { "for", 0, "THROTTLESCOPE_FOR", OPTION_DURATION, AT(for_ns), TENTH, DAY, "10s", "TIME", COMMAND_CHECK, false,
          "how long to measure" },
        { "exit-code", 0, "THROTTLESCOPE_EXIT_CODE", OPTION_NUMBER, AT(exit_code), 1, 255, NULL, "N", COMMAND_CHECK, false,
          "exit with N if a container has a warning" },
        { "interval", 0, "THROTTLESCOPE_INTERVAL", OPTION_DURATION, AT(interval_ns), TENTH, HOUR, "10s", "TIME", ALL, false,
          "length of one window of watch and run" },
        { "summary", 0, "THROTTLESCOPE_SUMMARY", OPTION_DURATION, AT(summary_ns), NS_PER_S, DAY, "1h", "TIME", COMMAND_WATCH, false,
          "one line for each container this often, so that silence is known to be health" },
        { "log", 0, "THROTTLESCOPE_LOG", OPTION_TEXT, AT(log), 0, 0, NULL, "FILE", COMMAND_RUN, false,
          "append the reports to FILE instead of writing them to standard error" },
        { "output", 'o', "THROTTLESCOPE_OUTPUT", OPTION_CHOICE, AT(output), 0, 0, "text", "text|json", ALL, false,
          "form of the reports; json is one object a line" },
        { "threads", 0, "THROTTLESCOPE_THREADS", OPTION_NUMBER, AT(threads), 0, 10000, "20", "N", ALL, false,
          "threads shown in a report; the others are summed up" },
        { "warn-lost", 0, "THROTTLESCOPE_WARN_LOST", OPTION_SHARE, AT(warn_lost_ppm), 1, 1000000, "5%", "SHARE", ALL, false,
          "warn when stalls take this share of the time that threads wanted to run" },
        { "warn-stall", 0, "THROTTLESCOPE_WARN_STALL", OPTION_DURATION, AT(warn_stall_ns), NS_PER_MS, MINUTE, "50ms", "TIME", ALL, false,
          "warn when stalls, or those within one burst, of this length come six times a minute" },
        { "method", 0, "THROTTLESCOPE_METHOD", OPTION_CHOICE, AT(method), 0, 0, NULL, "hooks|tracepoints|files", ALL, false,
          "measure in this way only (the best that works)" },
        { "root", 0, "THROTTLESCOPE_ROOT", OPTION_TEXT, AT(root), 0, 0, NULL, "DIR", ALL & ~COMMAND_RUN, false,
          "read another machine's files: a folder made by --capture, or a host's / mounted there" },
        { "capture", 0, "THROTTLESCOPE_CAPTURE", OPTION_TEXT, AT(capture), 0, 0, NULL, "DIR", ALL & ~COMMAND_DOCTOR, false,
          "save all that was read to DIR, for a bug report or to be replayed with check --root DIR" },
        { "config", 0, "THROTTLESCOPE_CONFIG", OPTION_TEXT, AT(config), 0, 0, NULL, "FILE", ALL, false,
          "read options from FILE: lines of the form \"name = value\"; # begins a comment" },
        { "verbose", 'v', "THROTTLESCOPE_VERBOSE", OPTION_SWITCH, AT(verbose), 0, 0, "no", NULL, ALL, false,
          "say more on standard error" },
        { "print-config", 0, NULL, OPTION_SWITCH, AT(print_config), 0, 0, "no", NULL, ALL, false,
          "print the options in force, each with where it comes from, and exit" },
        { "help", 'h', NULL, OPTION_SWITCH, AT(help), 0, 0, "no", NULL, ALL, false,
          "print this text and exit" },
        { "version", 0, NULL, OPTION_SWITCH, AT(version), 0, 0, "no", NULL, ALL, false,
          "print the version and exit" },
};
/* clang-format on */
const size_t option_rows_count = ELEMENTS(option_rows);
_Static_assert(ELEMENTS(option_rows) <= OPTIONS_MAX, "options.source has no room");
