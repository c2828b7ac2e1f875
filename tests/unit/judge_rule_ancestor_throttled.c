/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define POD "/kubepods/pod9dae2ba7-9594-4920-9822-4320df8538c7"

static void open_with(struct court *court, enum limit_level level, const char *cgroup, uint64_t milli,
                      uint64_t own) {
        court_open(court, 10000);
        court_limit(court, level, cgroup, milli, own);
        court_thread(court, 3000 * MS);
        court->facts.ancestor_ns_lost = 5000 * MS;
        court->facts.wanted_milli = 800;
        court->facts.runnable_max = 2;
        court->facts.periods_throttled = 88;
        court_judge(court);
}

Test(judge_rule_ancestor_throttled, names_the_pod_and_grants_what_the_own_limit_grants) {
        struct court court;
        open_with(&court, LIMIT_POD, POD, 300, 700);
        const struct finding *finding = court_find(&court, "AncestorThrottled");

        cr_assert(finding);
        cr_assert_eq(court.judgement.verdict, VERDICT_ANCESTOR_QUOTA);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_str_eq(finding->summary,
                         "its Pod's limit 300m stalled its threads for 5 s (62% of the time they wanted to "
                         "run); its own limit: 700m",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "stall_ns"), 5000 * MS);
        cr_assert_eq(court_evidence(finding, "lost_ppm"), 625000);
        cr_assert_eq(court_evidence(finding, "limit_millicpus"), 300);
        cr_assert_eq(court_evidence(finding, "own_limit_millicpus"), 700);
        cr_assert_eq(court_evidence(finding, "periods_throttled"), 88);
        cr_assert_str_eq(finding->fixes[0].setting, "spec.resources.limits.cpu");
        cr_assert_str_eq(finding->fixes[0].value, "700m");
        cr_assert_str_eq(finding->fixes[0].who, "app");
        cr_assert_not(court_find(&court, "CPUThrottled"));
        court_close(&court);
}

Test(judge_rule_ancestor_throttled, names_another_ancestor_for_the_platform) {
        struct court court;
        open_with(&court, LIMIT_ANCESTOR, "/machine.slice", 300, ABSENT);
        const struct finding *finding = court_find(&court, "AncestorThrottled");

        cr_assert(strstr(finding->summary, "an ancestor's limit 300m stalled"), "%s", finding->summary);
        cr_assert(strstr(finding->summary, "its own limit: none"), "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "own_limit_millicpus"), ABSENT);
        cr_assert_str_eq(finding->fixes[0].how, "systemctl set-property 'machine.slice' CPUQuota=80%");
        cr_assert_str_eq(finding->fixes[0].who, "platform");
        court_close(&court);
}

/*
 * A shared ancestor with the higher number: what is granted below it is no measure then, what was wanted is.
 */
Test(judge_rule_ancestor_throttled, a_higher_but_shared_limit) {
        struct court court;
        open_with(&court, LIMIT_POD, POD, 500, 400);
        cr_assert_str_eq(court_find(&court, "AncestorThrottled")->fixes[0].value, "800m");
        court_close(&court);
}

Test(judge_rule_ancestor_throttled, hidden_above_the_namespace_there_is_only_where_to_look) {
        struct court court;
        open_with(&court, LIMIT_CONTAINER, "/", 700, 700);
        const struct finding *finding = court_find(&court, "AncestorThrottled");

        cr_assert(strstr(finding->summary, "not visible from here"), "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "limit_millicpus"), ABSENT);
        cr_assert_eq(court_evidence(finding, "periods_throttled"), ABSENT, "those are the container's own");
        cr_assert_eq(finding->fixes_count, 1);
        cr_assert_eq(finding->fixes[0].value, NULL);
        cr_assert_str_eq(finding->fixes[0].who, "platform");
        court_close(&court);
}

Test(judge_rule_ancestor_throttled, boundaries) {
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
                court_limit(&court, LIMIT_POD, POD, 250, 400);
                court_thread(&court, 10000 * MS - (is_known(rows[i].stall_ns) ? rows[i].stall_ns : 0));
                court.facts.ancestor_ns_lost = rows[i].stall_ns;
                court_judge(&court);
                const struct finding *finding = court_find(&court, "AncestorThrottled");
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding)
                        cr_assert_eq(finding->severity, rows[i].severity, "row %zu", i);
                court_close(&court);
        }
}

/* From files, kernel 6.6: the local clock ran 4 s longer than the own counter. */
Test(judge_rule_ancestor_throttled, from_files_the_local_clock_bounds_it) {
        struct court court;
        court_open(&court, 10000);
        court_files(&court, 1000, 3000);
        court_limit(&court, LIMIT_ANCESTOR, "/machine.slice", 300, ABSENT);
        court.facts.runqueue_throttled_ns = 0;
        court.facts.ancestor_throttled_ns = 4000 * MS;
        court_judge(&court);
        const struct finding *finding = court_find(&court, "AncestorThrottled");

        cr_assert(strstr(finding->summary, "for up to 3 s"), "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "ancestor_throttled_ns"), 4000 * MS);
        court.facts.ancestor_is_tighter = false;
        court_judge(&court);
        cr_assert_not(court_find(&court, "AncestorThrottled"), "the sum of what lies below is not named");
        cr_assert(court_find(&court, "CPUThrottled"));
        court_close(&court);
}
