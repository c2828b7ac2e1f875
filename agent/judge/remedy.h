/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The setting that changes a CPU limit, and the value it needs. */
#include "judge.h"

/* The next amount a person would write: a multiple of 50m below 200m, of 100m below 2, of 500m above. */
uint64_t remedy_round_up(uint64_t milli);

/*
 * The smallest limit, rounded up, that would have absorbed what was seen, given that @limit_milli did not;
 * always more than that. @period_ns: the period in which a burst must fit, ABSENT: not known.
 */
uint64_t remedy_needed_milli(const struct facts *facts, uint64_t limit_milli, uint64_t period_ns);

/*
 * @v1_mount: as in facts. How to set the limit of the group @cgroup (a path, a group's name, or NULL) at @level to @milli. The name
 * is foreign text: it gets into a command only if nothing in it means anything to a shell. Fills setting,
 * value, how and who. 0 or -ENOMEM.
 */
int remedy_set_limit(struct arena *arena, const char *v1_mount, enum limit_level level, const char *cgroup,
                     uint64_t milli, uint64_t period_ns, struct fix *ret_fix);
