/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf_fields.h"

#include <linux/types.h>

#include "../../bpf/shared.h"
#include "../base/memory.h"

#define FIELD(type, member)                                                                                 \
        { #member, offsetof(struct type, member), sizeof(((struct type *) NULL)->member), 1 }
#define ARRAY(type, member)                                                                                 \
        {                                                                                                   \
#member, offsetof(struct type, member), sizeof(((struct type *) NULL)->member[0]),          \
                                ELEMENTS(((struct type *) NULL)->member)                                    \
        }

static const struct record_field drain_thread_fields[] = {
                FIELD(drain_thread, now_ns),
                FIELD(drain_thread, clock_now),
                FIELD(drain_thread, clock_running),
                FIELD(drain_thread, exec_now),
                FIELD(drain_thread, stall_clock),
                FIELD(drain_thread, quota_pending_ns),
                FIELD(drain_thread, alive),
                FIELD(drain_thread, rec.task),
                FIELD(drain_thread, rec.start_ns),
                FIELD(drain_thread, rec.group),
                FIELD(drain_thread, rec.container),
                FIELD(drain_thread, rec.limit),
                FIELD(drain_thread, rec.first_ns),
                FIELD(drain_thread, rec.since_ns),
                FIELD(drain_thread, rec.queue),
                FIELD(drain_thread, rec.clock_open),
                FIELD(drain_thread, rec.clock.raw),
                FIELD(drain_thread, rec.clock.base),
                FIELD(drain_thread, rec.clock.running),
                FIELD(drain_thread, rec.sleep_mark),
                FIELD(drain_thread, rec.exec_mark),
                FIELD(drain_thread, rec.exec_ns),
                FIELD(drain_thread, rec.run_ns),
                FIELD(drain_thread, rec.wait_ns),
                FIELD(drain_thread, rec.stall_ns),
                FIELD(drain_thread, rec.above_ns),
                FIELD(drain_thread, rec.sleep_ns),
                FIELD(drain_thread, rec.sleep_in_stall_ns),
                FIELD(drain_thread, rec.quota_spent_ns),
                FIELD(drain_thread, rec.period),
                FIELD(drain_thread, rec.period_exec_ns),
                FIELD(drain_thread, rec.stalls),
                FIELD(drain_thread, rec.switches),
                FIELD(drain_thread, rec.longest_ns),
                FIELD(drain_thread, rec.window),
                FIELD(drain_thread, rec.generation),
                FIELD(drain_thread, rec.sequence),
                FIELD(drain_thread, rec.state),
                FIELD(drain_thread, rec.tid),
                FIELD(drain_thread, rec.tgid),
                FIELD(drain_thread, rec.host_tid),
                FIELD(drain_thread, rec.host_tgid),
                FIELD(drain_thread, rec.ns_tid),
                FIELD(drain_thread, rec.ns_tgid),
                FIELD(drain_thread, rec.above_levels),
                FIELD(drain_thread, rec.realtime),
                ARRAY(drain_thread, rec.name),
                ARRAY(drain_thread, rec.process),
                ARRAY(drain_thread, rec.bins),
};

static const struct record_field drain_level_fields[] = {
                FIELD(drain_level, container),    FIELD(drain_level, id),
                FIELD(drain_level, quota_ns),     FIELD(drain_level, period_ns),
                FIELD(drain_level, burst_ns),     FIELD(drain_level, nr_periods),
                FIELD(drain_level, nr_throttled), FIELD(drain_level, throttled_ns),
                FIELD(drain_level, nr_bursts),    FIELD(drain_level, burst_time_ns),
                FIELD(drain_level, periods_seen), FIELD(drain_level, throttled_seen),
                FIELD(drain_level, index),        ARRAY(drain_level, name),
};

static const struct record_field drain_fold_fields[] = {
                FIELD(drain_fold, quota_pending_ns),
                FIELD(drain_fold, key.container),
                FIELD(drain_fold, key.tgid),
                FIELD(drain_fold, rec.threads),
                FIELD(drain_fold, rec.first_ns),
                FIELD(drain_fold, rec.last_ns),
                FIELD(drain_fold, rec.wall_ns),
                FIELD(drain_fold, rec.run_ns),
                FIELD(drain_fold, rec.wait_ns),
                FIELD(drain_fold, rec.stall_ns),
                FIELD(drain_fold, rec.above_ns),
                FIELD(drain_fold, rec.sleep_ns),
                FIELD(drain_fold, rec.sleep_in_stall_ns),
                FIELD(drain_fold, rec.exec_ns),
                FIELD(drain_fold, rec.quota_spent_ns),
                FIELD(drain_fold, rec.period),
                FIELD(drain_fold, rec.period_exec_ns),
                FIELD(drain_fold, rec.limit),
                FIELD(drain_fold, rec.stalls),
                FIELD(drain_fold, rec.switches),
                FIELD(drain_fold, rec.longest_ns),
                FIELD(drain_fold, rec.start_ns),
                FIELD(drain_fold, rec.window),
                FIELD(drain_fold, rec.host_tgid),
                FIELD(drain_fold, rec.ns_tgid),
                ARRAY(drain_fold, rec.process),
                ARRAY(drain_fold, rec.bins),
};

static const struct record_field drain_container_fields[] = {
                FIELD(drain_container, now_ns),
                FIELD(drain_container, id),
                FIELD(drain_container, rec.runnable),
                FIELD(drain_container, rec.level_since_ns),
                FIELD(drain_container, rec.stall_open),
                FIELD(drain_container, rec.stall_since_ns),
                FIELD(drain_container, rec.stall_total_ns),
                FIELD(drain_container, rec.own_stall_ns),
                FIELD(drain_container, rec.burst_start_ns),
                FIELD(drain_container, rec.burst_end_ns),
                FIELD(drain_container, rec.burst_exec_mark),
                FIELD(drain_container, rec.burst_stall_mark),
                FIELD(drain_container, rec.bursts),
                FIELD(drain_container, rec.bursts_stalled),
                FIELD(drain_container, rec.exec_ns),
                FIELD(drain_container, rec.threads_ended),
                FIELD(drain_container, rec.runnable_max),
                FIELD(drain_container, rec.burst_cpu_max_ns),
                FIELD(drain_container, rec.burst_longest_ns),
                FIELD(drain_container, rec.worst_ns),
                FIELD(drain_container, rec.worst_stall_ns),
                FIELD(drain_container, rec.worst_start_ns),
                FIELD(drain_container, rec.window),
                FIELD(drain_container, rec.ended_window),
                FIELD(drain_container, rec.levels_window),
                FIELD(drain_container, rec.burst_partial),
                ARRAY(drain_container, rec.level_ns),
                ARRAY(drain_container, rec.burst_cpu_bins),
                ARRAY(drain_container, rec.burst_gap_bins),
};

static const struct record_field drain_queue_fields[] = {
                FIELD(drain_queue, now_ns),         FIELD(drain_queue, queue),
                FIELD(drain_queue, rec.group),      FIELD(drain_queue, rec.group_id),
                FIELD(drain_queue, rec.container),  FIELD(drain_queue, rec.total_ns),
                FIELD(drain_queue, rec.since_ns),   FIELD(drain_queue, rec.open_ns),
                FIELD(drain_queue, rec.open_raw),   FIELD(drain_queue, rec.open_base),
                FIELD(drain_queue, rec.open_above), FIELD(drain_queue, rec.depth),
                FIELD(drain_queue, rec.ring_next),  FIELD(drain_queue, rec.cpu),
};

static const struct record_field stall_event_fields[] = {
                FIELD(stall_event, container),
                FIELD(stall_event, start_ns),
                FIELD(stall_event, end_ns),
                FIELD(stall_event, above),
};

#define KIND(number, type, text)                                                                            \
        { number, sizeof(struct type), text, type##_fields, ELEMENTS(type##_fields) }

const struct record_kind record_kinds[] = {
                KIND(DRAIN_THREAD, drain_thread, "threads"),
                KIND(DRAIN_LEVEL, drain_level, "levels"),
                KIND(DRAIN_FOLD, drain_fold, "folds"),
                KIND(DRAIN_CONTAINER, drain_container, "containers"),
                KIND(DRAIN_QUEUE, drain_queue, "queues"),
};
const size_t record_kinds_count = ELEMENTS(record_kinds);
const struct record_kind record_event = KIND(0, stall_event, "stalls");
