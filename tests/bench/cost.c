/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures for run.sh. Figures go to standard output as one line of words, what went wrong to standard error.
 *
 *   cost switches EMPTY.bpf.o ROUNDS SECONDS -- COMMAND...
 *       the BPF programs of COMMAND beside empty ones on the same hooks, by the kernel's own statistics, as medians over the rounds:
 *       `switches a second`, then nanoseconds: `the empty program` `over it at a switch` `over it with all programs`, the last with
 *       wake-ups and whatever else it hooks, each less an empty program, shared out over the switches
 *   cost agent WARM SECONDS -- COMMAND...
 *       after WARM seconds, for SECONDS: CPU time of the process and of its BPF programs in ms; then its resident set and the largest it
 *       ever had in KiB
 *   cost first -- COMMAND...      milliseconds until it has printed its first line, of CPU until it ended, and its largest resident set in KiB
 *   cost pingpong                 a pair of threads on each CPU wakes one another until killed
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAMS_MAX 64
#define ROUNDS_MAX 99
#define NS_PER_S UINT64_C(1000000000)
#define START_SECONDS 20

static void fail(const char *what) {
        fprintf(stderr, "cost: %s: %s\n", what, strerror(errno));
        exit(1);
}

static uint64_t now_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * NS_PER_S + (uint64_t) t.tv_nsec;
}

static void sleep_ms(unsigned ms) {
        struct timespec t = {ms / 1000, (long) (ms % 1000) * 1000000};

        while (nanosleep(&t, &t) < 0 && errno == EINTR)
                ;
}

/* --- a command --- */

static pid_t start(char **command, int output) {
        pid_t pid = fork();

        if (pid < 0)
                fail("fork");
        if (pid > 0)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(output >= 0 ? output : null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(command[0], command);
        _exit(127);
}

static void end(pid_t pid) {
        kill(pid, SIGTERM);
        for (int i = 0; i < 30; i++) {
                if (waitpid(pid, NULL, WNOHANG) != 0)
                        return;
                sleep_ms(100);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

/* --- the kernel's statistics --- */

struct program {
        uint32_t id;
        bool at_switch;
        uint64_t runs, ns;
};

struct programs {
        struct program items[PROGRAMS_MAX];
        size_t count;
};

static uint32_t switch_hook; /* the kernel's number of the tracepoint, from the empty program there */

static bool read_info(uint32_t id, struct bpf_prog_info *ret_info) {
        uint32_t length = sizeof(*ret_info);
        int fd = bpf_prog_get_fd_by_id(id), r;

        if (fd < 0)
                return false;
        memset(ret_info, 0, sizeof(*ret_info));
        r = bpf_obj_get_info_by_fd(fd, ret_info, &length);
        close(fd);
        return r == 0;
}

static void add_program(struct programs *programs, uint32_t id) {
        struct bpf_prog_info info;

        for (size_t i = 0; i < programs->count; i++)
                if (programs->items[i].id == id)
                        return;
        if (programs->count == PROGRAMS_MAX || !read_info(id, &info))
                return;
        programs->items[programs->count++] = (struct program){
                        .id = id,
                        .at_switch = info.attach_btf_id ? info.attach_btf_id == switch_hook
                                                        : strstr(info.name, "switch") != NULL,
        };
}

/* The programs that process @pid holds, by what its descriptors say. */
static void find_programs(pid_t pid, struct programs *programs) {
        char path[320], line[256];
        uint32_t id;
        struct dirent *entry;

        programs->count = 0;
        snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int) pid);
        DIR *directory = opendir(path);
        while (directory && (entry = readdir(directory))) {
                snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int) pid, entry->d_name);
                FILE *file = fopen(path, "re");
                while (file && fgets(line, sizeof(line), file))
                        if (sscanf(line, "prog_id: %" SCNu32, &id) == 1)
                                add_program(programs, id);
                if (file)
                        fclose(file);
        }
        if (directory)
                closedir(directory);
}

static void read_programs(struct programs *programs) {
        struct bpf_prog_info info;

        for (size_t i = 0; i < programs->count; i++)
                if (read_info(programs->items[i].id, &info)) {
                        programs->items[i].runs = info.run_cnt;
                        programs->items[i].ns = info.run_time_ns;
                }
}

