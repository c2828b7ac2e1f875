/* SPDX-License-Identifier: Apache-2.0 */
/* LimitNotAsDeclared: the limit in force is another than the one that was asked for. */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/*
 * Runtimes round: systemd takes quotas in steps of 10 ms a second, which is 10m (417m becomes 42 ms per 100 ms), and the kernel's least quota
 * is 1 ms, which is 10m as well.
 */
#define ROUNDING_MILLI 10
#define USUAL_PERIOD_NS (100 * NS_PER_MS)

/* The quota as a limit, if the period were the usual one: what is left when somebody changes the period alone. ABSENT: not known. */
static uint64_t milli_in_usual_period(const struct facts *facts) {
        if (facts->limit_level != LIMIT_CONTAINER || !is_known(facts->quota_ns) ||
            !is_known(facts->period_ns) || facts->period_ns == USUAL_PERIOD_NS)
                return ABSENT;
        return ratio_scale(facts->quota_ns, 1000, USUAL_PERIOD_NS);
}

static bool is_near(uint64_t a, uint64_t b) {
        return is_known(a) && is_known(b) && (a > b ? a - b : b - a) <= ROUNDING_MILLI;
}

/* Pinned CPUs are as good as a limit, and newer kubelets leave the quota out there. */
static bool is_bound_by_pinning(const struct facts *facts) {
        return facts->affinity > 0 && facts->affinity < facts->cpus_online &&
               facts->affinity * UINT64_C(1000) <= facts->declared_limit_milli + 999;
}

static bool differs(const struct facts *facts) {
        if (!is_known(facts->declared_limit_milli))
                return false;
        if (is_known(facts->own_limit_milli))
                return !is_near(facts->own_limit_milli, facts->declared_limit_milli);
        return !facts->limit_unknown && !facts->parent_hidden && !is_bound_by_pinning(facts);
}

/*
 * Nobody told us what was declared. A limit beyond the machine's CPUs, in a shorter period than is usual, whose quota would be an ordinary limit
 * in the usual one: nobody means that.
 */
static bool is_implausible(const struct facts *facts) {
        uint64_t usual = milli_in_usual_period(facts);
        return !is_known(facts->declared_limit_milli) && is_known(usual) && facts->cpus_online > 0 &&
               facts->period_ns < USUAL_PERIOD_NS &&
               facts->limit_milli > facts->cpus_online * UINT64_C(1000) &&
               usual <= facts->cpus_online * UINT64_C(1000);
}

static const char *describe(const struct facts *facts, struct arena *arena) {
        char own[NUMBER_TEXT_MAX], declared[NUMBER_TEXT_MAX], usual[NUMBER_TEXT_MAX], quota[NUMBER_TEXT_MAX],
                        period[NUMBER_TEXT_MAX];
        uint64_t usual_milli = milli_in_usual_period(facts);
        const char *why = "";

        if (!is_known(facts->own_limit_milli))
                return arena_format(arena, "no limit is in force, declared is %s",
                                    number_format_cpus(declared, facts->declared_limit_milli));
        number_format_cpus(own, facts->own_limit_milli);
        if (is_near(usual_milli, facts->declared_limit_milli) || is_implausible(facts))
                why = arena_format(arena,
                                   ": %s per %s. The same quota per 100 ms is %s, as if the period had been "
                                   "changed and the quota left",
                                   number_format_duration(quota, facts->quota_ns),
                                   number_format_duration(period, facts->period_ns),
                                   number_format_cpus(usual, usual_milli));
        if (!why)
                return NULL;
        if (!is_known(facts->declared_limit_milli))
                return arena_format(arena, "a limit of %s is in force on a machine of %u CPUs%s", own,
                                    facts->cpus_online, why);
        return arena_format(arena, "a limit of %s is in force, declared is %s%s", own,
                            number_format_cpus(declared, facts->declared_limit_milli), why);
}

static int add_fix(const struct facts *facts, struct arena *arena, struct finding *finding) {
        char value[NUMBER_TEXT_MAX];
        bool is_own = facts->limit_level == LIMIT_CONTAINER;
        uint64_t milli = is_known(facts->declared_limit_milli) ? facts->declared_limit_milli
                                                               : milli_in_usual_period(facts);
        enum limit_manager manager = remedy_manager(LIMIT_CONTAINER, is_own ? facts->limit_cgroup : NULL);
        struct fix fix;

        if (manager == MANAGER_KUBERNETES || manager == MANAGER_POD || manager == MANAGER_UNKNOWN) {
                fix = (struct fix){
                                .setting = "the group's quota and period",
                                .value = arena_string(arena, number_format_cpus(value, milli)),
                                .how = "somebody set them beside the kubelet or runtime: find out who; a "
                                       "new "
                                       "container, or a resize, sets them anew",
                                .who = "node",
                };
                if (!fix.value)
                        return -ENOMEM;
        } else {
                int r = remedy_set_limit(arena, facts->cgroup_v1_mount, LIMIT_CONTAINER, facts->limit_cgroup,
                                         milli, facts->period_ns, &fix);
                if (r < 0)
                        return r;
        }
        if (is_known(facts->own_limit_milli) && milli < facts->own_limit_milli)
                fix.then = "it gets less than it has now: stalls may begin";
        finding_add_fix(finding, &fix);
        return 0;
}

int rule_limit_not_as_declared(const struct facts *facts, const struct judge_options *options,
                               struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "LimitNotAsDeclared", .severity = SEVERITY_INFO};

        if (!differs(facts) && !is_implausible(facts))
                return 0;
        /* Less than was asked for does harm by its stalls; more does none to this container. */
        if (is_known(facts->own_limit_milli) && is_known(facts->declared_limit_milli) &&
            facts->own_limit_milli < facts->declared_limit_milli && lost.quota_ns > 0)
                finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        else
                finding.is_aside = true;
        finding.summary = describe(facts, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "declared_millicpus", facts->declared_limit_milli);
        finding_add_evidence(&finding, "limit_millicpus", facts->own_limit_milli);
        if (facts->limit_level == LIMIT_CONTAINER) {
                finding_add_evidence(&finding, "quota_ns", facts->quota_ns);
                finding_add_evidence(&finding, "period_ns", facts->period_ns);
        }
        int r = add_fix(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
