/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "../../agent/base/log.h"
#include "../../agent/base/memory.h"

/* Standard error in a pipe; what was logged comes out of captured(). */
static int ends[2], saved;

static void capture(void) {
        cr_assert(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        saved = dup(STDERR_FILENO);
        cr_assert(dup2(ends[1], STDERR_FILENO) >= 0);
}

static const char *captured(void) {
        static char text[8192];
        ssize_t n = read(ends[0], text, sizeof(text) - 1);

        dup2(saved, STDERR_FILENO);
        text[n > 0 ? n : 0] = '\0';
        return text;
}

Test(log, says_who_and_how_bad_and_returns_the_error) {
        const char *text;
        int r;

        capture();
        r = log_error(-ENOENT, "%s is gone", "target");
        text = captured();
        cr_assert(r == -ENOENT);
        cr_assert_str_eq(text, "throttlescope: error: target is gone\n");
}

Test(log, keeps_silent_below_its_level) {
        const char *text;

        capture();
        log_debug("not wanted");
        log_set_level(LOG_ERROR);
        log_notice("not wanted");
        log_set_level(LOG_DEBUG);
        log_debug("wanted");
        text = captured();
        cr_assert_str_eq(text, "throttlescope: debug: wanted\n");
        cr_assert(log_wanted(LOG_DEBUG));
        log_set_level(LOG_WARNING);
        cr_assert(!log_wanted(LOG_NOTICE) && log_wanted(LOG_WARNING));
}

Test(log, one_message_is_one_harmless_line) {
        const char *text;

        capture();
        log_notice("thread a\nb\033[2J escaped\\x1b");
        text = captured();
        cr_assert_str_eq(text, "throttlescope: notice: thread a\\x0ab\\x1b[2J escaped\\x1b\n");
}

Test(log, cuts_what_is_too_long_and_ends_the_line) {
        char message[5000];
        const char *text;

        memset(message, 'm', sizeof(message));
        message[sizeof(message) - 1] = '\0';
        capture();
        log_notice("%s", message);
        memset(message, '\\', sizeof(message) - 1);
        log_notice("%s", message);
        memset(message, '\033', sizeof(message) - 1);
        log_notice("%s", message);
        text = captured();
        cr_assert(strlen(text) > 4000 && text[strlen(text) - 1] == '\n');
}

Test(log, leaves_errno_alone) {
        capture();
        errno = EDOM;
        log_notice("x");
        cr_expect(errno == EDOM);
        captured();
}

/* Nobody reads, and the descriptor blocks: as it is when a supervisor hangs. */
static uint64_t fill_and_log(int from, int to, unsigned lines) {
        char block[4096];
        uint64_t begin;

        memset(block, '.', sizeof(block));
        cr_assert(fcntl(to, F_SETFL, O_NONBLOCK) == 0);
        while (write(to, block, sizeof(block)) > 0)
                ;
        while (write(to, ".", 1) > 0)
                ;
        cr_assert(fcntl(to, F_SETFL, 0) == 0);
        saved = dup(STDERR_FILENO);
        cr_assert(dup2(to, STDERR_FILENO) >= 0);
        alarm(20); /* what blocks fails */
        begin = clock_now().mono_ns;
        for (unsigned i = 0; i < lines; i++)
                log_notice("nobody reads %u", i);
        begin = clock_now().mono_ns - begin;
        cr_assert(fcntl(from, F_SETFL, O_NONBLOCK) == 0);
        while (read(from, block, sizeof(block)) > 0)
                ;
        return begin;
}

static void check_full(int from, int to) {
        uint64_t took = fill_and_log(from, to, 3);
        char text[1024];
        ssize_t n;

        log_notice("read again");
        dup2(saved, STDERR_FILENO);
        n = read(from, text, sizeof(text) - 1);
        cr_assert(n > 0);
        text[n] = '\0';
        cr_expect(took < NS_PER_S, "%llu ns", (unsigned long long) took);
        cr_expect_str_eq(text, "throttlescope: warning: 3 messages before this could not be written\n"
                               "throttlescope: notice: read again\n");
        log_set_level(LOG_NOTICE);
}

Test(log, a_full_pipe_holds_nobody_up_and_what_it_cost_is_told) {
        cr_assert(pipe2(ends, O_CLOEXEC) == 0);
        check_full(ends[0], ends[1]);
}

Test(log, nor_does_a_full_socket) {
        cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        check_full(ends[0], ends[1]);
}