/* Until its program at the switch has run. */
static void wait_until_ready(pid_t pid, struct programs *programs) {
        for (unsigned i = 0; i < START_SECONDS * 10; i++) {
                sleep_ms(100);
                if (waitpid(pid, NULL, WNOHANG) == pid) {
                        fprintf(stderr, "cost: the command ended at once\n");
                        exit(1);
                }
                find_programs(pid, programs);
                read_programs(programs);
                for (size_t k = 0; k < programs->count; k++)
                        if (programs->items[k].at_switch && programs->items[k].runs > 0) {
                                sleep_ms(500); /* the rest of its start */
                                find_programs(pid, programs);
                                return;
                        }
        }
        fprintf(stderr, "cost: none of the command's BPF programs ran at a switch\n");
        kill(pid, SIGKILL);
        exit(1);
}

static struct bpf_object *load_empty(const char *path, struct programs *ret_programs) {
        struct bpf_object *object = bpf_object__open_file(path, NULL);
        struct bpf_program *program;

        if (!object || bpf_object__load(object) < 0)
                fail(path);
        ret_programs->count = 0;
        bpf_object__for_each_program(program, object) {
                struct bpf_prog_info info = {0};
                uint32_t length = sizeof(info);

                if (!bpf_program__attach(program) ||
                    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length) < 0)
                        fail(bpf_program__name(program));
                if (strcmp(bpf_program__name(program), "empty_switch") == 0)
                        switch_hook = info.attach_btf_id;
                add_program(ret_programs, info.id);
        }
        return object;
}

struct sum {
        double at_switch, all, runs, all_runs;
};

static struct sum growth(const struct programs *before, const struct programs *now) {
        struct sum sum = {0};

        for (size_t i = 0; i < now->count; i++) {
                double ns = (double) (now->items[i].ns - before->items[i].ns);

                double runs = (double) (now->items[i].runs - before->items[i].runs);

                sum.all += ns;
                sum.all_runs += runs;
                if (now->items[i].at_switch) {
                        sum.at_switch += ns;
                        sum.runs += runs;
                }
        }
        return sum;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
        qsort(values, (size_t) count, sizeof(*values), compare);
        return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int switches(const char *object_path, int rounds, int seconds, char **command) {
        static double figures[4][ROUNDS_MAX];
        struct programs empty, theirs;
        int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

        if (stats < 0)
                fail("the kernel's statistics of BPF programs");
        struct bpf_object *object = load_empty(object_path, &empty);
        pid_t pid = start(command, -1);
        wait_until_ready(pid, &theirs);
        for (int i = 0; i < rounds; i++) {
                read_programs(&empty);
                read_programs(&theirs);
                struct programs empty_before = empty, theirs_before = theirs;
                uint64_t begin = now_ns();
                sleep_ms((unsigned) seconds * 1000);
                read_programs(&empty);
                read_programs(&theirs);
                struct sum nothing = growth(&empty_before, &empty),
                           theirs_sum = growth(&theirs_before, &theirs);

                if (nothing.runs == 0 || theirs_sum.runs == 0) {
                        fprintf(stderr, "cost: nothing was switched, or the command has ended\n");
                        end(pid);
                        return 1;
                }
                figures[0][i] = nothing.runs * (double) NS_PER_S / (double) (now_ns() - begin);
                figures[1][i] = nothing.at_switch / nothing.runs;
                figures[2][i] = (theirs_sum.at_switch - theirs_sum.runs * figures[1][i]) / nothing.runs;
                figures[3][i] = (theirs_sum.all - theirs_sum.all_runs * figures[1][i]) / nothing.runs;
        }
        end(pid);
        for (int i = 0; i < 4; i++)
                printf("%.1f%c", median(figures[i], rounds), i == 3 ? '\n' : ' ');
        bpf_object__close(object);
        return 0;
}

/* --- the agent's own cost --- */

static uint64_t cpu_ns(pid_t pid) {
        char path[64];
        uint64_t ns = 0;

        snprintf(path, sizeof(path), "/proc/%d/schedstat", (int) pid);
        FILE *file = fopen(path, "re");
        if (!file || fscanf(file, "%" SCNu64, &ns) != 1)
                fail(path);
        fclose(file);
        return ns;
}

static unsigned long status_kib(pid_t pid, const char *format) {
        char path[64], line[256];
        unsigned long kib = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file) && sscanf(line, format, &kib) != 1)
                ;
        if (file)
                fclose(file);
        return kib;
}

