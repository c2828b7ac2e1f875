/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hand-made facts for the tests of the report forms: one story a verdict, and those that try a form's limits. Times are made so that the window
 * ends at 2026-11-30T12:00:30Z.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/report/report.h"

#define MS NS_PER_MS
#define STORY_WINDOW (30 * NS_PER_S)
#define STORY_END_MONO (5000 * NS_PER_S)
#define STORY_END_REAL (UINT64_C(1796040030) * NS_PER_S)
#define STORY_THREADS 600

struct story {
        struct facts facts;
        struct judgement judgement;
        struct finding findings[3];
        struct missing_item missing[2];
        struct thread_facts threads[STORY_THREADS];
        struct parallelism rows[PARALLELISM_MAX];
        struct parallelism_facts parallelism[PARALLELISM_MAX];
        struct report report;
};

/* A moment @at_ms after the window began. */
static inline uint64_t story_mono(uint64_t at_ms) {
        return STORY_END_MONO - STORY_WINDOW + at_ms * MS;
}

static inline struct thread_facts story_thread_absent(uint32_t pid, uint32_t tid, const char *process,
                                                      const char *name) {
        struct thread_facts thread;

        memset(&thread, 0xff, sizeof(thread)); /* every figure ABSENT */
        thread.pid = pid;
        thread.tid = tid;
        thread.host_pid = thread.host_tid = thread.folded = 0;
        thread.ended = false;
        snprintf(thread.process, sizeof(thread.process), "%.15s", process);
        snprintf(thread.name, sizeof(thread.name), "%.15s", name);
        return thread;
}

static inline void story_add_thread(struct story *story, struct thread_facts thread) {
        cr_assert(story->facts.threads_count < STORY_THREADS);
        story->threads[story->facts.threads_count++] = thread;
}

static inline void story_add_measured(struct story *story, uint32_t pid, uint32_t tid, const char *process,
                                      const char *name, uint64_t stall_ms, uint64_t run_ms) {
        struct thread_facts thread = story_thread_absent(pid, tid, process, name);

        thread.host_pid = pid + 7000;
        thread.host_tid = tid + 7000;
        thread.run_ns = run_ms * MS;
        thread.wait_ns = run_ms * MS / 20;
        thread.stall_ns = stall_ms * MS;
        thread.stall_above_ns = 0;
        thread.sleep_ns = STORY_WINDOW - thread.run_ns - thread.wait_ns - thread.stall_ns;
        thread.sleep_in_stall_ns = thread.sleep_ns / 5;
        thread.stalls = stall_ms / 85;
        thread.stall_longest_ns = thread.stalls ? 88 * MS : 0;
        thread.stall_p50_ns = thread.stalls ? 82 * MS : ABSENT;
        thread.stall_p99_ns = thread.stalls ? 86 * MS : ABSENT;
        thread.quota_spent_ns = thread.stalls ? run_ms * MS * 9 / 10 : 0;
        thread.exec_ns = thread.run_ns;
        thread.switches = 40 + run_ms;
        thread.wall_ns = STORY_WINDOW;
        story_add_thread(story, thread);
}

/* Nothing known but who and when: what every story begins with. */
static inline struct story *story_new(void) {
        struct story *story = calloc(1, sizeof(*story));
        struct facts *facts;

        cr_assert_not_null(story);
        facts = &story->facts;
        memset(facts, 0xff, sizeof(*facts)); /* every figure ABSENT */
        facts->cgroup_v1_mount = NULL;
        facts->kernel = NULL;
        facts->parallelism = NULL;
        facts->parallelism_count = facts->parallelism_omitted = facts->affinity = 0;
        facts->window_ns = STORY_WINDOW;
        facts->to = (struct instant){.mono_ns = STORY_END_MONO, .real_ns = STORY_END_REAL};
        facts->from = (struct instant){STORY_END_MONO - STORY_WINDOW, STORY_END_REAL - STORY_WINDOW};
        facts->method = PROBE_TRACEPOINTS;
        facts->exact = facts->measured = true;
        facts->cpus_online = 8;
        facts->has_limit = facts->limit_unknown = facts->parent_hidden = facts->ancestor_is_tighter = false;
        facts->limit_level = LIMIT_CONTAINER;
        facts->limit_cgroup = NULL;
        facts->stalls_count = facts->threads_count = facts->missing_count = 0;
        facts->threads = story->threads;
        facts->missing = story->missing;
        memset(facts->lost, 0, sizeof(facts->lost));
        story->judgement.findings = story->findings;
        story->report = (struct report){
                        .identity = {.namespace = "shop",
                                     .pod = "web-7d4f9",
                                     .container = "app",
                                     .request_milli = ABSENT},
                        .facts = facts,
                        .judgement = &story->judgement,
                        .version = "0.1.0",
                        .threads_max = 20,
        };
        return story;
}

