/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a method offers to probe.c: a small table of functions. A tick has two halves, so that it can be replayed:
 *   drain_tick   kernel → struct drained: everything that does not come from files (maps, clocks, id translation)
 *   assemble     struct drained + the root's files → snapshot; live and replayed ticks go through the same code
 * probe.c alone knows about captures: it points the root at the tick's folder before assemble(), saves the drained half
 * there, and in a replay hands over the loaded half and the tick's folder as the root. One thread; nothing here blocks.
 */
#include "probe.h"

struct probe_backend;
/* Opaque to probe.c. A backend that drains nothing (files) hands NULL around. */
struct drained;

struct backend_ops {
        /* Live only. *ret_drained is the caller's (drained_free). @at is the tick's time, the same as in the snapshot. */
        int (*drain_tick)(struct probe_backend *backend, struct instant at, struct drained **ret_drained,
                          struct why *why);
        /*
         * Fills @snapshot, which comes with its arena, `at`, `method`, empty arrays and ABSENT machine figures
         * (snapshot_new()). To be filled: exact, machine, containers, threads (then snapshot_sort()), lost, missing: the trials
         * of better methods are added by probe.c. It may keep state in the backend from tick to tick (a replay calls it for the
         * same ticks in the same order), but nothing that was read through a root: @root is another one at each replayed tick,
         * and what was read before the first tick is not in any folder. So no file is read for assembly in …_open().
         * Each file should be read once a tick: of two readings only one is in the folder. probe.c calls this between
         * cgroup_tick_begin() and cgroup_tick_end().
         * 0; -ENOENT the target is gone; other negative errno with a sentence: the tick is lost, the probe goes on.
         */
        int (*assemble)(struct probe_backend *backend, const struct drained *drained, struct root *root,
                        struct snapshot *snapshot, struct why *why);

        /* Writes @directory/maps.json (the folder exists). NULL: this backend drains nothing. */
        int (*drained_save)(const struct drained *drained, const char *directory, struct why *why);
        /* Reads "/maps.json" below @root, a tick's folder: foreign text. NULL as above. */
        int (*drained_load)(struct probe_backend *backend, struct root *root, struct drained **ret_drained,
                            struct why *why);
        void (*drained_free)(struct drained *drained); /* NULL if nothing is ever drained; accepts NULL */

        /* Live only; each may be NULL: no descriptor, nothing to drain between ticks. */
        int (*fd)(const struct probe_backend *backend);
        int (*drain)(struct probe_backend *backend);
        /* Is the process (or group) still there that the target was named by? NULL: probe.c looks itself. */
        bool (*alive)(struct probe_backend *backend, struct root *root);
        void (*free)(struct probe_backend *backend);
};

/* First member of each backend's own struct. */
struct probe_backend {
        const struct backend_ops *ops;
        enum probe_method method;
};

/*
 * Opens a method on this machine (@root is live). @options and its strings outlive the backend: probe.c keeps a copy.
 * Negative errno with a sentence that can stand in a report ("the kernel refused … (EPERM): CAP_BPF is missing").
 */
int bpf_backend_open(struct root *root, const struct probe_options *options, enum probe_method method,
                     struct probe_backend **ret_backend, struct why *why);
/* The same backend without a kernel: only drained_load, assemble, drained_free and free are called. */
int bpf_backend_replay(const struct probe_options *options, enum probe_method method,
                       struct probe_backend **ret_backend, struct why *why);
/* Needs no kernel half at all, so one function serves live, replay and foreign folders. */
int files_backend_open(const struct probe_options *options, struct probe_backend **ret_backend,
                       struct why *why);

/* options->threads_max, or the default for the scope: what every table of threads is bounded by. */
#define PROBE_THREADS_DEFAULT 8192u /* one container or Pod */
#define PROBE_THREADS_DEFAULT_NODE 16384u
#define PROBE_CONTAINERS_MAX 2048u /* supported: 500 with figures; room for a node full of small Pods */
size_t probe_threads_max(const struct probe_options *options);
