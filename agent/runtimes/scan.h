/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The scanner: which runtimes are in a container. It keeps what it found, because looking is far dearer than a tick, and looks again
 * when the container's processes have changed, when somebody needs it, or when it has been long.
 */
#include "../base/why.h"
#include "../host/cgroup.h"
#include "runtime.h"

#define SCAN_PROCESSES_MAX 4096u /* of one container; the runtimes do not see more */
#define SCAN_CONTAINERS_MAX 4096u
#define SCAN_CALM_MAX 16u /* calm containers that one tick looks at: the others wait for their turn */
#define SCAN_AGAIN_NS (UINT64_C(60) * 1000000000)       /* a container whose report is needed */
#define SCAN_AGAIN_CALM_NS (UINT64_C(600) * 1000000000) /* any other */

struct scanner;

/* @directory as for root_open(): a root of its own, so that nothing read here (arguments, memory) gets into a capture. */
int scanner_new(const char *directory, struct scanner **ret_scanner, struct why *why);
void scanner_free(struct scanner *scanner); /* NULL is fine */

struct scan_request {
        uint64_t container;               /* id of its group */
        const struct cgroup_chain *chain; /* its group, to list the processes of; NULL: not visible */
        const pid_t *pids;                /* else: those known, in the agent's PID namespace, ascending */
        size_t pids_count;
        unsigned cpus_online;
        uint64_t now_ns; /* CLOCK_MONOTONIC */
        bool is_needed;  /* for a report: now, if it was not looked at lately */
};
/*
 * What runs in the container. *ret_list is the scanner's and valid until the same container is asked for again, or swept. 1; 0: it was not
 * looked at yet, *ret_list is not set; -ENOMEM.
 */
int scanner_look(struct scanner *scanner, const struct scan_request *request,
                 struct parallelism_list *ret_list);
/* Forgets the containers that were not asked for since the last call, and what was kept of processes that are gone. */
void scanner_sweep(struct scanner *scanner, uint64_t now_ns);

/* One look, nothing kept but @memos. For scanner_look() and the tests. */
int scan_processes(struct root *root, struct process_memos *memos, const struct scan_request *request,
                   struct arena *arena, struct parallelism_list *ret_list);
