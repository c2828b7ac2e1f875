/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"

/* The first namespace of each kind has a fixed number (include/linux/proc_ns.h, part of the interface since namespaces have inodes). */
bool scope_is_first_namespace(const char *link) {
        static const char *const first[] = {
                        "pid:[4026531836]",
                        "user:[4026531837]",
                        "cgroup:[4026531835]",
        };

        for (size_t i = 0; i < ELEMENTS(first); i++)
                if (strcmp(link, first[i]) == 0)
                        return true;
        return false;
}

/* What cannot be read is taken for the machine's own: that is how a captured host looks. */
static bool is_own_namespace(struct root *root, const char *path) {
        cleanup_free char *target = NULL;

        return root_read_link(root, path, &target) >= 0 && !scope_is_first_namespace(target);
}

struct scope_place scope_place_of(struct root *root, const char *kubernetes_service_host) {
        return (struct scope_place){
                        .in_pod = kubernetes_service_host && *kubernetes_service_host,
                        .own_pids = is_own_namespace(root, "/proc/self/ns/pid"),
                        .own_cgroups = is_own_namespace(root, "/proc/self/ns/cgroup"),
        };
}

enum target_scope scope_default(const struct scope_place *place) {
        /* A Pod with the host's PID namespace is a DaemonSet's; nobody else asks for that. */
        if (place->in_pod)
                return place->own_pids ? TARGET_POD : TARGET_NODE;
        return place->own_pids || place->own_cgroups ? TARGET_SELF : TARGET_NODE;
}

struct target_request scope_target(struct root *root, const struct options *options,
                                   enum target_scope fallback) {
        struct scope_place place;

        if (is_known(options->pid))
                return (struct target_request){.scope = TARGET_PID, .pid = (pid_t) options->pid};
        if (options->cgroup)
                return (struct target_request){.scope = TARGET_CGROUP, .cgroup = options->cgroup};
        if (is_known(options->scope))
                return (struct target_request){.scope = (enum target_scope) options->scope};
        if (fallback != TARGET_SCOPE_COUNT)
                return (struct target_request){.scope = fallback};
        /* The environment is this machine's and says nothing about the one whose files are read. */
        place = scope_place_of(root, root_is_live(root) ? getenv("KUBERNETES_SERVICE_HOST") : NULL);
        return (struct target_request){.scope = scope_default(&place)};
}
