/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256

void text_init(struct text *text, size_t max) {
        *text = (struct text){.max = max};
}

void text_release(struct text *text) {
        free(text->data);
        *text = (struct text){.max = text->max};
}

void text_clear(struct text *text) {
        text->length = 0;
        text->cut = false;
        if (text->data)
                text->data[0] = '\0';
}

const char *text_string(const struct text *text) {
        return text->data ? text->data : "";
}

/* Room for @more bytes and the NUL; gives how many of them may be added. */
static size_t reserve(struct text *text, size_t more) {
        size_t left = text->max - text->length, need, room;
        char *data;

        if (more > left)
                more = left;
        need = text->length + more + 1;
        if (need <= text->room)
                return more;
        room = text->room ? text->room : ROOM_FIRST;
        while (room < need)
                room = room > SIZE_MAX / 2 ? need : room * 2;
        if (text->max < SIZE_MAX && room > text->max + 1)
                room = text->max + 1;
        data = realloc(text->data, room);
        if (!data)
                return 0;
        if (!text->data)
                data[0] = '\0';
        text->data = data;
        text->room = room;
        return more;
}

/* Cuts back to the last whole character: called only when the end is not where the writer wanted it. */
static void drop_half_character(struct text *text, size_t from) {
        size_t start = text->length;

        while (start > from && text->length - start < 4 &&
               ((unsigned char) text->data[start - 1] & 0xc0) == 0x80)
                start--;
        if (start > from && (unsigned char) text->data[start - 1] >= 0xc0)
                text->length = start - 1;
        text->data[text->length] = '\0';
}

void text_add_n(struct text *text, const char *bytes, size_t length) {
        size_t from = text->length, n;

        /* What follows a cut would make a sentence nobody wrote. */
        if (text->cut || length == 0)
                return;
        n = reserve(text, length);
        text->cut = n < length;
        if (!text->data)
                return;
        memcpy(text->data + from, bytes, n);
        text->length += n;
        text->data[text->length] = '\0';
        if (text->cut)
                drop_half_character(text, from);
}

void text_add(struct text *text, const char *format, ...) {
        size_t from = text->length, room = text->data ? text->room - from : 0, n;
        va_list arguments;
        int length;

        if (text->cut)
                return;
        va_start(arguments, format);
        length = vsnprintf(text->data ? text->data + from : NULL, room, format, arguments);
        va_end(arguments);
        if (length < 0) {
                text->cut = true;
                length = 0;
        }
        n = reserve(text, (size_t) length);
        text->cut |= n < (size_t) length;
        if (!text->data)
                return;
        if ((size_t) length >= room && n > 0) {
                va_start(arguments, format);
                (void) vsnprintf(text->data + from, n + 1, format, arguments);
                va_end(arguments);
        }
        text->length += n;
        text->data[text->length] = '\0';
        if (text->cut)
                drop_half_character(text, from);
}

struct range {
        uint32_t first, last;
};

/* Sorted. Characters that show nothing, move the cursor or turn the reading direction, and those whose look is unknown. */
static const struct range unprintable[] = {
                {0x00000, 0x0001f},  {0x0007f, 0x000a0}, /* controls, no-break space */
                {0x000ad, 0x000ad},                      /* soft hyphen */
                {0x00300, 0x0036f}, /* combining marks: any number of them stack on one cell */
                {0x0061c, 0x0061c}, /* Arabic letter mark */
                {0x0115f, 0x01160}, /* Hangul fillers */
                {0x01680, 0x01680}, /* blanks that are not U+0020 */
                {0x017b4, 0x017b5},  {0x0180b, 0x0180f}, /* invisible vowels, Mongolian selectors */
                {0x01ab0, 0x01aff},  {0x01dc0, 0x01dff}, /* combining marks */
                {0x02000, 0x0200f},                      /* blanks, zero-width, direction marks */
                {0x02028, 0x0202f},                      /* line ends, direction embeddings */
                {0x0205f, 0x0206f},                      /* invisible operators, direction isolates */
                {0x020d0, 0x020ff},                      /* combining marks */
                {0x02800, 0x02800},                      /* empty braille cell */
                {0x03000, 0x03000},  {0x03164, 0x03164}, /* wide blank, filler */
                {0x0d800, 0x0f8ff},                      /* surrogates, private use */
                {0x0fdd0, 0x0fdef},                      /* not characters */
                {0x0fe00, 0x0fe0f},  {0x0fe20, 0x0fe2f}, /* variation selectors, combining marks */
                {0x0feff, 0x0feff},  {0x0ffa0, 0x0ffa0}, /* byte order mark, filler */
                {0x0fff0, 0x0ffff},                      /* specials */
                {0x13430, 0x1345f},  {0x1bca0, 0x1bca3},
                {0x1d173, 0x1d17a}, /* format controls of old scripts */
                {0x1fffe, 0x1ffff},  {0x2fffe, 0x2ffff},
                {0x3fffe, 0x10ffff}, /* tags, variation selectors, private use, not assigned */
};

