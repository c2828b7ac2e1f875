/* SPDX-License-Identifier: Apache-2.0 */
/* ParallelismBelowLimit: the limit was raised, and a runtime that read it at its start still keeps to the old one. */
#include <errno.h>
#include <inttypes.h>

#include "../base/number.h"
#include "ratio.h"
#include "rules.h"

/*
 * Its own rule, from a quota that it read once; and at least one whole CPU less than now, because some of these rules round down. A number that
 * somebody chose is their business.
 */
static bool is_stale(const struct facts *facts, const struct parallelism_facts *row) {
        const struct parallelism *said = row->row;
        uint64_t cpus = said->affinity > 0 ? said->affinity : facts->cpus_online;

        if (said->aware != AWARENESS_QUOTA || said->follows || said->is_blocking ||
            (said->source != FROM_DEFAULT && said->source != FROM_LIBRARY) ||
            said->rounding == ROUND_TO_ONE || !is_known(said->effective) || !is_known(row->recommended))
                return false;
        uint64_t whole = facts->limit_milli / 1000;
        if (cpus > 0 && whole > cpus)
                whole = cpus;
        return said->effective < whole && said->effective < row->recommended;
}

int rule_parallelism_below_limit(const struct facts *facts, const struct judge_options *options,
                                 struct arena *arena, struct finding *ret_finding) {
        struct finding finding = {
                        .code = "ParallelismBelowLimit", .severity = SEVERITY_INFO, .is_aside = true};
        char program[FINDING_NAME_MAX], setting[FINDING_NAME_MAX], limit[NUMBER_TEXT_MAX];
        const struct parallelism_facts *row = NULL;

        (void) options;
        if (!facts->has_limit || !is_known(facts->limit_milli))
                return 0;
        for (size_t i = 0; i < facts->parallelism_count && !row; i++)
                if (is_stale(facts, &facts->parallelism[i]))
                        row = &facts->parallelism[i];
        if (!row)
                return 0;
        finding.summary = arena_format(
                        arena,
                        "%s: %s is %" PRIu64 ", from a lower limit than the %s of now: it reads "
                        "the limit only when it starts",
                        finding_program(program, row->row), finding_escape(setting, row->row->setting),
                        row->row->effective, number_format_cpus(limit, facts->limit_milli));
        struct fix fix = {
                        .setting = row->row->setting ? row->row->setting : "its parallelism",
                        .value = arena_format(arena, "%" PRIu64, row->recommended),
                        .how = "restart it, and it reads the limit anew",
                        .who = "app",
        };
        if (!finding.summary || !fix.value)
                return -ENOMEM;
        finding_add_evidence(&finding, "effective", row->row->effective);
        finding_add_evidence(&finding, "recommended", row->recommended);
        finding_add_evidence(&finding, "limit_millicpus", facts->limit_milli);
        finding_add_fix(&finding, &fix);
        *ret_finding = finding;
        return 1;
}
