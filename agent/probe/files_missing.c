/* SPDX-License-Identifier: Apache-2.0 */
/* What method files cannot see, in sentences that name the setting to change. Design §1: "What an unprivileged sidecar sees". */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../host/proc.h"
#include "assemble.h"
#include "files.h"
#include "target_name.h"

#define CAP_SYS_PTRACE_BIT (UINT64_C(1) << 19)
#define REASON_MAX 256

#define WAYS_OUT                                                                                            \
        "set shareProcessNamespace: true and this container's runAsUser to the application's; or start "    \
        "the application "                                                                                  \
        "with `throttlescope run --`; or use `kubectl debug` with the application's uid; or the DaemonSet"

static int missing_siblings(struct snapshot *snapshot) {
        struct target_name name;

        if (snapshot->containers_count != 1)
                return 0;
        const struct container_sample *own = &snapshot->containers[0];
        target_name_parse(own->cgroup, &name);
        if (name.kind != TARGET_NAME_CONTAINER && !own->chain.parent_hidden)
                return snapshot_add_missing(snapshot, MISSING_OTHER_CONTAINERS,
                                            "I am in no container, so there is no Pod",
                                            "use --scope self, --scope node, --pid or --cgroup");
        return snapshot_add_missing(snapshot, MISSING_OTHER_CONTAINERS,
                                    "only the processes of my own container are visible: the Pod does not "
                                    "share its process "
                                    "namespace, or has no other container",
                                    WAYS_OUT);
}

/*
 * Why can the files of @pid's group not be reached? /proc/PID/root wants the same uid and gid, no more capabilities there than here,
 * and a program that did not change its credentials; or CAP_SYS_PTRACE.
 */
static void explain_hidden(struct root *root, pid_t pid, char why[static REASON_MAX],
                           char remedy[static REASON_MAX]) {
        struct proc_rights mine, theirs;

        if (pid == 0 || proc_rights(root, 0, &mine) < 0 || proc_rights(root, pid, &theirs) < 0) {
                (void) snprintf(why, REASON_MAX, "no mount of the cgroup tree reaches its group");
                (void) snprintf(remedy, REASON_MAX,
                                "mount the host's /sys/fs/cgroup read-only into this container");
        } else if (mine.effective & CAP_SYS_PTRACE_BIT) {
                (void) snprintf(why, REASON_MAX,
                                "no mount of the cgroup tree reaches its group, not even its own");
                (void) snprintf(remedy, REASON_MAX,
                                "mount the host's /sys/fs/cgroup read-only into this container");
        } else if (mine.uid != theirs.uid) {
                (void) snprintf(why, REASON_MAX, "app runs as %" PRIu32 ", I run as %" PRIu32, theirs.uid,
                                mine.uid);
                (void) snprintf(remedy, REASON_MAX, "set runAsUser: %" PRIu32, theirs.uid);
        } else if (theirs.permitted & ~mine.permitted) {
                (void) snprintf(why, REASON_MAX, "app holds capabilities that I lack (mask %" PRIx64 ")",
                                theirs.permitted & ~mine.permitted);
                (void) snprintf(remedy, REASON_MAX,
                                "drop them from the app (securityContext.capabilities.drop: [ALL]), or add "
                                "SYS_PTRACE to mine");
        } else {
                (void) snprintf(why, REASON_MAX,
                                "app has another group id, changed its own credentials, or an AppArmor "
                                "profile forbids it");
                (void) snprintf(remedy, REASON_MAX,
                                "set runAsGroup to the app's, or add the capability SYS_PTRACE");
        }
}

static int missing_groups(struct root *root, struct snapshot *snapshot) {
        for (size_t i = 0; i < snapshot->containers_count; i++) {
                const struct container_sample *container = &snapshot->containers[i];
                char id[65], what[128], why[REASON_MAX], remedy[REASON_MAX];

                if (container->chain.levels_count > 0)
                        continue;
                /* Only the id: the rest of a path is foreign text. */
                if (container->cgroup && target_container_id(container->cgroup, id))
                        (void) snprintf(what, sizeof(what), "limit and counters of container %.12s", id);
                else
                        (void) snprintf(what, sizeof(what),
                                        "limit and counters of the container of process %" PRIu32,
                                        container->first_pid);
                explain_hidden(root, (pid_t) container->first_pid, why, remedy);
                int r = snapshot_add_missing(snapshot, what, why, remedy);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int missing_schedstat(struct snapshot *snapshot) {
        if (snapshot->threads_count == 0)
                return 0;
        for (size_t i = 0; i < snapshot->threads_count; i++)
                if (is_known(snapshot->threads[i].run_ns))
                        return 0;
        return snapshot_add_missing(
                        snapshot, "run time and run-queue delay per thread",
                        "this kernel has no /proc/PID/task/TID/schedstat (CONFIG_SCHED_INFO is off)",
                        "use a kernel with CONFIG_SCHED_INFO, or a BPF method");
}

static int missing_levels_above(struct snapshot *snapshot) {
        for (size_t i = 0; i < snapshot->containers_count; i++)
                if (snapshot->containers[i].chain.parent_hidden)
                        return snapshot_add_missing(
                                        snapshot, "limits above the container",
                                        "a cgroup namespace or mount hides the groups above it",
                                        "use the DaemonSet, or mount the host's /sys/fs/cgroup read-only");
        return 0;
}

int files_missing(struct root *root, enum target_scope scope, struct snapshot *snapshot) {
        int r = 0;

        if (scope == TARGET_POD)
                r = missing_siblings(snapshot);
        if (r == 0)
                r = missing_groups(root, snapshot);
        if (r == 0)
                r = missing_schedstat(snapshot);
        if (r == 0)
                r = missing_levels_above(snapshot);
        return r;
}
