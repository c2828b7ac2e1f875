/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole situations, with the verdict, the findings in their order, and the first thing to do. Each is what two snapshots and a scan would
 * have said; nothing in it is taken from what the rules want.
 */
#include "../../agent/judge/ratio.h"
#include "judge_build.h"

#define POD "/kubepods/burstable/pod1/x"
#define MACHINE 48

struct expected {
        enum verdict verdict;
        enum severity severity;
        const char *codes;           /* in their order; those that are aside in parentheses */
        const char *setting, *value; /* of the first fix; NULL: none */
};

/* @stalled_ms of thread time lost to the own limit, in stalls of @longest_ms; 10 s. */
static void stalls(struct court *court, uint64_t stalled_ms, uint64_t count, uint64_t longest_ms) {
        struct facts *facts = &court->facts;

        facts->quota_ns_lost = stalled_ms * MS;
        facts->stall_count = count;
        facts->stall_longest_ns = longest_ms * MS;
        facts->stalls_long = longest_ms >= 50 ? count : 0;
        facts->periods = 100;
        facts->periods_throttled = count;
}

static void open_pod(struct court *court, uint64_t milli) {
        court_open(court, 10000);
        court->facts.cpus_online = MACHINE;
        court->facts.age_ns = 86400 * NS_PER_S;
        court->facts.kernel = "6.12.1";
        if (is_known(milli))
                court_limit(court, LIMIT_CONTAINER, POD, milli, milli);
        court->facts.burst_ns = 0;
}

static void threads(struct court *court, unsigned count, uint64_t run_ms) {
        for (unsigned i = 0; i < count; i++)
                court_thread(court, run_ms * MS);
}

/* 4 threads for 4 CPUs, all awake every half second for 800 ms of CPU. */
static void matched_threads_in_bursts(struct court *court) {
        open_pod(court, 4000);
        threads(court, 4, 4000);
        stalls(court, 4000, 20, 60);
        court->facts.cpu_used_ns = 16000 * MS;
        court->facts.runnable_max = court->facts.runnable_p99 = 4;
        court->facts.burst_cpu_p50_ns = court->facts.burst_cpu_p99_ns = 800 * MS;
        court->facts.burst_gap_p50_ns = 250 * MS;
        struct parallelism *row = court_runtime(court, "haproxy", "nbthread", 4);
        row->rounding = ROUND_DOWN;
        row->source = FROM_CONFIG;
}

/* A runtime that reads quotas, and a variable that somebody copied from a larger machine. */
static void explicit_beats_detection(struct court *court) {
        open_pod(court, 2000);
        threads(court, 16, 1200);
        stalls(court, 9000, 90, 80);
        court->facts.runnable_max = court->facts.runnable_p99 = 16;
        struct parallelism *row = court_runtime(court, "go", "GOMAXPROCS", 16);
        row->aware = AWARENESS_QUOTA;
        row->source = FROM_ENVIRONMENT;
        row->rounding = ROUND_UP_FROM_TWO;
}

/* The limit went from 1 to 4; what read it at its start has one worker. */
static void raised_while_pools_stay(struct court *court) {
        open_pod(court, 4000);
        threads(court, 1, 9000);
        struct parallelism *row = court_runtime(court, "envoy", "--concurrency", 1);
        row->aware = AWARENESS_QUOTA;
        row->rounding = ROUND_DOWN;
        row->threads_name = "app";
}

/* The container has no limit of its own, its slice has 2 CPUs. */
static void limited_parent(struct court *court) {
        open_pod(court, ABSENT);
        court_limit(court, LIMIT_ANCESTOR, "/lab.slice", 2000, ABSENT);
        threads(court, 2, 5000);
        stalls(court, 0, 80, 70);
        court->facts.ancestor_ns_lost = 4000 * MS;
        court->facts.runnable_max = court->facts.runnable_p99 = 2;
}

/* The same with a program that counted the machine: it must be compared with the parent's limit. */
static void limited_parent_of_many(struct court *court) {
        limited_parent(court);
        court->facts.threads_count = 0;
        threads(court, 40, 400);
        court->facts.runnable_max = court->facts.runnable_p99 = 40;
        court_runtime(court, "go", "GOMAXPROCS", 48)->rounding = ROUND_UP_FROM_TWO;
}

static void no_limit_and_48_cpus(struct court *court) {
        open_pod(court, ABSENT);
        threads(court, 48, 100);
        court_runtime(court, "nginx", "worker_processes", 48);
}

