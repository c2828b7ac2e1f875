/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "LimitNotAsDeclared"

struct declared_row {
        uint64_t declared, quota_us, period_us;
        bool is_found;
};

static const struct finding *found(struct court *court, uint64_t declared, uint64_t quota_us,
                                   uint64_t period_us) {
        court_open(court, 10000);
        court->facts.declared_limit_milli = declared;
        if (is_known(quota_us)) {
                court_limit(court, LIMIT_CONTAINER, "/kubepods/pod1/x", quota_us * 1000 / period_us,
                            quota_us * 1000 / period_us);
                court->facts.quota_ns = quota_us * NS_PER_US;
                court->facts.period_ns = period_us * NS_PER_US;
        }
        court_thread(court, 5000 * MS);
        court_judge(court);
        return court_find(court, CODE);
}

/* The machine has 4 CPUs. */
Test(judge_rule_limit_not_as_declared, boundaries) {
        static const struct declared_row rows[] = {
                        {500, 50000, 100000, false},
                        /* rounding: 10m either way */
                        {417, 42000, 100000, false},
                        {500, 51000, 100000, false},
                        {500, 51100, 100000, true},
                        {500, 49000, 100000, false},
                        {500, 48900, 100000, true},
                        {1, 1000, 100000, false},
                        /* the period was changed, the quota with it, or not */
                        {500, 5000, 10000, false},
                        {500, 50000, 10000, true},
                        /* no limit in force */
                        {500, ABSENT, 0, true},
                        /* nobody told us: a limit beyond the machine in a short period */
                        {ABSENT, 50000, 10000, true},
                        {ABSENT, 40000, 10000, false},
                        {ABSENT, 40010, 10000, true},
                        {ABSENT, 500000, 100000, false},
                        {ABSENT, 500000, 99000, false},
                        {ABSENT, 50000, 100000, false},
                        {ABSENT, ABSENT, 0, false},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                cr_assert_eq(found(&court, rows[i].declared, rows[i].quota_us, rows[i].period_us) != NULL,
                             rows[i].is_found, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_limit_not_as_declared, a_shortened_period_with_its_old_quota_is_said) {
        struct court court;
        const struct finding *finding = found(&court, 500, 50000, 10000);

        cr_assert_eq(finding->severity, SEVERITY_INFO);
        cr_assert_str_eq(finding->summary,
                         "a limit of 5 is in force, declared is 500m: 50 ms per 10 ms. The same quota per "
                         "100 "
                         "ms is 500m, as if the period had been changed and the quota left",
                         "%s", finding->summary);
        cr_assert_str_eq(finding->fixes[0].value, "500m");
        cr_assert_str_eq(finding->fixes[0].who, "node");
        cr_assert(strstr(finding->fixes[0].then, "stalls may begin"));
        court_close(&court);
        finding = found(&court, ABSENT, 50000, 10000);
        cr_assert(strstr(finding->summary, "on a machine of 4 CPUs: 50 ms per 10 ms"), "%s",
                  finding->summary);
        court_close(&court);
}

/* Less than was asked for does harm; then it explains the stalls. */
Test(judge_rule_limit_not_as_declared, a_lower_one_that_stalls_has_their_severity) {
        struct court court;
        found(&court, 1000, 50000, 100000);
        court.facts.quota_ns_lost = 1000 * MS;
        court_judge(&court);
        const struct finding *finding = court_find(&court, CODE);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_null(finding->fixes[0].then);
        court.facts.declared_limit_milli = 250;
        court_judge(&court);
        cr_assert_eq(court_find(&court, CODE)->severity, SEVERITY_INFO, "more than was asked for");
        court_close(&court);
}

/* A kubelet leaves the quota out for CPUs of one's own; a limit may be hidden. */
Test(judge_rule_limit_not_as_declared, no_limit_by_design_or_unseen) {
        struct court court;
        found(&court, 2000, ABSENT, 0);
        court.facts.affinity = 2;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court.facts.affinity = 3;
        court_judge(&court);
        cr_assert(court_find(&court, CODE), "more CPUs than were declared");
        court.facts.affinity = 0;
        court.facts.limit_unknown = true;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court.facts.limit_unknown = false;
        court.facts.parent_hidden = true;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court_close(&court);
}
