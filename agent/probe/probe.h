/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The probe: picks the method by trial, attaches, and makes one snapshot a tick. Also the replay of a captured folder, which
 * is a probe like any other: the layers above do not know.
 */
#include "snapshot.h"
#include "target.h"

struct probe;

struct probe_options {
        struct target_request target;
        enum probe_method method; /* PROBE_METHOD_COUNT: the best that works */
        uint64_t warn_stall_ns;   /* bursts are counted against it in the kernel */
        size_t threads_max;       /* room of the thread table; 0: default for the scope */
        bool force_kprobes;       /* tests: with PROBE_HOOKS, kprobes also where fentry works */
        uint32_t lose_switches; /* tests: overlook every n-th switch, as a kernel sometimes does; 0: none */
        const char *capture;    /* directory to save every tick to, NULL: none */
};

/*
 * 0, or a negative errno with a sentence: -ENOENT the target does not exist, -EPERM nothing can be measured here, … With a forced
 * method, failing to load it is an error; with the best one, the reasons why better ones failed are in probe_trials().
 * @root with a capture manifest makes a replay; target and method then come from the folder.
 */
int probe_open(struct root *root, const struct probe_options *options, struct probe **ret_probe,
               struct why *why);
void probe_free(struct probe *probe);

enum probe_method probe_method(const struct probe *probe);
const char *probe_method_name(enum probe_method method); /* "hooks", "tracepoints", "files" */
int probe_method_parse(const char *name, enum probe_method *ret_method);

/* What happened when each method was tried, for doctor and for `missing[]`. */
struct probe_trial {
        bool tried;
        int error;      /* 0: works */
        char text[256]; /* the sentence */
};
const struct probe_trial *probe_trials(const struct probe *probe); /* [PROBE_METHOD_COUNT] */

/*
 * One snapshot; the caller frees it with snapshot_free(). @at is the caller's clock; a replay gives its own time in ret->at and ends with
 * -ENODATA after the last captured tick. -ENOENT: the target is gone.
 */
int probe_read(struct probe *probe, struct instant at, struct snapshot **ret_snapshot, struct why *why);

/* Descriptor that becomes readable when the kernel's buffer is filling (-1: none); then call probe_drain(). */
int probe_fd(const struct probe *probe);
int probe_drain(struct probe *probe);

/* What is looked at; of a replay the request of the captured run. */
const struct target_request *probe_target(const struct probe *probe);

/* Is the process still there that the target was named by (or its group)? */
bool probe_target_alive(struct probe *probe);
