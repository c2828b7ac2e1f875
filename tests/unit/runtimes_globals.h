/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A made process whose executable is this test program, and whose memory holds what the test's global variables hold. */
#include "runtimes_fixture.h"

#define MADE_BASE UINT64_C(0x10000) /* where its executable is mapped */

extern const char __executable_start[]; /* the linker's: where this program itself is */

/* For made_process.maps of a process with @exe. */
#define MADE_MAPS(exe) "00010000-00011000 r--p 00000000 08:01 77 " exe "\n"

/* Its executable, found at @exe of the machine. */
static inline void fixture_own_image(struct fixture *fixture, const char *exe) {
        cleanup_file FILE *from = fopen("/proc/self/exe", "re");
        cleanup_file FILE *to = fopen(fixture_path(fixture, exe + 1), "we");
        char block[65536];
        size_t n;

        cr_assert(from && to);
        while ((n = fread(block, 1, sizeof(block), from)) > 0)
                cr_assert_eq(fwrite(block, 1, n, to), n);
}

/* The bytes of @variable as process @pid has them. */
static inline void fixture_global(struct fixture *fixture, unsigned pid, const void *variable, size_t size) {
        uint64_t at = MADE_BASE + (uint64_t) ((const char *) variable - __executable_start);
        char path[64];

        (void) snprintf(path, sizeof(path), "proc/%u/mem", pid);
        cleanup_fd int fd = open(fixture_path(fixture, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        cr_assert(fd >= 0);
        cr_assert_eq(pwrite(fd, variable, size, (off_t) at), (ssize_t) size);
}
