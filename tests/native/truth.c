/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All methods that the machine allows look at the same runs of the workloads.
 *
 * truth [--load PROGRAM] [--seconds S] [--method hooks|kprobes|tracepoints] [--only CASE] [--few] [--virtual]
 *
 * Prints `PASS method/case`, `FAIL method/case: reason` or `SKIP method/case: reason`, and the measured errors after a blank.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "truth.h"

#define THREADS_AND_QUEUE (CHECK_THREADS | CHECK_QUEUE | CHECK_LEDGER)

/*
 * FEW also run where the CPUs are more than the host's. OWN have probes of their own, made for their group and opened while its threads
 * are there already; loading them is most of a case's time in an emulated machine. All others share probes that look at the whole node,
 * as an agent does for weeks: for those the target must be a container by its name, or a limited group with none above or below it.
 */
enum { FEW = 1, OWN = 2 };

static const struct truth_case cases[] = {
                {"busy-pinned", "busy", 0, THREADS_AND_QUEUE | CHECK_LONGEST | CHECK_OWN, 0, FEW},
                {"busy-unpinned", "busy-unpinned", 0, CHECK_THREADS | CHECK_LEDGER | CHECK_OWN, 0, FEW},
                {"contention", "contention", 1, CHECK_THREADS | CHECK_NO_STALL, 0, 0},
                {"short-lived", "short-lived", 0, CHECK_SUMS | CHECK_LEDGER, 0, FEW},
                {"parent-limited", "parent-limited", 1, THREADS_AND_QUEUE | CHECK_ABOVE, 0, FEW | OWN},
                {"threads48", "threads48", 0, CHECK_THREADS | CHECK_LEDGER, 0, 0},
                {"same-quota", "same-quota", 1, THREADS_AND_QUEUE | CHECK_OWN, 0, 0},
                {"nested", "nested", 0, CHECK_THREADS, 0, OWN},
                {"pod-two", "pod-two", 1, CHECK_THREADS | CHECK_OWN, 0, 0},
                {"long-period", "long-period", 0, THREADS_AND_QUEUE | CHECK_LONGEST, 0, 0},
                {"short-period", "short-period", 0, CHECK_THREADS | CHECK_QUEUE, 0, 0},
                {"bursts", "bursts", 0, CHECK_THREADS | CHECK_BURSTS, 0, 0},
                {"burst-credit", "burst-credit", 0, CHECK_THREADS | CHECK_BURSTS, 0, 0},
                {"sleepers", "sleepers", 0, CHECK_THREADS, 0, 0},
                {"yield", "yield", 0, CHECK_THREADS, 20, 0},
                {"forkstorm", "forkstorm", 0, CHECK_SUMS, 0, 0},
                {"mover-waiting", "mover-waiting", 0, CHECK_THREADS, 0, OWN},
                {"limit-change", "limit-change", 0, CHECK_THREADS | CHECK_QUEUE, 0, 0},
                {"limit-removed", "limit-removed", 0, CHECK_THREADS | CHECK_QUEUE, 0, OWN},
                {"group-removed", "group-removed", 0, CHECK_SUMS, 0, OWN},
                {"born-throttled", "born-throttled", 0, CHECK_THREADS, 0, 0},
                {"rt", "rt", 0, CHECK_THREADS | CHECK_RT, 0, 0},
                {"lockholder", "lockholder", 0, CHECK_THREADS | CHECK_LOCKED | CHECK_SLEEP, 0, 0},
                {"cross-wake", "cross-wake", 0, CHECK_THREADS | CHECK_WOKEN, 0, OWN},
                {"signal-storm", "signal-storm", 0, CHECK_THREADS, 10, 0},
                {"idle-open", "idle-open", 0, CHECK_THREADS | CHECK_READS | CHECK_LEDGER, 0, 0},
                {"pidns", "pidns", 0, CHECK_THREADS | CHECK_IDS, 0, OWN},
                {"attach-throttled", "attach-throttled", 0, CHECK_WINDOW, 0, OWN},
                {"lost-switches", "busy", 0, CHECK_THREADS | CHECK_LOSE, 10, OWN},
                {"threads-full", "threads48", 0, CHECK_THREADS | CHECK_FULL, 0, OWN},
                {"steal", "busy quota=10s", 0, CHECK_THREADS | CHECK_STEAL, 0, 0},
                {"read-hard", "busy", 0, CHECK_THREADS | CHECK_QUEUE | CHECK_READS, 0, 0},
                {"read-migrating", "busy-unpinned", 0, CHECK_THREADS | CHECK_READS, 0, 0},
};

