/* SPDX-License-Identifier: Apache-2.0 */
#include "json_threads.h"

#include "text_parts.h"

/* A row of folded threads stands for so many, so that threads_total is a number of threads whatever was folded. */
static uint64_t threads_in(const struct thread_facts *thread) {
        return thread->folded > 0 ? thread->folded : 1;
}

static cJSON *thread_object(struct build *build, const struct thread_facts *thread) {
        cJSON *object = build_object(build);
        build_id(build, object, "pid", thread->pid);
        build_id(build, object, "tid", thread->tid);
        build_id(build, object, "host_pid", thread->host_pid);
        build_id(build, object, "host_tid", thread->host_tid);
        build_name(build, object, "process", thread->process, PROC_NAME_MAX);
        build_name(build, object, "name", thread->name, PROC_NAME_MAX);
        build_u64(build, object, "run_ns", thread->run_ns);
        build_u64(build, object, "wait_ns", thread->wait_ns);
        build_u64(build, object, "stall_ns", thread->stall_ns);
        build_u64(build, object, "sleep_ns", thread->sleep_ns);
        build_u64(build, object, "sleep_in_stall_ns", thread->sleep_in_stall_ns);
        build_u64(build, object, "stalls", thread->stalls);
        build_u64(build, object, "stall_longest_ns", thread->stall_longest_ns);
        build_u64(build, object, "stall_p50_ns", thread->stall_p50_ns);
        build_u64(build, object, "stall_p99_ns", thread->stall_p99_ns);
        build_u64(build, object, "quota_spent_ns", thread->quota_spent_ns);
        build_u64(build, object, "switches", thread->switches);
        build_bool(build, object, "ended", thread->ended || thread->folded > 0);
        build_u64(build, object, "runqueue_delay_ns", thread->runqueue_delay_ns);
        build_id(build, object, "folded", thread->folded);
        return object;
}

/* Only what can be added up: the longest stall and the quantiles of many threads are none of theirs. */
static cJSON *omitted_object(struct build *build, const struct thread_facts *threads, size_t count) {
        uint64_t run = ABSENT, wait = ABSENT, stall = ABSENT, sleep_time = ABSENT, sleep_in_stall = ABSENT;
        uint64_t stalls = ABSENT, spent = ABSENT, switches = ABSENT, delay = ABSENT;
        cJSON *object = build_object(build);
        for (size_t i = 0; i < count; i++) {
                known_add(&run, threads[i].run_ns);
                known_add(&wait, threads[i].wait_ns);
                known_add(&stall, threads[i].stall_ns);
                known_add(&sleep_time, threads[i].sleep_ns);
                known_add(&sleep_in_stall, threads[i].sleep_in_stall_ns);
                known_add(&stalls, threads[i].stalls);
                known_add(&spent, threads[i].quota_spent_ns);
                known_add(&switches, threads[i].switches);
                known_add(&delay, threads[i].runqueue_delay_ns);
        }
        build_u64(build, object, "run_ns", run);
        build_u64(build, object, "wait_ns", wait);
        build_u64(build, object, "stall_ns", stall);
        build_u64(build, object, "sleep_ns", sleep_time);
        build_u64(build, object, "sleep_in_stall_ns", sleep_in_stall);
        build_u64(build, object, "stalls", stalls);
        build_u64(build, object, "quota_spent_ns", spent);
        build_u64(build, object, "switches", switches);
        build_u64(build, object, "runqueue_delay_ns", delay);
        return object;
}

void json_threads(struct build *build, cJSON *root, const struct facts *facts, size_t shown) {
        uint64_t total = 0, omitted = 0;
        /* No thread visible from here is not the same as no threads. */
        if (!facts->measured && facts->threads_count == 0)
                return;
        cJSON *array = build_array(build);
        for (size_t i = 0; i < facts->threads_count; i++) {
                total += threads_in(&facts->threads[i]);
                if (i < shown)
                        build_append(build, array, thread_object(build, &facts->threads[i]));
                else
                        omitted += threads_in(&facts->threads[i]);
        }
        build_attach(build, root, "threads", array);
        build_u64(build, root, "threads_total", total);
        build_u64(build, root, "threads_omitted", omitted);
        if (shown < facts->threads_count)
                build_attach(build, root, "omitted",
                             omitted_object(build, facts->threads + shown, facts->threads_count - shown));
}
