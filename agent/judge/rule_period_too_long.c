/* SPDX-License-Identifier: Apache-2.0 */
/* PeriodTooLong: the period of the limit is longer than usual, and so are its stalls. */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* The period of the kernel, the kubelet, Docker and systemd where nobody sets another: no stall for it alone is longer. */
#define USUAL_PERIOD_NS (100 * NS_PER_MS)

static bool is_found(const struct facts *facts, const struct lost_time *lost) {
        if (!lost->is_known || lost_by_limits(lost) == 0 || !facts->has_limit ||
            !is_known(facts->period_ns) || facts->period_ns <= USUAL_PERIOD_NS)
                return false;
        if (is_known(facts->stall_longest_ns))
                return facts->stall_longest_ns > USUAL_PERIOD_NS;
        return lost_is_notable(lost, lost_by_limits(lost));
}

static int add_fixes(const struct facts *facts, struct arena *arena, struct finding *finding) {
        struct fix shorter, higher;
        enum limit_manager manager = remedy_manager(facts->limit_level, facts->limit_cgroup);
        /* There it is the node's to set, for all Pods: not what to do first. */
        bool is_nodes = manager == MANAGER_KUBERNETES || manager == MANAGER_POD ||
                        manager == MANAGER_UNKNOWN;
        int r = remedy_period(facts, USUAL_PERIOD_NS, arena, &shorter);
        if (r < 0)
                return r;
        if (!is_nodes)
                finding_add_fix(finding, &shorter);
        r = remedy_set_limit(arena, facts->cgroup_v1_mount, facts->limit_level, facts->limit_cgroup,
                             remedy_needed_milli(facts, facts->limit_milli, facts->period_ns),
                             facts->period_ns, &higher);
        if (r < 0)
                return r;
        finding_add_fix(finding, &higher);
        if (is_nodes)
                finding_add_fix(finding, &shorter);
        return 0;
}

int rule_period_too_long(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                         struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "PeriodTooLong"};
        char period[NUMBER_TEXT_MAX], quota[NUMBER_TEXT_MAX], stall[NUMBER_TEXT_MAX];
        const char *longest = "";

        if (!is_found(facts, &lost))
                return 0;
        if (is_known(facts->stall_longest_ns))
                longest = arena_format(arena, "; the longest was %s",
                                       number_format_duration(stall, facts->stall_longest_ns));
        if (!longest)
                return -ENOMEM;
        finding.severity = lost_severity(facts, options, &lost);
        finding.summary =
                        arena_format(arena,
                                     "the limit gives %s per %s: whoever has used it up stalls for the rest "
                                     "of so long a period%s",
                                     number_format_duration(quota, facts->quota_ns),
                                     number_format_duration(period, facts->period_ns), longest);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "period_ns", facts->period_ns);
        finding_add_evidence(&finding, "quota_ns", facts->quota_ns);
        finding_add_evidence(&finding, "stall_longest_ns", facts->stall_longest_ns);
        finding_add_evidence(&finding, "stall_ns", lost_by_limits(&lost));
        int r = add_fixes(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
