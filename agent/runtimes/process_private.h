/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of process.h: what has been read of a process in this scan, so that each of it is read once. */
#include "process.h"

struct process_private {
        struct root *root;
        struct arena *arena;
        struct process_memos *memos;

        bool environment_loaded, mappings_loaded, threads_loaded, image_loaded, memory_loaded;
        int environment_error, mappings_error, threads_error, image_error,
                        memory_error; /* why there is nothing: negative errno */
        char *environment;            /* NAME=value, each with its NUL */
        size_t environment_length;
        struct process_mapping *mappings;
        size_t mappings_count;
        struct process_thread *threads;
        size_t threads_count;
        struct elf_image *image;
        int memory_fd;
};

/* 0; -ENOENT: it has ended; -ENOMEM; other negative errno. process_close() before @arena goes. */
int process_read(struct root *root, struct arena *arena, struct process_memos *memos, pid_t pid,
                 struct process *ret_process);
/* Closes what is open. The memory is the arena's. */
void process_close(struct process *process);

/* --- memos: what is kept from scan to scan --- */
int process_memos_new(struct process_memos **ret_memos);
void process_memos_free(struct process_memos *memos); /* NULL is fine */
/* Memos asked for from now on are used at @now_ns. */
void process_memos_begin(struct process_memos *memos, uint64_t now_ns);
/* Forgets what was not used since @since_ns. */
void process_memos_sweep(struct process_memos *memos, uint64_t since_ns);
struct process_memo *process_memos_get(struct process_memos *memos, uint32_t pid, uint64_t start_ticks,
                                       const char *runtime);
