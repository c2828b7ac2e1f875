/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A text buffer with a stated maximum, and the escaping of foreign text. */
#include <stdbool.h>
#include <stddef.h>

struct text {
        char *data; /* always NUL-terminated once anything was added; NULL while empty */
        size_t length;
        size_t room;
        size_t max; /* bytes, without the NUL; more is cut and `cut` set */
        bool cut;
};

void text_init(struct text *text, size_t max);
void text_release(struct text *text);
void text_clear(struct text *text);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_n(struct text *text, const char *bytes, size_t length);
const char *text_string(const struct text *text); /* never NULL */

#define cleanup_text __attribute__((cleanup(text_release)))

/*
 * Foreign text (a thread's name, a path, a command line) for a terminal or a log: valid UTF-8 printable characters
 * stay, everything else (control bytes, escape sequences, bidirectional and zero-width marks, bad UTF-8,
 * backslash) becomes \xNN or \\. Writes at most @room bytes with the NUL, never cuts inside a character or an escape.
 * Returns @out.
 */
char *text_escape(char *out, size_t room, const char *foreign, size_t length);
/* Terminal columns of a UTF-8 string that went through text_escape(). */
size_t text_columns(const char *text);
