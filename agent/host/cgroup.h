/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The CPU controller of a process or a group, on cgroup v1, v2 and hybrid layouts: which hierarchy, the path, every
 * level up to the root (or to the mount's top), each level's limit and counters. The eight rules of the design's
 * catalogue hold here: a missing file is "no limit there", a malformed one is "unknown there", never a guess.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/absent.h"
#include "../base/memory.h"
#include "root.h"

enum cgroup_version { CGROUP_VERSION_UNKNOWN, CGROUP_V1, CGROUP_V2, CGROUP_VERSION_COUNT };
enum cgroup_limit_state {
        CGROUP_LIMIT_NONE, /* no quota at this level */
        CGROUP_LIMIT_SET,
        CGROUP_LIMIT_UNKNOWN, /* the file is malformed or not readable */
        CGROUP_LIMIT_STATE_COUNT,
};

/* cpu.stat and friends, cumulative; ABSENT where the kernel or the level has none. All times in ns. */
struct cgroup_cpu_stat {
        uint64_t nr_periods, nr_throttled, throttled_ns; /* throttled_ns: a sum over CPUs */
        uint64_t nr_bursts, burst_ns;                    /* 5.14 on */
        uint64_t local_throttled_ns; /* cpu.stat.local, 6.6 on: by this level or an ancestor */
        uint64_t usage_ns;           /* v2 cpu.stat usage_usec, v1 cpuacct.usage */
        uint64_t pressure_some_ns, pressure_full_ns; /* cpu.pressure total=, where on */
};

struct cgroup_level {
        const char *path; /* within the hierarchy as seen from our root handle: "/kubepods/pod1/c1" */
        uint64_t id;      /* kernel cgroup id (inode); ABSENT if not known */
        enum cgroup_limit_state limit;
        uint64_t quota_ns, period_ns; /* only with CGROUP_LIMIT_SET */
        uint64_t burst_ns;            /* ABSENT where the key does not exist */
        uint64_t weight; /* v2 cpu.weight or v1 cpu.shares; ABSENT if none; version says which */
        struct cgroup_cpu_stat stat;
        uint64_t children_limit_milli; /* sum of the limits of the direct children in thousandths of a CPU, ABSENT if any child
                                          has no limit or it could not be read: is this level tighter than what lies below?
                                          Read only where this level has a limit. A Pod's sandbox (one process, the least
                                          weight) and a runtime's monitor ("conmon") are no children that want CPU. */
};

struct cgroup_chain {
        enum cgroup_version version;
        const char *mount; /* where the hierarchy was read: "/sys/fs/cgroup/cpu" or "/proc/12/root/sys/fs/cgroup" */
        const char *path;            /* the path of /proc/PID/cgroup, unchanged */
        struct cgroup_level *levels; /* [0] is the leaf */
        size_t levels_count;
        bool parent_hidden; /* the mount's top is not the hierarchy's root: limits above may exist unseen */
        int tightest;       /* index in levels[], -1: no limit visible */
        bool limit_unknown; /* some level could not be read: a tighter limit may exist */
        bool levels_cut;    /* nested too deep: levels between the leaf and the upper ones were left out */

        /* v1: cpuacct can be a hierarchy of its own. For cgroup_chain_refresh(); usage_mount NULL: none. */
        const char *usage_mount, *usage_top;
        size_t usage_from; /* levels below this index are in another cpuacct group than the process */
};

/*
 * The chain of process @pid (0: ourselves). Strings and arrays live in @arena. 0; -ENOENT: no such process, or its group is gone
 * ("(deleted)"); -ENODATA: no CPU controller mount reaches the path (unknown, which is not "no limit"); other negative errno.
 */
int cgroup_chain_of_pid(struct root *root, pid_t pid, struct arena *arena, struct cgroup_chain *ret_chain,
                        struct why *why);
/* The same for a group given by a person: a path below the hierarchy ("/kubepods/x") or a full one ("/sys/fs/cgroup/cpu/x"). */
int cgroup_chain_of_path(struct root *root, const char *path, struct arena *arena,
                         struct cgroup_chain *ret_chain, struct why *why);
/*
 * Between these two, each level is read once, however many chains share it (a Pod's level, kubepods): for one tick over many
 * containers. Without them every call reads. Never nested.
 */
void cgroup_tick_begin(struct root *root);
void cgroup_tick_end(struct root *root);

/* Reads limits and counters of all levels again (paths kept). Levels that vanished become CGROUP_LIMIT_UNKNOWN with ABSENT counters. */
int cgroup_chain_refresh(struct root *root, struct cgroup_chain *chain);

/* The limit in thousandths of a CPU that is in force: the lowest quota/period of all levels, and not more than @cpus
 * (online or affinity CPUs, 0: unknown). ABSENT: none. ret_capped: a quota exists but is above @cpus (no effect). */
uint64_t cgroup_chain_limit_milli(const struct cgroup_chain *chain, unsigned cpus, bool *ret_capped);

/* All groups of the CPU hierarchy, depth first; stops at @max groups (-EOVERFLOW counted by the caller through ret_cut). */
struct cgroup_entry {
        const char *path;
        uint64_t id;
        uint32_t depth;
        bool has_limit;
};
int cgroup_list(struct root *root, size_t max, struct arena *arena, struct cgroup_entry **ret_entries,
                size_t *ret_count, bool *ret_cut, struct why *why);
/* Pids in the group itself (cgroup.procs), and with @recursive in the groups below, sorted, each once. Returns 0, 1 if there
 * are more than @max, or negative errno (-ENOENT: the group is gone). */
int cgroup_pids(struct root *root, const struct cgroup_chain *chain, bool recursive, size_t max,
                struct arena *arena, pid_t **ret_pids, size_t *ret_count);
