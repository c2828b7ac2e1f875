/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "../base/clock.h"
#include "../base/memory.h"

#define QUEUE_FIRST ((size_t) 8 << 10)
/* What a pipe that polls as writable takes without blocking, if nobody else writes in between. */
#define CHUNK_MAX ((size_t) 4096)

/* In the queue each record follows its length. */
struct header {
        uint32_t length;
};

enum sink_way {
        WAY_FILE,     /* a regular file: writing waits for the disk only */
        WAY_SOCKET,   /* MSG_DONTWAIT */
        WAY_REOPENED, /* an open file description of our own, non-blocking */
        WAY_SHARED,   /* somebody else's: poll first, then small writes */
};

struct sink {
        int fd, own_fd; /* own_fd: to be closed, -1: none */
        enum sink_way way;
        bool nowait_works, closed, watched;
        struct loop *loop;
        char *queue;
        size_t start, used, room, max; /* bytes [start, start + used) of the queue are waiting */
        size_t written;                /* of the first record */
        uint64_t lost;
};

/* A description of our own, so that O_NONBLOCK does not reach those who share the original. Fails where another user owns the pipe. */
static int reopen(int fd) {
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_APPEND);
}

bool sink_is_ready(int fd) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        return poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT;
}

int sink_new(int fd, size_t max, struct sink **ret_sink) {
        struct sink *sink = calloc(1, sizeof(*sink));
        struct stat st;

        if (!sink)
                return -ENOMEM;
        *sink = (struct sink){.fd = fd, .own_fd = -1, .max = max, .nowait_works = true, .way = WAY_SHARED};
        if (fstat(fd, &st) < 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
                sink->closed = true;
        else if (S_ISREG(st.st_mode))
                sink->way = WAY_FILE;
        else if (S_ISSOCK(st.st_mode))
                sink->way = WAY_SOCKET;
        else {
                sink->own_fd = reopen(fd);
                if (sink->own_fd >= 0) {
                        sink->way = WAY_REOPENED;
                        sink->fd = sink->own_fd;
                }
        }
        *ret_sink = sink;
        return 0;
}

static void unwatch(struct sink *sink) {
        if (sink->watched)
                (void) loop_remove_io(sink->loop, sink->fd);
        sink->watched = false;
}

void sink_free(struct sink *sink) {
        if (!sink)
                return;
        unwatch(sink);
        if (sink->own_fd >= 0)
                close(sink->own_fd);
        free(sink->queue);
        free(sink);
}

uint64_t sink_lost(const struct sink *sink) {
        return sink->lost;
}

bool sink_is_closed(const struct sink *sink) {
        return sink->closed;
}

void sink_drop(struct sink *sink) {
        sink->lost++;
}

static void drop_queue(struct sink *sink) {
        while (sink->used > 0) {
                struct header header;

                memcpy(&header, sink->queue + sink->start, sizeof(header));
                sink->start += sizeof(header) + header.length;
                sink->used -= sizeof(header) + header.length;
                sink->lost++;
        }
        sink->start = sink->written = 0;
}

/* Only poll() and RWF_NOWAIT stand between us and a write that blocks; the first alone can lose a race with another writer. */
static ssize_t write_shared(struct sink *sink, const char *bytes, size_t length) {
        struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
        struct iovec vector = {.iov_base = (void *) bytes,
                               .iov_len = length < CHUNK_MAX ? length : CHUNK_MAX};
        ssize_t n;

        if (poll(&ready, 1, 0) < 0)
                return -1;
        if (ready.revents == 0) {
                errno = EAGAIN;
                return -1;
        }
        if (sink->nowait_works) {
                n = pwritev2(sink->fd, &vector, 1, -1, RWF_NOWAIT);
                if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EPERM))
                        return n;
                sink->nowait_works = false;
        }
        return write(sink->fd, bytes, vector.iov_len);
}

