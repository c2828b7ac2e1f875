/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/probe/probe.h"
#include "probe_fake.h"

#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_1_SYSTEMD ".slice"
#define GROUP_A POD "/cri-containerd-" ID_A ".scope"
#define GROUP_B POD "/cri-containerd-" ID_B ".scope"

static struct instant at(uint64_t ms) {
        return (struct instant){.mono_ns = 1000 * NS_PER_S + ms * NS_PER_MS,
                                .real_ns = 1796040000 * NS_PER_S + ms * NS_PER_MS};
}

static struct probe *open_probe(const struct host *host, struct target_request target, size_t threads_max) {
        struct probe_options options = {
                        .target = target, .method = PROBE_METHOD_COUNT, .threads_max = threads_max};
        struct probe *probe = NULL;
        struct why why = {.text = ""};

        cr_assert(probe_open(host->root, &options, &probe, &why) == 0, "%s", why.text);
        cr_assert(probe_method(probe) == PROBE_FILES);
        return probe;
}

static struct snapshot *tick(struct probe *probe, uint64_t ms) {
        struct snapshot *snapshot = NULL;
        struct why why = {.text = ""};

        cr_assert(probe_read(probe, at(ms), &snapshot, &why) == 0, "%s", why.text);
        cr_assert(snapshot->method == PROBE_FILES && !snapshot->exact);
        return snapshot;
}

static const struct container_sample *by_cgroup(const struct snapshot *snapshot, const char *cgroup) {
        for (size_t i = 0; i < snapshot->containers_count; i++)
                if (strcmp(snapshot->containers[i].cgroup, cgroup) == 0)
                        return &snapshot->containers[i];
        cr_assert(false, "no container %s", cgroup);
        return NULL;
}

/* The row of @tid in @container; @ended rows are others. NULL: none. */
static const struct thread_sample *row(const struct snapshot *snapshot,
                                       const struct container_sample *container, uint32_t tid, bool ended) {
        for (uint32_t i = 0; i < container->threads_count; i++) {
                const struct thread_sample *thread = &snapshot->threads[container->first_thread + i];
                cr_assert(thread->container == container->id);
                if (thread->global_tid == tid && thread->ended == ended)
                        return thread;
        }
        return NULL;
}

static const struct missing_item *missing(const struct snapshot *snapshot, const char *what) {
        for (size_t i = 0; i < snapshot->missing_count; i++)
                if (strstr(snapshot->missing[i].what, what))
                        return &snapshot->missing[i];
        return NULL;
}

/* A node with a Pod of two containers and a limited service. */
static void node(struct host *host) {
        host_begin(host, "/system.slice/throttlescope.service");
        host_group(host, "/system.slice", 0, 0, "");
        host_group(host, "/system.slice/throttlescope.service", 0, 0, "900\n");
        host_group(host, "/system.slice/batch.service", 20000, 9, "5000\n");
        host_group(host, "/kubepods.slice", 0, 0, "");
        host_group(host, "/kubepods.slice/kubepods-burstable.slice", 0, 0, "");
        host_group(host, POD, 75000, 2, "");
        host_group(host, GROUP_A, 25000, 10, "2000\n");
        host_group(host, GROUP_B, 50000, 3, "3000\n3100\n");
        host_process(host, 2000, "app", 1000, 2, 500, GROUP_A);
        host_thread(host, 2000, 2000, "app", 500, 1000000, 50000, 10);
        host_thread(host, 2000, 2001, "worker", 501, 9000000, 70000, 20);
        host_process(host, 3000, "db", 1001, 1, 600, GROUP_B);
        host_thread(host, 3000, 3000, "db", 600, 5, 6, 7);
        host_process(host, 3100, "db child", 1001, 1, 700, GROUP_B);
        host_thread(host, 3100, 3100, "db child", 700, 8, 9, 10);
        host_process(host, 5000, "batch", 0, 1, 800, "/system.slice/batch.service");
        host_thread(host, 5000, 5000, "batch", 800, 1, 2, 3);
}

