/* SPDX-License-Identifier: Apache-2.0 */
/* What of a process is read only when a runtime asks: environment, mappings, threads, memory, files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../base/number.h"
#include "elf_image.h"
#include "process_private.h"

#define MAPPINGS_MAX 65536u
#define DELETED " (deleted)"

/* --- environment --- */

/* Its own file, never saved by a capture: it holds secrets. */
static int load_environment(struct process *process) {
        struct process_private *private = process->private;
        cleanup_fd int fd = -1;
        size_t length = 0;
        char path[32];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%u/environ", process->host_pid);
        fd = root_open_file(private->root, path);
        if (fd < 0)
                return fd;
        cleanup_free char *data = malloc(PROCESS_ENVIRONMENT_MAX + 1);
        if (!data)
                return -ENOMEM;
        while (length < PROCESS_ENVIRONMENT_MAX) {
                n = read(fd, data + length, PROCESS_ENVIRONMENT_MAX - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EPERM ? -EACCES : -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        /* A process without any variable has an empty block; one whose title overwrote it has text without names. */
        bool has_names = length == 0;
        for (size_t i = 0; i < length && !has_names; i += strnlen(data + i, length - i) + 1)
                has_names = memchr(data + i, '=', strnlen(data + i, length - i)) != NULL;
        if (!has_names)
                return -ENODATA;
        private->environment = arena_alloc(private->arena, length + 1);
        if (!private->environment)
                return -ENOMEM;
        memcpy(private->environment, data, length);
        private->environment_length = length;
        return 0;
}

int process_variable(struct process *process, const char *name, const char **ret_value) {
        struct process_private *private = process->private;
        size_t name_length = strlen(name);

        if (!private->environment_loaded) {
                private->environment_loaded = true;
                private->environment_error = load_environment(process);
        }
        if (private->environment_error < 0)
                return private->environment_error;
        for (const char *p = private->environment, *end = p + private->environment_length; p < end;
             p += strlen(p) + 1)
                if (strncmp(p, name, name_length) == 0 && p[name_length] == '=') {
                        *ret_value = p + name_length + 1;
                        return 1;
                }
        return 0;
}

/* --- mappings --- */

static bool next_hex(const char **text, uint64_t *ret_value) {
        uint64_t value = 0;
        const char *p = *text;
        unsigned digits = 0;

        for (; digits < 16; p++, digits++) {
                char c = (char) (*p | 32);

                if (*p >= '0' && *p <= '9')
                        value = value << 4 | (uint64_t) (*p - '0');
                else if (c >= 'a' && c <= 'f')
                        value = value << 4 | (uint64_t) (c - 'a' + 10);
                else
                        break;
        }
        *text = p;
        *ret_value = value;
        return digits > 0;
}

/* "start-end perms offset major:minor inode   path": proc_pid_maps(5). Changes the line. */
static bool parse_mapping(char *line, struct process_mapping *mapping) {
        const char *p = line;
        uint64_t ignored;

        if (!next_hex(&p, &mapping->start) || *p++ != '-' || !next_hex(&p, &mapping->end) || *p++ != ' ')
                return false;
        if (strnlen(p, 5) < 5 || p[4] != ' ' || mapping->end <= mapping->start)
                return false;
        mapping->readable = p[0] == 'r';
        mapping->writable = p[1] == 'w';
        mapping->executable = p[2] == 'x';
        p += 5;
        if (!next_hex(&p, &mapping->offset) || *p++ != ' ' || !next_hex(&p, &ignored) || *p++ != ':' ||
            !next_hex(&p, &ignored) || *p++ != ' ')
                return false;
        size_t digits = strspn(p, "0123456789");
        if (number_parse_u64_n(p, digits, &mapping->inode) < 0)
                return false;
        p += digits;
        p += strspn(p, " ");
        size_t length = strlen(p), suffix = strlen(DELETED);
        if (length > suffix && strcmp(p + length - suffix, DELETED) == 0)
                line[(size_t) (p - line) + length - suffix] = '\0';
        mapping->path = p;
        return true;
}

static int load_mappings(struct process *process) {
        struct process_private *private = process->private;
        cleanup_free char *text = NULL;
        size_t room = 0, length;
        char path[32], *kept, *line, *rest;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%u/maps", process->host_pid);
        r = root_read(private->root, path, PROCESS_MAPS_MAX, &text, &length);
        if (r < 0)
                return r == -EPERM ? -EACCES : r;
        kept = arena_string_n(private->arena, text, length);
        if (!kept)
                return -ENOMEM;
        for (rest = kept; (line = strsep(&rest, "\n")) && private->mappings_count < MAPPINGS_MAX;) {
                struct process_mapping mapping = {0}, *grown;

                if (!parse_mapping(line, &mapping))
                        continue;
                grown = arena_grow(private->arena, private->mappings, private->mappings_count, &room,
                                   sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                private->mappings = grown;
                private->mappings[private->mappings_count++] = mapping;
        }
        return 0;
}

int process_mappings(struct process *process, const struct process_mapping **ret_mappings,
                     size_t *ret_count) {
        struct process_private *private = process->private;

        if (!private->mappings_loaded) {
                private->mappings_loaded = true;
                private->mappings_error = load_mappings(process);
        }
        if (private->mappings_error < 0)
                return private->mappings_error;
        *ret_mappings = private->mappings;
        *ret_count = private->mappings_count;
        return 0;
}

int process_library(struct process *process, const char *prefix,
                    const struct process_mapping **ret_mapping) {
        const struct process_mapping *mappings;
        size_t count, length = strlen(prefix);
        int r = process_mappings(process, &mappings, &count);

        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++) {
                const char *slash = strrchr(mappings[i].path, '/');

                if (slash && strncmp(slash + 1, prefix, length) == 0) {
                        *ret_mapping = &mappings[i];
                        return 1;
                }
        }
        return 0;
}

/* --- threads --- */

static int load_threads(struct process *process) {
        struct process_private *private = process->private;
        struct proc_thread *read;
        size_t count;
        bool cut;
        int r = proc_threads(private->root, (pid_t) process->host_pid, PROCESS_THREADS_MAX, private->arena,
                             &read, &count, &cut);

        if (r < 0)
                return r;
        private->threads = arena_array(private->arena, count, sizeof(*private->threads));
        if (!private->threads)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                struct process_thread *thread = &private->threads[i];

                thread->host_tid = (uint32_t) read[i].tid;
                thread->run_ns = read[i].run_ns;
                memcpy(thread->name, read[i].name, sizeof(thread->name));
        }
        private->threads_count = count;
        return 0;
}

int process_threads(struct process *process, const struct process_thread **ret_threads, size_t *ret_count) {
        struct process_private *private = process->private;

        if (!private->threads_loaded) {
                private->threads_loaded = true;
                private->threads_error = load_threads(process);
        }
        if (private->threads_error < 0)
                return private->threads_error;
        *ret_threads = private->threads;
        *ret_count = private->threads_count;
        return 0;
}

ssize_t process_count_threads(struct process *process, const char *prefix) {
        const struct process_thread *threads;
        size_t count, length = strlen(prefix);
        ssize_t found = 0;
        int r = process_threads(process, &threads, &count);

        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++)
                found += strncmp(threads[i].name, prefix, length) == 0;
        return found;
}

