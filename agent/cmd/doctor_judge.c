/* SPDX-License-Identifier: Apache-2.0 */
/* What the facts mean, and what would change it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "doctor.h"

/* Numbers of capabilities are the kernel's interface (linux/capability.h); older build machines lack the newer names. */
enum { CAP_DAC_READ = 2, CAP_PTRACE = 19, CAP_ADMIN = 21, CAP_RESOURCE = 24, CAP_PERF = 38, CAP_BPF_ = 39 };

struct lines {
        struct doctor_line *lines;
        size_t count;
};

static void __attribute__((format(printf, 4, 5)))
say(struct lines *out, const char *id, enum doctor_mark mark, const char *format, ...) {
        struct doctor_line *line = &out->lines[out->count++];
        va_list arguments;

        *line = (struct doctor_line){.id = id, .mark = mark};
        va_start(arguments, format);
        if (vsnprintf(line->text, sizeof(line->text), format, arguments) < 0)
                line->text[0] = '\0';
        va_end(arguments);
}

static void __attribute__((format(printf, 2, 3))) remedy(struct lines *out, const char *format, ...) {
        struct doctor_line *line = &out->lines[out->count - 1];
        va_list arguments;

        va_start(arguments, format);
        if (vsnprintf(line->remedy, sizeof(line->remedy), format, arguments) < 0)
                line->remedy[0] = '\0';
        va_end(arguments);
}

static bool holds(const struct doctor_facts *facts, unsigned capability) {
        return facts->has_rights && (facts->rights.effective >> capability & 1);
}

static bool may_load(const struct doctor_facts *facts) {
        return holds(facts, CAP_ADMIN) || (holds(facts, CAP_BPF_) && holds(facts, CAP_PERF));
}

static bool bpf_works(const struct doctor_facts *facts) {
        return facts->probe.tried && !facts->probe.error && facts->probe.method != PROBE_FILES;
}

static void judge_kernel(const struct doctor_facts *facts, struct lines *out) {
        const char *release = facts->machine.kernel[0] ? facts->machine.kernel : "unknown release";

        if (!facts->kernel.btf)
                say(out, "kernel", DOCTOR_NOTE, "%s; how it throttles is not known without BTF", release);
        else if (!facts->kernel.bandwidth) {
                say(out, "kernel", DOCTOR_FAULT,
                    "%s is built without CPU quotas: nothing is ever throttled here", release);
                remedy(out, "a kernel with CONFIG_CFS_BANDWIDTH");
        } else
                say(out, "kernel", DOCTOR_OK, "%s parks %s when a quota is used up", release,
                    facts->kernel.tasks_parked ? "threads, on their way back to user space"
                                               : "run queues, with all threads on them");
}

static void judge_btf(const struct doctor_facts *facts, struct lines *out) {
        if (facts->kernel.btf) {
                say(out, "btf", DOCTOR_OK, "the kernel describes its types%s",
                    facts->kernel.task_storage ? "" : "; no task-local storage: a hash map is used");
                return;
        }
        say(out, "btf", DOCTOR_FAULT, "/sys/kernel/btf/vmlinux: %s; no BPF program can be loaded",
            strerror(-facts->kernel_error));
        remedy(out, facts->kernel_error == -ENOENT ? "a kernel with CONFIG_DEBUG_INFO_BTF, and /sys mounted"
                                                   : "make the file readable");
}

static void judge_clocks(const struct doctor_facts *facts, struct lines *out) {
        if (!facts->kernel.btf)
                return;
        if (facts->kernel.clocks)
                say(out, "clocks", DOCTOR_OK, "the kernel keeps a throttled clock for each run queue");
        else if (facts->kernel.pelt_clocks) {
                say(out, "clocks", DOCTOR_NOTE,
                    "no throttled clock for each run queue (6.6 on): without hooks stalls are estimates");
                if (!bpf_works(facts) || facts->probe.method != PROBE_HOOKS)
                        remedy(out, "method hooks, or a kernel with cfs_rq.throttled_clock_self_time");
        } else {
                say(out, "clocks", DOCTOR_FAULT,
                    "no clock of throttled time: only method hooks can measure stalls");
                remedy(out, "a newer kernel");
        }
}