/* Sorted. Two columns in a terminal (East Asian wide and full-width, emoji). */
static const struct range wide[] = {
                {0x01100, 0x0115f}, {0x0231a, 0x0231b}, {0x02329, 0x0232a}, {0x023e9, 0x023ec},
                {0x023f0, 0x023f0}, {0x023f3, 0x023f3}, {0x025fd, 0x025fe}, {0x02614, 0x02615},
                {0x02648, 0x02653}, {0x0267f, 0x0267f}, {0x02693, 0x02693}, {0x026a1, 0x026a1},
                {0x026aa, 0x026ab}, {0x026bd, 0x026be}, {0x026c4, 0x026c5}, {0x026ce, 0x026ce},
                {0x026d4, 0x026d4}, {0x026ea, 0x026ea}, {0x026f2, 0x026f3}, {0x026f5, 0x026f5},
                {0x026fa, 0x026fa}, {0x026fd, 0x026fd}, {0x02705, 0x02705}, {0x0270a, 0x0270b},
                {0x02728, 0x02728}, {0x0274c, 0x0274c}, {0x0274e, 0x0274e}, {0x02753, 0x02755},
                {0x02757, 0x02757}, {0x02795, 0x02797}, {0x027b0, 0x027b0}, {0x027bf, 0x027bf},
                {0x02b1b, 0x02b1c}, {0x02b50, 0x02b50}, {0x02b55, 0x02b55}, {0x02e80, 0x0303e},
                {0x03041, 0x033ff}, {0x03400, 0x04dbf}, {0x04e00, 0x0a4cf}, {0x0a960, 0x0a97f},
                {0x0ac00, 0x0d7a3}, {0x0f900, 0x0faff}, {0x0fe30, 0x0fe6f}, {0x0ff00, 0x0ff60},
                {0x0ffe0, 0x0ffe6}, {0x16fe0, 0x18cff}, {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004},
                {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
                {0x1f32d, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff},
                {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

static bool is_in(uint32_t character, const struct range *ranges, size_t count) {
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (character > ranges[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < count && character >= ranges[low].first;
}

/* Bytes of the UTF-8 character at @s (shortest form, no surrogate, at most U+10FFFF), 0 if it is not one. */
static size_t decode(const unsigned char *s, size_t length, uint32_t *ret_character) {
        static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
        uint32_t character = s[0];
        size_t bytes;

        if (character < 0x80) {
                *ret_character = character;
                return 1;
        }
        bytes = character >= 0xf0 ? 4 : character >= 0xe0 ? 3 : 2;
        if (character < 0xc2 || character > 0xf4 || bytes > length)
                return 0;
        character &= 0x7fU >> bytes;
        for (size_t i = 1; i < bytes; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                character = character << 6 | (s[i] & 0x3f);
        }
        if (character < lowest[bytes] || character > 0x10ffff ||
            (character >= 0xd800 && character <= 0xdfff))
                return 0;
        *ret_character = character;
        return bytes;
}

char *text_escape(char *out, size_t room, const char *foreign, size_t length) {
        static const char hex[] = "0123456789abcdef";
        const unsigned char *s = (const unsigned char *) foreign;
        size_t used = 0, bytes;

        if (room == 0)
                return out;
        for (size_t i = 0; i < length; i += bytes) {
                uint32_t character;
                bool plain;
                size_t need;

                bytes = decode(s + i, length - i, &character);
                plain = bytes > 0 &&
                        !is_in(character, unprintable, sizeof(unprintable) / sizeof(unprintable[0]));
                if (bytes == 0)
                        bytes = 1;
                if (plain)
                        need = s[i] == '\\' ? 2 : bytes;
                else
                        need = 4 * bytes;
                if (need > room - 1 - used)
                        break;
                if (plain && s[i] == '\\')
                        out[used++] = '\\';
                for (size_t k = i; k < i + bytes; k++) {
                        if (plain) {
                                out[used++] = (char) s[k];
                                continue;
                        }
                        out[used++] = '\\';
                        out[used++] = 'x';
                        out[used++] = hex[s[k] >> 4];
                        out[used++] = hex[s[k] & 0xf];
                }
        }
        out[used] = '\0';
        return out;
}

size_t text_columns(const char *text) {
        const unsigned char *s = (const unsigned char *) text;
        size_t length = strlen(text), columns = 0, bytes;

        for (size_t i = 0; i < length; i += bytes) {
                uint32_t character = 0;

                bytes = decode(s + i, length - i, &character);
                if (bytes == 0)
                        bytes = 1;
                columns += is_in(character, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
        }
        return columns;
}
