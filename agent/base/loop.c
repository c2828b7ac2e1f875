/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"

#define EVENTS_MAX 16

enum source_kind { SOURCE_IO, SOURCE_TIMER, SOURCE_SIGNALS };

struct source {
        struct source *next;
        enum source_kind kind;
        int fd; /* ours for timers and signals, borrowed for io */
        int timer;
        bool removed; /* stays until the batch it may be in is through */
        union {
                loop_io_fn io;
                loop_timer_fn timer;
                loop_signal_fn signals;
        } fn;
        void *data;
};

struct loop {
        int epoll;
        struct source *sources;
        int timers;
        bool masked, stopped;
        int status;
        sigset_t original;
};

static struct source *source_free(struct source *source) {
        struct source *next = source->next;

        if (source->kind != SOURCE_IO && source->fd >= 0)
                close(source->fd);
        free(source);
        return next;
}

int loop_new(struct loop **ret_loop) {
        struct loop *loop = calloc(1, sizeof(*loop));
        int r;

        if (!loop)
                return -ENOMEM;
        r = sigprocmask(SIG_BLOCK, NULL, &loop->original) < 0 ? -errno : 0;
        loop->epoll = r < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll < 0) {
                r = r < 0 ? r : -errno;
                free(loop);
                return r;
        }
        *ret_loop = loop;
        return 0;
}

/* A signal that is still pending must not hit the process once the old mask is back: it was ours to handle. */
static void drain_signals(int fd) {
        struct signalfd_siginfo info[8];

        while (read(fd, info, sizeof(info)) > 0)
                ;
}

void loop_free(struct loop *loop) {
        if (!loop)
                return;
        for (struct source *source = loop->sources; source; source = source_free(source))
                if (source->kind == SOURCE_SIGNALS)
                        drain_signals(source->fd);
        if (loop->masked)
                (void) sigprocmask(SIG_SETMASK, &loop->original, NULL);
        close(loop->epoll);
        free(loop);
}

/* Takes @source over, also on failure. */
static int take_source(struct loop *loop, struct source *source, uint32_t events) {
        struct epoll_event event = {.events = events, .data.ptr = source};

        if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0) {
                int r = -errno;

                (void) source_free(source);
                return r;
        }
        source->next = loop->sources;
        loop->sources = source;
        return 0;
}

int loop_add_io(struct loop *loop, int fd, uint32_t events, loop_io_fn fn, void *data) {
        struct source *source = calloc(1, sizeof(*source));

        if (!source)
                return -ENOMEM;
        *source = (struct source){.kind = SOURCE_IO, .fd = fd, .fn.io = fn, .data = data};
        return take_source(loop, source, events);
}

int loop_remove_io(struct loop *loop, int fd) {
        for (struct source *source = loop->sources; source; source = source->next)
                if (source->kind == SOURCE_IO && source->fd == fd && !source->removed) {
                        /* Fails if the descriptor is closed already; then epoll has forgotten it too. */
                        (void) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
                        source->removed = true;
                        return 0;
                }
        return -ENOENT;
}

int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn fn, void *data) {
        struct source *source = calloc(1, sizeof(*source));
        int r;

        if (!source)
                return -ENOMEM;
        *source = (struct source){.kind = SOURCE_SIGNALS, .fn.signals = fn, .data = data};
        source->fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (source->fd < 0) {
                r = -errno;
                free(source);
                return r;
        }
        r = take_source(loop, source, EPOLLIN);
        if (r < 0)
                return r;
        if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
                return -errno;
        loop->masked = true;
        return 0;
}

static struct timespec timespec_of(uint64_t ns) {
        return (struct timespec){.tv_sec = (time_t) (ns / NS_PER_S), .tv_nsec = (long) (ns % NS_PER_S)};
}

static int arm(int fd, uint64_t first_mono_ns, uint64_t interval_ns) {
        struct itimerspec spec = {.it_interval = timespec_of(interval_ns)};

        /* The kernel takes a zero first time for "off"; a moment long gone is "now". */
        if (first_mono_ns == 0 && interval_ns > 0)
                first_mono_ns = 1;
        spec.it_value = timespec_of(first_mono_ns);
        return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0 ? -errno : 0;
}

int loop_add_timer(struct loop *loop, uint64_t first_mono_ns, uint64_t interval_ns, loop_timer_fn fn,
                   void *data) {
        cleanup_fd int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        struct source *source;
        int r;

        if (fd < 0)
                return -errno;
        r = arm(fd, first_mono_ns, interval_ns);
        if (r < 0)
                return r;
        source = calloc(1, sizeof(*source));
        if (!source)
                return -ENOMEM;
        *source = (struct source){.kind = SOURCE_TIMER, .timer = loop->timers, .fn.timer = fn, .data = data};
        source->fd = take_fd(fd);
        r = take_source(loop, source, EPOLLIN);
        if (r < 0)
                return r;
        return loop->timers++;
}

int loop_set_timer(struct loop *loop, int timer, uint64_t first_mono_ns, uint64_t interval_ns) {
        for (struct source *source = loop->sources; source; source = source->next)
                if (source->kind == SOURCE_TIMER && source->timer == timer)
                        return arm(source->fd, first_mono_ns, interval_ns);
        return -ENOENT;
}

static int dispatch_timer(struct source *source) {
        uint64_t expirations;

        /* Nothing to read: it was set anew by an earlier callback of the same batch. */
        if (read(source->fd, &expirations, sizeof(expirations)) != sizeof(expirations))
                return 0;
        return source->fn.timer(expirations - 1, source->data);
}

static int dispatch_signals(struct loop *loop, struct source *source) {
        struct signalfd_siginfo info;
        int r = 0;

        while (r >= 0 && !loop->stopped && read(source->fd, &info, sizeof(info)) == sizeof(info))
                r = source->fn.signals(&info, source->data);
        return r;
}

static int dispatch(struct loop *loop, struct source *source, uint32_t events) {
        switch (source->kind) {
        case SOURCE_IO:
                return source->removed ? 0 : source->fn.io(source->fd, events, source->data);
        case SOURCE_TIMER:
                return dispatch_timer(source);
        case SOURCE_SIGNALS:
                return dispatch_signals(loop, source);
        }
        return -EINVAL;
}

static void sweep(struct loop *loop) {
        for (struct source **link = &loop->sources; *link;)
                if ((*link)->removed)
                        *link = source_free(*link);
                else
                        link = &(*link)->next;
}

int loop_run(struct loop *loop) {
        struct epoll_event events[EVENTS_MAX];
        int r = 0;

        while (!loop->stopped && r >= 0) {
                int count = epoll_wait(loop->epoll, events, EVENTS_MAX, -1);

                if (count < 0 && errno != EINTR)
                        return -errno;
                for (int i = 0; i < count && !loop->stopped && r >= 0; i++)
                        r = dispatch(loop, events[i].data.ptr, events[i].events);
                sweep(loop);
        }
        if (r < 0)
                return r;
        loop->stopped = false;
        return loop->status;
}

void loop_stop(struct loop *loop, int status) {
        loop->stopped = true;
        loop->status = status;
}

const sigset_t *loop_original_mask(const struct loop *loop) {
        return &loop->original;
}