static inline void story_limit(struct story *story, uint64_t milli, enum limit_level level,
                               const char *cgroup) {
        struct facts *facts = &story->facts;

        facts->has_limit = true;
        facts->limit_milli = milli;
        facts->period_ns = 100 * MS;
        facts->quota_ns = milli * facts->period_ns / 1000;
        facts->burst_ns = 0;
        facts->limit_level = level;
        facts->limit_cgroup = cgroup;
        if (level == LIMIT_CONTAINER)
                facts->own_limit_milli = milli;
}

static inline void story_stalls(struct story *story, uint64_t wall_ms) {
        struct facts *facts = &story->facts;

        facts->stall_count = wall_ms / 80;
        facts->stall_wall_ns = wall_ms * MS;
        facts->stall_longest_ns = wall_ms ? 88 * MS : 0;
        facts->stall_p50_ns = wall_ms ? 82 * MS : ABSENT;
        facts->stall_p99_ns = wall_ms ? 87 * MS : ABSENT;
        for (size_t i = 0; i < facts->stall_count && i < FACTS_STALLS_MAX; i++)
                facts->stalls[facts->stalls_count++] = (struct stall_interval){
                                .start_ns = story_mono(14312 - 400 * i),
                                .end_ns = story_mono(14312 - 400 * i) + (88 - i) * MS,
                };
}

/* A setting of a runtime of which nothing more is known than its number; the limit suggests @recommended. */
static inline struct parallelism *story_add_row(struct story *story, const char *runtime,
                                                const char *setting, uint64_t effective,
                                                uint64_t recommended) {
        size_t i = story->facts.parallelism_count++;

        cr_assert(i < PARALLELISM_MAX);
        story->facts.parallelism = story->parallelism;
        story->rows[i] = (struct parallelism){
                        .runtime = runtime,
                        .pid = 10 + (uint32_t) i,
                        .setting = setting,
                        .effective = effective,
                        .configured = ABSENT,
                        .memory_bytes = ABSENT,
                        .active = ABSENT,
                        .leaving = ABSENT,
        };
        story->parallelism[i] = (struct parallelism_facts){
                        .row = &story->rows[i],
                        .recommended = recommended,
                        .surplus = is_known(effective) && is_known(recommended)
                                                   ? effective - (recommended < effective ? recommended
                                                                                          : effective)
                                                   : ABSENT,
                        .surplus_memory_bytes = ABSENT,
                        .run_ns = ABSENT,
                        .stall_ns = ABSENT,
                        .quota_spent_ns = ABSENT,
        };
        return &story->rows[i];
}

