/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* load: programs whose own clocks are the truth that throttlescope is compared with.
 *
 * The first process (the controller, struct ctx) stays outside the groups it creates. It forks teams
 * (processes), puts them into groups, and lets their threads work. Each thread has a slot in shared memory,
 * where it leaves what its own clocks say; the controller reads the rest from /proc while the threads are
 * parked. Functions return 0 or a negative errno. Times are CLOCK_MONOTONIC in nanoseconds. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GAP_NS UINT64_C(50000) /* a busy loop that hears nothing for longer than this saw a gap */
#define NO_LIMIT UINT64_MAX
#define UNKNOWN UINT64_MAX
#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)
#define LOCK_WORDS 64U

enum {
        SLOT_MAX = 1024,
        TEAM_MAX = 64,
        GROUP_MAX = 64,
        PARAM_MAX = 32,
        CPU_LIST_MAX = 512,
        PATH_LEN = 512,
};

enum slot_state {
        SLOT_NEW,
        SLOT_READY, /* the thread exists and is parked, waiting for go */
        SLOT_RUNNING,
        SLOT_PARKED, /* work done, its figures are final */
};

struct schedstat {
        uint64_t run_ns, delay_ns, switches;
};

/* What a thread has seen up to at_ns. While it sleeps, sleep_until_ns is not 0. */
struct tally {
        uint64_t at_ns, cpu_ns, gap_ns, gap_max_ns, gaps, sleep_ns, sleep_until_ns;
        uint32_t epoch;
};

struct reading {
        struct tally tally;
        struct schedstat sched;
};

/* Sums over threads or processes that a worker spawned and that have ended. */
struct children {
        _Atomic uint64_t count, cpu_ns, delay_ns, wall_ns, gap_ns, start_delay_ns;
};

struct shared;
struct team;

struct slot {
        /* set before the thread starts */
        struct shared *shared;
        struct team *team;
        const char *role;
        void (*work)(struct slot *s);
        char name[16];
        int cpu;           /* -1: not pinned */
        int fifo;          /* SCHED_FIFO priority, 0: an ordinary thread */
        bool born;         /* made while the others already work */
        bool no_own_clock; /* only the kernel's figures hold for this thread */
        uint64_t arg[4];

        /* the thread's */
        _Atomic uint32_t state;
        int error;
        pid_t pid, tid, inner_pid,
                        inner_tid; /* as the mounted /proc numbers them; as the thread itself does */
        uint64_t go_ns, first_ns;  /* told to start; first instruction after that */
        uint64_t cpu_base_ns;
        uint64_t own_delay_ns; /* run delay read by the thread itself just before it parked */
        uint64_t requests, latency_sum_ns, latency_max_ns;
        struct tally now;    /* private to the thread */
        struct tally pub[2]; /* the last two published; pub[version & 1] is valid */
        _Atomic uint32_t version;
        _Atomic uint64_t last_ns; /* the busy loop's last look at the clock */
        struct children children;
        uint64_t children_exact_cpu_ns; /* with their exit path, from getrusage */

        /* for waiting on each other */
        _Atomic uint32_t word, word_taken;
        _Atomic uint64_t word_stamp_ns;
        const _Atomic uint64_t *wait_stamp; /* where the one that wakes this thread leaves the time */
        _Atomic uint64_t signals;

        /* the controller's */
        bool collected;
        struct schedstat base;
        struct reading begin, end;
} __attribute__((aligned(128)));

/* A process with threads. slots[first] is its leader, which only waits. */
struct team {
        pid_t pid; /* what we forked */
        unsigned first, count;
        int group; /* index into ctx.groups; -1: stay with the controller */
        bool deferred;
        unsigned nested_pidns;
        bool started, collected, reaped;
        _Atomic uint32_t start, leave;
        uint64_t cpu_begin_ns, cpu_end_ns;
};

struct shared {
        _Atomic uint64_t deadline_ns, begin_ns;
        _Atomic uint32_t go, epoch;
        uint64_t go_ns;
        int event_fd;
        /* a lock handed over in order: ticket t owns it once lock_words[t % LOCK_WORDS] == t */
        _Atomic uint32_t lock_next;
        _Atomic uint32_t lock_words[LOCK_WORDS];
        _Atomic uint64_t lock_stamps_ns[LOCK_WORDS];
        struct team teams[TEAM_MAX];
        struct slot slots[SLOT_MAX];
};

struct hierarchy {
        int version; /* 1 or 2 */
        char mount[PATH_LEN], root[PATH_LEN];
};

struct group_stat {
        uint64_t periods, throttled, throttled_ns, bursts, burst_ns, local_ns,
                        usage_ns; /* UNKNOWN: no such file */
};

struct group {
        char path[PATH_LEN];
        int version;
        uint64_t id, quota_ns, period_ns, burst_ns;
        bool created, removed, internal, ended;
        size_t mount_len;
        struct group_stat begin, end;
};

struct param {
        const char *key, *value;
        bool used;
};

