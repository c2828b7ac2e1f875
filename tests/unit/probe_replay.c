/* SPDX-License-Identifier: Apache-2.0 */
/* What --capture writes, --root reads: the same snapshots. And whatever else a folder holds does no harm. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../agent/base/text.h"
#include "../../agent/probe/capture.h"
#include "probe_fake.h"

#define POD "/kubepods/pod" UID_1

static struct instant at(uint64_t ms) {
        return (struct instant){.mono_ns = 1000 * NS_PER_S + ms * NS_PER_MS,
                                .real_ns = 1796040000 * NS_PER_S + ms * NS_PER_MS};
}

static void describe_level(struct text *out, const struct cgroup_level *l) {
        text_add(out,
                 " level %s %" PRIu64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ":",
                 l->path, l->id, (int) l->limit, l->quota_ns, l->period_ns, l->burst_ns, l->weight,
                 l->children_limit_milli);
        text_add(out,
                 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 l->stat.nr_periods, l->stat.nr_throttled, l->stat.throttled_ns, l->stat.nr_bursts,
                 l->stat.local_throttled_ns, l->stat.usage_ns, l->stat.pressure_some_ns);
}

/* All that the layers above can see of a snapshot made from files. */
static char *describe(const struct snapshot *s) {
        struct text out;

        text_init(&out, 16u << 20);
        text_add(&out, "%" PRIu64 " %" PRIu64 " %d %d %u %" PRIu64 " %s %s\n", s->at.mono_ns, s->at.real_ns,
                 (int) s->method, s->exact, s->machine.cpus_online, s->machine.steal_ns, s->machine.kernel,
                 s->machine.hostname);
        for (size_t i = 0; i < s->containers_count; i++) {
                const struct container_sample *c = &s->containers[i];
                text_add(&out, "container %" PRIu64 " %s %d %d %d %u %u %u %" PRIu64 "\n", c->id,
                         c->cgroup ? c->cgroup : "-", c->chain.tightest, c->chain.parent_hidden,
                         c->chain.limit_unknown, c->first_thread, c->threads_count, c->first_pid,
                         c->stall_ns);
                for (size_t l = 0; l < c->chain.levels_count; l++)
                        describe_level(&out, &c->chain.levels[l]);
        }
        for (size_t i = 0; i < s->threads_count; i++) {
                const struct thread_sample *t = &s->threads[i];
                text_add(&out, "thread %u %u %u %u %u %s %s %" PRIu64 " %" PRIu64 " %d", t->global_tid,
                         t->host_pid, t->host_tid, t->pid, t->tid, t->name, t->process, t->start_ns,
                         t->container, t->ended);
                text_add(&out, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                         t->first_ns, t->at_ns, t->run_ns, t->runqueue_delay_ns, t->switches, t->stall_ns);
        }
        for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                text_add(&out, "lost %" PRIu64 "\n", s->lost[i]);
        for (size_t i = 0; i < s->missing_count; i++)
                text_add(&out, "missing %s; %s; %s\n", s->missing[i].what, s->missing[i].why,
                         s->missing[i].remedy);
        cr_assert(!out.cut);
        return out.data;
}

static void host_of_two(struct host *host, unsigned step) {
        host_write(host, "/proc/stat", "cpu 100 0 100 1000 0 0 0 %u 0 0\nbtime 1796000000\n", 7 + step);
        host_group(host, "/kubepods", 0, 0, "");
        host_group(host, POD, 75000, 2 + step, "");
        host_group(host, POD "/" ID_A, 25000, 10 + step, "2000\n");
        host_group(host, POD "/" ID_B, 50000, 3 + step, step < 2 ? "3000\n" : "");
        host_process(host, 2000, "app\x1b[31m", 1000, 2, 500, POD "/" ID_A);
        host_thread(host, 2000, 2000, "app\x1b[31m", 500, 1000000 * (step + 1), 50000 * (step + 1), 10);
        host_thread(host, 2000, 2001 + (int) step, "worker", 501 + step, 9000000, 70000, 20);
        if (step > 0)
                host_remove(host, step == 1 ? "/proc/2000/task/2001" : "/proc/2000/task/2002");
        if (step < 2) {
                host_process(host, 3000, "db", 1001, 1, 600, POD "/" ID_B);
                host_thread(host, 3000, 3000, "db", 600, 5, 6, 7);
        } else
                host_remove(host, "/proc/3000");
}

