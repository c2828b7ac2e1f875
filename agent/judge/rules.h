/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules, one file each; their table is in judge.c, their meaning in docs/findings.md. And what they
 * write findings with.
 */
#include "judge.h"

int rule_cpu_throttled(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                       struct finding *ret_finding);
int rule_ancestor_throttled(const struct facts *facts, const struct judge_options *options,
                            struct arena *arena, struct finding *ret_finding);
int rule_cpu_contention(const struct facts *facts, const struct judge_options *options, struct arena *arena,
                        struct finding *ret_finding);

/* An ABSENT value is no evidence and left out; so is what is beyond FINDING_EVIDENCE_MAX. */
void finding_add_evidence(struct finding *finding, const char *name, uint64_t value);
void finding_add_fix(struct finding *finding, const struct fix *fix);
uint64_t finding_share_ppm(uint64_t part_ns, uint64_t whole_ns); /* ABSENT of nothing */

#define FINDING_SHARE_MAX 16
/* "28%", "2.8%", "0.3%" */
char *finding_format_share(char out[static FINDING_SHARE_MAX], uint64_t part_ns, uint64_t whole_ns);
