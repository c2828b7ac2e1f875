/* SPDX-License-Identifier: Apache-2.0 */
/* ELF images: this very test program, and what is made of it by cutting and changing bytes. */
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../agent/runtimes/elf_image.h"
#include "host_fixture.h"

int elf_marker_function(void);
int elf_marker_function(void) {
        return 4711;
}

static char *program;
static size_t program_length;

static void setup(void) {
        cleanup_file FILE *file = fopen("/proc/self/exe", "re");

        cr_assert(file);
        program = malloc((size_t) 64 << 20);
        cr_assert(program);
        program_length = fread(program, 1, (size_t) 64 << 20, file);
        cr_assert_gt(program_length, sizeof(Elf64_Ehdr));
}

static void teardown(void) {
        free(program);
}

TestSuite(runtimes_elf, .init = setup, .fini = teardown);

static int file_of(const void *data, size_t length) {
        int fd = memfd_create("elf", MFD_CLOEXEC);

        cr_assert(fd >= 0 && write(fd, data, length) == (ssize_t) length);
        return fd;
}

static int open_bytes(const void *data, size_t length, struct elf_image **ret_image) {
        return elf_image_open_take(file_of(data, length), ret_image);
}

Test(runtimes_elf, finds_symbols_sections_and_bytes) {
        cleanup_elf_image struct elf_image *image = NULL;
        const struct elf_segment *segments;
        struct elf_section section;
        uint64_t address, size;
        size_t count;
        unsigned char code[4];

        cr_assert_eq(open_bytes(program, program_length, &image), 0);
        cr_assert_eq(elf_image_symbol(image, "elf_marker_function", &address, &size), 1);
        cr_assert_gt(size, 0);
        cr_assert_eq(elf_image_symbol(image, "elf_marker_functio", &address, NULL), 0);
        cr_assert_eq(elf_image_symbol(image, "elf_marker_function", &address, NULL), 1);
        /* The same bytes as in memory: the code of a function is never relocated on these machines. */
        cr_assert_eq(elf_image_read_at(image, address, code, sizeof(code)), 0);
        cr_assert_eq(memcmp(code, (const void *) elf_marker_function, sizeof(code)), 0);
        cr_assert_eq(elf_image_section(image, ".text", &section), 1);
        cr_assert(section.has_data && address >= section.address &&
                  address < section.address + section.size);
        cr_assert_eq(elf_image_section(image, ".bss", &section), 1);
        cr_assert_not(section.has_data);
        cr_assert_eq(elf_image_section(image, ".no.such", &section), 0);
        segments = elf_image_segments(image, &count);
        cr_assert_geq(count, 2);
        cr_assert(segments[0].readable);
        cr_assert_eq(elf_image_size(image), program_length);
}

Test(runtimes_elf, reads_nothing_that_is_not_there) {
        cleanup_elf_image struct elf_image *image = NULL;
        char buffer[16];

        cr_assert_eq(open_bytes(program, program_length, &image), 0);
        cr_assert_eq(elf_image_read(image, program_length - 16, buffer, 16), 0);
        cr_assert_eq(elf_image_read(image, program_length - 15, buffer, 16), -ERANGE);
        cr_assert_eq(elf_image_read(image, UINT64_MAX - 4, buffer, 16), -ERANGE);
        cr_assert_eq(elf_image_read_at(image, UINT64_MAX - 4, buffer, 16), -EFAULT);
        cr_assert_eq(elf_image_read_at(image, 1, buffer, SIZE_MAX), -EFAULT);
}

Test(runtimes_elf, a_file_cut_short_while_open_is_an_error) {
        cleanup_elf_image struct elf_image *image = NULL;
        int fd = file_of(program, program_length), other = dup(fd);
        uint64_t address;
        char buffer[16];

        cr_assert_eq(elf_image_open_take(fd, &image), 0);
        cr_assert_eq(ftruncate(other, 64), 0);
        cr_assert_eq(elf_image_read(image, program_length - 16, buffer, 16), -ERANGE);
        cr_assert_neq(elf_image_symbol(image, "elf_marker_function", &address, NULL), 1);
        close(other);
}

Test(runtimes_elf, what_is_no_such_file_is_refused) {
        struct elf_image *image = NULL;
        Elf64_Ehdr header;

        cr_expect_eq(open_bytes("", 0, &image), -ENOEXEC);
        cr_expect_eq(open_bytes("#!/bin/sh\n", 10, &image), -ENOEXEC);
        cr_expect_eq(open_bytes(program, sizeof(header) - 1, &image), -ENOEXEC);
        memcpy(&header, program, sizeof(header));
        header.e_machine = EM_RISCV;
        cr_expect_eq(open_bytes(&header, sizeof(header), &image), -ENOEXEC);
        memcpy(&header, program, sizeof(header));
        header.e_ident[EI_CLASS] = ELFCLASS32;
        cr_expect_eq(open_bytes(&header, sizeof(header), &image), -ENOEXEC);
        memcpy(&header, program, sizeof(header));
        header.e_ident[EI_DATA] = ELFDATA2MSB;
        cr_expect_eq(open_bytes(&header, sizeof(header), &image), -ENOEXEC);
        cr_expect_eq(elf_image_open_take(open("/proc/self", O_RDONLY | O_DIRECTORY), &image), -ENOEXEC);
        cr_expect_null(image);
}

Test(runtimes_elf, wild_tables_cost_nothing) {
        Elf64_Ehdr *header = (void *) program;
        Elf64_Shdr *sections = (void *) (program + header->e_shoff);
        struct elf_section section;
        uint64_t address;

        /* Each table in turn claims to be huge, or to lie elsewhere. */
        for (unsigned i = 0; i < header->e_shnum; i++) {
                cleanup_elf_image struct elf_image *image = NULL;
                const Elf64_Shdr kept = sections[i];

                sections[i].sh_size = UINT64_MAX / 2;
                cr_assert_eq(open_bytes(program, program_length, &image), 0, "section %u", i);
                (void) elf_image_symbol(image, "elf_marker_function", &address, NULL);
                (void) elf_image_section(image, ".text", &section);
                elf_image_free(take_ptr(image));
                sections[i].sh_size = kept.sh_size;
                sections[i].sh_offset = UINT64_MAX - 1;
                cr_assert_eq(open_bytes(program, program_length, &image), 0, "section %u", i);
                (void) elf_image_symbol(image, "elf_marker_function", &address, NULL);
                sections[i] = kept;
        }
}
