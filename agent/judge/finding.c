/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "ratio.h"
#include "rules.h"

void finding_add_evidence(struct finding *finding, const char *name, uint64_t value) {
        if (is_known(value) && finding->evidence_count < FINDING_EVIDENCE_MAX)
                finding->evidence[finding->evidence_count++] = (struct evidence){name, value};
}

void finding_add_fix(struct finding *finding, const struct fix *fix) {
        if (finding->fixes_count < FINDING_FIXES_MAX)
                finding->fixes[finding->fixes_count++] = *fix;
}

uint64_t finding_share_ppm(uint64_t part_ns, uint64_t whole_ns) {
        return ratio_scale(part_ns, 1000000, whole_ns);
}

char *finding_format_share(char out[static FINDING_SHARE_MAX], uint64_t part_ns, uint64_t whole_ns) {
        uint64_t permille = known_or_zero(ratio_scale(part_ns, 1000, whole_ns));

        if (permille >= 100)
                snprintf(out, FINDING_SHARE_MAX, "%" PRIu64 "%%", permille < 1000 ? permille / 10 : 100);
        else
                snprintf(out, FINDING_SHARE_MAX, "%" PRIu64 ".%" PRIu64 "%%", permille / 10, permille % 10);
        return out;
}
