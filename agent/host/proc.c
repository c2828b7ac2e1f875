/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/number.h"
#include "proc_internal.h"
#include "root_internal.h"

/* stat of a process has 52 numbers; status about 60 lines, of which the CPU and node masks grow with the machine. */
#define RECORD_MAX 4096u
#define STATUS_MAX (64u << 10)
#define COMMAND_MAX 256u

/* A directory's name that is a pid: 0 if it is not. */
static pid_t pid_of_name(const char *name) {
        uint64_t value;

        return number_parse_u64(name, &value) == 0 && value <= INT32_MAX ? (pid_t) value : 0;
}

static int pid_compare(const void *a, const void *b) {
        const pid_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* The names in @dir that are numbers, sorted as such. Returns 0, 1 if there are more than @max, or negative errno. */
static int list_numbers(const struct root_dir *dir, size_t max, struct arena *arena, pid_t **ret_numbers,
                        size_t *ret_count) {
        cleanup_free struct root_entry *entries = NULL;
        size_t entries_count, count = 0;
        pid_t *numbers;
        int r;

        r = root_dir_list(dir, &entries, &entries_count);
        if (r < 0)
                return r;
        numbers = arena_array(arena, entries_count, sizeof(*numbers));
        if (!numbers)
                return -ENOMEM;
        for (size_t i = 0; i < entries_count; i++) {
                pid_t number = pid_of_name(entries[i].name);

                if (number > 0)
                        numbers[count++] = number;
        }
        if (count > 1)
                qsort(numbers, count, sizeof(*numbers), pid_compare);
        *ret_numbers = numbers;
        *ret_count = count < max ? count : max;
        return count > max;
}

int proc_pids(struct root *root, size_t max, struct arena *arena, pid_t **ret_pids, size_t *ret_count) {
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        int r = root_dir_open(root, "/proc", &dir);

        return r < 0 ? r : list_numbers(&dir, max, arena, ret_pids, ret_count);
}

/* --- threads --- */

/* 0, or -ENOENT: the thread is gone. @previous NULL: not known yet. */
static int read_thread(const struct root_dir *dir, pid_t tid, const struct proc_thread *previous,
                       struct proc_thread *ret_thread) {
        struct proc_thread thread = {
                        .tid = tid,
                        .run_ns = ABSENT,
                        .runqueue_delay_ns = ABSENT,
                        .timeslices = ABSENT,
        };
        char name[32], buffer[RECORD_MAX];
        struct proc_schedstat schedstat;
        struct proc_stat stat;
        bool is_counted;
        ssize_t n;

        (void) snprintf(name, sizeof(name), "%d/schedstat", tid);
        n = root_dir_read(dir, name, buffer, sizeof(buffer));
        is_counted = n >= 0 && proc_parse_schedstat(buffer, (size_t) n, &schedstat) == 0;
        if (is_counted) {
                thread.run_ns = schedstat.run_ns;
                thread.runqueue_delay_ns = schedstat.runqueue_delay_ns;
                thread.timeslices = schedstat.timeslices;
        }
        /* A reused number starts from zero. */
        if (previous && is_counted && is_known(previous->run_ns) && schedstat.run_ns >= previous->run_ns &&
            schedstat.runqueue_delay_ns >= previous->runqueue_delay_ns &&
            schedstat.timeslices >= previous->timeslices) {
                memcpy(thread.name, previous->name, sizeof(thread.name));
                thread.start_ticks = previous->start_ticks;
                thread.container_tid = previous->container_tid;
                *ret_thread = thread;
                return 0;
        }
        (void) snprintf(name, sizeof(name), "%d/stat", tid);
        n = root_dir_read(dir, name, buffer, sizeof(buffer));
        if (n < 0 || proc_parse_stat(buffer, (size_t) n, &stat) < 0)
                return -ENOENT;
        memcpy(thread.name, stat.name, sizeof(thread.name));
        thread.state = stat.state;
        thread.start_ticks = stat.start_ticks;
        *ret_thread = thread;
        return 0;
}

int proc_threads_again(struct root *root, pid_t pid, const struct proc_thread *previous,
                       size_t previous_count, size_t max, struct arena *arena,
                       struct proc_thread **ret_threads, size_t *ret_count, bool *ret_cut) {
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        struct proc_thread *threads;
        size_t tids_count, count = 0, at = 0;
        char path[32];
        pid_t *tids;
        int r, cut;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        r = root_dir_open(root, path, &dir);
        if (r < 0)
                return r;
        cut = list_numbers(&dir, max, arena, &tids, &tids_count);
        if (cut < 0)
                return cut;
        threads = arena_array(arena, tids_count, sizeof(*threads));
        if (!threads)
                return -ENOMEM;
        for (size_t i = 0; i < tids_count; i++) {
                while (at < previous_count && previous[at].tid < tids[i])
                        at++;
                if (read_thread(&dir, tids[i],
                                at < previous_count && previous[at].tid == tids[i] ? &previous[at] : NULL,
                                &threads[count]) == 0)
                        count++;
        }
        /* A process has a thread, or it is gone. */
        if (count == 0 && max > 0)
                return -ENOENT;
        *ret_threads = threads;
        *ret_count = count;
        *ret_cut = cut > 0;
        return 0;
}

int proc_threads(struct root *root, pid_t pid, size_t max, struct arena *arena,
                 struct proc_thread **ret_threads, size_t *ret_count, bool *ret_cut) {
        return proc_threads_again(root, pid, NULL, 0, max, arena, ret_threads, ret_count, ret_cut);
}

pid_t proc_container_tid(struct root *root, pid_t pid, pid_t tid) {
        char path[64], buffer[STATUS_MAX];
        struct proc_status status;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
        n = root_read_record(root, path, buffer, sizeof(buffer));
        if (n < 0 || proc_parse_status(buffer, (size_t) n, &status) < 0)
                return 0;
        return status.pid_depth > 0 ? status.container_pid : tid;
}

/* --- processes --- */

int proc_process(struct root *root, pid_t pid, struct arena *arena, struct proc_process *ret_process) {
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        char directory[32], path[32], buffer[STATUS_MAX], command[COMMAND_MAX + 1];
        struct proc_process process = {.pid = pid, .container_pid = pid, .pid_depth = 1, .uid = UINT32_MAX};
        struct proc_status status;
        struct proc_stat stat;
        ssize_t n;
        int r;

        (void) snprintf(directory, sizeof(directory), "/proc/%d", pid);
        r = root_dir_open(root, directory, &dir);
        if (r < 0)
                return r;
        /* The main thread's own: /proc/PID/stat adds up all threads, which took 2 ms with 10,000 of them. */
        (void) snprintf(path, sizeof(path), "task/%d/stat", pid);
        n = root_dir_read(&dir, path, buffer, sizeof(buffer));
        if (n < 0)
                return (int) n;
        r = proc_parse_stat(buffer, (size_t) n, &stat);
        if (r < 0)
                return r;
        process.parent = stat.parent;
        memcpy(process.name, stat.name, sizeof(process.name));
        process.threads = stat.threads;
        process.start_ticks = stat.start_ticks;
        n = root_dir_read(&dir, "status", buffer, sizeof(buffer));
        if (n == -ENOENT)
                return (int) n;
        if (n >= 0 && proc_parse_status(buffer, (size_t) n, &status) == 0) {
                process.uid = status.uid;
                if (status.pid_depth > 0) {
                        process.container_pid = status.container_pid;
                        process.pid_depth = status.pid_depth;
                }
        }
        /* What does not fit is not wanted: proc_pid_cmdline_read() copes with any size of read. */
        n = root_dir_read_head(&dir, "cmdline", command, sizeof(command));
        if (n == -ENOENT)
                return (int) n;
        proc_join_command(command, n < 0 ? 0 : (size_t) n, buffer, sizeof(command));
        process.command = arena_string(arena, buffer);
        if (!process.command)
                return -ENOMEM;
        *ret_process = process;
        return 0;
}

int proc_rights(struct root *root, pid_t pid, struct proc_rights *ret_rights) {
        char path[64], buffer[STATUS_MAX], number[16] = "self";
        cleanup_free char *link = NULL;
        struct proc_status status;
        ssize_t n;
        int r;

        if (pid != 0)
                (void) snprintf(number, sizeof(number), "%d", pid);
        (void) snprintf(path, sizeof(path), "/proc/%s/status", number);
        n = root_read_record(root, path, buffer, sizeof(buffer));
        if (n < 0)
                return (int) n;
        r = proc_parse_status(buffer, (size_t) n, &status);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/%s/ns/pid", number);
        r = root_read_link(root, path, &link);
        *ret_rights = (struct proc_rights){
                        .effective = status.effective,
                        .permitted = status.permitted,
                        .bounding = status.bounding,
                        .seccomp = status.seccomp,
                        .no_new_privs = status.no_new_privs,
                        .pid_depth = status.pid_depth > 0 ? status.pid_depth : 1,
                        .pid_namespace = r < 0 ? ABSENT : proc_parse_namespace(link),
                        .uid = status.uid,
        };
        return 0;
}

/* --- the machine --- */

/* One line into @out, cut; "" if it can't be read. */
static void read_line(struct root *root, const char *path, char *out, size_t room) {
        char buffer[RECORD_MAX];
        ssize_t n = root_read_record(root, path, buffer, sizeof(buffer));
        size_t length = n > 0 ? strcspn(buffer, "\n") : 0;

        if (length >= room)
                length = room - 1;
        memcpy(out, buffer, length);
        out[length] = '\0';
}

int proc_machine(struct root *root, struct proc_machine *ret_machine) {
        struct proc_machine machine = {.steal_ns = ABSENT, .boot_real_ns = ABSENT};
        struct proc_machine_stat stat;
        cleanup_free char *text = NULL;
        char buffer[RECORD_MAX];
        size_t length;
        ssize_t n;
        int r;

        r = root_read(root, "/proc/stat", ROOT_FILE_MAX, &text, &length);
        if (r == -ENOMEM)
                return r;
        if (r == 0) {
                proc_parse_machine_stat(text, length, &stat);
                machine.steal_ns = stat.steal_ns;
                machine.boot_real_ns = stat.boot_real_ns;
                machine.cpus_online = stat.cpus;
        }
        n = root_read_record(root, "/sys/devices/system/cpu/online", buffer, sizeof(buffer));
        if (n > 0 && proc_parse_cpu_list(buffer, (size_t) n) > 0)
                machine.cpus_online = proc_parse_cpu_list(buffer, (size_t) n);
        read_line(root, "/proc/sys/kernel/osrelease", machine.kernel, sizeof(machine.kernel));
        read_line(root, "/proc/sys/kernel/hostname", machine.hostname, sizeof(machine.hostname));
        *ret_machine = machine;
        return 0;
}
