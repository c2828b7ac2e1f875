/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this kernel can be asked, told by the types it describes itself with (BTF), never by its version: distributions take
 * features back to old releases. kernel.md's table of hooks says what each is good for.
 */
#include <stdbool.h>

#include "../base/why.h"
#include "../host/root.h"

struct kernel_facts {
        bool btf;          /* the kernel describes its types: without, no BPF program of ours loads */
        bool bandwidth;    /* task_group.cfs_bandwidth: quotas are built in */
        bool clocks;       /* cfs_rq.throttled_clock_self_time: a clock for each queue, exact (6.6 on) */
        bool pelt_clocks;  /* cfs_rq.throttled_clock_pelt_time or its older name: an estimate */
        bool tasks_parked; /* task_struct.throttled: tasks are parked, not run queues (6.18 on) */
        bool task_storage; /* task_struct.bpf_storage: task-local storage from tracing programs */
        bool hooks; /* tg_throttle_down and tg_unthrottle_up are there to be hooked; whether the kernel lets us is for a trial */
};

/* 0, also where something is missing; -ENOENT: no BTF at all; other negative errno with a sentence. *ret_facts is always set. */
int kernel_facts_read(struct root *root, struct kernel_facts *ret_facts, struct why *why);
