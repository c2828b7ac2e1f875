/* SPDX-License-Identifier: Apache-2.0 */

/* Groups that come, go and are moved between; neighbours; threads of another class. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "load.h"

static int setup_mover(struct ctx *c) {
        uint64_t period = param_time(c, "period", 100 * NS_PER_MS),
                 a_quota = param_time(c, "quota", 20 * NS_PER_MS);
        uint64_t b_quota = param_time(c, "b_quota", 60 * NS_PER_MS),
                 every = param_time(c, "every", 37 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", 2),
                 processes = (unsigned) param_count(c, "processes", 2);
        int top, a, b;

        top = limited_group(c, -1, NULL, NO_LIMIT, period);
        if (top < 0)
                return top;
        a = limited_group(c, top, "a", a_quota, period);
        if (a < 0)
                return a;
        b = limited_group(c, top, "b", b_quota, period);
        if (b < 0)
                return b;
        for (unsigned i = 0; i < processes; i++)
                if (!busy_team(c, i % 2 ? b : a, threads, false))
                        return -E2BIG;
        c->shared->slots[0].arg[0] = every;
        c->shared->slots[0].arg[1] = (uint64_t) a;
        c->shared->slots[0].arg[2] = (uint64_t) b;
        return 0;
}

/* One process after the other changes sides, at any moment of a period: mostly while it waits or is stalled.
 */
static int control_mover(struct ctx *c) {
        const uint64_t *arg = c->shared->slots[0].arg;
        int a = (int) arg[1], b = (int) arg[2], r;
        uint64_t next = now_ns();

        for (unsigned i = 0;; i = (i + 1) % c->n_teams) {
                struct team *t = &c->shared->teams[i];

                next += arg[0];
                r = ctx_sleep_until(c, next);
                if (r < 0)
                        return r;
                t->group = t->group == a ? b : a;
                r = group_move(&c->groups[t->group], t->pid);
                if (r < 0)
                        return r;
                c->actions++;
        }
}

static int setup_rounds(struct ctx *c, int parent, unsigned rounds, unsigned threads,
                        void (*work)(struct slot *)) {
        for (unsigned i = 0; i < rounds; i++) {
                struct team *t = team_add(c, parent);

                if (!t)
                        return -E2BIG;
                t->deferred = true;
                for (unsigned k = 0; k < threads; k++) {
                        struct slot *s = team_add_worker(c, t, "born", work);

                        if (!s)
                                return -E2BIG;
                        s->arg[0] = c->run_ns / (rounds + 1);
                }
        }
        return 0;
}

static void work_busy_for(struct slot *s) {
        uint64_t end = s->go_ns + s->arg[0];

        while (slot_running(s) && now_ns() < end)
                slot_burn(s, 100 * NS_PER_US);
}

static int setup_group_removed(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", 2),
                 rounds = (unsigned) param_count(c, "rounds", 5);
        bool settle = param_count(c, "settle", 1);
        int top, r;

        top = limited_group(c, -1, NULL, NO_LIMIT, period);
        if (top < 0)
                return top;
        r = setup_rounds(c, top, rounds, threads, work_busy_for);
        c->shared->slots[0].arg[0] = quota;
        c->shared->slots[0].arg[1] = period;
        c->shared->slots[0].arg[2] = settle;
        return r;
}

static int add_round_group(struct ctx *c, int parent, unsigned i, uint64_t quota_ns, uint64_t period_ns) {
        char name[16];
        int group;

        snprintf(name, sizeof(name), "round%u", i);
        group = limited_group(c, parent, name, quota_ns, period_ns);
        if (group >= 0)
                group_read(&c->groups[group], &c->groups[group].begin);
        return group;
}

/* Each round: a new group, a process in it, its end, and the group is gone. */
static int group_removed_round(struct ctx *c, struct team *t, unsigned i) {
        const uint64_t *arg = c->shared->slots[0].arg;
        int r;

        r = add_round_group(c, t->group, i, arg[0], arg[1]);
        if (r < 0)
                return r;
        t->group = r;
        r = team_start(c, t);
        if (r >= 0)
                r = ctx_wait_state(c, t, SLOT_PARKED, c->run_ns + 30 * NS_PER_SEC);
        if (r >= 0 && arg[2])
                ctx_settle(c);
        if (r >= 0)
                r = team_collect(c, t);
        if (r < 0)
                return r;
        group_read(&c->groups[t->group], &c->groups[t->group].end);
        c->groups[t->group].ended = true;
        r = team_leave(c, t);
        if (r >= 0)
                r = group_remove(&c->groups[t->group]);
        c->actions++;
        return r;
}

