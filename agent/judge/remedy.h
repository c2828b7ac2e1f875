/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The setting that changes a CPU limit, and the value it needs. */
#include "judge.h"

/* Who manages a group, and so takes its limit. */
enum limit_manager {
        MANAGER_KUBERNETES,
        MANAGER_POD,
        MANAGER_SYSTEMD,
        MANAGER_DOCKER,
        MANAGER_PODMAN,
        MANAGER_NONE, /* a plain group */
        MANAGER_UNKNOWN,
};
/* Only one whose command may carry the group's name; else MANAGER_UNKNOWN. */
enum limit_manager remedy_manager(enum limit_level level, const char *cgroup);
/* Nothing in it means anything to a shell inside of single quotes, nor to a terminal. */
bool remedy_is_safe(const char *text);

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

/*
 * Other ways than a higher limit, each for the limit that facts show. They return 1 and a fix, 0 where it would not help or cannot be done
 * here, or -ENOMEM.
 */
/* No limit, but a request: the container's own limit only. */
int remedy_remove_limit(const struct facts *facts, struct arena *arena, struct fix *ret_fix);
/* Unused quota of earlier periods is saved up for a burst. */
int remedy_burst_credit(const struct facts *facts, struct arena *arena, struct fix *ret_fix);
/* The same limit in shorter periods; @period_ns: the new one. */
int remedy_period(const struct facts *facts, uint64_t period_ns, struct arena *arena, struct fix *ret_fix);
/* A period in which a quota is still at least one of the kernel's slices (5 ms); ABSENT: none shorter than it is. */
uint64_t remedy_shorter_period(const struct facts *facts);

/*
 * What a new limit of the container sets off in its runtimes, as a sentence: whose number follows, whose stays until a restart. @milli ABSENT:
 * the limit is removed. "" if nothing; NULL: out of memory.
 */
const char *remedy_consequences(const struct facts *facts, uint64_t milli, struct arena *arena);
