/* SPDX-License-Identifier: Apache-2.0 */

/* The course of a run: set up, READY, go, work, park, report, exit; or with a window: READY, SIGUSR1,
 * SIGUSR2. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define READY_TIMEOUT_NS (60 * NS_PER_SEC)
#define PARK_TIMEOUT_NS (120 * NS_PER_SEC)
#define WINDOW_TIMEOUT_NS (600 * NS_PER_SEC)

int ctx_unsupported(struct ctx *c, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(c->reason, sizeof(c->reason), format, ap);
        va_end(ap);
        return -EOPNOTSUPP;
}

int ctx_pick_cpu(const struct ctx *c, unsigned i) {
        return c->cpus[i % c->n_cpus];
}

bool ctx_running(const struct ctx *c) {
        return !c->quit && now_ns() < atomic_load(&c->shared->deadline_ns);
}

static void slot_snapshot(struct slot *s, struct reading *ret) {
        if (s->work && atomic_load(&s->state) == SLOT_RUNNING)
                slot_read(s, &ret->tally);
        schedstat_read(s->pid, s->tid, &ret->sched);
}

/* Everything as of now: the begin or the end of a window. Each thread has its own instant, some µs apart. */
static void ctx_snapshot(struct ctx *c, bool end) {
        if (!end) {
                atomic_store(&c->shared->begin_ns, now_ns());
                atomic_fetch_add(&c->shared->epoch, 1);
        }
        for (unsigned i = 0; i < c->n_slots; i++)
                if (c->shared->slots[i].team->started)
                        slot_snapshot(&c->shared->slots[i],
                                      end ? &c->shared->slots[i].end : &c->shared->slots[i].begin);
        for (unsigned i = 0; i < c->n_teams; i++) {
                struct team *t = &c->shared->teams[i];

                if (t->started)
                        process_cpu_ns(c->shared->slots[t->first].pid,
                                       end ? &t->cpu_end_ns : &t->cpu_begin_ns);
        }
        for (int i = 0; i < c->n_groups; i++)
                group_read(&c->groups[i], end ? &c->groups[i].end : &c->groups[i].begin);
        read_steal_ns(end ? &c->steal_end_ns : &c->steal_begin_ns);
}

static void ctx_serve_signal(struct ctx *c) {
        struct signalfd_siginfo info;

        if (read(c->signal_fd, &info, sizeof(info)) != (ssize_t) sizeof(info))
                return;
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
                c->quit = true;
                return;
        }
        if (!c->window || c->ended)
                return;
        if (info.ssi_signo == SIGUSR1) {
                ctx_snapshot(c, false);
                c->begun = true;
        } else if (c->begun) {
                ctx_snapshot(c, true);
                c->ended = true;
                atomic_store(&c->shared->deadline_ns, now_ns());
        }
}

/* Waits for a signal, a thread's news, or until the time. 1: a thread had news. */
static int ctx_wait(struct ctx *c, uint64_t until_ns) {
        struct pollfd fds[2] = {{.fd = c->signal_fd, .events = POLLIN},
                                {.fd = c->shared->event_fd, .events = POLLIN}};
        uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0, count;
        struct timespec ts = {.tv_sec = (time_t) (left / NS_PER_SEC), .tv_nsec = (long) (left % NS_PER_SEC)};
        int n;

        n = ppoll(fds, 2, &ts, NULL);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (fds[0].revents)
                ctx_serve_signal(c);
        if (c->quit)
                return -EINTR;
        return fds[1].revents && read(c->shared->event_fd, &count, sizeof(count)) > 0 ? 1 : 0;
}

int ctx_sleep_until(struct ctx *c, uint64_t until_ns) {
        while (now_ns() < until_ns) {
                uint64_t deadline = atomic_load(&c->shared->deadline_ns);
                int r;

                if (!ctx_running(c))
                        return c->quit ? -EINTR : -ECANCELED;
                r = ctx_wait(c, until_ns < deadline ? until_ns : deadline);
                if (r < 0)
                        return r;
        }
        return ctx_running(c) ? 0 : -ECANCELED;
}

int ctx_wait_stalled(struct ctx *c, const struct team *t, uint64_t for_ns) {
        int r = 0;

        while (r >= 0 && !team_is_stalled(c, t, for_ns))
                r = ctx_sleep_until(c, now_ns() + NS_PER_MS);
        return r;
}

