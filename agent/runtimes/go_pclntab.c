/* SPDX-License-Identifier: Apache-2.0 */
#include "go_pclntab.h"

#include <errno.h>
#include <string.h>

#define HEADER_BYTES 72u
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u
#define POINTER_BYTES 8u
#define PIECE_BYTES 16384u
#define ENTRY_BYTES 8u /* of the table: two u32 */

static uint32_t get32(const uint8_t *p) {
        return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

static uint64_t get64(const uint8_t *p) {
        return get32(p) | (uint64_t) get32(p + 4) << 32;
}

/* --- the table --- */

static bool is_header(const uint8_t *p, bool is_arm64) {
        uint32_t magic = get32(p);

        return (magic == MAGIC_1_18 || magic == MAGIC_1_20) && p[4] == 0 && p[5] == 0 &&
               p[6] == (is_arm64 ? 4 : 1) && p[7] == POINTER_BYTES;
}

int go_pclntab_parse(struct go_bytes bytes, bool is_arm64, struct go_pclntab *ret_table) {
        struct go_pclntab table = {.bytes = bytes};
        uint8_t header[HEADER_BYTES];
        int r;

        if (bytes.size < HEADER_BYTES)
                return -ENOEXEC;
        r = bytes.read(bytes.from, 0, header, sizeof(header));
        if (r < 0)
                return r;
        if (!is_header(header, is_arm64))
                return -ENOEXEC;
        table.functions = get64(header + 8);
        table.names_offset = get64(header + 32);
        table.names_end = get64(header + 40);
        table.table_offset = get64(header + 64);
        if (table.functions == 0 || table.functions > GO_FUNCTIONS_MAX ||
            table.names_offset < HEADER_BYTES || table.names_end < table.names_offset ||
            table.table_offset < table.names_end || table.table_offset > bytes.size ||
            table.functions * ENTRY_BYTES > bytes.size - table.table_offset)
                return -ENOEXEC;
        *ret_table = table;
        return 0;
}

/* What was read last: functions lie one behind the other, so most reads are answered from here. */
struct window {
        const struct go_bytes *bytes;
        uint64_t start;
        size_t length;
        uint8_t data[PIECE_BYTES];
};

static int window_get(struct window *window, uint64_t offset, size_t length, const uint8_t **ret_data) {
        const struct go_bytes *bytes = window->bytes;

        if (offset > bytes->size || length > bytes->size - offset)
                return -ERANGE;
        if (offset < window->start || offset + length > window->start + window->length) {
                uint64_t rest = bytes->size - offset;
                size_t n = rest < sizeof(window->data) ? (size_t) rest : sizeof(window->data);
                int r = bytes->read(bytes->from, offset, window->data, n);

                window->length = 0;
                if (r < 0)
                        return r;
                window->start = offset;
                window->length = n;
        }
        *ret_data = window->data + (offset - window->start);
        return 0;
}

/* Offset of a whole name among the names. 1, 0, negative errno. */
static int find_name(const struct go_pclntab *table, const char *name, uint32_t *ret_offset) {
        struct window window = {.bytes = &table->bytes};
        size_t length = strlen(name) + 1; /* with its NUL; one stands before it as well */
        uint64_t at = table->names_offset;

        while (at < table->names_end && table->names_end - at >= length) {
                uint64_t rest = table->names_end - at;
                size_t n = rest < PIECE_BYTES ? (size_t) rest : PIECE_BYTES;
                const uint8_t *data, *found;
                int r = window_get(&window, at, n, &data);

                if (r < 0)
                        return r;
                found = memmem(data, n, name, length);
                if (found && (found == data ? at == table->names_offset : found[-1] == '\0')) {
                        at += (uint64_t) (found - data) - table->names_offset;
                        if (at > INT32_MAX)
                                return -ERANGE;
                        *ret_offset = (uint32_t) at;
                        return 1;
                }
                /* One byte more than a name is looked at again, so that what stands before it is seen; past a false hit, too. */
                at += found && found > data ? (uint64_t) (found - data)
                      : found               ? 1
                      : n > length          ? n - length
                                            : n;
        }
        return 0;
}

int go_pclntab_function(const struct go_pclntab *table, const char *name, uint32_t *ret_offset) {
        struct window entries = {.bytes = &table->bytes}, functions = {.bytes = &table->bytes};
        uint32_t wanted;
        int r = find_name(table, name, &wanted);

        if (r <= 0)
                return r;
        for (uint64_t i = 0; i < table->functions; i++) {
                const uint8_t *entry, *function;

                r = window_get(&entries, table->table_offset + i * ENTRY_BYTES, ENTRY_BYTES, &entry);
                if (r < 0)
                        return r;
                r = window_get(&functions, table->table_offset + get32(entry + 4), ENTRY_BYTES, &function);
                if (r < 0)
                        return r;
                if (get32(function + 4) != wanted)
                        continue;
                *ret_offset = get32(entry);
                return 1;
        }
        return 0;
}

/* --- where it is --- */

static int search(const struct elf_image *image, const struct elf_segment *segment, uint64_t *ret_address) {
        uint64_t size = segment->file_size < ELF_SECTION_MAX ? segment->file_size : ELF_SECTION_MAX;
        uint8_t piece[PIECE_BYTES];

        for (uint64_t at = -segment->address % POINTER_BYTES; at < size; at += sizeof(piece)) {
                size_t length = size - at < sizeof(piece) ? (size_t) (size - at) : sizeof(piece);
                int r = elf_image_read(image, segment->offset + at, piece, length);

                if (r < 0)
                        return r;
                for (size_t i = 0; i + POINTER_BYTES <= length; i += POINTER_BYTES)
                        if (is_header(piece + i, elf_image_is_arm64(image))) {
                                *ret_address = segment->address + at + i;
                                return 1;
                        }
        }
        return 0;
}

int go_pclntab_find(const struct elf_image *image, uint64_t *ret_address, uint64_t *ret_size) {
        static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
        const struct elf_segment *segments;
        struct elf_section section;
        size_t count;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (elf_image_section(image, names[i], &section) > 0 && section.has_data) {
                        *ret_address = section.address;
                        *ret_size = section.size;
                        return 1;
                }
        /* The system's linker puts that of a PIE into .data.rel.ro, without a section of its own. */
        segments = elf_image_segments(image, &count);
        for (size_t i = 0; i < count; i++) {
                if (!segments[i].readable || segments[i].executable)
                        continue;
                int r = search(image, &segments[i], ret_address);
                if (r < 0)
                        return r;
                if (r > 0) {
                        *ret_size = segments[i].file_size - (*ret_address - segments[i].address);
                        return 1;
                }
        }
        return 0;
}

/* --- code --- */

/* mov r32, [rip + disp32] */
static int global_of_amd64(const uint8_t *code, size_t length, uint64_t address,
                           bool (*is_data)(uint64_t, const void *), const void *data, uint64_t *ret_target) {
        for (size_t i = 0; i + 6 <= length; i++) {
                if (code[i] != 0x8b || (code[i + 1] & 0xc7) != 0x05)
                        continue;
                uint64_t target = address + i + 6 + (uint64_t) (int64_t) (int32_t) get32(code + i + 2);

                if (target % 4 == 0 && is_data(target, data)) {
                        *ret_target = target;
                        return 1;
                }
        }
        return 0;
}

/* adrp, mostly add, then ldr or ldrsw of 4 bytes: each register holds what the first two have made. */
static int global_of_arm64(const uint8_t *code, size_t length, uint64_t address,
                           bool (*is_data)(uint64_t, const void *), const void *data, uint64_t *ret_target) {
        uint64_t values[32];
        uint32_t is_set = 0;

        for (size_t i = 0; i + 4 <= length; i += 4) {
                uint32_t word = get32(code + i), to = word & 31, from = word >> 5 & 31,
                         immediate = word >> 10 & 0xfff;
                bool from_set = is_set >> from & 1;

                if ((word & 0x9f000000) == 0x90000000) {
                        uint64_t pages = (uint64_t) (word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);

                        if (pages & 1u << 20)
                                pages |= ~UINT64_C(0) << 21;
                        values[to] = ((address + i) & ~UINT64_C(4095)) + (pages << 12);
                        is_set |= 1u << to;
                } else if ((word & 0xffc00000) == 0x91000000 && from_set) {
                        values[to] = values[from] + immediate;
                        is_set |= 1u << to;
                } else if (((word & 0xffc00000) == 0xb9800000 || (word & 0xffc00000) == 0xb9400000) &&
                           from_set && is_data(values[from] + immediate * UINT64_C(4), data)) {
                        *ret_target = values[from] + immediate * UINT64_C(4);
                        return 1;
                }
        }
        return 0;
}

int go_code_global(const uint8_t *code, size_t length, uint64_t address, bool is_arm64,
                   bool (*is_data)(uint64_t address, const void *data), const void *data,
                   uint64_t *ret_target) {
        return (is_arm64 ? global_of_arm64 : global_of_amd64)(code, length, address, is_data, data,
                                                              ret_target);
}
