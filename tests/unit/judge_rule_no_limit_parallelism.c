/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "NoLimitParallelism"

static struct parallelism *open_free(struct court *court, uint64_t effective, uint64_t request) {
        court_open(court, 10000);
        court->facts.cpus_online = 48;
        court->facts.request_milli = request;
        court_thread(court, 1000 * MS);
        return court_runtime(court, "go", "GOMAXPROCS", effective);
}

static const struct finding *found(struct court *court) {
        court_scanned(court);
        court_judge(court);
        return court_find(court, CODE);
}

Test(judge_rule_no_limit_parallelism, boundaries) {
        static const struct {
                uint64_t effective, request;
                bool is_found;
        } rows[] = {
                        /* a request of 1500m is worth 2: from twice that on */
                        {3, 1500, false},
                        {4, 1500, true},
                        {5, 1500, true},
                        {48, 48000, false},
                        /* without one, whoever counts all CPUs */
                        {47, ABSENT, false},
                        {48, ABSENT, true},
                        {49, ABSENT, true},
                        {ABSENT, ABSENT, false},
                        {ABSENT, 1000, false},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_free(&court, rows[i].effective, rows[i].request);
                const struct finding *finding = found(&court);
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding) {
                        cr_assert_eq(finding->severity, SEVERITY_INFO);
                        cr_assert_eq(finding->fixes_count, is_known(rows[i].request) ? 1 : 0,
                                     "without a request information only");
                }
                cr_assert_eq(court.judgement.severity, SEVERITY_NONE);
                cr_assert_eq(court.judgement.verdict, VERDICT_NO_LIMIT);
                court_close(&court);
        }
}

Test(judge_rule_no_limit_parallelism, names_setting_and_request) {
        struct court court;
        open_free(&court, 48, 1500);
        const struct finding *finding = found(&court);
        cr_assert_str_eq(finding->summary,
                         "go: GOMAXPROCS is 48 and no limit holds it; its request 1500m is all that is sure "
                         "on "
                         "a busy node",
                         "%s", finding->summary);
        cr_assert_str_eq(finding->fixes[0].value, "2");
        cr_assert_eq(court_evidence(finding, "request_millicpus"), 1500);
        court_close(&court);
}

Test(judge_rule_no_limit_parallelism, not_with_a_limit_that_is_there_or_may_be) {
        struct court court;
        open_free(&court, 48, ABSENT);
        court.facts.limit_unknown = true;
        cr_assert_null(found(&court));
        court.facts.limit_unknown = false;
        court.facts.parent_hidden = true;
        cr_assert_null(found(&court));
        court.facts.parent_hidden = false;
        court_limit(&court, LIMIT_CONTAINER, "/a", 40000, 40000);
        cr_assert_null(found(&court));
        court_close(&court);
}

Test(judge_rule_no_limit_parallelism, pools_that_mostly_wait_and_single_cpus_are_no_matter) {
        struct court court;
        struct parallelism *row = open_free(&court, 100, ABSENT);
        row->is_blocking = true;
        cr_assert_null(found(&court));
        row->is_blocking = false;
        row->rounding = ROUND_NEVER;
        cr_assert_null(found(&court));
        row->rounding = ROUND_UP;
        row->effective = 1;
        row->affinity = 1;
        cr_assert_null(found(&court));
        court_close(&court);
}
