/* SPDX-License-Identifier: Apache-2.0 */
#include "jvm_flags.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf_image.h"

#define ENTRIES_MAX 16384u /* of a table; release 21 has some 2,500 */
#define ENTRY_MAX 128u     /* bytes of an entry, and of a flag */
#define FLAGS_MAX 8192u
#define NAME_MAX_BYTES 64u
#define ORIGIN_MASK 0xfu

/* Of process_memo.values. A JVM executed anew in the same process has its library elsewhere, so the memo says where that was. */
enum {
        MEMO_LIBRARY,
        MEMO_FLAGS,
        MEMO_LAYOUT,  /* size, offset of the value's address, offset of the origin: 16 bits each */
        MEMO_INDEXES, /* of each flag wanted, plus 1: 16 bits each; 0: this release has none */
};
#define INDEXES_EACH 4u

static const char *const flag_names[JVM_FLAG_COUNT] = {
                [JVM_ACTIVE_PROCESSOR_COUNT] = "ActiveProcessorCount",
                [JVM_PARALLEL_GC_THREADS] = "ParallelGCThreads",
                [JVM_USE_CONTAINER_SUPPORT] = "UseContainerSupport",
                [JVM_USE_G1_GC] = "UseG1GC",
                [JVM_USE_PARALLEL_GC] = "UseParallelGC",
};

struct library {
        struct process *process;
        struct elf_image *image;
        uint64_t bias;
};

/* What the tables say of flags. 0: not found. */
struct layout {
        uint64_t flags, flags_count, flag_size, version;
        uint64_t name_offset, value_offset, origin_offset;
        bool has_name, has_value, has_origin;
};

/* The 64-bit variable @name of the library, as it is in memory. */
static int read_variable(const struct library *library, const char *name, uint64_t *ret_value) {
        uint64_t address;
        int r = elf_image_symbol(library->image, name, &address, NULL);

        if (r <= 0)
                return r < 0 ? r : -ENODATA;
        return process_read_memory(library->process, address + library->bias, ret_value, sizeof(*ret_value));
}

static uint64_t field(const unsigned char *entry, uint64_t offset) {
        uint64_t value;

        memcpy(&value, entry + offset, sizeof(value));
        return value;
}

struct table {
        uint64_t at, stride;
        uint64_t offsets[5];
        const char *last_text; /* of the name at @last: neighbours share theirs */
        uint64_t last;
};

/* @names: of the table, of its stride, then of the offsets in an entry. */
static int open_table(const struct library *library, const char *const *names, size_t count,
                      struct table *table) {
        int r = read_variable(library, names[0], &table->at);

        if (r >= 0)
                r = read_variable(library, names[1], &table->stride);
        for (size_t i = 2; r >= 0 && i < count; i++) {
                r = read_variable(library, names[i], &table->offsets[i - 2]);
                if (r >= 0 && table->offsets[i - 2] + sizeof(uint64_t) > ENTRY_MAX)
                        return -ENODATA;
        }
        if (r < 0)
                return r;
        return table->at == 0 || table->stride == 0 || table->stride > ENTRY_MAX ? -ENODATA : 0;
}

/* 1; 0: the end. *ret_type: the type that entry @index is about. */
static int next_entry(const struct library *library, struct table *table, size_t index,
                      unsigned char entry[static ENTRY_MAX], const char **ret_type) {
        uint64_t name;
        int r = process_read_memory(library->process, table->at + index * table->stride, entry,
                                    table->stride);

        if (r < 0)
                return r;
        name = field(entry, table->offsets[0]);
        if (name == 0)
                return 0;
        if (name != table->last) {
                r = process_read_string(library->process, name, NAME_MAX_BYTES, &table->last_text);
                if (r < 0)
                        return r;
                table->last = name;
        }
        *ret_type = table->last_text;
        return 1;
}

static bool is_flag_type(const char *type) {
        /* "Flag" until release 10. */
        return strcmp(type, "JVMFlag") == 0 || strcmp(type, "Flag") == 0;
}