Test(files, shows_containers_with_their_limits_and_threads) {
        struct host host;
        node(&host);
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_NODE}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 3, "%zu", s->containers_count);
        const struct container_sample *a = by_cgroup(s, GROUP_A), *b = by_cgroup(s, GROUP_B);
        (void) by_cgroup(s, "/system.slice/batch.service");
        cr_expect(a->chain.tightest == 0 && a->chain.levels[0].quota_ns == 25 * NS_PER_MS);
        cr_expect(a->chain.levels[0].stat.nr_throttled == 10);
        cr_expect(a->chain.levels[0].stat.local_throttled_ns == 15 * NS_PER_MS);
        cr_expect(a->chain.levels[1].quota_ns == 75 * NS_PER_MS &&
                  a->chain.levels[1].stat.nr_throttled == 2);
        cr_expect(!a->measured && a->groups_count == 0 && a->stall_ns == ABSENT &&
                  a->runnable_max == ABSENT);
        cr_expect(a->first_pid == 2000 && b->first_pid == 3000);
        cr_expect(a->threads_count == 2 && b->threads_count == 2);
        cr_expect(s->machine.cpus_online == 4);

        /* Nothing was counted before we looked. */
        const struct thread_sample *worker = row(s, a, 2001, false);
        cr_assert(worker);
        cr_expect_str_eq(worker->name, "worker");
        cr_expect_str_eq(worker->process, "app");
        cr_expect(worker->host_pid == 2000 && worker->host_tid == 2001 && worker->pid == 1000 &&
                                  worker->tid == 1001,
                  "%u %u %u %u", worker->host_pid, worker->host_tid, worker->pid, worker->tid);
        cr_expect(worker->run_ns == 0 && worker->runqueue_delay_ns == 0 && worker->switches == 0);
        cr_expect(worker->first_ns == at(0).mono_ns && worker->at_ns == at(0).mono_ns);
        cr_expect(worker->stall_ns == ABSENT && worker->wait_ns == ABSENT && worker->sleep_ns == ABSENT &&
                  worker->quota_spent_ns == ABSENT && worker->stalls == ABSENT && worker->exec_ns == ABSENT);
        cr_expect(worker->start_ns == 501 * NS_PER_S / 100);

        const struct missing_item *item = missing(s, MISSING_THREAD_STALL);
        cr_assert(item);
        cr_expect(strstr(item->why, "folder"), "%s", item->why);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, counts_from_tick_to_tick) {
        struct host host;
        node(&host);
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_NODE}, 0);
        snapshot_free(tick(probe, 0));

        host_thread(&host, 2000, 2001, "worker", 501, 9000000 + 30000000, 70000 + 40000000, 25);
        /* Born in the window; moved in with the figures of a long life; a number used again. */
        host_thread(&host, 2000, 2002, "young", 900, 4000000, 1000000, 5);
        host_thread(&host, 2000, 2003, "old", 2, 99 * NS_PER_S, 1000000, 5);
        host_thread(&host, 2000, 2000, "app again", 901, 100, 200, 3);
        /* 3100 ended. */
        host_group(&host, GROUP_B, 50000, 5, "3000\n");
        host_remove(&host, "/proc/3100");
        struct snapshot *s = tick(probe, 1000);
        const struct container_sample *a = by_cgroup(s, GROUP_A), *b = by_cgroup(s, GROUP_B);

        cr_expect(b->chain.levels[0].stat.nr_throttled == 5);
        const struct thread_sample *t = row(s, a, 2001, false);
        cr_assert(t);
        cr_expect(t->run_ns == 30000000 && t->runqueue_delay_ns == 40000000 && t->switches == 5);
        cr_expect(t->first_ns == at(0).mono_ns && t->at_ns == at(1000).mono_ns);
        t = row(s, a, 2002, false);
        cr_assert(t);
        cr_expect(t->run_ns == 4000000 && t->runqueue_delay_ns == 1000000 && t->first_ns == at(0).mono_ns);
        t = row(s, a, 2003, false);
        cr_assert(t);
        cr_expect(t->run_ns == 0 && t->runqueue_delay_ns == 0 && t->first_ns == at(1000).mono_ns);
        t = row(s, a, 2000, false);
        cr_assert(t);
        cr_expect(t->run_ns == 100 && t->start_ns == 901 * NS_PER_S / 100);
        t = row(s, a, 2000, true);
        cr_assert(t, "the thread that had the number before has ended");
        cr_expect(t->start_ns == 500 * NS_PER_S / 100 && t->at_ns == at(0).mono_ns);
        t = row(s, b, 3100, true);
        cr_assert(t);
        cr_expect(t->run_ns == 0 && t->at_ns == at(0).mono_ns);
        cr_expect_str_eq(t->name, "db child");
        cr_expect(!row(s, b, 3100, false));
        snapshot_free(s);

        /* Said once. */
        s = tick(probe, 2000);
        cr_expect(!row(s, by_cgroup(s, GROUP_B), 3100, true) && !row(s, by_cgroup(s, GROUP_A), 2000, true));
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, takes_a_containers_nested_groups_with_it) {
        struct host host;
        node(&host);
        host_group(&host, GROUP_B, 50000, 3, "");
        host_group(&host, GROUP_B "/container", 50000, 3, "3000\n");
        host_group(&host, GROUP_B "/container/deep", 10000, 3, "3100\n");
        host_process(&host, 3000, "db", 1001, 1, 600, GROUP_B "/container");
        struct probe *probe =
                        open_probe(&host, (struct target_request){.scope = TARGET_PID, .pid = 3000}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 1);
        const struct container_sample *b = by_cgroup(s, GROUP_B);
        cr_expect(b->threads_count == 2);
        cr_expect(b->chain.tightest == 0 && b->chain.levels[0].quota_ns == 50 * NS_PER_MS);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, gives_a_process_to_the_innermost_container) {
        struct host host;
        host_begin(&host, "/");
        host_group(&host, "/docker", 0, 0, "");
        host_group(&host, "/docker/" ID_C, 200000, 0, "2000\n");
        host_group(&host, "/docker/" ID_C "/kubepods", 0, 0, "");
        host_group(&host, "/docker/" ID_C "/kubepods/pod" UID_1, 0, 0, "");
        host_group(&host, "/docker/" ID_C "/kubepods/pod" UID_1 "/" ID_A, 20000, 0, "3000\n");
        host_process(&host, 2000, "kubelet", 0, 1, 1, "/docker/" ID_C);
        host_thread(&host, 2000, 2000, "kubelet", 1, 1, 1, 1);
        host_process(&host, 3000, "app", 0, 1, 1, "/docker/" ID_C "/kubepods/pod" UID_1 "/" ID_A);
        host_thread(&host, 3000, 3000, "app", 1, 1, 1, 1);
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_NODE}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 2);
        const struct container_sample *outer = by_cgroup(s, "/docker/" ID_C);
        const struct container_sample *inner = by_cgroup(s, "/docker/" ID_C "/kubepods/pod" UID_1 "/" ID_A);
        cr_expect(outer->threads_count == 1 && row(s, outer, 2000, false));
        cr_expect(inner->threads_count == 1 && row(s, inner, 3000, false));
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

