/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent's own messages, on standard error: one line each, "throttlescope: warning: …". Only cmd/ (and the loop
 * it owns) logs above debug; everything below returns. Each call site is rate-limited in `watch` by the caller.
 * A reader that does not read holds nobody up: what it has no room for within 100 ms is dropped, counted, and told with the next line.
 */
#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_DEBUG, LOG_LEVEL_COUNT };

void log_set_level(enum log_level level);
bool log_wanted(enum log_level level);
/* Returns @error so that "say it and leave" is one line. */
int log_at(enum log_level level, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error(error, ...) log_at(LOG_ERROR, error, __VA_ARGS__)
#define log_warning(error, ...) log_at(LOG_WARNING, error, __VA_ARGS__)
#define log_notice(...) ((void) log_at(LOG_NOTICE, 0, __VA_ARGS__))
#define log_debug(...) ((void) log_at(LOG_DEBUG, 0, __VA_ARGS__))
