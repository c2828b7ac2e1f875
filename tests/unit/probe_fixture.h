/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A host in a temporary folder: groups on cgroup v2, processes and threads, as far as the readers look. Numbers are changed
 * between ticks by writing again. Also what stands in for the BPF backend.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "../../agent/host/root.h"

#define ID_A "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
#define ID_B "b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"
#define ID_C "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3"
#define UID_1 "9dae2ba7-9594-4920-9822-4320df8538c7"
#define UID_1_SYSTEMD "9dae2ba7_9594_4920_9822_4320df8538c7"
#define UID_2 "11111111-2222-3333-4444-555555555555"

struct host {
        char directory[64];
        struct root *root;
};

static inline void host_write(const struct host *host, const char *path, const char *format, ...)
                __attribute__((format(printf, 3, 4)));
static inline void host_write(const struct host *host, const char *path, const char *format, ...) {
        char full[1024];
        va_list arguments;

        int length = snprintf(full, sizeof(full), "%s%s", host->directory, path);
        cr_assert(length > 0 && (size_t) length < sizeof(full));
        for (char *p = full + strlen(host->directory) + 1; *p; p++)
                if (*p == '/') {
                        *p = 0;
                        cr_assert(mkdir(full, 0700) == 0 || errno == EEXIST, "%s", full);
                        *p = '/';
                }
        FILE *file = fopen(full, "we");
        cr_assert(file, "%s: %s", full, strerror(errno));
        va_start(arguments, format);
        vfprintf(file, format, arguments);
        va_end(arguments);
        cr_assert(fclose(file) == 0);
}

static inline int host_unlink(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        (void) st, (void) flag, (void) ftw;
        return remove(path);
}

/* @path "" removes the whole host. */
static inline void host_remove(const struct host *host, const char *path) {
        char full[1024];

        snprintf(full, sizeof(full), "%s%s", host->directory, path);
        (void) nftw(full, host_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* A group with @pids ("1\n2\n"); @quota_us 0: no limit. */
static inline void host_group(const struct host *host, const char *path, unsigned quota_us,
                              unsigned throttled, const char *pids) {
        char file[1024];

#define GROUP_FILE(name) (snprintf(file, sizeof(file), "/sys/fs/cgroup%s/%s", path, name), file)
        host_write(host, GROUP_FILE("cgroup.controllers"), "cpu memory pids\n");
        host_write(host, GROUP_FILE("cgroup.procs"), "%s", pids);
        if (quota_us)
                host_write(host, GROUP_FILE("cpu.max"), "%u 100000\n", quota_us);
        else
                host_write(host, GROUP_FILE("cpu.max"), "max 100000\n");
        host_write(host, GROUP_FILE("cpu.weight"), "100\n");
        host_write(host, GROUP_FILE("cpu.stat"),
                   "usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\nnr_periods %u\nnr_throttled %u\n"
                   "throttled_usec %u\nnr_bursts 0\nburst_usec 0\n",
                   throttled * 2, throttled, throttled * 1000);
        host_write(host, GROUP_FILE("cpu.stat.local"), "throttled_usec %u\n", throttled * 1500);
#undef GROUP_FILE
}

/* What the stat files of the threads say that are written from now on. */
static unsigned host_threads = 1;

static inline void host_thread(const struct host *host, int pid, int tid, const char *name, unsigned start,
                               uint64_t run_ns, uint64_t delay_ns, uint64_t slices) {
        char file[256];

#define THREAD_FILE(name) (snprintf(file, sizeof(file), "/proc/%d/task/%d/%s", pid, tid, name), file)
        host_write(host, THREAD_FILE("comm"), "%s\n", name);
        host_write(host, THREAD_FILE("stat"),
                   "%d (%s) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 %u 0 %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
                   "17 0 0 0 0 0 0\n",
                   tid, name, host_threads, start);
        host_write(host, THREAD_FILE("status"),
                   "Name:\t%s\nTgid:\t%d\nPid:\t%d\nUid:\t0\t0\t0\t0\nNSpid:\t%d\t%d\n", name, pid, tid, tid,
                   tid - 1000);
        host_write(host, THREAD_FILE("schedstat"), "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", run_ns, delay_ns,
                   slices);
#undef THREAD_FILE
}

/* A process without its threads; its number in the container is 1000 less. */
static inline void host_process(const struct host *host, int pid, const char *name, unsigned uid,
                                unsigned threads, unsigned start, const char *group) {
        char file[256];

        host_threads = threads;
#define PROCESS_FILE(name) (snprintf(file, sizeof(file), "/proc/%d/%s", pid, name), file)
        host_write(host, PROCESS_FILE("comm"), "%s\n", name);
        host_write(host, PROCESS_FILE("cmdline"), "%s%c-x%c", name, 0, 0);
        host_write(host, PROCESS_FILE("stat"),
                   "%d (%s) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 %u 0 %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
                   "17 0 0 0 0 0 0\n",
                   pid, name, threads, start);
        host_write(host, PROCESS_FILE("status"),
                   "Name:\t%s\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t1\nUid:\t%u\t%u\t%u\t%u\n"
                   "Gid:\t%u\t%u\t%u\t%u\nNSpid:\t%d\t%d\nThreads:\t%u\nCapInh:\t0000000000000000\n"
                   "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
                   "CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n",
                   name, pid, pid, uid, uid, uid, uid, uid, uid, uid, uid, pid, pid - 1000, threads);
        host_write(host, PROCESS_FILE("cgroup"), "0::%s\n", group);
#undef PROCESS_FILE
}

#define HOST_MOUNTINFO                                                                                      \
        "22 1 0:21 / /proc rw,relatime - proc proc rw\n"                                                    \
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw,nsdelegate\n"

/* We are @group; machine facts; no other process yet. */
static inline void host_begin(struct host *host, const char *group) {
        snprintf(host->directory, sizeof(host->directory), "/tmp/probe-test-XXXXXX");
        cr_assert(mkdtemp(host->directory));
        host_write(host, "/proc/self/cgroup", "0::%s\n", group);
        host_write(host, "/proc/self/mountinfo", HOST_MOUNTINFO);
        host_write(host, "/proc/self/status",
                   "Name:\tthrottlescope\nTgid:\t900\nPid:\t900\nPPid:\t1\nUid:"
                   "\t65532\t65532\t65532\t65532\n"
                   "NSpid:\t900\nThreads:\t1\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                   "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
        host_write(host, "/proc/stat",
                   "cpu  100 0 100 1000 0 0 0 7 0 0\ncpu0 100 0 100 1000 0 0 0 7 0 0\nbtime 1796000000\n");
        host_write(host, "/proc/sys/kernel/osrelease", "6.12.117\n");
        host_write(host, "/proc/sys/kernel/hostname", "node-1\n");
        host_write(host, "/sys/devices/system/cpu/online", "0-3\n");
        host_group(host, "", 0, 0, "");
        cr_assert(root_open(host->directory, &host->root, NULL) == 0);
}

static inline void host_end(struct host *host) {
        root_free(host->root);
        host_remove(host, "");
}
