/* SPDX-License-Identifier: Apache-2.0 */
/* struct drained + the root's files → snapshot. The same for a live and a replayed tick; nothing is judged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assemble.h"
#include "bpf_internal.h"
#include "target_group.h"

/* The kernel's list of what was lost is the beginning of the snapshot's. */
_Static_assert((int) LOST_AT_THREADS_FULL == LOST_THREADS_FULL &&
                               (int) LOST_AT_STALLS_FULL == LOST_STALLS_FULL &&
                               (int) LOST_AT_SWITCHES == LOST_SWITCHES &&
                               (int) LOST_AT_LEDGER == LOST_LEDGER,
               "bpf/shared.h and snapshot.h differ");
_Static_assert((56 + sizeof(struct container_rec)) % 64 == 0, "a container's record is whole cache lines");
_Static_assert(STALL_BINS == SNAPSHOT_STALL_BINS && BURST_BINS == SNAPSHOT_BURST_BINS &&
                               LEVEL_BINS == SNAPSHOT_LEVEL_BINS && NAME_BYTES == PROC_NAME_MAX,
               "bpf/shared.h and snapshot.h differ");

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t since(uint64_t now, uint64_t then) {
        return now > then ? now - then : 0;
}

static uint64_t known_or_absent(uint64_t value) {
        return value == UINT64_MAX ? ABSENT : value;
}

static void copy_name(char out[static PROC_NAME_MAX], const char *name) {
        memcpy(out, name, PROC_NAME_MAX);
        out[PROC_NAME_MAX - 1] = '\0';
}

/* The interval that is open at the tick counts up to the tick. */
static void add_open_interval(struct thread_sample *out, const struct drain_thread *in) {
        const struct thread_rec *r = &in->rec;
        uint64_t open = since(in->now_ns, r->since_ns), stall;

        switch (r->state) {
        case THREAD_RUN:
                out->run_ns += open;
                if (in->exec_now > r->exec_mark)
                        out->exec_ns += in->exec_now - r->exec_mark;
                break;
        case THREAD_WAIT:
                stall = in->clock_now && !r->realtime ? min_u64(since(in->clock_now, r->clock_open), open)
                                                      : 0;
                out->stall_ns += stall;
                out->wait_ns += open - stall;
                if (stall >= UINT64_C(1) << STALL_SHIFT) {
                        out->stalls++; /* when it ends it is counted in the kernel instead: the sum stays */
                        out->stall_longest_ns =
                                        stall > out->stall_longest_ns ? stall : out->stall_longest_ns;
                }
                break;
        case THREAD_SLEEP:
                out->sleep_ns += open;
                out->sleep_in_stall_ns += min_u64(since(in->stall_clock, r->sleep_mark), open);
                break;
        default:
                break;
        }
}

static void thread_from_record(struct thread_sample *out, const struct drained *drained,
                               const struct drain_thread *in) {
        const struct thread_rec *r = &in->rec;

        out->global_tid = r->tid;
        out->host_pid = r->host_tgid;
        out->host_tid = r->host_tid;
        out->pid = r->ns_tgid;
        out->tid = r->ns_tid;
        copy_name(out->name, r->name);
        copy_name(out->process, r->process);
        out->start_ns = r->start_ns;
        out->container = r->container;
        out->ended = r->state == THREAD_ENDED;
        out->realtime = r->realtime != 0;
        out->first_ns = drained_mono(drained, r->first_ns);
        out->at_ns = drained_mono(drained, out->ended ? r->since_ns : in->now_ns);
        out->run_ns = r->run_ns;
        out->wait_ns = r->wait_ns;
        out->stall_ns = r->stall_ns;
        out->stall_above_ns = r->above_ns;
        out->sleep_ns = r->sleep_ns;
        out->sleep_in_stall_ns = r->sleep_in_stall_ns;
        out->exec_ns = r->exec_ns;
        out->quota_spent_ns = r->quota_spent_ns + in->quota_pending_ns;
        out->stalls = r->stalls;
        out->switches = r->switches;
        out->stall_longest_ns = r->window == drained->window ? r->longest_ns : 0;
        memcpy(out->stall_bins, r->bins, sizeof(out->stall_bins));
        add_open_interval(out, in);
}

