/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging what files alone show: upper bounds for limits, the rest for contention, and what cannot be
 * decided.
 */
#include "../../agent/judge/lost.h"
#include "judge_build.h"

/* One thread ran 1 s and was delayed 1 s in a window of 10 s. */
struct row {
        uint64_t own_ms, above_ms; /* throttled time of the own level, and from above */
        bool has_limit, is_hidden, is_tighter;
        enum verdict verdict;
        enum severity severity;
        uint64_t quota_ms, ancestor_ms, contention_ms;
};

static uint64_t known_ms(uint64_t ms) {
        return is_known(ms) ? ms * MS : ABSENT;
}

Test(judge_files, table) {
        static const struct row rows[] = {
                        /* the counter of the limit bounds what it can have done */
                        {0, ABSENT, true, false, false, VERDICT_CONTENTION, SEVERITY_INFO, 0, 0, 1000},
                        {19, ABSENT, true, false, false, VERDICT_CONTENTION, SEVERITY_INFO, 19, 0, 981},
                        {99, ABSENT, true, false, false, VERDICT_CONTENTION, SEVERITY_INFO, 99, 0, 901},
                        {100, ABSENT, true, false, false, VERDICT_MIXED, SEVERITY_WARNING, 100, 0, 900},
                        {699, ABSENT, true, false, false, VERDICT_MIXED, SEVERITY_WARNING, 699, 0, 301},
                        {700, ABSENT, true, false, false, VERDICT_QUOTA, SEVERITY_WARNING, 700, 0, 300},
                        {5000, ABSENT, true, false, false, VERDICT_QUOTA, SEVERITY_WARNING, 1000, 0, 0},
                        /* the part from above */
                        {0, 1000, true, false, true, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, 0, 1000, 0},
                        {300, 900, true, false, true, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, 250, 750, 0},
                        {0, 1333, true, false, true, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, 0, 1000, 0},
                        /* more than the threads that we see can have lost: others did */
                        {0, 1334, true, false, true, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, 0, 1334, 0},
                        {1000, 3000, true, false, true, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING, 1000, 3000,
                         0},
                        {500, 500, true, false, true, VERDICT_MIXED, SEVERITY_WARNING, 500, 500, 0},
                        {500, 500, true, false, false, VERDICT_QUOTA, SEVERITY_WARNING, 1000, 0,
                         0}, /* a Pod's sum */
                        {ABSENT, 500, false, true, true, VERDICT_MIXED, SEVERITY_WARNING, 0, 500, 500},
                        /* no counters: only where no limit can be is it contention */
                        {ABSENT, ABSENT, false, false, false, VERDICT_CONTENTION, SEVERITY_INFO, 0, 0, 1000},
                        {ABSENT, ABSENT, true, false, false, VERDICT_NOT_MEASURED, SEVERITY_NONE, 0, 0,
                         1000},
                        {ABSENT, ABSENT, false, true, false, VERDICT_NOT_MEASURED, SEVERITY_NONE, 0, 0,
                         1000},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct row *row = &rows[i];
                struct court court;
                court_open(&court, 10000);
                court_files(&court, 1000, 1000);
                court.facts.has_limit = row->has_limit;
                court.facts.parent_hidden = row->is_hidden;
                court.facts.ancestor_is_tighter = row->is_tighter;
                court.facts.runqueue_throttled_ns = known_ms(row->own_ms);
                court.facts.ancestor_throttled_ns = known_ms(row->above_ms);
                struct lost_time lost = lost_time_of(&court.facts);
                const struct judgement *judgement = court_judge(&court);

                cr_assert(lost.is_bound);
                cr_assert_eq(lost.wanted_ns,
                             (1000 + row->quota_ms + row->ancestor_ms + row->contention_ms) * MS);
                cr_assert_eq(lost.quota_ns, row->quota_ms * MS, "row %zu: %" PRIu64, i, lost.quota_ns);
                cr_assert_eq(lost.ancestor_ns, row->ancestor_ms * MS, "row %zu", i);
                cr_assert_eq(lost.contention_ns, row->contention_ms * MS, "row %zu", i);
                cr_assert_eq(judgement->verdict, row->verdict, "row %zu: %s", i,
                             verdict_name(judgement->verdict));
                cr_assert_eq(judgement->severity, row->severity, "row %zu", i);
                court_close(&court);
        }
}

/*
 * No thread can have been stalled for longer than its delay, nor for longer than all queues were throttled:
 * min(600, 500) + min(200, 500), and 3 * 500 for three ended threads with 900 in sum.
 */
Test(judge_files, each_thread_has_its_own_bound) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 600);
        court_thread(&court, 0)->runqueue_delay_ns = 200 * MS;
        struct thread_facts *fold = court_thread(&court, 0);
        fold->runqueue_delay_ns = 900 * MS;
        fold->folded = 3;
        court.facts.has_limit = true;
        court.facts.runqueue_throttled_ns = 500 * MS;
        struct lost_time lost = lost_time_of(&court.facts);

        cr_assert_eq(lost.quota_ns, (500 + 200 + 900) * MS);
        cr_assert_eq(lost.contention_ns, 100 * MS);
        court_close(&court);
}

/*
 * Kernels before 6.6 do not say how long: a throttled period of the level above can have taken all of the
 * delay.
 */