struct folder {
        char directory[64];
        char capture[96];
};

static void folder_make(struct folder *folder) {
        snprintf(folder->directory, sizeof(folder->directory), "/tmp/probe-capture-XXXXXX");
        cr_assert(mkdtemp(folder->directory));
        snprintf(folder->capture, sizeof(folder->capture), "%s/capture", folder->directory);
}

static void folder_remove(const struct folder *folder) {
        (void) nftw(folder->directory, host_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static void folder_write(const struct folder *folder, const char *name, const void *data, size_t length) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder->capture, name);
        FILE *file = fopen(path, "we");
        cr_assert(file, "%s", path);
        cr_assert(fwrite(data, 1, length, file) == length);
        fclose(file);
}

/* Captures @ticks of @host; what each snapshot said. */
static void capture_host(struct host *host, const struct folder *folder, struct target_request target,
                         char **texts, unsigned ticks) {
        struct probe_options options = {.target = target,
                                        .method = PROBE_METHOD_COUNT,
                                        .warn_stall_ns = 50 * NS_PER_MS,
                                        .capture = folder->capture};
        struct probe *probe = NULL;
        struct why why = {.text = ""};

        host_of_two(host, 0);
        cr_assert(probe_open(host->root, &options, &probe, &why) == 0, "%s", why.text);
        for (unsigned i = 0; i < ticks; i++) {
                struct snapshot *snapshot;
                host_of_two(host, i);
                cr_assert(probe_read(probe, at(i * 1000), &snapshot, &why) == 0, "%s", why.text);
                texts[i] = describe(snapshot);
                snapshot_free(snapshot);
        }
        probe_free(probe);
}

static int open_replay(const struct folder *folder, struct root **ret_root, struct probe **ret_probe,
                       struct why *why) {
        /* Options that the folder overrides. */
        struct probe_options options = {.target = {.scope = TARGET_SELF}, .method = PROBE_METHOD_COUNT};

        why->text[0] = 0;
        cr_assert(root_open(folder->capture, ret_root, why) == 0);
        return probe_open(*ret_root, &options, ret_probe, why);
}

Test(replay, gives_the_same_snapshots) {
        static const struct target_request targets[] = {
                        {.scope = TARGET_NODE},
                        {.scope = TARGET_PID, .pid = 3000}, /* ends before its group */
                        {.scope = TARGET_CGROUP, .cgroup = POD "/" ID_A},
        };

        for (size_t t = 0; t < ELEMENTS(targets); t++) {
                struct folder folder;
                struct host host;
                struct root *root;
                struct probe *probe = NULL;
                struct snapshot *snapshot;
                struct why why;
                char *texts[3];

                folder_make(&folder);
                host_begin(&host, "/");
                capture_host(&host, &folder, targets[t], texts, 3);
                host_end(&host); /* nothing is left to read but the folder */

                cr_assert(open_replay(&folder, &root, &probe, &why) == 0, "%s", why.text);
                cr_expect(probe_method(probe) == PROBE_FILES);
                for (unsigned i = 0; i < 3; i++) {
                        cr_expect(probe_target_alive(probe));
                        cr_assert(probe_read(probe, at(99999), &snapshot, &why) == 0, "%s", why.text);
                        cleanup_free char *text = describe(snapshot);
                        cr_expect_str_eq(text, texts[i], "target %zu tick %u:\n%s\n%s", t, i, text,
                                         texts[i]);
                        cr_expect(strlen(text) > 500);
                        cr_expect(probe_root(probe) != root);
                        free(texts[i]);
                        snapshot_free(snapshot);
                }
                cr_expect(!probe_target_alive(probe));
                cr_expect(probe_read(probe, at(0), &snapshot, &why) == -ENODATA);
                probe_free(probe);
                root_free(root);
                folder_remove(&folder);
        }
}