static void thread_from_fold(struct thread_sample *out, const struct drained *drained,
                             const struct drain_fold *in) {
        const struct fold_rec *f = &in->rec;

        out->global_tid = in->key.tgid;
        out->host_pid = f->host_tgid;
        out->pid = f->ns_tgid;
        copy_name(out->process, f->process);
        copy_name(out->name, f->process);
        out->start_ns = f->start_ns;
        out->container = in->key.container;
        out->ended = true;
        out->folded = (uint32_t) min_u64(f->threads, UINT32_MAX);
        out->first_ns = drained_mono(drained, f->first_ns);
        out->at_ns = out->first_ns + f->wall_ns;
        out->run_ns = f->run_ns;
        out->wait_ns = f->wait_ns;
        out->stall_ns = f->stall_ns;
        out->stall_above_ns = f->above_ns;
        out->sleep_ns = f->sleep_ns;
        out->sleep_in_stall_ns = f->sleep_in_stall_ns;
        out->exec_ns = f->exec_ns;
        out->quota_spent_ns = f->quota_spent_ns + in->quota_pending_ns;
        out->stalls = f->stalls;
        out->switches = f->switches;
        out->stall_longest_ns = f->window == drained->window ? f->longest_ns : 0;
        memcpy(out->stall_bins, f->bins, sizeof(out->stall_bins));
}

static void container_from_record(struct container_sample *out, const struct drained *drained,
                                  const struct drain_container *in) {
        const struct container_rec *c = &in->rec;
        uint64_t level = c->runnable > 0 ? (uint64_t) c->runnable : 0;

        out->measured = true;
        out->runnable_now = level;
        memcpy(out->level_ns, c->level_ns, sizeof(out->level_ns));
        if (level < 32) /* the level that holds now counts up to now; higher ones are left to their end */
                out->level_ns[level] += since(in->now_ns, c->level_since_ns);
        out->bursts = c->bursts;
        out->bursts_stalled = c->bursts_stalled;
        memcpy(out->burst_cpu_bins, c->burst_cpu_bins, sizeof(out->burst_cpu_bins));
        memcpy(out->burst_gap_bins, c->burst_gap_bins, sizeof(out->burst_gap_bins));
        out->exec_ns = c->exec_ns;
        bool of_window = c->window == drained->window;
        out->runnable_max = of_window ? c->runnable_max : level;
        out->burst_cpu_max_ns = of_window ? c->burst_cpu_max_ns : 0;
        out->burst_longest_ns = of_window ? c->burst_longest_ns : 0;
        out->worst_burst_ns = of_window ? c->worst_ns : 0;
        out->worst_burst_stall_ns = of_window ? c->worst_stall_ns : 0;
        out->worst_burst_at_ns =
                        of_window && c->worst_start_ns ? drained_mono(drained, c->worst_start_ns) : 0;
}

static void level_from_record(struct group_level *out, const struct drain_level *in) {
        out->id = in->id;
        memcpy(out->name, in->name,
               sizeof(out->name) < sizeof(in->name) ? sizeof(out->name) : sizeof(in->name));
        out->name[sizeof(out->name) - 1] = '\0';
        out->quota_ns = known_or_absent(in->quota_ns);
        out->period_ns = in->period_ns;
        out->burst_ns = known_or_absent(in->burst_ns);
        out->nr_periods = in->nr_periods;
        out->nr_throttled = in->nr_throttled;
        out->throttled_ns = in->throttled_ns;
        out->nr_bursts = known_or_absent(in->nr_bursts);
        out->burst_time_ns = known_or_absent(in->burst_time_ns);
        out->periods_seen = known_or_absent(in->periods_seen);
        out->throttled_seen = known_or_absent(in->throttled_seen);
}

/* Where a container is in the snapshot, by its id. Nothing is sorted there before all is known, so this is a list beside it. */
struct place {
        uint64_t id;
        size_t at;
};

struct places {
        struct place *items;
        size_t count;
};

static int compare_place(const void *a, const void *b) {
        const struct place *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

/* Of all containers that the snapshot has by now. */
static int places_make(struct places *places, const struct snapshot *snapshot) {
        free(places->items);
        places->count = 0;
        places->items = calloc(snapshot->containers_count + 1, sizeof(*places->items));
        if (!places->items)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->containers_count; i++)
                places->items[places->count++] = (struct place){snapshot->containers[i].id, i};
        qsort(places->items, places->count, sizeof(*places->items), compare_place);
        return 0;
}

static struct container_sample *find_container(const struct places *places, struct snapshot *snapshot,
                                               uint64_t id) {
        struct place key = {.id = id};
        const struct place *found = bsearch(&key, places->items, places->count, sizeof(key), compare_place);

        return found ? &snapshot->containers[found->at] : NULL;
}

/* One that was added since @places was made: a table that is written to while it is read may show an entry twice. */
static struct container_sample *find_added(const struct places *places, struct snapshot *snapshot,
                                           uint64_t id) {
        for (size_t i = places->count; i < snapshot->containers_count; i++)
                if (snapshot->containers[i].id == id)
                        return &snapshot->containers[i];
        return NULL;
}

