/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping of foreign text: whatever the bytes and the room, the output is harmless, whole, and can be turned back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void claim(int holds) {
        if (!holds)
                abort();
}

static int hex(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What was escaped, turned back: must be the first bytes of the input. Gives how many bytes it stands for. */
static size_t check_reversible(const char *out, const uint8_t *data, size_t size) {
        size_t at = 0;

        for (const char *p = out; *p; at++) {
                uint8_t byte = (uint8_t) *p;

                claim(byte >= 0x20 && byte != 0x7f);
                if (byte != '\\') {
                        p++;
                } else if (p[1] == '\\') {
                        p += 2;
                } else {
                        claim(p[1] == 'x' && hex(p[2]) >= 0 && hex(p[3]) >= 0);
                        byte = (uint8_t) (hex(p[2]) << 4 | hex(p[3]));
                        p += 4;
                }
                claim(at < size && data[at] == byte);
        }
        return at;
}

/* The first byte is the room that there is; the rest is the foreign text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct text text;
        size_t room, whole_room = 4 * size + 1;
        char *out, *whole;

        if (size == 0)
                return 0;
        room = data[0];
        data++;
        size--;
        out = malloc(room ? room : 1);
        whole = malloc(whole_room);
        claim(out && whole);

        claim(text_escape(whole, whole_room, (const char *) data, size) == whole);
        claim(check_reversible(whole, data, size) == size);
        claim(text_columns(whole) <= strlen(whole));
        text_escape(out, room, (const char *) data, size);
        if (room > 0) {
                claim(strlen(out) < room && strncmp(out, whole, strlen(out)) == 0);
                (void) check_reversible(out, data, size);
                claim(strlen(out) == strlen(whole) || room - 1 - strlen(out) < 16);
        }

        text_init(&text, room);
        text_add(&text, "%s", whole);
        text_add_n(&text, (const char *) data, size);
        claim(text.length <= room && strlen(text_string(&text)) <= text.length);
        claim(text.cut || text.length == strlen(whole) + size);
        text_release(&text);
        free(out);
        free(whole);
        return 0;
}
