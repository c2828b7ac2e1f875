/* SPDX-License-Identifier: Apache-2.0 */

/* Threads and processes that live for a millisecond.
 *
 * With parallel=1 the spawner is stopped by CLONE_VFORK until its child is gone: at any time exactly one of
 * the two wants to run, so that spawners × wall time − all their CPU time is what was lost to stall and
 * wait, exactly. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "load.h"

enum {
        CHILD_STACK = 64 * 1024,
        PARALLEL_MAX = 64,
};

struct child {
        struct slot clock; /* not in the table: only its gap clock is used */
        struct slot *parent;
        uint64_t born_ns, burn_ns;
};

/* What comes after the last look at the clocks, the exit itself, is not in these sums. Reading the CPU clock
 * makes the kernel charge the quota: most stalls of such short lives begin right there, so it comes first. */
static int child_main(void *arg) {
        struct child *child = arg;
        struct children *sums = &child->parent->children;
        struct schedstat own = {};
        uint64_t end;

        child->clock.shared = child->parent->shared;
        slot_begin(&child->clock, now_ns());
        slot_burn(&child->clock, child->burn_ns);
        thread_cpu_ns();
        schedstat_read_own(&own);
        end = now_ns();
        atomic_fetch_add(&sums->count, 1);
        atomic_fetch_add(&sums->cpu_ns, thread_cpu_ns());
        atomic_fetch_add(&sums->delay_ns, own.delay_ns);
        atomic_fetch_add(&sums->wall_ns, end - child->born_ns);
        atomic_fetch_add(&sums->gap_ns, child->clock.now.gap_ns);
        atomic_fetch_add(&sums->start_delay_ns, child->clock.first_ns - child->born_ns);
        return 0;
}

static void *child_thread(void *arg) {
        child_main(arg);
        return NULL;
}

static void child_init(struct child *child, struct slot *s, unsigned *seed) {
        uint64_t least = s->arg[0], most = s->arg[1];

        memset(child, 0, sizeof(*child));
        child->parent = s;
        child->burn_ns = least + (most > least ? (uint64_t) rand_r(seed) % (most - least) : 0);
        child->born_ns = now_ns();
}

static bool spawn_one(struct slot *s, int flags, char *stack, unsigned *seed) {
        struct child child;
        pid_t pid;

        child_init(&child, s, seed);
        pid = clone(child_main, stack + CHILD_STACK, CLONE_VFORK | flags, &child);
        if (pid < 0)
                s->error = -errno;
        else if (!(flags & CLONE_THREAD))
                waitpid(pid, NULL, 0);
        return pid >= 0;
}

static bool spawn_batch(struct slot *s, unsigned parallel, struct child *children, unsigned *seed) {
        pthread_t threads[PARALLEL_MAX];
        unsigned n;

        for (n = 0; n < parallel; n++) {
                child_init(&children[n], s, seed);
                s->error = -pthread_create(&threads[n], NULL, child_thread, &children[n]);
                if (s->error < 0)
                        break;
        }
        for (unsigned i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        return n == parallel;
}

static void work_short_lived(struct slot *s) {
        const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
        unsigned parallel = (unsigned) s->arg[2], seed = (unsigned) s->inner_tid;
        struct child *children = aligned_alloc(128, parallel * sizeof(*children));
        char *stack = malloc(CHILD_STACK);
        bool ok = children && stack;

        while (ok && slot_running(s))
                ok = parallel > 1 ? spawn_batch(s, parallel, children, &seed)
                                  : spawn_one(s, flags, stack, &seed);
        free(stack);
        free(children);
}

static void work_forkstorm(struct slot *s) {
        unsigned seed = (unsigned) s->inner_tid;
        char *stack = malloc(CHILD_STACK);
        struct rusage usage = {};

        while (stack && slot_running(s) && spawn_one(s, SIGCHLD, stack, &seed))
                ;
        free(stack);
        if (getrusage(RUSAGE_CHILDREN, &usage) == 0)
                s->children_exact_cpu_ns =
                                (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
                                (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

static int setup_spawners(struct ctx *c, bool processes) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t least = param_time(c, "burn_min", (processes ? 500 : 200) * NS_PER_US);
        uint64_t most = param_time(c, "burn_max", 2 * NS_PER_MS), parallel = 1;
        uint64_t spawners = param_count(c, "spawners", c->n_cpus);
        bool pinned = param_count(c, "pinned", 1);
        struct team *t = NULL;
        int group;

        if (!processes)
                parallel = param_count(c, "parallel", 1);
        if (parallel < 1 || parallel > PARALLEL_MAX)
                return ctx_unsupported(c, "parallel must be 1 to %d", PARALLEL_MAX);
        group = limited_group(c, -1, NULL, quota, period);
        if (group < 0)
                return group;
        for (unsigned i = 0; i < spawners; i++) {
                struct slot *s;

                if (!t || processes) /* a process each, so that getrusage tells whose children these were */
                        t = team_add(c, group);
                s = t ? team_add_worker(c, t, processes ? "forker" : "spawner",
                                        processes ? work_forkstorm : work_short_lived)
                      : NULL;
                if (!s)
                        return -E2BIG;
                s->no_own_clock = true;
                s->cpu = pinned ? ctx_pick_cpu(c, i) : -1;
                s->arg[0] = least;
                s->arg[1] = most;
                s->arg[2] = parallel;
        }
        return 0;
}

static int setup_short_lived(struct ctx *c) {
        return setup_spawners(c, false);
}

static int setup_forkstorm(struct ctx *c) {
        return setup_spawners(c, true);
}

const struct load_case cases_spawn[] = {
                {"short-lived",
                 "threads by the thousand: spawners=CPUs pinned=1 parallel=1 burn_min=200us burn_max=2ms "
                 "quota=30ms",
                 setup_short_lived, NULL, CASE_HERE | CASE_NO_WINDOW},
                {"forkstorm",
                 "processes by the hundred: spawners=CPUs pinned=1 burn_min=500us burn_max=2ms quota=30ms",
                 setup_forkstorm, NULL, CASE_HERE | CASE_NO_WINDOW},
                {NULL, NULL, NULL, NULL, 0},
};
