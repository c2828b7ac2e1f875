/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "bpf_internal.h"
#include "throttlescope.skel.h"

/* A smaller one turns the verifier's refusal into ENOSPC. Untouched pages of it cost nothing. */
#define VERIFIER_LOG_BYTES (16u << 20)

/* From here on a block is the kernel's again as soon as it is freed. */
#define LARGE_BLOCK_BYTES (64 << 10)

/* What a way of measuring needs; tried in this order, switched on by trial. */
struct bpf_plan {
        enum probe_method method;
        enum clock_source clock;
        const char *programs[5]; /* besides the common ones */
        const char *name;
};

static const char *const common_programs[] = {
                "on_switch", "on_wakeup",     "on_wakeup_new", "on_migrate",       "whoami",
                "seed",      "drain_threads", "drain_folds",   "drain_containers", "drain_queues",
};

static const struct bpf_plan plans[] = {
                {PROBE_HOOKS,
                 CLOCK_SOURCE_HOOKS,
                 {"on_throttle", "on_unthrottle", "on_move_begins", "on_move_ends"},
                 "fentry on tg_throttle_down and tg_unthrottle_up"},
                /* Kprobes are skipped while a map system call runs on their CPU: only where the kernel has no clocks of its own. */
                {PROBE_HOOKS,
                 CLOCK_SOURCE_HOOKS,
                 {"on_throttle_kprobe", "on_unthrottle_kprobe", "on_attach"},
                 "kprobes on tg_throttle_down and tg_unthrottle_up"},
                {PROBE_TRACEPOINTS, CLOCK_SOURCE_SELF, {"on_attach"}, "the kernel's throttled clocks"},
                {PROBE_TRACEPOINTS, CLOCK_SOURCE_PELT, {"on_attach"}, "the kernel's load clock"},
};
enum { PLAN_FENTRY, PLAN_KPROBE, PLAN_SELF, PLAN_PELT };

static bool plan_has(const struct bpf_plan *plan, const char *program) {
        for (size_t i = 0; i < ELEMENTS(common_programs); i++)
                if (strcmp(common_programs[i], program) == 0)
                        return true;
        for (size_t i = 0; i < ELEMENTS(plan->programs) && plan->programs[i]; i++)
                if (strcmp(plan->programs[i], program) == 0)
                        return true;
        return false;
}

/* The kernel's own last word in the verifier's log, for the sentence; "" if it gave none. */
static const char *last_line(char *log) {
        size_t length = strlen(log);

        while (length > 0) {
                while (length > 0 && log[length - 1] == '\n')
                        log[--length] = '\0';
                char *line = strrchr(log, '\n');
                line = line ? line + 1 : log;
                if (strncmp(line, "processed ", 10) != 0 && *line)
                        return line;
                length = (size_t) (line - log);
                log[length] = '\0';
        }
        return "";
}

static size_t clamp_size(size_t value, size_t least, size_t most) {
        return value < least ? least : value > most ? most : value;
}

static void set_map_sizes(const struct probe_options *options, struct throttlescope_bpf *skeleton) {
        bool node = options->target.scope == TARGET_NODE;
        size_t cpus = (size_t) clamp_size((size_t) libbpf_num_possible_cpus(), 1, CPUS_MAX);
        size_t groups = node ? 4096 : 1024, threads = probe_threads_max(options);

        bpf_map__set_max_entries(skeleton->maps.threads, (uint32_t) threads);
        bpf_map__set_max_entries(skeleton->maps.ended, (uint32_t) clamp_size(threads / 8, 64, 4096));
        bpf_map__set_max_entries(skeleton->maps.folds, node ? 4096 : 1024);
        bpf_map__set_max_entries(skeleton->maps.containers, node ? PROBE_CONTAINERS_MAX : 256);
        bpf_map__set_max_entries(skeleton->maps.groups, (uint32_t) groups);
        /* Only queues that were throttled have a record: a quarter of the groups on every CPU at once is a node on fire. */
        bpf_map__set_max_entries(skeleton->maps.queues,
                                 (uint32_t) clamp_size(groups / 4 * cpus, 1024, 32768));
        bpf_map__set_max_entries(skeleton->maps.stalls, node ? 512u << 10 : 256u << 10);
}

/* Where the skeleton keeps the link of @program, so that it is destroyed with it. NULL: not one of its programs. */
static struct bpf_link **link_of(const struct bpf_object_skeleton *skeleton,
                                 const struct bpf_program *program) {
        for (int i = 0; i < skeleton->prog_cnt; i++)
                if (*skeleton->progs[i].prog == program)
                        return skeleton->progs[i].link;
        return NULL;
}

