/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java on HotSpot: what it counted as processors at its start sizes its pools, and those of its programs, for good. Whether a release knows of
 * quotas says little: kernels without the controllers of cgroup v1 made aware ones blind (JDK-8349988), so the number comes from its flags.
 */
#include <errno.h>
#include <string.h>

#include "jvm_flags.h"
#include "runtime.h"

#define RUNTIME "jvm"
#define PROCESSORS "ActiveProcessorCount"
#define GC_THREADS "ParallelGCThreads"
#define GC_THREAD "GC Thread#"
#define CGROUPS_MAX (64u << 10)

/* A server that brings its own main class. */
static const char *program_of(const struct process *process) {
        static const struct {
                const char *word, *program;
        } programs[] = {
                        {"org.elasticsearch.bootstrap.Elasticsearch", "elasticsearch"},
                        {"org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch",
                         "elasticsearch"},
                        {"org.opensearch.bootstrap.OpenSearch", "opensearch"},
                        {"kafka.Kafka", "kafka"},
                        {"org.apache.cassandra.service.CassandraDaemon", "cassandra"},
                        {"org.apache.spark.executor.CoarseGrainedExecutorBackend", "spark"},
                        {"org.apache.catalina.startup.Bootstrap", "tomcat"},
        };

        for (size_t i = 1; i < process->argc; i++)
                for (size_t k = 0; k < ELEMENTS(programs); k++)
                        if (strcmp(process->argv[i], programs[k].word) == 0)
                                return programs[k].program;
        return NULL;
}

/* --- does it know the quota? --- */

/* The kernel's list names the controllers that a release before JDK-8349988 looks for. */
static bool has_listed_controllers(struct root *root) {
        static const char *const wanted[] = {"cpu", "cpuset", "memory"};
        cleanup_free char *text = NULL;
        size_t length, found = 0;

        if (root_read(root, "/proc/cgroups", CGROUPS_MAX, &text, &length) < 0)
                return false;
        for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                for (size_t i = 0; i < ELEMENTS(wanted); i++) {
                        size_t n = strlen(wanted[i]);

                        found += strncmp(line, wanted[i], n) == 0 && line[n] == '\t';
                }
        return found == ELEMENTS(wanted);
}

static enum awareness awareness_of(struct root *root, const struct jvm_flags *flags) {
        bool knows_v2 = flags->major >= 15 || (flags->major == 11 && flags->update >= 16) ||
                        (flags->major == 8 && flags->update >= 372);

        if (!flags->flags[JVM_USE_CONTAINER_SUPPORT].exists ||
            !flags->flags[JVM_USE_CONTAINER_SUPPORT].value)
                return AWARENESS_NONE;
        /* The others know cgroup v1 only. */
        if (!knows_v2 || (flags->major < 25 && !has_listed_controllers(root)))
                return AWARENESS_UNKNOWN;
        return AWARENESS_QUOTA;
}

/* --- where a flag comes from --- */

/* The first of @names whose text speaks of @flag; its value stays unsaid. */
static const char *variable_with(struct process *process, const char *const *names, size_t count,
                                 const char *flag) {
        const char *value;

        for (size_t i = 0; i < count; i++)
                if (process_variable(process, names[i], &value) > 0 && strstr(value, flag))
                        return names[i];
        return NULL;
}

static bool is_argument(const struct process *process, const char *flag) {
        for (size_t i = 1; i < process->argc; i++)
                if (strncmp(process->argv[i], "-XX:", 4) == 0 &&
                    strncmp(process->argv[i] + 4, flag, strlen(flag)) == 0)
                        return true;
        return false;
}

static int explain_source(struct arena *arena, struct process *process, unsigned origin, const char *flag,
                          struct parallelism *row) {
        static const char *const of_vm[] = {"_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"};
        /* The launcher puts its text before the arguments, so the JVM takes it for arguments. */
        static const char *const of_launcher[] = {"JDK_JAVA_OPTIONS"};

        switch (origin) {
        case JVM_FROM_DEFAULT:
        case JVM_FROM_ERGONOMICS:
                row->source = FROM_DEFAULT;
                return 0;
        case JVM_FROM_ENVIRONMENT:
                row->source = FROM_ENVIRONMENT;
                row->source_detail = variable_with(process, of_vm, ELEMENTS(of_vm), flag);
                return 0;
        case JVM_FROM_CONFIG_FILE:
                row->source = FROM_CONFIG;
                return 0;
        case JVM_FROM_COMMAND_LINE:
                break;
        default:
                row->source = FROM_CODE;
                return 0;
        }
        if (!is_argument(process, flag)) {
                row->source_detail = variable_with(process, of_launcher, ELEMENTS(of_launcher), flag);
                if (row->source_detail) {
                        row->source = FROM_ENVIRONMENT;
                        return 0;
                }
        }
        /* In a file of arguments, "@FILE", it is an argument all the same. */
        row->source = FROM_ARGUMENT;
        row->source_detail = arena_format(arena, "-XX:%s=%u", flag, (unsigned) row->effective);
        return row->source_detail ? 0 : -ENOMEM;
}

/* --- rows --- */