/* A sidecar in a private cgroup namespace: its own group is "/", the application's is beside it. */
static void sidecar(struct host *host, bool shared) {
        host_begin(host, "/");
        host_group(host, "", 10000, 1, "900\n");
        host_write(host, "/sys/fs/cgroup/cgroup.type", "domain\n");
        host_process(host, 900, "throttlescope", 65532, 1, 100, "/");
        host_thread(host, 900, 900, "throttlescope", 100, 1, 1, 1);
        if (!shared)
                return;
        host_process(host, 2000, "app", 1000, 1, 100, "/../cri-containerd-" ID_B ".scope");
        host_thread(host, 2000, 2000, "app", 100, 1000, 2000, 1);
        host_write(host, "/proc/2000/mountinfo",
                   "40 33 0:26 /../cri-containerd-" ID_B ".scope /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
}

Test(files, says_which_uid_a_sidecar_needs) {
        struct host host;
        sidecar(&host, true);
        host_write(&host, "/proc/2000/root/sys/fs/cgroup.errno", "13\n");
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_POD}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 2, "%zu", s->containers_count);
        const struct container_sample *app = by_cgroup(s, "/../cri-containerd-" ID_B ".scope");
        cr_expect(app->chain.levels_count == 0 && app->chain.tightest == -1 && app->chain.limit_unknown);
        cr_expect(app->id == container_id_of_path("/../cri-containerd-" ID_B ".scope"));
        cr_expect(app->threads_count == 1, "threads are readable all the same");
        const struct missing_item *item = missing(s, "limit and counters of container b2b2b2b2b2b2");
        cr_assert(item);
        cr_expect_str_eq(item->why, "app runs as 1000, I run as 65532");
        cr_expect_str_eq(item->remedy, "set runAsUser: 1000");
        cr_expect(!missing(s, MISSING_OTHER_CONTAINERS));
        snapshot_free(s);

        s = tick(probe, 1000);
        cr_expect(by_cgroup(s, "/../cri-containerd-" ID_B ".scope")->threads_count == 1);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, reads_the_applications_group_through_its_root) {
        struct host host;
        sidecar(&host, true);
        host_write(&host, "/proc/2000/root/sys/fs/cgroup/cpu.max", "30000 100000\n");
        host_write(&host, "/proc/2000/root/sys/fs/cgroup/cpu.stat",
                   "usage_usec 1\nnr_periods 5\nnr_throttled 4\nthrottled_usec 3\n");
        host_write(&host, "/proc/2000/root/sys/fs/cgroup/cgroup.procs", "2000\n");
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_POD}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 2);
        const struct container_sample *app = by_cgroup(s, "/../cri-containerd-" ID_B ".scope");
        cr_assert(app->chain.levels_count == 1);
        cr_expect(app->chain.levels[0].quota_ns == 30 * NS_PER_MS &&
                  app->chain.levels[0].stat.nr_throttled == 4);
        cr_expect(app->threads_count == 1);
        cr_expect(!missing(s, "limit and counters"));
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, says_that_a_lone_sidecar_sees_only_itself) {
        struct host host;
        sidecar(&host, false);
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_POD}, 0);
        struct snapshot *s = tick(probe, 0);

        cr_assert(s->containers_count == 1);
        cr_expect(s->containers[0].chain.levels[0].stat.local_throttled_ns == 1500000);
        const struct missing_item *item = missing(s, MISSING_OTHER_CONTAINERS);
        cr_assert(item);
        cr_expect(strstr(item->remedy, "shareProcessNamespace: true") &&
                  strstr(item->remedy, "throttlescope run") && strstr(item->remedy, "kubectl debug") &&
                  strstr(item->remedy, "DaemonSet"));
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, counts_threads_beyond_its_room) {
        struct host host;
        node(&host);
        for (int i = 0; i < 8; i++)
                host_thread(&host, 2000, 2002 + i, "more", 600, 1, 1, 1);
        host_process(&host, 2000, "app", 1000, 10, 500, GROUP_A);
        host_thread(&host, 2000, 2000, "app", 500, 1000000, 50000, 10);
        struct probe *probe =
                        open_probe(&host, (struct target_request){.scope = TARGET_PID, .pid = 2000}, 4);
        struct snapshot *s = tick(probe, 0);

        cr_expect(s->threads_count == 4);
        cr_expect(s->lost[LOST_THREADS_READ] == 6, "%" PRIu64, s->lost[LOST_THREADS_READ]);
        snapshot_free(s);
        /* One of those that were read ends: with a table that is too small nobody can tell. */
        host_remove(&host, "/proc/2000/task/2001");
        s = tick(probe, 1000);
        cr_expect(s->threads_count == 4);
        cr_expect(s->lost[LOST_THREADS_READ] > 6);
        for (size_t i = 0; i < s->threads_count; i++)
                cr_expect(!s->threads[i].ended);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, goes_on_with_the_group_when_its_process_ended) {
        struct host host;
        struct snapshot *s;
        struct why why;

        node(&host);
        struct probe *probe =
                        open_probe(&host, (struct target_request){.scope = TARGET_PID, .pid = 3000}, 0);
        cr_expect(probe_target_alive(probe));
        snapshot_free(tick(probe, 0));

        host_remove(&host, "/proc/3000");
        host_group(&host, GROUP_B, 50000, 3, "3100\n");
        cr_expect(!probe_target_alive(probe));
        s = tick(probe, 1000);
        cr_expect(s->containers_count == 1 && row(s, by_cgroup(s, GROUP_B), 3000, true));
        cr_expect(row(s, by_cgroup(s, GROUP_B), 3100, false));
        snapshot_free(s);

        /* Its number is given to a process of another container. */
        host_process(&host, 3000, "stranger", 1000, 1, 7777, GROUP_A);
        host_thread(&host, 3000, 3000, "stranger", 7777, 1, 1, 1);
        cr_expect(!probe_target_alive(probe));
        s = tick(probe, 2000);
        cr_expect(s->containers_count == 1 && by_cgroup(s, GROUP_B));
        snapshot_free(s);

        host_remove(&host, "/sys/fs/cgroup" GROUP_B);
        cr_expect(probe_read(probe, at(3000), &s, &why) == -ENOENT, "%s", why.text);
        probe_free(probe);
        host_end(&host);
}

