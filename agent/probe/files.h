/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of method files: its state from tick to tick, what a tick works with, and its parts. */
#include "../host/root.h"
#include "assemble.h"
#include "backend.h"

#define FILES_SCRATCH_MAX ((size_t) 16 << 20)

/* What is kept of a thread from tick to tick. */
struct known_thread {
        pid_t tid, pid, container_tid, container_pid;
        uint64_t start_ticks, container;
        uint64_t base_run_ns, base_delay_ns, base_slices; /* counted from here; ABSENT: not readable */
        uint64_t run_ns, delay_ns, slices;                /* as last read */
        uint64_t first_ns, seen_ns;
        uint32_t reads; /* how many ticks have seen it */
        bool is_nested; /* its process is in a PID namespace below ours */
        char name[PROC_NAME_MAX], process[PROC_NAME_MAX];
};

struct files_backend {
        struct probe_backend base;
        const struct probe_options *options;
        struct known_thread *threads; /* sorted by pid, then tid */
        size_t threads_count;
        uint64_t previous_ns; /* time of the last tick, 0: none yet */
        uint64_t lost[LOST_REASON_COUNT];
        char *pinned;          /* TARGET_PID: its group, for when the process is gone */
        uint64_t pinned_start; /* and its start, which tells a reused pid apart; 0: not known yet */
};

/* A process of the target. */
struct files_claim {
        pid_t pid;
        uint32_t container; /* index in snapshot.containers, before sorting */
        uint32_t depth;     /* of the container's group: the deepest container has it */
        bool complete;      /* all its threads were read */
};

struct files_tick {
        struct files_backend *backend;
        struct root *root;
        struct snapshot *snapshot;
        struct arena *scratch;
        struct files_claim *claims;
        size_t claims_count, claims_room;
        struct known_thread *threads;
        size_t threads_count, threads_max;
};

/* files_threads.c: the threads of all claims into the snapshot, and the backend's table of known threads anew. 0 or negative errno. */
int files_read_threads(struct files_tick *tick);

/* files_missing.c: adds to snapshot.missing what method files knows that it cannot see; call it last. 0 or -ENOMEM. */
int files_missing(struct root *root, enum target_scope scope, struct snapshot *snapshot);
