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

/* What the byte of a group that is not measured holds for the next 134 ms: a limit may be given to it, then its walk finds that. */
static __always_inline __u8 seen_slot(struct task_struct *p) {
        return 0x80 | (p->se.cfs_rq->rq->clock >> 27 & 0x7f);
}

/*
 * The filter that every switch on the machine passes. A group that was ever measured stays so: a limit that is removed while
 * threads are stalled must not leave their intervals open. hierarchical_quota would save the walk, but is -1 in limited
 * groups of v2 before 6.6.
 */
static __always_inline bool group_is_measured(struct task_group *tg, struct task_struct *p) {
        __u8 *seen = group_seen_byte(tg), slot;

        if (*seen == GROUP_MEASURED)
                return true;
        slot = seen_slot(p);
        if (*seen == slot)
                return false;
        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                if (!tg || !tg->parent)
                        break;
                if (scope == MEASURE_NODE ? tg->cfs_bandwidth.quota != NO_QUOTA : group_is_target(tg)) {
                        *seen = GROUP_MEASURED;
                        return true;
                }
                tg = tg->parent;
        }
        *seen = slot;
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

/* How many levels up from the group at @address its container's group is, both counted; 0: it is in none that we know. */
__noinline int group_container_levels(__u64 address) {
        struct task_group *tg = (void *) address;

        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                struct task_group *parent = BPF_CORE_READ(tg, parent);
                __u64 id = group_id(tg);

                if (!parent)
                        return 0;
                if (scope == MEASURE_NODE) {
                        if (bpf_map_lookup_elem(&roots, &id))
                                return i + 1;
                } else if ((__u64) tg == target_group) {
                        return scope == MEASURE_SIBLINGS && i > 0 ? i : i + 1;
                }
                tg = parent;
        }
        return 0;
}

/* The same for the lowest group that has a limit of its own. */
__noinline int group_limited_levels(__u64 address) {
        struct task_group *tg = (void *) address;

        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                struct task_group *parent = BPF_CORE_READ(tg, parent);

                if (!parent)
                        return 0;
                if (BPF_CORE_READ(tg, cfs_bandwidth.quota) != NO_QUOTA)
                        return i + 1;
                tg = parent;
        }
        return 0;
}

/* The tightest limited group at or above the one at @address; 0: none. */
__noinline __u64 group_limit(__u64 address) {
        struct task_group *tg = (void *) address;
        __u64 limit = 0, limit_quota = NO_QUOTA, limit_period = 1;

        for (int i = 0; i < GROUP_DEPTH_MAX; i++) {
                struct task_group *parent = BPF_CORE_READ(tg, parent);
                __u64 quota = BPF_CORE_READ(tg, cfs_bandwidth.quota),
                      period = BPF_CORE_READ(tg, cfs_bandwidth.period);

                if (!parent)
                        break;
                if (quota != NO_QUOTA &&
                    (limit_quota == NO_QUOTA || limit_is_lower(quota, period, limit_quota, limit_period))) {
                        limit = (__u64) tg;
                        limit_quota = quota;
                        limit_period = period;
                }
                tg = parent;
        }
        return limit;
}

/* Cgroup id of the group @up levels above the one at @address. */
__noinline __u64 group_id_above(__u64 address, __u32 up) {
        struct task_group *tg = (void *) address;

        for (__u32 i = 0; i < GROUP_DEPTH_MAX && i < up; i++)
                tg = BPF_CORE_READ(tg, parent);
        return group_id(tg);
}

/* Finds container, above_levels and limit of the group at @address, whose record @g is. */
static __always_inline void group_resolve(__u64 address, struct group_rec *g) {
        __u32 levels = group_container_levels(address);

        /* Not named yet by user space, which looks only once a tick: then the lowest limited group is a container. */
        if (!levels && scope == MEASURE_NODE) {
                levels = group_limited_levels(address);
                if (!levels)
                        levels = 1;
        }
        g->limit = group_limit(address);
        g->above_levels = levels;
        g->container = levels ? group_id_above(address, levels - 1) : 0;
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
                group_resolve(address, g);
        return g->container != 0;
}

/*
 * Notes how the @steps periods from g->period on ended. Of several at once the throttled ones are the first @ended, since the group was
 * seen running in the first. No loop: the verifier would walk each round again.
 */
static __always_inline void ledger_write(struct group_rec *g, __u64 steps, __u64 ended) {
        __u64 shift = g->period & 63, word = g->period >> 6;
        __u64 mask = steps < 64 ? (1ULL << steps) - 1 : ~0ULL;
        __u64 bits = ended < 64 ? (1ULL << ended) - 1 : ~0ULL;
        __u64 *low = &g->ledger[word & (LEDGER_WORDS - 1)],
              *high = &g->ledger[(word + 1) & (LEDGER_WORDS - 1)];

        bits &= mask;
        *low = (*low & ~(mask << shift)) | bits << shift;
        if (shift) {
                mask >>= 64 - shift;
                *high = (*high & ~mask) | bits >> (64 - shift);
        }
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
                struct blank *none = blank();

                if (!none || bpf_map_update_elem(&groups, &key, &none->group, BPF_NOEXIST))
                        return -1;
                g = bpf_map_lookup_elem(&groups, &key);
                if (!g)
                        return -1;
                g->id = group_id(tg);
        }
        if (!g->ledger_begun) {
                g->ledger_begun = 1;
                g->period = now;
                g->throttled = throttled;
        }
        __u64 steps = since(now, g->period), ended = since(throttled, g->throttled);

        if (steps) {
                g->periods_seen += steps;
                g->throttled_seen += ended;
                ledger_write(g, steps, ended);
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