/* The example of the design: a small limit, bursts, one Pod. */
static inline struct story *story_quota(void) {
        struct story *story = story_new();
        struct facts *facts = &story->facts;

        story_limit(story, 250, LIMIT_CONTAINER, "/kubepods/burstable/pod1/c1");
        story_stalls(story, 8400);
        facts->cpu_used_ns = 3240 * MS;
        facts->wanted_milli = 900;
        facts->quota_ns_lost = 16900 * MS;
        facts->worst_burst_at_ns = story_mono(14260);
        facts->worst_burst_ns = 214 * MS;
        facts->worst_burst_stall_ns = 167 * MS;
        story_add_measured(story, 1, 1, "python3", "python3", 90, 400);
        for (uint32_t i = 0; i < 8; i++)
                story_add_measured(story, 1, 20 + i, "python3", "worker", 2112, 300 + i);
        for (uint32_t i = 0; i < 12; i++)
                story_add_measured(story, 1, 40 + i, "python3", "idle", 0, 0);
        story->judgement = (struct judgement){VERDICT_QUOTA, SEVERITY_WARNING, story->findings, 2};
        story->findings[0] = (struct finding){
                        .code = "BurstExceedsQuota",
                        .severity = SEVERITY_WARNING,
                        .summary = "bursts: about 43 ms of CPU every 400 ms; the limit gives 25 ms per 100 "
                                   "ms. One thread runs "
                                   "at a time.",
                        .evidence = {{"burst_cpu_p99_ns", 43 * MS}, {"quota_ns", 25 * MS}},
                        .evidence_count = 2,
                        .fixes = {{"limits.cpu", "500m",
                                   "kubectl -n shop patch pod web-7d4f9 --subresource resize -p "
                                   "'{\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"limits\":"
                                   "{\"cpu\":\"500m\"}}}]}}'",
                                   "app",
                                   "the runtime's own default becomes 48 threads; set it to 5 first"}},
                        .fixes_count = 1,
        };
        story->findings[1] = (struct finding){
                        .code = "ParallelismExceedsLimit",
                        .severity = SEVERITY_INFO,
                        .summary = "8 threads wanted to run at once; the limit is 0.25 CPU.",
                        .evidence = {{"runnable_max", 8}},
                        .evidence_count = 1,
        };
        return story;
}

/* Without privileges: cgroup files and /proc, a plain service. */
static inline struct story *story_files(void) {
        struct story *story = story_new();
        struct facts *facts = &story->facts;

        story->report.identity = (struct report_identity){
                        .cgroup = "/system.slice/foo.service", .request_milli = ABSENT, .process_id = 123};
        facts->method = PROBE_FILES;
        facts->exact = facts->measured = false;
        story_limit(story, 2000, LIMIT_CONTAINER, "/system.slice/foo.service");
        facts->cpu_used_ns = 51 * NS_PER_S;
        facts->periods = 300;
        facts->periods_throttled = 102;
        facts->runqueue_throttled_ns = 9 * NS_PER_S;
        for (uint32_t i = 0; i < 3; i++) {
                struct thread_facts thread = story_thread_absent(123, 123 + i, "foo", i ? "pool" : "foo");

                thread.run_ns = (17000 - 100 * i) * MS;
                thread.runqueue_delay_ns = (2345 - 500 * i) * MS;
                story_add_thread(story, thread);
        }
        story->missing[0] = (struct missing_item){"thread stalls", "no right to load BPF programs (EPERM)",
                                                  "run as root, or give CAP_BPF and CAP_PERFMON"};
        facts->missing_count = 1;
        story->judgement = (struct judgement){VERDICT_QUOTA, SEVERITY_WARNING, story->findings, 1};
        story->findings[0] = (struct finding){
                        .code = "CPUThrottled",
                        .severity = SEVERITY_WARNING,
                        .summary = "34 % of the periods ended throttled.",
                        .evidence = {{"periods_throttled", 102}, {"periods", 300}},
                        .evidence_count = 2,
                        .fixes = {{"CPUQuota=", "300%", "systemctl set-property foo.service CPUQuota=300%",
                                   "node", NULL}},
                        .fixes_count = 1,
        };
        return story;
}

static inline struct story *story_ancestor(void) {
        struct story *story = story_new();

        story_limit(story, 2000, LIMIT_ANCESTOR, "/kubepods.slice/kubepods-burstable.slice");
        story->facts.own_limit_milli = 4000;
        story_stalls(story, 2400);
        story->facts.cpu_used_ns = 36 * NS_PER_S;
        story->facts.ancestor_ns_lost = 5 * NS_PER_S;
        story_add_measured(story, 1, 1, "java", "GC Thread#0", 2400, 20000);
        story->judgement = (struct judgement){VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, story->findings, 0};
        return story;
}

