/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/host/proc.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../agent/base/clock.h"
#include "../../agent/host/proc_internal.h"
#include "host_fixture.h"

#define TEXT(literal) literal, sizeof(literal) - 1

/* Fields 4 to 22 and some more of a stat line: parent 7, 3 threads, start 4711. */
#define STAT_REST " 7 1 1 0 -1 4194304 104 0 0 0 1 2 0 0 20 -5 3 0 4711 3133440 380 18446744073709551615\n"

/* --- parsers --- */

Test(host_proc, schedstat_of_every_shape) {
        static const struct {
                const char *text;
                size_t length;
                bool is_good;
                uint64_t run_ns, delay_ns, slices;
        } rows[] = {
                        {TEXT("650960 111327 4\n"), true, 650960, 111327, 4},
                        {TEXT("0 0 0"), true, 0, 0, 0},
                        {TEXT("18446744073709551615 1 2\n"), true, UINT64_MAX, 1, 2},
                        {TEXT("1 2 3 4\n"), true, 1, 2, 3}, /* a later kernel may add some */
                        {TEXT(""), false, 0, 0, 0},
                        {TEXT("1 2\n"), false, 0, 0, 0},
                        {TEXT("1 -2 3\n"), false, 0, 0, 0},
                        {TEXT("1 2 3x\n"), false, 0, 0, 0},
                        {TEXT("1 2\n3\n"), false, 0, 0, 0},
                        {TEXT("99999999999999999999 2 3\n"), false, 0, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct proc_schedstat schedstat = {9, 9, 9};
                int r = proc_parse_schedstat(rows[i].text, rows[i].length, &schedstat);

                cr_assert((r == 0) == rows[i].is_good, "row %zu", i);
                if (r < 0) {
                        cr_expect(r == -EINVAL && schedstat.run_ns == 9, "row %zu", i);
                        continue;
                }
                cr_expect(schedstat.run_ns == rows[i].run_ns &&
                                          schedstat.runqueue_delay_ns == rows[i].delay_ns &&
                                          schedstat.timeslices == rows[i].slices,
                          "row %zu", i);
        }
}

Test(host_proc, a_name_may_hold_anything) {
        static const struct {
                const char *text;
                size_t length;
                const char *name;
        } rows[] = {
                        {TEXT("12 (worker) S" STAT_REST), "worker"},
                        {TEXT("12 () S" STAT_REST), ""},
                        {TEXT("12 (a b) S" STAT_REST), "a b"},
                        {TEXT("12 (a) R 1 (b) S" STAT_REST), "a) R 1 (b"},
                        {TEXT("12 ()))) S" STAT_REST), ")))"},
                        {TEXT("12 (((() S" STAT_REST), "((("},
                        {TEXT("12 (new\nline) S" STAT_REST), "new\nline"},
                        {TEXT("12 (\033[31m\xff) S" STAT_REST), "\033[31m\xff"},
                        {TEXT("12 (kworker/u16:3-events_unbound) S" STAT_REST), "kworker/u16:3-e"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct proc_stat stat;

                cr_assert(proc_parse_stat(rows[i].text, rows[i].length, &stat) == 0, "row %zu", i);
                cr_expect_str_eq(stat.name, rows[i].name, "row %zu: %s", i, stat.name);
                cr_expect(stat.state == 'S' && stat.parent == 7 && stat.threads == 3 &&
                                          stat.start_ticks == 4711,
                          "row %zu", i);
        }
}

Test(host_proc, a_stat_line_that_is_none_is_refused) {
        static const struct {
                const char *text;
                size_t length;
        } rows[] = {
                        {TEXT("")},
                        {TEXT("12")},
                        {TEXT("12 (x")},
                        {TEXT("12 x) S" STAT_REST)},
                        {TEXT("12 )x( S" STAT_REST)},
                        {TEXT("12 (x) S 7 1 1")},
                        {TEXT("12 (x)")},
                        {TEXT("12 (x) S -7 1 1 0 -1 4194304 104 0 0 0 1 2 0 0 20 -5 3 0 4711 1\n")},
                        {TEXT("12 (x) S 7 1 1 0 -1 4194304 104 0 0 0 1 2 0 0 20 -5 3 0 99999999999999999999 "
                              "1\n")},
                        {TEXT("12 (x) S 7 1 1 0 -1 4194304 104 0 0 0 1 2 0 0 20 -5 9999999999 0 4711 1\n")},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct proc_stat stat;

                cr_expect(proc_parse_stat(rows[i].text, rows[i].length, &stat) == -EINVAL, "row %zu", i);
        }
}

Test(host_proc, status_lines_that_are_used) {
        static const char text[] =
                        "Name:\tUid:\t0\nTgid:\t12\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4242\t17\t1\n"
                        "CapPrm:\t00000000a80425fb\nCapEff:\t0000000000000400\nCapBnd:\t000001ffffffffff\n"
                        "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        struct proc_status status;

        cr_assert(proc_parse_status(text, sizeof(text) - 1, &status) == 0);
        cr_expect(status.uid == 1001);
        cr_expect(status.pid_depth == 3 && status.container_pid == 1);
        cr_expect(status.permitted == 0xa80425fb && status.effective == 0x400 &&
                  status.bounding == 0x1ffffffffff);
        cr_expect(status.no_new_privs && status.seccomp == 2);
}

Test(host_proc, status_of_an_old_kernel_and_of_none) {
        struct proc_status status;

        cr_assert(proc_parse_status(TEXT("Uid:\t0\t0\t0\t0"), &status) == 0);
        cr_expect(status.uid == 0 && status.pid_depth == 0 && status.container_pid == 0);
        cr_assert(proc_parse_status(TEXT("Uid:\t0\t0\nCapEff:\txyz\nCapPrm:\t11112222333344445\nNSpid:"
                                         "\t\nSeccomp:\t7\n"),
                                    &status) == 0);
        cr_expect(status.effective == 0 && status.permitted == 0 && status.pid_depth == 0 &&
                  status.seccomp == 0);
        cr_expect(proc_parse_status(TEXT(""), &status) == -EINVAL);
        cr_expect(proc_parse_status(TEXT("Uid:\t0\n"), &status) == -EINVAL);
        cr_expect(proc_parse_status(TEXT("Uid:\t-1\t-1\n"), &status) == -EINVAL);
}

Test(host_proc, machine_stat) {
        struct proc_machine_stat stat;

        proc_parse_machine_stat(TEXT("cpu  15552 0 4248 195132 629 0 94 12 0 0\ncpu0 1 0 1 1 1 0 1 6 0 0\n"
                                     "cpu1 1 0 1 1 1 0 1 6 0 0\nintr 1 2 3\nbtime 1796075901\ncpuidle 3\n"),
                                &stat);
        cr_expect(stat.steal_ns == 120 * NS_PER_MS, "12 ticks of 10 ms");
        cr_expect(stat.boot_real_ns == UINT64_C(1796075901) * NS_PER_S);
        cr_expect(stat.cpus == 2);
}

Test(host_proc, machine_stat_without_steal_is_absent) {
        static const struct {
                const char *text;
                size_t length;
        } rows[] = {
                        {TEXT("cpu  1 2 3 4 5 6 7\nbtime x\n")},
                        {TEXT("cpu  1 2 3 4 5 6 7 -8\nbtime 99999999999\n")},
                        {TEXT("cpu  1 2 3 4 5 6 7 18446744073709551615")},
                        {TEXT("")},
                        {TEXT("cpu\nbtime")},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct proc_machine_stat stat;

                proc_parse_machine_stat(rows[i].text, rows[i].length, &stat);
                cr_expect(stat.steal_ns == ABSENT && stat.boot_real_ns == ABSENT && stat.cpus == 0,
                          "row %zu", i);
        }
}

Test(host_proc, lists_of_cpus) {
        static const struct {
                char text[24];
                unsigned cpus;
        } rows[] = {
                        {"0\n", 1},     {"0-1\n", 2},       {"0-3,7,9-10", 7}, {"", 0},    {"\n", 0},
                        {"3-1\n", 0},   {"0-\n", 0},        {"-1\n", 0},       {"a\n", 0}, {"0,,1\n", 0},
                        {"0-65536", 0}, {"0-65534", 65535}, {"0 1\n", 0},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect(proc_parse_cpu_list(rows[i].text, strlen(rows[i].text)) == rows[i].cpus, "row %zu",
                          i);
}

Test(host_proc, a_command_line_is_joined_and_cut) {
        char out[12];

        proc_join_command(TEXT("java\0-jar\0app"), out, sizeof(out));
        cr_expect_str_eq(out, "java -jar a");
        proc_join_command(TEXT("a\0\0b\0\0"), out, sizeof(out));
        cr_expect_str_eq(out, "a  b");
        proc_join_command(TEXT("\0\0"), out, sizeof(out));
        cr_expect_str_eq(out, "");
        proc_join_command("", 0, out, 1);
        cr_expect_str_eq(out, "");
}

Test(host_proc, namespace_links) {
        cr_expect(proc_parse_namespace("pid:[4026531836]") == 4026531836);
        cr_expect(proc_parse_namespace("pid:[]") == ABSENT);
        cr_expect(proc_parse_namespace("pid:[12") == ABSENT);
        cr_expect(proc_parse_namespace("pid:[12]x") == ABSENT);
        cr_expect(proc_parse_namespace("/bin/sh") == ABSENT);
        cr_expect(proc_parse_namespace("") == ABSENT);
}

/* --- processes of a folder --- */

static void make_thread(struct fixture *fixture, int pid, int tid, const char *name, uint64_t run_ns) {
        char path[64];

        (void) snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", pid, tid);
        fixture_write(fixture, path, "%llu 2000 3\n", (unsigned long long) run_ns);
        (void) snprintf(path, sizeof(path), "proc/%d/task/%d/stat", pid, tid);
        fixture_write(fixture, path, "%d (%s) R" STAT_REST, tid, name);
}

static void make_process(struct fixture *fixture) {
        fixture_make(fixture);
        make_thread(fixture, 12, 12, "main", 1000);
        make_thread(fixture, 12, 100, "worker", 3000);
        make_thread(fixture, 12, 20, "io", 2000);
        fixture_write(fixture, "proc/12/task/100/status",
                      "Name:\tworker\nUid:\t0\t0\t0\t0\nNSpid:\t100\t8\n");
        fixture_write(fixture, "proc/12/status", "Name:\tmain\nUid:\t5\t1000\t5\t5\nNSpid:\t12\t1\n");
        fixture_write_n(fixture, "proc/12/cmdline", "app\0-x\0", 7);
        fixture_write(fixture, "proc/2/task/2/stat", "2 (kthreadd) S" STAT_REST);
        fixture_write(fixture, "proc/irq/x", "1");
}

Test(host_proc, threads_are_sorted_by_number) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *threads;
        size_t count;
        bool is_cut;

        make_process(&fixture);
        cr_assert(proc_threads(fixture.root, 12, 10, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_assert(count == 3 && !is_cut);
        cr_expect(threads[0].tid == 12 && threads[1].tid == 20 && threads[2].tid == 100);
        cr_expect_str_eq(threads[2].name, "worker");
        cr_expect(threads[2].run_ns == 3000 && threads[2].runqueue_delay_ns == 2000 &&
                  threads[2].timeslices == 3);
        cr_expect(threads[2].start_ticks == 4711 && threads[2].state == 'R' &&
                  threads[2].container_tid == 0);
        cr_expect(proc_container_tid(fixture.root, 12, 100) == 8);
        cr_expect(proc_container_tid(fixture.root, 12, 20) == 0, "no status: gone");
}

Test(host_proc, threads_beyond_the_maximum_are_cut) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *threads;
        size_t count;
        bool is_cut;

        make_process(&fixture);
        cr_assert(proc_threads(fixture.root, 12, 2, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_expect(count == 2 && is_cut && threads[1].tid == 20);
        cr_assert(proc_threads(fixture.root, 12, 3, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_expect(count == 3 && !is_cut);
}

Test(host_proc, a_thread_that_ends_meanwhile_is_skipped) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *threads;
        size_t count;
        bool is_cut;

        make_process(&fixture);
        cr_assert(remove(fixture_path(&fixture, "proc/12/task/20/stat")) == 0);
        cr_assert(proc_threads(fixture.root, 12, 10, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_expect(count == 2 && threads[1].tid == 100);
        cr_expect(proc_threads(fixture.root, 13, 10, fixture.arena, &threads, &count, &is_cut) == -ENOENT);
}

Test(host_proc, without_schedstat_the_figures_are_absent) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *threads;
        size_t count;
        bool is_cut;

        make_process(&fixture);
        cr_assert(remove(fixture_path(&fixture, "proc/12/task/20/schedstat")) == 0);
        cr_assert(proc_threads(fixture.root, 12, 10, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_assert(count == 3);
        cr_expect(threads[1].run_ns == ABSENT && threads[1].runqueue_delay_ns == ABSENT &&
                  threads[1].timeslices == ABSENT);
        cr_expect_str_eq(threads[1].name, "io");
}

Test(host_proc, known_threads_keep_their_name_and_reused_numbers_do_not) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *before, *after;
        size_t before_count, count;
        bool is_cut;

        make_process(&fixture);
        cr_assert(proc_threads(fixture.root, 12, 10, fixture.arena, &before, &before_count, &is_cut) == 0);
        before[0].container_tid = 1;
        make_thread(&fixture, 12, 12, "renamed", 5000);
        make_thread(&fixture, 12, 100, "reused", 10);
        make_thread(&fixture, 12, 101, "new", 10);
        cr_assert(proc_threads_again(fixture.root, 12, before, before_count, 10, fixture.arena, &after,
                                     &count, &is_cut) == 0);
        cr_assert(count == 4);
        cr_expect_str_eq(after[0].name, "main");
        cr_expect(after[0].run_ns == 5000 && after[0].container_tid == 1 && after[0].start_ticks == 4711);
        cr_expect(after[0].state == 0, "not read");
        cr_expect_str_eq(after[2].name, "reused");
        cr_expect(after[2].state == 'R');
        cr_expect_str_eq(after[3].name, "new");
}

Test(host_proc, a_process_and_its_command) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_process process;

        make_process(&fixture);
        cr_assert(proc_process(fixture.root, 12, fixture.arena, &process) == 0);
        cr_expect(process.pid == 12 && process.parent == 7 && process.threads == 3 &&
                  process.start_ticks == 4711);
        cr_expect(process.container_pid == 1 && process.pid_depth == 2 && process.uid == 1000);
        cr_expect_str_eq(process.name, "main");
        cr_expect_str_eq(process.command, "app -x");
        cr_expect(proc_process(fixture.root, 13, fixture.arena, &process) == -ENOENT);
        cr_expect(proc_process(fixture.root, 2, fixture.arena, &process) == -ENOENT,
                  "its status is gone: it is");
}

Test(host_proc, a_kernel_thread_has_no_command) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_process process;

        make_process(&fixture);
        fixture_write(&fixture, "proc/2/status", "Uid:\t0\t0\t0\t0\n");
        fixture_write_n(&fixture, "proc/2/cmdline", "", 0);
        cr_assert(proc_process(fixture.root, 2, fixture.arena, &process) == 0);
        cr_expect_str_eq(process.command, "");
        cr_expect(process.container_pid == 2 && process.pid_depth == 1);
}

Test(host_proc, a_long_command_is_cut_not_refused) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_process process;
        char command[3000];

        make_process(&fixture);
        memset(command, 'x', sizeof(command));
        fixture_write_n(&fixture, "proc/12/cmdline", command, sizeof(command));
        cr_assert(proc_process(fixture.root, 12, fixture.arena, &process) == 0);
        cr_expect(strlen(process.command) == 256);
}

Test(host_proc, pids_are_the_folders_with_numbers) {
        cleanup_fixture struct fixture fixture = {0};
        size_t count;
        pid_t *pids;

        make_process(&fixture);
        fixture_write(&fixture, "proc/0/x", "1");
        fixture_write(&fixture, "proc/99999999999/x", "1");
        cr_assert(proc_pids(fixture.root, 10, fixture.arena, &pids, &count) == 0);
        cr_assert(count == 2);
        cr_expect(pids[0] == 2 && pids[1] == 12);
        cr_expect(proc_pids(fixture.root, 1, fixture.arena, &pids, &count) == 1);
        cr_expect(count == 1 && pids[0] == 2);
}

Test(host_proc, rights_of_a_process) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_rights rights;

        fixture_make(&fixture);
        fixture_write(&fixture, "proc/self/status",
                      "Uid:\t1\t2\t3\t4\nCapPrm:\t3\nCapEff:\t1\nCapBnd:\t7\nNoNewPrivs:\t1\nSeccomp:"
                      "\t2\nNSpid:\t9\t1\n");
        cr_assert(proc_rights(fixture.root, 0, &rights) == 0);
        cr_expect(rights.permitted == 3 && rights.effective == 1 && rights.bounding == 7);
        cr_expect(rights.no_new_privs && rights.seccomp == 2 && rights.pid_depth == 2 && rights.uid == 2);
        cr_expect(rights.pid_namespace == ABSENT);
        fixture_write(&fixture, "proc/self/ns/pid.link", "pid:[4026531836]");
        cr_assert(proc_rights(fixture.root, 0, &rights) == 0);
        cr_expect(rights.pid_namespace == 4026531836);
        cr_expect(proc_rights(fixture.root, 5, &rights) == -ENOENT);
}

Test(host_proc, a_machine_of_which_little_is_known) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_machine machine;

        fixture_make(&fixture);
        cr_assert(proc_machine(fixture.root, &machine) == 0);
        cr_expect(machine.cpus_online == 0 && machine.steal_ns == ABSENT && machine.boot_real_ns == ABSENT);
        cr_expect(!machine.kernel[0] && !machine.hostname[0]);
        fixture_write(&fixture, "proc/stat", "cpu  1 2 3 4 5 6 7 8\ncpu0 1\ncpu1 1\n");
        fixture_write(&fixture, "proc/sys/kernel/osrelease", "6.18.44\n");
        fixture_write(&fixture, "proc/sys/kernel/hostname", "node-1");
        cr_assert(proc_machine(fixture.root, &machine) == 0);
        cr_expect(machine.cpus_online == 2 && machine.steal_ns == 80 * NS_PER_MS);
        cr_expect_str_eq(machine.kernel, "6.18.44");
        cr_expect_str_eq(machine.hostname, "node-1");
        fixture_write(&fixture, "sys/devices/system/cpu/online", "0-2,5\n");
        cr_assert(proc_machine(fixture.root, &machine) == 0);
        cr_expect(machine.cpus_online == 4);
}

/* --- this machine --- */

static void *wait_in_thread(void *data) {
        (void) prctl(PR_SET_NAME, "odd) R 1 (\nname", 0, 0, 0);
        (void) pthread_barrier_wait(data);
        (void) pthread_barrier_wait(data);
        return NULL;
}

Test(host_proc, our_own_threads_are_found_with_their_odd_names) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_thread *threads;
        struct proc_process process;
        pthread_barrier_t barrier;
        size_t count, odd = 0;
        pthread_t thread;
        bool is_cut;

        fixture_open(&fixture, NULL);
        cr_assert(pthread_barrier_init(&barrier, NULL, 2) == 0);
        cr_assert(pthread_create(&thread, NULL, wait_in_thread, &barrier) == 0);
        (void) pthread_barrier_wait(&barrier);
        cr_assert(proc_threads(fixture.root, getpid(), 100, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_assert(proc_process(fixture.root, getpid(), fixture.arena, &process) == 0);
        (void) pthread_barrier_wait(&barrier);
        (void) pthread_join(thread, NULL);
        cr_expect(count >= 2 && process.threads == count);
        for (size_t i = 0; i < count; i++)
                odd += strcmp(threads[i].name, "odd) R 1 (\nname") == 0;
        cr_expect(odd == 1);
        cr_expect(threads[0].tid == getpid() && threads[0].start_ticks == process.start_ticks);
        cr_expect(process.parent == getppid() && process.uid == geteuid());
        cr_expect(process.command[0]);
}

Test(host_proc, a_process_that_is_dead_but_not_waited_for_still_reads) {
        cleanup_fixture struct fixture fixture = {0};
        struct proc_process process;
        siginfo_t info;
        pid_t pid;
        int r;

        fixture_open(&fixture, NULL);
        pid = fork();
        if (pid == 0)
                _exit(0);
        cr_assert(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) == 0);
        r = proc_process(fixture.root, pid, fixture.arena, &process);
        (void) waitpid(pid, NULL, 0);
        cr_expect(r == 0);
        cr_expect_str_eq(process.command, "");
        cr_expect(proc_process(fixture.root, pid, fixture.arena, &process) == -ENOENT);
}

Test(host_proc, a_captured_process_replays) {
        cleanup_fixture struct fixture fixture = {0}, copy = {0};
        struct proc_thread *threads, *replayed_threads;
        struct proc_process process, replayed;
        struct proc_machine machine, replayed_machine;
        struct proc_rights rights, replayed_rights;
        size_t count, replayed_count;
        bool is_cut;

        fixture_open(&fixture, NULL);
        fixture_make(&copy);
        cr_assert(root_capture_to(fixture.root, copy.directory, &fixture.why) == 0);
        cr_assert(proc_process(fixture.root, getpid(), fixture.arena, &process) == 0);
        cr_assert(proc_threads(fixture.root, getpid(), 100, fixture.arena, &threads, &count, &is_cut) == 0);
        cr_assert(proc_machine(fixture.root, &machine) == 0);
        cr_assert(proc_rights(fixture.root, 0, &rights) == 0);
        root_capture_stop(fixture.root);
        cr_assert(root_capture_failures(fixture.root) == 0);

        cr_assert(proc_process(copy.root, getpid(), copy.arena, &replayed) == 0);
        cr_expect_str_eq(replayed.command, process.command);
        cr_expect(replayed.start_ticks == process.start_ticks && replayed.threads == process.threads);
        cr_assert(proc_threads(copy.root, getpid(), 100, copy.arena, &replayed_threads, &replayed_count,
                               &is_cut) == 0);
        cr_assert(replayed_count == count);
        for (size_t i = 0; i < count; i++)
                cr_expect(threads[i].tid == replayed_threads[i].tid &&
                          threads[i].run_ns == replayed_threads[i].run_ns &&
                          threads[i].start_ticks == replayed_threads[i].start_ticks);
        cr_assert(proc_machine(copy.root, &replayed_machine) == 0);
        cr_expect(machine.cpus_online == replayed_machine.cpus_online && machine.cpus_online > 0);
        cr_expect(machine.steal_ns == replayed_machine.steal_ns &&
                  machine.boot_real_ns == replayed_machine.boot_real_ns);
        cr_expect_str_eq(machine.kernel, replayed_machine.kernel);
        cr_expect_str_eq(machine.hostname, replayed_machine.hostname);
        cr_assert(proc_rights(copy.root, 0, &replayed_rights) == 0);
        cr_expect(replayed_rights.pid_namespace == rights.pid_namespace && rights.pid_namespace != ABSENT);
}
