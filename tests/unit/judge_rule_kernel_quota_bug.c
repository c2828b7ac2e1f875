/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "KernelQuotaBug"

/* From files, as on a kernel that old: 50 throttled periods of 25 ms, @used_us used. */
static const struct finding *found(struct court *court, const char *kernel, uint64_t used_us) {
        court_open(court, 10000);
        court_files(court, 600, 4000);
        court_limit(court, LIMIT_CONTAINER, "/kubepods/pod1/x", 250, 250);
        court->facts.kernel = kernel;
        court->facts.runqueue_throttled_ns = 9000 * MS;
        court->facts.periods_throttled = 50;
        court->facts.cpu_used_ns = is_known(used_us) ? used_us * NS_PER_US : ABSENT;
        court_judge(court);
        return court_find(court, CODE);
}

Test(judge_rule_kernel_quota_bug, kernels) {
        static const struct {
                const char *kernel;
                bool is_found;
        } rows[] = {
                        {"4.17.19", false},
                        {"4.18.0", true},
                        {"4.18.0-80.el8.x86_64", true},
                        {"4.19.83", true},
                        {"4.19.84", false},
                        {"4.20.1", true},
                        {"5.0.0", true},
                        {"5.3.0-40-generic", true},
                        {"5.3", true},
                        {"5.3.8", true},
                        {"5.3.9", false},
                        {"5.4.0", false},
                        {"5.10.0-13-amd64", false},
                        {"15.3.1", false},
                        {"3.10.0-1062.el7", false},
                        {"", false},
                        {"5", false},
                        {"5.", false},
                        {"x.y", false},
                        {"99999999999.3", false},
                        {NULL, false},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                cr_assert_eq(found(&court, rows[i].kernel, 600000) != NULL, rows[i].is_found, "row %zu", i);
                court_close(&court);
        }
}

/* Granted: 50 * 25 ms. Nine tenths of it: 1,125 ms. */
Test(judge_rule_kernel_quota_bug, boundaries) {
        static const struct {
                uint64_t used_us;
                bool is_found;
        } rows[] = {{1124999, true}, {1125000, true}, {1125001, false}, {1250000, false}, {ABSENT, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                cr_assert_eq(found(&court, "5.3.0", rows[i].used_us) != NULL, rows[i].is_found, "row %zu",
                             i);
                court_close(&court);
        }
}

Test(judge_rule_kernel_quota_bug, names_the_kernel_and_comes_first) {
        struct court court;
        const struct finding *finding = found(&court, "5.3.0-40-generic", 625000);

        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_str_eq(finding->summary,
                         "kernel 5.3.0-40-generic lets unused slices of a quota expire: it used at most 625 "
                         "ms "
                         "of the 1.25 s that its throttled periods granted",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "throttled_granted_ns"), 1250 * MS);
        cr_assert_eq(court_evidence(finding, "periods_throttled"), 50);
        cr_assert_str_eq(finding->fixes[0].who, "node");
        cr_assert_str_eq(finding->fixes[0].value, "5.4 or later");
        court_close(&court);
}

Test(judge_rule_kernel_quota_bug, nothing_throttled_or_of_another_level) {
        struct court court;
        found(&court, "5.3.0", 600000);
        court.facts.periods_throttled = 0;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court.facts.periods_throttled = 50;
        court.facts.limit_level = LIMIT_POD;
        court_judge(&court);
        cr_assert_null(court_find(&court, CODE));
        court_close(&court);
}
