/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
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

int finding_take_fix(struct finding *finding, int r, const struct fix *fix) {
        if (r > 0)
                finding_add_fix(finding, fix);
        return r < 0 ? r : 0;
}

char *finding_escape(char out[static FINDING_NAME_MAX], const char *foreign) {
        return text_escape(out, FINDING_NAME_MAX, foreign ? foreign : "", foreign ? strlen(foreign) : 0);
}

char *finding_escape_name(char out[static FINDING_NAME_MAX], const char name[static PROC_NAME_MAX]) {
        return text_escape(out, FINDING_NAME_MAX, name, strnlen(name, PROC_NAME_MAX));
}

char *finding_program(char out[static FINDING_NAME_MAX], const struct parallelism *row) {
        char whole[FINDING_NAME_MAX];

        snprintf(whole, sizeof(whole), "%s%s%s", row->program ? row->program : row->runtime,
                 row->version ? " " : "", row->version ? row->version : "");
        return finding_escape(out, whole);
}

char *finding_source(char out[static FINDING_NAME_MAX], const struct parallelism *row) {
        char whole[FINDING_NAME_MAX], escaped[FINDING_NAME_MAX - sizeof(" ()")];

        out[0] = '\0';
        if (row->source == FROM_UNKNOWN)
                return out;
        snprintf(whole, sizeof(whole), "%s%s%s", parallelism_source_name(row->source),
                 row->source_detail ? ": " : "", row->source_detail ? row->source_detail : "");
        text_escape(escaped, sizeof(escaped), whole, strlen(whole));
        snprintf(out, FINDING_NAME_MAX, " (%s)", escaped);
        return out;
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
