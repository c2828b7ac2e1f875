/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "StartupThrottled"

/* A window of 10 s, 100 s of thread time wanted, @stall_ms of it stalled. */
static const struct finding *found(struct court *court, const char *cgroup, uint64_t age_ms,
                                   uint64_t stall_ms) {
        court_open(court, 10000);
        court_limit(court, LIMIT_CONTAINER, cgroup, 500, 500);
        court_thread(court, 100000 * MS - stall_ms * MS);
        court->facts.quota_ns_lost = stall_ms * MS;
        court->facts.age_ns = is_known(age_ms) ? age_ms * MS : ABSENT;
        court_judge(court);
        return court_find(court, CODE);
}

Test(judge_rule_startup_throttled, boundaries) {
        static const struct {
                uint64_t age_ms, stall_ms;
                bool is_found;
                enum severity severity;
        } rows[] = {
                        /* the window began in the first minute */
                        {69999, 5000, true, SEVERITY_WARNING},
                        {70000, 5000, false, SEVERITY_NONE},
                        {70001, 5000, false, SEVERITY_NONE},
                        {2000, 5000, true, SEVERITY_WARNING},
                        {ABSENT, 5000, false, SEVERITY_NONE},
                        /* and 1 % was lost */
                        {20000, 999, false, SEVERITY_NONE},
                        {20000, 1000, true, SEVERITY_INFO},
                        {20000, 1001, true, SEVERITY_INFO},
                        {20000, 4999, true, SEVERITY_INFO},
                        {20000, 0, false, SEVERITY_NONE},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                const struct finding *finding =
                                found(&court, "/kubepods/pod1/x", rows[i].age_ms, rows[i].stall_ms);
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding)
                        cr_assert_eq(finding->severity, rows[i].severity, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_startup_throttled, says_that_later_need_is_not_known) {
        struct court court;
        const struct finding *finding = found(&court, "/kubepods/pod1/x", 20000, 40000);

        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_str_eq(
                        finding->summary,
                        "it was starting (20 s old): its limit 500m stalled it for 40 s (40% of the time it "
                        "wanted to run). What it needs later is not known yet",
                        "%s", finding->summary);
        cr_assert_eq(finding->fixes_count, 2);
        cr_assert_str_eq(finding->fixes[1].setting, "startupProbe");
        court_close(&court);
        cr_assert_eq(found(&court, "/system.slice/a.service", 20000, 40000)->fixes_count, 1);
        court_close(&court);
}
