/* SPDX-License-Identifier: Apache-2.0 */

/* The clocks: what a thread sees of its own time, and what the kernel says about it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static uint64_t clock_read_ns(clockid_t id) {
        struct timespec ts = {};

        clock_gettime(id, &ts);
        return (uint64_t) ts.tv_sec * NS_PER_SEC + (uint64_t) ts.tv_nsec;
}

uint64_t now_ns(void) {
        return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void) {
        return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Threads that have ended are included. */
int process_cpu_ns(pid_t pid, uint64_t *ret) {
        clockid_t id;
        int r;

        r = clock_getcpuclockid(pid, &id);
        if (r != 0)
                return -r;
        *ret = clock_read_ns(id);
        return 0;
}

static int schedstat_parse(const char *path, struct schedstat *ret) {
        char buf[128], *p = buf;
        ssize_t n;
        int fd;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buf, sizeof(buf) - 1);
        close(fd);
        if (n <= 0)
                return -EIO;
        buf[n] = '\0';
        ret->run_ns = strtoull(p, &p, 10);
        ret->delay_ns = strtoull(p, &p, 10);
        ret->switches = strtoull(p, &p, 10);
        return 0;
}

/* The first number is up to a tick old while the thread runs, the second lacks the delay it is in: exact
 * only for a thread that sleeps. */
int schedstat_read(pid_t pid, pid_t tid, struct schedstat *ret) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int) pid, (int) tid);
        return schedstat_parse(path, ret);
}

int schedstat_read_own(struct schedstat *ret) {
        return schedstat_parse("/proc/thread-self/schedstat", ret);
}

/* The controller may look at any moment, also while this thread is stalled for long: it must always find one
 * complete tally. So there are two, and the version says which. */
