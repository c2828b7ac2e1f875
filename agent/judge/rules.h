/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules, one file each; their table is in judge.c, their meaning in docs/findings.md. And what they
 * write findings with.
 */
#include "judge.h"

/* In the order in which findings of the same severity are told: what explains the others comes first. */
#define RULES(X)                                                                                            \
        X(kernel_quota_bug)                                                                                 \
        X(limit_not_as_declared)                                                                            \
        X(quota_on_pinned_cpus)                                                                             \
        X(period_too_long)                                                                                  \
        X(parallelism_exceeds_limit)                                                                        \
        X(burst_exceeds_quota)                                                                              \
        X(startup_throttled)                                                                                \
        X(cpu_throttled)                                                                                    \
        X(ancestor_throttled)                                                                               \
        X(cpu_contention)                                                                                   \
        X(no_limit_parallelism)                                                                             \
        X(parallelism_below_limit)

#define X(name)                                                                                             \
        int rule_##name(const struct facts *facts, const struct judge_options *options,                     \
                        struct arena *arena, struct finding *ret_finding);
RULES(X)
#undef X

/* An ABSENT value is no evidence and left out; so is what is beyond FINDING_EVIDENCE_MAX. */
void finding_add_evidence(struct finding *finding, const char *name, uint64_t value);
void finding_add_fix(struct finding *finding, const struct fix *fix);
/*
 * Adds the fix of a remedy that said @r, and passes an error on: 0 or negative errno.
 */
int finding_take_fix(struct finding *finding, int r, const struct fix *fix);
uint64_t finding_share_ppm(uint64_t part_ns, uint64_t whole_ns); /* ABSENT of nothing */

#define FINDING_SHARE_MAX 16
/* "28%", "2.8%", "0.3%" */
char *finding_format_share(char out[static FINDING_SHARE_MAX], uint64_t part_ns, uint64_t whole_ns);

#define FINDING_NAME_MAX 160
/* Foreign text for a sentence: escaped and cut. NULL gives "". */
char *finding_escape(char out[static FINDING_NAME_MAX], const char *foreign);
/* The same for a name of the kernel's, which may fill its room without an end. */
char *finding_escape_name(char out[static FINDING_NAME_MAX], const char name[static PROC_NAME_MAX]);
/* "haproxy 2.6.12", escaped: the program, else the runtime, with its version if that is known. */
char *finding_program(char out[static FINDING_NAME_MAX], const struct parallelism *row);
/* " (default)", " (environment GOMAXPROCS)": where its number comes from, escaped; "" if that is not known. */
char *finding_source(char out[static FINDING_NAME_MAX], const struct parallelism *row);
