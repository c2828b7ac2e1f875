/* SPDX-License-Identifier: Apache-2.0 */
/* A process of a container: what is read at once, and how its command line is searched. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/number.h"
#include "elf_image.h"
#include "process_private.h"

#define ARGUMENTS_MAX 1024u
#define STATUS_BYTES_MAX (16u << 10)
#define DELETED " (deleted)"

/* --- reading --- */

/* What of the file fits, with a NUL behind it. A gigabyte of it costs no more. */
static ssize_t read_head(struct root *root, const char *path, char *buffer, size_t size) {
        cleanup_fd int fd = root_open_file(root, path);
        size_t length = 0;

        if (fd < 0)
                return fd;
        while (length < size - 1) {
                ssize_t n = read(fd, buffer + length, size - 1 - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == ESRCH ? -ENOENT : -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        buffer[length] = '\0';
        return (ssize_t) length;
}

/* The text behind "NAME:" at a line's beginning, without its blanks; NULL: no such line. */
static const char *status_value(const char *status, const char *name) {
        size_t length = strlen(name);

        for (const char *line = status; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, name, length) == 0 && line[length] == ':')
                        return line + length + 1 + strspn(line + length + 1, " \t");
        return NULL;
}

/* "ff,ffffffff": bits set. */
static unsigned count_mask(const char *mask) {
        unsigned bits = 0;

        for (; *mask && *mask != '\n'; mask++) {
                if (!isxdigit((unsigned char) *mask))
                        continue;
                int digit = isdigit((unsigned char) *mask) ? *mask - '0' : (*mask | 32) - 'a' + 10;

                bits += (unsigned) __builtin_popcount((unsigned) digit);
        }
        return bits;
}

static void read_status(struct root *root, struct process *process) {
        char path[32], status[STATUS_BYTES_MAX];
        const char *value;
        uint64_t kilobytes;

        process->rss_anon_bytes = ABSENT;
        (void) snprintf(path, sizeof(path), "/proc/%u/status", process->host_pid);
        if (read_head(root, path, status, sizeof(status)) < 0)
                return;
        value = status_value(status, "RssAnon");
        if (value && number_parse_u64_n(value, strspn(value, "0123456789"), &kilobytes) == 0 &&
            kilobytes < UINT64_MAX / 1024)
                process->rss_anon_bytes = kilobytes * 1024;
        value = status_value(status, "Cpus_allowed");
        if (value)
                process->affinity = count_mask(value);
}

static int read_arguments(struct root *root, struct arena *arena, struct process *process) {
        cleanup_free char *text = malloc(PROCESS_ARGUMENTS_MAX + 1);
        const char **argv, *end;
        size_t count = 0;
        ssize_t length;
        char path[32];
        char *kept;

        if (!text)
                return -ENOMEM;
        (void) snprintf(path, sizeof(path), "/proc/%u/cmdline", process->host_pid);
        length = read_head(root, path, text, PROCESS_ARGUMENTS_MAX + 1);
        if (length < 0)
                length = 0;
        kept = arena_string_n(arena, text, 0);
        if (length > 0) {
                kept = arena_alloc(arena, (size_t) length + 1);
                if (kept)
                        memcpy(kept, text, (size_t) length);
        }
        if (!kept)
                return -ENOMEM;
        end = kept + length;
        for (const char *p = kept; p < end && count < ARGUMENTS_MAX; p += strlen(p) + 1)
                count++;
        argv = arena_array(arena, count + 1, sizeof(*argv));
        if (!argv)
                return -ENOMEM;
        for (const char *p = kept; process->argc < count; p += strlen(p) + 1)
                argv[process->argc++] = p;
        process->argv = argv;
        return 0;
}

static void cut_suffix(char *text, const char *suffix) {
        size_t length = strlen(text), n = strlen(suffix);

        if (length > n && strcmp(text + length - n, suffix) == 0)
                text[length - n] = '\0';
}

static int read_exe(struct root *root, struct arena *arena, struct process *process) {
        cleanup_free char *target = NULL;
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/%u/exe", process->host_pid);
        process->exe_error = root_read_link(root, path, &target);
        if (process->exe_error < 0)
                return process->exe_error == -ENOMEM ? -ENOMEM : 0;
        cut_suffix(target, DELETED);
        process->exe = arena_string(arena, target);
        return process->exe ? 0 : -ENOMEM;
}

int process_read(struct root *root, struct arena *arena, struct process_memos *memos, pid_t pid,
                 struct process *ret_process) {
        struct proc_process read;
        int r = proc_process(root, pid, arena, &read);

        if (r < 0)
                return r;
        struct process process = {
                        .host_pid = (uint32_t) read.pid,
                        .pid = (uint32_t) read.container_pid,
                        .parent = (uint32_t) read.parent,
                        .start_ticks = read.start_ticks,
                        .uid = read.uid,
                        .threads_count = read.threads,
                        .private = arena_alloc(arena, sizeof(struct process_private)),
        };
        if (!process.private)
                return -ENOMEM;
        *process.private = (struct process_private){
                        .root = root, .arena = arena, .memos = memos, .memory_fd = -1};
        memcpy(process.name, read.name, sizeof(process.name));
        read_status(root, &process);
        r = read_arguments(root, arena, &process);
        if (r >= 0)
                r = read_exe(root, arena, &process);
        if (r < 0)
                return r;
        *ret_process = process;
        return 0;
}

void process_close(struct process *process) {
        cleanup_fdp(&process->private->memory_fd);
        process->private->memory_fd = -1;
        elf_image_free(process->private->image);
        process->private->image = NULL;
        process->private->image_loaded = process->private->memory_loaded = false;
}

/* --- the command line --- */

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

const char *process_program(const struct process *process) {
        if (process->exe)
                return last_component(process->exe);
        return process->argc > 0 ? last_component(process->argv[0]) : "";
}

bool process_title_has_prefix(const struct process *process, const char *prefix) {
        return process->argc > 0 && strncmp(process->argv[0], prefix, strlen(prefix)) == 0;
}

const char *process_option(const struct process *process, const char *option) {
        size_t length = strlen(option);
        bool is_short = length == 2 && option[0] == '-' && option[1] != '-';
        const char *found = NULL;

        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];

                if (strncmp(argument, option, length) != 0)
                        continue;
                if (argument[length] == '\0')
                        found = i + 1 < process->argc ? process->argv[i + 1] : found;
                else if (argument[length] == '=')
                        found = argument + length + 1;
                else if (is_short)
                        found = argument + length;
        }
        return found;
}

