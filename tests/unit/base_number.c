/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/base/absent.h"
#include "../../agent/base/memory.h"
#include "../../agent/base/number.h"

#define S UINT64_C(1000000000)

struct row {
        const char *text;
        int result;
        uint64_t value;
};

Test(number, u64_takes_digits_and_nothing_else) {
        static const struct row rows[] = {
                        {"0", 0, 0},
                        {"7", 0, 7},
                        {"007", 0, 7},
                        {"18446744073709551615", 0, UINT64_MAX},
                        {"18446744073709551616", -ERANGE, 0},
                        {"99999999999999999999999999", -ERANGE, 0},
                        {"", -EINVAL, 0},
                        {"-1", -EINVAL, 0},
                        {"+1", -EINVAL, 0},
                        {" 1", -EINVAL, 0},
                        {"1 ", -EINVAL, 0},
                        {"1\n", -EINVAL, 0},
                        {"0x10", -EINVAL, 0},
                        {"1e3", -EINVAL, 0},
                        {"1.0", -EINVAL, 0},
                        {"max", -EINVAL, 0},
                        /* Not a number stays "not a number", also where it would be too large. */
                        {"99999999999999999999999999x", -EINVAL, 0},
                        {"\xd9\xa1", -EINVAL, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint64_t value = 42;

                cr_expect(number_parse_u64(rows[i].text, &value) == rows[i].result, "%s", rows[i].text);
                cr_expect(value == (rows[i].result < 0 ? 42 : rows[i].value), "%s", rows[i].text);
        }
}

Test(number, u64_reads_no_byte_past_its_length) {
        uint64_t value;
        char *tight = malloc(3);

        memcpy(tight, "123", 3);
        cr_assert(number_parse_u64_n(tight, 3, &value) == 0 && value == 123);
        cr_assert(number_parse_u64_n(tight, 2, &value) == 0 && value == 12);
        cr_assert(number_parse_u64_n(tight, 0, &value) == -EINVAL);
        free(tight);
        cr_assert(number_parse_u64_n("1\0002", 3, &value) == -EINVAL);
}

Test(number, s64_takes_one_minus) {
        static const struct {
                const char *text;
                int result;
                int64_t value;
        } rows[] = {
                        {"0", 0, 0},
                        {"-0", 0, 0},
                        {"-1", 0, -1},
                        {"9223372036854775807", 0, INT64_MAX},
                        {"9223372036854775808", -ERANGE, 0},
                        {"-9223372036854775808", 0, INT64_MIN},
                        {"-9223372036854775809", -ERANGE, 0},
                        {"-99999999999999999999", -ERANGE, 0},
                        {"-", -EINVAL, 0},
                        {"", -EINVAL, 0},
                        {"--1", -EINVAL, 0},
                        {"+1", -EINVAL, 0},
                        {"- 1", -EINVAL, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                int64_t value = 42;

                cr_expect(number_parse_s64(rows[i].text, &value) == rows[i].result, "%s", rows[i].text);
                cr_expect(value == (rows[i].result < 0 ? 42 : rows[i].value), "%s", rows[i].text);
        }
}

Test(number, duration_needs_a_unit_and_is_exact) {
        static const struct row rows[] = {
                        {"500ms", 0, S / 2},
                        {"10s", 0, 10 * S},
                        {"1m", 0, 60 * S},
                        {"1h30m", 0, 5400 * S},
                        {"1h1m1s1ms1us1ns", 0, 3661 * S + 1001001},
                        {"1.5s", 0, 3 * S / 2},
                        {"0.000000001s", 0, 1},
                        {"1.000s", 0, S},
                        {"0.5m", 0, 30 * S},
                        {"100us", 0, 100000},
                        {"5ns", 0, 5},
                        {"0s", 0, 0},
                        {"1.0ns", 0, 1},
                        {"9223372036854775807ns", 0, INT64_MAX},
                        {"9223372036854775808ns", -ERANGE, 0},
                        {"9223372036s", 0, UINT64_C(9223372036) * S},
                        {"9223372037s", -ERANGE, 0},
                        {"99999999999999999999h", -ERANGE, 0},
                        {"18446744073709551615h", -ERANGE, 0},
                        {"2562047h48m", -ERANGE, 0},
                        {"", -EINVAL, 0},
                        {"10", -EINVAL, 0},
                        {"s", -EINVAL, 0},
                        {".5s", -EINVAL, 0},
                        {"5.s", -EINVAL, 0},
                        {"1.5", -EINVAL, 0},
                        {"1.5ns", -EINVAL, 0},
                        {"0.0000000001s", -EINVAL, 0},
                        {"1,5s", -EINVAL, 0},
                        {"-1s", -EINVAL, 0},
                        {"1 s", -EINVAL, 0},
                        {"1s ", -EINVAL, 0},
                        {"1S", -EINVAL, 0},
                        {"1sec", -EINVAL, 0},
                        {"1d", -EINVAL, 0},
                        {"30s1h", -EINVAL, 0},
                        {"1s1s", -EINVAL, 0},
                        {"1h30", -EINVAL, 0},
                        {"1m500", -EINVAL, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint64_t value = 42;

                cr_expect(number_parse_duration(rows[i].text, &value) == rows[i].result, "%s", rows[i].text);
                cr_expect(value == (rows[i].result < 0 ? 42 : rows[i].value), "%s", rows[i].text);
        }
}

Test(number, share_is_exact_to_a_millionth) {
        static const struct row rows[] = {
                        {"5%", 0, 50000},         {"5", 0, 50000},
                        {"0.5%", 0, 5000},        {"0.0001%", 0, 1},
                        {"0.00010%", 0, 1},       {"0", 0, 0},
                        {"100%", 0, 1000000},     {"100.0001%", -ERANGE, 0},
                        {"101", -ERANGE, 0},      {"99999999999999999999", -ERANGE, 0},
                        {"0.00001%", -EINVAL, 0}, {"", -EINVAL, 0},
                        {"%", -EINVAL, 0},        {"5%%", -EINVAL, 0},
                        {"5 %", -EINVAL, 0},      {"-5%", -EINVAL, 0},
                        {"5.%", -EINVAL, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint32_t value = 42;

                cr_expect(number_parse_share(rows[i].text, &value) == rows[i].result, "%s", rows[i].text);
                cr_expect(value == (rows[i].result < 0 ? 42 : rows[i].value), "%s", rows[i].text);
        }
}

Test(number, cpus_are_canonical_quantities) {
        static const struct row rows[] = {
                        {"0", 0, 0},      {"1m", 0, 1},     {"250m", 0, 250},
                        {"999m", 0, 999}, {"1", 0, 1000},   {"1500m", 0, 1500},
                        {"64", 0, 64000}, {"?", 0, ABSENT}, {"18446744073709551614m", 0, UINT64_MAX - 1},
        };
        char out[NUMBER_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect_str_eq(number_format_cpus(out, rows[i].value), rows[i].text);
}

Test(number, durations_for_people_have_three_figures) {
        static const struct row rows[] = {
                        {"0 ms", 0, 0},
                        {"1 ns", 0, 1},
                        {"999 ns", 0, 999},
                        {"1 us", 0, 1000},
                        {"1.23 us", 0, 1234},
                        {"75 us", 0, 75000},
                        {"75.1 us", 0, 75149},
                        {"999 us", 0, 999499},
                        {"1 ms", 0, 999500},
                        {"3.2 ms", 0, 3200000},
                        {"3.05 ms", 0, 3050000},
                        {"9.99 ms", 0, 9994999},
                        {"10 ms", 0, 9995000},
                        {"88 ms", 0, 88000000},
                        {"100 ms", 0, 99950000},
                        {"214 ms", 0, 214400000},
                        {"1 s", 0, S},
                        {"16.9 s", 0, 16900 * S / 1000},
                        {"999 s", 0, 999 * S},
                        {"16.7 min", 0, 1000 * S},
                        {"100 h", 0, 360000 * S},
                        {"5124096 h", 0, UINT64_MAX - 1},
                        {"?", 0, ABSENT},
        };
        char out[NUMBER_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect_str_eq(number_format_duration(out, rows[i].value), rows[i].text, "row %zu: %s", i,
                                 out);
}

Test(absent, never_becomes_a_number) {
        uint64_t sum = ABSENT;

        cr_expect(!is_known(ABSENT) && is_known(0));
        cr_expect(known_delta(5, 3) == 2 && known_delta(3, 3) == 0);
        cr_expect(known_delta(3, 5) == ABSENT, "a counter that went backwards");
        cr_expect(known_delta(ABSENT, 1) == ABSENT && known_delta(1, ABSENT) == ABSENT);
        known_add(&sum, ABSENT);
        cr_expect(sum == ABSENT);
        known_add(&sum, 0);
        cr_expect(sum == 0);
        known_add(&sum, 7);
        known_add(&sum, ABSENT);
        cr_expect(sum == 7);
}
