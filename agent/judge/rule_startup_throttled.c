/* SPDX-License-Identifier: Apache-2.0 */
/* StartupThrottled: the own limit stalled a container in its first minute, when programs need more than later. */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

static const char *describe(const struct facts *facts, const struct lost_time *lost, struct arena *arena) {
        char age[NUMBER_TEXT_MAX], stalled[NUMBER_TEXT_MAX], share[FINDING_SHARE_MAX],
                        limit[NUMBER_TEXT_MAX];

        number_format_cpus(limit, facts->own_limit_milli);
        return arena_format(arena,
                            "it was starting (%s old): its limit %s stalled it for %s%s (%s of the time it "
                            "wanted to run). What it needs later is not known yet",
                            number_format_duration(age, facts->age_ns), limit,
                            lost->is_bound ? "up to " : "", number_format_duration(stalled, lost->quota_ns),
                            finding_format_share(share, lost->quota_ns, lost->wanted_ns));
}

static int add_fixes(const struct facts *facts, struct arena *arena, struct finding *finding) {
        struct fix fix;
        bool is_own = facts->limit_level == LIMIT_CONTAINER;
        uint64_t period_ns = is_own ? facts->period_ns : ABSENT;
        uint64_t milli = remedy_needed_milli(facts, facts->own_limit_milli, period_ns);
        const char *cgroup = is_own ? facts->limit_cgroup : NULL;
        int r = remedy_set_limit(arena, facts->cgroup_v1_mount, LIMIT_CONTAINER, cgroup, milli, period_ns,
                                 &fix);
        if (r < 0)
                return r;
        fix.then = "for the start only, if its length matters: a limit can be lowered again without a "
                   "restart, to what the second minute shows";
        finding_add_fix(finding, &fix);
        enum limit_manager manager = remedy_manager(LIMIT_CONTAINER, cgroup);
        if (manager != MANAGER_KUBERNETES && manager != MANAGER_UNKNOWN)
                return 0;
        fix = (struct fix){
                        .setting = "startupProbe",
                        .how = "failureThreshold times periodSeconds has to cover a throttled start",
                        .who = "app",
                        .then = "starts stay slow, but nothing ends it for that",
        };
        finding_add_fix(finding, &fix);
        return 0;
}

int rule_startup_throttled(const struct facts *facts, const struct judge_options *options,
                           struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "StartupThrottled"};

        if (!lost.is_known || !is_known(facts->own_limit_milli) || !facts_is_starting(facts) ||
            !lost_is_notable(&lost, lost.quota_ns))
                return 0;
        finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        finding.summary = describe(facts, &lost, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "age_ns", facts->age_ns);
        finding_add_evidence(&finding, "stall_ns", lost.quota_ns);
        finding_add_evidence(&finding, "lost_ppm", finding_share_ppm(lost.quota_ns, lost.wanted_ns));
        finding_add_evidence(&finding, "limit_millicpus", facts->own_limit_milli);
        finding_add_evidence(&finding, "wanted_millicpus", facts->wanted_milli);
        int r = add_fixes(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