/* --- memory --- */

int process_read_memory(struct process *process, uint64_t address, void *buffer, size_t length) {
        struct process_private *private = process->private;
        char path[32];
        ssize_t n;

        if (!private->memory_loaded) {
                private->memory_loaded = true;
                (void) snprintf(path, sizeof(path), "/proc/%u/mem", process->host_pid);
                private->memory_fd = root_open_file(private->root, path);
                if (private->memory_fd < 0)
                private->memory_error = private->memory_fd == -EPERM ? -EACCES : private->memory_fd;
        }
        if (private->memory_error < 0)
                return private->memory_error;
        if (address > INT64_MAX || length > SSIZE_MAX)
                return -EFAULT;
        n = pread(private->memory_fd, buffer, length, (off_t) address);
        /* mem_rw() in fs/proc/base.c: EIO where nothing is mapped, 0 when the process has ended. */
        if (n < 0)
                return errno == EIO ? -EFAULT : -errno;
        return (size_t) n == length ? 0 : -EFAULT;
}

int process_read_string(struct process *process, uint64_t address, size_t max, const char **ret_text) {
        char buffer[256];
        size_t length = 0;

        if (max > sizeof(buffer))
                max = sizeof(buffer);
        /* In small steps: the text may end just before memory that is not mapped. */
        while (length < max) {
                size_t step = 64 - (address + length) % 64;

                if (step > max - length)
                        step = max - length;
                int r = process_read_memory(process, address + length, buffer + length, step);
                if (r < 0)
                        return r;
                if (memchr(buffer + length, '\0', step))
                        break;
                length += step;
        }
        *ret_text = arena_string_n(process->private->arena, buffer, strnlen(buffer, max));
        return *ret_text ? 0 : -ENOMEM;
}

