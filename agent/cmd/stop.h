/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The signals that ask check and watch to end: SIGINT, SIGTERM, SIGHUP. */
#include "../base/loop.h"

/* A new loop that calls @fn for them. 0 or negative errno; the caller frees the loop. */
int stop_listen(struct loop **ret_loop, loop_signal_fn fn, void *data);
/* The work is done: a signal while the process ends must not change its exit status. Before the loop is freed. */
void stop_ignore(void);
/* A descriptor that becomes readable when one of them arrives, for waits outside the loop. -1: none to be had. The caller closes. */
int stop_fd(void);