static int take_field(const struct library *library, const struct table *table, const unsigned char *entry,
                      bool is_flag, struct layout *layout) {
        uint64_t offset = field(entry, table->offsets[2]), address = field(entry, table->offsets[3]);
        const char *name;
        int r = process_read_string(library->process, field(entry, table->offsets[1]), NAME_MAX_BYTES,
                                    &name);

        if (r < 0)
                return r;
        if (!is_flag)
                return strcmp(name, "_s_vm_release") == 0
                                       ? process_read_memory(library->process, address, &layout->version,
                                                             sizeof(layout->version))
                                       : 0;
        if (strcmp(name, "flags") == 0)
                return process_read_memory(library->process, address, &layout->flags, sizeof(layout->flags));
        if (strcmp(name, "numFlags") == 0)
                return process_read_memory(library->process, address, &layout->flags_count,
                                           sizeof(layout->flags_count));
        if (strcmp(name, "_name") == 0) {
                layout->name_offset = offset;
                layout->has_name = true;
        } else if (strcmp(name, "_addr") == 0) {
                layout->value_offset = offset;
                layout->has_value = true;
        } else if (strcmp(name, "_flags") == 0) {
                layout->origin_offset = offset;
                layout->has_origin = true;
        }
        return 0;
}

static int read_structs(const struct library *library, struct layout *layout) {
        static const char *const names[] = {
                        "gHotSpotVMStructs",
                        "gHotSpotVMStructEntryArrayStride",
                        "gHotSpotVMStructEntryTypeNameOffset",
                        "gHotSpotVMStructEntryFieldNameOffset",
                        "gHotSpotVMStructEntryOffsetOffset",
                        "gHotSpotVMStructEntryAddressOffset",
        };
        unsigned char entry[ENTRY_MAX] = {0};
        struct table table = {0};
        const char *type;
        int r = open_table(library, names, ELEMENTS(names), &table);

        for (size_t i = 0; r >= 0 && i < ENTRIES_MAX; i++) {
                r = next_entry(library, &table, i, entry, &type);
                if (r <= 0)
                        break;
                if (is_flag_type(type) || strcmp(type, "Abstract_VM_Version") == 0)
                        r = take_field(library, &table, entry, is_flag_type(type), layout);
        }
        return r < 0 ? r : 0;
}

static int read_flag_size(const struct library *library, struct layout *layout) {
        static const char *const names[] = {
                        "gHotSpotVMTypes",
                        "gHotSpotVMTypeEntryArrayStride",
                        "gHotSpotVMTypeEntryTypeNameOffset",
                        "gHotSpotVMTypeEntrySizeOffset",
        };
        unsigned char entry[ENTRY_MAX] = {0};
        struct table table = {0};
        const char *type;
        int r = open_table(library, names, ELEMENTS(names), &table);

        for (size_t i = 0; r >= 0 && i < ENTRIES_MAX && layout->flag_size == 0; i++) {
                r = next_entry(library, &table, i, entry, &type);
                if (r <= 0)
                        break;
                if (is_flag_type(type))
                        layout->flag_size = field(entry, table.offsets[1]);
        }
        return r < 0 ? r : 0;
}

static bool fits(const struct layout *layout) {
        return layout->has_name && layout->has_value && layout->has_origin && layout->flags > 0 &&
               layout->flags_count <= FLAGS_MAX && layout->flag_size >= sizeof(uint64_t) &&
               layout->flag_size <= ENTRY_MAX &&
               layout->name_offset <= layout->flag_size - sizeof(uint64_t) &&
               layout->value_offset <= layout->flag_size - sizeof(uint64_t) &&
               layout->origin_offset <= layout->flag_size - sizeof(uint32_t);
}

/* Where the flags wanted are, into the memo: the search costs some thousand reads, and is done once for a process. */
static int locate(const struct library *library, const struct layout *layout, struct process_memo *memo) {
        unsigned char flag[ENTRY_MAX] = {0};
        bool has_threads = false;

        for (size_t i = 0; i < layout->flags_count; i++) {
                const char *name;
                int r = process_read_memory(library->process, layout->flags + i * layout->flag_size, flag,
                                            layout->flag_size);

                if (r < 0)
                        return r;
                /* The last one of the table has no name. */
                if (field(flag, layout->name_offset) == 0)
                        continue;
                r = process_read_string(library->process, field(flag, layout->name_offset), NAME_MAX_BYTES,
                                        &name);
                if (r < 0)
                        return r;
                for (size_t k = 0; k < JVM_FLAG_COUNT; k++) {
                        if (strcmp(name, flag_names[k]) != 0)
                                continue;
                        memo->values[MEMO_INDEXES + k / INDEXES_EACH] |= (uint64_t) (i + 1)
                                                                         << 16 * (k % INDEXES_EACH);
                        has_threads = has_threads || k == JVM_PARALLEL_GC_THREADS;
                }
        }
        memo->values[MEMO_FLAGS] = layout->flags;
        memo->values[MEMO_LAYOUT] =
                        layout->flag_size | layout->value_offset << 16 | layout->origin_offset << 32;
        return has_threads ? 0 : -ENODATA;
}