static void judge_rights(const struct doctor_facts *facts, struct lines *out) {
        static const struct {
                unsigned number;
                const char *name;
        } wanted[] = {
                        {CAP_BPF_, "BPF"},        {CAP_PERF, "PERFMON"},          {CAP_PTRACE, "SYS_PTRACE"},
                        {CAP_ADMIN, "SYS_ADMIN"}, {CAP_RESOURCE, "SYS_RESOURCE"},
        };
        char held[96] = "", missing[96] = "";
        size_t held_used = 0, missing_used = 0;

        if (!facts->has_rights) {
                say(out, "capabilities", DOCTOR_NOTE, "not known: /proc/self/status cannot be read");
                return;
        }
        for (size_t i = 0; i < ELEMENTS(wanted); i++) {
                bool has = holds(facts, wanted[i].number);
                char *list = has ? held : missing;
                size_t *used = has ? &held_used : &missing_used;
                int n = snprintf(list + *used, sizeof(held) - *used, " %s", wanted[i].name);

                *used += n > 0 ? (size_t) n : 0;
        }
        say(out, "capabilities", may_load(facts) || bpf_works(facts) ? DOCTOR_OK : DOCTOR_FAULT,
            "uid %u holds%s; lacks%s", facts->rights.uid, held[0] ? held : " none",
            missing[0] ? missing : " none");
        if (out->lines[out->count - 1].mark == DOCTOR_OK)
                return;
        if (facts->rights.uid != 0)
                remedy(out, "run as uid 0 with capabilities.add: [BPF, PERFMON] (docker: --user 0 --cap-add "
                            "BPF --cap-add PERFMON); "
                            "to another uid Kubernetes cannot give them");
        else
                remedy(out, "securityContext.capabilities.add: [BPF, PERFMON] (docker: --cap-add BPF "
                            "--cap-add PERFMON); before "
                            "kernel 5.8 SYS_ADMIN");
}

static void judge_namespaces(const struct doctor_facts *facts, struct lines *out) {
        if (facts->user_namespace) {
                say(out, "user-ns", bpf_works(facts) ? DOCTOR_NOTE : DOCTOR_FAULT,
                    "in a user namespace of its own: capabilities held here do not count for BPF");
                remedy(out, "hostUsers: true (no --userns-remap, no rootless runtime)");
        } else
                say(out, "user-ns", DOCTOR_OK, "the machine's first user namespace");
        if (facts->pid_namespace) {
                say(out, "pid-ns", DOCTOR_NOTE,
                    "in a PID namespace of its own: other containers' processes are not visible");
                remedy(out, "shareProcessNamespace: true for a sidecar, hostPID: true for a DaemonSet "
                            "(docker: --pid)");
        } else
                say(out, "pid-ns", DOCTOR_OK, "the machine's first PID namespace");
}

static void judge_confinement(const struct doctor_facts *facts, struct lines *out) {
        bool refused = facts->probe.tried && !bpf_works(facts) && may_load(facts) && facts->kernel.btf;

        if (strcmp(facts->lockdown, "confidentiality") == 0) {
                say(out, "lockdown", DOCTOR_FAULT, "confidentiality: BPF may not read the kernel's memory");
                remedy(out, "boot with lockdown=integrity, or use method files");
        } else
                say(out, "lockdown", DOCTOR_OK, "%s",
                    facts->lockdown[0] ? facts->lockdown : "not built in, or securityfs is not mounted");
        if (!facts->has_rights)
                return;
        if (facts->rights.seccomp == 0)
                say(out, "seccomp", DOCTOR_OK, "no filter");
        else if (refused) {
                say(out, "seccomp", DOCTOR_FAULT,
                    "a filter is in force, and BPF is refused though the capabilities are there");
                remedy(out, "seccompProfile RuntimeDefault, or one that allows bpf (docker: the default "
                            "profile)");
        } else
                say(out, "seccomp", DOCTOR_OK,
                    "a filter is in force; the runtimes' default ones allow bpf with CAP_BPF");
        say(out, "privileges", DOCTOR_OK,
            facts->rights.no_new_privs ? "no_new_privs is set: this does not hinder BPF"
                                       : "no_new_privs is not set");
}

static void judge_unprivileged_bpf(const struct doctor_facts *facts, struct lines *out) {
        if (!is_known(facts->unprivileged_bpf_disabled))
                say(out, "bpf-sysctl", DOCTOR_NOTE, "kernel.unprivileged_bpf_disabled is not there");
        else if (facts->unprivileged_bpf_disabled == 0)
                say(out, "bpf-sysctl", DOCTOR_OK,
                    "kernel.unprivileged_bpf_disabled = 0; tracing needs capabilities all the same");
        else
                say(out, "bpf-sysctl", DOCTOR_OK,
                    "kernel.unprivileged_bpf_disabled = %u: holders of CAP_BPF are not affected",
                    (unsigned) facts->unprivileged_bpf_disabled);
}

static void judge_cgroup(const struct doctor_facts *facts, struct lines *out) {
        const char *layout = facts->has_v1 && facts->has_v2 ? "hybrid"
                             : facts->has_v2                ? "v2"
                             : facts->has_v1                ? "v1"
                                                            : "none";

        if (facts->version == CGROUP_VERSION_UNKNOWN) {
                say(out, "cgroup", bpf_works(facts) ? DOCTOR_NOTE : DOCTOR_FAULT,
                    "layout %s, no cpu controller to be read: %s", layout,
                    facts->cgroup_why[0] ? facts->cgroup_why : strerror(-facts->cgroup_error));
                remedy(out, "mount the cgroup file system with the cpu controller (/sys/fs/cgroup, "
                            "read-only is enough)");
                return;
        }
        say(out, "cgroup", DOCTOR_OK, "layout %s, the cpu controller is on v%d at %s", layout,
            facts->version == CGROUP_V1 ? 1 : 2, facts->cpu_mount);
}

