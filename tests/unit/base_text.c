/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "../../agent/base/memory.h"
#include "../../agent/base/text.h"

Test(text, is_never_null_while_empty) {
        cleanup_text struct text text;

        text_init(&text, 10);
        cr_assert_str_eq(text_string(&text), "");
        text_add(&text, "%s", "");
        text_add_n(&text, "", 0);
        cr_assert_str_eq(text_string(&text), "");
        cr_assert(!text.cut);
}

Test(text, grows_to_what_was_added) {
        cleanup_text struct text text;
        size_t expected = 0;

        text_init(&text, SIZE_MAX);
        for (int i = 0; i < 2000; i++) {
                text_add(&text, "%04d;", i);
                expected += 5;
        }
        cr_assert(text.length == expected && strlen(text_string(&text)) == expected);
        cr_assert(strncmp(text.data + 5 * 1234, "1234;", 5) == 0);
        cr_assert(!text.cut);
}

Test(text, takes_the_maximum_and_not_a_byte_more) {
        cleanup_text struct text exact, over;

        text_init(&exact, 4);
        text_add(&exact, "%d", 1234);
        cr_assert_str_eq(text_string(&exact), "1234");
        cr_assert(!exact.cut);

        text_init(&over, 4);
        text_add(&over, "%d", 12345);
        cr_assert_str_eq(text_string(&over), "1234");
        cr_assert(over.cut);
}

Test(text, adds_nothing_after_a_cut) {
        cleanup_text struct text text;

        text_init(&text, 6);
        text_add(&text, "abc");
        text_add_n(&text, "defghi", 6);
        cr_assert(text.cut);
        text_clear(&text);
        text_add(&text, "abcd");
        text_add(&text, "long enough to be cut");
        text_add(&text, "x");
        text_add_n(&text, "y", 1);
        cr_assert_str_eq(text_string(&text), "abcdlo");
        text_clear(&text);
        text_add(&text, "x");
        cr_assert_str_eq(text_string(&text), "x");
        cr_assert(!text.cut);
}

Test(text, is_not_cut_inside_a_character) {
        cleanup_text struct text two, three, whole;

        text_init(&two, 4);
        text_add(&two, "abc\xc3\xa4");
        cr_assert_str_eq(text_string(&two), "abc");
        text_init(&three, 4);
        text_add_n(&three, "ab\xe2\x82\xac", 5);
        cr_assert_str_eq(text_string(&three), "ab");
        text_init(&whole, 3);
        text_add_n(&whole, "\xe2\x82\xac!", 4);
        /* One character too cautious is fine, half a character is not. */
        cr_assert(whole.length == 0 || whole.length == 3);
}

Test(text, with_room_for_nothing_stays_empty) {
        cleanup_text struct text text;

        text_init(&text, 0);
        text_add(&text, "a");
        cr_assert_str_eq(text_string(&text), "");
        cr_assert(text.cut);
}

Test(text, can_hold_its_own_content_twice) {
        cleanup_text struct text text, copy;

        text_init(&text, 100);
        text_init(&copy, 100);
        text_add(&text, "a %s", "b");
        text_add(&copy, "%s|%s", text_string(&text), text_string(&text));
        cr_assert_str_eq(text_string(&copy), "a b|a b");
}

struct escape_row {
        const char *foreign;
        size_t length;
        const char *expected;
};
#define ROW(foreign, expected)                                                                              \
        { foreign, sizeof(foreign) - 1, expected }

static const struct escape_row escapes[] = {
                ROW("", ""),
                ROW("gunicorn: worker [a]", "gunicorn: worker [a]"),
                ROW("caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x8d",
                    "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x8d"),
                /* Terminal: colours, title, cursor, bell, DEL; the one-byte forms of the C1 set, raw and as UTF-8. */
                ROW("\033[31mred", "\\x1b[31mred"),
                ROW("\033]0;title\a", "\\x1b]0;title\\x07"),
                ROW("a\rb\nc\td\b\177", "a\\x0db\\x0ac\\x09d\\x08\\x7f"),
                ROW("\x9b"
                    "31m",
                    "\\x9b31m"),
                ROW("\xc2\x9b"
                    "31m",
                    "\\xc2\\x9b31m"),
                ROW("nul\0nul", "nul\\x00nul"),
                /* An escape that the name brings along must not be taken for ours. */
                ROW("\\x1b", "\\\\x1b"),
                ROW("\\", "\\\\"),
                /* Reading direction, zero width, byte order mark, line separators. */
                ROW("a\xe2\x80\xae"
                    "b",
                    "a\\xe2\\x80\\xaeb"),
                ROW("\xe2\x81\xa6", "\\xe2\\x81\\xa6"),
                ROW("\xd8\x9c", "\\xd8\\x9c"),
                ROW("\xe2\x80\x8b\xe2\x80\x8d", "\\xe2\\x80\\x8b\\xe2\\x80\\x8d"),
                ROW("\xef\xbb\xbf", "\\xef\\xbb\\xbf"),
                ROW("\xe2\x80\xa8", "\\xe2\\x80\\xa8"),
                ROW("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"),
                ROW("o\xcc\x88", "o\\xcc\\x88"),
                ROW("\xc2\xa0", "\\xc2\\xa0"),
                /* Bad UTF-8: lone continuation, cut, overlong, surrogate, beyond the last character, never valid. */
                ROW("\x80", "\\x80"),
                ROW("\xc3", "\\xc3"),
                ROW("\xe2\x82", "\\xe2\\x82"),
                ROW("\xf0\x9f\x90", "\\xf0\\x9f\\x90"),
                ROW("\xc0\xaf", "\\xc0\\xaf"),
                ROW("\xe0\x80\xaf", "\\xe0\\x80\\xaf"),
                ROW("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"),
                ROW("\xed\xa0\x80", "\\xed\\xa0\\x80"),
                ROW("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"),
                ROW("\xfe\xff", "\\xfe\\xff"),
                ROW("\xc3(", "\\xc3("),
};

