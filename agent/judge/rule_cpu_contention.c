/* SPDX-License-Identifier: Apache-2.0 */
/* CPUContention: threads waited for CPUs that were busy; no limit held them. */
#include <errno.h>
#include <inttypes.h>

#include "../base/number.h"
#include "lost.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* Of the machine, or of its own where it is pinned to fewer. */
static unsigned cpus_of(const struct facts *facts) {
        return facts->affinity > 0 && facts->affinity < facts->cpus_online ? facts->affinity
                                                                           : facts->cpus_online;
}

/*
 * More of the container's own threads want to run at once than there are CPUs: they stand in each other's
 * way.
 */
static bool is_crowded(const struct facts *facts) {
        return cpus_of(facts) > 0 && is_known(facts->runnable_p99) && facts->runnable_p99 > cpus_of(facts);
}

static const char *describe(const struct facts *facts, const struct lost_time *lost, struct arena *arena) {
        char waited[NUMBER_TEXT_MAX], share[FINDING_SHARE_MAX];
        const char *why = "";

        if (is_crowded(facts))
                why = arena_format(arena,
                                   ": up to %" PRIu64
                                   " of its own threads wanted to run at once, on %u CPUs",
                                   facts->runnable_p99, cpus_of(facts));
        if (!why)
                return NULL;
        return arena_format(arena,
                            "its threads waited %s%s (%s of the time they wanted to run) for busy CPUs, not "
                            "held by a limit%s",
                            lost->is_bound ? "at least " : "",
                            number_format_duration(waited, lost->contention_ns),
                            finding_format_share(share, lost->contention_ns, lost->wanted_ns), why);
}

static int add_fix(const struct facts *facts, struct arena *arena, struct finding *finding) {
        struct fix fix;
        char quantity[NUMBER_TEXT_MAX];

        if (is_crowded(facts)) {
                fix = (struct fix){
                                .setting = "threads that run at once",
                                .value = arena_format(arena, "%u", cpus_of(facts)),
                                .how = "in the program's own configuration: more than the CPUs only take "
                                       "turns",
                                .who = "app",
                };
        } else if (is_known(facts->cpu_used_ns) && facts->cpu_used_ns > 0 && facts->window_ns > 0) {
                /* What it used is what it needs for sure; what it wanted counts each waiting thread. */
                uint64_t used = ratio_scale_up(facts->cpu_used_ns, 1000, facts->window_ns);
                number_format_cpus(quantity, remedy_round_up(used));
                fix = (struct fix){
                                .setting = "its share of the CPUs",
                                .value = arena_format(arena, "at least %s", quantity),
                                .how = arena_format(arena,
                                                    "Kubernetes: resources.requests.cpu: %s; a systemd "
                                                    "unit: CPUWeight=; "
                                                    "Docker: --cpu-shares",
                                                    quantity),
                                .who = "app",
                                .then = "neighbours on the same CPUs get less; without free CPU elsewhere "
                                        "they wait instead",
                };
                if (!fix.how)
                        return -ENOMEM;
        } else {
                return 0;
        }
        if (!fix.value)
                return -ENOMEM;
        finding_add_fix(finding, &fix);
        return 0;
}

int rule_cpu_contention(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                        struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "CPUContention"};

        (void) options;
        if (!lost.is_known || lost.is_undecided || !lost_is_notable(&lost, lost.contention_ns))
                return 0;
        /* Never a warning: the same figure comes from a batch job that fills the machine on purpose. */
        finding.severity = SEVERITY_INFO;
        finding.summary = describe(facts, &lost, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "wait_ns", lost.contention_ns);
        finding_add_evidence(&finding, "lost_ppm", finding_share_ppm(lost.contention_ns, lost.wanted_ns));
        finding_add_evidence(&finding, "cpus_online", facts->cpus_online > 0 ? facts->cpus_online : ABSENT);
        if (cpus_of(facts) < facts->cpus_online)
                finding_add_evidence(&finding, "cpus_pinned", cpus_of(facts));
        finding_add_evidence(&finding, "runnable_p99", facts->runnable_p99);
        finding_add_evidence(&finding, "runnable_max", facts->runnable_max);
        finding_add_evidence(&finding, "wanted_millicpus", facts->wanted_milli);
        finding_add_evidence(&finding, "weight", facts->weight);
        int r = add_fix(facts, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