static ssize_t write_some(struct sink *sink, const char *bytes, size_t length) {
        switch (sink->way) {
        case WAY_SOCKET:
                return send(sink->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        case WAY_SHARED:
                return write_shared(sink, bytes, length);
        case WAY_FILE:
        case WAY_REOPENED:
                break;
        }
        return write(sink->fd, bytes, length);
}

/* Writes until the descriptor would block or the queue is empty. True if something was written. */
static bool drain(struct sink *sink) {
        bool progress = false;

        while (sink->used > 0) {
                struct header header;
                ssize_t n;

                memcpy(&header, sink->queue + sink->start, sizeof(header));
                n = write_some(sink, sink->queue + sink->start + sizeof(header) + sink->written,
                               header.length - sink->written);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return progress;
                if (n < 0) {
                        /* A full disk may have room again later; a reader that is gone does not come back. */
                        sink->closed = errno != ENOSPC && errno != EDQUOT && errno != EIO && errno != EFBIG;
                        drop_queue(sink);
                        return progress;
                }
                progress = true;
                sink->written += (size_t) n;
                if (sink->written < header.length)
                        continue;
                sink->start += sizeof(header) + header.length;
                sink->used -= sizeof(header) + header.length;
                sink->written = 0;
        }
        sink->start = 0;
        return progress;
}

static int on_ready(int fd, uint32_t events, void *data) {
        struct sink *sink = data;

        (void) fd;
        (void) events;
        (void) drain(sink);
        if (sink->used == 0)
                unwatch(sink);
        return 0;
}

void sink_set_loop(struct sink *sink, struct loop *loop) {
        unwatch(sink);
        sink->loop = loop;
        if (loop && sink->used > 0)
                sink->watched = loop_add_io(loop, sink->fd, EPOLLOUT, on_ready, sink) >= 0;
}

/* Room for @need more bytes behind what is waiting. */
static bool make_room(struct sink *sink, size_t need) {
        size_t room = sink->room ? sink->room : QUEUE_FIRST;
        char *queue;

        if (need > sink->max || sink->used > sink->max - need)
                return false;
        if (sink->start > 0 && sink->start + sink->used + need > sink->room) {
                memmove(sink->queue, sink->queue + sink->start, sink->used);
                sink->start = 0;
        }
        if (sink->used + need <= sink->room)
                return true;
        while (room < sink->used + need)
                room *= 2;
        queue = realloc(sink->queue, room);
        if (!queue)
                return false;
        sink->queue = queue;
        sink->room = room;
        return true;
}

bool sink_write(struct sink *sink, const char *bytes, size_t length) {
        struct header header = {.length = (uint32_t) length};

        if (length == 0)
                return true;
        if (sink->closed || length > UINT32_MAX || !make_room(sink, sizeof(header) + length)) {
                sink->lost++;
                return false;
        }
        memcpy(sink->queue + sink->start + sink->used, &header, sizeof(header));
        memcpy(sink->queue + sink->start + sink->used + sizeof(header), bytes, length);
        sink->used += sizeof(header) + length;
        (void) drain(sink);
        if (sink->used > 0 && sink->loop && !sink->watched)
                sink->watched = loop_add_io(sink->loop, sink->fd, EPOLLOUT, on_ready, sink) >= 0;
        return !sink->closed;
}

bool sink_flush(struct sink *sink, uint64_t patience_ns, uint64_t total_ns, int cancel_fd) {
        uint64_t now = clock_now().mono_ns, lost = sink->lost, idle_end = now + patience_ns, end;

        if (__builtin_add_overflow(now, total_ns, &end))
                end = UINT64_MAX;
        for (;;) {
                struct pollfd ready[2] = {{.fd = sink->fd, .events = POLLOUT},
                                          {.fd = cancel_fd, .events = POLLIN}};
                uint64_t until;

                if (drain(sink))
                        idle_end = clock_now().mono_ns + patience_ns;
                now = clock_now().mono_ns;
                until = idle_end < end ? idle_end : end;
                if (sink->used == 0 || now >= until)
                        break;
                /* Rounded up: a wait of zero would spin through the last millisecond. */
                if (poll(ready, 2, (int) ((until - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
                        break;
                if (ready[1].revents)
                        break;
        }
        drop_queue(sink);
        unwatch(sink);
        return sink->lost == lost;
}
