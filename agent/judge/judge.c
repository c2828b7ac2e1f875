/* SPDX-License-Identifier: Apache-2.0 */
/* Verdict and severity, and the table of rules. */
#include "judge.h"

#include <errno.h>
#include <string.h>

#include "../probe/assemble.h"
#include "lost.h"
#include "ratio.h"
#include "rules.h"

/*
 * One cause has the verdict from 70 % of the lost time on: a second one then has less than half of its share
 * and changing it would not help much. Below that, with two notable ones, whoever reads only the verdict
 * would change the wrong thing.
 */
#define MAJORITY_PPM 700000

#define X(name) rule_##name,
static const judge_rule rules[] = {RULES(X)};
#undef X

/*
 * The application sits in containers that could not be looked at: what is known of ours says nothing about
 * it.
 */
static bool are_others_unseen(const struct facts *facts) {
        for (size_t i = 0; i < facts->missing_count; i++)
                if (facts->missing[i].what && strcmp(facts->missing[i].what, MISSING_OTHER_CONTAINERS) == 0)
                        return true;
        return false;
}

/* Nothing worth a word was lost. That no limit applies is only said where none can be hidden. */
static enum verdict calm_verdict(const struct facts *facts) {
        return facts->has_limit || facts->limit_unknown || facts->parent_hidden ? VERDICT_FINE
                                                                                : VERDICT_NO_LIMIT;
}

static enum verdict verdict_of_causes(const struct facts *facts, const struct lost_time *lost,
                                      enum severity stalls) {
        const struct {
                enum verdict verdict;
                uint64_t ns;
        } causes[] = {
                        {VERDICT_QUOTA, lost->quota_ns},
                        {VERDICT_ANCESTOR_QUOTA, lost->ancestor_ns},
                        {VERDICT_CONTENTION, lost->contention_ns},
                        {VERDICT_STEAL, lost->steal_ns},
        };
        uint64_t sum_ns = 0;
        size_t largest = 0, notable = 0;

        for (size_t i = 0; i < ELEMENTS(causes); i++) {
                sum_ns += causes[i].ns;
                notable += lost_is_notable(lost, causes[i].ns);
                if (causes[i].ns > causes[largest].ns)
                        largest = i;
        }
        /* Stalls were seen, but none of the threads they hit: which kind it was the limits say. */
        if (sum_ns == 0)
                return facts->ancestor_is_tighter ? VERDICT_ANCESTOR_QUOTA : VERDICT_QUOTA;
        /* Stalls that are a warning are never hidden behind waiting. */
        if (stalls == SEVERITY_WARNING && causes[largest].verdict != VERDICT_QUOTA &&
            causes[largest].verdict != VERDICT_ANCESTOR_QUOTA)
                return VERDICT_MIXED;
        if (!ratio_reaches(causes[largest].ns, sum_ns, MAJORITY_PPM) && notable >= 2)
                return VERDICT_MIXED;
        return causes[largest].verdict;
}

static void decide(const struct facts *facts, const struct judge_options *options,
                   struct judgement *judgement) {
        struct lost_time lost = lost_time_of(facts);
        enum severity stalls = lost_severity(facts, options, &lost);
        uint64_t lost_ns = lost_by_limits(&lost) + lost.contention_ns + lost.steal_ns;
        /* A person who wants to be warned below 1 % is not told that all is fine. */
        uint64_t fine_ppm = options->warn_lost_ppm < LOST_NOTABLE_PPM ? options->warn_lost_ppm
                                                                      : LOST_NOTABLE_PPM;

        judgement->severity = stalls;
        if (stalls != SEVERITY_WARNING && !ratio_reaches(lost_ns, lost.wanted_ns, fine_ppm)) {
                judgement->verdict = calm_verdict(facts);
                return;
        }
        /* Waiting and steal are told, never warned of: a limit is what this program can have changed. */
        if (judgement->severity == SEVERITY_NONE)
                judgement->severity = SEVERITY_INFO;
        judgement->verdict = verdict_of_causes(facts, &lost, stalls);
}

static int run_rules(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                     struct judgement *judgement) {
        struct finding found[ELEMENTS(rules)], *findings;
        size_t count = 0, kept = 0;

        for (size_t i = 0; i < ELEMENTS(rules); i++) {
                int r = rules[i](facts, options, arena, &found[count]);
                if (r < 0)
                        return r;
                count += (size_t) r;
        }
        findings = arena_array(arena, count, sizeof(*findings));
        if (!findings)
                return -ENOMEM;
        /* Warnings first; among equals what did the harm, and then the order of the table. */
        for (int rank = 2 * SEVERITY_COUNT - 1; rank >= 0; rank--)
                for (size_t i = 0; i < count; i++)
                        if (2 * (int) found[i].severity + !found[i].is_aside == rank)
                                findings[kept++] = found[i];
        judgement->findings = findings;
        judgement->findings_count = kept;
        return 0;
}

int judge(const struct facts *facts, const struct judge_options *options, struct arena *arena,
          struct judgement *ret_judgement) {
        struct judgement judgement = {.verdict = VERDICT_NOT_MEASURED, .severity = SEVERITY_NONE};
        struct lost_time lost = lost_time_of(facts);

        if (lost.is_known && !lost.is_undecided && !are_others_unseen(facts)) {
                int r = run_rules(facts, options, arena, &judgement);
                if (r < 0)
                        return r;
                decide(facts, options, &judgement);
        }
        *ret_judgement = judgement;
        return 0;
}
