/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "text.h"

/* With what is said of dropped ones a line stays below PIPE_BUF: a pipe takes all of it or nothing. */
#define LINE_MAX_BYTES 2048
#define LOST_MAX_BYTES 128
/* A reader may be slow for a moment. One that is so for longer is not waited for again before it reads. */
#define PATIENCE_NS (100 * NS_PER_MS)

/* With the count of dropped lines the only mutable global of base: what the person at the terminal asked to hear. */
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

enum way { WAY_FILE, WAY_SOCKET, WAY_REOPENED, WAY_SHARED };

/* How to write to standard error without waiting for its reader. A description of our own: O_NONBLOCK must not reach those who share it. */
static enum way find_way(int *ret_fd) {
        struct stat st;

        *ret_fd = -1;
        if (fstat(STDERR_FILENO, &st) < 0 || S_ISREG(st.st_mode))
                return WAY_FILE;
        if (S_ISSOCK(st.st_mode))
                return WAY_SOCKET;
        *ret_fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_APPEND);
        return *ret_fd >= 0 ? WAY_REOPENED : WAY_SHARED;
}

/* Until @fd takes more, or until @end_ns. */
static bool wait_for(int fd, uint64_t end_ns) {
        uint64_t now = clock_now().mono_ns;
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        return poll(&ready, 1, now < end_ns ? (int) ((end_ns - now) / NS_PER_MS) + 1 : 0) > 0;
}

/*
 * One write a line, so that lines of several writers do not mix. A reader that is gone is not our failure. False: it could not be written in
 * time.
 */
static bool write_line(const char *line, size_t length, uint64_t end_ns) {
        cleanup_fd int own = -1;
        enum way way = find_way(&own);
        int fd = own >= 0 ? own : STDERR_FILENO;

        while (length > 0) {
                ssize_t n;

                if (way == WAY_SHARED && !wait_for(fd, end_ns))
                        return false;
                if (way == WAY_SOCKET)
                        n = send(fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
                else
                        n = write(fd, line, length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN && clock_now().mono_ns < end_ns && wait_for(fd, end_ns))
                        continue;
                if (n <= 0)
                        return n < 0 && errno != EAGAIN;
                line += n;
                length -= (size_t) n;
        }
        return true;
}

/* Says before @line, if lines were dropped, how many. What can't be written now is dropped, and counted. */
static void write_or_drop(const char *line, size_t length) {
        static uint64_t dropped;
        char lines[LOST_MAX_BYTES + LINE_MAX_BYTES + 64];
        int used = 0;

        if (dropped > 0)
                used = snprintf(lines, LOST_MAX_BYTES,
                                "throttlescope: warning: %llu message%s before this could not be written\n",
                                (unsigned long long) dropped, dropped == 1 ? "" : "s");
        memcpy(lines + used, line, length);
        if (write_line(lines, (size_t) used + length, dropped > 0 ? 0 : clock_now().mono_ns + PATIENCE_NS))
                dropped = 0;
        else
                dropped++;
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
        write_or_drop(line, length);
        errno = saved_errno;
        return error;
}
