/* SPDX-License-Identifier: Apache-2.0 */
/* Verdict and severity: just below, at and just above each threshold. */
#include "judge_build.h"

/* Milliseconds of run, own limit, ancestor, contention and steal in a window of 10 s. */
struct causes {
        uint64_t run, quota, ancestor, contention, steal;
        enum verdict verdict;
        enum severity severity;
};

static void open_with(struct court *court, const struct causes *causes) {
        court_open(court, 10000);
        court_thread(court, causes->run * MS);
        court_limit(court, LIMIT_CONTAINER, "/app", 1000, 1000);
        court->facts.quota_ns_lost = causes->quota * MS;
        court->facts.ancestor_ns_lost = causes->ancestor * MS;
        court->facts.contention_ns_lost = causes->contention * MS;
        court->facts.steal_ns_lost = is_known(causes->steal) ? causes->steal * MS : ABSENT;
}

Test(judge_verdict, table) {
        static const struct causes rows[] = {
                        /* nothing lost */
                        {5000, 0, 0, 0, 0, VERDICT_FINE, SEVERITY_NONE},
                        {0, 0, 0, 0, ABSENT, VERDICT_FINE, SEVERITY_NONE},
                        /* 1 % of 10000 ms wanted */
                        {9901, 99, 0, 0, 0, VERDICT_FINE, SEVERITY_INFO},
                        {9900, 100, 0, 0, 0, VERDICT_QUOTA, SEVERITY_INFO},
                        {9901, 0, 99, 0, 0, VERDICT_FINE, SEVERITY_INFO},
                        {9900, 0, 100, 0, 0, VERDICT_ANCESTOR_QUOTA, SEVERITY_INFO},
                        {9901, 0, 0, 99, 0, VERDICT_FINE, SEVERITY_NONE},
                        {9900, 0, 0, 100, ABSENT, VERDICT_CONTENTION, SEVERITY_INFO},
                        {10000, 0, 0, 0, 99, VERDICT_FINE, SEVERITY_NONE},
                        {10000, 0, 0, 0, 100, VERDICT_STEAL, SEVERITY_INFO}, /* steal is part of run */
                        /* 5 % of the wanted time lost to stalls is a warning */
                        {9501, 499, 0, 0, 0, VERDICT_QUOTA, SEVERITY_INFO},
                        {9500, 500, 0, 0, 0, VERDICT_QUOTA, SEVERITY_WARNING},
                        {9499, 501, 0, 0, 0, VERDICT_QUOTA, SEVERITY_WARNING},
                        {9500, 0, 500, 0, 0, VERDICT_ANCESTOR_QUOTA, SEVERITY_WARNING},
                        {9500, 250, 250, 0, 0, VERDICT_MIXED, SEVERITY_WARNING},
                        /* waiting alone is none, however long */
                        {1000, 0, 0, 9000, 0, VERDICT_CONTENTION, SEVERITY_INFO},
                        {1000, 0, 0, 0, 900, VERDICT_STEAL, SEVERITY_INFO},
                        /* 70 % of what was lost */
                        {8999, 699, 0, 302, 0, VERDICT_MIXED, SEVERITY_WARNING},
                        {9000, 700, 0, 300, 0, VERDICT_QUOTA, SEVERITY_WARNING},
                        {9000, 301, 0, 699, 0, VERDICT_MIXED, SEVERITY_INFO},
                        {9000, 300, 0, 700, 0, VERDICT_CONTENTION, SEVERITY_INFO},
                        {9000, 200, 0, 0, 800, VERDICT_STEAL, SEVERITY_INFO},
                        {9000, 340, 330, 330, 0, VERDICT_MIXED, SEVERITY_WARNING},
                        /* no majority, but only one of them is notable: 1.2 % and 0.8 % */
                        {9800, 120, 0, 80, 0, VERDICT_QUOTA, SEVERITY_INFO},
                        {9760, 120, 0, 120, 0, VERDICT_MIXED, SEVERITY_INFO},
                        /* stalls that are a warning are not hidden behind waiting */
                        {5000, 500, 0, 4500, 0, VERDICT_MIXED, SEVERITY_WARNING},
                        {5000, 0, 500, 4500, 0, VERDICT_MIXED, SEVERITY_WARNING},
                        {5001, 499, 0, 4500, 0, VERDICT_CONTENTION, SEVERITY_INFO},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_with(&court, &rows[i]);
                const struct judgement *judgement = court_judge(&court);
                cr_assert_eq(judgement->verdict, rows[i].verdict, "row %zu: %s", i,
                             verdict_name(judgement->verdict));
                cr_assert_eq(judgement->severity, rows[i].severity, "row %zu: %s", i,
                             severity_name(judgement->severity));
                court_close(&court);
        }
}

