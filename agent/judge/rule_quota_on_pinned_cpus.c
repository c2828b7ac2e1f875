/* SPDX-License-Identifier: Apache-2.0 */
/* QuotaOnPinnedCPUs: the container has CPUs of its own, and a quota that only stalls it on them. */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/*
 * Pinned to fewer CPUs than there are, and the quota is worth at least as many: it cannot hold what the pinning does not hold already. A smaller
 * quota does hold, and is an ordinary limit.
 */
static bool is_pointless(const struct facts *facts) {
        return facts->affinity > 0 && facts->affinity < facts->cpus_online &&
               is_known(facts->own_limit_milli) &&
               facts->own_limit_milli >= facts->affinity * UINT64_C(1000);
}

static void add_fix(const struct facts *facts, struct finding *finding) {
        bool is_own = facts->limit_level == LIMIT_CONTAINER;
        enum limit_manager manager = remedy_manager(LIMIT_CONTAINER, is_own ? facts->limit_cgroup : NULL);
        struct fix fix = {
                        .setting = "no quota for pinned CPUs",
                        .then = "its CPUs stay the limit: nobody else gets less",
        };
        if (manager == MANAGER_KUBERNETES || manager == MANAGER_UNKNOWN || manager == MANAGER_POD) {
                fix.how = "kubelet 1.33 and later leave it out (feature DisableCPUQuotaWithExclusiveCPUs); "
                          "CRI-O: annotation cpu-quota.crio.io: \"disable\"";
                fix.who = "node";
        } else {
                fix.how = "set either the CPUs or the quota, not both";
                fix.who = "app";
        }
        finding_add_fix(finding, &fix);
}

int rule_quota_on_pinned_cpus(const struct facts *facts, const struct judge_options *options,
                              struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "QuotaOnPinnedCPUs"};
        char limit[NUMBER_TEXT_MAX];

        if (!lost.is_known || lost.quota_ns == 0 || !is_pointless(facts))
                return 0;
        finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        finding.summary =
                        arena_format(arena,
                                     "it is pinned to %u of %u CPUs and limited to %s besides: the quota "
                                     "grants no less than these CPUs are, and still stalls it when a period "
                                     "is charged unevenly",
                                     facts->affinity, facts->cpus_online,
                                     number_format_cpus(limit, facts->own_limit_milli));
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "cpus_pinned", facts->affinity);
        finding_add_evidence(&finding, "cpus_online", facts->cpus_online);
        finding_add_evidence(&finding, "limit_millicpus", facts->own_limit_milli);
        finding_add_evidence(&finding, "stall_ns", lost.quota_ns);
        add_fix(facts, &finding);
        *ret_finding = finding;
        return 1;
}
