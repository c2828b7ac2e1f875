/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds the JSON of a report with cJSON. What is ABSENT or NULL is left out, and so is an object in which nothing was known.
 * A failed allocation is remembered and asked for once, at the end. Keys must be constants. Internal to report/.
 */
#include <cjson/cJSON.h>

#include "report.h"

struct build {
        bool failed;
};

cJSON *build_object(struct build *build); /* belongs to nobody until it is attached */
cJSON *build_array(struct build *build);
/* Hands @child over to @parent, or frees it: always if anything failed, an object also if it is empty. */
void build_attach(struct build *build, cJSON *parent, const char *key, cJSON *child);
void build_append(struct build *build, cJSON *array, cJSON *child);

void build_u64(struct build *build, cJSON *parent, const char *key, uint64_t value);
void build_append_u64(struct build *build, cJSON *array, uint64_t value);
void build_id(struct build *build, cJSON *parent, const char *key, uint32_t value); /* 0: not known */
void build_bool(struct build *build, cJSON *parent, const char *key, bool value);
/* Thousandths as a decimal fraction: 250 is 0.25. */
void build_milli(struct build *build, cJSON *parent, const char *key, uint64_t milli);
/* At most six decimals; left out if it is not a number that JSON can say. */
void build_fraction(struct build *build, cJSON *parent, const char *key, double value);
/* A foreign name: escaped, and shortened in the middle beyond 1 KiB. */
void build_name(struct build *build, cJSON *parent, const char *key, const char *name, size_t length);
/* A sentence, command or constant of our own. */
void build_sentence(struct build *build, cJSON *parent, const char *key, const char *sentence);
void build_time(struct build *build, cJSON *parent, const char *key, uint64_t real_ns);

/* What every type of line begins with, and who it is about. */
void build_head(struct build *build, cJSON *root, const char *type, uint64_t real_ns, uint64_t window_ns,
                const char *version);
void build_identity(struct build *build, cJSON *root, const struct report_identity *identity);

/*
 * The line into @line (room REPORT_JSON_MAX + 1). 0, -ENOMEM if anything had failed, -EMSGSIZE if it is longer than
 * REPORT_JSON_MAX with its newline. Frees @root.
 */
int build_print(struct build *build, cJSON *root, char *line);
