/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/base/memory.h"
#include "../../agent/cmd/doctor.h"

#define BIT(n) (UINT64_C(1) << (n))
#define ALL_CAPABILITIES (BIT(19) | BIT(21) | BIT(24) | BIT(38) | BIT(39))

static struct doctor_line lines[DOCTOR_LINES_MAX];
static size_t lines_count;

/* A machine on which all is well. */
static struct doctor_facts sound(void) {
        struct doctor_facts facts = {
                        .live = true,
                        .machine = {.kernel = "6.12.117"},
                        .kernel = {.btf = true,
                                   .bandwidth = true,
                                   .clocks = true,
                                   .task_storage = true,
                                   .hooks = true},
                        .has_schedstat = true,
                        .version = CGROUP_V2,
                        .has_v2 = true,
                        .cpu_mount = "/sys/fs/cgroup",
                        .has_rights = true,
                        .rights = {.effective = ALL_CAPABILITIES},
                        .lockdown = "none",
                        .unprivileged_bpf_disabled = 2,
                        .probe = {.tried = true, .method = PROBE_HOOKS, .exact = true, .containers = 3},
                        .access = {.pid = 12},
        };

        facts.probe.trials[PROBE_HOOKS].tried = true;
        return facts;
}

static void fail_trial(struct doctor_facts *facts, enum probe_method method, const char *text) {
        facts->probe.trials[method] = (struct probe_trial){.tried = true, .error = -EPERM};
        snprintf(facts->probe.trials[method].text, sizeof(facts->probe.trials[method].text), "%s", text);
}

/* BPF is refused; only files are left. */
static struct doctor_facts refused(void) {
        struct doctor_facts facts = sound();

        fail_trial(&facts, PROBE_HOOKS, "no fentry");
        fail_trial(&facts, PROBE_TRACEPOINTS, "no bpf");
        facts.probe.method = PROBE_FILES;
        facts.probe.exact = false;
        return facts;
}

static const struct doctor_line *judged(const struct doctor_facts *facts, const char *id) {
        lines_count = doctor_judge(facts, lines);
        for (size_t i = 0; i < lines_count; i++)
                if (strcmp(lines[i].id, id) == 0)
                        return &lines[i];
        cr_assert_fail("no line %s", id);
        return NULL;
}

#define expect_line(facts, line_id, line_mark, words, remedy_words)                                         \
        do {                                                                                                \
                const struct doctor_line *line_ = judged(facts, line_id);                                   \
                cr_expect_eq(line_->mark, line_mark, "%s: mark %d, text '%s'", line_id, (int) line_->mark,  \
                             line_->text);                                                                  \
                cr_expect(strstr(line_->text, words), "%s: '%s' instead of '%s'", line_id, line_->text,     \
                          words);                                                                           \
                cr_expect(strstr(line_->remedy, remedy_words), "%s: remedy '%s' instead of '%s'", line_id,  \
                          line_->remedy, remedy_words);                                                     \
                cr_expect_eq(line_->remedy[0] == '\0', (remedy_words)[0] == '\0', "%s: remedy '%s'",        \
                             line_id, line_->remedy);                                                       \
        } while (0)

Test(doctor, a_sound_machine_has_nothing_to_remedy) {
        struct doctor_facts facts = sound();

        lines_count = doctor_judge(&facts, lines);
        cr_assert_geq(lines_count, (size_t) 12);
        for (size_t i = 0; i < lines_count; i++) {
                cr_expect_eq(lines[i].mark, DOCTOR_OK, "%s: %s", lines[i].id, lines[i].text);
                cr_expect_str_eq(lines[i].remedy, "", "%s", lines[i].id);
                cr_expect(lines[i].text[0], "%s", lines[i].id);
        }
        cr_expect(doctor_can_measure(&facts));
}

Test(doctor, every_fault_has_a_remedy) {
        struct doctor_facts facts = {
                        .kernel_error = -ENOENT, .unprivileged_bpf_disabled = ABSENT, .live = true};

        facts.probe = (struct doctor_probe){.tried = true, .error = -EPERM, .why = "x"};
        lines_count = doctor_judge(&facts, lines);
        cr_assert_leq(lines_count, (size_t) DOCTOR_LINES_MAX);
        for (size_t i = 0; i < lines_count; i++)
                cr_expect(lines[i].mark != DOCTOR_FAULT || lines[i].remedy[0], "%s: %s", lines[i].id,
                          lines[i].text);
        cr_expect_not(doctor_can_measure(&facts));
}

