/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Facts in, verdict and findings out. Pure: no clock, no file, no state; every verdict can be replayed. */
#include "facts.h"

enum verdict {
        VERDICT_QUOTA,
        VERDICT_ANCESTOR_QUOTA,
        VERDICT_CONTENTION,
        VERDICT_STEAL,
        VERDICT_MIXED,
        VERDICT_FINE,
        VERDICT_NO_LIMIT,
        VERDICT_NOT_MEASURED,
        VERDICT_COUNT,
};
enum severity { SEVERITY_NONE, SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_COUNT };
const char *verdict_name(enum verdict verdict); /* "ancestor-quota" */
const char *severity_name(enum severity severity);

struct evidence {
        const char *name; /* snake_case with its unit */
        uint64_t value;
};
#define FINDING_EVIDENCE_MAX 10
#define FINDING_FIXES_MAX 4
struct fix {
        const char *setting, *value, *how, *who, *then; /* then may be NULL */
};
struct finding {
        const char *code;
        enum severity severity;
        bool is_aside; /* not what did the harm that its severity stands beside: told after what did */
        const char *summary;
        struct evidence evidence[FINDING_EVIDENCE_MAX];
        size_t evidence_count;
        struct fix fixes[FINDING_FIXES_MAX];
        size_t fixes_count;
};

struct judge_options {
        uint32_t warn_lost_ppm; /* 50000: 5 % of the wanted time */
        uint64_t warn_stall_ns; /* 50 ms */
};
struct judgement {
        enum verdict verdict;
        enum severity severity;
        struct finding *findings; /* graded: warnings first */
        size_t findings_count;
};

/* A rule looks at facts and adds at most one finding. Returns 1 found, 0 not, negative errno. One file a rule. */
typedef int (*judge_rule)(const struct facts *facts, const struct judge_options *options,
                          struct arena *arena, struct finding *ret_finding);
/* Runs all rules. Strings and findings in @arena. 0 or -ENOMEM. */
int judge(const struct facts *facts, const struct judge_options *options, struct arena *arena,
          struct judgement *ret_judgement);
