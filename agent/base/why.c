/* SPDX-License-Identifier: Apache-2.0 */
#define WHY_IMPLEMENTATION
#include "why.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A sentence that was cut must not end in half a character. */
static void drop_half_character(char *text, size_t length) {
        size_t start = length;

        while (start > 0 && length - start < 4 && ((unsigned char) text[start - 1] & 0xc0) == 0x80)
                start--;
        if (start > 0 && (unsigned char) text[start - 1] >= 0xc0)
                text[start - 1] = '\0';
}

/* The arguments may point into @why: everything is put together in a second buffer. */
__attribute__((format(printf, 4, 0))) static void
fill(struct why *why, const char *separator, const char *rest, const char *format, va_list arguments) {
        struct why made;
        int length = vsnprintf(made.text, sizeof(made.text), format, arguments);
        size_t used = length < 0 ? 0 : (size_t) length;

        if (used < sizeof(made.text))
                length = snprintf(made.text + used, sizeof(made.text) - used, "%s%s", separator, rest);
        if (used >= sizeof(made.text) || length < 0 || used + (size_t) length >= sizeof(made.text))
                drop_half_character(made.text, sizeof(made.text) - 1);
        *why = made;
}

int why_set(struct why *why, int error, const char *format, ...) {
        va_list arguments;

        if (!why)
                return error;
        va_start(arguments, format);
        fill(why, "", "", format, arguments);
        va_end(arguments);
        return error;
}

int why_wrap(struct why *why, int error, const char *format, ...) {
        va_list arguments;

        if (!why)
                return error;
        va_start(arguments, format);
        fill(why, ": ", why->text, format, arguments);
        va_end(arguments);
        return error;
}