static bool team_has_state(const struct ctx *c, const struct team *t, enum slot_state state) {
        for (unsigned i = 1; i < t->count; i++)
                if (atomic_load(&c->shared->slots[t->first + i].state) < (uint32_t) state)
                        return false;
        return atomic_load(&c->shared->slots[t->first].state) >= SLOT_READY;
}

static int team_error(struct ctx *c, const struct team *t) {
        for (unsigned i = 0; i < t->count; i++) {
                const struct slot *s = &c->shared->slots[t->first + i];

                if (s->error < 0)
                        return ctx_unsupported(c, "thread %s cannot be set up: %s", s->name,
                                               strerror(-s->error));
        }
        return 0;
}

/* Those who wait for each other do not know that a window has ended. */
static void ctx_wake_waiters(struct ctx *c) {
        for (unsigned i = 0; i < LOCK_WORDS; i++)
                futex_wake(&c->shared->lock_words[i], INT32_MAX);
        for (unsigned i = 0; i < c->n_slots; i++)
                futex_wake(&c->shared->slots[i].word, INT32_MAX);
}

/* Waits until each worker is in that state or a later one. t NULL: all teams that were started and not
 * collected. */
int ctx_wait_state(struct ctx *c, const struct team *t, enum slot_state state, uint64_t timeout_ns) {
        uint64_t give_up = now_ns() + timeout_ns;

        for (;;) {
                bool all = true;
                int r;

                for (unsigned i = 0; i < c->n_teams; i++) {
                        const struct team *other = &c->shared->teams[i];

                        if ((t && t != other) || !other->started || other->collected)
                                continue;
                        r = team_error(c, other);
                        if (r < 0)
                                return r;
                        all = all && team_has_state(c, other, state);
                }
                if (all)
                        return 0;
                if (now_ns() > give_up)
                        return -ETIMEDOUT;
                if (c->ended)
                        ctx_wake_waiters(c);
                r = ctx_wait(c, now_ns() + 10 * NS_PER_MS);
                if (r < 0)
                        return r;
        }
}

/* The kernel adds a throttled interval to its counters when it ends: at the latest with the period. */
void ctx_settle(struct ctx *c) {
        uint64_t longest = 0, until;

        for (int i = 0; i < c->n_groups; i++)
                if (!c->groups[i].removed && c->groups[i].period_ns > longest)
                        longest = c->groups[i].period_ns;
        until = now_ns() + longest + 20 * NS_PER_MS;
        while (now_ns() < until && ctx_wait(c, until) >= 0)
                ;
}

/* What ends is nowhere to be seen while it is stalled for the last time. But as long as any queue is throttled the period's timer counts. */
static void ctx_wait_unthrottled(struct ctx *c) {
        uint64_t before = 0, periods, give_up = now_ns() + 5 * NS_PER_SEC;

        for (;; before = periods) {
                periods = 0;
                for (int i = 0; i < c->n_groups; i++) {
                        struct group_stat stat;

                        if (c->groups[i].removed)
                                continue;
                        group_read(&c->groups[i], &stat);
                        periods += stat.periods == UNKNOWN ? 0 : stat.periods;
                }
                if (periods == before || now_ns() > give_up)
                        return;
                ctx_settle(c);
        }
}

static bool ctx_has_children(const struct ctx *c) {
        for (unsigned i = 0; i < c->n_slots; i++)
                if (atomic_load(&c->shared->slots[i].children.count) > 0)
                        return true;
        return false;
}

/* One line from the controller's standard input. 0: got one, -EPIPE: it is gone. */
static int ctx_wait_line(struct ctx *c) {
        for (;;) {
                struct pollfd fds[2] = {{.fd = c->signal_fd, .events = POLLIN},
                                        {.fd = STDIN_FILENO, .events = POLLIN}};
                char ch;

                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[0].revents)
                        ctx_serve_signal(c);
                if (c->quit)
                        return -EINTR;
                if (!fds[1].revents)
                        continue;
                if (read(STDIN_FILENO, &ch, 1) <= 0)
                        return -EPIPE;
                if (ch == '\n')
                        return 0;
        }
}