static void slot_publish(struct slot *s) {
        uint32_t next = atomic_load_explicit(&s->version, memory_order_relaxed) + 1;

        s->pub[next & 1] = s->now;
        atomic_store_explicit(&s->last_ns, s->now.at_ns, memory_order_relaxed);
        atomic_store_explicit(&s->version, next, memory_order_release);
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

bool slot_running(const struct slot *s) {
        return now_ns() < atomic_load_explicit(&s->shared->deadline_ns, memory_order_relaxed);
}

/* Now, and the delay up to now. Reading the CPU clock makes the kernel charge the quota, and so may itself stall the
 * thread: it comes first, so that this stall is still seen. The delay is read before and after the clock, so that both
 * are of one moment. */
static uint64_t now_and_delay_ns(uint64_t *ret_delay_ns) {
        struct schedstat before = {}, after = {};
        uint64_t now;
        unsigned tries = 0;

        thread_cpu_ns();
        do {
                schedstat_read_own(&before);
                now = now_ns();
                schedstat_read_own(&after);
        } while (after.delay_ns != before.delay_ns && ++tries < 10);
        *ret_delay_ns = before.delay_ns;
        return now;
}

/* go_ns 0: born while the others already work. Who made it may have been stalled half way, so that only the kernel
 * knows when it was born: its delay and its CPU time before this moment. */
void slot_begin(struct slot *s, uint64_t go_ns) {
        uint64_t delay = 0;

        s->first_ns = go_ns == 0 ? now_and_delay_ns(&delay) : now_ns();
        s->cpu_base_ns = go_ns == 0 ? 0 : thread_cpu_ns();
        s->go_ns = go_ns == 0 ? s->first_ns - delay - thread_cpu_ns() : go_ns;
        s->now = (struct tally){.at_ns = s->go_ns};
        slot_publish(s);
}

/* The largest gap of a window begins no earlier than the window. */
static void slot_add_gap(struct slot *s, uint64_t from_ns, uint64_t to_ns) {
        uint32_t epoch = atomic_load_explicit(&s->shared->epoch, memory_order_acquire);
        uint64_t begin = atomic_load_explicit(&s->shared->begin_ns, memory_order_relaxed);

        if (s->now.epoch != epoch) {
                s->now.epoch = epoch;
                s->now.gap_max_ns = 0;
        }
        s->now.gap_ns += to_ns - from_ns;
        s->now.gaps++;
        begin = max_u64(begin, from_ns);
        if (to_ns > begin)
                s->now.gap_max_ns = max_u64(s->now.gap_max_ns, to_ns - begin);
}

static void slot_advance(struct slot *s, uint64_t at_ns) {
        s->now.at_ns = at_ns;
        s->now.cpu_ns = thread_cpu_ns() - s->cpu_base_ns;
        slot_publish(s);
}

void slot_burn(struct slot *s, uint64_t burn_ns) {
        uint64_t last = atomic_load_explicit(&s->last_ns, memory_order_relaxed), burned = 0, now;

        do {
                now = now_ns();
                if (now - last > GAP_NS) {
                        slot_add_gap(s, last, now);
                        slot_advance(s, now);
                } else {
                        burned += now - last;
                        atomic_store_explicit(&s->last_ns, now, memory_order_relaxed);
                }
                last = now;
        } while ((burn_ns == 0 || burned < burn_ns) &&
                 now < atomic_load_explicit(&s->shared->deadline_ns, memory_order_relaxed));
}

/* From here on the thread sleeps, until a known time or until somebody wakes it (UNKNOWN). */
static uint64_t slot_enter_sleep(struct slot *s, uint64_t until_ns) {
        uint64_t now = now_ns(), last = atomic_load_explicit(&s->last_ns, memory_order_relaxed);

        if (now - last > GAP_NS) {
                slot_add_gap(s, last, now);
                slot_advance(s, now);
                now = now_ns();
        }
        s->now.cpu_ns += now - s->now.at_ns; /* close enough for a reader; put right on wake-up */
        s->now.at_ns = now;
        s->now.sleep_until_ns = until_ns;
        slot_publish(s);
        return now;
}

static void slot_leave_sleep(struct slot *s, uint64_t from_ns, uint64_t woken_ns) {
        uint64_t now = now_ns();

        woken_ns = min_u64(max_u64(woken_ns, from_ns), now);
        s->now.sleep_ns += woken_ns - from_ns;
        s->now.sleep_until_ns = 0;
        if (now - woken_ns > GAP_NS)
                slot_add_gap(s, woken_ns, now);
        slot_advance(s, now);
}

/* The sleep ends when the timer does. What comes after that is not sleep but delay. */
void slot_sleep_until(struct slot *s, uint64_t until_ns) {
        uint64_t deadline = atomic_load_explicit(&s->shared->deadline_ns, memory_order_relaxed), from;
        struct timespec ts;

        until_ns = min_u64(until_ns, deadline);
        from = slot_enter_sleep(s, until_ns);
        ts = (struct timespec){.tv_sec = (time_t) (until_ns / NS_PER_SEC),
                               .tv_nsec = (long) (until_ns % NS_PER_SEC)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
        slot_leave_sleep(s, from, until_ns);
}

/* Waits until *word differs from old or the deadline has passed. Who changes the word writes the time into
 * *stamp first, so that the sleep ends there and the rest is delay. */
void slot_wait_change(struct slot *s, _Atomic uint32_t *word, uint32_t old, const _Atomic uint64_t *stamp) {
        uint64_t deadline = atomic_load_explicit(&s->shared->deadline_ns, memory_order_relaxed), from;

        if (atomic_load(word) != old)
                return;
        s->wait_stamp = stamp;
        from = slot_enter_sleep(s, UNKNOWN);
        while (atomic_load(word) == old && now_ns() < deadline) {
                futex_wait(word, old, deadline);
                deadline = atomic_load_explicit(&s->shared->deadline_ns, memory_order_relaxed);
        }
        slot_leave_sleep(s, from, atomic_load(word) == old ? deadline : atomic_load(stamp));
}

void slot_end(struct slot *s) {
        uint64_t now = now_and_delay_ns(&s->own_delay_ns);
        uint64_t last = atomic_load_explicit(&s->last_ns, memory_order_relaxed);

        if (now - last > GAP_NS)
                slot_add_gap(s, last, now);
        slot_advance(s, now);
}

/* A thread's figures as of this moment, also while it is stalled or sleeps. The clock is read before
 * last_ns: if last_ns is still old then, the thread was in a gap at that time. */
void slot_read(const struct slot *s, struct tally *ret) {
        struct tally t;
        uint64_t now, last, running;
        uint32_t version;

        do {
                version = atomic_load_explicit(&s->version, memory_order_acquire);
                t = s->pub[version & 1];
                now = now_ns();
                last = atomic_load(&s->last_ns);
                atomic_thread_fence(memory_order_acquire);
        } while (atomic_load(&s->version) != version);

        running = t.at_ns;
        if (t.sleep_until_ns != 0) {
                uint64_t woken = t.sleep_until_ns;

                if (woken == UNKNOWN) {
                        woken = s->wait_stamp ? atomic_load(s->wait_stamp) : 0;
                        if (woken < t.at_ns)
                                woken = now;
                }
                woken = min_u64(woken, now);
                t.sleep_ns += woken - t.at_ns;
                running = last = woken;
        }
        if (now > last && now - last > GAP_NS) {
                uint64_t from = max_u64(last, atomic_load(&s->shared->begin_ns));

                t.cpu_ns += last - running;
                t.gap_ns += now - last;
                t.gaps++;
                if (t.epoch != atomic_load(&s->shared->epoch))
                        t.gap_max_ns = 0;
                t.gap_max_ns = max_u64(t.gap_max_ns, now > from ? now - from : 0);
        } else if (now > running && t.sleep_until_ns == 0)
                t.cpu_ns += now - running;
        t.at_ns = now;
        *ret = t;
}

bool slot_is_stalled(const struct slot *s, uint64_t for_ns) {
        uint64_t now = now_ns(), last = atomic_load(&s->last_ns);

        return atomic_load(&s->state) == SLOT_RUNNING && now > last && now - last > for_ns;
}
