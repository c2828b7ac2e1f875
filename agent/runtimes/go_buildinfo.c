/* SPDX-License-Identifier: Apache-2.0 */
#include "go_buildinfo.h"

#include <errno.h>
#include <string.h>

#include "../base/absent.h"
#include "../base/number.h"

#define HEADER_BYTES 32u
#define FLAG_INLINE 2u
#define MARKER_BYTES 16u /* around the modules' text */
#define ALIGNMENT 16u
#define LINE_MAX_BYTES 4096u
#define AUTOMAXPROCS "go.uber.org/automaxprocs"

static const uint8_t mark[] = "\xff Go buildinf:";
#define MARK_BYTES (sizeof(mark) - 1)

/* A length as a varint, then so many bytes. false: not all of it is there. */
static bool next_text(const uint8_t **data, const uint8_t *end, const char **ret_text, size_t *ret_length) {
        uint64_t length = 0;

        for (unsigned shift = 0; shift < 35; shift += 7) {
                if (*data >= end)
                        return false;
                uint8_t byte = *(*data)++;

                length |= (uint64_t) (byte & 0x7f) << shift;
                if (byte & 0x80)
                        continue;
                if (length > (uint64_t) (end - *data))
                        return false;
                *ret_text = (const char *) *data;
                *ret_length = (size_t) length;
                *data += length;
                return true;
        }
        return false;
}

/* The rest of a line that begins with @word and a tab; NULL: it does not. */
static const char *after(const char *line, const char *word) {
        size_t length = strlen(word);

        return strncmp(line, word, length) == 0 && line[length] == '\t' ? line + length + 1 : NULL;
}

static int take_line(struct arena *arena, const char *line, struct go_build *build) {
        static const char debug[] = "DefaultGODEBUG=";
        const char *rest, **kept = NULL;

        if ((rest = after(line, "path"))) {
                kept = &build->path;
        } else if ((rest = after(line, "dep")) && (rest = after(rest, AUTOMAXPROCS))) {
                kept = &build->automaxprocs;
        } else if ((rest = after(line, "build")) && strncmp(rest, debug, sizeof(debug) - 1) == 0) {
                rest += sizeof(debug) - 1;
                kept = &build->godebug;
        }
        if (!kept)
                return 0;
        *kept = arena_string_n(arena, rest, strcspn(rest, "\t"));
        return *kept ? 0 : -ENOMEM;
}

static int take_lines(const char *text, size_t length, struct arena *arena, struct go_build *build) {
        char line[LINE_MAX_BYTES];

        while (length > 0) {
                const char *newline = memchr(text, '\n', length);
                size_t n = newline ? (size_t) (newline - text) : length;
                int r = 0;

                if (n < sizeof(line)) {
                        memcpy(line, text, n);
                        line[n] = '\0';
                        r = take_line(arena, line, build);
                }
                if (r < 0)
                        return r;
                n += newline != NULL;
                text += n;
                length -= n;
        }
        return 0;
}

int go_build_parse(const uint8_t *data, size_t length, struct arena *arena, struct go_build *ret_build) {
        const uint8_t *p = data + HEADER_BYTES, *end = data + length;
        struct go_build build = {0};
        const char *text;
        size_t n;
        int r = 0;

        if (length < HEADER_BYTES || memcmp(data, mark, MARK_BYTES) != 0 || !(data[15] & FLAG_INLINE) ||
            !next_text(&p, end, &text, &n) || n == 0)
                return -ENOEXEC;
        build.version = arena_string_n(arena, text, strnlen(text, n));
        if (!build.version)
                return -ENOMEM;
        /* A program built without modules has no text of them. */
        if (next_text(&p, end, &text, &n) && n > 2 * MARKER_BYTES)
                r = take_lines(text + MARKER_BYTES, n - 2 * MARKER_BYTES, arena, &build);
        if (r < 0)
                return r;
        *ret_build = build;
        return 0;
}

/* At @offset of the file, whatever of it is there. */
static int read_at(const struct elf_image *image, uint64_t offset, struct arena *arena,
                   struct go_build *ret_build) {
        uint64_t size = elf_image_size(image);
        size_t length = offset < size ? (size_t) (size - offset < GO_BUILD_MAX ? size - offset
                                                                               : GO_BUILD_MAX)
                                      : 0;
        cleanup_free uint8_t *data = malloc(length + 1);
        int r;

        if (!data)
                return -ENOMEM;
        r = elf_image_read(image, offset, data, length);
        return r < 0 ? r : go_build_parse(data, length, arena, ret_build);
}

/* Searches a segment in pieces. 1 and *ret_offset; 0: it is not there; negative errno. */
static int search(const struct elf_image *image, const struct elf_segment *segment, uint64_t *ret_offset) {
        uint64_t size = segment->file_size < GO_BUILD_SCAN_MAX ? segment->file_size : GO_BUILD_SCAN_MAX;
        uint8_t piece[16384];

        /* By address: that is what is aligned. */
        for (uint64_t at = -segment->address % ALIGNMENT; at < size; at += sizeof(piece)) {
                size_t length = size - at < sizeof(piece) ? (size_t) (size - at) : sizeof(piece);
                int r = elf_image_read(image, segment->offset + at, piece, length);

                if (r < 0)
                        return r;
                for (size_t i = 0; i + ALIGNMENT <= length; i += ALIGNMENT)
                        if (memcmp(piece + i, mark, MARK_BYTES) == 0) {
                                *ret_offset = segment->offset + at + i;
                                return 1;
                        }
        }
        return 0;
}

int go_build_read(const struct elf_image *image, struct arena *arena, struct go_build *ret_build) {
        const struct elf_segment *segments;
        struct elf_section section;
        size_t count;

        if (elf_image_section(image, ".go.buildinfo", &section) > 0 && section.has_data)
                return read_at(image, section.offset, arena, ret_build);
        /* Only what is writable: programs that look for the mark have it among their constants. */
        segments = elf_image_segments(image, &count);
        for (size_t i = 0; i < count; i++) {
                uint64_t offset;

                if (!segments[i].writable)
                        continue;
                int r = search(image, &segments[i], &offset);
                if (r > 0)
                        return read_at(image, offset, arena, ret_build);
                return r < 0 ? r : -ENOEXEC;
        }
        return -ENOEXEC;
}

uint64_t go_build_minor(const char *version) {
        const char *found = version ? strstr(version, "go1.") : NULL;
        uint64_t minor;
        size_t digits;

        if (!found)
                return ABSENT;
        found += strlen("go1.");
        digits = strspn(found, "0123456789");
        return number_parse_u64_n(found, digits, &minor) == 0 ? minor : ABSENT;
}

int go_debug_setting(const char *settings, const char *name) {
        size_t length = strlen(name);
        int value = -1;

        for (const char *p = settings; p && *p;) {
                size_t n = strcspn(p, ",");

                if (n == length + 2 && strncmp(p, name, length) == 0 && p[length] == '=' &&
                    (p[length + 1] == '0' || p[length + 1] == '1'))
                        value = p[length + 1] - '0';
                p += n;
                p += *p == ',';
        }
        return value;
}
