/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "PeriodTooLong"

static const struct finding *found(struct court *court, const char *cgroup, uint64_t period_us,
                                   uint64_t longest_us, uint64_t lost_ms) {
        court_open(court, 10000);
        court_limit(court, LIMIT_CONTAINER, cgroup, 250, 250);
        court->facts.period_ns = period_us * NS_PER_US;
        court->facts.quota_ns = period_us * NS_PER_US / 4;
        court->facts.stall_longest_ns = is_known(longest_us) ? longest_us * NS_PER_US : ABSENT;
        court->facts.quota_ns_lost = lost_ms * MS;
        court_thread(court, 10000 * MS - lost_ms * MS);
        court_judge(court);
        return court_find(court, CODE);
}

Test(judge_rule_period_too_long, boundaries) {
        static const struct {
                uint64_t period_us, longest_us, lost_ms;
                bool is_found;
        } rows[] = {
                        {10000, 150000, 1000, false},   {100000, 150000, 1000, false},
                        {100001, 150000, 1000, true},   {1000000, 99999, 1000, false},
                        {1000000, 100000, 1000, false}, {1000000, 100001, 1000, true},
                        {1000000, 750000, 0, false},    {1000000, ABSENT, 99, false},
                        {1000000, ABSENT, 100, true},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                cr_assert_eq(found(&court, "/a.service", rows[i].period_us, rows[i].longest_us,
                                   rows[i].lost_ms) != NULL,
                             rows[i].is_found, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_period_too_long, the_period_is_the_first_fix_where_it_is_ones_own) {
        struct court court;
        const struct finding *finding = found(&court, "/system.slice/a.service", 1000000, 750000, 1000);

        cr_assert_str_eq(finding->summary,
                         "the limit gives 250 ms per 1 s: whoever has used it up stalls for the rest of so "
                         "long a period; the longest was 750 ms",
                         "%s", finding->summary);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_str_eq(finding->fixes[0].how,
                         "systemctl set-property 'a.service' CPUQuotaPeriodSec=100ms");
        cr_assert_str_eq(finding->fixes[0].who, "app");
        cr_assert_str_eq(finding->fixes[1].setting, "CPUQuota=");
        court_close(&court);
        finding = found(&court,
                        "/docker/"
                        "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1",
                        1000000, 750000, 1000);
        cr_assert_str_eq(finding->fixes[0].how, "--cpu-period 100000 with --cpu-quota 25000");
        court_close(&court);
}

Test(judge_rule_period_too_long, in_kubernetes_it_is_the_nodes_and_not_the_first) {
        static const char *const groups[] = {"/kubepods/pod1/x", NULL};
        for (size_t i = 0; i < ELEMENTS(groups); i++) {
                struct court court;
                const struct finding *finding = found(&court, groups[i], 1000000, 750000, 1000);
                cr_assert_eq(finding->fixes_count, 2);
                cr_assert_str_eq(finding->fixes[0].who, "app");
                cr_assert_str_eq(finding->fixes[1].setting, "period");
                cr_assert_str_eq(finding->fixes[1].who, "node");
                court_close(&court);
        }
}