Test(doctor, throttle_model_is_told_by_what_the_kernel_describes) {
        struct doctor_facts facts = sound();

        /* The release says 6.12: a distribution may take the new model back. */
        expect_line(&facts, "kernel", DOCTOR_OK, "parks run queues", "");
        facts.kernel.tasks_parked = true;
        expect_line(&facts, "kernel", DOCTOR_OK, "parks threads", "");
        facts.kernel.bandwidth = false;
        expect_line(&facts, "kernel", DOCTOR_FAULT, "without CPU quotas", "CONFIG_CFS_BANDWIDTH");
        facts.kernel = (struct kernel_facts){0};
        facts.kernel_error = -ENOENT;
        expect_line(&facts, "kernel", DOCTOR_NOTE, "not known without BTF", "");
        expect_line(&facts, "btf", DOCTOR_FAULT, "No such file", "CONFIG_DEBUG_INFO_BTF");
        facts.kernel_error = -EACCES;
        expect_line(&facts, "btf", DOCTOR_FAULT, "Permission denied", "readable");
}

Test(doctor, clocks) {
        struct doctor_facts facts = sound();

        facts.kernel.clocks = false;
        facts.kernel.pelt_clocks = true;
        expect_line(&facts, "clocks", DOCTOR_NOTE, "estimates", "");
        facts.probe.method = PROBE_TRACEPOINTS;
        expect_line(&facts, "clocks", DOCTOR_NOTE, "estimates", "method hooks");
        facts.kernel.pelt_clocks = false;
        expect_line(&facts, "clocks", DOCTOR_FAULT, "only method hooks", "newer kernel");
}

Test(doctor, method_says_why_not_better) {
        struct doctor_facts facts = sound();

        fail_trial(&facts, PROBE_HOOKS, "the kernel refuses fentry");
        facts.probe.method = PROBE_TRACEPOINTS;
        expect_line(&facts, "method", DOCTOR_OK, "tracepoints, exact; not hooks: the kernel refuses fentry",
                    "");
        facts = refused();
        expect_line(&facts, "method", DOCTOR_FAULT,
                    "files, an estimate; not hooks: no fentry; not tracepoints: no bpf", "!!");
        facts.probe.forced = true;
        expect_line(&facts, "method", DOCTOR_OK, "files as asked for", "");
        facts.probe.error = -EPERM;
        snprintf(facts.probe.why, sizeof(facts.probe.why), "nothing to see");
        expect_line(&facts, "method", DOCTOR_FAULT, "none works: nothing to see", "throttlescope run");
}

Test(doctor, long_reasons_are_cut_not_written_past_the_end) {
        struct doctor_facts facts = refused();

        memset(facts.probe.trials[PROBE_HOOKS].text, 'h', sizeof(facts.probe.trials[PROBE_HOOKS].text) - 1);
        memset(facts.probe.trials[PROBE_TRACEPOINTS].text, 't',
               sizeof(facts.probe.trials[PROBE_TRACEPOINTS].text) - 1);
        memset(facts.machine.kernel, 'k', sizeof(facts.machine.kernel) - 1);
        expect_line(&facts, "method", DOCTOR_FAULT, "hhhh", "!!");
        expect_line(&facts, "kernel", DOCTOR_OK, "kkkk", "");
}

Test(doctor, capabilities_are_named) {
        struct doctor_facts facts = refused();

        facts.rights.effective = BIT(39) | BIT(19);
        expect_line(&facts, "capabilities", DOCTOR_FAULT,
                    "uid 0 holds BPF SYS_PTRACE; lacks PERFMON SYS_ADMIN SYS_RESOURCE",
                    "capabilities.add: [BPF, PERFMON]");
        facts.rights.effective = 0;
        facts.rights.uid = 1000;
        expect_line(&facts, "capabilities", DOCTOR_FAULT, "uid 1000 holds none", "run as uid 0 with");
        facts.rights.effective = BIT(21);
        expect_line(&facts, "capabilities", DOCTOR_OK, "holds SYS_ADMIN", "");
        facts.has_rights = false;
        expect_line(&facts, "capabilities", DOCTOR_NOTE, "not known", "");
}

