/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assemble.h"
#include "probe.h"

static const char *const method_names[PROBE_METHOD_COUNT] = {
                [PROBE_HOOKS] = "hooks",
                [PROBE_TRACEPOINTS] = "tracepoints",
                [PROBE_FILES] = "files",
};

const char *probe_method_name(enum probe_method method) {
        return (unsigned) method < PROBE_METHOD_COUNT ? method_names[method] : "none";
}

int probe_method_parse(const char *name, enum probe_method *ret_method) {
        for (unsigned i = 0; i < PROBE_METHOD_COUNT; i++)
                if (strcmp(name, method_names[i]) == 0) {
                        *ret_method = (enum probe_method) i;
                        return 0;
                }
        return -EINVAL;
}

void snapshot_free(struct snapshot *snapshot) {
        if (!snapshot)
                return;
        /* The snapshot lives in its own arena. */
        arena_free(snapshot->arena);
}

int snapshot_new(struct instant at, enum probe_method method, struct snapshot **ret_snapshot) {
        cleanup_arena struct arena *arena = arena_new(SNAPSHOT_ARENA_MAX);
        if (!arena)
                return -ENOMEM;

        struct snapshot *snapshot = arena_alloc(arena, sizeof(*snapshot));
        if (!snapshot)
                return -ENOMEM;
        snapshot->at = at;
        snapshot->method = method;
        snapshot->machine.steal_ns = ABSENT;
        snapshot->machine.boot_real_ns = ABSENT;
        snapshot->missing = arena_array(arena, SNAPSHOT_MISSING_MAX, sizeof(*snapshot->missing));
        if (!snapshot->missing)
                return -ENOMEM;
        snapshot->arena = take_ptr(arena);
        *ret_snapshot = snapshot;
        return 0;
}

void container_sample_init(struct container_sample *container) {
        *container = (struct container_sample){
                        .chain.tightest = -1,
                        .runnable_now = ABSENT,
                        .runnable_max = ABSENT,
                        .bursts = ABSENT,
                        .burst_cpu_max_ns = ABSENT,
                        .burst_longest_ns = ABSENT,
                        .bursts_stalled = ABSENT,
                        .worst_burst_ns = ABSENT,
                        .worst_burst_stall_ns = ABSENT,
                        .worst_burst_at_ns = ABSENT,
                        .throttled_used_ns = ABSENT,
                        .exec_ns = ABSENT,
                        .run_ns = ABSENT,
                        .wait_ns = ABSENT,
                        .stall_ns = ABSENT,
                        .stall_above_ns = ABSENT,
        };
}

void thread_sample_init(struct thread_sample *thread) {
        *thread = (struct thread_sample){
                        .start_ns = ABSENT,
                        .first_ns = ABSENT,
                        .at_ns = ABSENT,
                        .run_ns = ABSENT,
                        .wait_ns = ABSENT,
                        .stall_ns = ABSENT,
                        .sleep_ns = ABSENT,
                        .stall_above_ns = ABSENT,
                        .sleep_in_stall_ns = ABSENT,
                        .exec_ns = ABSENT,
                        .quota_spent_ns = ABSENT,
                        .stalls = ABSENT,
                        .switches = ABSENT,
                        .stall_longest_ns = ABSENT,
                        .runqueue_delay_ns = ABSENT,
        };
}

uint64_t container_id_of_path(const char *path) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

        for (const char *p = path; *p; p++)
                hash = (hash ^ (unsigned char) *p) * UINT64_C(0x100000001b3);
        /* Kernel ids count up from 1 with a generation in the upper half: the top bit is never reached. */
        hash |= UINT64_C(1) << 63;
        return hash == ABSENT ? hash - 1 : hash;
}

void container_sample_from_target(struct container_sample *container,
                                  const struct target_container *target) {
        container->id = is_known(target->id) ? target->id : container_id_of_path(target->path);
        container->cgroup = target->path;
        container->chain = target->chain;
        container->first_pid = target->a_pid > 0 ? (uint32_t) target->a_pid : 0;
}

