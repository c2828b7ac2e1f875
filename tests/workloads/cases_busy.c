/* SPDX-License-Identifier: Apache-2.0 */

/* One limited group, threads that only burn. */

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "load.h"

void work_busy(struct slot *s) {
        slot_burn(s, 0);
}

static bool is_refusal(int r) {
        return r == -EPERM || r == -EACCES || r == -EROFS || r == -ENOENT || r == -EINVAL || r == -EBUSY ||
               r == -EOPNOTSUPP;
}

/* Makes a group, quota NO_LIMIT for none. name NULL: the run's own group. Returns its index. */
int limited_group(struct ctx *c, int parent, const char *name, uint64_t quota_ns, uint64_t period_ns) {
        int group, r;

        group = group_add(c, parent, name ? name : c->group_name);
        if (is_refusal(group))
                return ctx_unsupported(c, "cannot make a group of the cpu controller: %s", strerror(-group));
        if (group < 0 || c->here || quota_ns == NO_LIMIT)
                return group;
        r = group_set_limit(&c->groups[group], quota_ns, period_ns);
        if (is_refusal(r))
                return ctx_unsupported(c, "the kernel refuses this limit for %s: %s", c->groups[group].path,
                                       strerror(-r));
        return r < 0 ? r : group;
}

struct team *busy_team(struct ctx *c, int group, unsigned threads, bool pinned) {
        struct team *t = team_add(c, group);

        for (unsigned i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "busy", work_busy);

                if (!s)
                        return NULL;
                if (pinned)
                        s->cpu = ctx_pick_cpu(c, i);
        }
        return t;
}

static int setup_busy_with(struct ctx *c, uint64_t threads, bool pinned, uint64_t quota_ns,
                           uint64_t period_ns) {
        int group;

        threads = param_count(c, "threads", threads);
        pinned = param_count(c, "pinned", pinned);
        quota_ns = param_time(c, "quota", quota_ns);
        period_ns = param_time(c, "period", period_ns);
        group = limited_group(c, -1, NULL, quota_ns, period_ns);
        if (group < 0)
                return group;
        return busy_team(c, group, (unsigned) threads, pinned) ? 0 : -E2BIG;
}

static int setup_busy(struct ctx *c) {
        return setup_busy_with(c, c->n_cpus, true, 30 * NS_PER_MS, 100 * NS_PER_MS);
}

static int setup_unpinned(struct ctx *c) {
        return setup_busy_with(c, 4 * (uint64_t) c->n_cpus, false, 60 * NS_PER_MS, 100 * NS_PER_MS);
}

static int setup_threads48(struct ctx *c) {
        return setup_busy_with(c, 48, false, 30 * NS_PER_MS, 100 * NS_PER_MS);
}

static int setup_long_period(struct ctx *c) {
        return setup_busy_with(c, c->n_cpus, true, 300 * NS_PER_MS, NS_PER_SEC);
}

static int setup_short_period(struct ctx *c) {
        return setup_busy_with(c, c->n_cpus, true, 5 * NS_PER_MS, 10 * NS_PER_MS);
}

static int setup_attach_throttled(struct ctx *c) {
        return setup_busy_with(c, c->n_cpus, true, 20 * NS_PER_MS, 500 * NS_PER_MS);
}

/* Alone on its CPU: while it is stalled the CPU is idle, and the run queue's clock stands. */
static int setup_idle_open(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 10 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        struct slot *s;
        struct team *t;
        int group;

        group = limited_group(c, -1, NULL, quota, period);
        if (group < 0)
                return group;
        t = team_add(c, group);
        s = t ? team_add_worker(c, t, "busy", work_busy) : NULL;
        if (!s)
                return -E2BIG;
        s->cpu = ctx_pick_cpu(c, c->n_cpus - 1);
        return 0;
}

static int setup_pidns(struct ctx *c) {
        int r;

        r = setup_busy(c);
        if (r >= 0)
                c->shared->teams[0].nested_pidns = (unsigned) param_count(c, "depth", 2);
        return r;
}

/* A request every so often, each costing the same: the shape of a service below its limit on average. */
static void work_bursts(struct slot *s) {
        uint64_t burn = s->arg[0], every = s->arg[1], next = s->go_ns + s->arg[2];

        while (slot_running(s)) {
                uint64_t now, latency;

                if (now_ns() < next)
                        slot_sleep_until(s, next);
                if (!slot_running(s))
                        return;
                slot_burn(s, burn);
                now = now_ns();
                latency = now - next;
                s->requests++;
                s->latency_sum_ns += latency;
                if (latency > s->latency_max_ns)
                        s->latency_max_ns = latency;
                next = next + every > now ? next + every : now;
        }
}

