/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

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
