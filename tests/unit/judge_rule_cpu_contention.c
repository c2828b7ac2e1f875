/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

Test(judge_rule_cpu_contention, boundaries) {
        static const struct {
                uint64_t wait_ns;
                bool is_found;
        } rows[] = {
                        {0, false},           {100 * MS - 1, false}, {100 * MS, true},
                        {100 * MS + 1, true}, {9999 * MS, true},     {ABSENT, false},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_thread(&court, 10000 * MS - (is_known(rows[i].wait_ns) ? rows[i].wait_ns : 0));
                court.facts.contention_ns_lost = rows[i].wait_ns;
                court_judge(&court);
                const struct finding *finding = court_find(&court, "CPUContention");
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding)
                        cr_assert_eq(finding->severity, SEVERITY_INFO, "row %zu: waiting is never a warning",
                                     i);
                court_close(&court);
        }
}

Test(judge_rule_cpu_contention, is_never_called_throttling) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
        court_thread(&court, 1000 * MS);
        court.facts.contention_ns_lost = 9000 * MS;
        court.facts.cpu_used_ns = 1000 * MS;
        court.facts.runnable_p99 = 4;
        court.facts.weight = 39;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUContention");

        cr_assert_eq(court.judgement.verdict, VERDICT_CONTENTION);
        cr_assert_eq(court.judgement.findings_count, 1);
        cr_assert_not(strstr(finding->summary, "thrott"));
        cr_assert_str_eq(finding->summary,
                         "its threads waited 9 s (90% of the time they wanted to run) for busy CPUs, not "
                         "held by a limit",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "wait_ns"), 9000 * MS);
        cr_assert_eq(court_evidence(finding, "lost_ppm"), 900000);
        cr_assert_eq(court_evidence(finding, "cpus_online"), 4);
        cr_assert_eq(court_evidence(finding, "runnable_p99"), 4);
        cr_assert_eq(court_evidence(finding, "weight"), 39);
        /* used 100m; the value is what it needs for sure */
        cr_assert_str_eq(finding->fixes[0].value, "at least 100m");
        cr_assert(strstr(finding->fixes[0].how, "resources.requests.cpu: 100m"));
        court_close(&court);
}

/* More own threads than CPUs stand in each other's way; as many as CPUs do not. */
Test(judge_rule_cpu_contention, own_threads_in_each_others_way) {
        static const struct {
                uint64_t p99;
                unsigned cpus;
                bool is_crowded;
        } rows[] = {{3, 4, false}, {4, 4, false}, {5, 4, true}, {48, 0, false}, {ABSENT, 4, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_thread(&court, 1000 * MS);
                court.facts.contention_ns_lost = 9000 * MS;
                court.facts.cpu_used_ns = 1000 * MS;
                court.facts.runnable_p99 = rows[i].p99;
                court.facts.cpus_online = rows[i].cpus;
                court_judge(&court);
                const struct finding *finding = court_find(&court, "CPUContention");
                cr_assert_eq(strstr(finding->summary, "of its own threads") != NULL, rows[i].is_crowded,
                             "row %zu", i);
                if (rows[i].is_crowded)
                        cr_assert_str_eq(finding->fixes[0].value, "4");
                court_close(&court);
        }
}

Test(judge_rule_cpu_contention, without_use_there_is_no_value_to_name) {
        struct court court;
        court_open(&court, 10000);
        court_thread(&court, 1000 * MS);
        court.facts.contention_ns_lost = 9000 * MS;
        court_judge(&court);
        cr_assert_eq(court_find(&court, "CPUContention")->fixes_count, 0);
        court_close(&court);
}

Test(judge_rule_cpu_contention, from_files_it_is_a_lower_bound) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 1000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 250, 250);
        court.facts.runqueue_throttled_ns = 400 * MS;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "CPUContention");
        cr_assert(strstr(finding->summary, "waited at least 600 ms (30% "), "%s", finding->summary);
        court_close(&court);
}

/* A limit is there and no counter of it: the delay may be its doing. */
Test(judge_rule_cpu_contention, what_cannot_be_decided_is_not_contention) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 1000);
        court.facts.limit_unknown = true;
        court_judge(&court);
        cr_assert_not(court_find(&court, "CPUContention"));
        court_close(&court);
}