/* Fills in what the kernel knows of the containers, and adds those that only it has seen. */
static int add_measured(const struct drained *drained, struct places *places, struct snapshot *snapshot) {
        int r = places_make(places, snapshot);

        if (r < 0)
                return r;
        DRAINED_EACH(drained, head) {
                const struct drain_container *in = (const void *) head;
                struct container_sample *out;

                if (head->kind != DRAIN_CONTAINER)
                        continue;
                out = find_container(places, snapshot, in->id);
                if (!out)
                        out = find_added(places, snapshot, in->id);
                /* Its record is kept a while; but no file shows it, and nobody ran in it: it is gone. */
                if (!out && in->rec.runnable <= 0 &&
                    drained_mono(drained, in->rec.level_since_ns) < drained->from_ns)
                        continue;
                if (!out) {
                        out = &snapshot->containers[snapshot->containers_count++];
                        container_sample_init(out);
                        out->id = in->id;
                }
                container_from_record(out, drained, in);
        }
        return snapshot->containers_count > places->count ? places_make(places, snapshot) : 0;
}

/* Containers: those that files show, then those that only the kernel has seen. */
static int assemble_containers(const struct probe_options *options, const struct drained *drained,
                               struct root *root, struct snapshot *snapshot, struct places *places,
                               struct why *why) {
        struct target_container *targets = NULL;
        size_t count = 0, seen = 0;
        bool cut = false;
        int r = target_list_groups(root, &options->target, snapshot->arena, &targets, &count, &cut, why);

        if (r < 0 && r != -ENODATA && r != -EACCES && r != -ENOENT)
                return r;
        if (r < 0)
                count = 0; /* the group is gone or not visible from here: the kernel's word is enough */
        DRAINED_EACH(drained, head)
        seen += head->kind == DRAIN_CONTAINER;
        snapshot->containers = arena_array(snapshot->arena, count + seen + 1, sizeof(*snapshot->containers));
        if (!snapshot->containers)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                struct container_sample *out = &snapshot->containers[snapshot->containers_count++];

                container_sample_init(out);
                container_sample_from_target(out, &targets[i]);
        }
        if (cut)
                snapshot->lost[LOST_CONTAINERS_FULL]++;
        int error = add_measured(drained, places, snapshot);
        if (error < 0)
                return error;
        return snapshot->containers_count > 0 || r == 0 ? 0 : r;
}

static int assemble_levels(const struct drained *drained, const struct places *places,
                           struct snapshot *snapshot) {
        DRAINED_EACH(drained, head) {
                const struct drain_level *in = (const void *) head;
                struct container_sample *out;

                if (head->kind != DRAIN_LEVEL || in->index >= GROUP_DEPTH_MAX)
                        continue;
                out = find_container(places, snapshot, in->container);
                if (!out)
                        continue;
                if (!out->groups) {
                        out->groups = arena_array(snapshot->arena, GROUP_DEPTH_MAX, sizeof(*out->groups));
                        if (!out->groups)
                                return -ENOMEM;
                }
                level_from_record(&out->groups[in->index], in);
                if (in->index >= out->groups_count)
                        out->groups_count = in->index + 1;
                if (in->index == 0 && !out->cgroup) {
                        out->cgroup = arena_string(snapshot->arena, out->groups[0].name);
                        if (!out->cgroup)
                                return -ENOMEM;
                }
        }
        return 0;
}