static int control_group_removed(struct ctx *c) {
        for (unsigned i = 0; i < c->n_teams && ctx_running(c); i++) {
                int r = group_removed_round(c, &c->shared->teams[i], i);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int setup_born_throttled(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 20 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", 2),
                 rounds = (unsigned) param_count(c, "rounds", 6);
        int top, hog;

        top = limited_group(c, -1, NULL, quota, period);
        if (top < 0)
                return top;
        hog = limited_group(c, top, "hog", NO_LIMIT, period);
        if (hog < 0)
                return hog;
        if (!busy_team(c, hog, c->n_cpus, true))
                return -E2BIG;
        return setup_rounds(c, top, rounds, threads, work_busy);
}

/* Once the hogs are stalled on every CPU: a new group below the same parent, with a process in it. */
static int control_born_throttled(struct ctx *c) {
        const struct team *hog = &c->shared->teams[0];
        int r;

        for (unsigned i = 1; i < c->n_teams; i++) {
                struct team *t = &c->shared->teams[i];

                r = ctx_sleep_until(c, now_ns() + c->run_ns / (c->n_teams + 1));
                if (r >= 0)
                        r = ctx_wait_stalled(c, hog, 5 * NS_PER_MS);
                if (r >= 0)
                        r = add_round_group(c, t->group, i, NO_LIMIT, 100 * NS_PER_MS);
                if (r < 0)
                        return r;
                t->group = r;
                r = team_start(c, t);
                if (r < 0)
                        return r;
                c->actions++;
        }
        return 0;
}

static int setup_contention(struct ctx *c) {
        uint64_t period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t quota = param_time(c, "quota", 2 * (uint64_t) c->n_cpus * period);
        unsigned threads = (unsigned) param_count(c, "threads", 2 * c->n_cpus);
        unsigned neighbours = (unsigned) param_count(c, "neighbours", 2 * c->n_cpus);
        int top, app, noise;

        top = limited_group(c, -1, NULL, NO_LIMIT, period);
        if (top < 0)
                return top;
        app = limited_group(c, top, "app", quota, period);
        if (app < 0)
                return app;
        noise = limited_group(c, top, "noise", NO_LIMIT, period);
        if (noise < 0)
                return noise;
        return busy_team(c, app, threads, false) && busy_team(c, noise, neighbours, false) ? 0 : -E2BIG;
}

static void work_fifo(struct slot *s) {
        for (uint64_t next = s->go_ns + s->arg[1]; slot_running(s); next += s->arg[1]) {
                slot_burn(s, s->arg[0]);
                if (now_ns() < next)
                        slot_sleep_until(s, next);
        }
}

/* v1 with RT_GROUP_SCHED: a group may run real-time threads only within its own budget, its parents' first.
 */
static int allow_fifo(struct ctx *c, uint64_t runtime_ns) {
        for (int i = 0; i < c->n_groups; i++) {
                int r = group_set_rt_runtime(&c->groups[i], runtime_ns / NS_PER_US);

                if (r < 0 && r != -ENOENT)
                        return ctx_unsupported(c, "cpu.rt_runtime_us of %s: %s", c->groups[i].path,
                                               strerror(-r));
        }
        return 0;
}

static int setup_rt(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t burn = param_time(c, "burn", 5 * NS_PER_MS), every = param_time(c, "every", 50 * NS_PER_MS);
        uint64_t runtime = param_time(c, "rt_runtime", 300 * NS_PER_MS);
        unsigned threads = (unsigned) param_count(c, "threads", c->n_cpus);
        struct slot *s;
        struct team *t;
        int group, r;

        group = limited_group(c, -1, NULL, quota, period);
        if (group < 0)
                return group;
        r = allow_fifo(c, runtime);
        if (r < 0)
                return r;
        t = busy_team(c, group, threads, true);
        s = t ? team_add_worker(c, t, "fifo", work_fifo) : NULL;
        if (!s)
                return -E2BIG;
        s->fifo = 10;
        s->cpu = ctx_pick_cpu(c, 0);
        s->arg[0] = burn;
        s->arg[1] = every;
        return 0;
}

const struct load_case cases_groups[] = {
                {"mover-waiting",
                 "processes between two groups: processes=2 threads=2 (each) quota=20ms b_quota=60ms "
                 "every=37ms "
                 "period=100ms",
                 setup_mover, control_mover, 0},
                {"group-removed", "rounds=5 threads=2 settle=1 quota=30ms period=100ms", setup_group_removed,
                 control_group_removed, CASE_NO_WINDOW},
                {"born-throttled", "rounds=6 threads=2 quota=20ms period=100ms", setup_born_throttled,
                 control_born_throttled, CASE_NO_WINDOW},
                {"contention",
                 "ample limit, busy neighbours: threads=2×CPUs neighbours=2×CPUs quota=2×CPUs×period "
                 "period=100ms",
                 setup_contention, NULL, 0},
                {"rt",
                 "a SCHED_FIFO thread beside busy ones: threads=CPUs burn=5ms every=50ms rt_runtime=300ms "
                 "quota=30ms",
                 setup_rt, NULL, 0},
                {NULL, NULL, NULL, NULL, 0},
};