/* A process that never keeps its name, as kworkers do: what is read twice within a tick differs. */
static pid_t renamer_start(void) {
        pid_t pid = fork();

        cr_assert(pid >= 0);
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (char name[] = "name-a";; name[5] = name[5] == 'z' ? 'a' : (char) (name[5] + 1))
                        prctl(PR_SET_NAME, name);
        }
        return pid;
}

static void renamer_end(pid_t pid) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

Test(replay, of_this_machine) {
        pid_t renamer = renamer_start();
        struct folder folder;
        struct root *live, *root;
        struct probe *probe = NULL;
        struct snapshot *snapshot;
        struct why why;
        char *texts[2];

        folder_make(&folder);
        struct probe_options options = {.target = {.scope = TARGET_PID, .pid = getpid()},
                                        .method = PROBE_FILES,
                                        .capture = folder.capture};
        cr_assert(root_open("/", &live, &why) == 0);
        int r = probe_open(live, &options, &probe, &why);
        cr_assert(r == 0, "%s", why.text);
        for (unsigned i = 0; i < 2; i++) {
                r = probe_read(probe, at(i * 1000), &snapshot, &why);
                cr_assert(r == 0, "%s", why.text);
                cr_expect(snapshot->containers_count == 1 && snapshot->threads_count > 0);
                texts[i] = describe(snapshot);
                snapshot_free(snapshot);
        }
        cr_expect(probe_root(probe) == live);
        probe_free(probe);
        root_free(live);

        cr_assert(open_replay(&folder, &root, &probe, &why) == 0, "%s", why.text);
        for (unsigned i = 0; i < 2; i++) {
                cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0, "%s", why.text);
                cleanup_free char *text = describe(snapshot);
                cr_expect_str_eq(text, texts[i], "tick %u:\n%s\n%s", i, text, texts[i]);
                free(texts[i]);
                snapshot_free(snapshot);
        }
        probe_free(probe);
        root_free(root);
        folder_remove(&folder);
        renamer_end(renamer);
}

/* ---- methods ---- */

static struct probe *open_live(struct root **ret_root, enum probe_method method, const char *capture,
                               struct why *why) {
        struct probe_options options = {
                        .target = {.scope = TARGET_SELF}, .method = method, .capture = capture};
        struct probe *probe = NULL;

        cr_assert(root_open("/", ret_root, why) == 0);
        (void) probe_open(*ret_root, &options, &probe, why);
        return probe;
}

