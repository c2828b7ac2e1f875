/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hand-built snapshots and facts for the tests of judge/. Times are milliseconds where nothing else is said;
 * the window of build_pair() is 10 s long and ends at 20 s.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../agent/judge/facts.h"
#include "../../agent/judge/judge.h"
#include "../../agent/probe/assemble.h"

#define MS NS_PER_MS
#define BUILD_ID 77
#define BUILD_FROM_MS UINT64_C(10000)
#define BUILD_TO_MS UINT64_C(20000)
#define BUILD_REAL_NS (UINT64_C(1796040000) * NS_PER_S)
#define BUILD_ROOM 64
#define COURT_PID 100 /* the first process of a court's container */

struct pair {
        struct snapshot *previous, *current;
        struct container_sample *before, *now;
        struct arena *arena;
        struct facts facts;
        struct facts_options options;
};

static inline struct snapshot *build_snapshot(uint64_t at_ms, enum probe_method method) {
        struct snapshot *snapshot = NULL;
        struct instant at = {.mono_ns = at_ms * MS, .real_ns = BUILD_REAL_NS + at_ms * MS};

        cr_assert_eq(snapshot_new(at, method, &snapshot), 0);
        snapshot->exact = method != PROBE_FILES;
        snapshot->machine.cpus_online = 4;
        snapshot->containers = arena_array(snapshot->arena, BUILD_ROOM, sizeof(*snapshot->containers));
        snapshot->threads = arena_array(snapshot->arena, BUILD_ROOM, sizeof(*snapshot->threads));
        cr_assert(snapshot->containers && snapshot->threads);
        return snapshot;
}

/* Measured, all counters at zero; with method files nothing but its name. */
static inline struct container_sample *build_container(struct snapshot *snapshot, uint64_t id) {
        cr_assert(snapshot->containers_count < BUILD_ROOM);
        struct container_sample *container = &snapshot->containers[snapshot->containers_count++];

        container_sample_init(container);
        container->id = id;
        container->cgroup = "/app";
        container->chain.levels = arena_array(snapshot->arena, 8, sizeof(struct cgroup_level));
        container->groups = arena_array(snapshot->arena, 8, sizeof(struct group_level));
        container->intervals = arena_array(snapshot->arena, BUILD_ROOM, sizeof(struct stall_interval));
        cr_assert(container->chain.levels && container->groups && container->intervals);
        if (snapshot->method == PROBE_FILES)
                return container;
        container->measured = container->measured_whole = true;
        container->runnable_now = container->runnable_max = 0;
        container->bursts = container->bursts_stalled = 0;
        container->burst_cpu_max_ns = container->burst_longest_ns = 0;
        container->worst_burst_ns = container->worst_burst_stall_ns = container->worst_burst_at_ns = 0;
        container->throttled_used_ns = container->exec_ns = container->run_ns = 0;
        container->wait_ns = container->stall_ns = container->stall_above_ns = 0;
        return container;
}

/* The next level up. @quota_ms per 100 ms; ABSENT: none. Its counters are unknown. */
static inline struct cgroup_level *build_level(struct container_sample *container, const char *path,
                                               uint64_t quota_ms) {
        struct cgroup_level *level = &container->chain.levels[container->chain.levels_count++];

        memset(level, 0xff, sizeof(*level));
        level->path = path;
        level->limit = is_known(quota_ms) ? CGROUP_LIMIT_SET : CGROUP_LIMIT_NONE;
        level->quota_ns = is_known(quota_ms) ? quota_ms * MS : ABSENT;
        level->period_ns = is_known(quota_ms) ? 100 * MS : ABSENT;
        return level;
}

static inline struct group_level *build_group(struct container_sample *container, uint64_t id,
                                              const char *name, uint64_t quota_ms) {
        struct group_level *group = &container->groups[container->groups_count++];

        *group = (struct group_level){
                        .id = id, .quota_ns = ABSENT, .period_ns = 100 * MS, .burst_ns = ABSENT};
        snprintf(group->name, sizeof(group->name), "%s", name);
        if (is_known(quota_ms))
                group->quota_ns = quota_ms * MS;
        group->nr_bursts = group->burst_time_ns = ABSENT;
        return group;
}

/*
 * All figures zero (method files: run and delay, the others ABSENT), seen since 5 s, up to the snapshot's
 * time.
 */