static const char *arg_load = "build/tests/load", *arg_only, *arg_side;
static unsigned arg_seconds = 3;
static bool arg_few, arg_virtual;

/* One method's view of a run. */
struct side {
        enum probe_method method;
        bool kprobes;
        const char *name;
        bool works, takes_part, failed; /* here at all; in this run; in the run before */
        struct probe *shared, *probe;   /* of the whole node, as long as it is needed; of this run */
        struct snapshot *before, *after;
        struct arena *arena;
        struct facts facts;
        struct judgement judgement;
        struct why why;
        int error;
};

static struct side sides[] = {
                {.method = PROBE_HOOKS, .name = "hooks"},
                {.method = PROBE_HOOKS, .kprobes = true, .name = "kprobes"},
                {.method = PROBE_TRACEPOINTS, .name = "tracepoints"},
};

#define EACH_SIDE(side) for (struct side *side = sides; side < sides + ELEMENTS(sides); side++)

static void side_clear(struct side *side) {
        snapshot_free(side->before);
        snapshot_free(side->after);
        if (side->probe != side->shared)
                probe_free(side->probe);
        arena_free(side->arena);
        *side = (struct side){.method = side->method,
                              .kprobes = side->kprobes,
                              .name = side->name,
                              .works = side->works,
                              .failed = side->failed,
                              .shared = side->shared};
}

static void side_open(struct root *root, struct side *side, const struct truth_case *test,
                      const struct truth *truth) {
        struct probe_options options = {
                        .target = {.scope = TARGET_CGROUP, .cgroup = truth->groups[test->group].cgroup},
                        .method = side->method,
                        .warn_stall_ns = 50 * NS_PER_MS,
                        .lose_switches = test->checks & CHECK_LOSE ? 97 : 0,
                        .threads_max = test->checks & CHECK_FULL ? THREADS_FEW : 0,
                        .force_kprobes = side->kprobes,
        };

        side->probe = side->shared;
        side->error = test->way & OWN ? probe_open(root, &options, &side->probe, &side->why) : 0;
}

/* A probe that nobody asks meanwhile: what it gathered is taken off, as at every tick of an agent. */
static void side_skip(struct side *side) {
        struct snapshot *snapshot = NULL;
        struct why why;

        if (side->shared && probe_read(side->shared, clock_now(), &snapshot, &why) == 0)
                snapshot_free(snapshot);
}

static void side_read(struct side *side, struct snapshot **ret_snapshot) {
        if (side->takes_part && side->error == 0)
                side->error = probe_read(side->probe, clock_now(), ret_snapshot, &side->why);
}

static void side_close(struct side *side, const struct truth_case *test, const struct truth *truth) {
        const struct facts_options facts_options = {.warn_stall_ns = 50 * NS_PER_MS};
        const struct judge_options judge_options = {.warn_lost_ppm = 50000, .warn_stall_ns = 50 * NS_PER_MS};

        if (side->error < 0)
                return;
        side->arena = arena_new(64u << 20);
        side->error = facts_of_window(side->before, side->after, truth->groups[test->group].id,
                                      &facts_options, side->arena, &side->facts);
        if (side->error < 0)
                why_set(&side->why, side->error, "no facts about the workload's group");
        else
                side->error = judge(&side->facts, &judge_options, side->arena, &side->judgement);
}

