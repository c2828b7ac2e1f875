/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth [--load PROGRAM] [--seconds S] [--method M] [--only CASE] [--few] [--virtual] [--list]
 *
 * Prints `PASS method/case`, `FAIL method/case: reason` or `SKIP method/case: reason`, and the measured errors after a blank.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "truth.h"

#define THREADS_AND_QUEUE (CHECK_THREADS | CHECK_QUEUE | CHECK_LEDGER)

static const struct truth_case cases[] = {
        /* The first ones are the few that also run with 8 CPUs. */
        { "busy-pinned", "busy", 0, THREADS_AND_QUEUE | CHECK_LONGEST | CHECK_OWN, 0 },
        { "busy-unpinned", "busy-unpinned", 0, CHECK_THREADS | CHECK_LEDGER | CHECK_OWN, 0 },
        { "parent-limited", "parent-limited", 1, THREADS_AND_QUEUE | CHECK_ABOVE, 0 },
        { "contention", "contention", 1, CHECK_THREADS | CHECK_NO_STALL, 0 },
        { "short-lived", "short-lived", 0, CHECK_SUMS | CHECK_LEDGER, 0 },
        { "threads48", "threads48", 0, CHECK_THREADS | CHECK_LEDGER, 0 },
        { "same-quota", "same-quota", 1, THREADS_AND_QUEUE | CHECK_OWN, 0 },
        { "nested", "nested", 0, CHECK_THREADS, 0 },
        { "pod-two", "pod-two", 1, CHECK_THREADS | CHECK_OWN, 0 },
        { "long-period", "long-period", 0, THREADS_AND_QUEUE | CHECK_LONGEST, 0 },
        { "short-period", "short-period", 0, CHECK_THREADS | CHECK_QUEUE, 0 },
        { "bursts", "bursts", 0, CHECK_THREADS | CHECK_BURSTS, 0 },
        { "burst-credit", "burst-credit", 0, CHECK_THREADS | CHECK_BURSTS, 0 },
        { "sleepers", "sleepers", 0, CHECK_THREADS, 0 },
        { "yield", "yield", 0, CHECK_THREADS, 10 },
        { "forkstorm", "forkstorm", 0, CHECK_SUMS, 0 },
        { "mover-waiting", "mover-waiting", 0, CHECK_THREADS, 0 },
        { "limit-change", "limit-change", 0, CHECK_THREADS | CHECK_QUEUE, 0 },
        { "limit-removed", "limit-removed", 0, CHECK_THREADS | CHECK_QUEUE, 0 },
        { "group-removed", "group-removed", 0, CHECK_SUMS, 0 },
        { "born-throttled", "born-throttled", 0, CHECK_THREADS, 0 },
        { "rt", "rt", 0, CHECK_THREADS | CHECK_RT, 0 },
        { "lockholder", "lockholder", 0, CHECK_THREADS | CHECK_LOCKED | CHECK_SLEEP, 0 },
        { "cross-wake", "cross-wake", 0, CHECK_THREADS | CHECK_WOKEN, 0 },
        { "signal-storm", "signal-storm", 0, CHECK_THREADS, 10 },
        { "idle-open", "idle-open", 0, CHECK_THREADS | CHECK_READS | CHECK_LEDGER, 0 },
        { "pidns", "pidns", 0, CHECK_THREADS | CHECK_IDS, 0 },
        { "lost-switches", "busy", 0, CHECK_THREADS | CHECK_LOSE, 10 },
        { "read-hard", "busy", 0, CHECK_THREADS | CHECK_QUEUE | CHECK_READS, 0 },
        { "read-migrating", "busy-unpinned", 0, CHECK_THREADS | CHECK_READS, 0 },
};
#define FEW 5

static const char *arg_load = "build/tests/load", *arg_only;
static unsigned arg_seconds = 3, arg_method = PROBE_METHOD_COUNT;
static bool arg_few, arg_virtual;

struct run {
        struct workload workload;
        struct truth truth;
        struct probe *probe;
        struct snapshot *before, *after;
        struct arena *arena;
        struct facts facts;
        struct judgement judgement;
};

static void run_release(struct run *run) {
        snapshot_free(run->before);
        snapshot_free(run->after);
        probe_free(run->probe);
        workload_end(&run->workload);
        arena_free(run->arena);
}

/* Lets it run; reads meanwhile, if asked, as a hasty agent would. */
static int let_run(struct run *run, bool reads, struct why *why) {
        int r = 0;

        workload_go(&run->workload, &run->truth);
        while (reads && r == 0 && !workload_has_output(&run->workload, 7)) {
                struct snapshot *snapshot = NULL;

                r = probe_read(run->probe, clock_now(), &snapshot, why);
                snapshot_free(snapshot);
        }
        if (r == 0 && workload_finish(&run->workload, &run->truth) < 0)
                r = why_set(why, -EPIPE, "the workload ended without its figures");
        return r;
}

