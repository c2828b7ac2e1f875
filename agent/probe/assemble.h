/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What backends share when they put a snapshot together. "init" sets every figure to ABSENT, so that a backend only fills in
 * what it measured. All strings and arrays live in the snapshot's arena.
 */
#include "snapshot.h"
#include "target.h"

#define SNAPSHOT_ARENA_MAX ((size_t) 48 << 20)
#define SNAPSHOT_MISSING_MAX 16

/* The `what` of the item that says that the other containers of the Pod could not be looked at (verdict: not-measured). */
#define MISSING_OTHER_CONTAINERS "the other containers of this Pod"
/* The `what` of the item that says why there is no stall per thread: only method files has it. */
#define MISSING_THREAD_STALL "stall and wait per thread"

/* An empty snapshot with its arena. 0 or -ENOMEM. */
int snapshot_new(struct instant at, enum probe_method method, struct snapshot **ret_snapshot);
static inline void snapshot_freep(struct snapshot **snapshot) {
        snapshot_free(*snapshot);
}
#define cleanup_snapshot __attribute__((cleanup(snapshot_freep)))

void container_sample_init(struct container_sample *container);
void thread_sample_init(struct thread_sample *thread);

/* The key of a container whose group's id is not visible: made from its path, never equal to a kernel id in practice. */
uint64_t container_id_of_path(const char *path);
/* Takes over what target_list() found: id (made from the path if ABSENT), cgroup, chain (its strings stay in their arena, which must
 * be the snapshot's), first_pid. */
void container_sample_from_target(struct container_sample *container, const struct target_container *target);

/* Copies the three texts. At most SNAPSHOT_MISSING_MAX items; the same `what` with the same `why` is added once. 0 or -ENOMEM. */
int snapshot_add_missing(struct snapshot *snapshot, const char *what, const char *why, const char *remedy);

/*
 * Sorts threads by (container, ended after living, global_tid) and containers by id, and sets first_thread and threads_count of each
 * container. Threads whose container is not among the containers stay in the array, but belong to nobody. 0 or -EINVAL if two
 * containers have one id.
 */
int snapshot_sort(struct snapshot *snapshot);
/* By id, after snapshot_sort(); NULL if there is none. */
struct container_sample *snapshot_container(const struct snapshot *snapshot, uint64_t id);
