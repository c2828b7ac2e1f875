/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the forms of a report share: foreign names made harmless and short, sentences wrapped under a label, figures as
 * people read them. Internal to report/. Nothing here allocates; every buffer is the caller's.
 */
#include <stddef.h>
#include <stdint.h>

#include "../base/number.h"
#include "report.h"

#define PARTS_COLUMNS 100 /* the widest line of the text form */
#define PARTS_INDENT 11   /* where the values of labelled lines begin */
#define PARTS_SENTENCE_MAX 2048
#define PARTS_NAME_MAX 1024
#define PARTS_ALL (SIZE_MAX / 2) /* a length or a width: however long */

/*
 * A foreign name, escaped, its middle replaced by "…" until it has at most @max_columns columns and fits in @room bytes.
 * An escape or a character is never cut in two. @length may be longer than the string (PARTS_ALL). NULL gives "". Returns @out.
 */
char *parts_name(char *out, size_t room, const char *foreign, size_t length, size_t max_columns);
/* The same for text that is escaped already. */
char *parts_shorten(char *out, size_t room, const char *escaped, size_t max_columns);

/*
 * A sentence of our own, in which foreign names were escaped when it was made: its backslashes stay as they are, anything else
 * that text_escape() would not let through is escaped still. Cut with "…" at @room. NULL gives "".
 */
char *parts_sentence(char *out, size_t room, const char *sentence);

/* "  label    words…", wrapped at PARTS_COLUMNS; a word wider than a line is shortened. @label "" continues above. */
void parts_wrap(struct text *out, const char *label, const char *words);
/* The same on one line, however long it gets: commands that will be copied. */
void parts_whole(struct text *out, const char *label, const char *words);

/* "28%", "4.2%", "0.31%". */
char *parts_percent(char out[static NUMBER_TEXT_MAX], double share);
/* CPUs in thousandths, rounded; ABSENT if @used_ns is or the window is empty. */
uint64_t parts_used_milli(uint64_t used_ns, uint64_t window_ns);

/*
 * Who the report is about: "shop/web-7d4f9 container=app", "container=0123456789ab", "cgroup=/system.slice/x.service",
 * "pid=12". Parts are shortened until it has at most @max_columns columns. Returns true if any part had to be.
 */
bool parts_subject(char *out, size_t room, const struct report_identity *identity, size_t max_columns);

const char *parts_limit_level(enum limit_level level);
