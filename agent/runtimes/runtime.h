/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A runtime or server that decides for itself how many CPUs to use: how it is recognised among the processes of a container, and
 * what it says about its parallelism. One file a runtime, one line in the table of scan.c. Everything read here (command lines,
 * environments, ELF files, memory, configurations) is chosen by the container: bounded, never trusted, escaped on output.
 */
#include "process.h"

/* Where the number in force comes from. */
enum parallelism_source {
        FROM_UNKNOWN,     /* what would say so was not readable */
        FROM_DEFAULT,     /* the runtime's own rule */
        FROM_ENVIRONMENT, /* a variable of the process */
        FROM_ARGUMENT,    /* its command line */
        FROM_CONFIG,      /* a configuration file */
        FROM_LIBRARY,     /* a library in the program reads the quota (automaxprocs) */
        FROM_CODE,        /* the program sets it itself */
        FROM_COUNT,
};
const char *parallelism_source_name(enum parallelism_source source); /* "environment" */

/* How the recommended number follows from the tightest limit, N CPUs. */
enum parallelism_rounding {
        ROUND_UP,          /* ceil(N), at least 1 */
        ROUND_UP_FROM_TWO, /* ceil(N), at least 2: Go's own rule */
        ROUND_DOWN,        /* floor(N), at least 1: event loops */
        ROUND_TO_ONE,      /* 1: a pool inside each of several processes */
        ROUND_NEVER, /* the limit does not decide it (a pool of connections): no number is recommended */
};

enum awareness { AWARENESS_UNKNOWN, AWARENESS_NONE, AWARENESS_QUOTA };

/* What it is that there are @effective of. */
enum parallelism_unit { UNIT_THREADS, UNIT_PROCESSES };

#define PARALLELISM_MAX 64 /* of one container; more are counted in parallelism_list.omitted */

/*
 * One setting of one runtime in one process (or tree of processes) of a container. Strings live in the scan's arena, are foreign
 * text unless they are literals, and NULL where not known.
 */
struct parallelism {
        const char *runtime; /* stable, lower case: "go", "haproxy", "openblas" */
        const char *program; /* whose process it is, if a known one: "prometheus" */
        const char *version; /* "1.27.3" */
        uint32_t host_pid;   /* the process, or the master of the tree; in the agent's PID namespace */
        uint32_t pid;        /* the same in the container's */
        const char *setting; /* "GOMAXPROCS" */
        uint64_t effective;  /* in force now; ABSENT: not readable */
        uint64_t configured; /* what its configuration says, where that is another number than is running; else ABSENT */
        enum parallelism_source source;
        const char *source_detail; /* "/etc/haproxy/haproxy.cfg:7", "go.mod says go 1.24" */
        enum awareness aware;      /* does this build follow the quota? */
        bool follows;              /* does the number change when the limit changes, without a restart? */
        enum parallelism_rounding rounding;
        enum parallelism_unit unit;
        /* They wait for something else than CPU most of the time (backends, request workers): many of them is no fault. */
        bool is_blocking;
        /* An idle one spins for work (OpenMP's barriers, BEAM's schedulers) and so spends quota. */
        bool spins;
        unsigned affinity;     /* CPUs that the process may use; 0: not known */
        uint64_t memory_bytes; /* RssAnon of all @effective processes; ABSENT for threads, or not readable */
        const char *threads_name; /* their threads' name as the kernel has it, or its beginning; NULL: no name of their own */
        uint64_t active; /* of @effective, those seen at work now (backends with a query); ABSENT: not told apart */
        uint64_t leaving; /* more of them that finish their last work (nginx after a reload); ABSENT: none are told apart */
        /* How to set it: a sentence with {n} for the number. */
        const char *how;
        const char *unreadable; /* what could not be read and what would change that, as one sentence; NULL: all was */
};

struct parallelism_list {
        const struct parallelism *rows; /* in the order of the table, then by pid */
        size_t count;
        uint64_t omitted;
};

/* The processes of one container, and what the runtimes find among them. */
struct process_set {
        struct root *root;
        struct arena *arena;       /* of this scan: rows and their strings */
        struct process *processes; /* sorted by host_pid */
        size_t count;
        unsigned cpus_online;      /* of the machine; 0: not known */
        struct parallelism *found; /* what the runtimes have added so far */
        size_t found_count, found_room;
        uint64_t omitted;
};

struct runtime {
        const char *name;
        /* Looks at the set and adds a row for each of its settings. 0 or -ENOMEM: what cannot be read is said in a row. */
        int (*find)(struct process_set *set);
};

/*
 * The CPUs that a program without any knowledge of quotas counts: those of its affinity, or of the machine where @of_machine (glibc's
 * online count). 0: not known.
 */
unsigned process_cpus(const struct process_set *set, const struct process *process, bool of_machine);
/* A whole decimal number of CPUs, threads or processes from foreign text: 0 and at most 65,536; -EINVAL, -ERANGE. */
int parallelism_parse(const char *text, uint64_t *ret_number);
/* A row with @runtime, @process and nothing known yet: all numbers ABSENT. */
struct parallelism parallelism_of(const char *runtime, const struct process *process);
/* Copies the row into the set. 0 or -ENOMEM. */
int process_set_add(struct process_set *set, const struct parallelism *row);
/* NULL: not in this container (or not visible). */
struct process *process_set_find(const struct process_set *set, uint32_t host_pid);
struct process *process_set_parent(const struct process_set *set, const struct process *process);

/* Sum of RssAnon over processes of the set for which @belongs holds; ABSENT if one of them does not say. */
uint64_t process_set_memory(const struct process_set *set,
                            bool (*belongs)(const struct process *process, void *data), void *data);

/* All of them; scan.c has their table. */
extern const struct runtime runtime_haproxy;
extern const struct runtime runtime_nginx;
extern const struct runtime runtime_apache;
extern const struct runtime runtime_php_fpm;
extern const struct runtime runtime_ruby;
extern const struct runtime runtime_envoy;
extern const struct runtime runtime_go;
extern const struct runtime runtime_redis;
extern const struct runtime runtime_memcached;
extern const struct runtime runtime_jvm;
extern const struct runtime runtime_postgres;
extern const struct runtime runtime_pgbouncer;
extern const struct runtime runtime_python;
extern const struct runtime runtime_beam;
extern const struct runtime runtime_mysql;
extern const struct runtime runtime_node;
