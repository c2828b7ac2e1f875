/* SPDX-License-Identifier: Apache-2.0 */
/* BurstExceedsQuota: as many threads as the limit has CPUs, but more work at one go than a period grants. */
#include <errno.h>
#include <inttypes.h>

#include "../base/number.h"
#include "excess.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* So many bursts of a container's first minute are a pattern; fewer are its start. */
#define PATTERN_BURSTS 10

/* What one period grants at most to a burst: saved-up credit included. */
static uint64_t grant_ns(const struct facts *facts) {
        return facts->quota_ns + known_or_zero(facts->burst_ns);
}

static bool is_cut(const struct facts *facts, const struct lost_time *lost) {
        return lost->is_known && lost->quota_ns > 0 && facts->limit_level == LIMIT_CONTAINER &&
               is_known(facts->quota_ns) && is_known(facts->period_ns) &&
               is_known(facts->burst_cpu_p99_ns) && facts->burst_cpu_p99_ns > grant_ns(facts);
}

/* An upper bound of what sat behind a stalled holder of a lock. */
static uint64_t sleep_in_stall(const struct facts *facts) {
        uint64_t sum_ns = ABSENT;

        for (size_t i = 0; i < facts->threads_count; i++)
                known_add(&sum_ns, facts->threads[i].sleep_in_stall_ns);
        return sum_ns;
}

static const char *describe(const struct facts *facts, struct arena *arena) {
        char cpu[NUMBER_TEXT_MAX], gap[NUMBER_TEXT_MAX], quota[NUMBER_TEXT_MAX], period[NUMBER_TEXT_MAX],
                        used[NUMBER_TEXT_MAX];
        bool is_serial = facts->runnable_p99 == 1 ||
                         (is_known(facts->unstalled_milli) && facts->unstalled_milli < FACTS_SERIAL_MILLI);
        const char *apart = "", *average = "";

        if (is_known(facts->burst_gap_p50_ns))
                apart = arena_format(arena, ", %s apart",
                                     number_format_duration(gap, facts->burst_gap_p50_ns));
        if (is_known(facts->cpu_used_ns) && facts->window_ns > 0)
                average = arena_format(arena, ", though it used only %s on average",
                                       number_format_cpus(used, ratio_scale(facts->cpu_used_ns, 1000,
                                                                            facts->window_ns)));
        /* A container that uses all of its limit has no bursts but one. */
        if (is_known(facts->cpu_used_ns) &&
            !ratio_is_below(facts->cpu_used_ns, facts->window_ns, facts->limit_milli, 1250))
                average = "";
        if (!apart || !average)
                return NULL;
        return arena_format(arena, "bursts of up to %s of CPU%s; the limit gives %s per %s%s%s",
                            number_format_duration(cpu, facts->burst_cpu_p99_ns), apart,
                            number_format_duration(quota, grant_ns(facts)),
                            number_format_duration(period, facts->period_ns), average,
                            is_serial ? ". One thread runs at a time" : "");
}

static int add_fixes(const struct facts *facts, struct arena *arena, struct finding *finding) {
        char quantity[NUMBER_TEXT_MAX];
        struct fix fix;
        uint64_t milli = remedy_needed_milli(facts, facts->limit_milli, facts->period_ns);
        int r = remedy_set_limit(arena, facts->cgroup_v1_mount, LIMIT_CONTAINER, facts->limit_cgroup, milli,
                                 facts->period_ns, &fix);
        if (r < 0)
                return r;
        const char *sets_off = remedy_consequences(facts, milli, arena);
        if (!sets_off)
                return -ENOMEM;
        fix.then = arena_format(arena,
                                "it may use up to %s at once: where the node has no such CPU to spare, "
                                "threads wait instead of stalling%s%s",
                                number_format_cpus(quantity, milli), sets_off[0] ? "; " : "", sets_off);
        if (!fix.then)
                return -ENOMEM;
        finding_add_fix(finding, &fix);
        r = finding_take_fix(finding, remedy_remove_limit(facts, arena, &fix), &fix);
        if (r == 0)
                r = finding_take_fix(finding, remedy_burst_credit(facts, arena, &fix), &fix);
        if (r == 0)
                r = finding_take_fix(finding,
                                     remedy_period(facts, remedy_shorter_period(facts), arena, &fix), &fix);
        return r;
}

int rule_burst_exceeds_quota(const struct facts *facts, const struct judge_options *options,
                             struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "BurstExceedsQuota"};
        struct excess excess;

        if (!is_cut(facts, &lost))
                return 0;
        int r = excess_of(facts, &lost, arena, &excess);
        if (r < 0 || excess.collides)
                return r;
        finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        finding.is_aside = facts_is_starting(facts) && known_or_zero(facts->burst_count) < PATTERN_BURSTS;
        finding.summary = describe(facts, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "burst_cpu_p99_ns", facts->burst_cpu_p99_ns);
        finding_add_evidence(&finding, "burst_gap_p50_ns", facts->burst_gap_p50_ns);
        finding_add_evidence(&finding, "quota_ns", facts->quota_ns);
        finding_add_evidence(&finding, "period_ns", facts->period_ns);
        finding_add_evidence(&finding, "burst_slowdown_permille", facts->burst_slowdown_permille);
        finding_add_evidence(&finding, "runnable_p99", facts->runnable_p99);
        finding_add_evidence(&finding, "unstalled_parallelism_permille", facts->unstalled_milli);
        finding_add_evidence(&finding, "stall_ns", lost.quota_ns);
        finding_add_evidence(&finding, "sleep_in_stall_ns", sleep_in_stall(facts));
        r = add_fixes(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
