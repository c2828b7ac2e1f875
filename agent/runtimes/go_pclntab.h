/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Go's own table of functions, which stripping leaves: where a function begins, and which global its code loads first. The form of Go
 * 1.18 and later. Read in pieces: it has tens of megabytes in a large program.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_image.h"

#define GO_FUNCTIONS_MAX (2u << 20)
#define GO_CODE_MAX 160u /* bytes of a function that are decoded */

/* Bytes that are asked for by offset: a table in a file, or in a buffer. */
struct go_bytes {
        int (*read)(const void *from, uint64_t offset, void *buffer,
                    size_t length); /* 0 or negative errno */
        const void *from;
        uint64_t size;
};

struct go_pclntab {
        struct go_bytes bytes;
        uint64_t functions, names_offset, names_end, table_offset;
};

/* 0; -ENOEXEC: no header of this form. */
int go_pclntab_parse(struct go_bytes bytes, bool is_arm64, struct go_pclntab *ret_table);
/* Where @name begins, counted from the beginning of the program's text. 1; 0: no such function; negative errno. */
int go_pclntab_function(const struct go_pclntab *table, const char *name, uint32_t *ret_offset);
/* Address of the table in the file, and how many bytes from there on are its at most. 1; 0: none; negative errno. */
int go_pclntab_find(const struct elf_image *image, uint64_t *ret_address, uint64_t *ret_size);
/*
 * The 4-byte global that code at @address loads first, for which @is_data holds. 1 and *ret_target; 0: none in @length bytes.
 */
int go_code_global(const uint8_t *code, size_t length, uint64_t address, bool is_arm64,
                   bool (*is_data)(uint64_t address, const void *data), const void *data,
                   uint64_t *ret_target);
