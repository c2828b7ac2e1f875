/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/judge/remedy.h"
#include "judge_build.h"

#define CODE "BurstExceedsQuota"

/* 43 ms of CPU every 400 ms at 250m, 10 s; one thread. */
static void open_bursts(struct court *court, const char *cgroup) {
        court_open(court, 10000);
        court_limit(court, LIMIT_CONTAINER, cgroup, 250, 250);
        court_thread(court, 1075 * MS)->sleep_in_stall_ns = 70 * MS;
        court->facts.quota_ns_lost = 2000 * MS;
        court->facts.cpu_used_ns = 1075 * MS;
        court->facts.burst_cpu_p50_ns = court->facts.burst_cpu_p99_ns = 43 * MS;
        court->facts.burst_gap_p50_ns = 357 * MS;
        court->facts.burst_ns = 0;
        court->facts.runnable_max = court->facts.runnable_p99 = 1;
        court->facts.burst_slowdown_permille = 4500;
}

Test(judge_rule_burst_exceeds_quota, tells_bursts_and_four_ways) {
        struct court court;
        open_bursts(&court, "/lab/app");
        court_judge(&court);
        const struct finding *finding = court_find(&court, CODE);

        cr_assert(finding);
        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_str_eq(finding->summary,
                         "bursts of up to 43 ms of CPU, 357 ms apart; the limit gives 25 ms per 100 ms, "
                         "though "
                         "it used only 107m on average. One thread runs at a time",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "burst_cpu_p99_ns"), 43 * MS);
        cr_assert_eq(court_evidence(finding, "quota_ns"), 25 * MS);
        cr_assert_eq(court_evidence(finding, "sleep_in_stall_ns"), 70 * MS);
        cr_assert_eq(court_evidence(finding, "burst_slowdown_permille"), 4500);
        cr_assert_eq(finding->fixes_count, 4);
        cr_assert_str_eq(finding->fixes[0].value, "50000 100000");
        cr_assert_str_eq(finding->fixes[1].how, "echo max > '/sys/fs/cgroup/lab/app/cpu.max'");
        cr_assert_str_eq(finding->fixes[2].how, "echo 18000 > '/sys/fs/cgroup/lab/app/cpu.max.burst'");
        cr_assert_str_eq(finding->fixes[2].who, "node");
        cr_assert_str_eq(finding->fixes[3].how, "echo '5000 20000' > '/sys/fs/cgroup/lab/app/cpu.max'");
        court_close(&court);
}

Test(judge_rule_burst_exceeds_quota, in_kubernetes_what_the_node_sets_comes_last) {
        struct court court;
        open_bursts(&court, "/kubepods/pod1/x");
        court_judge(&court);
        const struct finding *finding = court_find(&court, CODE);

        cr_assert_eq(finding->fixes_count, 4);
        cr_assert_str_eq(finding->fixes[0].who, "app");
        cr_assert_str_eq(finding->fixes[1].who, "app");
        cr_assert_str_eq(finding->fixes[2].who, "node");
        cr_assert_str_eq(finding->fixes[3].who, "node");
        court_close(&court);
}

