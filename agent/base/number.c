/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "absent.h"
#include "clock.h"

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

int number_parse_u64_n(const char *text, size_t length, uint64_t *ret_value) {
        uint64_t value = 0;
        bool overflow = false;

        if (length == 0)
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                if (!is_digit(text[i]))
                        return -EINVAL;
                overflow |= __builtin_mul_overflow(value, 10, &value);
                overflow |= __builtin_add_overflow(value, (uint64_t) (text[i] - '0'), &value);
        }
        if (overflow)
                return -ERANGE;
        *ret_value = value;
        return 0;
}

int number_parse_u64(const char *text, uint64_t *ret_value) {
        return number_parse_u64_n(text, strlen(text), ret_value);
}

int number_parse_s64(const char *text, int64_t *ret_value) {
        bool negative = text[0] == '-';
        uint64_t magnitude;
        int r = number_parse_u64(text + negative, &magnitude);

        if (r < 0)
                return r;
        if (magnitude > (uint64_t) INT64_MAX + negative)
                return -ERANGE;
        /* In unsigned arithmetic: the magnitude of INT64_MIN has no signed form. */
        *ret_value = (int64_t) (negative ? 0 - magnitude : magnitude);
        return 0;
}

/*
 * "12" or "12.5" at *@text, times @scale, exactly: a fraction that does not come out even is -EINVAL. Moves *@text behind it. The scale
 * comes from what follows the number, so it is found by @scale_of(rest, ret_length).
 */
typedef uint64_t (*scale_fn)(const char *rest, size_t *ret_length);

static int parse_scaled(const char **text, scale_fn scale_of, uint64_t *ret_scale, uint64_t *ret_value) {
        size_t whole_length = 0, digits = 0, unit_length = 0;
        const char *p = *text, *fraction;
        uint64_t whole, scale, step, value;
        int r;

        while (is_digit(p[whole_length]))
                whole_length++;
        r = number_parse_u64_n(p, whole_length, &whole);
        if (r < 0)
                return r;
        fraction = p + whole_length;
        if (*fraction == '.') {
                fraction++;
                while (is_digit(fraction[digits]))
                        digits++;
                if (digits == 0)
                        return -EINVAL;
        }
        scale = scale_of(fraction + digits, &unit_length);
        if (scale == 0)
                return -EINVAL;
        if (__builtin_mul_overflow(whole, scale, &value))
                return -ERANGE;
        step = scale;
        for (size_t i = 0; i < digits; i++) {
                unsigned digit = (unsigned) (fraction[i] - '0');

                if (digit > 0 && step % 10 != 0)
                        return -EINVAL;
                step /= 10;
                if (__builtin_add_overflow(value, digit * step, &value))
                        return -ERANGE;
        }
        *text = fraction + digits + unit_length;
        *ret_scale = scale;
        *ret_value = value;
        return 0;
}

static uint64_t duration_unit(const char *rest, size_t *ret_length) {
        static const struct {
                char name[4];
                uint64_t ns;
        } units[] = {
                        {"h", 3600 * NS_PER_S}, {"ms", NS_PER_MS}, {"m", 60 * NS_PER_S},
                        {"s", NS_PER_S},        {"us", NS_PER_US}, {"ns", 1},
        };

        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                size_t length = strlen(units[i].name);

                if (strncmp(rest, units[i].name, length) == 0) {
                        *ret_length = length;
                        return units[i].ns;
                }
        }
        return 0;
}

int number_parse_duration(const char *text, uint64_t *ret_ns) {
        uint64_t total = 0, previous = UINT64_MAX;

        do {
                uint64_t unit, value;
                int r = parse_scaled(&text, duration_unit, &unit, &value);

                if (r < 0)
                        return r;
                /* "1m1m" and "30s1h" are slips of the pen, not durations. */
                if (unit >= previous)
                        return -EINVAL;
                previous = unit;
                if (__builtin_add_overflow(total, value, &total))
                        return -ERANGE;
        } while (*text != '\0');
        /* What the kernel's timers take, and well away from ABSENT. */
        if (total > INT64_MAX)
                return -ERANGE;
        *ret_ns = total;
        return 0;
}

static uint64_t share_unit(const char *rest, size_t *ret_length) {
        *ret_length = *rest == '%';
        return 10000;
}

int number_parse_share(const char *text, uint32_t *ret_ppm) {
        uint64_t scale, value;
        int r = parse_scaled(&text, share_unit, &scale, &value);

        if (r < 0)
                return r;
        if (*text != '\0')
                return -EINVAL;
        if (value > 1000000)
                return -ERANGE;
        *ret_ppm = (uint32_t) value;
        return 0;
}

char *number_format_cpus(char out[static NUMBER_TEXT_MAX], uint64_t millicpus) {
        if (!is_known(millicpus))
                (void) snprintf(out, NUMBER_TEXT_MAX, "?");
        else if (millicpus % 1000 == 0)
                (void) snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64, millicpus / 1000);
        else
                (void) snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 "m", millicpus);
        return out;
}

char *number_format_duration(char out[static NUMBER_TEXT_MAX], uint64_t ns) {
        static const struct {
                char name[4];
                uint64_t ns;
        } units[] = {
                        {"ns", 1},       {"us", NS_PER_US},      {"ms", NS_PER_MS},
                        {"s", NS_PER_S}, {"min", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
        };
        size_t i = 0, last = sizeof(units) / sizeof(units[0]) - 1;
        uint64_t figures, power = 1;

        if (!is_known(ns) || ns == 0) {
                (void) snprintf(out, NUMBER_TEXT_MAX, "%s", ns == 0 ? "0 ms" : "?");
                return out;
        }
        /* The unit in which less than 999.5 remain: 999.6 us is "1 ms". */
        while (i < last && ns / units[i].ns + (ns % units[i].ns >= (units[i].ns + 1) / 2) >= 1000)
                i++;
        while (power < 100 && ns < units[i].ns * (100 / power) && i > 0)
                power *= 10;
        /* 9.996 s has a figure less than 9.994 s: "10 s", with one decimal, which is then zero and not shown. */
        figures = ns / units[i].ns * power + (ns % units[i].ns * power + units[i].ns / 2) / units[i].ns;
        while (power > 1 && figures % 10 == 0) {
                figures /= 10;
                power /= 10;
        }
        if (power == 1)
                (void) snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " %.3s", figures, units[i].name);
        else
                (void) snprintf(out, NUMBER_TEXT_MAX, "%u.%0*u %.3s", (unsigned) (figures / power),
                                power == 10 ? 1 : 2, (unsigned) (figures % power), units[i].name);
        return out;
}