static int measure(struct root *root, const struct truth_case *test, enum probe_method method, struct run *run, struct why *why) {
        char arguments[256];
        struct probe_options options = {
                .target = { .scope = TARGET_CGROUP },
                .method = method,
                .warn_stall_ns = 50 * NS_PER_MS,
                .lose_switches = test->checks & CHECK_LOSE ? 97 : 0,
        };
        int r;

        snprintf(arguments, sizeof(arguments), "%s --seconds %u", test->arguments, arg_seconds);
        r = workload_start(&run->workload, arg_load, arguments, &run->truth);
        if (r != 0)
                return r < 0 ? why_set(why, r, "the workload does not start") : 1;
        options.target.cgroup = run->truth.groups[test->group].cgroup;
        r = probe_open(root, &options, &run->probe, why);
        if (r == 0)
                r = probe_read(run->probe, clock_now(), &run->before, why);
        if (r == 0)
                r = let_run(run, (test->checks & CHECK_READS) != 0, why);
        if (r == 0)
                r = probe_read(run->probe, clock_now(), &run->after, why);
        if (r < 0)
                return r;
        struct facts_options facts_options = { .warn_stall_ns = 50 * NS_PER_MS };
        struct judge_options judge_options = { .warn_lost_ppm = 50000, .warn_stall_ns = 50 * NS_PER_MS };
        run->arena = arena_new(64u << 20);
        r = facts_of_window(run->before, run->after, run->truth.groups[test->group].id, &facts_options, run->arena, &run->facts);
        if (r < 0)
                return why_set(why, r, "no facts about the workload's group");
        return judge(&run->facts, &judge_options, run->arena, &run->judgement);
}

static bool run_case(struct root *root, const struct truth_case *test, enum probe_method method) {
        struct run run = { .workload.pid = -1 };
        struct why why = { "" };
        char failure[2048], errors[512];
        const char *name = probe_method_name(method);
        int r = measure(root, test, method, &run, &why);
        bool good = false;

        if (r == 1) {
                printf("SKIP %s/%s: %s\n", name, test->name, run.workload.unsupported);
                good = true;
        } else if (r < 0) {
                printf("FAIL %s/%s: %s\n", name, test->name, why.text);
        } else {
                struct measured m = { test,       method,     run.after->exact, arg_virtual,    &run.truth,
                                      run.before, run.after, &run.facts,       &run.judgement };

                truth_compare(&m, failure, sizeof(failure), errors, sizeof(errors));
                for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                        if (run.after->lost[i] - run.before->lost[i]) {
                                size_t used = strlen(errors);
                                snprintf(errors + used, sizeof(errors) - used, "; lost[%zu] %llu", i,
                                         (unsigned long long) (run.after->lost[i] - run.before->lost[i]));
                        }
                good = !failure[0];
                if (good)
                        printf("PASS %s/%s\n", name, test->name);
                else
                        printf("FAIL %s/%s: %s\n", name, test->name, failure);
                printf("     %s/%s: %s\n", name, test->name, errors);
        }
        fflush(stdout);
        run_release(&run);
        return good;
}

/* Does the method work here at all? If not, that is one skip with its reason, not thirty failures. */
static bool method_works(struct root *root, enum probe_method method, bool *ret_good) {
        struct probe_options options = { .target = { .scope = TARGET_NODE }, .method = method };
        struct probe *probe = NULL;
        struct why why = { "" };
        int r = probe_open(root, &options, &probe, &why);

        probe_free(probe);
        /* EPERM and EOPNOTSUPP (524 is the kernel's own ENOTSUPP) are the machine's word; anything else is our fault. */
        if (r == -EPERM || r == -EOPNOTSUPP || r == -524)
                printf("SKIP %s: %s\n", probe_method_name(method), why.text);
        else if (r < 0)
                printf("FAIL %s: %s\n", probe_method_name(method), why.text);
        *ret_good = *ret_good && (r == 0 || r == -EPERM || r == -EOPNOTSUPP || r == -524);
        return r == 0;
}

static int parse_arguments(int argc, char **argv) {
        static const struct option options[] = {
                { "load", required_argument, NULL, 'l' }, { "seconds", required_argument, NULL, 's' },
                { "method", required_argument, NULL, 'm' }, { "only", required_argument, NULL, 'o' },
                { "few", no_argument, NULL, 'f' },        { "virtual", no_argument, NULL, 'v' },
                { NULL, 0, NULL, 0 },
        };
        enum probe_method method;

        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                switch (option) {
                case 'l':
                        arg_load = optarg;
                        break;
                case 's':
                        arg_seconds = (unsigned) strtoul(optarg, NULL, 10);
                        break;
                case 'm':
                        if (probe_method_parse(optarg, &method) < 0)
                                return -EINVAL;
                        arg_method = method;
                        break;
                case 'o':
                        arg_only = optarg;
                        break;
                case 'f':
                        arg_few = true;
                        break;
                case 'v':
                        arg_virtual = true;
                        break;
                default:
                        return -EINVAL;
                }
        }
        return 0;
}

int main(int argc, char **argv) {
        struct root *root = NULL;
        struct why why = { "" };
        bool good = true;

        if (parse_arguments(argc, argv) < 0)
                return 2;
        if (root_open(NULL, &root, &why) < 0) {
                printf("FAIL truth: %s\n", why.text);
                return 1;
        }
        for (enum probe_method method = PROBE_HOOKS; method <= PROBE_TRACEPOINTS; method++) {
                if ((arg_method != PROBE_METHOD_COUNT && arg_method != method) || !method_works(root, method, &good))
                        continue;
                for (size_t i = 0; i < (arg_few ? FEW : ELEMENTS(cases)); i++)
                        if (!arg_only || strcmp(arg_only, cases[i].name) == 0)
                                good = run_case(root, &cases[i], method) && good;
        }
        root_free(root);
        return good ? 0 : 1;
}