/* All processors up to 8, then five of eight more (WorkerPolicy::calc_parallel_worker_threads() of HotSpot). */
static uint64_t gc_threads_for(uint64_t processors) {
        return processors <= 8 ? processors : 8 + (processors - 8) * 5 / 8;
}

/* How many processors the JVM counted that made @threads of them: up to two numbers do, of which those that it may use are likelier. */
static uint64_t processors_for(uint64_t threads, unsigned affinity) {
        uint64_t processors = threads;

        if (gc_threads_for(affinity) == threads)
                return affinity;
        while (gc_threads_for(processors) < threads)
                processors++;
        return processors;
}

static struct parallelism row_of(struct process *process, const struct jvm_flags *flags) {
        struct parallelism row = parallelism_of(RUNTIME, process);

        row.program = program_of(process);
        row.version = flags->version;
        row.rounding = ROUND_UP;
        return row;
}

static int add_processors(struct process_set *set, struct process *process, const struct jvm_flags *flags,
                          enum awareness aware) {
        const int32_t said = flags->flags[JVM_ACTIVE_PROCESSOR_COUNT].value,
                      threads = flags->flags[JVM_PARALLEL_GC_THREADS].value;
        const unsigned origin = flags->flags[JVM_PARALLEL_GC_THREADS].origin;
        /* Other collectors have rules of their own, and Serial's has no threads at all. */
        bool is_known_rule = flags->flags[JVM_USE_G1_GC].value || flags->flags[JVM_USE_PARALLEL_GC].value;
        struct parallelism row = row_of(process, flags);
        int r = 0;

        row.setting = PROCESSORS;
        row.aware = aware;
        row.how = "-XX:ActiveProcessorCount={n} in JAVA_TOOL_OPTIONS or its arguments, then restart";
        if (flags->flags[JVM_ACTIVE_PROCESSOR_COUNT].exists && said > 0) {
                row.effective = (uint64_t) said;
                r = explain_source(set->arena, process, flags->flags[JVM_ACTIVE_PROCESSOR_COUNT].origin,
                                   PROCESSORS, &row);
        } else if (is_known_rule && threads > 0 &&
                   (origin == JVM_FROM_DEFAULT || origin == JVM_FROM_ERGONOMICS)) {
                row.effective = processors_for((uint64_t) threads, process->affinity);
                row.source = FROM_DEFAULT;
                row.source_detail = "inferred from ParallelGCThreads";
        } else {
                row.source = FROM_DEFAULT;
                row.unreadable = arena_format(set->arena,
                                              "the processors that process %u counted at its start are not "
                                              "readable: no flag of its collector says so; "
                                              "-XX:ActiveProcessorCount would",
                                              process->pid);
                r = row.unreadable ? 0 : -ENOMEM;
        }
        return r < 0 ? r : process_set_add(set, &row);
}

static int add_gc_threads(struct process_set *set, struct process *process, const struct jvm_flags *flags,
                          enum awareness aware) {
        struct parallelism row = row_of(process, flags);
        int r;

        /* None: the collector works in the thread that asks for it. */
        if (flags->flags[JVM_PARALLEL_GC_THREADS].value <= 0)
                return 0;
        row.setting = GC_THREADS;
        row.effective = (uint64_t) flags->flags[JVM_PARALLEL_GC_THREADS].value;
        row.aware = aware;
        row.threads_name = GC_THREAD;
        row.how = "-XX:ParallelGCThreads={n}, or -XX:ActiveProcessorCount={n} for all its pools, in "
                  "JAVA_TOOL_OPTIONS or its arguments, then restart";
        r = explain_source(set->arena, process, flags->flags[JVM_PARALLEL_GC_THREADS].origin, GC_THREADS,
                           &row);
        return r < 0 ? r : process_set_add(set, &row);
}

/* Without its memory: the threads that it has by now, which come as they are needed. */
static int add_unreadable(struct process_set *set, struct process *process, int error) {
        struct jvm_flags nothing = {0};
        struct parallelism row = row_of(process, &nothing);
        ssize_t threads = process_count_threads(process, GC_THREAD);

        row.setting = threads > 0 ? GC_THREADS : PROCESSORS;
        if (threads > 0) {
                row.effective = (uint64_t) threads;
                row.threads_name = GC_THREAD;
        }
        row.how = "-XX:ActiveProcessorCount={n} in JAVA_TOOL_OPTIONS or its arguments, then restart";
        row.unreadable = process_explain(process, "the memory", error);
        return row.unreadable ? process_set_add(set, &row) : -ENOMEM;
}

static int add(struct process_set *set, struct process *process) {
        const struct process_mapping *library, *other;
        struct jvm_flags flags;
        int r = process_library(process, "libjvm.so", &library);

        if (r == 0)
                return 0;
        /* OpenJ9 brings a library of that name as well. */
        if (r > 0 && process_library(process, "libj9vm", &other) > 0)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return strcmp(process_program(process), "java") == 0 ? add_unreadable(set, process, r) : 0;
        r = jvm_flags_read(process, library, set->arena, &flags);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return add_unreadable(set, process, r);
        enum awareness aware = awareness_of(set->root, &flags);
        r = add_processors(set, process, &flags, aware);
        return r < 0 ? r : add_gc_threads(set, process, &flags, aware);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                int r = add(set, &set->processes[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_jvm = {.name = RUNTIME, .find = find};