size_t process_argument(const struct process *process, const char *word) {
        for (size_t i = 1; i < process->argc; i++)
                if (strcmp(last_component(process->argv[i]), word) == 0)
                        return i;
        return 0;
}

/* --- memos --- */

struct process_memo *process_memo(struct process *process, const char *runtime) {
        return process_memos_get(process->private->memos, process->host_pid, process->start_ticks, runtime);
}

/* --- telling why --- */

const char *process_explain(struct process *process, const char *what, int error) {
        struct arena *arena = process->private->arena;

        switch (error) {
        case -EACCES:
        case -EPERM:
                return arena_format(
                                arena,
                                "%s of process %u is not readable: it runs as uid %u, throttlescope as %u; "
                                "the same uid or CAP_SYS_PTRACE would change that",
                                what, process->pid, process->uid, (unsigned) geteuid());
        case -ENODATA:
                return arena_format(arena, "%s of process %u was overwritten by its title", what,
                                    process->pid);
        case -ENOENT:
                return arena_format(arena, "%s of process %u is not there", what, process->pid);
        case -EFBIG:
                return arena_format(arena, "%s of process %u is larger than is read", what, process->pid);
        default:
                return arena_format(arena, "%s of process %u is not readable: %s", what, process->pid,
                                    strerror(-error));
        }
}
