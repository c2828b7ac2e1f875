/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ELF file of a container, read with libelf: hostile or cut files give an error, never more work than the stated maxima. Read with
 * pread(), not mapped: its owner may cut it short at any moment, and a mapping would then end this process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_image;

#define ELF_SECTION_MAX (64u << 20) /* bytes of one section that are read */
#define ELF_SEGMENTS_MAX 64u

struct elf_segment { /* PT_LOAD only */
        uint64_t offset, address, file_size, memory_size;
        bool readable, writable, executable;
};
struct elf_section {
        uint64_t offset, address, size;
        bool has_data; /* false: no bytes in the file (.bss) */
};

/* Takes @fd, also on failure. 0; -ENOEXEC: no 64-bit little-endian ELF file of this kind of machine (x86-64, arm64); negative errno. */
int elf_image_open_take(int fd, struct elf_image **ret_image);
void elf_image_free(struct elf_image *image); /* NULL is fine */

bool elf_image_is_arm64(const struct elf_image *image);
uint64_t elf_image_size(const struct elf_image *image); /* of the file, bytes */
const struct elf_segment *elf_image_segments(const struct elf_image *image, size_t *ret_count);
/* 1 and *ret_section, 0: none of that name. */
int elf_image_section(const struct elf_image *image, const char *name, struct elf_section *ret_section);
/* Address of a defined symbol, from .symtab, else .dynsym. 1, 0: none (or no table), negative errno. ret_size may be NULL. */
int elf_image_symbol(struct elf_image *image, const char *name, uint64_t *ret_address, uint64_t *ret_size);
/* Bytes of the file. 0; -ERANGE: not all of it is there; negative errno. */
int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t length);
/* Bytes at an address as the file gives them. 0; -EFAULT: no segment has them in the file. */
int elf_image_read_at(const struct elf_image *image, uint64_t address, void *buffer, size_t length);

static inline void cleanup_elf_imagep(struct elf_image **image) {
        elf_image_free(*image);
}
#define cleanup_elf_image __attribute__((cleanup(cleanup_elf_imagep)))