/* Time of all CPUs in interrupts, from /proc/stat; 0 if it cannot be read. */
static uint64_t interrupt_ns(void) {
        unsigned long long user, nice, system, idle, iowait, irq = 0, softirq = 0;
        FILE *file = fopen("/proc/stat", "re");

        if (!file)
                return 0;
        if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait,
                   &irq, &softirq) != 7)
                irq = softirq = 0;
        fclose(file);
        return (irq + softirq) * (NS_PER_S / (uint64_t) sysconf(_SC_CLK_TCK));
}

/* Lets it run; reads meanwhile, if asked, as a hasty agent would. */
static int let_run(struct workload *workload, const struct truth_case *test, struct truth *truth) {
        int r;

        EACH_SIDE(side)
        side_read(side, &side->before);
        /* Begin and end come after our readings: their windows are as long as its own, that much later. */
        if (test->checks & CHECK_WINDOW) {
                workload_mark(workload, SIGUSR1);
                usleep(arg_seconds * 1000000);
                EACH_SIDE(side)
                side_read(side, &side->after);
                truth->threads_count = 0;
                workload_mark(workload, SIGUSR2);
                return workload_finish(workload, truth);
        }
        workload_go(workload, truth);
        while (test->checks & CHECK_READS && !workload_has_output(workload, 7))
                EACH_SIDE(side) {
                        struct snapshot *snapshot = NULL;

                        side_read(side, &snapshot);
                        snapshot_free(snapshot);
                }
        r = workload_finish(workload, truth);
        EACH_SIDE(side)
        side_read(side, &side->after);
        return r;
}

static bool side_report(const struct side *side, const struct truth_case *test, const struct truth *truth,
                        bool last_try) {
        char failure[2048], errors[1024];
        struct measured m = {test,        side->method, side->after ? side->after->exact : false,
                             arg_virtual, truth,        side->before,
                             side->after, &side->facts, &side->judgement};

        if (side->error < 0) {
                printf("%s %s/%s: %s\n", last_try ? "FAIL" : "     once:", side->name, test->name,
                       side->why.text);
                return false;
        }
        if (test->checks & CHECK_STEAL && truth->steal_ns < STEAL_LEAST_NS * truth->cpus) {
                printf("SKIP %s/%s: nobody stole time of this machine while it ran (%.0f ms)\n", side->name,
                       test->name, (double) truth->steal_ns / 1e6);
                return true;
        }
        truth_compare(&m, failure, sizeof(failure), errors, sizeof(errors));
        for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                if (side->after->lost[i] > side->before->lost[i]) {
                        size_t used = strlen(errors);
                        snprintf(errors + used, sizeof(errors) - used, "; lost[%zu] %llu", i,
                                 (unsigned long long) (side->after->lost[i] - side->before->lost[i]));
                }
        if (failure[0])
                printf("%s %s/%s: %s\n", last_try ? "FAIL" : "     once:", side->name, test->name, failure);
        else
                printf("PASS %s/%s\n", side->name, test->name);
        printf("     %s/%s: %s\n", side->name, test->name, errors);
        return !failure[0];
}

/* All methods look at the same run of the workload. */
static bool run_case(struct root *root, const struct truth_case *test, bool last_try) {
        static struct truth truth;
        struct workload workload;
        uint64_t began_ns = clock_now().mono_ns;
        char arguments[256];
        bool good = true;
        int r;

        /* Kprobes are the fentry hooks by another way in: where switches and reads are many, and where little else is run. */
        EACH_SIDE(side) {
                bool asked = !side->kprobes || test->way & FEW || test->checks & CHECK_READS;

                side->takes_part = side->works && asked && (!last_try || side->failed);
        }
        snprintf(arguments, sizeof(arguments), "%s --seconds %u", test->arguments, arg_seconds);
        r = workload_start(&workload, arg_load, arguments, &truth);
        if (r == 0) {
                EACH_SIDE(side)
                if (side->takes_part)
                        side_open(root, side, test, &truth);
                else
                        side_skip(side);
                uint64_t irq_ns = interrupt_ns();
                r = let_run(&workload, test, &truth);
                truth.irq_ns = interrupt_ns() - irq_ns;
        }
        EACH_SIDE(side) {
                if (!side->takes_part)
                        continue;
                side->failed = false;
                if (r == 1) {
                        printf("SKIP %s/%s: %s\n", side->name, test->name, workload.unsupported);
                } else if (r < 0) {
                        printf("%s %s/%s: the workload did not tell its figures\n",
                               last_try ? "FAIL" : "     once:", side->name, test->name);
                        side->failed = true;
                } else {
                        side_close(side, test, &truth);
                        side->failed = !side_report(side, test, &truth, last_try);
                }
                good = good && !side->failed;
                side_clear(side);
        }
        workload_end(&workload);
        printf("     %s took %.1f s\n", test->name, (double) (clock_now().mono_ns - began_ns) / 1e9);
        fflush(stdout);
        return good;
}

