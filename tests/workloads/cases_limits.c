/* SPDX-License-Identifier: Apache-2.0 */

/* Where the limit sits, and limits that change. */

#include <errno.h>
#include <string.h>

#include "load.h"

/* As containerd names them below the Pod's group: an observer of the whole node knows a container by that. */
#define NAME_OF_CONTAINER(digit)                                                                            \
        "cri-containerd-000000000000000000000000000000000000000000000000000000000000000" digit ".scope"

static int setup_parent_limited(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        bool pinned = param_count(c, "pinned", 1);
        int pod, leaf;

        pod = limited_group(c, -1, NULL, quota, period);
        if (pod < 0)
                return pod;
        leaf = limited_group(c, pod, NAME_OF_CONTAINER("0"), NO_LIMIT, period);
        if (leaf < 0)
                return leaf;
        return busy_team(c, leaf, threads, pinned) ? 0 : -E2BIG;
}

static int setup_same_quota(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        bool pinned = param_count(c, "pinned", 1);
        int pod, leaf;

        pod = limited_group(c, -1, NULL, quota, period);
        if (pod < 0)
                return pod;
        leaf = limited_group(c, pod, NAME_OF_CONTAINER("0"), quota, period);
        if (leaf < 0)
                return leaf;
        return busy_team(c, leaf, threads, pinned) ? 0 : -E2BIG;
}

static int setup_nested(struct ctx *c) {
        uint64_t wide = param_time(c, "wide", 200 * NS_PER_MS),
                 parent = param_time(c, "parent", 25 * NS_PER_MS);
        uint64_t leaf_quota = param_time(c, "leaf", 60 * NS_PER_MS);
        uint64_t period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        bool pinned = param_count(c, "pinned", 1);
        int top, middle, leaf;

        if (c->hierarchy.version == 1 && leaf_quota != NO_LIMIT && leaf_quota > parent)
                return ctx_unsupported(
                                c, "cgroup v1 refuses a child's limit above its parent's (leaf=max works)");
        top = limited_group(c, -1, NULL, wide, period);
        if (top < 0)
                return top;
        middle = limited_group(c, top, "parent", parent, period);
        if (middle < 0)
                return middle;
        leaf = limited_group(c, middle, "leaf", leaf_quota, period);
        if (leaf < 0)
                return leaf;
        return busy_team(c, leaf, threads, pinned) ? 0 : -E2BIG;
}

/* Kubernetes: the Pod's group carries the sum of its containers' limits. */
static int setup_pod_two(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        bool pinned = param_count(c, "pinned", 0);
        int pod;

        pod = limited_group(c, -1, NULL, 2 * quota, period);
        if (pod < 0)
                return pod;
        for (unsigned i = 0; i < 2; i++) {
                int container = limited_group(c, pod,
                                              i == 0 ? NAME_OF_CONTAINER("a") : NAME_OF_CONTAINER("b"),
                                              quota, period);

                if (container < 0)
                        return container;
                if (!busy_team(c, container, threads, pinned))
                        return -E2BIG;
        }
        return 0;
}

/* Kept where the control function finds them: in the first worker's arguments. */
static int setup_changing(struct ctx *c, const uint64_t arg[static 4]) {
        uint64_t period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        bool pinned = param_count(c, "pinned", 1);
        int group;

        group = limited_group(c, -1, NULL, arg[0], period);
        if (group < 0)
                return group;
        if (!busy_team(c, group, threads, pinned))
                return -E2BIG;
        memcpy(c->shared->slots[0].arg, arg, sizeof(c->shared->slots[0].arg));
        return 0;
}

static int setup_limit_change(struct ctx *c) {
        uint64_t arg[4] = {param_time(c, "low", 20 * NS_PER_MS), param_time(c, "high", 80 * NS_PER_MS),
                           param_time(c, "every", 330 * NS_PER_MS), 0};

        return setup_changing(c, arg);
}

static int control_limit_change(struct ctx *c) {
        const uint64_t *arg = c->shared->slots[0].arg;
        struct group *g = &c->groups[c->n_groups - 1];
        int r = 0;

        for (uint64_t next = now_ns() + arg[2]; r >= 0; next += arg[2]) {
                r = ctx_sleep_until(c, next);
                if (r < 0)
                        break;
                r = group_set_limit(g, g->quota_ns == arg[0] ? arg[1] : arg[0], g->period_ns);
                c->actions++;
        }
        return r;
}

static int setup_limit_removed(struct ctx *c) {
        uint64_t arg[4] = {param_time(c, "quota", 10 * NS_PER_MS), param_time(c, "free", 60 * NS_PER_MS),
                           param_time(c, "every", 350 * NS_PER_MS), 0};

        return setup_changing(c, arg);
}

/* The limit goes while every thread is stalled, and comes back a moment later. */
static int control_limit_removed(struct ctx *c) {
        const uint64_t *arg = c->shared->slots[0].arg;
        struct group *g = &c->groups[c->n_groups - 1];
        int r;

        for (;;) {
                r = ctx_sleep_until(c, now_ns() + arg[2]);
                if (r >= 0)
                        r = ctx_wait_stalled(c, &c->shared->teams[0], 10 * NS_PER_MS);
                if (r >= 0)
                        r = group_set_limit(g, NO_LIMIT, g->period_ns);
                if (r < 0)
                        return r;
                c->actions++;
                r = ctx_sleep_until(c, now_ns() + arg[1]);
                if (r < 0)
                        return r;
                r = group_set_limit(g, arg[0], g->period_ns);
                if (r < 0)
                        return r;
        }
}

const struct load_case cases_limits[] = {
                {"parent-limited",
                 "limited parent, free leaf: threads=CPUs pinned=1 quota=30ms period=100ms",
                 setup_parent_limited, NULL, 0},
                {"same-quota", "the same limit on both: threads=CPUs pinned=1 quota=30ms period=100ms",
                 setup_same_quota, NULL, 0},
                {"nested", "threads=CPUs pinned=1 wide=200ms parent=25ms leaf=60ms period=100ms",
                 setup_nested, NULL, 0},
                {"pod-two",
                 "two containers and their Pod: threads=CPUs (each) pinned=0 quota=30ms period=100ms",
                 setup_pod_two, NULL, 0},
                {"limit-change", "threads=CPUs pinned=1 low=20ms high=80ms every=330ms period=100ms",
                 setup_limit_change, control_limit_change, 0},
                {"limit-removed", "threads=CPUs pinned=1 quota=10ms free=60ms every=350ms period=100ms",
                 setup_limit_removed, control_limit_removed, 0},
                {NULL, NULL, NULL, NULL, 0},
};
