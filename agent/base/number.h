/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict numbers and the units people write: no sign, no blanks, no octal, no rest, no overflow. */
#include <stddef.h>
#include <stdint.h>

/* All of @text[0..length) must be one decimal number. 0, -EINVAL (not a number) or -ERANGE (overflow). */
int number_parse_u64_n(const char *text, size_t length, uint64_t *ret_value);
int number_parse_u64(const char *text, uint64_t *ret_value);
int number_parse_s64(const char *text, int64_t *ret_value); /* may start with '-' */
/* "500ms", "10s", "1m", "1h30m", "1.5s", "100us", "5ns": nanoseconds. A bare number is -EINVAL: units are part of it. */
int number_parse_duration(const char *text, uint64_t *ret_ns);
/* "5%", "5", "0.5%": permille-exact share as parts per million (5 % = 50000). At most 100 %. */
int number_parse_share(const char *text, uint32_t *ret_ppm);

#define NUMBER_TEXT_MAX 32
/* Kubernetes quantity of a CPU amount given in thousandths: "250m", "1", "1500m" ("1.5" is not canonical). */
char *number_format_cpus(char out[static NUMBER_TEXT_MAX], uint64_t millicpus);
/* For people, three significant figures: "16.9 s", "88 ms", "3.2 ms", "75 us", "0 ms". */
char *number_format_duration(char out[static NUMBER_TEXT_MAX], uint64_t ns);
