/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One process as the runtimes see it. What is cheap is read with the set; the rest when somebody asks, once. A process may end, and
 * its text may change, at any moment: then a reader returns -ENOENT or less, never an invention.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/absent.h"
#include "../base/memory.h"
#include "../host/proc.h"
#include "../host/root.h"

#define PROCESS_ARGUMENTS_MAX (64u << 10)  /* bytes of a command line that are looked at */
#define PROCESS_ENVIRONMENT_MAX (1u << 20) /* bytes of an environment */
#define PROCESS_MAPS_MAX (8u << 20)        /* bytes of /proc/PID/maps */
#define PROCESS_FILE_MAX (1u << 20)        /* bytes of a configuration file */
#define PROCESS_THREADS_MAX 16384u

/* What a runtime keeps about a process from scan to scan, so that an ELF file is searched once. Zeroed at first sight. */
struct process_memo {
        bool valid;
        int error; /* why there is nothing, negative errno */
        uint64_t values[6];
        char text[64];
};

struct process_mapping {
        uint64_t start, end, offset;
        bool readable, writable, executable;
        uint64_t inode;
        const char *path; /* "" for anonymous memory; without " (deleted)" */
};

struct process_thread {
        uint32_t host_tid;
        char name[PROC_NAME_MAX];
        uint64_t run_ns; /* ABSENT without schedstat */
};

struct elf_image;
struct process_memos;

struct process {
        uint32_t host_pid; /* in the agent's PID namespace */
        uint32_t pid;      /* in the container's */
        uint32_t parent;   /* host_pid of its parent; 0: not visible */
        uint64_t start_ticks;
        char name[PROC_NAME_MAX]; /* comm of its main thread */
        uint32_t uid;
        uint32_t threads_count;
        uint64_t rss_anon_bytes; /* ABSENT: not said */
        unsigned affinity;       /* CPUs allowed; 0: not said */
        const char *const *
                        argv; /* NULL-terminated, empty for a kernel thread; a title setter's text is argv[0] */
        size_t argc;
        const char *exe; /* path in its own mount namespace, without " (deleted)"; NULL: not readable */
        int exe_error;   /* why, negative errno */

        struct process_private *private; /* process_private.h */
};

/* --- recognising --- */

/* The last component of exe, or of argv[0] where exe is not readable; "" if neither is. */
const char *process_program(const struct process *process);
/* argv[0] (the whole title, where one was set) begins with @prefix. */
bool process_title_has_prefix(const struct process *process, const char *prefix);
/* What stands behind @option in argv: "--workers 4", "--workers=4"; for an option of one dash and one letter also "-w4". NULL: not there. The last one counts. */
const char *process_option(const struct process *process, const char *option);
/* Index of the first argument that is @word or a path that ends in "/@word"; 0 if none is (argv[0] is not looked at). */
size_t process_argument(const struct process *process, const char *word);

/* --- reading --- */

/*
 * The value of variable @name: 1 and *ret_value; 0: it is not set; -EACCES: not readable with these rights; -ENODATA: the block holds
 * no variables any more (title setters write over it), which is not "not set"; other negative errno.
 */
int process_variable(struct process *process, const char *name, const char **ret_value);
/* Sorted by address. 0 or negative errno (-EACCES: another uid and no CAP_SYS_PTRACE). */
int process_mappings(struct process *process, const struct process_mapping **ret_mappings,
                     size_t *ret_count);
/*
 * The first mapping of a file whose last component begins with @prefix ("libjvm.so", "libopenblas"). 1 and *ret_mapping; 0: none;
 * negative errno.
 */
int process_library(struct process *process, const char *prefix, const struct process_mapping **ret_mapping);
/* 0 or negative errno. */
int process_threads(struct process *process, const struct process_thread **ret_threads, size_t *ret_count);
/* Number of threads whose name begins with @prefix; negative errno. */
ssize_t process_count_threads(struct process *process, const char *prefix);
/* @length bytes at @address of its memory. 0; -EACCES; -EFAULT: not all of it is there; other negative errno. */
int process_read_memory(struct process *process, uint64_t address, void *buffer, size_t length);
/* Text at @address, up to its NUL or @max bytes, in the arena. 0 or negative errno. */
int process_read_string(struct process *process, uint64_t address, size_t max, const char **ret_text);
/* Its executable as an ELF file; owned by the process. 0 or negative errno (-ENOEXEC: not one that can be read). */
int process_image(struct process *process, struct elf_image **ret_image);
/* The file of a mapping, opened through the process' own root. The caller frees with elf_image_free(). */
int process_open_image(struct process *process, const char *path, struct elf_image **ret_image);
/*
 * A file as the process sees it: @path absolute, or relative to its working directory. At most PROCESS_FILE_MAX bytes, regular files
 * only, NUL-terminated, in the arena. 0; -EFBIG; -EACCES; other negative errno.
 */
int process_read_file(struct process *process, const char *path, const char **ret_text, size_t *ret_length);
/* Names in a directory as the process sees it, sorted; free with root_names_free(). */
int process_list_files(struct process *process, const char *path, char ***ret_names);
/*
 * Where the image whose file is mapped at @path lies: what is to be added to an address in the file to get one in memory.
 * @path NULL: the executable. 0 or negative errno.
 */
int process_bias(struct process *process, const struct elf_image *image, const char *path,
                 uint64_t *ret_bias);
/* What @runtime kept about this process (the same process: pid and start). Never NULL. */
struct process_memo *process_memo(struct process *process, const char *runtime);

/* Why something of @process could not be read, with what would change it, as a sentence in the arena. NULL: out of memory. */
const char *process_explain(struct process *process, const char *what, int error);