Test(files, without_schedstat_figures_are_absent) {
        struct host host;
        node(&host);
        host_remove(&host, "/proc/2000/task/2000/schedstat");
        host_remove(&host, "/proc/2000/task/2001/schedstat");
        struct probe *probe =
                        open_probe(&host, (struct target_request){.scope = TARGET_PID, .pid = 2000}, 0);
        snapshot_free(tick(probe, 0));
        struct snapshot *s = tick(probe, 1000);

        cr_assert(s->threads_count == 2);
        cr_expect(s->threads[0].run_ns == ABSENT && s->threads[0].runqueue_delay_ns == ABSENT &&
                  s->threads[0].switches == ABSENT);
        cr_expect(missing(s, "run-queue delay"));
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, a_thread_that_is_renamed) {
        struct host host;
        unsigned ticks = 0;

        node(&host);
        struct probe *probe =
                        open_probe(&host, (struct target_request){.scope = TARGET_PID, .pid = 2000}, 0);
        snapshot_free(tick(probe, 0));
        /* Pools name their threads a moment after they start. */
        host_thread(&host, 2000, 2001, "pool-1-thread-1", 501, 9000000, 70000, 21);
        struct snapshot *s = tick(probe, ++ticks * 1000);
        cr_expect_str_eq(row(s, &s->containers[0], 2001, false)->name, "pool-1-thread-1");
        snapshot_free(s);
        for (; ticks < 20; ticks++)
                snapshot_free(tick(probe, (ticks + 1) * 1000));

        host_thread(&host, 2000, 2001, "later", 501, 9000000, 70000, 22);
        for (unsigned last = ticks + 8;;) {
                s = tick(probe, ++ticks * 1000);
                bool seen = strcmp(row(s, &s->containers[0], 2001, false)->name, "later") == 0;
                cr_expect(row(s, &s->containers[0], 2001, false)->tid == 1001);
                snapshot_free(s);
                if (seen)
                        break;
                cr_assert(ticks < last, "not seen in eight ticks");
        }
        probe_free(probe);
        host_end(&host);
}