static int compare_floor(const void *a, const void *b) {
        const struct thread_floor *x = a, *y = b;

        if (x->tid != y->tid)
                return x->tid < y->tid ? -1 : 1;
        return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void raise_to(uint64_t *value, uint64_t floor) {
        if (*value < floor)
                *value = floor;
}

/*
 * An open interval is measured with another CPU's clock as it was some milliseconds ago: the next tick may know it some microseconds
 * better. A counter does not shrink for that.
 */
static void hold_floors(struct bpf_backend *backend, struct snapshot *snapshot) {
        cleanup_free struct thread_floor *next = calloc(snapshot->threads_count + 1, sizeof(*next));
        size_t count = 0;

        for (size_t i = 0; i < snapshot->threads_count; i++) {
                struct thread_sample *t = &snapshot->threads[i];
                struct thread_floor key = {.tid = t->global_tid, .start_ns = t->start_ns}, *floor = NULL;

                if (t->folded)
                        continue;
                if (backend->floors)
                        floor = bsearch(&key, backend->floors, backend->floors_count, sizeof(key),
                                        compare_floor);
                if (floor) {
                        raise_to(&t->run_ns, floor->run_ns);
                        raise_to(&t->wait_ns, floor->wait_ns);
                        raise_to(&t->stall_ns, floor->stall_ns);
                        raise_to(&t->sleep_ns, floor->sleep_ns);
                        raise_to(&t->exec_ns, floor->exec_ns);
                        raise_to(&t->quota_spent_ns, floor->quota_spent_ns);
                }
                if (next && !t->ended)
                        next[count++] = (struct thread_floor){t->global_tid, t->start_ns,      t->run_ns,
                                                              t->wait_ns,    t->stall_ns,      t->sleep_ns,
                                                              t->exec_ns,    t->quota_spent_ns};
        }
        if (next)
                qsort(next, count, sizeof(*next), compare_floor);
        free(backend->floors);
        backend->floors = take_ptr(next);
        backend->floors_count = backend->floors ? count : 0;
}

static int assemble_threads(const struct drained *drained, struct snapshot *snapshot) {
        size_t count = 0;

        DRAINED_EACH(drained, head)
        count += head->kind == DRAIN_THREAD || head->kind == DRAIN_FOLD;
        snapshot->threads = arena_array(snapshot->arena, count + 1, sizeof(*snapshot->threads));
        if (!snapshot->threads)
                return -ENOMEM;
        DRAINED_EACH(drained, head) {
                struct thread_sample *out = &snapshot->threads[snapshot->threads_count];

                if (head->kind != DRAIN_THREAD && head->kind != DRAIN_FOLD)
                        continue;
                thread_sample_init(out);
                if (head->kind == DRAIN_THREAD) {
                        const struct drain_thread *in = (const void *) head;

                        if (!in->alive && in->rec.state != THREAD_ENDED) {
                                snapshot->lost[LOST_SWITCHES]++; /* its last switch was not shown: figures up to the one before */
                        }
                        thread_from_record(out, drained, in);
                } else {
                        thread_from_fold(out, drained, (const void *) head);
                }
                snapshot->threads_count++;
        }
        return 0;
}

/* A process of each container: one of its threads tells, and only where none is known the group's own list, which is a file more. */
static int name_processes(struct root *root, struct snapshot *snapshot) {
        for (size_t i = 0; i < snapshot->containers_count; i++) {
                struct container_sample *container = &snapshot->containers[i];
                const struct thread_sample *threads = snapshot->threads + container->first_thread;
                uint32_t first = container->first_pid;
                pid_t *pids;
                size_t count = 0;

                if (first > 0)
                        continue;
                for (size_t t = 0; t < container->threads_count; t++)
                        if (!threads[t].ended && threads[t].host_pid > 0 &&
                            (first == 0 || threads[t].host_pid < first))
                                first = threads[t].host_pid;
                if (first == 0 && container->chain.levels_count > 0) {
                        int r = cgroup_pids(root, &container->chain, true, 1, snapshot->arena, &pids,
                                            &count);

                        if (r == -ENOMEM)
                                return r;
                        if (r >= 0 && count > 0)
                                first = (uint32_t) pids[0];
                }
                container->first_pid = first;
        }
        return 0;
}

int bpf_assemble(struct probe_backend *base, const struct drained *drained, struct root *root,
                 struct snapshot *snapshot, struct why *why) {
        struct bpf_backend *backend = bpf_backend_of(base);
        uint64_t from = backend->last_assembled_ns ? backend->last_assembled_ns : drained->from_ns;
        struct places places = {0};
        int r;

        snapshot->exact = drained->clock_source != CLOCK_SOURCE_PELT;
        for (int i = 0; i < LOST_AT_COUNT; i++)
                snapshot->lost[i] += drained->lost[i];
        r = proc_machine(root, &snapshot->machine);
        if (r < 0)
                return why_set(why, r, "cannot read the machine's figures from /proc: %s", strerror(-r));
        r = assemble_containers(&backend->options, drained, root, snapshot, &places, why);
        if (r == 0)
                r = assemble_levels(drained, &places, snapshot);
        free(places.items);
        if (r == 0)
                r = assemble_threads(drained, snapshot);
        for (size_t i = 0; i < snapshot->containers_count; i++)
                snapshot->containers[i].measured_whole =
                                snapshot->containers[i].measured && backend->last_assembled_ns != 0;
        if (r == 0)
                r = bpf_intervals(drained, from, snapshot);
        if (r < 0)
                return r;
        hold_floors(backend, snapshot);
        if (backend->options.target.scope == TARGET_NODE)
                bpf_name_roots(backend, snapshot);
        backend->last_assembled_ns = drained->now_ns;
        r = snapshot_sort(snapshot);
        return r < 0 ? r : name_processes(root, snapshot);
}
