/* SPDX-License-Identifier: GPL-2.0-only */
/* Task groups: is a thread's group measured, which container does it belong to, which limit is the tightest above it. */
#ifndef THROTTLESCOPE_GROUP_H
#define THROTTLESCOPE_GROUP_H

/* The id of the controller's state is a small number, unique among the groups that exist: an index as it is. */
static __always_inline __u8 *group_seen_byte(struct task_group *tg) {
        return &group_seen[tg->css.id & (GROUPS_SEEN - 1)];
}

/* Is this level the group we were asked for (or the one that holds the siblings)? Its address is learnt at the first sight. */
static __always_inline bool group_is_target(struct task_group *tg) {
        if (target_group)
                return target_group == (__u64) tg;
        if (tg->css.cgroup->kn->id != target_id)
                return false;
        struct task_group *parent = tg->parent;
        /* Right below the root there are no siblings that belong together. */
        target_group = scope == MEASURE_SIBLINGS && parent->parent ? (__u64) parent : (__u64) tg;
        return true;
}

/*
 * The filter that every switch on the machine passes. A group that was ever measured stays so: a limit that is removed while
 * threads are stalled must not leave their intervals open. hierarchical_quota would save the walk, but is -1 in limited
 * groups of v2 before 6.6.
 */
static __always_inline bool group_is_measured(struct task_group *tg) {
        __u8 *seen = group_seen_byte(tg);

        if (*seen)
                return true;
        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                if (!tg || !tg->parent)
                        return false;
                if (scope == MEASURE_NODE ? tg->cfs_bandwidth.quota != NO_QUOTA : group_is_target(tg)) {
                        *seen = 1;
                        return true;
                }
                tg = tg->parent;
        }
        return false;
}

/*
 * The functions below take addresses as numbers and look records up themselves: the verifier of every kernel then checks each once, by
 * itself, not again in each path that leads to it. They are off the hot path.
 */

static __always_inline bool limit_is_lower(__u64 quota_a, __u64 period_a, __u64 quota_b, __u64 period_b) {
        /* In microseconds the products fit: 48 CPUs of a 1 s period are 2^46. */
        return (quota_a >> 10) * (period_b >> 10) < (quota_b >> 10) * (period_a >> 10);
}

/* Fills container, above_levels and limit of the record @g of the group at @tg. */
static __always_inline void group_resolve(struct task_group *tg, struct group_rec *g) {
        __u64 container = 0, below = 0, limited = 0, limit = 0, limit_quota = 0, limit_period = 0;
        __u32 levels = 0, limited_levels = 0;

        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                struct task_group *parent = BPF_CORE_READ(tg, parent);

                if (!tg || !parent)
                        break;
                __u64 id = group_id(tg), quota = BPF_CORE_READ(tg, cfs_bandwidth.quota);
                __u64 period = BPF_CORE_READ(tg, cfs_bandwidth.period);

                if (quota != NO_QUOTA) {
                        if (!limit || limit_is_lower(quota, period, limit_quota, limit_period)) {
                                limit = (__u64) tg;
                                limit_quota = quota;
                                limit_period = period;
                        }
                        if (!limited) {
                                limited = id;
                                limited_levels = i + 1;
                        }
                }
                if (!container && scope == MEASURE_NODE) {
                        if (bpf_map_lookup_elem(&roots, &id)) {
                                container = id;
                                levels = i + 1;
                        }
                } else if (!container && (__u64) tg == target_group) {
                        bool child = scope == MEASURE_SIBLINGS && below;

                        container = child ? below : id;
                        levels = child ? i : i + 1;
                }
                below = id;
                tg = parent;
        }
        if (!container && scope == MEASURE_NODE) {
                /* Not named yet by user space, which looks only once a tick: the lowest limited group is one. */
                container = limited ? limited : g->id;
                levels = limited ? limited_levels : 1;
        }
        g->container = container;
        g->above_levels = levels;
        g->limit = limit;
        g->generation = generation;
}

/* Makes the record of the group at @address, or brings it up to date. 1; 0: the table is full, or the group is not in the target. */
__noinline int group_update(__u64 address) {
        struct task_group *tg = (void *) address;
        __u64 key = address, id = group_id(tg);
        struct group_rec *g = bpf_map_lookup_elem(&groups, &key);

        if (!g || g->id != id) {
                struct blank *none = blank();

                if (!none || bpf_map_update_elem(&groups, &key, &none->group, BPF_ANY)) {
                        count_lost(LOST_AT_CONTAINERS_FULL, 1);
                        return 0;
                }
                g = bpf_map_lookup_elem(&groups, &key);
                if (!g)
                        return 0;
                g->id = id;
        }
        if (g->generation != generation)
                group_resolve(tg, g);
        return g->container != 0;
}

/*
 * The ledger of a limit: nr_periods names the current period. When it has moved on and nr_throttled with it, the period before
 * was a throttled one. Brings the ledger of the group at @limit up to date and says whether @period ended throttled: 1, 0, or -1 not known.
 */
__noinline int ledger_ask(__u64 limit, __u64 period) {
        struct task_group *tg = (void *) limit;
        __u64 now = (__u32) BPF_CORE_READ(tg, cfs_bandwidth.nr_periods);
        __u64 throttled = (__u32) BPF_CORE_READ(tg, cfs_bandwidth.nr_throttled);
        __u64 key = limit;
        struct group_rec *g = bpf_map_lookup_elem(&groups, &key);

        if (!g) {
                group_update(limit);
                g = bpf_map_lookup_elem(&groups, &key);
                if (!g)
                        return -1;
        }
        if (!g->ledger_begun) {
                g->ledger_begun = 1;
                g->period = now;
                g->throttled = throttled;
        }
        __u64 steps = since(now, g->period), ended = since(throttled, g->throttled);

        /* Several periods at once: the throttled ones are the first, since the group was seen running in the first. */
        for (__u32 i = 0; i < 64; i++) {
                if (i >= steps)
                        break;
                __u64 at = g->period + i, bit = 1ULL << (at & 63);
                __u64 *word = &g->ledger[(at >> 6) & (LEDGER_WORDS - 1)];

                *word = i < ended ? *word | bit : *word & ~bit;
        }
        if (steps) {
                g->period = now;
                g->throttled = throttled;
        }
        if (period >= now || now - period > 64 * (LEDGER_WORDS - 1))
                return -1;
        return g->ledger[(period >> 6) & (LEDGER_WORDS - 1)] >> (period & 63) & 1;
}

#endif