static void judge_access(const struct doctor_facts *facts, struct lines *out) {
        const struct doctor_access *access = &facts->access;
        const char *first = access->root_error ? "root" : access->memory_error ? "mem" : "environ";
        int error = access->root_error     ? access->root_error
                    : access->memory_error ? access->memory_error
                                           : access->environment_error;

        if (!facts->live)
                return;
        if (access->pid == 0) {
                say(out, "proc", facts->probe.error ? DOCTOR_FAULT : DOCTOR_NOTE,
                    "no process of the target but our own is visible: the runtimes inside cannot be "
                    "recognised");
                remedy(out, "shareProcessNamespace: true with the application's uid, or the wrapper");
        } else if (error == 0)
                say(out, "proc", DOCTOR_OK, "/proc/%d: root, mem and environ can be read",
                    (int) access->pid);
        else if (facts->has_rights && access->uid != facts->rights.uid && !holds(facts, CAP_PTRACE)) {
                say(out, "proc", DOCTOR_FAULT, "/proc/%d/%s: %s; the application runs as %u, this as %u",
                    (int) access->pid, first, strerror(-error), access->uid, facts->rights.uid);
                remedy(out, "set runAsUser: %u, or add SYS_PTRACE", access->uid);
        } else {
                say(out, "proc", DOCTOR_FAULT, "/proc/%d/%s: %s", (int) access->pid, first,
                    strerror(-error));
                remedy(out,
                       "the application's uid and gid and no fewer capabilities than it has, or SYS_PTRACE");
        }
}

static void judge_schedstat(const struct doctor_facts *facts, struct lines *out) {
        if (facts->has_schedstat)
                say(out, "schedstat", DOCTOR_OK, "the kernel counts each thread's run and wait time");
        else {
                say(out, "schedstat", bpf_works(facts) ? DOCTOR_NOTE : DOCTOR_FAULT,
                    "no /proc/PID/schedstat: from files threads cannot be told apart");
                remedy(out, "a kernel with CONFIG_SCHED_INFO");
        }
}

static void judge_method(const struct doctor_facts *facts, struct lines *out) {
        const struct doctor_probe *probe = &facts->probe;
        char worse[512] = "";
        size_t used = 0;

        if (!probe->tried) {
                say(out, "method", DOCTOR_NOTE, "not tried: these are the files of another machine");
                return;
        }
        if (probe->error) {
                say(out, "method", DOCTOR_FAULT, "none works: %s", probe->why);
                remedy(out, "see the lines marked !!, or run the application under throttlescope run");
                return;
        }
        for (unsigned i = 0; i < (unsigned) probe->method; i++) {
                int n;

                if (!probe->trials[i].tried || !probe->trials[i].error || used >= sizeof(worse))
                        continue;
                n = snprintf(worse + used, sizeof(worse) - used, "; not %s: %s",
                             probe_method_name((enum probe_method) i), probe->trials[i].text);
                used += n > 0 ? (size_t) n : 0;
        }
        say(out, "method", probe->method == PROBE_FILES && !probe->forced ? DOCTOR_FAULT : DOCTOR_OK,
            "%s%s%s%s", probe_method_name(probe->method), probe->forced ? " as asked for" : "",
            probe->exact ? ", exact" : ", an estimate", worse);
        if (out->lines[out->count - 1].mark == DOCTOR_FAULT)
                remedy(out, "see the lines marked !!");
}

static void judge_target(const struct doctor_facts *facts, struct lines *out) {
        const struct doctor_probe *probe = &facts->probe;

        if (!probe->tried || probe->error)
                return;
        if (probe->containers == 0 && probe->method != PROBE_FILES) {
                say(out, "target", DOCTOR_NOTE, "no container is there now; one that comes is seen");
        } else if (probe->containers == 0) {
                say(out, "target", DOCTOR_FAULT, "no container is seen");
                remedy(out, "another --scope, --pid or --cgroup");
        } else
                say(out, "target", DOCTOR_OK, "%zu container%s", probe->containers,
                    probe->containers == 1 ? "" : "s");
}

bool doctor_can_measure(const struct doctor_facts *facts) {
        if (facts->probe.tried)
                return !facts->probe.error &&
                       (facts->probe.containers > 0 || facts->probe.method != PROBE_FILES);
        return facts->version != CGROUP_VERSION_UNKNOWN;
}

size_t doctor_judge(const struct doctor_facts *facts, struct doctor_line lines[static DOCTOR_LINES_MAX]) {
        static void (*const questions[])(const struct doctor_facts *facts, struct lines *out) = {
                        judge_method,     judge_target,      judge_kernel,
                        judge_clocks,     judge_btf,         judge_rights,
                        judge_namespaces, judge_confinement, judge_unprivileged_bpf,
                        judge_cgroup,     judge_schedstat,   judge_access,
        };
        struct lines out = {.lines = lines};

        /* Each adds three lines at most. */
        for (size_t i = 0; i < ELEMENTS(questions) && out.count + 3 <= DOCTOR_LINES_MAX; i++)
                questions[i](facts, &out);
        return out.count;
}