int snapshot_add_missing(struct snapshot *snapshot, const char *what, const char *why, const char *remedy) {
        for (size_t i = 0; i < snapshot->missing_count; i++)
                if (strcmp(snapshot->missing[i].what, what) == 0 &&
                    strcmp(snapshot->missing[i].why, why) == 0)
                        return 0;
        /* Sixteen reasons are more than anybody reads; the most important ones are added first. */
        if (snapshot->missing_count == SNAPSHOT_MISSING_MAX)
                return 0;

        struct missing_item item = {
                        .what = arena_string(snapshot->arena, what),
                        .why = arena_string(snapshot->arena, why),
                        .remedy = arena_string(snapshot->arena, remedy),
        };
        if (!item.what || !item.why || !item.remedy)
                return -ENOMEM;
        snapshot->missing[snapshot->missing_count++] = item;
        return 0;
}

static int compare_u64(uint64_t a, uint64_t b) {
        return (a > b) - (a < b);
}

static int compare_containers(const void *a, const void *b) {
        const struct container_sample *x = a, *y = b;

        return compare_u64(x->id, y->id);
}

static int compare_threads(const void *a, const void *b) {
        const struct thread_sample *x = *(struct thread_sample *const *) a,
                                   *y = *(struct thread_sample *const *) b;
        int c = compare_u64(x->container, y->container);

        if (c == 0)
                c = (int) x->ended - (int) y->ended;
        if (c == 0)
                c = compare_u64(x->global_tid, y->global_tid);
        if (c == 0)
                c = compare_u64(x->start_ns, y->start_ns);
        return c;
}

/* Rows are large (about 400 bytes): pointers are sorted, then each row is moved once. */
static int sort_threads(struct snapshot *snapshot) {
        size_t count = snapshot->threads_count;
        if (count == 0)
                return 0;

        cleanup_free struct thread_sample **order = calloc(count, sizeof(*order));
        if (!order)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                order[i] = &snapshot->threads[i];
        qsort(order, count, sizeof(*order), compare_threads);

        for (size_t i = 0; i < count; i++) {
                size_t from = (size_t) (order[i] - snapshot->threads);
                if (from == i)
                        continue;
                /* Follow the cycle of rows that move into each other's places. */
                struct thread_sample first = snapshot->threads[i];
                size_t to = i;
                while (from != i) {
                        snapshot->threads[to] = snapshot->threads[from];
                        order[to] = &snapshot->threads[to];
                        to = from;
                        from = (size_t) (order[to] - snapshot->threads);
                }
                snapshot->threads[to] = first;
                order[to] = &snapshot->threads[to];
        }
        return 0;
}

int snapshot_sort(struct snapshot *snapshot) {
        int r = sort_threads(snapshot);
        if (r < 0)
                return r;

        if (snapshot->containers_count > 0)
                qsort(snapshot->containers, snapshot->containers_count, sizeof(*snapshot->containers),
                      compare_containers);

        size_t t = 0;
        for (size_t i = 0; i < snapshot->containers_count; i++) {
                struct container_sample *container = &snapshot->containers[i];
                if (i > 0 && container->id == container[-1].id)
                        return -EINVAL;
                while (t < snapshot->threads_count && snapshot->threads[t].container < container->id)
                        t++;
                container->first_thread = (uint32_t) t;
                while (t < snapshot->threads_count && snapshot->threads[t].container == container->id)
                        t++;
                container->threads_count = (uint32_t) t - container->first_thread;
        }
        return 0;
}

struct container_sample *snapshot_container(const struct snapshot *snapshot, uint64_t id) {
        size_t low = 0, high = snapshot->containers_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (snapshot->containers[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < snapshot->containers_count && snapshot->containers[low].id == id
                               ? &snapshot->containers[low]
                               : NULL;
}
