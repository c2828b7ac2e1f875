/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define ID64 "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

/*
 * The design's story: 30 s, 250m, bursts of 43 ms, 16.9 s of thread time stalled, 6.5 s run, 0.3 s waited.
 */
static void open_story(struct court *court) {
        struct facts *facts = &court->facts;
        court_open(court, 30000);
        court_limit(court, LIMIT_CONTAINER, "/kubepods/pod1/" ID64, 250, 250);
        court_thread(court, 6500 * MS);
        facts->quota_ns_lost = 16900 * MS;
        facts->contention_ns_lost = 300 * MS;
        facts->stall_count = 198;
        facts->stalls_long = 190;
        facts->stall_longest_ns = 88 * MS;
        facts->wanted_milli = 790;
        facts->burst_cpu_p50_ns = 43 * MS;
        facts->burst_cpu_p99_ns = 43 * MS;
        facts->burst_gap_p50_ns = 357 * MS;
        facts->runnable_max = 1;
        facts->periods = 300;
        facts->periods_throttled = 198;
}

Test(judge_rule_cpu_throttled, tells_the_story_with_its_numbers_and_the_setting) {
        struct court court;
        open_story(&court);
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUThrottled");

        cr_assert(finding);
        cr_assert_eq(finding, &court.judgement.findings[1], "what explains it comes first");
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_str_eq(finding->summary,
                         "its own limit 250m stalled its threads for 16.9 s (71% of the time they wanted to "
                         "run): bursts of up "
                         "to 43 ms of CPU, 357 ms apart; the limit gives 25 ms per 100 ms",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "stall_ns"), 16900 * MS);
        cr_assert_eq(court_evidence(finding, "lost_ppm"), 713080); /* 16.9 / 23.7 */
        cr_assert_eq(court_evidence(finding, "stall_longest_ns"), 88 * MS);
        cr_assert_eq(court_evidence(finding, "stalls_long"), 190);
        cr_assert_eq(court_evidence(finding, "limit_millicpus"), 250);
        cr_assert_eq(court_evidence(finding, "wanted_millicpus"), 790);
        cr_assert_eq(court_evidence(finding, "burst_cpu_p99_ns"), 43 * MS);
        cr_assert_eq(court_evidence(finding, "periods_throttled"), 198);
        cr_assert_eq(finding->fixes_count, 2);
        cr_assert_str_eq(finding->fixes[0].setting, "resources.limits.cpu");
        cr_assert_str_eq(finding->fixes[0].value, "500m");
        cr_assert_str_eq(finding->fixes[0].who, "app");
        cr_assert(strstr(finding->fixes[0].then, "500m"));
        cr_assert_str_eq(finding->fixes[1].setting, "no CPU limit, but a request");
        court_close(&court);
}

/* 10 s wanted: at 5 % it is a warning; any stall at all is told. */
Test(judge_rule_cpu_throttled, boundaries) {
        static const struct {
                uint64_t stall_ns;
                bool is_found;
                enum severity severity;
        } rows[] = {
                        {0, false, SEVERITY_NONE},
                        {1, true, SEVERITY_INFO},
                        {500 * MS - 1, true, SEVERITY_INFO},
                        {500 * MS, true, SEVERITY_WARNING},
                        {500 * MS + 1, true, SEVERITY_WARNING},
                        {ABSENT, false, SEVERITY_NONE},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_limit(&court, LIMIT_CONTAINER, "/app", 250, 250);
                court_thread(&court, 10000 * MS - (is_known(rows[i].stall_ns) ? rows[i].stall_ns : 0));
                court.facts.quota_ns_lost = rows[i].stall_ns;
                court_judge(&court);
                const struct finding *finding = court_find(&court, "CPUThrottled");
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding)
                        cr_assert_eq(finding->severity, rows[i].severity, "row %zu", i);
                court_close(&court);
        }
}

