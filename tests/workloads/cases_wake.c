/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that wait for each other, are woken from elsewhere, or are pelted with signals. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load.h"

/* A lock handed over in order, and always to one: a waiter's sleep ends exactly when the holder lets go. */
static bool lock_take(struct slot *s, uint32_t *ret_ticket) {
        struct shared *sh = s->shared;
        uint32_t ticket = atomic_fetch_add(&sh->lock_next, 1), seen;
        _Atomic uint32_t *word = &sh->lock_words[ticket % LOCK_WORDS];

        while ((seen = atomic_load(word)) != ticket) {
                if (!slot_running(s))
                        return false;
                slot_wait_change(s, word, seen, &sh->lock_stamps_ns[ticket % LOCK_WORDS]);
        }
        *ret_ticket = ticket;
        return true;
}

static void lock_give(struct slot *s, uint32_t ticket) {
        struct shared *sh = s->shared;
        uint32_t next = ticket + 1, i = next % LOCK_WORDS;

        atomic_store(&sh->lock_stamps_ns[i], now_ns());
        atomic_store(&sh->lock_words[i], next);
        futex_wake(&sh->lock_words[i], 1);
}

static void work_lock(struct slot *s) {
        uint32_t ticket;

        while (slot_running(s) && lock_take(s, &ticket)) {
                slot_burn(s, s->arg[0]);
                lock_give(s, ticket);
                s->requests++;
                if (s->arg[1] > 0)
                        slot_burn(s, s->arg[1]);
        }
}

static int setup_lockholder(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t hold = param_time(c, "hold", 5 * NS_PER_MS), outside = param_time(c, "outside", NS_PER_MS);
        uint64_t threads = param_count(c, "threads", 4);
        struct team *t;
        int group;

        if (threads >= LOCK_WORDS)
                return ctx_unsupported(c, "lockholder: at most %u threads", LOCK_WORDS - 1);
        group = limited_group(c, -1, NULL, quota, period);
        if (group < 0)
                return group;
        t = team_add(c, group);
        for (uint64_t i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "locker", work_lock);

                if (!s)
                        return -E2BIG;
                s->arg[0] = hold;
                s->arg[1] = outside;
        }
        return t ? 0 : -E2BIG;
}

static void work_woken(struct slot *s) {
        while (slot_running(s)) {
                uint32_t seen = atomic_load(&s->word_taken);

                slot_wait_change(s, &s->word, seen, &s->word_stamp_ns);
                if (atomic_load(&s->word) == seen)
                        continue;
                atomic_store(&s->word_taken, seen + 1);
                slot_burn(s, s->arg[0]);
                s->requests++;
        }
}

/* arg: every, first slot, number of slots. */
static void work_waker(struct slot *s) {
        for (uint64_t next = s->go_ns + s->arg[0]; slot_running(s); next += s->arg[0]) {
                if (now_ns() < next)
                        slot_sleep_until(s, next);
                for (uint64_t i = 0; i < s->arg[2]; i++) {
                        struct slot *other = &s->shared->slots[s->arg[1] + i];

                        /* One wake-up at a time, or the second would hide when the first was. */
                        if (atomic_load(&other->word_taken) != atomic_load(&other->word))
                                continue;
                        atomic_store(&other->word_stamp_ns, now_ns());
                        atomic_fetch_add(&other->word, 1);
                        futex_wake(&other->word, 1);
                }
        }
}

static int setup_cross_wake(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t burn = param_time(c, "burn", 3 * NS_PER_MS), every = param_time(c, "every", 8 * NS_PER_MS);
        uint64_t b_quota = param_time(c, "b_quota", NO_LIMIT), threads = param_count(c, "threads", 2);
        struct slot *waker;
        struct team *t;
        int top, a, b;

        top = limited_group(c, -1, NULL, NO_LIMIT, period);
        if (top < 0)
                return top;
        a = limited_group(c, top, "a", quota, period);
        if (a < 0)
                return a;
        b = limited_group(c, top, "b", b_quota, period);
        if (b < 0)
                return b;
        t = team_add(c, a);
        for (uint64_t i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "woken", work_woken);

                if (!s)
                        return -E2BIG;
                s->arg[0] = burn;
        }
        t = t ? team_add(c, b) : NULL;
        waker = t ? team_add_worker(c, t, "waker", work_waker) : NULL;
        if (!waker)
                return -E2BIG;
        waker->arg[0] = every;
        waker->arg[1] = c->shared->teams[0].first + 1;
        waker->arg[2] = threads;
        return 0;
}

static _Thread_local struct slot *signalled;

static void count_signal(int signo) {
        (void) signo;
        if (signalled)
                atomic_fetch_add_explicit(&signalled->signals, 1, memory_order_relaxed);
}

static void work_signalled(struct slot *s) {
        signalled = s;
        signal(SIGWINCH, count_signal);
        slot_burn(s, 0);
}

static int setup_signal_storm(struct ctx *c) {
        uint64_t quota = param_time(c, "quota", 30 * NS_PER_MS),
                 period = param_time(c, "period", 100 * NS_PER_MS);
        uint64_t threads = param_count(c, "threads", c->n_cpus), rate = param_count(c, "rate", 4000);
        bool pinned = param_count(c, "pinned", 1);
        struct team *t;
        int group;

        group = limited_group(c, -1, NULL, quota, period);
        if (group < 0)
                return group;
        t = team_add(c, group);
        for (unsigned i = 0; t && i < threads; i++) {
                struct slot *s = team_add_worker(c, t, "signalled", work_signalled);

                if (!s)
                        return -E2BIG;
                if (pinned)
                        s->cpu = ctx_pick_cpu(c, i);
        }
        c->shared->slots[0].arg[0] = NS_PER_SEC / (rate > 0 ? rate : 1);
        return t ? 0 : -E2BIG;
}

/* Each thread gets one signal every so often, whatever it does. SIGWINCH does no harm before there is a
 * handler. */
static int control_signal_storm(struct ctx *c) {
        uint64_t every = c->shared->slots[0].arg[0], next = now_ns();

        for (;;) {
                int r;

                next += every;
                r = ctx_sleep_until(c, next);
                if (r < 0)
                        return r;
                for (unsigned i = 1; i < c->n_slots; i++) {
                        const struct slot *s = &c->shared->slots[i];

                        if (syscall(SYS_tgkill, s->pid, s->tid, SIGWINCH) == 0)
                                c->actions++;
                }
        }
}

const struct load_case cases_wake[] = {
                {"lockholder", "threads=4 hold=5ms outside=1ms quota=30ms period=100ms", setup_lockholder,
                 NULL, CASE_HERE},
                {"cross-wake",
                 "woken from another group: threads=2 burn=3ms every=8ms quota=30ms b_quota=max "
                 "period=100ms",
                 setup_cross_wake, NULL, 0},
                {"signal-storm",
                 "threads=CPUs pinned=1 rate=4000 (a second and thread) quota=30ms period=100ms",
                 setup_signal_storm, control_signal_storm, 0},
                {NULL, NULL, NULL, NULL, 0},
};
