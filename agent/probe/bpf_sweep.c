/* SPDX-License-Identifier: Apache-2.0 */
/* What is dead leaves the maps after each drain, so that they are as large as what lives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"
#include "throttlescope.skel.h"

/*
 * By time, not by ticks: a hasty reader must not throw away what the kernel still needs, such as the ledger of a group whose threads are
 * stalled for many of its ticks.
 */
#define GROUP_IDLE_NS (60 * NS_PER_S)
#define FOLD_IDLE_NS (2 * NS_PER_S) /* longer than any period, so that its last one is settled */

/* Idle for so long, and since before this window: its last figures have been read. */
static bool is_idle(const struct drained *drained, uint64_t last_ns, uint64_t idle_ns) {
        uint64_t last_mono_ns = drained_mono(drained, last_ns);

        return last_mono_ns < drained->from_ns && last_mono_ns + idle_ns < drained->now_ns;
}

static void sweep_threads(struct bpf_backend *backend, const struct drained *drained) {
        struct throttlescope_bpf *s = backend->skeleton;

        DRAINED_EACH(drained, head) {
                const struct drain_thread *thread = (const void *) head;

                if (head->kind != DRAIN_THREAD)
                        continue;
                if (thread->rec.state == THREAD_ENDED) {
                        struct ended_key key = {.start_ns = thread->rec.start_ns, .tid = thread->rec.tid};
                        bpf_map_delete_elem(bpf_map__fd(s->maps.ended), &key);
                } else if (!thread->alive) {
                        /* Its last switch was not shown, or it took another number when it called exec. */
                        bpf_map_delete_elem(bpf_map__fd(s->maps.threads), &thread->rec.tid);
                }
        }
}

/* Sums of processes that ended no thread since: a process that goes on is folded anew. */
static void sweep_folds(struct bpf_backend *backend, const struct drained *drained) {
        int fd = bpf_map__fd(backend->skeleton->maps.folds);

        DRAINED_EACH(drained, head) {
                const struct drain_fold *fold = (const void *) head;

                if (head->kind == DRAIN_FOLD && is_idle(drained, fold->rec.last_ns, FOLD_IDLE_NS))
                        bpf_map_delete_elem(fd, &fold->key);
        }
}

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

/* The containers that threads are in, sorted, most of them several times. NULL: out of memory. */
static uint64_t *containers_with_threads(const struct drained *drained, size_t *ret_count) {
        uint64_t *ids;
        size_t count = 0;

        DRAINED_EACH(drained, head)
        count += head->kind == DRAIN_THREAD;
        ids = calloc(count + 1, sizeof(*ids));
        if (!ids)
                return NULL;
        count = 0;
        DRAINED_EACH(drained, head) {
                const struct drain_thread *thread = (const void *) head;

                if (head->kind == DRAIN_THREAD && (count == 0 || ids[count - 1] != thread->rec.container))
                        ids[count++] = thread->rec.container;
        }
        qsort(ids, count, sizeof(*ids), compare_u64);
        *ret_count = count;
        return ids;
}

static void sweep_containers(struct bpf_backend *backend, const struct drained *drained) {
        int fd = bpf_map__fd(backend->skeleton->maps.containers);
        cleanup_free uint64_t *with_threads = NULL;
        size_t count = 0;

        DRAINED_EACH(drained, head) {
                const struct drain_container *container = (const void *) head;

                if (head->kind != DRAIN_CONTAINER || container->rec.runnable > 0 ||
                    !is_idle(drained, container->rec.level_since_ns, GROUP_IDLE_NS))
                        continue;
                if (!with_threads)
                        with_threads = containers_with_threads(drained, &count);
                if (!with_threads)
                        return;
                if (!bsearch(&container->id, with_threads, count, sizeof(*with_threads), compare_u64))
                        bpf_map_delete_elem(fd, &container->id);
        }
}

/* Groups that were long not asked for, then the queues of groups that have no record. */
static void sweep_groups(struct bpf_backend *backend, const struct drained *drained) {
        int groups = bpf_map__fd(backend->skeleton->maps.groups),
            queues = bpf_map__fd(backend->skeleton->maps.queues);
        uint64_t key, next;
        struct group_rec group;
        struct queue_rec queue;
        bool more;

        /* Generations count at least one a tick: one that was current a while ago and is not asked for since is idle. */
        if (drained->now_ns - backend->swept_ns < GROUP_IDLE_NS)
                return;
        uint32_t idle_before = backend->swept_generation;
        backend->swept_ns = drained->now_ns;
        backend->swept_generation = backend->skeleton->data->generation;
        for (more = bpf_map_get_next_key(groups, NULL, &next) == 0; more;) {
                key = next;
                more = bpf_map_get_next_key(groups, &key, &next) == 0;
                if (bpf_map_lookup_elem(groups, &key, &group) == 0 &&
                    (int32_t) (group.generation - idle_before) < 0)
                        bpf_map_delete_elem(groups, &key);
        }
        for (more = bpf_map_get_next_key(queues, NULL, &next) == 0; more;) {
                key = next;
                more = bpf_map_get_next_key(queues, &key, &next) == 0;
                if (bpf_map_lookup_elem(queues, &key, &queue) == 0 && !queue.since_ns && !queue.open_ns &&
                    bpf_map_lookup_elem(groups, &queue.group, &group) < 0)
                        bpf_map_delete_elem(queues, &key);
        }
}

void bpf_sweep(struct bpf_backend *backend, const struct drained *drained) {
        sweep_threads(backend, drained);
        sweep_folds(backend, drained);
        sweep_containers(backend, drained);
        sweep_groups(backend, drained);
}

void bpf_name_roots(struct bpf_backend *backend, const struct snapshot *snapshot) {
        cleanup_free uint64_t *ids = calloc(snapshot->containers_count + 1, sizeof(*ids));
        uint32_t one = 1;
        size_t count = 0, i = 0, j = 0;
        bool changed = false;
        int fd;

        if (!ids || !backend->skeleton)
                return;
        for (size_t k = 0; k < snapshot->containers_count; k++)
                if (snapshot->containers[k].chain.levels_count > 0)
                        ids[count++] = snapshot->containers[k].id;
        qsort(ids, count, sizeof(*ids), compare_u64);
        fd = bpf_map__fd(backend->skeleton->maps.roots);
        while (i < count || j < backend->roots_count) {
                if (j >= backend->roots_count || (i < count && ids[i] < backend->roots[j])) {
                        changed = bpf_map_update_elem(fd, &ids[i++], &one, BPF_ANY) == 0 || changed;
                } else if (i >= count || ids[i] > backend->roots[j]) {
                        bpf_map_delete_elem(fd, &backend->roots[j++]);
                        changed = true;
                } else {
                        i++;
                        j++;
                }
        }
        free(backend->roots);
        backend->roots = take_ptr(ids);
        backend->roots_count = count;
        if (changed)
                backend->skeleton->data->generation++;
}
