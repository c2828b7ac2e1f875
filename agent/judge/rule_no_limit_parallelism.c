/* SPDX-License-Identifier: Apache-2.0 */
/* NoLimitParallelism: without a limit a runtime counted the machine's CPUs, and its share among others is smaller. */
#include <errno.h>
#include <inttypes.h>

#include "../base/number.h"
#include "ratio.h"
#include "rules.h"

#define REQUEST_FACTOR 2

/* CPUs that a program without a limit counts. */
static uint64_t cpus_counted(const struct facts *facts, const struct parallelism *row) {
        return row->affinity > 0 ? row->affinity : facts->cpus_online;
}

static bool is_high(const struct facts *facts, const struct parallelism *row) {
        uint64_t cpus = cpus_counted(facts, row);

        if (row->is_blocking || row->rounding == ROUND_NEVER || !is_known(row->effective))
                return false;
        if (is_known(facts->request_milli)) {
                uint64_t share = facts_parallelism_for(facts, row, facts->request_milli);
                return is_known(share) && row->effective >= share * REQUEST_FACTOR;
        }
        return cpus > 1 && row->effective >= cpus;
}

/* The one that is most too high. */
static const struct parallelism *highest_row(const struct facts *facts) {
        const struct parallelism *highest = NULL;

        for (size_t i = 0; i < facts->parallelism_count; i++) {
                const struct parallelism *row = facts->parallelism[i].row;
                if (is_high(facts, row) && (!highest || row->effective > highest->effective))
                        highest = row;
        }
        return highest;
}

static int add_fix(const struct facts *facts, const struct parallelism *row, struct arena *arena,
                   struct finding *finding) {
        if (!is_known(facts->request_milli))
                return 0;
        struct fix fix = {
                        .setting = row->setting ? row->setting : "its parallelism",
                        .value = arena_format(arena, "%" PRIu64,
                                              facts_parallelism_for(facts, row, facts->request_milli)),
                        .how = "only if it shall be as fast on a busy node as on an idle one: this is what "
                               "its request is worth",
                        .who = "app",
                        .then = "on an idle node it no longer uses CPUs that nobody else wants",
        };
        if (!fix.value)
                return -ENOMEM;
        finding_add_fix(finding, &fix);
        return 0;
}

int rule_no_limit_parallelism(const struct facts *facts, const struct judge_options *options,
                              struct arena *arena, struct finding *ret_finding) {
        struct finding finding = {.code = "NoLimitParallelism", .severity = SEVERITY_INFO, .is_aside = true};
        char program[FINDING_NAME_MAX], setting[FINDING_NAME_MAX], request[NUMBER_TEXT_MAX];

        (void) options;
        if (facts->has_limit || facts->limit_unknown || facts->parent_hidden)
                return 0;
        const struct parallelism *row = highest_row(facts);
        if (!row)
                return 0;
        finding_program(program, row);
        finding_escape(setting, row->setting ? row->setting : "its parallelism");
        if (is_known(facts->request_milli))
                finding.summary = arena_format(arena,
                                               "%s: %s is %" PRIu64
                                               " and no limit holds it; its request %s is "
                                               "all that is sure on a busy node",
                                               program, setting, row->effective,
                                               number_format_cpus(request, facts->request_milli));
        else
                finding.summary = arena_format(arena,
                                               "%s: %s is %" PRIu64
                                               ", as many as it counts CPUs, and no limit "
                                               "holds it; its request is not known here",
                                               program, setting, row->effective);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "effective", row->effective);
        finding_add_evidence(&finding, "request_millicpus", facts->request_milli);
        finding_add_evidence(&finding, "cpus_counted", cpus_counted(facts, row));
        finding_add_evidence(&finding, "runnable_p99", facts->runnable_p99);
        int r = add_fix(facts, row, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