Test(probe, takes_the_best_method_and_keeps_the_reasons) {
        struct snapshot *snapshot;
        struct root *root;
        struct why why;

        fake_hooks_error = fake_tracepoints_error = 0;
        struct probe *probe = open_live(&root, PROBE_METHOD_COUNT, NULL, &why);
        cr_assert(probe && probe_method(probe) == PROBE_HOOKS);
        cr_expect(!probe_trials(probe)[PROBE_TRACEPOINTS].tried);
        cr_expect(probe_fd(probe) == 99 && probe_drain(probe) == 3);
        cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0);
        cr_expect(snapshot->missing_count == 0);
        snapshot_free(snapshot);
        probe_free(probe);
        root_free(root);

        fake_hooks_error = -EPERM;
        probe = open_live(&root, PROBE_METHOD_COUNT, NULL, &why);
        cr_assert(probe && probe_method(probe) == PROBE_TRACEPOINTS);
        cr_expect(probe_trials(probe)[PROBE_HOOKS].error == -EPERM);
        cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0);
        cr_assert(snapshot->missing_count == 1, "the fake's tracepoints are not exact");
        cr_expect_str_eq(snapshot->missing[0].what, "exact stalls");
        cr_expect_str_eq(snapshot->missing[0].why, "hooks: the kernel refused fentry");
        snapshot_free(snapshot);
        probe_free(probe);
        root_free(root);

        fake_tracepoints_error = -EPERM;
        probe = open_live(&root, PROBE_METHOD_COUNT, NULL, &why);
        cr_assert(probe && probe_method(probe) == PROBE_FILES);
        cr_expect(probe_fd(probe) == -1 && probe_drain(probe) == 0);
        cr_expect_str_eq(probe_trials(probe)[PROBE_TRACEPOINTS].text, "the kernel refused tp_btf");
        cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0, "%s", why.text);
        const struct missing_item *item = &snapshot->missing[snapshot->missing_count - 1];
        cr_expect_str_eq(item->what, MISSING_THREAD_STALL);
        cr_expect_str_eq(item->why,
                         "hooks: the kernel refused fentry; tracepoints: the kernel refused tp_btf");
        cr_expect(strstr(item->remedy, "BPF and PERFMON"));
        snapshot_free(snapshot);
        probe_free(probe);
        root_free(root);
        cr_expect(fake_open == 0 && fake_drained == 0);
}

Test(probe, a_forced_method_is_that_or_nothing) {
        struct snapshot *snapshot;
        struct root *root;
        struct why why;

        fake_tracepoints_error = 0;
        struct probe *probe = open_live(&root, PROBE_HOOKS, NULL, &why);
        cr_expect(!probe);
        cr_expect_str_eq(why.text, "method hooks: the kernel refused fentry");
        root_free(root);
        probe = open_live(&root, PROBE_FILES, NULL, &why);
        cr_assert(probe && probe_method(probe) == PROBE_FILES);
        cr_expect(!probe_trials(probe)[PROBE_HOOKS].tried);
        cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0, "%s", why.text);
        cr_expect_str_eq(snapshot->missing[snapshot->missing_count - 1].why, "method files was asked for");
        snapshot_free(snapshot);
        probe_free(probe);
        root_free(root);
}

Test(probe, saves_and_loads_what_the_kernel_said) {
        struct folder folder;
        struct root *root;
        struct probe *probe;
        struct snapshot *snapshot;
        struct why why;

        fake_hooks_error = 0;
        folder_make(&folder);
        probe = open_live(&root, PROBE_METHOD_COUNT, folder.capture, &why);
        cr_assert(probe, "%s", why.text);
        for (unsigned i = 0; i < 3; i++) {
                fake_kernel_ns = UINT64_C(1) << (60 + i);
                cr_assert(probe_read(probe, at(i), &snapshot, &why) == 0, "%s", why.text);
                cr_expect(snapshot->missing_count == 0);
                snapshot_free(snapshot);
        }
        probe_free(probe);
        root_free(root);

        fake_kernel_ns = 0;
        fake_hooks_error = -EPERM; /* no kernel is asked */
        cr_assert(open_replay(&folder, &root, &probe, &why) == 0, "%s", why.text);
        cr_expect(probe_method(probe) == PROBE_HOOKS && probe_fd(probe) == -1 && probe_drain(probe) == 0);
        for (unsigned i = 0; i < 2; i++) {
                cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0, "%s", why.text);
                cr_expect(snapshot->containers[0].stall_ns == UINT64_C(1) << (60 + i));
                cr_expect(snapshot->exact && snapshot->at.mono_ns == at(i).mono_ns);
                snapshot_free(snapshot);
        }
        folder_write(&folder, "tick-002/maps.json", "oops", 4);
        cr_expect(probe_read(probe, at(0), &snapshot, &why) == -EINVAL);
        cr_expect_str_eq(why.text, "tick 2: maps.json: not a number");
        probe_free(probe);
        root_free(root);
        folder_remove(&folder);
        cr_expect(fake_open == 0 && fake_drained == 0);
}

