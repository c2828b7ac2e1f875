/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that doctor judges. Nothing here fails: what cannot be read is the answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/memory.h"
#include "../base/number.h"
#include "doctor.h"
#include "scope.h"

#define ARENA_MAX ((size_t) 32 << 20)
#define SMALL_FILE ((size_t) 4 << 10)
#define MOUNTS_FILE ((size_t) 4 << 20)

/* "none [integrity] confidentiality": the word in brackets is in force. */
static void read_lockdown(struct root *root, struct doctor_facts *facts) {
        cleanup_free char *text = NULL;
        const char *word;
        size_t length;

        if (root_read(root, "/sys/kernel/security/lockdown", SMALL_FILE, &text, NULL) < 0)
                return;
        word = strchr(text, '[');
        length = word ? strcspn(word + 1, "]") : 0;
        if (length > 0 && length < sizeof(facts->lockdown))
                memcpy(facts->lockdown, word + 1, length);
}

static void read_sysctl(struct root *root, struct doctor_facts *facts) {
        cleanup_free char *text = NULL;

        facts->unprivileged_bpf_disabled = ABSENT;
        if (root_read(root, "/proc/sys/kernel/unprivileged_bpf_disabled", SMALL_FILE, &text, NULL) < 0)
                return;
        (void) number_parse_u64_n(text, strcspn(text, "\n"), &facts->unprivileged_bpf_disabled);
}

static bool is_own(struct root *root, const char *path) {
        cleanup_free char *link = NULL;

        return root_read_link(root, path, &link) >= 0 && !scope_is_first_namespace(link);
}

static void read_mounts(struct root *root, struct doctor_facts *facts) {
        cleanup_free char *text = NULL;

        if (root_read(root, "/proc/self/mountinfo", MOUNTS_FILE, &text, NULL) < 0)
                return;
        /* The file system's type follows the only lone dash; blanks inside of names are escaped. */
        facts->has_v2 = strstr(text, " - cgroup2 ") != NULL;
        facts->has_v1 = strstr(text, " - cgroup ") != NULL;
}

static void read_cgroup(struct root *root, const struct target_request *target, struct arena *arena,
                        struct doctor_facts *facts) {
        struct cgroup_chain chain;
        struct why why = {0};
        int r;

        read_mounts(root, facts);
        if (target->scope == TARGET_CGROUP)
                r = cgroup_chain_of_path(root, target->cgroup, arena, &chain, &why);
        else
                r = cgroup_chain_of_pid(root, target->scope == TARGET_PID ? target->pid : 0, arena, &chain,
                                        &why);
        if (r < 0) {
                facts->cgroup_error = r;
                (void) snprintf(facts->cgroup_why, sizeof(facts->cgroup_why), "%s", why.text);
                return;
        }
        facts->version = chain.version;
        (void) snprintf(facts->cpu_mount, sizeof(facts->cpu_mount), "%s", chain.mount ? chain.mount : "");
}

static void read_machine(struct root *root, struct doctor_facts *facts) {
        cleanup_free char *schedstat = NULL;

        if (proc_machine(root, &facts->machine) < 0)
                facts->machine = (struct proc_machine){0};
        facts->kernel_error = kernel_facts_read(root, &facts->kernel, NULL);
        facts->has_rights = proc_rights(root, 0, &facts->rights) >= 0;
        facts->has_schedstat = root_read(root, "/proc/self/schedstat", SMALL_FILE, &schedstat, NULL) >= 0;
        facts->user_namespace = is_own(root, "/proc/self/ns/user");
        facts->pid_namespace = is_own(root, "/proc/self/ns/pid");
        read_lockdown(root, facts);
        read_sysctl(root, facts);
}

/* May @path be opened? Nothing is read: the contents are none of our business here. */
static int try_open(pid_t pid, const char *name, int flags) {
        cleanup_fd int fd = -1;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : 0;
}

static void read_access(struct root *root, pid_t pid, struct arena *arena,
                        struct doctor_access *ret_access) {
        struct proc_process process;

        if (proc_process(root, pid, arena, &process) < 0)
                return;
        *ret_access = (struct doctor_access){
                        .pid = pid,
                        .uid = process.uid,
                        .root_error = try_open(pid, "root", O_PATH | O_DIRECTORY),
                        .memory_error = try_open(pid, "mem", O_RDONLY),
                        .environment_error = try_open(pid, "environ", O_RDONLY),
        };
}

/* The first process of the target that is not ourselves; of several the one that is refused. */
static void find_access(struct root *root, const struct target_request *target, struct arena *arena,
                        struct doctor_facts *facts) {
        struct target_container *containers;
        size_t count;
        bool cut;

        if (target->scope == TARGET_PID) {
                read_access(root, target->pid, arena, &facts->access);
                return;
        }
        if (target_list(root, target, arena, &containers, &count, &cut, NULL) < 0)
                return;
        for (size_t i = 0; i < count; i++) {
                struct doctor_access access = {0};

                if (containers[i].a_pid == 0 || containers[i].a_pid == getpid())
                        continue;
                read_access(root, containers[i].a_pid, arena, &access);
                if (access.pid == 0)
                        continue;
                if (facts->access.pid == 0 || access.root_error || access.memory_error ||
                    access.environment_error)
                        facts->access = access;
                if (access.root_error || access.memory_error || access.environment_error)
                        return;
        }
}

static void try_probe(struct root *root, const struct target_request *target, const struct options *options,
                      struct doctor_probe *ret_probe) {
        struct probe_options probe_options = {
                        .target = *target,
                        .method = is_known(options->method) ? (enum probe_method) options->method
                                                            : PROBE_METHOD_COUNT,
                        .warn_stall_ns = options->warn_stall_ns,
                        .capture = options->capture,
        };
        struct snapshot *snapshot = NULL;
        struct probe *probe = NULL;
        struct why why = {0};

        *ret_probe = (struct doctor_probe){.tried = true, .forced = is_known(options->method)};
        ret_probe->error = probe_open(root, &probe_options, &probe, &why);
        if (ret_probe->error >= 0) {
                ret_probe->method = probe_method(probe);
                memcpy(ret_probe->trials, probe_trials(probe), sizeof(ret_probe->trials));
                ret_probe->error = probe_read(probe, clock_now(), &snapshot, &why);
        }
        if (ret_probe->error < 0)
                (void) snprintf(ret_probe->why, sizeof(ret_probe->why), "%s", why.text);
        else {
                ret_probe->error = 0;
                ret_probe->exact = snapshot->exact;
                ret_probe->containers = snapshot->containers_count;
                snapshot_free(snapshot);
        }
        probe_free(probe);
}

void doctor_read(struct root *root, const struct options *options, struct doctor_facts *ret_facts) {
        struct target_request target = scope_target(root, options, TARGET_SCOPE_COUNT);
        struct arena *arena cleanup_arena = arena_new(ARENA_MAX);

        *ret_facts = (struct doctor_facts){.live = root_is_live(root)};
        read_machine(root, ret_facts);
        if (!arena)
                return;
        read_cgroup(root, &target, arena, ret_facts);
        if (!ret_facts->live)
                return;
        try_probe(root, &target, options, &ret_facts->probe);
        find_access(root, &target, arena, ret_facts);
}