Test(judge_verdict, no_limit_is_only_said_where_none_can_be_hidden) {
        static const struct {
                bool has, unknown, hidden;
                enum verdict verdict;
        } rows[] = {
                        {false, false, false, VERDICT_NO_LIMIT},
                        {true, false, false, VERDICT_FINE},
                        {false, true, false, VERDICT_FINE},
                        {false, false, true, VERDICT_FINE},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_thread(&court, 5000 * MS);
                court.facts.has_limit = rows[i].has;
                court.facts.limit_unknown = rows[i].unknown;
                court.facts.parent_hidden = rows[i].hidden;
                cr_assert_eq(court_judge(&court)->verdict, rows[i].verdict, "row %zu", i);
                cr_assert_eq(court.judgement.severity, SEVERITY_NONE);
                cr_assert_eq(court.judgement.findings_count, 0);
                court_close(&court);
        }
}

Test(judge_verdict, without_a_limit_contention_is_still_contention) {
        struct court court;
        court_open(&court, 10000);
        court_thread(&court, 5000 * MS);
        court.facts.contention_ns_lost = 5000 * MS;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_CONTENTION);
        court_close(&court);
}

/* Six a minute, from two on; the window may end one percent late. */
Test(judge_verdict, long_stalls_are_a_warning_from_six_a_minute_on) {
        static const struct {
                uint64_t window_ms, count;
                enum severity severity;
        } rows[] = {
                        {60000, 5, SEVERITY_INFO},      {60000, 6, SEVERITY_WARNING},
                        {60000, 7, SEVERITY_WARNING},   {60600, 6, SEVERITY_WARNING},
                        {60601, 6, SEVERITY_INFO},      {10000, 1, SEVERITY_INFO},
                        {10000, 2, SEVERITY_WARNING},   {1000, 1, SEVERITY_INFO},
                        {1000, 2, SEVERITY_WARNING},    {20200, 2, SEVERITY_WARNING},
                        {20201, 2, SEVERITY_INFO},      {30000, 2, SEVERITY_INFO},
                        {30000, 3, SEVERITY_WARNING},   {3600000, 359, SEVERITY_WARNING},
                        {3600000, 356, SEVERITY_INFO},  {60000, 0, SEVERITY_INFO},
                        {60000, ABSENT, SEVERITY_INFO},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, rows[i].window_ms);
                court_limit(&court, LIMIT_CONTAINER, "/app", 1000, 1000);
                court_thread(&court, 1000000 * MS); /* the stalls are far below one percent */
                court.facts.quota_ns_lost = 360 * MS;
                court.facts.stall_count = 6;
                court.facts.stalls_long = rows[i].count;
                const struct judgement *judgement = court_judge(&court);
                cr_assert_eq(judgement->severity, rows[i].severity, "row %zu", i);
                cr_assert_eq(judgement->verdict,
                             rows[i].severity == SEVERITY_WARNING ? VERDICT_QUOTA : VERDICT_FINE, "row %zu",
                             i);
                court_close(&court);
        }
}

/*
 * The design's own example: used to 39 %, 8 % of its periods throttled, bursts cut by 90 ms. 100 periods of
 * 100 ms, 8 stalls of 90 ms, one thread: 3.9 s run, 0.72 s stall.
 */
Test(judge_verdict, rare_but_long_cuts_are_a_warning) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 1000, 1000);
        court_thread(&court, 3900 * MS);
        court.facts.quota_ns_lost = 720 * MS;
        court.facts.stall_count = court.facts.stalls_long = 8;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_WARNING);
        cr_assert_eq(court.judgement.verdict, VERDICT_QUOTA);
        court_close(&court);
}

/* 48 threads that never collide: no stall, so nothing to warn of. */
Test(judge_verdict, many_threads_alone_are_no_harm) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 1000, 1000);
        court_thread(&court, 900 * MS);
        court.facts.runnable_max = 48;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_NONE);
        court_close(&court);
}