static inline struct thread_sample *build_thread(struct snapshot *snapshot, uint64_t container,
                                                 uint32_t tid) {
        cr_assert(snapshot->threads_count < BUILD_ROOM);
        struct thread_sample *thread = &snapshot->threads[snapshot->threads_count++];

        thread_sample_init(thread);
        thread->container = container;
        thread->global_tid = thread->host_tid = thread->tid = tid;
        thread->host_pid = thread->pid = 100;
        thread->start_ns = tid;
        thread->first_ns = 5000 * MS;
        thread->at_ns = snapshot->at.mono_ns;
        thread->run_ns = thread->switches = 0;
        snprintf(thread->process, sizeof(thread->process), "app");
        snprintf(thread->name, sizeof(thread->name), "t%" PRIu32, tid);
        if (snapshot->method == PROBE_FILES) {
                thread->runqueue_delay_ns = 0;
                return thread;
        }
        thread->wait_ns = thread->stall_ns = thread->sleep_ns = thread->stall_above_ns = 0;
        thread->sleep_in_stall_ns = thread->exec_ns = thread->quota_spent_ns = 0;
        thread->stalls = thread->stall_longest_ns = 0;
        return thread;
}

/* Run, wait, stall and sleep in milliseconds; run is charged as it was. */
static inline struct thread_sample *build_parts(struct snapshot *snapshot, uint64_t container, uint32_t tid,
                                                uint64_t run, uint64_t wait, uint64_t stall,
                                                uint64_t sleep) {
        struct thread_sample *thread = build_thread(snapshot, container, tid);

        thread->run_ns = thread->exec_ns = run * MS;
        thread->wait_ns = wait * MS;
        thread->stall_ns = stall * MS;
        thread->sleep_ns = sleep * MS;
        return thread;
}

/* The sum of @folded ended threads of process @pid. */
static inline struct thread_sample *build_fold(struct snapshot *snapshot, uint64_t container, uint32_t pid,
                                               uint32_t folded, uint64_t run, uint64_t stall) {
        struct thread_sample *thread = build_parts(snapshot, container, pid, run, 0, stall, 0);

        thread->folded = folded;
        thread->host_pid = thread->pid = pid;
        thread->host_tid = thread->tid = 0;
        thread->start_ns = 3;
        thread->ended = true;
        return thread;
}

static inline void build_interval(struct container_sample *container, uint64_t start_ms, uint64_t end_ms,
                                  bool above) {
        cr_assert(container->intervals_count < BUILD_ROOM);
        container->intervals[container->intervals_count++] =
                        (struct stall_interval){start_ms * MS, end_ms * MS, above};
}

static inline struct pair build_pair(enum probe_method method) {
        struct pair pair = {.options = {.warn_stall_ns = 50 * MS}};

        pair.previous = build_snapshot(BUILD_FROM_MS, method);
        pair.current = build_snapshot(BUILD_TO_MS, method);
        pair.before = build_container(pair.previous, BUILD_ID);
        pair.now = build_container(pair.current, BUILD_ID);
        pair.arena = arena_new(1 << 22);
        cr_assert(pair.arena);
        return pair;
}

/* The same level in both snapshots: [0] of the one before, [1] now. */
static inline void build_levels(struct pair *pair, const char *path, uint64_t quota_ms,
                                struct cgroup_level *ret[2]) {
        ret[0] = build_level(pair->before, path, quota_ms);
        ret[1] = build_level(pair->now, path, quota_ms);
}

static inline void build_groups(struct pair *pair, uint64_t id, const char *name, uint64_t quota_ms,
                                struct group_level *ret[2]) {
        ret[0] = build_group(pair->before, id, name, quota_ms);
        ret[1] = build_group(pair->now, id, name, quota_ms);
}

static inline const struct facts *build_facts(struct pair *pair) {
        if (pair->previous)
                cr_assert_eq(snapshot_sort(pair->previous), 0);
        cr_assert_eq(snapshot_sort(pair->current), 0);
        cr_assert_eq(facts_of_window(pair->previous, pair->current, BUILD_ID, &pair->options, pair->arena,
                                     &pair->facts),
                     0);
        return &pair->facts;
}

static inline void build_release(struct pair *pair) {
        snapshot_free(pair->previous);
        snapshot_free(pair->current);
        arena_free(pair->arena);
}

/*
 * --- facts without snapshots, for what judges them
 * ------------------------------------------------------------------
 */

struct court {
        struct facts facts;
        struct thread_facts threads[BUILD_ROOM];
        struct parallelism rows[8];
        struct parallelism_list list;
        struct judge_options options;
        struct arena *arena;
        struct judgement judgement;
};

/* Measured over @window_ms, nothing lost, no limit, everything else unknown. */
static inline void court_open(struct court *court, uint64_t window_ms) {
        struct facts *facts = &court->facts;

        memset(court, 0, sizeof(*court));
        court->arena = arena_new(1 << 20);
        cr_assert(court->arena);
        court->options = (struct judge_options){.warn_lost_ppm = 50000, .warn_stall_ns = 50 * MS};

        memset(facts, 0xff, sizeof(*facts));
        facts->cgroup_v1_mount = NULL;
        facts->kernel = NULL;
        facts->parallelism = NULL;
        facts->parallelism_count = facts->parallelism_omitted = facts->affinity = 0;
        facts->window_ns = window_ms * MS;
        facts->method = PROBE_TRACEPOINTS;
        facts->exact = facts->measured = true;
        facts->cpus_online = 4;
        facts->has_limit = facts->limit_unknown = facts->parent_hidden = facts->ancestor_is_tighter = false;
        facts->limit_level = LIMIT_CONTAINER;
        facts->limit_cgroup = NULL;
        facts->stall_count = facts->stalls_long = 0;
        facts->stalls_count = 0;
        facts->quota_ns_lost = facts->ancestor_ns_lost = facts->contention_ns_lost = 0;
        facts->threads = court->threads;
        facts->threads_count = 0;
        facts->missing = NULL;
        facts->missing_count = 0;
}

