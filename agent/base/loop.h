/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one event loop: epoll over a timerfd (absolute interval, so that ticks do not drift), a signalfd and any
 * other descriptor. Signals given to it are blocked for the process and arrive as events.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/signalfd.h>

struct loop;

/* A callback returns 0 to go on or a negative errno to end the loop with it. */
typedef int (*loop_io_fn)(int fd, uint32_t events, void *data);
typedef int (*loop_signal_fn)(const struct signalfd_siginfo *info, void *data);
typedef int (*loop_timer_fn)(uint64_t missed,
                             void *data); /* @missed: further expirations since the last call */

int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop); /* restores the signal mask; does not close foreign descriptors */

int loop_add_io(struct loop *loop, int fd, uint32_t events, loop_io_fn fn, void *data);
int loop_remove_io(struct loop *loop, int fd);
int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn fn, void *data);
/* First call at @first_mono_ns (CLOCK_MONOTONIC), then every @interval_ns; interval 0: once. Returns a timer id >= 0. */
int loop_add_timer(struct loop *loop, uint64_t first_mono_ns, uint64_t interval_ns, loop_timer_fn fn,
                   void *data);
int loop_set_timer(struct loop *loop, int timer, uint64_t first_mono_ns, uint64_t interval_ns);

/* Runs until loop_stop() (returns its status) or a callback's negative errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop, int status);
/* The mask that was in force before loop_add_signals(): a child must start with it. */
const sigset_t *loop_original_mask(const struct loop *loop);
