/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define LINE_MAX_BYTES 2048

/* The only mutable global of base: what the person at the terminal asked to hear. */
static enum log_level wanted = LOG_NOTICE;

void log_set_level(enum log_level level) {
        wanted = level;
}

bool log_wanted(enum log_level level) {
        return level <= wanted;
}

/*
 * Last guard against a foreign name that its author forgot to escape: control bytes and the like are escaped, backslashes stay,
 * because most of them come from text_escape().
 */
static size_t guard(char *out, size_t room, const char *message) {
        size_t used = 0;

        for (;;) {
                size_t length = strcspn(message, "\\");

                text_escape(out + used, room - used, message, length);
                used += strlen(out + used);
                message += length;
                if (*message == '\0' || used + 2 > room)
                        return used;
                out[used++] = *message++;
                out[used] = '\0';
        }
}

/* One write a line, so that lines of several writers do not mix. A reader that is gone is not our failure. */
static void write_line(const char *line, size_t length) {
        while (length > 0) {
                ssize_t n = write(STDERR_FILENO, line, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                line += n;
                length -= (size_t) n;
        }
}

int log_at(enum log_level level, int error, const char *format, ...) {
        static const char *const names[LOG_LEVEL_COUNT] = {
                        [LOG_ERROR] = "error",
                        [LOG_WARNING] = "warning",
                        [LOG_NOTICE] = "notice",
                        [LOG_DEBUG] = "debug",
        };
        char message[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
        int saved_errno = errno, used;
        size_t length;
        va_list arguments;

        if (!log_wanted(level))
                return error;
        va_start(arguments, format);
        if (vsnprintf(message, sizeof(message), format, arguments) < 0)
                message[0] = '\0';
        va_end(arguments);
        used = snprintf(line, sizeof(line), "throttlescope: %s: ", names[level]);
        length = (size_t) used + guard(line + used, sizeof(line) - (size_t) used - 1, message);
        line[length++] = '\n';
        write_line(line, length);
        errno = saved_errno;
        return error;
}
