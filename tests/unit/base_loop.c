/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "../../agent/base/clock.h"
#include "../../agent/base/loop.h"
#include "../../agent/base/memory.h"

static void cleanup_loopp(struct loop **loop) {
        loop_free(*loop);
}
#define cleanup_loop __attribute__((cleanup(cleanup_loopp)))

static struct loop *new_loop(void) {
        struct loop *loop = NULL;

        cr_assert(loop_new(&loop) == 0 && loop);
        return loop;
}

static uint64_t now_ns(void) {
        return clock_now().mono_ns;
}

struct counter {
        struct loop *loop;
        unsigned calls, stop_at;
        uint64_t missed, last_ns;
        int timer, fd, result;
};

static int count_timer(uint64_t missed, void *data) {
        struct counter *counter = data;

        counter->missed += missed;
        counter->last_ns = now_ns();
        if (++counter->calls == counter->stop_at)
                loop_stop(counter->loop, 7);
        return counter->result;
}

static int count_io(int fd, uint32_t events, void *data) {
        struct counter *counter = data;
        char bytes[16];

        cr_assert(fd == counter->fd && (events & (EPOLLIN | EPOLLHUP)));
        if (read(fd, bytes, sizeof(bytes)) == 0)
                counter->result = loop_remove_io(counter->loop, fd);
        if (++counter->calls == counter->stop_at)
                loop_stop(counter->loop, 0);
        return counter->result;
}