static inline struct story *story_pod(void) {
        struct story *story = story_ancestor();

        story_limit(story, 500, LIMIT_POD, "/kubepods/burstable/pod2");
        return story;
}

static inline struct story *story_contention(void) {
        struct story *story = story_new();

        story_limit(story, 4000, LIMIT_CONTAINER, NULL);
        story_stalls(story, 0);
        story->facts.cpu_used_ns = 60 * NS_PER_S;
        story->facts.wanted_milli = 2500;
        story->facts.contention_ns_lost = 9 * NS_PER_S;
        story->facts.quota_ns_lost = 0;
        story_add_measured(story, 1, 1, "nginx", "nginx", 0, 20000);
        story_add_measured(story, 2, 2, "nginx", "nginx", 0, 19000);
        story->judgement = (struct judgement){VERDICT_CONTENTION, SEVERITY_INFO, story->findings, 0};
        return story;
}

static inline struct story *story_steal(void) {
        struct story *story = story_contention();

        story->facts.contention_ns_lost = 0;
        story->facts.steal_ns_lost = 3 * NS_PER_S;
        story->judgement.verdict = VERDICT_STEAL;
        return story;
}

static inline struct story *story_mixed(void) {
        struct story *story = story_contention();

        story_stalls(story, 1200);
        story->facts.quota_ns_lost = 6 * NS_PER_S;
        story->facts.steal_ns_lost = 1 * NS_PER_S;
        story->judgement.verdict = VERDICT_MIXED;
        return story;
}

static inline struct story *story_fine(void) {
        struct story *story = story_new();

        story_limit(story, 250, LIMIT_CONTAINER, NULL);
        story_stalls(story, 0);
        story->facts.cpu_used_ns = 810 * MS;
        story_add_measured(story, 1, 1, "redis-server", "redis-server", 0, 810);
        story->judgement = (struct judgement){VERDICT_FINE, SEVERITY_NONE, story->findings, 0};
        return story;
}

static inline struct story *story_no_limit(void) {
        struct story *story = story_new();

        story->facts.cpu_used_ns = 39300 * MS;
        story->report.identity.request_milli = 500;
        story_add_measured(story, 1, 1, "node", "node", 0, 39300 / 2);
        story->judgement = (struct judgement){VERDICT_NO_LIMIT, SEVERITY_NONE, story->findings, 0};
        return story;
}

/* A sidecar that sees only itself. */
static inline struct story *story_not_measured(void) {
        struct story *story = story_new();

        story->facts.method = PROBE_FILES;
        story->facts.exact = story->facts.measured = false;
        story->facts.ancestor_throttled_ns = 12 * NS_PER_S;
        story->missing[0] = (struct missing_item){"the app's processes", "app runs as 1000, I run as 65532",
                                                  "set runAsUser: 1000"};
        story->facts.missing_count = 1;
        story->judgement = (struct judgement){VERDICT_NOT_MEASURED, SEVERITY_NONE, story->findings, 0};
        return story;
}