struct ctx {
        const struct load_case *load_case;
        struct shared *shared;
        unsigned n_teams, n_slots;
        struct hierarchy hierarchy;
        struct group groups[GROUP_MAX];
        int n_groups;
        struct param params[PARAM_MAX];
        unsigned n_params;
        int cpus[CPU_LIST_MAX];
        unsigned n_cpus;
        const char *group_name;
        uint64_t run_ns;
        bool here, window, no_wait, gaps_output;
        bool begun, ended; /* window: SIGUSR1, SIGUSR2 came */
        bool quit, bad_params;
        int signal_fd;
        uint64_t steal_begin_ns, steal_end_ns;
        uint64_t delay_begin_ns, delay_end_ns; /* of all threads of the machine, from go on (whole) */
        uint64_t actions; /* moves, limit changes, signals, … made by the controller */
        char reason[256]; /* why a case cannot run here */
};

enum {
        CASE_HERE = 1 << 0,      /* makes sense with --here: one group, nothing changed */
        CASE_NO_WINDOW = 1 << 1, /* its figures are final only once everything has ended */
        CASE_WINDOW = 1 << 2,    /* always by SIGUSR1 and SIGUSR2 */
};

struct load_case {
        const char *name, *help;
        int (*setup)(struct ctx *c);
        int (*control)(struct ctx *c); /* while the threads work; may be NULL */
        unsigned flags;
};

extern const struct load_case cases_busy[], cases_limits[], cases_groups[], cases_wake[], cases_spawn[];

/* truth.c: the clocks */
uint64_t now_ns(void);
uint64_t thread_cpu_ns(void);
int process_cpu_ns(pid_t pid, uint64_t *ret);
int schedstat_read(pid_t pid, pid_t tid, struct schedstat *ret);
int schedstat_read_own(struct schedstat *ret);
bool slot_running(const struct slot *s);
void slot_begin(struct slot *s, uint64_t go_ns);
void slot_burn(struct slot *s, uint64_t burn_ns); /* 0: until the deadline */
void slot_sleep_until(struct slot *s, uint64_t until_ns);
void slot_wait_change(struct slot *s, _Atomic uint32_t *word, uint32_t old, const _Atomic uint64_t *stamp);
void slot_end(struct slot *s);
void slot_read(const struct slot *s, struct tally *ret);
bool slot_is_stalled(const struct slot *s, uint64_t for_ns);

/* team.c: processes and threads */
int futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t until_ns); /* 0: for ever */
int futex_wake(const _Atomic uint32_t *word, int count);
struct team *team_add(struct ctx *c, int group);
struct slot *team_add_worker(struct ctx *c, struct team *t, const char *role, void (*work)(struct slot *s));
int team_start(struct ctx *c, struct team *t);
int team_collect(struct ctx *c, struct team *t);
int team_leave(struct ctx *c, struct team *t);
void team_kill(struct team *t);
bool team_is_stalled(struct ctx *c, const struct team *t, uint64_t for_ns);

/* cgroup.c: groups; a group is named by its index in ctx.groups */
int hierarchy_find(const char *root_dir, struct hierarchy *ret);
int group_own_path(const struct hierarchy *h, const char *root_dir, char ret[static PATH_LEN]);
int group_add(struct ctx *c, int parent,
              const char *name); /* returns the index; parent -1: below the mount */
int group_set_limit(struct group *g, uint64_t quota_ns, uint64_t period_ns);
int group_set_burst(struct group *g, uint64_t burst_ns);
int group_set_rt_runtime(struct group *g, uint64_t runtime_us);
int group_move(const struct group *g, pid_t pid);
void group_read(const struct group *g, struct group_stat *ret);
int group_remove(struct group *g);

/* params.c */
int param_add(struct ctx *c, const char *text);
uint64_t param_count(struct ctx *c, const char *key, uint64_t fallback);
uint64_t param_time(struct ctx *c, const char *key, uint64_t fallback_ns); /* "30ms", "max" is NO_LIMIT */
int parse_time(const char *text, uint64_t *ret_ns);
bool params_all_used(const struct ctx *c);

/* engine.c */
int ctx_run(struct ctx *c);
bool ctx_running(const struct ctx *c);
int ctx_sleep_until(struct ctx *c,
                    uint64_t until_ns); /* serves signals meanwhile; -ECANCELED: time to stop */
int ctx_wait_stalled(struct ctx *c, const struct team *t, uint64_t for_ns);
int ctx_wait_state(struct ctx *c, const struct team *t, enum slot_state state, uint64_t timeout_ns);
void ctx_settle(struct ctx *c);
int ctx_unsupported(struct ctx *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ctx_pick_cpu(const struct ctx *c, unsigned i);

/* report.c */
void report_setup(const struct ctx *c);
void report_json(const struct ctx *c);
void report_gaps(const struct ctx *c);
int read_steal_ns(uint64_t *ret);
uint64_t read_machine_delay_ns(void); /* UNKNOWN: this kernel does not say */

/* cases_busy.c, used by the others too */
void work_busy(struct slot *s);
int limited_group(struct ctx *c, int parent, const char *name, uint64_t quota_ns, uint64_t period_ns);
struct team *busy_team(struct ctx *c, int group, unsigned threads, bool pinned);