/* ---- trouble ---- */

Test(capture, is_not_written_over) {
        struct folder folder;
        struct root *root;
        struct why why;

        fake_hooks_error = 0;
        folder_make(&folder);
        struct probe *probe = open_live(&root, PROBE_METHOD_COUNT, folder.capture, &why);
        cr_assert(probe);
        probe_free(probe);
        root_free(root);
        probe = open_live(&root, PROBE_METHOD_COUNT, folder.capture, &why);
        cr_expect(!probe && strstr(why.text, "there is a capture already"), "%s", why.text);
        root_free(root);

        /* Nothing was read: nothing can be replayed. */
        cr_expect(open_replay(&folder, &root, &probe, &why) == -ENODATA);
        cr_expect(strstr(why.text, "no tick"), "%s", why.text);
        root_free(root);

        char deep[128];
        snprintf(deep, sizeof(deep), "%s/no/such/folder", folder.directory);
        probe = open_live(&root, PROBE_METHOD_COUNT, deep, &why);
        cr_expect(!probe && strstr(why.text, "/no/such/folder"), "%s", why.text);
        root_free(root);
        folder_remove(&folder);
}

Test(capture, that_fails_does_not_stop_the_measurement) {
        struct folder folder;
        struct snapshot *snapshot;
        struct root *root;
        struct why why;

        fake_hooks_error = 0;
        folder_make(&folder);
        struct probe *probe = open_live(&root, PROBE_METHOD_COUNT, folder.capture, &why);
        cr_assert(probe);
        folder_remove(&folder);
        for (unsigned i = 0; i < 2; i++) {
                cr_assert(probe_read(probe, at(i), &snapshot, &why) == 0);
                cr_expect(snapshot->containers_count == 1);
                cr_assert(snapshot->missing_count == 1);
                cr_expect_str_eq(snapshot->missing[0].what, "the capture of this tick");
                cr_expect(strstr(snapshot->missing[0].why, "tick-000"), "%s", snapshot->missing[0].why);
                snapshot_free(snapshot);
        }
        probe_free(probe);
        root_free(root);
        cr_expect(fake_open == 0 && fake_drained == 0);
}

static void expect_refused(const struct folder *folder, int error, const char *sentence) {
        struct root *root;
        struct probe *probe = NULL;
        struct why why;

        int r = open_replay(folder, &root, &probe, &why);
        cr_expect(r == error, "%d: %s", r, why.text);
        cr_expect(strstr(why.text, sentence), "'%s' does not say '%s'", why.text, sentence);
        cr_expect(!probe);
        root_free(root);
}