/* 417m were asked for; systemd made 42 ms of it. */
static void rounded_quota(struct court *court) {
        open_pod(court, 420);
        court->facts.declared_limit_milli = 417;
        threads(court, 1, 2000);
}

/* 500m were asked for; somebody made the period 10 ms and left the quota at 50 ms. */
static void quota_left(struct court *court) {
        open_pod(court, 5000);
        court->facts.period_ns = 10 * MS;
        court->facts.quota_ns = 50 * MS;
        court->facts.declared_limit_milli = 500;
        threads(court, 1, 2000);
}

static void pinned(struct court *court) {
        open_pod(court, 4000);
        threads(court, 4, 9000);
        stalls(court, 2500, 60, 12);
        court->facts.runnable_max = court->facts.runnable_p99 = 4;
        struct parallelism *row = court_runtime(court, "go", "GOMAXPROCS", 4);
        row->affinity = 4;
        row->rounding = ROUND_UP_FROM_TWO;
}

/* Go's least number is 2, also for a quarter of a CPU. */
static void gos_floor(struct court *court) {
        open_pod(court, 250);
        threads(court, 6, 300);
        stalls(court, 4000, 90, 80);
        court->facts.runnable_max = court->facts.runnable_p99 = 2;
        court->facts.unstalled_milli = 1900;
        struct parallelism *row = court_runtime(court, "go", "GOMAXPROCS", 2);
        row->aware = AWARENESS_QUOTA;
        row->follows = true;
        row->rounding = ROUND_UP_FROM_TWO;
}

static void idle_workers(struct court *court) {
        open_pod(court, 1000);
        for (uint32_t i = 0; i < 48; i++)
                court_thread_of(court, COURT_PID + 1 + i, "httpd", "httpd", 0);
        court_thread_of(court, COURT_PID, "httpd", "httpd", 20 * MS);
        struct parallelism *row = court_runtime(court, "apache", "MaxRequestWorkers", 48);
        row->unit = UNIT_PROCESSES;
}

/* The one that works stalls; the 47 beside it sleep, and are not to blame. */
static void idle_workers_beside_a_burst(struct court *court) {
        idle_workers(court);
        court_limit(court, LIMIT_CONTAINER, POD, 500, 500);
        court_thread_of(court, 900, "httpd", "httpd", 2000 * MS);
        stalls(court, 1500, 25, 60);
        court->facts.runnable_max = court->facts.runnable_p99 = 1;
        court->facts.burst_cpu_p50_ns = court->facts.burst_cpu_p99_ns = 80 * MS;
        court->facts.burst_gap_p50_ns = 300 * MS;
}

/* Schedulers in the right number, that look for work and burn the quota with it. */
static void spinning_schedulers(struct court *court) {
        open_pod(court, 2000);
        court->facts.throttled_used_ns = 10000 * MS;
        for (int i = 0; i < 2; i++)
                court_thread_of(court, COURT_PID, "beam.smp", "erts_sched_1", 6000 * MS)->quota_spent_ns =
                                4500 * MS;
        court_thread_of(court, COURT_PID, "beam.smp", "erts_aux_1", 50 * MS);
        stalls(court, 2000, 70, 30);
        court->facts.runnable_max = court->facts.runnable_p99 = 2;
        struct parallelism *row = court_runtime(court, "beam", "+S", 2);
        row->threads_name = "erts_sched_";
        row->spins = true;
}

/* OpenMP counted the machine; each barrier spins. */
static void spinning_team(struct court *court) {
        open_pod(court, 4000);
        court->facts.throttled_used_ns = 30000 * MS;
        for (int i = 0; i < 48; i++)
                court_thread(court, 800 * MS)->quota_spent_ns = 600 * MS;
        stalls(court, 300000, 99, 90);
        court->facts.runnable_max = court->facts.runnable_p99 = 48;
        struct parallelism *row = court_runtime(court, "openmp", "OMP_NUM_THREADS", 48);
        row->spins = true;
        row->how = "set OMP_NUM_THREADS={n} and OMP_WAIT_POLICY=passive";
}

