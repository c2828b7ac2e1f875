/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where reports go: a bounded queue of whole records before a descriptor that may be slow or closed. Nothing here blocks but
 * sink_flush(), which has a deadline. A record that does not fit, or that cannot be written any more, is dropped and counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/loop.h"

#define SINK_QUEUE_MAX ((size_t) 256 << 10)

struct sink;

/*
 * @fd stays the caller's and is never made non-blocking: others share it (of the wrapper's standard error the command
 * itself). Holds at most @max bytes of records.
 */
int sink_new(int fd, size_t max, struct sink **ret_sink);
void sink_free(struct sink *sink); /* NULL is fine; what is queued is dropped */

/* Waiting records are written when @loop finds the descriptor ready; without a loop at the next write or flush. */
void sink_set_loop(struct sink *sink, struct loop *loop);
/* Takes one record, writes at once what can be written. False: dropped and counted. */
bool sink_write(struct sink *sink, const char *bytes, size_t length);
/* Counts a record that could not even be made. */
void sink_drop(struct sink *sink);
/*
 * Waits until all is written: at most @patience_ns since the last progress and @total_ns in all, and not once @cancel_fd (-1: none) is
 * readable; then drops what is left. True if nothing had to be dropped.
 */
bool sink_flush(struct sink *sink, uint64_t patience_ns, uint64_t total_ns, int cancel_fd);

/* Records dropped so far; those half written count too. */
uint64_t sink_lost(const struct sink *sink);
/* The reader is gone (or the descriptor never was open): everything from now on is lost. */
bool sink_is_closed(const struct sink *sink);
/* Would a short line to @fd be taken without waiting? For the log, which blocks where its reader is slow. */
bool sink_is_ready(int fd);