static int attach_all(struct bpf_backend *backend, const struct bpf_plan *plan, struct why *why) {
        struct throttlescope_bpf *skeleton = backend->skeleton;
        struct bpf_program *program;

        bpf_object__for_each_program(program, skeleton->obj) {
                struct bpf_link **link = link_of(skeleton->skeleton, program);

                if (!link || !bpf_program__autoload(program) ||
                    bpf_program__expected_attach_type(program) == BPF_TRACE_ITER)
                        continue;
                *link = bpf_program__attach(program);
                if (!*link) {
                        int r = -errno;
                        return why_set(why, r, "the kernel loads but does not attach %s of %s (%s)",
                                       bpf_program__name(program), plan->name, strerror(-r));
                }
        }
        return 0;
}

/* Runs an iterator over all tasks once, for its effect. */
static int run_over_tasks(struct bpf_program *program, struct why *why) {
        char nothing[64];
        struct bpf_link *link = bpf_program__attach_iter(program, NULL);

        if (!link)
                return why_set(why, -errno, "the kernel refuses an iterator over its tasks (%s)",
                               strerror(errno));
        int fd = bpf_iter_create(bpf_link__fd(link)), r = fd < 0 ? -errno : 0;
        sched_yield(); /* brings the scheduler's clock of this CPU up to date: clock_note_here() */
        while (fd >= 0 && read(fd, nothing, sizeof(nothing)) > 0)
                ;
        if (fd >= 0)
                close(fd);
        bpf_link__destroy(link);
        return r < 0 ? why_set(why, r, "the kernel refuses an iterator over its tasks (%s)", strerror(-r))
                     : 0;
}

static int open_iterators(struct bpf_backend *backend, struct why *why) {
        struct throttlescope_bpf *s = backend->skeleton;
        const struct {
                struct bpf_program *program;
                struct bpf_map *map;
        } pairs[ITERATE_COUNT] = {
                        [ITERATE_THREADS] = {s->progs.drain_threads, s->maps.threads},
                        [ITERATE_ENDED] = {s->progs.drain_threads, s->maps.ended},
                        [ITERATE_FOLDS] = {s->progs.drain_folds, s->maps.folds},
                        [ITERATE_CONTAINERS] = {s->progs.drain_containers, s->maps.containers},
                        [ITERATE_QUEUES] = {s->progs.drain_queues, s->maps.queues},
        };

        for (int i = 0; i < ITERATE_COUNT; i++) {
                union bpf_iter_link_info info = {.map.map_fd = (uint32_t) bpf_map__fd(pairs[i].map)};
                LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

                backend->iterators[i] = bpf_program__attach_iter(pairs[i].program, &opts);
                if (!backend->iterators[i])
                        return why_set(why, -errno, "the kernel refuses an iterator over a map (%s)",
                                       strerror(errno));
        }
        return 0;
}

static void set_constants(struct bpf_backend *backend, const struct bpf_plan *plan, uint64_t target_id) {
        struct throttlescope_bpf *s = backend->skeleton;
        struct bpf_program *program;

        backend->clock_source = plan->clock;
        s->rodata->clock_source = plan->clock;
        s->rodata->scope = backend->options.target.scope == TARGET_NODE  ? MEASURE_NODE
                           : backend->options.target.scope == TARGET_POD ? MEASURE_SIBLINGS
                                                                         : MEASURE_TARGET;
        s->rodata->target_id = target_id;
        if (backend->options.warn_stall_ns)
                s->rodata->warn_stall_ns = backend->options.warn_stall_ns;
        s->rodata->lose_switches = backend->options.lose_switches;
        set_map_sizes(&backend->options, s);
        bpf_object__for_each_program(program, s->obj)
                        bpf_program__set_autoload(program, plan_has(plan, bpf_program__name(program)));
}

static const char *remedy_of(int error) {
        switch (-error) {
        case EPERM:
        case EACCES:
                return "; needs CAP_BPF and CAP_PERFMON (before 5.8 CAP_SYS_ADMIN), and a kernel that is "
                       "not locked down";
        case ENOMEM:
                return "; the memory or memlock limit may be too small";
        default:
                return "";
        }
}