/* Edited, never reloaded. */
static void config_says_another(struct court *court) {
        open_pod(court, 2000);
        for (uint32_t i = 0; i < 16; i++)
                court_thread_of(court, 200 + i, "nginx", "nginx", 1100 * MS);
        court_thread_of(court, COURT_PID, "nginx", "nginx", 1 * MS);
        stalls(court, 8000, 90, 85);
        court->facts.runnable_max = court->facts.runnable_p99 = 16;
        struct parallelism *row = court_runtime(court, "nginx", "worker_processes", 16);
        row->unit = UNIT_PROCESSES;
        row->configured = 2;
        row->source = FROM_CONFIG;
}

/* Eight threads of CPython: one runs, the others wait for it and time out together while it is stalled. */
static void behind_a_lock(struct court *court) {
        open_pod(court, 250);
        for (int i = 0; i < 8; i++) {
                struct thread_facts *thread =
                                court_thread_of(court, COURT_PID, "python3", "python3", 280 * MS);
                thread->sleep_in_stall_ns = 4000 * MS;
        }
        stalls(court, 6000, 80, 75);
        court->facts.cpu_used_ns = 2240 * MS;
        court->facts.runnable_max = court->facts.runnable_p99 = 8;
        court->facts.unstalled_milli = 1080;
        court->facts.burst_cpu_p50_ns = court->facts.burst_cpu_p99_ns = 43 * MS;
        court->facts.burst_gap_p50_ns = 357 * MS;
}

static void starting_jvm(struct court *court) {
        open_pod(court, 1000);
        court->facts.age_ns = 12 * NS_PER_S;
        threads(court, 1, 4000);
        for (int i = 0; i < 3; i++)
                court_thread_of(court, COURT_PID, "java", "C2 CompilerThre", 1900 * MS);
        stalls(court, 9000, 95, 75);
        court->facts.runnable_max = court->facts.runnable_p99 = 4;
        struct parallelism *row = court_runtime(court, "jvm", "-XX:ActiveProcessorCount", 1);
        row->aware = AWARENESS_QUOTA;
        row->follows = true;
}

/* nbthread by the machine's CPUs, on one. */
static void haproxy_48_on_1(struct court *court) {
        open_pod(court, 1000);
        threads(court, 48, 205);
        stalls(court, 200000, 99, 95);
        court->facts.runnable_max = court->facts.runnable_p99 = 47;
        struct parallelism *row = court_runtime(court, "haproxy", "nbthread", 48);
        row->rounding = ROUND_DOWN;
        row->how = "nbthread {n} in the section global";
}

/* A server that came up ten seconds ago, with its threads by the machine and requests already: that is no start. */
static void young_haproxy(struct court *court) {
        haproxy_48_on_1(court);
        court->facts.age_ns = 12 * NS_PER_S;
}

/* Regular bursts from the first second on. */
static void young_bursts(struct court *court) {
        behind_a_lock(court);
        court->facts.age_ns = 12 * NS_PER_S;
        court->facts.burst_count = 25;
}

/* By files only, as on a kernel that old; half of the quota of its throttled periods was never used. */
static void kernel_5_3(struct court *court) {
        open_pod(court, 1000);
        court->facts.kernel = "5.3.0-40-generic";
        court_files(court, 2500, 6000);
        court->facts.runqueue_throttled_ns = 9000 * MS;
        court->facts.periods = 100;
        court->facts.periods_throttled = 50;
        court->facts.cpu_used_ns = 2500 * MS;
}

/* 100 backends, all but a few idle; five of them at a time meet half a CPU. */
static void postgres_pool(struct court *court) {
        open_pod(court, 500);
        for (uint32_t i = 0; i < 50; i++)
                court_thread_of(court, 200 + i, "postgres", "postgres", i < 5 ? 900 * MS : 0);
        court_thread_of(court, COURT_PID, "postgres", "postgres", 2 * MS);
        stalls(court, 15000, 95, 80);
        court->facts.runnable_max = court->facts.runnable_p99 = 5;
        court->facts.unstalled_milli = 5000;
        struct parallelism *row = court_runtime(court, "postgres", "max_connections", 100);
        row->unit = UNIT_PROCESSES;
        row->rounding = ROUND_NEVER;
        row->is_blocking = true;
        row->active = 5;
}

/* 48 of them that never collide: each second another. */
static void never_at_once(struct court *court) {
        open_pod(court, 2000);
        threads(court, 48, 150);
        court->facts.runnable_max = 3;
        court->facts.runnable_p99 = 1;
        court_runtime(court, "go", "GOMAXPROCS", 48)->rounding = ROUND_UP_FROM_TWO;
}