Test(replay, of_a_hostile_folder_names_file_and_position) {
        struct folder folder;
        struct host host;
        char *texts[2], path[256], manifest[8192];

        folder_make(&folder);
        host_begin(&host, "/");
        capture_host(&host, &folder, (struct target_request){.scope = TARGET_NODE}, texts, 2);
        host_end(&host);
        free(texts[0]);
        free(texts[1]);
        snprintf(path, sizeof(path), "%s/" CAPTURE_MANIFEST, folder.capture);
        FILE *file = fopen(path, "re");
        size_t length = fread(manifest, 1, sizeof(manifest), file);
        fclose(file);
        cr_assert(length > 100 && length < sizeof(manifest));

        folder_write(&folder, CAPTURE_MANIFEST, manifest, length / 2);
        expect_refused(&folder, -EINVAL, CAPTURE_MANIFEST ": line ");
        folder_write(&folder, CAPTURE_MANIFEST, "", 0);
        expect_refused(&folder, -EINVAL, CAPTURE_MANIFEST ": line 1");
        folder_write(&folder, CAPTURE_MANIFEST, "{\"schema\": 9e99}", 16);
        expect_refused(&folder, -EINVAL, CAPTURE_MANIFEST ": field schema");
        cr_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
        expect_refused(&folder, -EISDIR, CAPTURE_MANIFEST);
        cr_assert(rmdir(path) == 0 && symlink("/etc/passwd", path) == 0);
        struct root *root;
        struct probe *probe = NULL;
        struct why why;
        (void) open_replay(&folder, &root, &probe, &why);
        cr_expect(!strstr(why.text, "root:"));
        probe_free(probe);
        root_free(root);
        cr_assert(unlink(path) == 0);

        /* A tick that is not there, and one that is a link out of the folder. */
        folder_write(&folder, CAPTURE_MANIFEST, manifest, length);
        snprintf(path, sizeof(path), "%s/tick-001", folder.capture);
        (void) nftw(path, host_unlink, 16, FTW_DEPTH | FTW_PHYS);
        struct snapshot *snapshot;
        for (unsigned i = 0; i < 2; i++) {
                cr_assert(open_replay(&folder, &root, &probe, &why) == 0, "%s", why.text);
                cr_assert(probe_read(probe, at(0), &snapshot, &why) == 0, "%s", why.text);
                snapshot_free(snapshot);
                int r = probe_read(probe, at(0), &snapshot, &why);
                cr_expect(r < 0 && strstr(why.text, i ? "tick 1: " : "tick 1: /tick-001"), "%d %s", r,
                          why.text);
                probe_free(probe);
                root_free(root);
                if (i == 0)
                        cr_assert(symlink("/", path) == 0);
        }
        folder_remove(&folder);
}

/* Every captured file in turn is replaced by rubbish: a tick may fail, with a sentence, and nothing worse. */
static int spoil_count, spoil_at;
static const char *spoil_with;
static int spoil(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        (void) st, (void) ftw;
        if (flag != FTW_F || spoil_count++ != spoil_at)
                return 0;
        FILE *file = fopen(path, "we");
        cr_assert(file);
        fputs(spoil_with, file);
        fclose(file);
        return 0;
}

Test(replay, survives_rubbish_in_any_file) {
        static const char *const rubbish[] = {
                        "",
                        "99999999999999999999999999 -1 0x10 ((((( ))))) \xff\xfe\n\n\n",
                        "2000\n2000\n0\n-5\n4294967296\n18446744073709551615\n",
                        "0::/../../../../etc\n1:cpu:/a\n0::/\n",
                        "18446744073709551615 18446744073709551615 18446744073709551615\n",
        };
        struct folder folder;
        struct host host;
        char *texts[2];
        int files;

        host_begin(&host, "/");
        for (size_t k = 0; k < ELEMENTS(rubbish); k++) {
                spoil_at = 0;
                do {
                        struct root *root;
                        struct probe *probe = NULL;
                        struct why why;

                        folder_make(&folder);
                        capture_host(&host, &folder, (struct target_request){.scope = TARGET_NODE}, texts,
                                     2);
                        free(texts[0]);
                        free(texts[1]);
                        spoil_count = 0;
                        spoil_with = rubbish[k];
                        (void) nftw(folder.capture, spoil, 16, FTW_PHYS);
                        files = spoil_count;
                        int r = open_replay(&folder, &root, &probe, &why);
                        for (unsigned i = 0; r == 0 && i < 2; i++) {
                                struct snapshot *snapshot = NULL;
                                r = probe_read(probe, at(0), &snapshot, &why);
                                if (r == 0)
                                        free(describe(snapshot));
                                snapshot_free(snapshot);
                        }
                        cr_expect(r == 0 || why.text[0], "no sentence for %d", r);
                        probe_free(probe);
                        root_free(root);
                        folder_remove(&folder);
                } while (++spoil_at < files);
                cr_expect(files > 40, "%d", files);
        }
        host_end(&host);
}
