/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which containers are meant where nobody said it. What people expect depends on where they are: inside an application's
 * container this container, beside it in the Pod the Pod, on a node or as a DaemonSet everything.
 */
#include "../host/root.h"
#include "../probe/target.h"
#include "options.h"

struct scope_place {
        bool in_pod;      /* KUBERNETES_SERVICE_HOST is set: every container of a Pod has it */
        bool own_pids;    /* the PID namespace is not the machine's first */
        bool own_cgroups; /* the cgroup namespace is not */
};

enum target_scope scope_default(const struct scope_place *place);
/* Reads the namespaces through @root (a folder without them is a host). */
struct scope_place scope_place_of(struct root *root, const char *kubernetes_service_host);

/* The target of the options; else @fallback, with TARGET_SCOPE_COUNT what fits the place. Strings are borrowed from @options. */
struct target_request scope_target(struct root *root, const struct options *options,
                                   enum target_scope fallback);
/* Is the link's target ("pid:[4026531836]") the machine's first namespace of its kind? False too if it cannot be told. */
bool scope_is_first_namespace(const char *link);
