/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps, settings and small helpers that all programs share. */
#ifndef THROTTLESCOPE_STATE_H
#define THROTTLESCOPE_STATE_H

/* Fixed at load. */
const volatile __u32 clock_source = CLOCK_SOURCE_SELF;
const volatile __u32 scope = MEASURE_NODE;
const volatile __u64 target_id =
                0; /* MEASURE_TARGET: cgroup id of the group; MEASURE_SIBLINGS: of one among them */
const volatile __u64 warn_stall_ns = 50000000;
const volatile __u32 ended_max = 64;    /* ended threads kept one by one, a container and window */
const volatile __u32 lose_switches = 0; /* tests: overlook every n-th switch, as the kernel sometimes does */

/* May change while running. */
__u32 window = 1;     /* the number of the current window */
__u32 generation = 1; /* the group tree or a limit may have changed: resolve again */
__u64 target_group = 0;
__u32 pid_level = 0;     /* of the agent's PID namespace, */
__u32 pid_namespace = 0; /* and its inode number: whoami() finds out */

/*
 * One byte for each task group that is or was measured: lets a switch between unmeasured threads pass without
 * a map look-up, and lets a thread be found again whose limit was removed while it was stalled.
 */
#define GROUPS_SEEN (1 << 14)
#define GROUP_MEASURED 1
__u8 group_seen[GROUPS_SEEN];

/*
 * Time here is the scheduler's own: rq->clock, as the kernel took it under the rq lock at the beginning of the very switch or wake-up. All
 * that the kernel counts (sum_exec_runtime, run_delay, the throttled clocks) is cut at these moments; our own reading comes some
 * microseconds later, more on a cold cache, at each switch. Outside the lock it is estimated: see clock_guess().
 */
__u64 clock_offsets
                [2]; /* CLOCK_MONOTONIC minus that clock, the smallest seen in this window and in the last */
__u32 clock_window = 1;
__u64 clock_noted; /* the millisecond (2^20 ns) in which the offset was last looked at */

/* The scheduler's clock minus the load clock of a CPU, at its last measured switch (CLOCK_SOURCE_PELT). */
__u64 pelt_offsets[CPUS_MAX];

/* Where the queues are per CPU: the address of each CPU's rq, learnt at its first switch. (As a symbol some kernels hide it.) */
__u64 run_queues[CPUS_MAX];

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 8192);
        __type(key, __u32);
        __type(value, struct thread_rec);
} threads SEC(".maps");

/* Threads that ended since the last tick, as they were: user space takes them out. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __type(key, struct ended_key);
        __type(value, struct thread_rec);
} ended SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __type(key, struct fold_key);
        __type(value, struct fold_rec);
} folds SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 256);
        __type(key, __u64);
        __type(value, struct container_rec);
} containers SEC(".maps");

/* Cgroup ids that user space knows to be a container's own group. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 4096);
        __type(key, __u64);
        __type(value, __u32);
} roots SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __type(key, __u64);
        __type(value, struct group_rec);
} groups SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 4096);
        __type(key, __u64);
        __type(value, struct queue_rec);
} queues SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 1 << 20);
} stalls SEC(".maps");

/* When a thread or (with the high bit) a process was moved, where the scheduler's own function can't be hooked. */
#define MOVED_PROCESS 0x80000000u
struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH); /* nobody takes entries out: the oldest make room */
        __uint(max_entries, 1024);
        __type(key, __u32);
        __type(value, __u64);
} moves SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, LOST_AT_COUNT);
        __type(key, __u32);
        __type(value, __u64);
} lost SEC(".maps");

/* Zeroed templates: 512 bytes of stack hold no record. Never written. */
struct blank {
        struct thread_rec thread;
        struct fold_rec fold;
        struct container_rec container;
        struct group_rec group;
        struct queue_rec queue;
};
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct blank);
} blanks SEC(".maps");

static __always_inline void count_lost(__u32 reason, __u64 amount) {
        __u64 *value = bpf_map_lookup_elem(&lost, &reason);

        if (value)
                *value += amount;
}

static __always_inline struct blank *blank(void) {
        __u32 zero = 0;

        return bpf_map_lookup_elem(&blanks, &zero);
}

