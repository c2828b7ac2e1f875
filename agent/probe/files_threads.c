/* SPDX-License-Identifier: Apache-2.0 */
/* Method files: the threads of a tick beside those of the tick before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../host/proc.h"
#include "files.h"

/* USER_HZ, the unit of start times in /proc: 100 on every architecture that is served; a replay must not ask this machine. */
#define TICKS_NS (NS_PER_S / 100)

static int compare_known(const void *a, const void *b) {
        const struct known_thread *x = a, *y = b;

        if (x->pid != y->pid)
                return x->pid < y->pid ? -1 : 1;
        return (x->tid > y->tid) - (x->tid < y->tid);
}

/* The first of @count entries that is not before (@pid, @tid). */
static size_t known_position(const struct known_thread *threads, size_t count, pid_t pid, pid_t tid) {
        struct known_thread key = {.pid = pid, .tid = tid};
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (compare_known(&threads[middle], &key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static const struct known_thread *known_find(const struct known_thread *threads, size_t count, pid_t pid,
                                             pid_t tid, uint64_t start_ticks) {
        size_t i = known_position(threads, count, pid, tid);

        return i < count && threads[i].pid == pid && threads[i].tid == tid &&
                                               threads[i].start_ticks == start_ticks
                               ? &threads[i]
                               : NULL;
}

/*
 * Of a thread that is known well only its figures are read, which is half the cost. But threads get their names after they start
 * (pools, exec), so everything is read again at the second tick, and at every eighth from then on.
 */
static bool is_known_well(const struct known_thread *thread) {
        return thread->reads > 1 && (thread->reads + (uint32_t) thread->tid) % 8 != 0;
}

/* The process as its main thread remembers it, NULL: not known well. */
static const struct known_thread *known_process(const struct files_backend *backend, pid_t pid) {
        size_t i = known_position(backend->threads, backend->threads_count, pid, pid);

        return i < backend->threads_count && backend->threads[i].pid == pid &&
                                               backend->threads[i].tid == pid &&
                                               is_known_well(&backend->threads[i])
                               ? &backend->threads[i]
                               : NULL;
}

/* What is known well of the threads of @pid. */
static int known_of_process(const struct files_backend *backend, pid_t pid, struct arena *arena,
                            struct proc_thread **ret_threads, size_t *ret_count) {
        size_t first = known_position(backend->threads, backend->threads_count, pid, 0), end = first,
               count = 0;

        while (end < backend->threads_count && backend->threads[end].pid == pid)
                end++;
        struct proc_thread *threads = arena_array(arena, end - first, sizeof(*threads));
        if (!threads)
                return -ENOMEM;
        for (size_t i = first; i < end; i++) {
                const struct known_thread *known = &backend->threads[i];
                if (!is_known_well(known))
                        continue;
                struct proc_thread *thread = &threads[count++];
                *thread = (struct proc_thread){
                                .tid = known->tid,
                                .container_tid = known->container_tid,
                                .run_ns = known->run_ns,
                                .runqueue_delay_ns = known->delay_ns,
                                .timeslices = known->slices,
                                .start_ticks = known->start_ticks,
                };
                memcpy(thread->name, known->name, sizeof(thread->name));
        }
        *ret_threads = threads;
        *ret_count = count;
        return 0;
}

/*
 * Counted from where? A thread that was there before us (or moved in) has figures of a time nobody asked for: from now on. One
 * whose whole life's figures fit in the time since the last tick is as good as born in it: from zero.
 */
static void known_begin(struct known_thread *thread, uint64_t previous_ns, uint64_t now_ns) {
        bool born_here = previous_ns > 0 && is_known(thread->run_ns) && is_known(thread->delay_ns) &&
                         thread->run_ns <= now_ns - previous_ns &&
                         thread->delay_ns <= now_ns - previous_ns - thread->run_ns;

        if (born_here) {
                thread->base_run_ns = thread->base_delay_ns = thread->base_slices = 0;
                thread->first_ns = previous_ns;
        } else {
                thread->base_run_ns = thread->run_ns;
                thread->base_delay_ns = thread->delay_ns;
                thread->base_slices = thread->slices;
                thread->first_ns = now_ns;
        }
}

static void add_thread(struct files_tick *tick, const struct proc_process *process,
                       const struct proc_thread *read, uint64_t container) {
        uint64_t now_ns = tick->snapshot->at.mono_ns;
        struct known_thread *thread = &tick->threads[tick->threads_count++];
        const struct known_thread *before = known_find(tick->backend->threads, tick->backend->threads_count,
                                                       process->pid, read->tid, read->start_ticks);

        *thread = (struct known_thread){
                        .tid = read->tid,
                        .pid = process->pid,
                        .container_pid = process->container_pid,
                        .is_nested = process->pid_depth > 1,
                        .start_ticks = read->start_ticks,
                        .container = container,
                        .run_ns = read->run_ns,
                        .delay_ns = read->runqueue_delay_ns,
                        .slices = read->timeslices,
                        .seen_ns = now_ns,
        };
        /* A process is named like its main thread, by the later of two readings: a replay knows no other (kworkers change their names). */
        memcpy(thread->name, read->tid == process->pid ? process->name : read->name, sizeof(thread->name));
        memcpy(thread->process, process->name, sizeof(thread->process));
        if (!before) {
                known_begin(thread, tick->backend->previous_ns, now_ns);
                thread->container_tid = process->pid_depth > 1 ? proc_container_tid(tick->root, process->pid,
                                                                                    read->tid)
                                                               : read->tid;
                thread->reads = 1;
                return;
        }
        thread->base_run_ns = before->base_run_ns;
        thread->base_delay_ns = before->base_delay_ns;
        thread->base_slices = before->base_slices;
        thread->first_ns = before->first_ns;
        thread->container_tid = before->container_tid;
        thread->reads = before->reads + 1;
}

/* Is the main thread among @threads the one that @known remembers? Else another process got the number. */
static bool is_same_process(const struct known_thread *known, const struct proc_thread *threads,
                            size_t count) {
        for (size_t i = 0; i < count; i++)
                if (threads[i].tid == known->tid)
                        return threads[i].start_ticks == known->start_ticks;
        return false;
}

/* Of a process that is known well nothing is read but its threads. */
static int read_process_and_threads(struct files_tick *tick, pid_t pid, struct arena *arena, size_t room,
                                    struct proc_process *ret_process, struct proc_thread **ret_threads,
                                    size_t *ret_count, bool *ret_cut) {
        const struct known_thread *known = known_process(tick->backend, pid);
        struct proc_thread *before = NULL;
        size_t before_count = 0;

        int r = known_of_process(tick->backend, pid, arena, &before, &before_count);
        if (r == 0)
                r = proc_threads_again(tick->root, pid, before, before_count, room, arena, ret_threads,
                                       ret_count, ret_cut);
        if (r < 0)
                return r;
        if (!known || *ret_cut || !is_same_process(known, *ret_threads, *ret_count))
                return proc_process(tick->root, pid, arena, ret_process);
        *ret_process = (struct proc_process){
                        .pid = pid,
                        .container_pid = known->container_pid,
                        .pid_depth = known->is_nested ? 2 : 1,
        };
        memcpy(ret_process->name, known->process, sizeof(ret_process->name));
        return 0;
}

static int read_process(struct files_tick *tick, struct files_claim *claim) {
        struct files_backend *backend = tick->backend;
        uint64_t container = tick->snapshot->containers[claim->container].id;
        size_t room = tick->threads_max - tick->threads_count, count = 0;
        cleanup_arena struct arena *arena = arena_new(FILES_SCRATCH_MAX);
        struct proc_process process = {.threads = 0};
        struct proc_thread *threads = NULL;
        bool cut = false;

        if (!arena)
                return -ENOMEM;
        if (room == 0) {
                if (proc_process(tick->root, claim->pid, arena, &process) == 0)
                        backend->lost[LOST_THREADS_READ] += process.threads > 0 ? process.threads : 1;
                return 0;
        }
        int r = read_process_and_threads(tick, claim->pid, arena, room, &process, &threads, &count, &cut);
        if (r == -ENOENT) {
                /* It ended meanwhile: so did its threads. */
                claim->complete = true;
                return 0;
        }
        if (r < 0) {
                backend->lost[LOST_THREADS_READ]++;
                return r == -ENOMEM ? r : 0;
        }

        for (size_t i = 0; i < count; i++)
                add_thread(tick, &process, &threads[i], container);
        claim->complete = !cut;
        if (cut)
                backend->lost[LOST_THREADS_READ] += process.threads > count ? process.threads - count : 1;
        return 0;
}

static void sample_thread(const struct known_thread *thread, bool ended, struct thread_sample *ret_sample) {
        struct thread_sample *sample = ret_sample;

        thread_sample_init(sample);
        sample->global_tid = (uint32_t) thread->tid;
        sample->host_tid = (uint32_t) thread->tid;
        sample->host_pid = (uint32_t) thread->pid;
        sample->tid = (uint32_t) thread->container_tid;
        sample->pid = (uint32_t) thread->container_pid;
        memcpy(sample->name, thread->name, sizeof(sample->name));
        memcpy(sample->process, thread->process, sizeof(sample->process));
        sample->start_ns = thread->start_ticks < ABSENT / TICKS_NS ? thread->start_ticks * TICKS_NS : ABSENT;
        sample->container = thread->container;
        sample->ended = ended;
        sample->first_ns = thread->first_ns;
        sample->at_ns = thread->seen_ns;
        sample->run_ns = known_delta(thread->run_ns, thread->base_run_ns);
        sample->runqueue_delay_ns = known_delta(thread->delay_ns, thread->base_delay_ns);
        sample->switches = known_delta(thread->slices, thread->base_slices);
}

/* Known at the last tick, and not now. A process that could not be read whole says nothing about its threads. */
static bool has_ended(const struct files_tick *tick, const struct known_thread *thread) {
        size_t at = known_position(tick->threads, tick->threads_count, thread->pid, thread->tid);

        if (at < tick->threads_count && compare_known(&tick->threads[at], thread) == 0)
                return tick->threads[at].start_ticks != thread->start_ticks;

        size_t low = 0, high = tick->claims_count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (tick->claims[middle].pid < thread->pid)
                        low = middle + 1;
                else
                        high = middle;
        }
        bool there = low < tick->claims_count && tick->claims[low].pid == thread->pid;
        return !there || tick->claims[low].complete;
}

static int emit_threads(struct files_tick *tick) {
        const struct files_backend *backend = tick->backend;
        struct snapshot *snapshot = tick->snapshot;
        size_t count = tick->threads_count;

        for (size_t i = 0; i < backend->threads_count; i++)
                count += has_ended(tick, &backend->threads[i]);

        struct thread_sample *samples = arena_array(snapshot->arena, count, sizeof(*samples));
        if (!samples)
                return -ENOMEM;
        for (size_t i = 0; i < tick->threads_count; i++)
                sample_thread(&tick->threads[i], false, &samples[snapshot->threads_count++]);
        for (size_t i = 0; i < backend->threads_count; i++)
                if (has_ended(tick, &backend->threads[i]))
                        sample_thread(&backend->threads[i], true, &samples[snapshot->threads_count++]);
        snapshot->threads = samples;
        return 0;
}

int files_read_threads(struct files_tick *tick) {
        struct files_backend *backend = tick->backend;

        tick->threads_max = probe_threads_max(backend->options);
        cleanup_free struct known_thread *threads = calloc(tick->threads_max, sizeof(*threads));
        if (!threads)
                return -ENOMEM;
        tick->threads = threads;
        for (size_t i = 0; i < tick->claims_count; i++) {
                int r = read_process(tick, &tick->claims[i]);
                if (r < 0)
                        return r;
        }
        if (tick->threads_count > 0)
                qsort(threads, tick->threads_count, sizeof(*threads), compare_known);

        int r = emit_threads(tick);
        if (r < 0)
                return r;

        /* The new table takes the old one's place whole; what was not seen again is forgotten. */
        struct known_thread *fitting = realloc(threads, (tick->threads_count + 1) * sizeof(*threads));
        (void) take_ptr(threads);
        free(backend->threads);
        backend->threads = fitting;
        backend->threads_count = tick->threads_count;
        return 0;
}