Test(judge_verdict, options_move_the_thresholds) {
        struct court court;
        open_with(&court, &(struct causes){9900, 100, 0, 0, 0, VERDICT_COUNT, SEVERITY_COUNT});
        court.options.warn_lost_ppm = 10000;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_WARNING);
        court_close(&court);

        /* Whoever wants to be warned at 0.5 % is not told that all is fine. */
        open_with(&court, &(struct causes){9950, 50, 0, 0, 0, VERDICT_COUNT, SEVERITY_COUNT});
        court.options.warn_lost_ppm = 5000;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_WARNING);
        cr_assert_eq(court.judgement.verdict, VERDICT_QUOTA);
        court_close(&court);
}

Test(judge_verdict, stalls_seen_in_the_ring_only_are_still_stalls) {
        struct court court;
        open_with(&court, &(struct causes){5000, 0, 0, 0, 0, VERDICT_COUNT, SEVERITY_COUNT});
        court.facts.stall_count = 3;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_INFO);
        cr_assert_eq(court.judgement.verdict, VERDICT_FINE);
        court.facts.stalls_long = 3;
        cr_assert_eq(court_judge(&court)->severity, SEVERITY_WARNING);
        cr_assert_eq(court.judgement.verdict, VERDICT_QUOTA);
        court.facts.ancestor_is_tighter = true;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_ANCESTOR_QUOTA);
        court_close(&court);
}

Test(judge_verdict, nothing_known_is_not_measured) {
        struct court court;
        court_open(&court, 10000);
        court.facts.measured = false;
        court.facts.method = PROBE_FILES;
        court.facts.quota_ns_lost = court.facts.stall_count = ABSENT;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_NOT_MEASURED);
        cr_assert_eq(court.judgement.severity, SEVERITY_NONE);
        cr_assert_eq(court.judgement.findings_count, 0);
        court_close(&court);
}

/* The sidecar's own container is throttled; the application's could not be looked at. */
Test(judge_verdict, other_containers_unseen_is_not_measured) {
        struct court court;
        struct missing_item missing[] = {{"limits above the container", "", ""},
                                         {MISSING_OTHER_CONTAINERS, "", ""}};
        open_with(&court, &(struct causes){5000, 5000, 0, 0, 0, VERDICT_COUNT, SEVERITY_COUNT});
        court.facts.missing = missing;
        court.facts.missing_count = 1;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_QUOTA);
        court.facts.missing_count = 2;
        cr_assert_eq(court_judge(&court)->verdict, VERDICT_NOT_MEASURED);
        cr_assert_eq(court.judgement.findings_count, 0);
        court_close(&court);
}

Test(judge_verdict, warnings_come_first) {
        struct court court;
        open_with(&court, &(struct causes){5000, 10, 2000, 3000, 0, VERDICT_COUNT, SEVERITY_COUNT});
        court_judge(&court);
        cr_assert_eq(court.judgement.findings_count, 3);
        cr_assert_str_eq(court.judgement.findings[0].code, "AncestorThrottled");
        cr_assert_eq(court.judgement.findings[0].severity, SEVERITY_WARNING);
        cr_assert_str_eq(court.judgement.findings[1].code, "CPUThrottled");
        cr_assert_eq(court.judgement.findings[1].severity, SEVERITY_INFO);
        cr_assert_str_eq(court.judgement.findings[2].code, "CPUContention");
        court_close(&court);
}

Test(judge_verdict, a_full_arena_is_an_error) {
        struct court court;
        open_with(&court, &(struct causes){5000, 10, 2000, 3000, 0, VERDICT_COUNT, SEVERITY_COUNT});
        arena_free(court.arena);
        court.arena = arena_new(1);
        struct judgement judgement = {.verdict = VERDICT_COUNT};
        cr_assert_eq(judge(&court.facts, &court.options, court.arena, &judgement), -ENOMEM);
        cr_assert_eq(judgement.verdict, VERDICT_COUNT);
        court_close(&court);
}

Test(judge_verdict, names) {
        static const char *const verdicts[] = {"quota", "ancestor-quota", "contention", "steal",
                                               "mixed", "fine",           "no-limit",   "not-measured"};
        static const char *const severities[] = {"none", "info", "warning"};

        cr_assert_eq(ELEMENTS(verdicts), VERDICT_COUNT);
        for (size_t i = 0; i < ELEMENTS(verdicts); i++)
                cr_assert_str_eq(verdict_name((enum verdict) i), verdicts[i]);
        for (size_t i = 0; i < ELEMENTS(severities); i++)
                cr_assert_str_eq(severity_name((enum severity) i), severities[i]);
        cr_assert_str_eq(verdict_name(VERDICT_COUNT), "unknown");
        cr_assert_str_eq(severity_name(SEVERITY_COUNT), "unknown");
}
