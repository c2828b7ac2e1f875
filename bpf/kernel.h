/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types, only what these programs touch, relocated at load (CO-RE): no dump of one kernel is built in,
 * and the build needs no BTF. Field names are those of Linux 6.x; what other kernels call otherwise is in compat.bpf.h.
 */
#ifndef THROTTLESCOPE_KERNEL_H
#define THROTTLESCOPE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *) 0)

/* From include/uapi/linux/bpf.h: bpf_helper_defs.h and the maps below want them. */
enum bpf_map_type {
        BPF_MAP_TYPE_HASH = 1,
        BPF_MAP_TYPE_ARRAY = 2,
        BPF_MAP_TYPE_PERCPU_ARRAY = 6,
        BPF_MAP_TYPE_LRU_HASH = 9,
        BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
        unsigned int inum;
};
struct pid_namespace {
        struct ns_common ns;
        unsigned int level;
};
struct upid {
        int nr;
        struct pid_namespace *ns;
};
struct pid {
        unsigned int level;
        struct upid numbers[1];
};

struct kernfs_node {
        __u64 id;
        const char *name;
};
struct cgroup {
        struct kernfs_node *kn;
};
struct cgroup_subsys_state {
        struct cgroup *cgroup;
        int id;
};

struct timerqueue_node {
        __s64 expires;
};
struct hrtimer {
        struct timerqueue_node node;
};
struct cfs_bandwidth {
        __s64 period;
        __u64 quota;
        __u64 burst; /* 5.14: f4183717b370 */
        struct hrtimer period_timer;
        int nr_periods;
        int nr_throttled;
        int nr_burst; /* 5.14 */
        __u64 throttled_time;
        __u64 burst_time; /* 5.14 */
};

struct task_struct;
struct rq {
        __u64 clock;
        __u64 clock_pelt;
        unsigned long lost_idle_time;
        int cpu;
        struct task_struct *curr;
        struct task_struct *idle;
};
struct task_group;
struct cfs_rq {
        struct rq *rq;
        struct task_group *tg;
        int throttled; /* a bit field in newer ones: read with throttled_itself() */
        int throttle_count;
        __u64 throttled_clock_self;      /* 6.6: 677ea015f231 */
        __u64 throttled_clock_self_time; /* 6.6 */
        __u64 throttled_clock_pelt;
        __u64 throttled_clock_pelt_time;
};
struct sched_entity;
struct task_group {
        struct cgroup_subsys_state css;
        struct sched_entity **se;
        struct cfs_rq **cfs_rq;
        struct task_group *parent;
        struct cfs_bandwidth cfs_bandwidth;
};

struct sched_entity {
        __u64 sum_exec_runtime;
        unsigned char sched_delayed; /* 6.12: 152e11f6df29 */
        struct cfs_rq *cfs_rq;
};
struct sched_info {
        unsigned long long last_arrival;
        unsigned long long last_queued;
};
struct task_struct {
        unsigned int __state;
        unsigned int on_cpu; /* one byte from 7.1 on: unsigned, so that a direct load follows; never by helper */
        unsigned int on_rq;
        int prio;
        int pid;
        int tgid;
        unsigned int flags;
        __u64 start_boottime;
        struct sched_entity se;
        struct task_group *sched_task_group;
        struct sched_info sched_info;
        struct task_struct *group_leader;
        struct pid *thread_pid;
        char comm[16];
};

struct seq_file;
struct bpf_iter_meta {
        struct seq_file *seq;
};
struct bpf_map;
struct bpf_iter__task {
        struct bpf_iter_meta *meta;
        struct task_struct *task;
};
struct bpf_iter__bpf_map_elem {
        struct bpf_iter_meta *meta;
        struct bpf_map *map;
        void *key;
        void *value;
};

#pragma clang attribute pop

#endif