Test(doctor, a_user_namespace_matters_only_where_bpf_fails) {
        struct doctor_facts facts = sound();

        facts.user_namespace = true;
        expect_line(&facts, "user-ns", DOCTOR_NOTE, "do not count", "hostUsers: true");
        facts = refused();
        facts.user_namespace = true;
        expect_line(&facts, "user-ns", DOCTOR_FAULT, "do not count", "hostUsers: true");
        facts.pid_namespace = true;
        expect_line(&facts, "pid-ns", DOCTOR_NOTE, "not visible", "shareProcessNamespace");
}

Test(doctor, lockdown) {
        struct doctor_facts facts = refused();

        snprintf(facts.lockdown, sizeof(facts.lockdown), "integrity");
        expect_line(&facts, "lockdown", DOCTOR_OK, "integrity", "");
        snprintf(facts.lockdown, sizeof(facts.lockdown), "confidentiality");
        expect_line(&facts, "lockdown", DOCTOR_FAULT, "may not read", "lockdown=integrity");
        facts.lockdown[0] = '\0';
        expect_line(&facts, "lockdown", DOCTOR_OK, "not built in", "");
}

Test(doctor, seccomp_is_suspected_only_when_nothing_else_explains_it) {
        struct doctor_facts facts = refused();

        facts.rights.seccomp = 2;
        expect_line(&facts, "seccomp", DOCTOR_FAULT, "refused though the capabilities are there",
                    "RuntimeDefault");
        facts.rights.effective = 0;
        expect_line(&facts, "seccomp", DOCTOR_OK, "a filter is in force", "");
        facts = sound();
        facts.rights.seccomp = 2;
        expect_line(&facts, "seccomp", DOCTOR_OK, "a filter is in force", "");
}

Test(doctor, cgroup_layouts) {
        struct doctor_facts facts = sound();

        expect_line(&facts, "cgroup", DOCTOR_OK, "layout v2, the cpu controller is on v2 at /sys/fs/cgroup",
                    "");
        facts.has_v1 = true;
        facts.version = CGROUP_V1;
        expect_line(&facts, "cgroup", DOCTOR_OK, "layout hybrid, the cpu controller is on v1", "");
        facts.version = CGROUP_VERSION_UNKNOWN;
        snprintf(facts.cgroup_why, sizeof(facts.cgroup_why), "no mount");
        expect_line(&facts, "cgroup", DOCTOR_NOTE, "no cpu controller to be read: no mount",
                    "mount the cgroup");
        facts.probe.method = PROBE_FILES;
        expect_line(&facts, "cgroup", DOCTOR_FAULT, "no cpu controller to be read: no mount",
                    "mount the cgroup");
}

Test(doctor, access_to_the_target_names_the_uid_to_run_as) {
        struct doctor_facts facts = sound();

        facts.access = (struct doctor_access){.pid = 12, .uid = 1000, .root_error = -EACCES};
        facts.rights.uid = 65532;
        facts.rights.effective = 0;
        expect_line(&facts, "proc", DOCTOR_FAULT,
                    "/proc/12/root: Permission denied; the application runs as 1000, this as 65532",
                    "set runAsUser: 1000");
        facts.rights.uid = 1000;
        expect_line(&facts, "proc", DOCTOR_FAULT, "/proc/12/root: Permission denied", "SYS_PTRACE");
        facts.access.root_error = 0;
        facts.access.environment_error = -EPERM;
        expect_line(&facts, "proc", DOCTOR_FAULT, "/proc/12/environ: Operation not permitted", "SYS_PTRACE");
        facts.access = (struct doctor_access){0};
        expect_line(&facts, "proc", DOCTOR_NOTE, "but our own", "shareProcessNamespace");
}

Test(doctor, a_target_without_containers_cannot_be_measured) {
        struct doctor_facts facts = sound();

        facts.probe.containers = 0;
        facts.probe.method = PROBE_FILES;
        expect_line(&facts, "target", DOCTOR_FAULT, "no container is seen", "--scope");
        cr_expect_not(doctor_can_measure(&facts));

        /* The kernel shows one that comes: an empty node can be measured. */
        facts.probe.method = PROBE_TRACEPOINTS;
        expect_line(&facts, "target", DOCTOR_NOTE, "no container is there now", "");
        cr_expect(doctor_can_measure(&facts));
}

static char folder[] = "/tmp/cmd_doctor.XXXXXX";