static inline void court_limit(struct court *court, enum limit_level level, const char *cgroup,
                               uint64_t milli, uint64_t own_milli) {
        struct facts *facts = &court->facts;

        facts->has_limit = true;
        facts->limit_level = level;
        facts->limit_cgroup = cgroup;
        facts->limit_milli = milli;
        facts->quota_ns = milli * 100 * NS_PER_US;
        facts->period_ns = 100 * MS;
        facts->own_limit_milli = own_milli;
        facts->ancestor_is_tighter = level != LIMIT_CONTAINER;
}

static inline void court_name(struct thread_facts *thread, const char *process, const char *name) {
        snprintf(thread->process, sizeof(thread->process), "%s", process);
        snprintf(thread->name, sizeof(thread->name), "%s", name);
}

/* One of its first process. */
static inline struct thread_facts *court_thread(struct court *court, uint64_t run_ns) {
        cr_assert(court->facts.threads_count < ELEMENTS(court->threads));
        struct thread_facts *thread = &court->threads[court->facts.threads_count++];

        memset(thread, 0xff, sizeof(*thread));
        thread->folded = 0;
        thread->ended = false;
        thread->run_ns = run_ns;
        thread->host_pid = thread->pid = COURT_PID;
        thread->host_tid = thread->tid = COURT_PID + (uint32_t) court->facts.threads_count - 1;
        court_name(thread, "app", "app");
        return thread;
}

/* Of another process than the first. */
static inline struct thread_facts *court_thread_of(struct court *court, uint32_t pid, const char *process,
                                                   const char *name, uint64_t run_ns) {
        struct thread_facts *thread = court_thread(court, run_ns);

        thread->host_pid = thread->pid = pid;
        court_name(thread, process, name);
        return thread;
}

/* A setting of a runtime in the first process: @effective in force, by its own rule, rounded up; nothing else known. */
static inline struct parallelism *court_runtime(struct court *court, const char *runtime,
                                                const char *setting, uint64_t effective) {
        cr_assert(court->list.count < ELEMENTS(court->rows));
        struct parallelism *row = &court->rows[court->list.count++];

        court->list.rows = court->rows;
        *row = (struct parallelism){
                        .runtime = runtime,
                        .host_pid = COURT_PID,
                        .pid = COURT_PID,
                        .setting = setting,
                        .effective = effective,
                        .configured = ABSENT,
                        .source = FROM_DEFAULT,
                        .aware = AWARENESS_NONE,
                        .rounding = ROUND_UP,
                        .unit = UNIT_THREADS,
                        .memory_bytes = ABSENT,
                        .active = ABSENT,
                        .leaving = ABSENT,
        };
        return row;
}

/* What the session does with a scan's list. */
static inline const struct parallelism_facts *court_scanned(struct court *court) {
        cr_assert_eq(facts_add_parallelism(&court->facts, &court->list, court->arena), 0);
        return court->facts.parallelism;
}

/* From files: group counters and one thread's delay. */
static inline void court_files(struct court *court, uint64_t run_ms, uint64_t delay_ms) {
        struct facts *facts = &court->facts;

        facts->method = PROBE_FILES;
        facts->exact = facts->measured = false;
        facts->quota_ns_lost = facts->ancestor_ns_lost = facts->contention_ns_lost = ABSENT;
        facts->stall_count = facts->stalls_long = ABSENT;
        court_thread(court, run_ms * MS)->runqueue_delay_ns = delay_ms * MS;
}

static inline const struct judgement *court_judge(struct court *court) {
        cr_assert_eq(judge(&court->facts, &court->options, court->arena, &court->judgement), 0);
        return &court->judgement;
}

static inline const struct finding *court_find(const struct court *court, const char *code) {
        for (size_t i = 0; i < court->judgement.findings_count; i++)
                if (strcmp(court->judgement.findings[i].code, code) == 0)
                        return &court->judgement.findings[i];
        return NULL;
}

static inline uint64_t court_evidence(const struct finding *finding, const char *name) {
        for (size_t i = 0; i < finding->evidence_count; i++)
                if (strcmp(finding->evidence[i].name, name) == 0)
                        return finding->evidence[i].value;
        return ABSENT;
}

static inline void court_close(struct court *court) {
        arena_free(court->arena);
}