/* Every field that a report can have. */
static inline struct story *story_full(void) {
        struct story *story = story_quota();
        struct facts *facts = &story->facts;
        struct thread_facts folded = story_thread_absent(1, 0, "python3", "python3");

        story->report.identity = (struct report_identity){
                        .node = "node-a",
                        .namespace = "shop",
                        .pod = "web-7d4f9",
                        .container = "app",
                        .pod_uid = "0f0e7a2c-58b4-4ad4-8d38-25e52aa7b6a1",
                        .container_id = "3f4e1c0f8ad1c6f6e8c9b1f0a9d84c5b3a291807f6e5d4c3b2a190817263544f",
                        .cgroup = "/kubepods/burstable/pod1/c1",
                        .request_milli = 100,
                        .process_id = 4711};
        story->report.threads_max = 4;
        facts->burst_ns = 5 * MS;
        facts->weight = 79;
        facts->periods = 300;
        facts->periods_throttled = 120;
        facts->periods_bursts = 2;
        facts->throttled_used_ns = 2700 * MS;
        facts->runqueue_throttled_ns = 8500 * MS;
        facts->ancestor_throttled_ns = 0;
        facts->ancestor_ns_lost = 0;
        facts->contention_ns_lost = 300 * MS;
        facts->steal_ns_lost = 0;
        facts->runnable_max = 8;
        facts->runnable_p99 = 7;
        facts->burst_count = 74;
        facts->burst_cpu_p50_ns = 41 * MS;
        facts->burst_cpu_p99_ns = 47 * MS;
        facts->burst_cpu_max_ns = 48 * MS;
        facts->burst_gap_p50_ns = 355 * MS;
        facts->burst_longest_ns = 214 * MS;
        facts->burst_slowdown_permille = 4553;
        for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                facts->lost[i] = i + 1;
        facts->unstalled_milli = 1043;
        struct parallelism *row = story_add_row(story, "nginx", "worker_processes", 48, 1);
        row->program = "ingress";
        row->version = "1.27.1";
        row->host_pid = 7010;
        row->unit = UNIT_PROCESSES;
        row->configured = 2;
        row->source = FROM_CONFIG;
        row->source_detail = "/etc/nginx/nginx.conf:5";
        row->aware = AWARENESS_NONE;
        row->active = 3;
        row->leaving = 4;
        row->unreadable = "environment: another uid; run as uid 101 or with CAP_SYS_PTRACE";
        story->parallelism[0].how = "set worker_processes 1; in the main context";
        story->parallelism[0].surplus_memory_bytes = UINT64_C(230686720);
        story_add_row(story, "python", "threads", ABSENT, ABSENT);
        facts->parallelism_omitted = 2;
        folded.run_ns = 17 * MS;
        folded.folded = 37;
        folded.ended = true;
        story->threads[1] = folded;
        story->threads[2].runqueue_delay_ns = 2200 * MS;
        story->threads[15].runqueue_delay_ns = 1 * MS;
        story->missing[0] = (struct missing_item){"limits above the Pod", "hidden by the cgroup namespace",
                                                  "use the DaemonSet"};
        facts->missing_count = 1;
        return story;
}

/* Names a container could have chosen to break a terminal, a line or a parser. */
static inline struct story *story_hostile(void) {
        static const char *const names[] = {
                        "\x1b[2J\x1b[31mred",
                        "a\nb\r\tc",
                        "\"},{\"pid\":1",
                        "\xff\xfe\xc3(",
                        "\\x1b[0m",
                        "\xe2\x80\xae"
                        "evil\xe2\x80\x8b",
                        "日本語スレ",
                        "",
                        "%s%n%s",
                        "\x7f\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e",
        };
        struct story *story = story_quota();

        story->facts.threads_count = 0;
        for (size_t i = 0; i < ELEMENTS(names); i++)
                story_add_measured(story, 1, 10 + (uint32_t) i, i % 2 ? "sh\x1b]0;x\a" : "sh", names[i],
                                   1000 - 50 * i, 100);
        struct parallelism *row = story_add_row(story, "go", "GOMAX\x1b[31m", 48, 2);
        row->program = "evil\nprogram";
        row->version = "1.\xff";
        row->source = FROM_ENVIRONMENT;
        row->source_detail = "A=\x1b]0;x\a";
        row->unreadable = "memory: \x1b[2J of it";
        story->parallelism[0].how = "set it\x1b[2J";
        story->report.identity = (struct report_identity){
                        .cgroup = "/system.slice/\x1b[31m\nevil\\x2d\xff.service", .request_milli = ABSENT};
        story->facts.limit_cgroup = "/a\"b\\c\n\xc0\x80";
        story->facts.limit_level = LIMIT_ANCESTOR;
        story->findings[0].summary = "thread \\x1b[2J took it \x1b[31m\xff all";
        story->findings[0].fixes[0].how = "";
        return story;
}

