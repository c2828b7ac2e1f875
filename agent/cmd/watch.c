/* SPDX-License-Identifier: Apache-2.0 */
/* watch: the agent. Runs until it is told to stop, and is silent about containers that lose nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/number.h"
#include "command.h"
#include "monitor.h"
#include "stop.h"

struct watch {
        struct monitor monitor;
        struct loop *loop;
};

static int on_signal(const struct signalfd_siginfo *info, void *data) {
        struct watch *watch = data;

        (void) info;
        loop_stop(watch->loop, 0);
        return 0;
}

static int on_tick(uint64_t missed, void *data) {
        struct watch *watch = data;

        if (monitor_tick(&watch->monitor, clock_now(), missed) < 0)
                loop_stop(watch->loop, 0);
        return 0;
}

/* What can be said at once of a single container: its limit, and how its life has been so far. */
static void describe_first(const struct container_sample *sample, char *out, size_t room) {
        const struct cgroup_level *level;
        char limit[NUMBER_TEXT_MAX];
        uint64_t milli;
        bool capped;
        int used;

        out[0] = '\0';
        if (sample->chain.tightest < 0 || (size_t) sample->chain.tightest >= sample->chain.levels_count)
                return;
        level = &sample->chain.levels[sample->chain.tightest];
        milli = cgroup_chain_limit_milli(&sample->chain, 0, &capped);
        if (!is_known(milli))
                return;
        used = snprintf(out, room, ", limit %s", number_format_cpus(limit, milli));
        if (is_known(level->stat.nr_periods) && is_known(level->stat.nr_throttled) &&
            level->stat.nr_periods > 0)
                (void) snprintf(out + used, room - (size_t) used,
                                ", %" PRIu64 " of %" PRIu64 " periods throttled so far",
                                level->stat.nr_throttled, level->stat.nr_periods);
}

static void say_started(struct watch *watch) {
        struct session *session = &watch->monitor.session;
        const struct snapshot *snapshot = session->current;
        char interval[NUMBER_TEXT_MAX], first[160] = "";

        if (snapshot->containers_count == 1)
                describe_first(&snapshot->containers[0], first, sizeof(first));
        session_notice(session, watch->monitor.last, "info", "watching %zu container%s every %s by %s%s%s",
                       snapshot->containers_count, snapshot->containers_count == 1 ? "" : "s",
                       number_format_duration(interval, session->options->interval_ns),
                       probe_method_name(probe_method(session->probe)), snapshot->exact ? ", exact" : "",
                       first);
}

static int watch_until_told(struct watch *watch) {
        struct session *session = &watch->monitor.session;
        uint64_t interval_ns = session->options->interval_ns;
        int r = session_set_loop(session, watch->loop);

        if (r >= 0)
                r = loop_add_timer(watch->loop, watch->monitor.last.mono_ns + interval_ns, interval_ns,
                                   on_tick, watch);
        if (r >= 0) {
                say_started(watch);
                r = loop_run(watch->loop);
        }
        monitor_finish(&watch->monitor, clock_now());
        return r < 0 ? log_error(r, "the event loop failed: %s", strerror(-r)) : 0;
}

static int run_watch(const struct options *options, char **arguments) {
        struct watch watch = {0};
        struct session *session = &watch.monitor.session;
        struct why why = {0};
        int status = EXIT_FAILED, r;

        (void) arguments;
        r = session_init(session, options, STDOUT_FILENO, SINK_QUEUE_MAX);
        if (r >= 0)
                r = stop_listen(&watch.loop, on_signal, &watch);
        if (r < 0) {
                (void) log_error(r, "cannot start: %s", strerror(-r));
        } else if (session_open(session, &why) < 0 ||
                   monitor_start(&watch.monitor, options->summary_ns, &why) < 0) {
                session_say_unmeasurable(session, &why);
                status = EXIT_CANNOT_MEASURE;
        } else if (session_is_replay(session)) {
                (void) log_error(-EINVAL, "%s holds a capture: show it with check --root", options->root);
                status = EXIT_USAGE;
        } else
                status = watch_until_told(&watch) < 0 ? EXIT_FAILED : EXIT_OK;
        monitor_release(&watch.monitor);
        stop_ignore();
        loop_free(watch.loop);
        return status;
}

const struct command command_watch = {
                .name = "watch",
                .arguments = "[OPTION...]",
                .summary = "the agent: reports whenever a container lost something, until told to stop",
                .description = "Looks once every --interval and reports each container that lost something. "
                               "About the others it is silent, but for one summary line every --summary "
                               "with the worst minute and its time. SIGTERM, SIGINT or SIGHUP end it with "
                               "the report of the running interval and a last summary.",
                .statuses = COMMAND_STATUSES,
                .set = COMMAND_WATCH,
                .run = run_watch,
};
