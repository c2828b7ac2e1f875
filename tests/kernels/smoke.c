/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smoke: can a test of stalls mean anything on this machine? Checks that a quota throttles, that the clocks the truth
 * tests compare agree on a quiet machine, and that BPF programs of the kinds the agent uses load and attach.
 * Needs no library. Prints a line `PASS name`, `FAIL name: reason` or `SKIP name: reason` for each.
 *
 * usage: smoke [CGROUP-ROOT]      default /sys/fs/cgroup (v2) or /sys/fs/cgroup/cpu (v1), whichever has the controller
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL
#define GAP_NS 1000000ULL
#define CLOCKS_TOLERANCE_PERCENT 1.0
#define ENOTSUPP_KERNEL 524 /* what the kernel says and no header names */

static int failures;

static void fail(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(const char *name, const char *format, ...) {
        va_list args;

        failures++;
        printf("FAIL %s: ", name);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        putchar('\n');
}

static uint64_t clock_ns(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * NS_PER_S + (uint64_t) now.tv_nsec;
}

static void spin_ns(uint64_t ns) {
        uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;

        while (clock_ns(CLOCK_MONOTONIC) < end)
                ;
}

static int write_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ssize_t done;

        if (fd < 0)
                return -errno;
        done = write(fd, text, strlen(text));
        if (done < 0)
                done = -errno;
        close(fd);
        return done < 0 ? (int) done : 0;
}

/* Reads up to size - 1 bytes and ends them with a zero; the length, or a negative errno. */
static ssize_t read_file(const char *path, char *buf, size_t size) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t len = 0;
        ssize_t got;

        if (fd < 0)
                return -errno;
        while (len < size - 1 && (got = read(fd, buf + len, size - 1 - len)) > 0)
                len += (size_t) got;
        close(fd);
        buf[len] = '\0';
        return (ssize_t) len;
}

/* --- clocks ------------------------------------------------------------------------------------------------------ */

/*
 * One busy thread on a quiet machine: its CPU clock and the time it waited for a CPU make up the wall clock. In a virtual machine
 * this also says whether the scheduler's clock and the monotonic clock run at one rate.
 */
static void check_clocks(void) {
        unsigned long long run_ns[2], delay_ns[2];
        uint64_t wall_ns = 0, cpu_ns = 0;
        double off;
        char buf[128];

        for (int i = 0; i < 2; i++) {
                if (i == 1) {
                        wall_ns = clock_ns(CLOCK_MONOTONIC);
                        cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                        spin_ns(2 * NS_PER_S);
                        cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
                        wall_ns = clock_ns(CLOCK_MONOTONIC) - wall_ns;
                }
                if (read_file("/proc/thread-self/schedstat", buf, sizeof(buf)) < 0 ||
                    sscanf(buf, "%llu %llu", &run_ns[i], &delay_ns[i]) != 2)
                        return fail("clocks", "/proc/thread-self/schedstat cannot be read");
        }
        off = 100.0 * ((double) (cpu_ns + delay_ns[1] - delay_ns[0]) - (double) wall_ns) / (double) wall_ns;
        printf("# clocks: CPU + run delay = wall %+.3f %% (delay %.3f %%)\n", off,
               100.0 * (double) (delay_ns[1] - delay_ns[0]) / (double) wall_ns);
        if (off > CLOCKS_TOLERANCE_PERCENT || off < -CLOCKS_TOLERANCE_PERCENT)
                return fail("clocks", "CPU clock + run delay is %+.2f %% off the wall clock", off);
        puts("PASS clocks");
}

/*
 * How steady a CPU is here: every CPU busy for a second, and the gaps that one of the threads sees on its own clock. A fact to
 * judge the tests' tolerances by, never a failure.
 */