/*
 * The address behind a typed pointer, as a number: the verifier lets one compare and store such a pointer, but not calculate with it nor
 * hand it to a function of its own. Read back from the stack it has no type.
 */
static __always_inline __u64 address_of(const void *typed) {
        __u64 address = 0;

        bpf_probe_read_kernel(&address, sizeof(address), &typed);
        return address;
}

static __always_inline void run_queue_learn(struct task_struct *p) {
        if (!QUEUES_ARE_PER_CPU)
                return;
        __u32 cpu = bpf_get_smp_processor_id() & (CPUS_MAX - 1);

        if (!run_queues[cpu])
                run_queues[cpu] = address_of(p->se.cfs_rq->rq);
}

/* The queue of a group on a CPU; NULL: not known yet. */
static __always_inline struct cfs_rq *group_queue(struct task_group *tg, __u32 cpu) {
        struct cfs_rq *q = NULL;

        if (QUEUES_ARE_PER_CPU) {
                __u64 rq = run_queues[cpu & (CPUS_MAX - 1)];

                return rq ? group_queue_of_rq(tg, (void *) rq) : NULL;
        }
        bpf_probe_read_kernel(&q, sizeof(q), BPF_CORE_READ(tg, cfs_rq) + cpu);
        return q;
}

static __always_inline __u64 min_u64(__u64 a, __u64 b) {
        return a < b ? a : b;
}

static __always_inline __u64 since(__u64 now, __u64 then) {
        return now > then ? now - then : 0;
}

static __always_inline __u64 clock_offset(void) {
        __u64 now = clock_offsets[0], last = clock_offsets[1];

        return !last || (now && now < last) ? now : last;
}

/* The scheduler's clock where no rq lock is held, also for a CPU that is idle and whose own clock therefore stands. */
static __always_inline __u64 clock_guess(void) {
        return bpf_ktime_get_ns() - clock_offset();
}

/*
 * Clocks drift apart, so the offset is learnt anew in each window; the smallest is the one with the least delay in it. Once a millisecond is
 * enough: reading the time is a fifth of what a switch costs.
 */
static __always_inline void clock_note(__u64 now) {
        if (clock_noted == now >> 20 && clock_window == window)
                return;
        __u64 offset = bpf_ktime_get_ns() - now;

        clock_noted = now >> 20;
        if (clock_window != window) {
                clock_window = window;
                clock_offsets[1] = clock_offsets[0];
                clock_offsets[0] = offset;
        } else if (!clock_offsets[0] || offset < clock_offsets[0]) {
                clock_offsets[0] = offset;
        }
}

/* The same from a program in process context, whose caller has just been through the scheduler (sched_yield): that clock is fresh, too. */
static __always_inline void clock_note_here(void) {
        struct task_struct *self = (void *) bpf_get_current_task();

        clock_note(BPF_CORE_READ(self, se.cfs_rq, rq, clock));
}

/* Position of the highest bit set; @value is not 0. */
static __always_inline __u32 highest_bit(__u64 value) {
        __u32 bit = 0;

        if (value >> 32) {
                bit = 32;
                value >>= 32;
        }
        if (value >> 16) {
                bit += 16;
                value >>= 16;
        }
        if (value >> 8) {
                bit += 8;
                value >>= 8;
        }
        if (value >> 4) {
                bit += 4;
                value >>= 4;
        }
        if (value >> 2) {
                bit += 2;
                value >>= 2;
        }
        return bit + (value >> 1 ? 1 : 0);
}

static __always_inline __u32 duration_bin(__u64 ns, __u32 shift, __u32 bins) {
        if (ns < 1ULL << shift)
                return 0;
        __u32 high = highest_bit(ns);
        __u32 bin = 1 + 4 * (high - shift) + ((ns >> (high - 2)) & 3);
        return bin < bins ? bin : bins - 1;
}

static __always_inline __u32 level_bin(__u64 level) {
        if (level < 32)
                return level;
        __u32 high = highest_bit(level);
        __u32 bin = 32 + 8 * (high - 5) + ((level >> (high - 3)) & 7);
        return bin < LEVEL_BINS ? bin : LEVEL_BINS - 1;
}

#endif
