/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_image.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/memory.h"

#define SECTIONS_MAX 4096u
#define PROGRAM_HEADERS_MAX 4096u
#define SYMBOLS_MAX (4u << 20)

struct elf_image {
        int fd;
        Elf *elf;
        uint64_t size;
        bool is_arm64;
        struct elf_segment segments[ELF_SEGMENTS_MAX];
        size_t segments_count;
};

static bool lies_within(uint64_t offset, uint64_t length, uint64_t size) {
        return offset <= size && length <= size - offset;
}

static int read_segments(struct elf_image *image) {
        size_t count;

        if (elf_getphdrnum(image->elf, &count) != 0 || count > PROGRAM_HEADERS_MAX)
                return -ENOEXEC;
        for (size_t i = 0; i < count && image->segments_count < ELF_SEGMENTS_MAX; i++) {
                GElf_Phdr header;

                if (!gelf_getphdr(image->elf, (int) i, &header))
                        return -ENOEXEC;
                if (header.p_type != PT_LOAD)
                        continue;
                image->segments[image->segments_count++] = (struct elf_segment){
                                .offset = header.p_offset,
                                .address = header.p_vaddr,
                                .file_size = header.p_filesz,
                                .memory_size = header.p_memsz,
                                .readable = header.p_flags & PF_R,
                                .writable = header.p_flags & PF_W,
                                .executable = header.p_flags & PF_X,
                };
        }
        return 0;
}

int elf_image_open_take(int fd, struct elf_image **ret_image) {
        struct elf_image cleanup_elf_image *image = calloc(1, sizeof(*image));
        struct stat st;
        GElf_Ehdr header;

        if (!image) {
                close(fd);
                return -ENOMEM;
        }
        image->fd = fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOEXEC;
        image->size = (uint64_t) st.st_size;
        (void) elf_version(EV_CURRENT);
        image->elf = elf_begin(fd, ELF_C_READ, NULL);
        if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || gelf_getclass(image->elf) != ELFCLASS64 ||
            !gelf_getehdr(image->elf, &header) || header.e_ident[EI_DATA] != ELFDATA2LSB ||
            (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
                return -ENOEXEC;
        image->is_arm64 = header.e_machine == EM_AARCH64;
        int r = read_segments(image);
        if (r < 0)
                return r;
        *ret_image = take_ptr(image);
        return 0;
}

void elf_image_free(struct elf_image *image) {
        if (!image)
                return;
        (void) elf_end(image->elf);
        cleanup_fdp(&image->fd);
        free(image);
}

bool elf_image_is_arm64(const struct elf_image *image) {
        return image->is_arm64;
}

uint64_t elf_image_size(const struct elf_image *image) {
        return image->size;
}

const struct elf_segment *elf_image_segments(const struct elf_image *image, size_t *ret_count) {
        *ret_count = image->segments_count;
        return image->segments;
}

/* libelf reads a table of strings as a whole: not one of a size that a sparse file gives away. */
static bool is_readable(const struct elf_image *image, size_t index) {
        Elf_Scn *section = elf_getscn(image->elf, index);
        GElf_Shdr header;

        return section && gelf_getshdr(section, &header) && header.sh_size <= ELF_SECTION_MAX &&
               lies_within(header.sh_offset, header.sh_size, image->size);
}

static bool has_sections(const struct elf_image *image) {
        size_t count;

        return elf_getshdrnum(image->elf, &count) == 0 && count <= SECTIONS_MAX;
}

int elf_image_section(const struct elf_image *image, const char *name, struct elf_section *ret_section) {
        Elf_Scn *section = NULL;
        size_t names;

        if (!has_sections(image) || elf_getshdrstrndx(image->elf, &names) != 0 || !is_readable(image, names))
                return 0;
        while ((section = elf_nextscn(image->elf, section))) {
                GElf_Shdr header;
                const char *found = gelf_getshdr(section, &header)
                                                    ? elf_strptr(image->elf, names, header.sh_name)
                                                    : NULL;

                if (!found || strcmp(found, name) != 0)
                        continue;
                *ret_section = (struct elf_section){
                                .offset = header.sh_offset,
                                .address = header.sh_addr,
                                .size = header.sh_size,
                                .has_data = header.sh_type != SHT_NOBITS,
                };
                return 1;
        }
        return 0;
}

static int search_table(struct elf_image *image, Elf_Scn *section, const GElf_Shdr *header, const char *name,
                        uint64_t *ret_address, uint64_t *ret_size) {
        Elf_Data *data = is_readable(image, elf_ndxscn(section)) && is_readable(image, header->sh_link)
                                         ? elf_getdata(section, NULL)
                                         : NULL;

        if (!data || header->sh_entsize == 0)
                return -ENOEXEC;
        size_t count = data->d_size / header->sh_entsize;
        for (size_t i = 0; i < count && i < SYMBOLS_MAX; i++) {
                GElf_Sym symbol;
                const char *found;

                if (!gelf_getsym(data, (int) i, &symbol) || symbol.st_shndx == SHN_UNDEF)
                        continue;
                found = elf_strptr(image->elf, header->sh_link, symbol.st_name);
                if (!found || strcmp(found, name) != 0)
                        continue;
                *ret_address = symbol.st_value;
                if (ret_size)
                        *ret_size = symbol.st_size;
                return 1;
        }
        return 0;
}

static int search_tables(struct elf_image *image, GElf_Word type, const char *name, uint64_t *ret_address,
                         uint64_t *ret_size) {
        Elf_Scn *section = NULL;

        while ((section = elf_nextscn(image->elf, section))) {
                GElf_Shdr header;

                if (gelf_getshdr(section, &header) && header.sh_type == type)
                        return search_table(image, section, &header, name, ret_address, ret_size);
        }
        return 0;
}

int elf_image_symbol(struct elf_image *image, const char *name, uint64_t *ret_address, uint64_t *ret_size) {
        int r = has_sections(image) ? search_tables(image, SHT_SYMTAB, name, ret_address, ret_size) : 0;

        if (r == 0 && has_sections(image))
                r = search_tables(image, SHT_DYNSYM, name, ret_address, ret_size);
        return r;
}

int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t length) {
        size_t done = 0;

        if (!lies_within(offset, length, image->size))
                return -ERANGE;
        while (done < length) {
                ssize_t n = pread(image->fd, (char *) buffer + done, length - done, (off_t) (offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -ERANGE; /* cut short since it was opened */
                done += (size_t) n;
        }
        return 0;
}

int elf_image_read_at(const struct elf_image *image, uint64_t address, void *buffer, size_t length) {
        for (size_t i = 0; i < image->segments_count; i++) {
                const struct elf_segment *segment = &image->segments[i];

                if (address < segment->address ||
                    !lies_within(address - segment->address, length, segment->file_size))
                        continue;
                uint64_t offset = segment->offset + (address - segment->address);
                int r = offset < segment->offset ? -ERANGE : elf_image_read(image, offset, buffer, length);
                return r == -ERANGE ? -EFAULT : r;
        }
        return -EFAULT;
}