static uint64_t programs_ns(const struct programs *programs) {
        uint64_t sum = 0;

        for (size_t i = 0; i < programs->count; i++)
                sum += programs->items[i].ns;
        return sum;
}

static int agent(int warm, int seconds, char **command) {
        struct programs programs;
        int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

        if (stats < 0)
                fail("the kernel's statistics of BPF programs");
        pid_t pid = start(command, -1);
        sleep_ms((unsigned) warm * 1000);
        find_programs(pid, &programs);
        read_programs(&programs);
        uint64_t cpu = cpu_ns(pid), bpf = programs_ns(&programs);
        sleep_ms((unsigned) seconds * 1000);
        read_programs(&programs);
        printf("%.2f %.2f %lu %lu\n", (double) (cpu_ns(pid) - cpu) / 1e6,
               (double) (programs_ns(&programs) - bpf) / 1e6, status_kib(pid, "VmRSS: %lu"),
               status_kib(pid, "VmHWM: %lu"));
        end(pid);
        return 0;
}

/* --- the first figures --- */

static int first(char **command) {
        struct rusage usage;
        uint64_t begin = now_ns(), at;
        char byte, rest[4096];
        int ends[2], status;

        if (pipe2(ends, O_CLOEXEC) < 0)
                fail("pipe");
        pid_t pid = start(command, ends[1]);
        close(ends[1]);
        do
                if (read(ends[0], &byte, 1) <= 0) {
                        fprintf(stderr, "cost: %s printed nothing\n", command[0]);
                        return 1;
                }
        while (byte != '\n');
        at = now_ns();
        while (read(ends[0], rest, sizeof(rest)) > 0)
                ;
        if (wait4(pid, &status, 0, &usage) < 0)
                fail("wait4");
        printf("%.1f %.1f %ld\n", (double) (at - begin) / 1e6,
               (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                               (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3,
               usage.ru_maxrss);
        return 0;
}

/* --- a load of switches --- */

struct half {
        int from, to, cpu;
};

static void *play(void *data) {
        const struct half *half = data;
        cpu_set_t set;
        char ball;

        CPU_ZERO(&set);
        CPU_SET(half->cpu, &set);
        pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
        while (read(half->from, &ball, 1) == 1 && write(half->to, &ball, 1) == 1)
                ;
        return NULL;
}

_Noreturn static void pingpong(void) {
        cpu_set_t set;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                fail("sched_getaffinity");
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                static struct half halves[CPU_SETSIZE][2];
                pthread_t thread;
                int there[2], back[2];

                if (!CPU_ISSET(cpu, &set))
                        continue;
                if (pipe(there) < 0 || pipe(back) < 0)
                        fail("pipe");
                halves[cpu][0] = (struct half){there[0], back[1], cpu};
                halves[cpu][1] = (struct half){back[0], there[1], cpu};
                for (int i = 0; i < 2; i++)
                        if (pthread_create(&thread, NULL, play, &halves[cpu][i]) != 0)
                                fail("pthread_create");
                if (write(there[1], "o", 1) != 1)
                        fail("write");
        }
        for (;;)
                pause();
}

static int usage(void) {
        fprintf(stderr, "usage: cost switches EMPTY.bpf.o ROUNDS SECONDS -- COMMAND... | agent WARM SECONDS "
                        "-- COMMAND... | "
                        "first -- COMMAND... | pingpong\n");
        return 2;
}

int main(int count, char **arguments) {
        if (count == 2 && strcmp(arguments[1], "pingpong") == 0)
                pingpong();
        if (count > 3 && strcmp(arguments[1], "first") == 0 && strcmp(arguments[2], "--") == 0)
                return first(arguments + 3);
        if (count > 6 && strcmp(arguments[1], "switches") == 0 && strcmp(arguments[5], "--") == 0) {
                int rounds = atoi(arguments[3]), seconds = atoi(arguments[4]);

                if (rounds > 0 && rounds <= ROUNDS_MAX && seconds > 0 && seconds < 3600)
                        return switches(arguments[2], rounds, seconds, arguments + 6);
        }
        if (count > 5 && strcmp(arguments[1], "agent") == 0 && strcmp(arguments[4], "--") == 0)
                return agent(atoi(arguments[2]), atoi(arguments[3]), arguments + 5);
        return usage();
}