/* More than a line of 16 KiB holds, and names wider than a table. */
static inline struct story *story_crowd(void) {
        static char pod[254], container[64], cgroup[4000];
        struct story *story = story_quota();

        memset(pod, 'p', sizeof(pod) - 1);
        memset(container, 'c', sizeof(container) - 1);
        memset(cgroup, '\x1b', sizeof(cgroup) - 1);
        story->report.identity.pod = pod;
        story->report.identity.container = container;
        story->report.identity.cgroup = cgroup;
        story->facts.limit_cgroup = cgroup;
        story->facts.limit_level = LIMIT_ANCESTOR;
        story->facts.threads_count = 0;
        story->report.threads_max = 500;
        for (uint32_t i = 0; i < 500; i++) {
                char name[64];

                snprintf(name, sizeof(name), "\x01\x02\x03\x04\x05\x06\x07\x0e\x0f%06" PRIu32, i);
                story_add_measured(story, 1, 10 + i,
                                   "\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f", name,
                                   5000 - i, 100);
        }
        return story;
}

static const struct story_row {
        const char *name;
        struct story *(*make)(void);
} story_rows[] = {
                {"quota", story_quota},
                {"files", story_files},
                {"ancestor", story_ancestor},
                {"pod", story_pod},
                {"contention", story_contention},
                {"steal", story_steal},
                {"mixed", story_mixed},
                {"fine", story_fine},
                {"no-limit", story_no_limit},
                {"not-measured", story_not_measured},
                {"full", story_full},
                {"hostile", story_hostile},
                {"crowd", story_crowd},
};

/*
 * @actual must be what tests/fixtures/report/NAME.EXTENSION holds. With UPDATE_GOLDEN in the environment the file is written instead: look at the
 * difference before committing it.
 */
static inline void story_expect_golden(const char *name, const char *extension, const char *actual) {
        static char golden[1 << 17];
        char path[128];
        bool update = getenv("UPDATE_GOLDEN") != NULL;
        FILE *file;

        snprintf(path, sizeof(path), "tests/fixtures/report/%s.%s", name, extension);
        file = fopen(path, update ? "w" : "r");
        cr_assert_not_null(file, "%s: cannot open (tests run in the project's root)", path);
        if (update) {
                fputs(actual, file);
        } else {
                golden[fread(golden, 1, sizeof(golden) - 1, file)] = '\0';
                cr_expect_str_eq(actual, golden, "%s differs; now it is:\n%s", path, actual);
        }
        fclose(file);
}

static const struct report_summary story_summary_lossless = {
                .identity = {.namespace = "shop",
                             .pod = "web-7d4f9",
                             .container = "app",
                             .request_milli = ABSENT},
                .at = {STORY_END_MONO, STORY_END_REAL},
                .window_ns = 3600 * NS_PER_S,
                .windows = 120,
                .windows_lossless = 120,
                .stall_wall_ns = 0,
                .cpu_used_ns = 389 * NS_PER_S,
                .version = "0.1.0",
};
static const struct report_summary story_summary_lossy = {
                .identity = {.node = "node-a",
                             .namespace = "shop",
                             .pod = "checkout-service-7d4f9c6b5d-x2x9z",
                             .pod_uid = "0f0e7a2c-58b4-4ad4-8d38-25e52aa7b6a1",
                             .container = "checkout",
                             .container_id = "3f4e1c0f8ad1c6f6e8c9b1f0a9d84c5b3a291807f6e5d4c3b2a19081726354"
                                             "4f",
                             .cgroup = "/kubepods/burstable/pod1/c1",
                             .request_milli = ABSENT},
                .at = {STORY_END_MONO, STORY_END_REAL},
                .window_ns = 3600 * NS_PER_S,
                .windows = 120,
                .windows_lossless = 117,
                .stall_wall_ns = 215 * MS,
                .cpu_used_ns = 389 * NS_PER_S,
                .worst_minute_stall_ns = 120 * MS,
                .worst_minute_at_ns = STORY_END_REAL - 1770 * NS_PER_S,
                .version = "0.1.0",
};
static const struct report_notice story_notice = {
                .at = {STORY_END_MONO, STORY_END_REAL},
                .level = "warning",
                .text = "my own cost was above 0.5 % of a CPU for a minute: I detached from the kernel and "
                        "go on from files; "
                        "threads now carry runqueue_delay_ns instead of stalls \x1b[31m",
                .version = "0.1.0",
};