static int setup_bursts_in(struct ctx *c, int group, uint64_t burn_ns, uint64_t every_ns) {
        uint64_t threads = param_count(c, "threads", 1), stagger = param_count(c, "stagger", 0);
        struct team *t = team_add(c, group);

        burn_ns = param_time(c, "burn", burn_ns);
        every_ns = param_time(c, "every", every_ns);
        for (uint64_t i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "bursts", work_bursts);

                if (!s)
                        return -E2BIG;
                s->arg[0] = burn_ns;
                s->arg[1] = every_ns;
                s->arg[2] = stagger ? i * every_ns / threads : 0;
        }
        return t ? 0 : -E2BIG;
}

static int setup_bursts(struct ctx *c) {
        int group;

        group = limited_group(c, -1, NULL, param_time(c, "quota", 25 * NS_PER_MS),
                              param_time(c, "period", 100 * NS_PER_MS));
        return group < 0 ? group : setup_bursts_in(c, group, 43 * NS_PER_MS, 400 * NS_PER_MS);
}

static int setup_burst_credit(struct ctx *c) {
        uint64_t burst = param_time(c, "burst", 20 * NS_PER_MS);
        int group, r;

        group = limited_group(c, -1, NULL, param_time(c, "quota", 20 * NS_PER_MS),
                              param_time(c, "period", 100 * NS_PER_MS));
        if (group < 0)
                return group;
        r = group_set_burst(&c->groups[group], burst);
        if (r == -ENOENT)
                return ctx_unsupported(c, "this kernel has no burst credit (before 5.14)");
        if (r < 0)
                return ctx_unsupported(c, "burst credit refused: %s", strerror(-r));
        return setup_bursts_in(c, group, 50 * NS_PER_MS, 400 * NS_PER_MS);
}

static void work_sleepers(struct slot *s) {
        while (slot_running(s)) {
                slot_burn(s, s->arg[0]);
                slot_sleep_until(s, now_ns() + s->arg[1]);
        }
}

static int setup_sleepers(struct ctx *c) {
        uint64_t threads = param_count(c, "threads", 8), burn = param_time(c, "burn", 200 * NS_PER_US);
        uint64_t sleep = param_time(c, "sleep", 300 * NS_PER_US);
        struct team *t;
        int group;

        group = limited_group(c, -1, NULL, param_time(c, "quota", 30 * NS_PER_MS),
                              param_time(c, "period", 100 * NS_PER_MS));
        if (group < 0)
                return group;
        t = team_add(c, group);
        for (uint64_t i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "sleeper", work_sleepers);

                if (!s)
                        return -E2BIG;
                s->arg[0] = burn;
                s->arg[1] = sleep;
        }
        return t ? 0 : -E2BIG;
}

static void work_yield(struct slot *s) {
        while (slot_running(s)) {
                slot_burn(s, s->arg[0]);
                sched_yield();
        }
}

static int setup_yield(struct ctx *c) {
        uint64_t every = param_time(c, "every", 20 * NS_PER_US);
        int r;

        r = setup_busy_with(c, 2 * (uint64_t) c->n_cpus, false, 60 * NS_PER_MS, 100 * NS_PER_MS);
        if (r < 0)
                return r;
        for (unsigned i = 1; i < c->n_slots; i++) {
                c->shared->slots[i].work = work_yield;
                c->shared->slots[i].arg[0] = every;
        }
        return 0;
}

const struct load_case cases_busy[] = {
                {"busy", "threads=CPUs pinned=1 quota=30ms period=100ms", setup_busy, NULL, CASE_HERE},
                {"busy-unpinned", "threads=4×CPUs pinned=0 quota=60ms period=100ms", setup_unpinned, NULL,
                 CASE_HERE},
                {"threads48", "threads=48 pinned=0 quota=30ms period=100ms", setup_threads48, NULL,
                 CASE_HERE},
                {"long-period", "threads=CPUs pinned=1 quota=300ms period=1s", setup_long_period, NULL, 0},
                {"short-period", "threads=CPUs pinned=1 quota=5ms period=10ms", setup_short_period, NULL, 0},
                {"attach-throttled", "always --window; threads=CPUs pinned=1 quota=20ms period=500ms",
                 setup_attach_throttled, NULL, CASE_WINDOW},
                {"idle-open", "one thread on the last CPU: quota=10ms period=100ms", setup_idle_open, NULL,
                 CASE_HERE},
                {"pidns", "as busy, depth=2 PID namespaces down", setup_pidns, NULL, 0},
                {"bursts", "threads=1 burn=43ms every=400ms stagger=0 quota=25ms period=100ms", setup_bursts,
                 NULL, CASE_HERE},
                {"burst-credit", "as bursts: burn=50ms quota=20ms burst=20ms", setup_burst_credit, NULL, 0},
                {"sleepers", "threads=8 burn=200us sleep=300us quota=30ms period=100ms", setup_sleepers,
                 NULL, CASE_HERE},
                {"yield", "threads=2×CPUs pinned=0 every=20us quota=60ms period=100ms", setup_yield, NULL,
                 CASE_HERE},
                {NULL, NULL, NULL, NULL, 0},
};