Test(judge_rule_burst_exceeds_quota, boundaries) {
        static const struct {
                uint64_t burst_us, credit_us, lost_us;
                bool is_found;
        } rows[] = {
                        {24999, 0, 1000, false},     {25000, 0, 1000, false},    {25001, 0, 1000, true},
                        {43000, 18000, 1000, false}, {43001, 18000, 1000, true}, {43000, 17999, 1000, true},
                        {43000, 0, 0, false},        {ABSENT, 0, 1000, false},   {43000, ABSENT, 1000, true},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_bursts(&court, "/lab/app");
                court.facts.burst_cpu_p99_ns =
                                is_known(rows[i].burst_us) ? rows[i].burst_us * NS_PER_US : ABSENT;
                court.facts.burst_ns = is_known(rows[i].credit_us) ? rows[i].credit_us * NS_PER_US : ABSENT;
                court.facts.quota_ns_lost = rows[i].lost_us * NS_PER_US;
                court_judge(&court);
                cr_assert_eq(court_find(&court, CODE) != NULL, rows[i].is_found, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_burst_exceeds_quota, of_another_levels_limit_nothing_is_known) {
        struct court court;
        open_bursts(&court, "/kubepods/pod1");
        court.facts.limit_level = LIMIT_POD;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court_close(&court);
}

/* Threads beyond the limit are the other rule's. */
Test(judge_rule_burst_exceeds_quota, never_beside_threads_that_collide) {
        struct court court;
        open_bursts(&court, "/lab/app");
        court_limit(&court, LIMIT_CONTAINER, "/lab/app", 1000, 1000);
        court.facts.burst_cpu_p99_ns = 300 * MS;
        for (int i = 0; i < 9; i++)
                court_thread(&court, 500 * MS);
        court.facts.runnable_p99 = 10;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        cr_assert(court_find(&court, "ParallelismExceedsLimit"));
        court_close(&court);
}

/* At 80 % of the limit and more "only" would be wrong. */
Test(judge_rule_burst_exceeds_quota, the_average_is_told_where_it_is_low) {
        static const struct {
                uint64_t used_ms;
                bool is_told;
        } rows[] = {{1999, true}, {2000, false}, {2001, false}, {ABSENT, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_bursts(&court, "/lab/app");
                court.facts.cpu_used_ns = is_known(rows[i].used_ms) ? rows[i].used_ms * MS : ABSENT;
                court_judge(&court);
                cr_assert_eq(strstr(court_find(&court, CODE)->summary, "only") != NULL, rows[i].is_told,
                             "row %zu: %s", i, court_find(&court, CODE)->summary);
                court_close(&court);
        }
}

/* A raised limit moves what follows it; a removed one lets the default become the machine's. */
Test(judge_rule_burst_exceeds_quota, says_what_follows_in_the_runtime) {
        struct court court;
        open_bursts(&court, "/kubepods/pod1/x");
        court_limit(&court, LIMIT_CONTAINER, "/kubepods/pod1/x", 1900, 1900);
        court.facts.cpus_online = 48;
        court.facts.burst_cpu_p99_ns = 250 * MS;
        court.facts.runnable_max = court.facts.runnable_p99 = 2;
        struct parallelism *row = court_runtime(&court, "go", "GOMAXPROCS", 2);
        row->aware = AWARENESS_QUOTA;
        row->follows = true;
        row->rounding = ROUND_UP_FROM_TWO;
        court.facts.burst_gap_p50_ns = ABSENT;
        court.facts.runnable_max = 4;
        court_scanned(&court);
        court_judge(&court);
        const struct finding *finding = court_find(&court, CODE);

        cr_assert_str_eq(finding->fixes[0].value, "2500m");
        cr_assert(strstr(finding->fixes[0].then, "GOMAXPROCS becomes 3 by itself"), "%s",
                  finding->fixes[0].then);
        cr_assert(strstr(finding->fixes[1].then, "GOMAXPROCS becomes 48 by itself: set it to 2 first"), "%s",
                  finding->fixes[1].then);

        row->follows = false;
        const char *words = remedy_consequences(&court.facts, ABSENT, court.arena);
        cr_assert(strstr(words, "48 with the next start"), "%s", words);
        row->source = FROM_ENVIRONMENT;
        cr_assert_str_eq(remedy_consequences(&court.facts, ABSENT, court.arena), "", "a set number stays");
        court_close(&court);
}

/* In the first minute ten bursts are a pattern, fewer the start. */
Test(judge_rule_burst_exceeds_quota, few_bursts_of_a_start_stand_aside) {
        static const struct {
                uint64_t age_s, count;
                bool is_aside;
        } rows[] = {{15, 9, true}, {15, 10, false}, {15, ABSENT, true},
                    {69, 9, true}, {70, 9, false},  {ABSENT, 9, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_bursts(&court, "/lab/app");
                court.facts.age_ns = is_known(rows[i].age_s) ? rows[i].age_s * NS_PER_S : ABSENT;
                court.facts.burst_count = rows[i].count;
                court_judge(&court);
                cr_assert_eq(court_find(&court, CODE)->is_aside, rows[i].is_aside, "row %zu", i);
                court_close(&court);
        }
}
