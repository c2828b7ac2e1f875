/* SPDX-License-Identifier: Apache-2.0 */
/* KernelQuotaBug: Linux 4.18 to 5.3 lets slices of a quota expire unused, so containers stall below their limit. */
#include <ctype.h>
#include <errno.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "rules.h"

/*
 * Brought by 512ac999d275 (4.18), taken away by de53fd7aedb1 (5.4; also in 4.19.84 and 5.3.9). Each CPU loses up to 1 ms in each period. Seen
 * when at least a tenth of the quota of the throttled periods was not used, whoever used it when: without the bug what a CPU has left over
 * serves its next period.
 */
#define USED_AT_MOST_PPM 900000

static bool take_number(const char **text, unsigned *ret_number) {
        unsigned number = 0, digits = 0;

        for (; isdigit((unsigned char) **text) && digits < 6; (*text)++, digits++)
                number = number * 10 + (unsigned) (**text - '0');
        *ret_number = number;
        return digits > 0;
}

/* "5.3.0-40-generic" as major, minor, patch (0 if not said). */
static bool parse_release(const char *text, unsigned ret_version[3]) {
        ret_version[2] = 0;
        if (!text || !take_number(&text, &ret_version[0]) || *text++ != '.' ||
            !take_number(&text, &ret_version[1]))
                return false;
        if (*text == '.') {
                text++;
                (void) take_number(&text, &ret_version[2]);
        }
        return true;
}

static bool is_affected(const char *release) {
        unsigned version[3];

        if (!parse_release(release, version))
                return false;
        unsigned minor = version[0] * 1000 + version[1];
        if (minor == 4019)
                return version[2] < 84;
        if (minor == 5003)
                return version[2] < 9;
        return minor >= 4018 && minor < 5003;
}

/* CPU time used in throttled periods; where that is not measured, all that was used is at least as much. */
static uint64_t used_ns(const struct facts *facts) {
        return is_known(facts->throttled_used_ns) ? facts->throttled_used_ns : facts->cpu_used_ns;
}

int rule_kernel_quota_bug(const struct facts *facts, const struct judge_options *options,
                          struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "KernelQuotaBug"};
        char used[NUMBER_TEXT_MAX], granted[NUMBER_TEXT_MAX], release[FINDING_NAME_MAX];

        if (!is_affected(facts->kernel) || !lost.is_known || lost.quota_ns == 0 ||
            facts->limit_level != LIMIT_CONTAINER || known_or_zero(facts->periods_throttled) == 0 ||
            !is_known(facts->quota_ns) || !is_known(used_ns(facts)))
                return 0;
        uint64_t granted_ns = ratio_scale(facts->quota_ns, known_or_zero(facts->periods_throttled), 1);
        if (ratio_is_below(USED_AT_MOST_PPM, 1000000, used_ns(facts), granted_ns))
                return 0;
        finding.severity = lost_part_severity(facts, options, &lost, lost.quota_ns);
        finding.summary = arena_format(
                        arena,
                        "kernel %s lets unused slices of a quota expire: it used at most %s of "
                        "the %s that its throttled periods granted",
                        finding_escape(release, facts->kernel), number_format_duration(used, used_ns(facts)),
                        number_format_duration(granted, granted_ns));
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "throttled_used_at_most_ns", used_ns(facts));
        finding_add_evidence(&finding, "throttled_granted_ns", granted_ns);
        finding_add_evidence(&finding, "periods_throttled", facts->periods_throttled);
        finding_add_evidence(&finding, "stall_ns", lost.quota_ns);
        finding_add_fix(&finding,
                        &(const struct fix){
                                        .setting = "kernel",
                                        .value = "5.4 or later",
                                        .how = "a newer one; 4.19.84, 5.3.9 and some distributions' older "
                                               "kernels have the same fix",
                                        .who = "node",
                                        .then = "the node restarts; until then fewer threads, on fewer "
                                                "CPUs, "
                                                "lose less: 1 ms on each CPU and period",
                        });
        *ret_finding = finding;
        return 1;
}