static int search(struct process *process, const struct process_mapping *mapping,
                  struct process_memo *memo) {
        cleanup_elf_image struct elf_image *image = NULL;
        struct library library = {.process = process};
        struct layout layout = {0};
        const char *version = "";
        int r = process_open_image(process, mapping->path, &image);

        if (r < 0)
                return r;
        library.image = image;
        r = process_bias(process, image, mapping->path, &library.bias);
        if (r >= 0)
                r = read_structs(&library, &layout);
        if (r >= 0)
                r = read_flag_size(&library, &layout);
        if (r < 0)
                return r;
        if (!fits(&layout))
                return -ENODATA;
        r = locate(&library, &layout, memo);
        if (r < 0)
                return r;
        if (layout.version > 0 &&
            process_read_string(process, layout.version, sizeof(memo->text) - 1, &version) >= 0)
                (void) snprintf(memo->text, sizeof(memo->text), "%s", version);
        return 0;
}

/* The low 32 bits of a number of any width: none of the flags wanted is ever larger. */
static int read_flag(struct process *process, const struct process_memo *memo, enum jvm_flag which,
                     struct jvm_flags *flags) {
        bool is_number = which == JVM_ACTIVE_PROCESSOR_COUNT || which == JVM_PARALLEL_GC_THREADS;
        uint64_t layout = memo->values[MEMO_LAYOUT], at, address;
        uint16_t index = (uint16_t) (memo->values[MEMO_INDEXES + which / INDEXES_EACH] >>
                                     16 * (which % INDEXES_EACH));
        int32_t value = 0;
        uint32_t origin;
        int r;

        if (index == 0)
                return 0;
        at = memo->values[MEMO_FLAGS] + (uint64_t) (index - 1) * (uint16_t) layout;
        r = process_read_memory(process, at + (uint16_t) (layout >> 16), &address, sizeof(address));
        if (r >= 0)
                r = process_read_memory(process, address, &value, is_number ? sizeof(value) : 1);
        if (r >= 0)
                r = process_read_memory(process, at + (uint16_t) (layout >> 32), &origin, sizeof(origin));
        if (r < 0)
                return r;
        flags->flags[which].exists = true;
        flags->flags[which].value = value;
        flags->flags[which].origin = origin & ORIGIN_MASK;
        return 0;
}

static unsigned digits_at(const char **text) {
        unsigned value = 0;

        for (; isdigit((unsigned char) **text); (*text)++)
                value = value < 100000 ? 10 * value + (unsigned) (**text - '0') : value;
        return value;
}

/*
 * "17.0.21+9-Debian-1", "25+36"; release 8 gives HotSpot's own number instead, "25.392-b08", whose second part is the update. Only the digits
 * and dots in front are kept.
 */
static int parse_version(struct arena *arena, const char *text, struct jvm_flags *flags) {
        const char *p = text;
        size_t length = strspn(text, "0123456789.");

        if (length == 0)
                return 0;
        flags->major = digits_at(&p);
        if (strncmp(text + length, "-b", 2) == 0 && flags->major == 25 && *p == '.') {
                p++;
                flags->major = 8;
                flags->update = digits_at(&p);
                flags->version = arena_format(arena, "8u%u", flags->update);
        } else {
                for (unsigned i = 0; i < 2 && *p == '.'; i++) {
                        p++;
                        flags->update = digits_at(&p);
                }
                flags->version = arena_string_n(arena, text, length);
        }
        return flags->version ? 0 : -ENOMEM;
}

int jvm_flags_read(struct process *process, const struct process_mapping *library, struct arena *arena,
                   struct jvm_flags *ret_flags) {
        struct process_memo *memo = process_memo(process, "jvm");
        struct jvm_flags flags = {0};
        int r = 0;

        if (!memo->valid || memo->values[MEMO_LIBRARY] != library->start) {
                struct process_memo found = {.values[MEMO_LIBRARY] = library->start};

                r = search(process, library, &found);
                /* Not remembered: one that has only begun gets its tables in a moment. */
                if (r < 0)
                        return r;
                found.valid = true;
                *memo = found;
        }
        for (unsigned i = 0; r >= 0 && i < JVM_FLAG_COUNT; i++)
                r = read_flag(process, memo, (enum jvm_flag) i, &flags);
        if (r >= 0)
                r = parse_version(arena, memo->text, &flags);
        if (r < 0)
                return r;
        *ret_flags = flags;
        return 0;
}