/* What the session does before it judges; wanted time is run + stall, as nobody waits here. */
static void hear(struct court *court) {
        struct facts *facts = &court->facts;
        uint64_t wanted_ns = known_or_zero(facts->quota_ns_lost) + known_or_zero(facts->ancestor_ns_lost);

        for (size_t i = 0; i < facts->threads_count; i++)
                wanted_ns += facts->threads[i].run_ns + known_or_zero(facts->threads[i].runqueue_delay_ns);
        facts->wanted_milli = ratio_scale(wanted_ns, 1000, facts->window_ns);
        court_scanned(court);
        court_judge(court);
}

#define QUOTA_WARNING VERDICT_QUOTA, SEVERITY_WARNING

static const struct {
        const char *name;
        void (*open)(struct court *court);
        struct expected expected;
} scenarios[] = {
                {"matched threads in bursts",
                 matched_threads_in_bursts,
                 {QUOTA_WARNING, "BurstExceedsQuota CPUThrottled", "resources.limits.cpu", "4500m"}},
                {"an explicit value beats detection",
                 explicit_beats_detection,
                 {QUOTA_WARNING, "ParallelismExceedsLimit CPUThrottled", "GOMAXPROCS", "2"}},
                {"limit raised later while pools stay",
                 raised_while_pools_stay,
                 {VERDICT_FINE, SEVERITY_NONE, "(ParallelismBelowLimit)", "--concurrency", "4"}},
                {"a limited parent with an unlimited leaf",
                 limited_parent,
                 {VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, "AncestorThrottled", "CPUQuota=", "250%"}},
                {"a limited parent of many threads",
                 limited_parent_of_many,
                 {VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, "ParallelismExceedsLimit AncestorThrottled",
                  "GOMAXPROCS", "2"}},
                {"no limit and 48 CPUs",
                 no_limit_and_48_cpus,
                 {VERDICT_NO_LIMIT, SEVERITY_NONE, "(NoLimitParallelism)", NULL, NULL}},
                {"quota rounded by the runtime",
                 rounded_quota,
                 {VERDICT_FINE, SEVERITY_NONE, "", NULL, NULL}},
                {"period of 10 ms with the old quota",
                 quota_left,
                 {VERDICT_FINE, SEVERITY_NONE, "(LimitNotAsDeclared)", "the group's quota and period",
                  "500m"}},
                {"pinned CPUs with a quota",
                 pinned,
                 {QUOTA_WARNING, "QuotaOnPinnedCPUs CPUThrottled", "no quota for pinned CPUs", NULL}},
                {"Go's floor of two",
                 gos_floor,
                 {QUOTA_WARNING, "CPUThrottled", "resources.limits.cpu", "600m"}},
                {"idle workers", idle_workers, {VERDICT_FINE, SEVERITY_NONE, "", NULL, NULL}},
                {"idle workers beside a burst",
                 idle_workers_beside_a_burst,
                 {QUOTA_WARNING, "BurstExceedsQuota CPUThrottled (ParallelismExceedsLimit)",
                  "resources.limits.cpu", "800m"}},
                {"spinning schedulers",
                 spinning_schedulers,
                 {QUOTA_WARNING, "CPUThrottled", "resources.limits.cpu", "2500m"}},
                {"a spinning team",
                 spinning_team,
                 {QUOTA_WARNING, "ParallelismExceedsLimit CPUThrottled", "OMP_NUM_THREADS", "4"}},
                {"the configuration says another number",
                 config_says_another,
                 {QUOTA_WARNING, "ParallelismExceedsLimit CPUThrottled", "worker_processes", "2"}},
                {"threads behind a lock",
                 behind_a_lock,
                 {QUOTA_WARNING, "BurstExceedsQuota CPUThrottled", "resources.limits.cpu", "500m"}},
                {"a JVM that starts",
                 starting_jvm,
                 {QUOTA_WARNING, "StartupThrottled CPUThrottled (ParallelismExceedsLimit)",
                  "resources.limits.cpu", "1900m"}},
                {"a young server with too many threads",
                 young_haproxy,
                 {QUOTA_WARNING, "ParallelismExceedsLimit StartupThrottled CPUThrottled", "nbthread", "1"}},
                {"bursts from the first second on",
                 young_bursts,
                 {QUOTA_WARNING, "BurstExceedsQuota StartupThrottled CPUThrottled", "resources.limits.cpu",
                  "500m"}},
                {"kernel 5.3",
                 kernel_5_3,
                 {QUOTA_WARNING, "KernelQuotaBug CPUThrottled", "kernel", "5.4 or later"}},
                {"HAProxy with 48 threads on one CPU",
                 haproxy_48_on_1,
                 {QUOTA_WARNING, "ParallelismExceedsLimit CPUThrottled", "nbthread", "1"}},
                {"PostgreSQL's backends",
                 postgres_pool,
                 {QUOTA_WARNING, "ParallelismExceedsLimit CPUThrottled", "resources.limits.cpu", "2"}},
                {"48 that are never at work at once",
                 never_at_once,
                 {VERDICT_FINE, SEVERITY_NONE, "(ParallelismExceedsLimit)", "GOMAXPROCS", "2"}},
};