static int ctx_start_teams(struct ctx *c) {
        int r;

        fflush(NULL); /* or the children would write it once more */
        for (unsigned i = 0; i < c->n_teams; i++) {
                if (c->shared->teams[i].deferred)
                        continue;
                r = team_start(c, &c->shared->teams[i]);
                if (r < 0)
                        return r;
        }
        return ctx_wait_state(c, NULL, SLOT_READY, READY_TIMEOUT_NS);
}

static void ctx_go(struct ctx *c, uint64_t run_ns) {
        c->shared->go_ns = now_ns();
        atomic_store(&c->shared->deadline_ns, c->shared->go_ns + run_ns);
        atomic_store(&c->shared->go, 1);
        futex_wake(&c->shared->go, INT32_MAX);
}

static int ctx_work(struct ctx *c) {
        int r = 0;

        if (c->load_case->control)
                r = c->load_case->control(c);
        if (r >= 0)
                r = ctx_sleep_until(c, UINT64_MAX);
        return r == -ECANCELED ? 0 : r;
}

/* The agent is attached after READY and detached before we let the threads go: its window holds all the
 * work. */
static int ctx_run_whole(struct ctx *c) {
        int r;

        ctx_settle(c);
        ctx_snapshot(c, false);
        report_setup(c);
        printf("READY %d\n", (int) getpid());
        fflush(stdout);
        if (!c->no_wait) {
                r = ctx_wait_line(c);
                if (r < 0)
                        return r;
        }
        c->delay_begin_ns = read_machine_delay_ns();
        ctx_go(c, c->run_ns);
        r = ctx_work(c);
        if (r < 0)
                return r;
        r = ctx_wait_state(c, NULL, SLOT_PARKED, PARK_TIMEOUT_NS);
        if (r < 0)
                return r;
        ctx_settle(c);
        for (unsigned i = 0; i < c->n_teams; i++) {
                struct team *t = &c->shared->teams[i];

                if (!t->started || t->collected)
                        continue;
                r = team_collect(c, t);
                if (r < 0)
                        return r;
        }
        if (ctx_has_children(c))
                ctx_wait_unthrottled(c);
        for (int i = 0; i < c->n_groups; i++)
                if (!c->groups[i].ended)
                        group_read(&c->groups[i], &c->groups[i].end);
        c->delay_end_ns = read_machine_delay_ns();
        return read_steal_ns(&c->steal_end_ns);
}

/* The threads work before READY and until SIGUSR2. */
static int ctx_run_window(struct ctx *c) {
        int r;

        ctx_go(c, WINDOW_TIMEOUT_NS);
        r = ctx_wait_state(c, NULL, SLOT_RUNNING, READY_TIMEOUT_NS);
        if (r < 0)
                return r;
        if (c->load_case->flags & CASE_WINDOW) {
                r = ctx_wait_stalled(c, &c->shared->teams[0], 5 * NS_PER_MS);
                if (r < 0)
                        return r;
        }
        report_setup(c);
        printf("READY %d\n", (int) getpid());
        fflush(stdout);
        r = ctx_work(c);
        if (r < 0)
                return r;
        return c->ended ? ctx_wait_state(c, NULL, SLOT_PARKED, PARK_TIMEOUT_NS) : -ETIMEDOUT;
}

static int ctx_run_case(struct ctx *c) {
        int r;

        r = ctx_start_teams(c);
        if (r < 0)
                return r;
        r = c->window ? ctx_run_window(c) : ctx_run_whole(c);
        if (r < 0)
                return r;
        if (c->gaps_output)
                report_gaps(c);
        else
                report_json(c);
        fflush(stdout);
        if (!c->window && !c->no_wait)
                ctx_wait_line(c); /* gone is as good as "exit" */
        for (unsigned i = 0; i < c->n_teams && r >= 0; i++)
                r = team_leave(c, &c->shared->teams[i]);
        return r;
}

int ctx_run(struct ctx *c) {
        int r, q;

        r = c->load_case->setup(c);
        if (r >= 0 && (c->bad_params || !params_all_used(c))) {
                c->bad_params = true;
                r = -EINVAL;
        }
        if (r >= 0)
                r = ctx_run_case(c);
        for (unsigned i = 0; i < c->n_teams; i++)
                team_kill(&c->shared->teams[i]);
        for (int i = c->n_groups - 1; i >= 0; i--) {
                q = group_remove(&c->groups[i]);
                if (q < 0)
                        fprintf(stderr, "load: %s stays behind: %s\n", c->groups[i].path, strerror(-q));
        }
        return r;
}