/* --- files --- */

int process_image(struct process *process, struct elf_image **ret_image) {
        struct process_private *private = process->private;
        char path[32];

        if (!private->image_loaded) {
                private->image_loaded = true;
                (void) snprintf(path, sizeof(path), "/proc/%u/exe", process->host_pid);
                int fd = root_open_file(private->root, path);

                private->image_error = fd < 0 ? fd : elf_image_open_take(fd, &private->image);
                if (private->image_error == -EPERM)
                private->image_error = -EACCES;
        }
        if (private->image_error < 0)
                return private->image_error;
        *ret_image = private->image;
        return 0;
}

/* Where a path of the process is found below our root. -ENAMETOOLONG. */
static int place(const struct process *process, const char *path, char *out, size_t size) {
        bool is_absolute = path[0] == '/';
        int n = snprintf(out, size, "/proc/%u/%s/%s", process->host_pid, is_absolute ? "root" : "cwd",
                         is_absolute ? path + 1 : path);

        return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : 0;
}

int process_open_image(struct process *process, const char *path, struct elf_image **ret_image) {
        char placed[PATH_MAX];
        int r = place(process, path, placed, sizeof(placed)), fd;

        if (r < 0)
                return r;
        fd = root_open_file(process->private->root, placed);
        if (fd < 0)
                return fd == -EPERM ? -EACCES : fd;
        return elf_image_open_take(fd, ret_image);
}

int process_read_file(struct process *process, const char *path, const char **ret_text, size_t *ret_length) {
        cleanup_free char *data = NULL;
        char placed[PATH_MAX];
        size_t length;
        int r = place(process, path, placed, sizeof(placed));

        if (r >= 0)
                r = root_read(process->private->root, placed, PROCESS_FILE_MAX, &data, &length);
        if (r < 0)
                return r == -EPERM ? -EACCES : r;
        char *text = arena_alloc(process->private->arena, length + 1);
        if (!text)
                return -ENOMEM;
        memcpy(text, data, length);
        *ret_text = text;
        if (ret_length)
                *ret_length = length;
        return 0;
}

int process_list_files(struct process *process, const char *path, char ***ret_names) {
        char placed[PATH_MAX];
        int r = place(process, path, placed, sizeof(placed));

        if (r >= 0)
                r = root_list(process->private->root, placed, ret_names);
        return r == -EPERM ? -EACCES : r;
}

int process_bias(struct process *process, const struct elf_image *image, const char *path,
                 uint64_t *ret_bias) {
        const struct process_mapping *mappings;
        const struct elf_segment *segments;
        size_t count, segments_count;
        int r = process_mappings(process, &mappings, &count);

        if (r < 0)
                return r;
        if (!path)
                path = process->exe;
        segments = elf_image_segments(image, &segments_count);
        if (!path || segments_count == 0)
                return -ENOENT;
        /*
         * The kernel maps whole pages: the mapping that holds a segment's first byte begins at that byte's page. Its address in the file
         * may be anything (a PIE of Go's own linker begins at 0x400000), so it is subtracted, not taken for 0.
         */
        const struct elf_segment *first = &segments[0];
        for (size_t i = 0; i < count; i++) {
                if (strcmp(mappings[i].path, path) != 0 || mappings[i].offset > first->offset ||
                    first->offset - mappings[i].offset >= mappings[i].end - mappings[i].start)
                        continue;
                *ret_bias = mappings[i].start + (first->offset - mappings[i].offset) - first->address;
                return 0;
        }
        return -ENOENT;
}
