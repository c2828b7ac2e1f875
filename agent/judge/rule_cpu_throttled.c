/* SPDX-License-Identifier: Apache-2.0 */
/* CPUThrottled: the container's own limit stalled its threads. */
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* From half of the spent quota on, idle spinning explains the stalls as well as work does. */
#define SPINNING_PPM 500000

/*
 * "bursts of up to 43 ms of CPU, 357 ms apart; the limit gives 25 ms per 100 ms": where that alone explains
 * the stalls. "" if not.
 */
static const char *describe_bursts(const struct facts *facts, struct arena *arena) {
        char cpu[NUMBER_TEXT_MAX], gap[NUMBER_TEXT_MAX], quota[NUMBER_TEXT_MAX], period[NUMBER_TEXT_MAX];

        if (facts->limit_level != LIMIT_CONTAINER || !is_known(facts->quota_ns) ||
            !is_known(facts->burst_cpu_p99_ns) || !is_known(facts->burst_gap_p50_ns) ||
            facts->burst_cpu_p99_ns <= facts->quota_ns + known_or_zero(facts->burst_ns))
                return "";
        return arena_format(arena, ": bursts of up to %s of CPU, %s apart; the limit gives %s per %s",
                            number_format_duration(cpu, facts->burst_cpu_p99_ns),
                            number_format_duration(gap, facts->burst_gap_p50_ns),
                            number_format_duration(quota, facts->quota_ns),
                            number_format_duration(period, facts->period_ns));
}

/* The quota went to threads of a runtime that spin for work when idle, however few they are. "" if not. */
static const char *describe_spinning(const struct facts *facts, struct arena *arena) {
        char name[FINDING_NAME_MAX], share[FINDING_SHARE_MAX];

        if (!is_known(facts->throttled_used_ns))
                return "";
        for (size_t i = 0; i < facts->parallelism_count; i++) {
                const struct parallelism_facts *row = &facts->parallelism[i];
                if (row->row->spins && is_known(row->quota_spent_ns) &&
                    ratio_reaches(row->quota_spent_ns, facts->throttled_used_ns, SPINNING_PPM))
                        return arena_format(arena,
                                            "; %s of the quota that was spent went to %s, whose threads "
                                            "spin for "
                                            "work when idle",
                                            finding_format_share(share, row->quota_spent_ns,
                                                                 facts->throttled_used_ns),
                                            finding_program(name, row->row));
        }
        return "";
}

static const char *describe(const struct facts *facts, const struct lost_time *lost, struct arena *arena) {
        char limit[NUMBER_TEXT_MAX] = "", stalled[NUMBER_TEXT_MAX], share[FINDING_SHARE_MAX];
        const char *bursts = describe_bursts(facts, arena), *spinning = describe_spinning(facts, arena);
        if (!bursts || !spinning)
                return NULL;

        if (is_known(facts->own_limit_milli))
                number_format_cpus(limit, facts->own_limit_milli);
        return arena_format(arena,
                            "its own limit%s%s stalled its threads for %s%s (%s of the time they wanted to "
                            "run)%s%s",
                            limit[0] ? " " : "", limit, lost->is_bound ? "up to " : "",
                            number_format_duration(stalled, lost->quota_ns),
                            finding_format_share(share, lost->quota_ns, lost->wanted_ns), bursts, spinning);
}

static int add_fix(const struct facts *facts, struct arena *arena, struct finding *finding) {
        struct fix fix;
        char quantity[NUMBER_TEXT_MAX];
        bool is_own = facts->limit_level == LIMIT_CONTAINER;

        /* The limit was removed within the window, or a group below the container has it. */
        if (!is_known(facts->own_limit_milli))
                return 0;
        uint64_t period_ns = is_own ? facts->period_ns : ABSENT;
        uint64_t milli = remedy_needed_milli(facts, facts->own_limit_milli, period_ns);
        int r = remedy_set_limit(arena, facts->cgroup_v1_mount, LIMIT_CONTAINER,
                                 is_own ? facts->limit_cgroup : NULL, milli, period_ns, &fix);
        if (r < 0)
                return r;
        const char *sets_off = remedy_consequences(facts, milli, arena);
        if (!sets_off)
                return -ENOMEM;
        fix.then = arena_format(
                        arena,
                        "it may use up to %s at once: where the node has no such CPU to spare, threads wait "
                        "instead of stalling%s%s",
                        number_format_cpus(quantity, milli), sets_off[0] ? "; " : "", sets_off);
        if (!fix.then)
                return -ENOMEM;
        finding_add_fix(finding, &fix);
        return finding_take_fix(finding, remedy_remove_limit(facts, arena, &fix), &fix);
}

int rule_cpu_throttled(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                       struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "CPUThrottled"};

        if (!lost.is_known || lost.quota_ns == 0)
                return 0;
        finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        finding.summary = describe(facts, &lost, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "stall_ns", lost.quota_ns);
        finding_add_evidence(&finding, "lost_ppm", finding_share_ppm(lost.quota_ns, lost.wanted_ns));
        finding_add_evidence(&finding, "stall_longest_ns", facts->stall_longest_ns);
        finding_add_evidence(&finding, "stalls_long", facts->stalls_long);
        finding_add_evidence(&finding, "limit_millicpus", facts->own_limit_milli);
        finding_add_evidence(&finding, "wanted_millicpus", facts->wanted_milli);
        finding_add_evidence(&finding, "burst_cpu_p99_ns", facts->burst_cpu_p99_ns);
        if (facts->limit_level == LIMIT_CONTAINER)
                finding_add_evidence(&finding, "periods_throttled", facts->periods_throttled);
        int r = add_fix(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