static int try_plan(struct bpf_backend *backend, const struct bpf_plan *plan, uint64_t target_id,
                    struct why *why) {
        cleanup_free char *log = calloc(1, VERIFIER_LOG_BYTES);
        LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = log, .kernel_log_size = VERIFIER_LOG_BYTES,
                    .kernel_log_level = 0);
        int r;

        if (!log)
                return -ENOMEM;
        backend->skeleton = throttlescope_bpf__open_opts(&opts);
        if (!backend->skeleton)
                return why_set(why, -errno, "cannot open the BPF programs: %s", strerror(errno));
        set_constants(backend, plan, target_id);
        r = throttlescope_bpf__load(backend->skeleton);
        if (r < 0) {
                const char *word = last_line(log);
                return why_set(why, r, "the kernel refuses %s: %s%s%s%s%s", plan->name, word,
                               *word ? " (" : "", strerror(-r), *word ? ")" : "", remedy_of(r));
        }
        r = run_over_tasks(backend->skeleton->progs.whoami, why);
        for (int i = 0; i < 2 && r == 0; i++) /* the offset of the clocks is the smallest of some */
                r = run_over_tasks(backend->skeleton->progs.whoami, why);
        if (r == 0)
                r = open_iterators(backend, why);
        if (r == 0)
                r = attach_all(backend, plan, why);
        if (r == 0)
                r = run_over_tasks(backend->skeleton->progs.seed, why);
        if (r < 0)
                return r;
        backend->ring = ring_buffer__new(bpf_map__fd(backend->skeleton->maps.stalls), bpf_ring_event,
                                         backend, NULL);
        if (!backend->ring)
                return why_set(why, -errno, "cannot map the ring of stalls: %s", strerror(errno));
        malloc_trim(0); /* libbpf is done with the kernel's types: 11 MiB go back */
        return 0;
}

void bpf_unload(struct bpf_backend *backend) {
        ring_buffer__free(backend->ring);
        backend->ring = NULL;
        for (int i = 0; i < ITERATE_COUNT; i++) {
                bpf_link__destroy(backend->iterators[i]);
                backend->iterators[i] = NULL;
        }
        throttlescope_bpf__destroy(backend->skeleton);
        backend->skeleton = NULL;
}

/*
 * Does the kernel take fentry programs at all? An empty one is asked first: the whole set takes a tenth of a second to be verified, and a
 * machine that refuses fentry says so of any program. 0, or what it said.
 */
static int try_fentry(void) {
        const struct bpf_insn nothing[] = {
                        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
                        {.code = BPF_JMP | BPF_EXIT},
        };
        LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
        int id = libbpf_find_vmlinux_btf_id("tg_throttle_down", BPF_TRACE_FENTRY);

        if (id < 0)
                return id;
        opts.attach_btf_id = (uint32_t) id;
        cleanup_fd int program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "fentry", "GPL", nothing,
                                               ELEMENTS(nothing), &opts);
        if (program < 0)
                return -errno;
        cleanup_fd int link = bpf_link_create(program, 0, BPF_TRACE_FENTRY, NULL);
        return link < 0 ? -errno : 0;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments) {
        (void) level;
        (void) format;
        (void) arguments;
        return 0;
}

int bpf_load(struct bpf_backend *backend, enum probe_method method, uint64_t target_id, struct why *why) {
        struct kernel_facts facts;
        const struct bpf_plan *first, *second = NULL;
        int r;

        libbpf_set_print(quiet);
        /* Else glibc raises this with each large block that libbpf frees, keeps all later ones on the heap, and never gives the holes back. */
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
        r = kernel_facts_read(backend->live_root, &facts, why);
        if (r < 0)
                return r;
        if (!facts.bandwidth)
                return why_set(why, -EOPNOTSUPP, "this kernel has no CPU quotas (CONFIG_CFS_BANDWIDTH)");
        if (method == PROBE_HOOKS) {
                first = &plans[backend->options.force_kprobes ? PLAN_KPROBE : PLAN_FENTRY];
                if (!facts.clocks && !backend->options.force_kprobes)
                        second = &plans[PLAN_KPROBE];
        } else {
                first = facts.clocks ? &plans[PLAN_SELF] : &plans[PLAN_PELT];
                if (!facts.clocks && !facts.pelt_clocks)
                        return why_set(why, -EOPNOTSUPP, "this kernel has no throttled clock to read");
        }
        r = first == &plans[PLAN_FENTRY] ? try_fentry() : 0;
        if (r < 0)
                why_set(why, r, "the kernel refuses %s: %s%s", first->name, strerror(-r), remedy_of(r));
        else
                r = try_plan(backend, first, target_id, why);
        if (r < 0 && second) {
                bpf_unload(backend);
                r = try_plan(backend, second, target_id, why);
        }
        if (r < 0)
                bpf_unload(backend);
        return r;
}
