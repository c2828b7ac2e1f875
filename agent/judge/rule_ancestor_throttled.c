/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AncestorThrottled: a limit above the container's own group stalled its threads, and it is tighter than
 * what lies below it.
 */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* The limit shown is the ancestor's; else the culprit is hidden above our namespace. */
static bool is_seen(const struct facts *facts) {
        return facts->has_limit && facts->limit_level != LIMIT_CONTAINER && is_known(facts->limit_milli);
}

static const char *describe(const struct facts *facts, const struct lost_time *lost, struct arena *arena) {
        char limit[NUMBER_TEXT_MAX] = "", own[NUMBER_TEXT_MAX] = "none", stalled[NUMBER_TEXT_MAX],
             share[FINDING_SHARE_MAX];
        const char *whose = "a limit above its group, not visible from here,";

        if (is_seen(facts)) {
                whose = facts->limit_level == LIMIT_POD ? "its Pod's limit " : "an ancestor's limit ";
                number_format_cpus(limit, facts->limit_milli);
        }
        if (is_known(facts->own_limit_milli))
                number_format_cpus(own, facts->own_limit_milli);
        return arena_format(arena,
                            "%s%s stalled its threads for %s%s (%s of the time they wanted to run); its own "
                            "limit: %s",
                            whose, limit, lost->is_bound ? "up to " : "",
                            number_format_duration(stalled, lost->ancestor_ns),
                            finding_format_share(share, lost->ancestor_ns, lost->wanted_ns), own);
}

/*
 * What the others below the ancestor need is not known here. So the value is the least that serves this
 * container: what its own limit already grants it, or what it needed.
 */
static int add_fix(const struct facts *facts, struct arena *arena, struct finding *finding) {
        struct fix fix;

        if (!is_seen(facts)) {
                fix = (struct fix){
                                .setting = "the limit above this container",
                                .how = "look from the node (--scope node): from here only its effect can be "
                                       "seen",
                                .who = "platform",
                };
                finding_add_fix(finding, &fix);
                return 0;
        }
        bool is_granted = is_known(facts->own_limit_milli) && facts->own_limit_milli > facts->limit_milli;
        uint64_t milli = is_granted ? facts->own_limit_milli
                                    : remedy_needed_milli(facts, facts->limit_milli, facts->period_ns);
        int r = remedy_set_limit(arena, facts->cgroup_v1_mount, facts->limit_level, facts->limit_cgroup,
                                 milli, facts->period_ns, &fix);
        if (r < 0)
                return r;
        fix.then = "at least this: whatever else runs below that limit shares it";
        finding_add_fix(finding, &fix);
        return 0;
}

int rule_ancestor_throttled(const struct facts *facts, const struct judge_options *options,
                            struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "AncestorThrottled"};

        if (!lost.is_known || lost.ancestor_ns == 0)
                return 0;
        finding.severity = lost_part_severity(facts, options, &lost, lost.ancestor_ns);
        finding.summary = describe(facts, &lost, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "stall_ns", lost.ancestor_ns);
        finding_add_evidence(&finding, "lost_ppm", finding_share_ppm(lost.ancestor_ns, lost.wanted_ns));
        finding_add_evidence(&finding, "ancestor_throttled_ns", facts->ancestor_throttled_ns);
        finding_add_evidence(&finding, "own_limit_millicpus", facts->own_limit_milli);
        if (is_seen(facts)) {
                finding_add_evidence(&finding, "limit_millicpus", facts->limit_milli);
                finding_add_evidence(&finding, "periods_throttled", facts->periods_throttled);
        }
        finding_add_evidence(&finding, "stall_longest_ns", facts->stall_longest_ns);
        finding_add_evidence(&finding, "wanted_millicpus", facts->wanted_milli);
        int r = add_fix(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
