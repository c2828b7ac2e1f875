/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sentence that goes with a negative errno: names the culprit and the position. Filled only on failure,
 * wrapped outward ("config file a.conf: line 3: …"). A fixed buffer, no allocation.
 */
struct why {
        char text[512];
};

/* Writes the sentence and returns @error unchanged, so that "describe and return" is one line. NULL is fine. */
int why_set(struct why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Puts "<context>: " in front of what is there; returns @error. */
int why_wrap(struct why *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The static analyzer sees one source at a time: what these return must be told to it. */
#if defined(__clang_analyzer__) && !defined(WHY_IMPLEMENTATION)
#define why_set(why, error, ...) ((void) (why_set) (why, error, __VA_ARGS__), (error))
#define why_wrap(why, error, ...) ((void) (why_wrap) (why, error, __VA_ARGS__), (error))
#endif
