/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "../../agent/base/clock.h"
#include "../../agent/base/memory.h"

/* 2026-11-30T12:00:14.312345678Z */
#define MOMENT (UINT64_C(1796040014) * NS_PER_S + 312345678)

Test(clock, formats_rfc_3339_with_digits_cut_not_rounded) {
        static const struct {
                uint64_t real_ns;
                unsigned digits;
                const char *text;
        } rows[] = {
                        {MOMENT, 0, "2026-11-30T12:00:14Z"},
                        {MOMENT, 3, "2026-11-30T12:00:14.312Z"},
                        {MOMENT, 6, "2026-11-30T12:00:14.312345Z"},
                        {MOMENT, 9, "2026-11-30T12:00:14.312345678Z"},
                        {MOMENT, 100, "2026-11-30T12:00:14.312345678Z"},
                        {0, 0, "1970-01-01T00:00:00Z"},
                        {0, 9, "1970-01-01T00:00:00.000000000Z"},
                        {UINT64_C(1709251199) * NS_PER_S + 999999999, 3, "2024-02-29T23:59:59.999Z"},
                        {UINT64_MAX, 9, "2554-07-21T23:34:33.709551615Z"},
        };
        char out[CLOCK_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect_str_eq(clock_format(out, rows[i].real_ns, rows[i].digits), rows[i].text,
                                 "row %zu: %s", i, out);
}

Test(clock, formats_the_time_of_day) {
        char out[CLOCK_TEXT_MAX];

        cr_assert_str_eq(clock_format_time(out, MOMENT), "12:00:14.312Z");
        cr_assert_str_eq(clock_format_time(out, 0), "00:00:00.000Z");
        cr_assert_str_eq(clock_format_time(out, 86399 * NS_PER_S + 999999999), "23:59:59.999Z");
}

Test(clock, wall_time_of_a_moment_before_and_after) {
        struct instant at = {.mono_ns = 1000, .real_ns = 50000};

        cr_assert(clock_real_ns(&at, 1000) == 50000);
        cr_assert(clock_real_ns(&at, 400) == 49400);
        cr_assert(clock_real_ns(&at, 1600) == 50600);
        at.real_ns = 300;
        cr_assert(clock_real_ns(&at, 0) == 0, "before 1970 is 1970");
        cr_assert(clock_real_ns(&at, UINT64_MAX) == UINT64_MAX - 700);
        at.real_ns = UINT64_MAX;
        cr_assert(clock_real_ns(&at, 2000) == UINT64_MAX);
}

Test(clock, does_not_go_back) {
        struct instant first = clock_now(), second = clock_now();

        cr_assert(second.mono_ns >= first.mono_ns);
        cr_assert(first.real_ns > UINT64_C(1700000000) * NS_PER_S);
}
