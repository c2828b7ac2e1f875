/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of facts.h: what the parts of facts_of_window() hand to each other. */
#include "facts.h"

/* Sums over all thread rows of the window. ABSENT: no row had the figure. */
struct thread_sums {
        uint64_t run_ns, wait_ns, stall_ns, stall_above_ns, exec_ns, quota_spent_ns, runqueue_delay_ns;
};

struct facts_window {
        const struct snapshot *previous, *current;   /* previous may be NULL */
        const struct container_sample *before, *now; /* the container in each; one of them may be NULL */
        const struct facts_options *options;
        struct arena *arena;
        uint64_t id;
        uint64_t from_ns, to_ns;
        struct thread_sums sums;
};

/*
 * Growth of a counter that the probe keeps for the container. Where counting began within the window
 * (nothing before, or begun anew) the figure itself is the growth.
 */
uint64_t facts_growth(const struct facts_window *window, uint64_t now, uint64_t before);
/* The thread rows of @container in @snapshot, also where the container itself is no longer listed. */
const struct thread_sample *facts_rows(const struct snapshot *snapshot,
                                       const struct container_sample *container, uint64_t id,
                                       size_t *ret_count);

/* Each fills its part of @facts. 0 or -ENOMEM. In this order: limits needs the sums of threads. */
int facts_threads(struct facts_window *window, struct facts *facts);
int facts_limits(const struct facts_window *window, struct facts *facts);
int facts_stalls(const struct facts_window *window, struct facts *facts);
int facts_origin(const struct facts_window *window, struct facts *facts);
void facts_bursts(const struct facts_window *window, struct facts *facts);