Test(text, escapes_what_a_terminal_would_obey_and_keeps_the_rest) {
        for (size_t i = 0; i < ELEMENTS(escapes); i++) {
                char out[128];

                cr_expect(text_escape(out, sizeof(out), escapes[i].foreign, escapes[i].length) == out);
                cr_expect_str_eq(out, escapes[i].expected, "row %zu: %s", i, out);
        }
}

Test(text, escaping_never_cuts_inside_a_character_or_an_escape) {
        for (size_t i = 0; i < ELEMENTS(escapes); i++) {
                char whole[128], out[128];

                text_escape(whole, sizeof(whole), escapes[i].foreign, escapes[i].length);
                for (size_t room = 1; room <= strlen(whole) + 1; room++) {
                        char again[128];
                        size_t length;

                        memset(out, '#', sizeof(out));
                        text_escape(out, room, escapes[i].foreign, escapes[i].length);
                        length = strlen(out);
                        cr_expect(length < room && out[room] == '#', "row %zu wrote past %zu bytes", i,
                                  room);
                        cr_expect(strncmp(out, whole, length) == 0, "row %zu, %zu bytes: %s", i, room, out);
                        /* Escapes that are whole stay as they are but for their doubled backslash. */
                        text_escape(again, sizeof(again), out, length);
                        for (const char *p = again; (p = strchr(p, '\\')); p += 2)
                                cr_expect(p[1] == '\\', "row %zu, %zu bytes: half a character in %s", i,
                                          room, out);
                        if (length >= 1 && out[length - 1] == '\\')
                                cr_expect(length >= 2 && out[length - 2] == '\\', "row %zu: %s", i, out);
                        for (size_t tail = 1; tail <= 2 && tail < length; tail++)
                                cr_expect(!(out[length - tail - 1] == '\\' && out[length - tail] == 'x' &&
                                            (length < tail + 2 || out[length - tail - 2] != '\\')),
                                          "row %zu, %zu bytes: half an escape in %s", i, room, out);
                }
        }
}

Test(text, escaping_into_no_room_writes_nothing) {
        char out[2] = {'#', '#'};

        text_escape(out, 0, "abc", 3);
        cr_assert(out[0] == '#');
        text_escape(out, 1, "abc", 3);
        cr_assert(out[0] == '\0' && out[1] == '#');
}

Test(text, output_of_any_bytes_is_printable) {
        unsigned char foreign[3];
        char out[64];

        for (unsigned i = 0; i < 1u << 16; i++) {
                foreign[0] = (unsigned char) i;
                foreign[1] = (unsigned char) (i >> 8);
                foreign[2] = 0x80;
                text_escape(out, sizeof(out), (const char *) foreign, sizeof(foreign));
                for (const char *p = out; *p; p++)
                        cr_assert((unsigned char) *p >= 0x20 && *p != 0x7f, "%02x %02x", foreign[0],
                                  foreign[1]);
        }
}

Test(text, columns_are_those_of_the_terminal) {
        cr_expect(text_columns("") == 0);
        cr_expect(text_columns("abc") == 3);
        cr_expect(text_columns("caf\xc3\xa9") == 4);
        cr_expect(text_columns("\xe6\x97\xa5\xe6\x9c\xac") == 4);
        cr_expect(text_columns("\xf0\x9f\x90\x8d") == 2);
        cr_expect(text_columns("\\x1b") == 4);
        cr_expect(text_columns("\xed\x95\x9c") == 2);
        cr_expect(text_columns("\xce\xb1\xd0\xb6") == 2);
}
