/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "../../agent/base/memory.h"
#include "../../agent/cmd/sink.h"

#define RECORD ((size_t) 1000)

static char record[RECORD];

static void setup(void) {
        signal(SIGPIPE, SIG_IGN);
        memset(record, 'x', sizeof(record));
        record[RECORD - 1] = '\n';
}
TestSuite(sink, .init = setup, .timeout = 20);

static size_t read_all(int fd) {
        static char buffer[65536];
        size_t total = 0;
        ssize_t n;

        fcntl(fd, F_SETFL, O_NONBLOCK);
        while ((n = read(fd, buffer, sizeof(buffer))) > 0)
                total += (size_t) n;
        return total;
}

static bool is_blocking(int fd) {
        return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

Test(sink, writes_at_once_where_there_is_room) {
        struct sink *sink;
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(sink_new(ends[1], 10000, &sink), 0);
        cr_expect(sink_write(sink, record, RECORD));
        cr_expect(sink_write(sink, record, 0));
        cr_expect_eq(read_all(ends[0]), RECORD);
        cr_expect_eq(sink_lost(sink), UINT64_C(0));
        cr_expect(is_blocking(ends[1]), "others share this description");
        sink_free(sink);
}

/* Whatever its kind: what does not fit is dropped whole and counted, what was taken arrives. */
static void fill_up(int reader, int writer) {
        struct sink *sink;
        size_t taken = 0, got, more;
        uint64_t started = clock_now().mono_ns;

        cr_assert_eq(sink_new(writer, 50 * (RECORD + 4), &sink), 0);
        for (size_t i = 0; i < 2000; i++)
                taken += sink_write(sink, record, RECORD);
        cr_expect_lt(clock_now().mono_ns - started, 2 * NS_PER_S, "it has blocked");
        cr_expect_eq(sink_lost(sink), (uint64_t) (2000 - taken));
        cr_expect_gt(taken, (size_t) 50);
        got = read_all(reader);
        while (sink_flush(sink, 10 * NS_PER_MS, 10 * NS_PER_MS, -1) && (more = read_all(reader)) > 0)
                got += more;
        got += read_all(reader);
        cr_expect_eq(got % RECORD, (size_t) 0);
        cr_expect_leq(got, taken * RECORD);
        cr_expect_eq(sink_lost(sink), (uint64_t) (2000 - got / RECORD), "arrived and lost do not add up");
        sink_free(sink);
}

Test(sink, full_pipe_never_blocks_and_drops_are_counted) {
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        fill_up(ends[0], ends[1]);
}

/* A non-root container writes to root's pipe: no description of our own to be had. */
Test(sink, full_pipe_of_another_user_never_blocks_either) {
        int ends[2];

        if (geteuid() != 0)
                cr_skip("needs root to make the pipe somebody else's");
        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(seteuid(65534), 0);
        fill_up(ends[0], ends[1]);
}

Test(sink, full_socket_never_blocks_and_drops_are_counted) {
        int ends[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        fill_up(ends[0], ends[1]);
}

Test(sink, flush_gives_up_after_its_patience) {
        struct sink *sink;
        uint64_t started;
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(sink_new(ends[1], 100000, &sink), 0);
        for (size_t i = 0; i < 100; i++)
                sink_write(sink, record, RECORD);
        started = clock_now().mono_ns;
        cr_expect_not(sink_flush(sink, 100 * NS_PER_MS, 10 * NS_PER_S, -1));
        cr_expect_geq(clock_now().mono_ns - started, 100 * NS_PER_MS);
        cr_expect_lt(clock_now().mono_ns - started, 5 * NS_PER_S);
        cr_expect_gt(sink_lost(sink), UINT64_C(0));
        sink_free(sink);
}

Test(sink, flush_can_be_cancelled) {
        struct sink *sink;
        uint64_t started;
        int ends[2], cancel[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(pipe2(cancel, O_CLOEXEC), 0);
        cr_assert_eq(sink_new(ends[1], 100000, &sink), 0);
        for (size_t i = 0; i < 100; i++)
                sink_write(sink, record, RECORD);
        cr_assert_eq(write(cancel[1], "x", 1), 1);
        started = clock_now().mono_ns;
        cr_expect_not(sink_flush(sink, 10 * NS_PER_S, 10 * NS_PER_S, cancel[0]));
        cr_expect_lt(clock_now().mono_ns - started, 5 * NS_PER_S);
        sink_free(sink);
}

Test(sink, a_reader_that_is_gone_is_noticed) {
        struct sink *sink;
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(sink_new(ends[1], 10000, &sink), 0);
        close(ends[0]);
        cr_expect_not(sink_write(sink, record, RECORD));
        cr_expect(sink_is_closed(sink));
        cr_expect_not(sink_write(sink, record, RECORD));
        cr_expect_eq(sink_lost(sink), UINT64_C(2));
        sink_free(sink);
}

Test(sink, a_descriptor_that_is_not_open_or_not_for_writing_is_closed) {
        struct sink *sink;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        cr_assert_eq(sink_new(fd, 10000, &sink), 0);
        cr_expect(sink_is_closed(sink));
        cr_expect_not(sink_write(sink, record, RECORD));
        sink_free(sink);
        close(fd);
        cr_assert_eq(sink_new(fd, 10000, &sink), 0);
        cr_expect_not(sink_write(sink, record, RECORD));
        cr_expect_eq(sink_lost(sink), UINT64_C(1));
        sink_free(sink);
}

Test(sink, a_full_disk_is_not_the_end) {
        struct sink *sink;
        int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        cr_assert_geq(fd, 0);
        cr_assert_eq(sink_new(fd, 10000, &sink), 0);
        sink_write(sink, record, RECORD);
        cr_expect_eq(sink_lost(sink), UINT64_C(1));
        cr_expect_not(sink_is_closed(sink));
        sink_free(sink);
        close(fd);
}

Test(sink, a_file_gets_everything_where_it_stands) {
        char path[] = "/tmp/cmd_sink.XXXXXX";
        int fd = mkstemp(path);
        struct sink *sink;

        cr_assert_geq(fd, 0);
        unlink(path);
        cr_assert_eq(write(fd, "before\n", 7), 7);
        cr_assert_eq(sink_new(fd, 10000, &sink), 0);
        cr_expect(sink_write(sink, record, RECORD));
        cr_expect(sink_flush(sink, 0, 0, -1));
        cr_expect_eq(lseek(fd, 0, SEEK_CUR), (off_t) (RECORD + 7));
        sink_free(sink);
        close(fd);
}

Test(sink, a_record_too_large_for_the_queue_is_dropped) {
        struct sink *sink;
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
        cr_assert_eq(sink_new(ends[1], RECORD, &sink), 0);
        cr_expect_not(sink_write(sink, record, RECORD));
        cr_expect(sink_write(sink, record, RECORD / 2));
        sink_drop(sink);
        cr_expect_eq(sink_lost(sink), UINT64_C(2));
        sink_free(sink);
}