static void add_file(const char *path, const char *text) {
        char whole[256];
        FILE *file;

        snprintf(whole, sizeof(whole), "%s%s", folder, path);
        for (char *p = whole + 1; (p = strchr(p, '/')); p++) {
                *p = '\0';
                mkdir(whole, 0755);
                *p = '/';
        }
        file = fopen(whole, "we");
        cr_assert_not_null(file, "%s", whole);
        fputs(text, file);
        fclose(file);
}

static void add_link(const char *path, const char *target) {
        char whole[256];

        snprintf(whole, sizeof(whole), "%s%s", folder, path);
        cr_assert_eq(symlink(target, whole), 0, "%s", whole);
}

/* Another machine's files: its facts are read from there, and nothing is tried. */
Test(doctor, reads_the_facts_of_a_folder) {
        struct options options = {.scope = TARGET_SELF, .pid = ABSENT, .method = ABSENT};
        struct doctor_facts facts;
        struct root *root;

        cr_assert_not_null(mkdtemp(folder));
        add_file("/proc/sys/kernel/osrelease", "5.10.223\n");
        add_file("/proc/sys/kernel/unprivileged_bpf_disabled", "1\n");
        add_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
        add_file("/proc/self/status",
                 "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t7\nCapInh:\t0\nCapPrm:\t0000000000000000\n"
                 "CapEff:\t000000c000080000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
        add_file("/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
        add_file("/proc/self/cgroup", "0::/\n");
        add_file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        add_file("/sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
        add_file("/proc/self/ns/x", "");
        add_link("/proc/self/ns/pid", "pid:[4026532201]");
        add_link("/proc/self/ns/user", "user:[4026531837]");
        cr_assert_eq(root_open(folder, &root, NULL), 0);
        doctor_read(root, &options, &facts);
        root_free(root);
        cr_expect_not(facts.live);
        cr_expect_not(facts.probe.tried);
        cr_expect_str_eq(facts.machine.kernel, "5.10.223");
        cr_expect_str_eq(facts.lockdown, "confidentiality");
        cr_expect_eq(facts.unprivileged_bpf_disabled, UINT64_C(1));
        cr_expect_eq(facts.kernel_error, -ENOENT);
        cr_expect(facts.has_rights);
        cr_expect_eq(facts.rights.uid, 1000u);
        cr_expect(facts.pid_namespace);
        cr_expect_not(facts.user_namespace);
        cr_expect(facts.has_v2 && !facts.has_v1);
        cr_expect_eq(facts.version, CGROUP_V2, "%s", facts.cgroup_why);
        cr_expect_not(facts.has_schedstat);
        expect_line(&facts, "capabilities", DOCTOR_OK,
                    "uid 1000 holds BPF PERFMON SYS_PTRACE; lacks SYS_ADMIN SYS_RESOURCE", "");
        expect_line(&facts, "method", DOCTOR_NOTE, "another machine", "");
        cr_expect(doctor_can_measure(&facts));
}

/* The kernel that the tests run on: only what holds on every one. */
Test(doctor, kernel_facts_of_this_machine_agree_with_each_other) {
        struct kernel_facts kernel;
        struct root *root;
        int r;

        cr_assert_eq(root_open(NULL, &root, NULL), 0);
        r = kernel_facts_read(root, &kernel, NULL);
        root_free(root);
        if (r == -ENOENT)
                cr_skip("no BTF here");
        cr_assert_eq(r, 0);
        cr_expect(kernel.btf);
        cr_expect(kernel.clocks || kernel.pelt_clocks || !kernel.bandwidth);
        cr_expect(!kernel.tasks_parked || kernel.clocks, "tasks are parked only on kernels with clocks");
        cr_expect(!kernel.clocks || kernel.task_storage, "storage is older than the clocks");
}

Test(doctor, btf_that_is_not_understood_is_an_error_with_a_sentence) {
        struct kernel_facts kernel = {.btf = true};
        struct why why = {0};
        struct root *root;

        cr_assert_not_null(mkdtemp(folder));
        add_file("/sys/kernel/btf/vmlinux", "not BTF at all");
        cr_assert_eq(root_open(folder, &root, NULL), 0);
        cr_expect_lt(kernel_facts_read(root, &kernel, &why), 0);
        cr_expect_not(kernel.btf);
        cr_expect(strstr(why.text, "not understood"), "%s", why.text);
        root_free(root);
}
