/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields of bpf/shared.h's records by name, for maps.json: what a person (or another build) can read. */
#include <stddef.h>
#include <stdint.h>

struct record_field {
        const char *name;
        uint16_t offset;
        uint8_t width;  /* bytes of one element; 1 is text */
        uint16_t count; /* elements; 1: a plain number */
};
struct record_kind {
        uint32_t kind;
        uint32_t bytes;
        const char *name;
        const struct record_field *fields;
        size_t fields_count;
};

extern const struct record_kind record_kinds[];
extern const size_t record_kinds_count;
extern const struct record_kind record_event;