/* Does the method work here at all? If not, that is one skip with its reason, not thirty failures. What works stays open. */
static bool side_try(struct root *root, struct side *side) {
        struct probe_options options = {
                        .target = {.scope = TARGET_NODE},
                        .method = side->method,
                        .warn_stall_ns = 50 * NS_PER_MS,
                        .threads_max = 4096,
                        .force_kprobes = side->kprobes,
        };
        struct why why = {""};
        int r = probe_open(root, &options, &side->shared, &why);
        /* EPERM and EOPNOTSUPP (524 is the kernel's own ENOTSUPP, ENOENT its word for no kprobes) are the machine's; else it is our fault. */
        bool refused = r == -EPERM || r == -EOPNOTSUPP || r == -524 || (side->kprobes && r == -ENOENT);

        side->works = r == 0;
        if (refused)
                printf("SKIP %s: %s\n", side->name, why.text);
        else if (r < 0)
                printf("FAIL %s: %s\n", side->name, why.text);
        return r == 0 || refused;
}

static bool run_cases(struct root *root, unsigned own) {
        bool good = true;

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct truth_case *test = &cases[i];

                if ((test->way & OWN) != own || (arg_few && !(test->way & FEW)) ||
                    (arg_only && strcmp(arg_only, test->name) != 0))
                        continue;
                if (arg_virtual && test->checks & CHECK_STEAL) {
                        printf("SKIP %s: an emulated machine has no clock of stolen time\n", test->name);
                        continue;
                }
                /*
                 * Whoever shares this machine can stop a clock between two looks at it: what fails is looked at once more, and must
                 * hold then. A wrong attribution fails twice.
                 */
                good = (run_case(root, test, false) || run_case(root, test, true)) && good;
        }
        return good;
}

static int parse_arguments(int argc, char **argv) {
        static const struct option options[] = {
                        {"load", required_argument, NULL, 'l'},
                        {"seconds", required_argument, NULL, 's'},
                        {"method", required_argument, NULL, 'm'},
                        {"only", required_argument, NULL, 'o'},
                        {"few", no_argument, NULL, 'f'},
                        {"virtual", no_argument, NULL, 'v'},
                        {NULL, 0, NULL, 0},
        };
        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                switch (option) {
                case 'l':
                        arg_load = optarg;
                        break;
                case 's':
                        arg_seconds = (unsigned) strtoul(optarg, NULL, 10);
                        break;
                case 'm':
                        arg_side = optarg;
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
        struct why why = {""};
        bool good = true;

        if (parse_arguments(argc, argv) < 0)
                return 2;
        signal(SIGPIPE, SIG_IGN); /* a workload that died is a failure of its case, not our end */
        if (root_open(NULL, &root, &why) < 0) {
                printf("FAIL truth: %s\n", why.text);
                return 1;
        }
        EACH_SIDE(side)
        if (!arg_side || strcmp(arg_side, side->name) == 0)
                good = side_try(root, side) && good;
        good = run_cases(root, 0) && good;
        EACH_SIDE(side) {
                probe_free(side->shared);
                side->shared = NULL;
        }
        good = run_cases(root, OWN) && good;
        root_free(root);
        return good ? 0 : 1;
}