/* 3 % by the own limit and 3 % from above: together a warning, and each at least half of it. */
Test(judge_rule_cpu_throttled, the_larger_part_carries_the_warning) {
        static const struct {
                uint64_t own, above;
                enum severity own_severity, above_severity;
        } rows[] = {
                        {300, 300, SEVERITY_WARNING, SEVERITY_WARNING},
                        {301, 299, SEVERITY_WARNING, SEVERITY_INFO},
                        {299, 301, SEVERITY_INFO, SEVERITY_WARNING},
                        {500, 900, SEVERITY_WARNING, SEVERITY_WARNING},
                        {200, 200, SEVERITY_INFO, SEVERITY_INFO},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_limit(&court, LIMIT_CONTAINER, "/app", 250, 250);
                court_thread(&court, (10000 - rows[i].own - rows[i].above) * MS);
                court.facts.quota_ns_lost = rows[i].own * MS;
                court.facts.ancestor_ns_lost = rows[i].above * MS;
                court_judge(&court);
                cr_assert_eq(court_find(&court, "CPUThrottled")->severity, rows[i].own_severity, "row %zu",
                             i);
                cr_assert_eq(court_find(&court, "AncestorThrottled")->severity, rows[i].above_severity,
                             "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_cpu_throttled, bursts_are_only_blamed_if_they_exceed_the_quota) {
        static const struct {
                uint64_t burst_ms;
                bool is_blamed;
        } rows[] = {{24, false}, {25, false}, {26, true}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_story(&court);
                court.facts.burst_cpu_p99_ns = rows[i].burst_ms * MS;
                court_judge(&court);
                const struct finding *finding = court_find(&court, "CPUThrottled");
                cr_assert_eq(strstr(finding->summary, "bursts of") != NULL, rows[i].is_blamed, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_cpu_throttled, the_value_is_always_above_the_limit) {
        struct court court;
        open_story(&court);
        court.facts.burst_cpu_p99_ns = 2 * MS; /* slices stranded on other CPUs, say */
        court_judge(&court);
        cr_assert_str_eq(court_find(&court, "CPUThrottled")->fixes[0].value, "300m");
        court_close(&court);
}

Test(judge_rule_cpu_throttled, from_files_it_is_an_upper_bound) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 1000);
        court_limit(&court, LIMIT_CONTAINER, "/system.slice/web.service", 100, 100);
        court.facts.runqueue_throttled_ns = 9000 * MS;
        court.facts.wanted_milli = 200;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUThrottled");

        cr_assert(strstr(finding->summary, "for up to 1 s (50% "), "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "stall_longest_ns"), ABSENT);
        cr_assert_str_eq(finding->fixes[0].how, "systemctl set-property 'web.service' CPUQuota=20%");
        court_close(&court);
}

/*
 * The tightest level shown is the Pod's; the own limit has its own number, but its path and period are not
 * known.
 */
Test(judge_rule_cpu_throttled, beside_a_tighter_pod_it_speaks_of_the_own_limit) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_POD, "/kubepods/pod1", 300, 400);
        court_thread(&court, 5000 * MS);
        court.facts.quota_ns_lost = 5000 * MS;
        court.facts.periods_throttled = 77;
        court.facts.wanted_milli = 1000;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUThrottled");

        cr_assert(strstr(finding->summary, "its own limit 400m "), "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "limit_millicpus"), 400);
        cr_assert_eq(court_evidence(finding, "periods_throttled"), ABSENT, "those are the Pod's");
        cr_assert_str_eq(finding->fixes[0].value, "1");
        court_close(&court);
}

Test(judge_rule_cpu_throttled, without_a_limit_left_there_is_nothing_to_set) {
        struct court court;
        court_open(&court, 10000);
        court_thread(&court, 5000 * MS);
        court.facts.quota_ns_lost = 5000 * MS;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUThrottled");

        cr_assert(strstr(finding->summary, "its own limit stalled"), "%s", finding->summary);
        cr_assert_eq(finding->fixes_count, 0);
        court_close(&court);
}

Test(judge_rule_cpu_throttled, idle_spinning_is_named_from_half_of_the_spent_quota_on) {
        static const struct {
                uint64_t spent_ms, of_ms;
                bool is_named;
        } rows[] = {{499, 1000, false}, {500, 1000, true}, {501, 1000, true}, {500, ABSENT, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_story(&court);
                court.facts.throttled_used_ns = is_known(rows[i].of_ms) ? rows[i].of_ms * MS : ABSENT;
                court_thread_of(&court, 200, "beam.smp", "erts_sched_1", 500 * MS)->quota_spent_ns =
                                rows[i].spent_ms * MS;
                struct parallelism *row = court_runtime(&court, "beam", "+S", 1);
                row->host_pid = 200;
                row->threads_name = "erts_sched_";
                row->spins = true;
                court_scanned(&court);
                court_judge(&court);
                const struct finding *finding = court_find(&court, "CPUThrottled");
                cr_assert_eq(strstr(finding->summary, "spin for work when idle") != NULL, rows[i].is_named,
                             "row %zu: %s", i, finding->summary);
                court_close(&court);
        }
}

/* Burst credit is quota too. */
Test(judge_rule_cpu_throttled, bursts_within_quota_and_credit_are_not_blamed) {
        struct court court;
        open_story(&court);
        court.facts.burst_ns = 18 * MS;
        court_judge(&court);
        cr_assert_not(strstr(court_find(&court, "CPUThrottled")->summary, "bursts of"));
        court_close(&court);
}