Test(loop, ticks_at_multiples_of_the_interval, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter counter = {.loop = loop, .stop_at = 5};
        uint64_t first = now_ns() + 20 * NS_PER_MS;

        cr_assert(loop_add_timer(loop, first, 10 * NS_PER_MS, count_timer, &counter) >= 0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(counter.calls == 5);
        /* Also on a busy machine: late ticks are counted, none is early. */
        cr_assert(counter.last_ns >= first + (4 + counter.missed) * 10 * NS_PER_MS);
}

Test(loop, counts_the_ticks_it_missed, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter counter = {.loop = loop, .stop_at = 1};

        cr_assert(loop_add_timer(loop, now_ns() - 95 * NS_PER_MS, 10 * NS_PER_MS, count_timer, &counter) >=
                  0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(counter.missed >= 9);
}

Test(loop, timer_without_interval_fires_once, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter once = {.loop = loop}, end = {.loop = loop, .stop_at = 1};

        cr_assert(loop_add_timer(loop, now_ns(), 0, count_timer, &once) >= 0);
        cr_assert(loop_add_timer(loop, now_ns() + 50 * NS_PER_MS, 0, count_timer, &end) >= 0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(once.calls == 1 && once.missed == 0);
}

Test(loop, timers_can_be_set_anew_and_off, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter off = {.loop = loop}, later = {.loop = loop, .stop_at = 1};
        int timer = loop_add_timer(loop, now_ns() + 5 * NS_PER_MS, 5 * NS_PER_MS, count_timer, &off);
        int other = loop_add_timer(loop, 0, 0, count_timer, &later);
        uint64_t at = now_ns() + 40 * NS_PER_MS;

        cr_assert(timer >= 0 && other >= 0 && timer != other);
        cr_assert(loop_set_timer(loop, timer, 0, 0) == 0);
        cr_assert(loop_set_timer(loop, other, at, 0) == 0);
        cr_assert(loop_set_timer(loop, 99, at, 0) == -ENOENT);
        cr_assert(loop_run(loop) == 7);
        cr_assert(off.calls == 0 && later.last_ns >= at);
}

Test(loop, callbacks_error_ends_it, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter counter = {.loop = loop, .result = -EXDEV};

        cr_assert(loop_add_timer(loop, now_ns(), 0, count_timer, &counter) >= 0);
        cr_assert(loop_run(loop) == -EXDEV);
}

Test(loop, stop_before_run_is_not_forgotten, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();

        loop_stop(loop, 3);
        cr_assert(loop_run(loop) == 3);
}

Test(loop, reads_descriptors_until_they_are_removed, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        cleanup_fd int reader = -1, writer = -1;
        struct counter end = {.loop = loop, .stop_at = 1}, counter = {.loop = loop};
        int ends[2];

        cr_assert(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        counter.fd = reader = ends[0];
        writer = ends[1];
        cr_assert(loop_add_io(loop, reader, EPOLLIN, count_io, &counter) == 0);
        cr_assert(loop_add_io(loop, reader, EPOLLIN, count_io, &counter) == -EEXIST);
        cr_assert(loop_add_io(loop, -1, EPOLLIN, count_io, &counter) == -EBADF);
        cr_assert(write(writer, "x", 1) == 1);
        cr_assert(loop_add_timer(loop, now_ns() + 50 * NS_PER_MS, 0, count_timer, &end) >= 0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(counter.calls == 1);

        /* The end of the stream removes itself inside the callback; the loop does not spin on it. */
        close(take_fd(writer));
        end = (struct counter){.loop = loop, .stop_at = 1};
        cr_assert(loop_set_timer(loop, 0, now_ns() + 50 * NS_PER_MS, 0) == 0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(counter.calls == 2);
        cr_assert(loop_remove_io(loop, reader) == -ENOENT);
        cr_assert(fcntl(reader, F_GETFD) >= 0, "foreign descriptors stay open");
}

struct pair {
        struct loop *loop;
        int first, second;
        unsigned calls;
};

/* Whichever comes first takes the other one out of the batch they are both in. */
static int remove_other(int fd, uint32_t events, void *data) {
        struct pair *pair = data;

        (void) events;
        pair->calls++;
        cr_assert(loop_remove_io(pair->loop, fd == pair->first ? pair->second : pair->first) == 0);
        loop_stop(pair->loop, 0);
        return 0;
}

Test(loop, removed_source_is_not_called_in_the_same_batch, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct pair pair = {.loop = loop};
        int a[2], b[2];

        cr_assert(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0);
        pair.first = a[0];
        pair.second = b[0];
        cr_assert(write(a[1], "x", 1) == 1 && write(b[1], "x", 1) == 1);
        cr_assert(loop_add_io(loop, a[0], EPOLLIN, remove_other, &pair) == 0);
        cr_assert(loop_add_io(loop, b[0], EPOLLIN, remove_other, &pair) == 0);
        cr_assert(loop_run(loop) == 0);
        cr_assert(pair.calls == 1);
        for (int i = 0; i < 2; i++) {
                close(a[i]);
                close(b[i]);
        }
}

struct signals {
        struct loop *loop;
        unsigned term, child;
        int sender;
};

static int on_signal(const struct signalfd_siginfo *info, void *data) {
        struct signals *signals = data;

        if (info->ssi_signo == SIGCHLD)
                signals->child++;
        if (info->ssi_signo == SIGTERM) {
                signals->term++;
                signals->sender = (int) info->ssi_pid;
                loop_stop(signals->loop, 15);
        }
        return 0;
}

Test(loop, signals_arrive_as_events, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct signals signals = {.loop = loop};
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGCHLD);
        cr_assert(loop_add_signals(loop, &set, on_signal, &signals) == 0);
        cr_assert(raise(SIGTERM) == 0);
        cr_assert(loop_run(loop) == 15);
        cr_assert(signals.term == 1 && signals.sender == getpid());
}

Test(loop, gives_the_mask_back, .timeout = 10) {
        struct loop *loop = new_loop();
        struct signals signals = {.loop = loop};
        sigset_t set, before, during, after;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, NULL, &before);
        cr_assert(loop_add_signals(loop, &set, on_signal, &signals) == 0);
        sigprocmask(SIG_BLOCK, NULL, &during);
        cr_assert(sigismember(&during, SIGTERM) == 1);
        cr_assert(sigismember(loop_original_mask(loop), SIGTERM) == sigismember(&before, SIGTERM));
        /* Still pending when the mask comes back: must not end the process. */
        cr_assert(raise(SIGTERM) == 0);
        loop_free(loop);
        sigprocmask(SIG_BLOCK, NULL, &after);
        cr_assert(sigismember(&after, SIGTERM) == 0);
}

Test(loop, is_not_ended_by_an_interrupted_wait, .timeout = 10) {
        cleanup_loop struct loop *loop = new_loop();
        struct counter counter = {.loop = loop, .stop_at = 1};
        pid_t child, parent = getpid();
        int status;

        child = fork();
        cr_assert(child >= 0);
        if (child == 0) {
                /* Stopping and continuing a process interrupts its wait. */
                kill(parent, SIGSTOP);
                kill(parent, SIGCONT);
                _exit(0);
        }
        cr_assert(loop_add_timer(loop, now_ns() + 100 * NS_PER_MS, 0, count_timer, &counter) >= 0);
        cr_assert(loop_run(loop) == 7);
        cr_assert(waitpid(child, &status, 0) == child);
}

Test(loop, freeing_nothing_is_fine) {
        loop_free(NULL);
}