static void show_steadiness(void) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t now, last, end, longest_ns = 0, lost_ns = 0;
        unsigned int gaps = 0;

        for (long i = 1; i < cpus; i++) {
                if (fork() == 0) {
                        spin_ns(NS_PER_S);
                        _exit(0);
                }
        }
        last = clock_ns(CLOCK_MONOTONIC);
        for (end = last + NS_PER_S; last < end; last = now) {
                now = clock_ns(CLOCK_MONOTONIC);
                if (now - last < GAP_NS)
                        continue;
                gaps++;
                lost_ns += now - last;
                if (now - last > longest_ns)
                        longest_ns = now - last;
        }
        while (wait(NULL) > 0)
                ;
        printf("# steady: %u gaps of 1 ms or more in 1 s, longest %.1f ms, %.1f %% lost, %ld CPUs\n", gaps,
               (double) longest_ns / 1e6, (double) lost_ns / 1e7, cpus);
}

/* --- quota ------------------------------------------------------------------------------------------------------- */

static unsigned long long stat_value(const char *text, const char *key) {
        const char *at = strstr(text, key);

        return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* 20 ms of every 100 ms, one busy process for a second: used 20 %, throttled in nearly every period. */
static void check_quota(const char *root) {
        char group[200], path[256], buf[1024];
        const char *v2 = "/sys/fs/cgroup/cgroup.controllers";
        bool is_v2 = access(v2, R_OK) == 0;
        unsigned long long throttled, periods;
        uint64_t cpu_ns = 0;
        int status, channel[2], err;
        pid_t child;

        snprintf(group, sizeof(group), "%s/smoke",
                 root    ? root
                 : is_v2 ? "/sys/fs/cgroup"
                         : "/sys/fs/cgroup/cpu");
        if (mkdir(group, 0755) < 0 && errno != EEXIST)
                return fail("quota", "%s: %s", group, strerror(errno));
        if (is_v2) {
                snprintf(path, sizeof(path), "%s/cpu.max", group);
                err = write_file(path, "20000 100000");
        } else {
                snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", group);
                err = write_file(path, "20000");
        }
        if (err < 0)
                return fail("quota", "%s: %s", path, strerror(-err));
        if (pipe(channel) < 0)
                return fail("quota", "pipe: %s", strerror(errno));
        child = fork();
        if (child == 0) {
                snprintf(path, sizeof(path), "%s/cgroup.procs", group);
                if (write_file(path, "0") < 0)
                        _exit(1);
                cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
                spin_ns(NS_PER_S);
                cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
                _exit(write(channel[1], &cpu_ns, sizeof(cpu_ns)) != sizeof(cpu_ns));
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status ||
            read(channel[0], &cpu_ns, sizeof(cpu_ns)) < 1)
                return fail("quota", "the busy process could not join %s", group);
        snprintf(path, sizeof(path), "%s/cpu.stat", group);
        if (read_file(path, buf, sizeof(buf)) < 0)
                return fail("quota", "%s cannot be read", path);
        throttled = stat_value(buf, "nr_throttled ");
        periods = stat_value(buf, "nr_periods ");
        snprintf(path, sizeof(path), "%s/cpu.stat.local", group);
        printf("# quota: %llu of %llu periods throttled, used %.1f %% of a CPU, limit 20 %%; cpu.stat.local "
               "%s\n",
               throttled, periods, (double) cpu_ns / 1e7,
               access(path, R_OK) == 0 ? "exists" : "does not exist");
        rmdir(group);
        if (throttled < 5 || cpu_ns > NS_PER_S * 35 / 100)
                return fail("quota", "%llu of %llu periods throttled, used %.1f %% of a CPU", throttled,
                            periods, (double) cpu_ns / 1e7);
        puts("PASS quota");
}

/* --- BPF --------------------------------------------------------------------------------------------------------- */

static struct btf_header *btf;

/* Bytes that follow a type's common part in the table. */
static size_t btf_tail(const struct btf_type *type) {
        uint32_t count = BTF_INFO_VLEN(type->info);

        switch (BTF_INFO_KIND(type->info)) {
        case BTF_KIND_INT:
        case BTF_KIND_VAR:
        case 17: /* BTF_KIND_DECL_TAG */
                return 4;
        case BTF_KIND_ARRAY:
                return sizeof(struct btf_array);
        case BTF_KIND_STRUCT:
        case BTF_KIND_UNION:
        case BTF_KIND_DATASEC:
        case 19: /* BTF_KIND_ENUM64 */
                return 12 * (size_t) count;
        case BTF_KIND_ENUM:
        case BTF_KIND_FUNC_PROTO:
                return 8 * (size_t) count;
        default:
                return 0;
        }
}

/* The id of the kernel type of this kind and name, 0 if there is none. */
static uint32_t btf_find(uint32_t kind, const char *name) {
        const char *base = (const char *) btf + btf->hdr_len;
        const char *strings = base + btf->str_off;
        uint32_t id = 1;

        for (const char *at = base + btf->type_off; at < base + btf->type_off + btf->type_len; id++) {
                const struct btf_type *type = (const void *) at;

                if (BTF_INFO_KIND(type->info) == kind && !strcmp(strings + type->name_off, name))
                        return id;
                at += sizeof(*type) + btf_tail(type);
        }
        return 0;
}

static bool check_btf(void) {
        static const char path[] = "/sys/kernel/btf/vmlinux";
        struct stat st;

        if (stat(path, &st) < 0) {
                fail("btf", "%s: %s", path, strerror(errno));
                return false;
        }
        btf = malloc((size_t) st.st_size + 1);
        if (!btf || read_file(path, (char *) btf, (size_t) st.st_size + 1) != st.st_size ||
            btf->magic != 0xeb9f) {
                fail("btf", "%s cannot be read", path);
                return false;
        }
        puts("PASS btf");
        return true;
}

/* Loads and attaches a program that does nothing. */
static void check_program(const char *name, uint32_t attach_type, uint32_t kind, const char *target) {
        static char log[4096];
        const struct bpf_insn code[] = {
                        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
                        {.code = BPF_JMP | BPF_EXIT},
        };
        union bpf_attr load = {
                        .prog_type = BPF_PROG_TYPE_TRACING,
                        .expected_attach_type = attach_type,
                        .insns = (uintptr_t) code,
                        .insn_cnt = sizeof(code) / sizeof(code[0]),
                        .license = (uintptr_t) "GPL",
                        .log_buf = (uintptr_t) log,
                        .log_size = sizeof(log),
                        .log_level = 1,
        };
        union bpf_attr attach = {0};
        long program, link;

        load.attach_btf_id = btf_find(kind, target);
        if (!load.attach_btf_id) {
                printf("SKIP %s: this kernel has no %s\n", name, target);
                return;
        }
        program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
        if (program < 0)
                return fail(name, "load: %s %s", strerror(errno), log);
        attach.raw_tracepoint.prog_fd = (uint32_t) program;
        link = syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attach, sizeof(attach));
        if (link < 0 && (errno == ENOTSUPP_KERNEL || errno == EOPNOTSUPP))
                printf("SKIP %s: this kernel cannot attach to functions on this architecture\n", name);
        else if (link < 0)
                fail(name, "attach: %s", strerror(errno));
        else
                printf("PASS %s\n", name);
        if (link >= 0)
                close((int) link);
        close((int) program);
}

int main(int argc, char **argv) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        check_clocks();
        show_steadiness();
        check_quota(argc > 1 ? argv[1] : NULL);
        if (check_btf()) {
                check_program("tp_btf", BPF_TRACE_RAW_TP, BTF_KIND_TYPEDEF, "btf_trace_sched_switch");
                check_program("fentry_throttle", BPF_TRACE_FENTRY, BTF_KIND_FUNC, "throttle_cfs_rq");
                check_program("fentry_unthrottle", BPF_TRACE_FENTRY, BTF_KIND_FUNC, "unthrottle_cfs_rq");
        }
        return failures != 0;
}
