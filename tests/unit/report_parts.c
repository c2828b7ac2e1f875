/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/report/text_parts.h"

Test(report_parts, shortens_in_the_middle_without_cutting_a_character_or_an_escape) {
        static const struct {
                char escaped[40];
                size_t max_columns;
                char expected[40];
        } rows[] = {
                        {"short", 10, "short"},
                        {"exactly_10", 10, "exactly_10"},
                        {"exactly_11_", 10, "exac…y_11_"},
                        {"abcdef", 1, "…"},
                        {"abcdef", 2, "…f"},
                        {"abcdef", 0, ""},
                        {"", 0, ""},
                        {"\\x1b\\x1b\\x1b\\x1b", 15, "\\x1b…\\x1b"},
                        {"ab\\\\\\\\cd", 5, "ab…cd"},
                        {"日本語スレッド", 7, "日…ド"},
                        {"日本語スレッド", 14, "日本語スレッド"},
                        {"日本語スレッド", 13, "日本語…レッド"},
        };
        char out[64];

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                parts_shorten(out, sizeof(out), rows[i].escaped, rows[i].max_columns);
                cr_expect_str_eq(out, rows[i].expected, "row %zu: %s", i, out);
                cr_expect(text_columns(out) <= rows[i].max_columns);
        }
}

Test(report_parts, stays_within_its_room_whatever_comes) {
        char foreign[300], out[310], *small;

        srand(7);
        for (int round = 0; round < 20000; round++) {
                size_t length = (size_t) rand() % sizeof(foreign), room = 1 + (size_t) rand() % 300;
                size_t columns = (size_t) rand() % 120;

                for (size_t i = 0; i < length; i++)
                        foreign[i] = rand() % 3 ? (char) ('a' + rand() % 26) : (char) (rand() % 256);
                small = malloc(room); /* so that a sanitizer sees the byte after it */
                cr_assert_not_null(small);
                parts_name(small, room, foreign, length, columns);
                cr_assert(strlen(small) < room);
                cr_assert(text_columns(small) <= columns);
                free(small);
                if (length < sizeof(foreign))
                        foreign[length] = '\0';
                else
                        foreign[sizeof(foreign) - 1] = '\0';
                if (room >= 32) {
                        small = malloc(room);
                        cr_assert_not_null(small);
                        parts_sentence(small, room, foreign);
                        cr_assert(strlen(small) < room);
                        for (const char *s = small; *s; s++)
                                cr_assert((unsigned char) *s >= 0x20);
                        free(small);
                }
        }
        cr_expect_str_empty(parts_name(out, sizeof(out), NULL, PARTS_ALL, 10));
        cr_expect_str_empty(parts_sentence(out, sizeof(out), NULL));
}

Test(report_parts, a_sentence_keeps_its_backslashes_and_says_where_it_was_cut) {
        char out[64];

        cr_expect_str_eq(parts_sentence(out, sizeof(out), "a \\x1b \\\\ b"), "a \\x1b \\\\ b");
        cr_expect_str_eq(parts_sentence(out, sizeof(out), "a\x1b\n\xff"), "a\\x1b\\x0a\\xff");
        cr_expect_str_eq(parts_sentence(out, sizeof(out), "don't \"touch\" {this} — ü"),
                         "don't \"touch\" {this} — ü");
        parts_sentence(out, sizeof(out),
                       "0123456789012345678901234567890123456789012345678901234567890123456789");
        cr_expect_str_eq(out + strlen(out) - 3, "…");
}

Test(report_parts, percentages_have_at_most_three_figures) {
        static const struct {
                double share;
                char text[12];
        } rows[] = {
                        {0, "0%"},       {-1, "0%"},        {0.00001, "<0.01%"}, {0.0001, "0.01%"},
                        {0.003, "0.3%"}, {0.0031, "0.31%"}, {0.0099, "0.99%"},   {0.01, "1%"},
                        {0.042, "4.2%"}, {0.0994, "9.9%"},  {0.0996, "10%"},     {0.1, "10%"},
                        {0.284, "28%"},  {0.996, "100%"},   {1, "100%"},         {2.4, "240%"},
        };
        char out[NUMBER_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect_str_eq(parts_percent(out, rows[i].share), rows[i].text, "%g is %s", rows[i].share,
                                 out);
        cr_expect(strlen(parts_percent(out, 1e300)) < NUMBER_TEXT_MAX);
}

Test(report_parts, wraps_words_and_shortens_those_wider_than_a_line) {
        struct text text;
        char word[200];

        text_init(&text, 4096);
        parts_wrap(&text, "why", "one  two");
        cr_expect_str_eq(text_string(&text), "  why      one two\n");
        text_clear(&text);
        memset(word, 'w', sizeof(word));
        word[89] = ' ';
        word[199] = '\0';
        parts_wrap(&text, "", word);
        cr_expect_eq(text_columns("           ") + 89, 100);
        cr_expect_eq(strcspn(text_string(&text), "\n"), 100, "a word that just fits is whole");
        cr_expect(strstr(text_string(&text), "\n           www"));
        cr_expect(strstr(text_string(&text), "w…w"));
        text_release(&text);
}

Test(report_parts, usage_is_rounded_and_absent_without_a_window) {
        cr_expect_eq(parts_used_milli(3240 * NS_PER_MS, 30 * NS_PER_S), 108);
        cr_expect_eq(parts_used_milli(15 * NS_PER_MS, 30 * NS_PER_S), 1);
        cr_expect_eq(parts_used_milli(14 * NS_PER_MS, 30 * NS_PER_S), 0);
        cr_expect_eq(parts_used_milli(1, 0), ABSENT);
        cr_expect_eq(parts_used_milli(ABSENT, 1), ABSENT);
        cr_expect_eq(parts_used_milli(1, ABSENT), ABSENT);
}