static void add_codes(const struct judgement *judgement, char *out, size_t room) {
        size_t used = 0;
        out[0] = '\0';
        for (size_t i = 0; i < judgement->findings_count; i++) {
                const struct finding *finding = &judgement->findings[i];
                used += (size_t) snprintf(out + used, room - used, finding->is_aside ? "%s(%s)" : "%s%s",
                                          i > 0 ? " " : "", finding->code);
        }
}

Test(judge_scenarios, each_has_the_right_verdict_and_remedy) {
        for (size_t i = 0; i < ELEMENTS(scenarios); i++) {
                const struct expected *expected = &scenarios[i].expected;
                const char *name = scenarios[i].name;
                struct court court;
                char codes[512];
                scenarios[i].open(&court);
                hear(&court);
                add_codes(&court.judgement, codes, sizeof(codes));
                const struct finding *first = court.judgement.findings;
                const struct fix *fix = court.judgement.findings_count > 0 && first->fixes_count > 0
                                                        ? &first->fixes[0]
                                                        : NULL;

                cr_expect_eq(court.judgement.verdict, expected->verdict, "%s: %s", name,
                             verdict_name(court.judgement.verdict));
                cr_expect_eq(court.judgement.severity, expected->severity, "%s: %s", name,
                             severity_name(court.judgement.severity));
                cr_expect_str_eq(codes, expected->codes, "%s: %s", name, codes);
                cr_expect_eq(fix != NULL, expected->setting != NULL, "%s", name);
                if (fix && expected->setting) {
                        cr_expect_str_eq(fix->setting, expected->setting, "%s: %s", name, fix->setting);
                        cr_expect_eq(fix->value != NULL, expected->value != NULL, "%s", name);
                        if (fix->value && expected->value)
                                cr_expect_str_eq(fix->value, expected->value, "%s: %s", name, fix->value);
                }
                court_close(&court);
        }
}

/* What was advised takes the finding away. */
Test(judge_scenarios, the_advice_removes_the_finding) {
        static const struct {
                void (*open)(struct court *court);
                uint64_t effective;
        } rows[] = {{explicit_beats_detection, 2},
                    {haproxy_48_on_1, 1},
                    {spinning_team, 4},
                    {never_at_once, 2}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                rows[i].open(&court);
                court.rows[0].effective = rows[i].effective;
                court.facts.threads_count = rows[i].effective;
                court.facts.runnable_max = court.facts.runnable_p99 = rows[i].effective;
                court.facts.quota_ns_lost = court.facts.stall_count = court.facts.stalls_long = 0;
                hear(&court);
                cr_assert_eq(court.judgement.findings_count, 0, "row %zu: %s", i,
                             court.judgement.findings_count > 0 ? court.judgement.findings[0].code : "");
                court_close(&court);
        }
}

/* In Kubernetes a period or burst credit is the node's: never what to do first. */
Test(judge_scenarios, never_first_what_only_the_node_can_set_for_all) {
        for (size_t i = 0; i < ELEMENTS(scenarios); i++) {
                struct court court;
                scenarios[i].open(&court);
                hear(&court);
                for (size_t k = 0; k < court.judgement.findings_count; k++) {
                        const struct finding *finding = &court.judgement.findings[k];
                        if (finding->fixes_count == 0)
                                continue;
                        cr_expect_str_neq(finding->fixes[0].setting, "period", "%s", scenarios[i].name);
                        cr_expect_str_neq(finding->fixes[0].setting, "burst credit", "%s",
                                          scenarios[i].name);
                }
                court_close(&court);
        }
}