Test(judge_files, a_throttled_ancestor_without_a_clock_bounds_by_the_delay) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 1000);
        court_limit(&court, LIMIT_ANCESTOR, "/machine.slice", 500, ABSENT);
        court.facts.runqueue_throttled_ns = 0;
        court.facts.periods_throttled = 1;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_ANCESTOR_QUOTA);
        court.facts.periods_throttled = 0;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_CONTENTION);
        court_close(&court);
}

/* Delay below 1 % of what was wanted is nothing, wherever it comes from. */
Test(judge_files, little_delay_is_fine) {
        static const struct {
                uint64_t run, delay, throttled;
                enum verdict verdict;
        } rows[] = {
                        {9901, 99, 5000, VERDICT_FINE},
                        {9900, 100, 5000, VERDICT_QUOTA},
                        {9900, 100, 0, VERDICT_CONTENTION},
                        {0, 0, 0, VERDICT_FINE},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_files(&court, rows[i].run, rows[i].delay);
                court.facts.has_limit = true;
                court.facts.runqueue_throttled_ns = rows[i].throttled * MS;
                cr_assert_eq(court_judge(&court)->verdict, rows[i].verdict, "row %zu", i);
                court_close(&court);
        }
}

/* A group that can be read, with processes that cannot. */
Test(judge_files, counters_of_the_group_alone_give_a_verdict) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 0, 0);
        court.facts.threads_count = 0;
        court_limit(&court, LIMIT_CONTAINER, "/app", 500, 500);
        court.facts.runqueue_throttled_ns = 2000 * MS;
        court.facts.cpu_used_ns = 3000 * MS;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_QUOTA);
        cr_assert_eq(court.judgement.severity, SEVERITY_WARNING);
        court.facts.runqueue_throttled_ns = 0;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_FINE);
        court.facts.runqueue_throttled_ns = ABSENT;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_NOT_MEASURED);
        court_close(&court);
}

/* On cgroup v1 an empty group shows no usage. 500m of 10 s is 5 s that it can have used at most: 5 % of the rest is 264 ms. */
Test(judge_files, unknown_usage_is_taken_for_all_that_the_limit_grants) {
        static const struct {
                uint64_t throttled_ms;
                enum verdict verdict;
                enum severity severity;
        } rows[] = {
                        {0, VERDICT_FINE, SEVERITY_NONE},       {50, VERDICT_FINE, SEVERITY_INFO},
                        {51, VERDICT_QUOTA, SEVERITY_INFO},     {263, VERDICT_QUOTA, SEVERITY_INFO},
                        {264, VERDICT_QUOTA, SEVERITY_WARNING},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_files(&court, 0, 0);
                court.facts.threads_count = 0;
                court_limit(&court, LIMIT_CONTAINER, "/app", 500, 500);
                court.facts.runqueue_throttled_ns = rows[i].throttled_ms * MS;
                cr_assert_eq(court_judge(&court)->verdict, rows[i].verdict, "row %zu", i);
                cr_assert_eq(court.judgement.severity, rows[i].severity, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_files, a_kernel_without_schedstat_has_group_counters_only) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 0, 0);
        court.threads[0].run_ns = court.threads[0].runqueue_delay_ns = ABSENT;
        court.facts.runqueue_throttled_ns = ABSENT;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_NOT_MEASURED);
        court.facts.has_limit = true;
        court.facts.cpu_used_ns = 3000 * MS;
        court.facts.runqueue_throttled_ns = 900 * MS;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_QUOTA);
        court_close(&court);
}

Test(judge_files, one_tick_only_is_not_measured) {
        struct pair pair = build_pair(PROBE_FILES);
        struct judgement judgement;
        struct judge_options options = {.warn_lost_ppm = 50000, .warn_stall_ns = 50 * MS};
        struct cgroup_level *own[2];
        build_levels(&pair, "/app", 25, own);
        own[1]->stat.nr_throttled = 1000;
        own[1]->stat.throttled_ns = 1000 * NS_PER_S;
        own[1]->stat.usage_ns = 9 * NS_PER_S;
        snapshot_free(pair.previous);
        pair.previous = NULL;
        cr_assert_eq(judge(build_facts(&pair), &options, pair.arena, &judgement), 0);
        cr_assert_eq(judgement.verdict, VERDICT_NOT_MEASURED);
        build_release(&pair);
}

/* --scope self, and the group's other processes in a PID namespace of their own: the one that is seen sleeps. */
Test(judge_files, threads_that_are_not_seen_lose_time_too) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 10, 1);
        court.facts.parent_hidden = true;
        court.facts.ancestor_is_tighter = true;
        court.facts.cpu_used_ns = 2000 * MS;
        court.facts.runqueue_throttled_ns = 0;
        court.facts.ancestor_throttled_ns = 3000 * MS;
        const struct judgement *judgement = court_judge(&court);
        struct lost_time lost = lost_time_of(&court.facts);

        cr_expect_eq(judgement->verdict, VERDICT_ANCESTOR_QUOTA);
        cr_expect_eq(judgement->severity, SEVERITY_WARNING);
        cr_expect_eq(lost.ancestor_ns, 3000 * MS);
        cr_expect_eq(lost.wanted_ns, 5000 * MS);
        court_close(&court);
}

/* Before 6.6 a clock runs on an empty queue, too: nothing follows from it about others. */
Test(judge_files, a_clock_that_runs_on_empty_queues_proves_nobody) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 1);
        court.facts.has_limit = true;
        court.facts.runqueue_throttled_ns = 3000 * MS;

        cr_expect_eq(court_judge(&court)->verdict, VERDICT_FINE);
        court_close(&court);
}