Test(files, a_process_number_that_is_used_again) {
        struct host host;
        unsigned ticks = 0;

        node(&host);
        struct probe *probe = open_probe(
                        &host, (struct target_request){.scope = TARGET_CGROUP, .cgroup = GROUP_B}, 0);
        for (; ticks < 20; ticks++)
                snapshot_free(tick(probe, ticks * 1000));

        host_process(&host, 3000, "other", 1001, 1, 9000, GROUP_B);
        host_thread(&host, 3000, 3000, "other", 9000, 1, 2, 3);
        struct snapshot *s = tick(probe, ticks * 1000);
        const struct thread_sample *old = row(s, &s->containers[0], 3000, true);
        const struct thread_sample *new = row(s, &s->containers[0], 3000, false);
        cr_assert(old && new);
        cr_expect_str_eq(old->process, "db");
        cr_expect_str_eq(new->process, "other");
        cr_expect(new->run_ns == 1 && new->first_ns == at(19000).mono_ns);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, a_container_that_comes_and_goes) {
        struct host host;
        node(&host);
        struct probe *probe = open_probe(&host, (struct target_request){.scope = TARGET_NODE}, 0);
        snapshot_free(tick(probe, 0));

        host_group(&host, POD "/cri-containerd-" ID_C ".scope", 10000, 0, "4000\n");
        host_remove(&host, "/sys/fs/cgroup" GROUP_A);
        host_remove(&host, "/proc/2000");
        host_process(&host, 4000, "new", 0, 1, 900, POD "/cri-containerd-" ID_C ".scope");
        host_thread(&host, 4000, 4000, "new", 900, 100, 0, 1);
        struct snapshot *s = tick(probe, 1000);
        cr_expect(s->containers_count == 3);
        const struct container_sample *c = by_cgroup(s, POD "/cri-containerd-" ID_C ".scope");
        const struct thread_sample *t = row(s, c, 4000, false);
        cr_assert(t && c->threads_count == 1);
        cr_expect(t->run_ns == 100, "%" PRIu64, t->run_ns);
        snapshot_free(s);
        probe_free(probe);
        host_end(&host);
}

Test(files, refuses_what_is_not_there) {
        struct probe_options options = {.target = {.scope = TARGET_PID, .pid = 12345},
                                        .method = PROBE_METHOD_COUNT};
        struct probe *probe = NULL;
        struct host host;
        struct why why;

        node(&host);
        cr_expect(probe_open(host.root, &options, &probe, &why) == -ENOENT);
        cr_expect(strstr(why.text, "12345"), "%s", why.text);
        options.target = (struct target_request){.scope = TARGET_CGROUP, .cgroup = "/nowhere"};
        cr_expect(probe_open(host.root, &options, &probe, &why) == -ENOENT);
        cr_expect(strstr(why.text, "/nowhere"), "%s", why.text);
        options = (struct probe_options){.target = {.scope = TARGET_NODE}, .method = PROBE_HOOKS};
        cr_expect(probe_open(host.root, &options, &probe, &why) == -EOPNOTSUPP);
        cr_expect(strstr(why.text, "hooks") && strstr(why.text, "folder"), "%s", why.text);
        cr_expect(!probe);
        host_end(&host);
}
