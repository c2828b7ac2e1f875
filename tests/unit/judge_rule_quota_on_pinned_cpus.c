/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "QuotaOnPinnedCPUs"

static const struct finding *found(struct court *court, const char *cgroup, unsigned affinity,
                                   uint64_t limit, uint64_t lost_ms) {
        court_open(court, 10000);
        if (is_known(limit))
                court_limit(court, LIMIT_CONTAINER, cgroup, limit, limit);
        court->facts.affinity = affinity;
        court->facts.quota_ns_lost = lost_ms * MS;
        court_thread(court, 10000 * MS - lost_ms * MS);
        court_judge(court);
        return court_find(court, CODE);
}

/* The machine has 4 CPUs. */
Test(judge_rule_quota_on_pinned_cpus, boundaries) {
        static const struct {
                unsigned affinity;
                uint64_t limit, lost_ms;
                bool is_found;
        } rows[] = {
                        {2, 1999, 100, false}, {2, 2000, 100, true},  {2, 2001, 100, true},
                        {3, 3000, 100, true},  {4, 4000, 100, false}, {5, 5000, 100, false},
                        {0, 2000, 100, false}, {2, 2000, 0, false},   {2, ABSENT, 100, false},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                cr_assert_eq(found(&court, "/a", rows[i].affinity, rows[i].limit, rows[i].lost_ms) != NULL,
                             rows[i].is_found, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_quota_on_pinned_cpus, who_can_change_it) {
        struct court court;
        const struct finding *finding = found(&court, "/kubepods/pod1/x", 2, 2000, 1000);

        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert(strstr(finding->summary, "pinned to 2 of 4 CPUs and limited to 2 besides"), "%s",
                  finding->summary);
        cr_assert_eq(court_evidence(finding, "cpus_pinned"), 2);
        cr_assert_str_eq(finding->fixes[0].who, "node");
        court_close(&court);
        cr_assert_str_eq(found(&court, "/a.service", 2, 2000, 1000)->fixes[0].who, "app");
        court_close(&court);
}
