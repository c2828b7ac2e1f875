/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "../../agent/base/memory.h"
#include "../../agent/cmd/scope.h"

Test(scope, default_is_what_one_expects_of_the_place) {
        static const struct {
                struct scope_place place;
                enum target_scope scope;
        } rows[] = {
                        {{.in_pod = false, .own_pids = false, .own_cgroups = false},
                         TARGET_NODE}, /* a shell on a host */
                        {{.in_pod = false, .own_pids = true, .own_cgroups = true},
                         TARGET_SELF}, /* docker exec */
                        {{.in_pod = false, .own_pids = true, .own_cgroups = false},
                         TARGET_SELF}, /* … on cgroup v1 */
                        {{.in_pod = false, .own_pids = false, .own_cgroups = true},
                         TARGET_SELF}, /* docker --pid host */
                        {{.in_pod = true, .own_pids = true, .own_cgroups = true},
                         TARGET_POD}, /* a sidecar */
                        {{.in_pod = true, .own_pids = true, .own_cgroups = false}, TARGET_POD},
                        {{.in_pod = true, .own_pids = false, .own_cgroups = true},
                         TARGET_NODE}, /* a DaemonSet with hostPID */
                        {{.in_pod = true, .own_pids = false, .own_cgroups = false}, TARGET_NODE},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                cr_expect_eq(scope_default(&rows[i].place), rows[i].scope, "row %zu", i);
}

Test(scope, first_namespaces_are_known_by_number) {
        cr_expect(scope_is_first_namespace("pid:[4026531836]"));
        cr_expect(scope_is_first_namespace("user:[4026531837]"));
        cr_expect(scope_is_first_namespace("cgroup:[4026531835]"));
        cr_expect_not(scope_is_first_namespace("pid:[4026532201]"));
        cr_expect_not(scope_is_first_namespace("pid:[4026531837]"));
        cr_expect_not(scope_is_first_namespace(""));
}

Test(scope, options_beat_the_place) {
        struct options options = {.scope = ABSENT, .pid = ABSENT};
        struct target_request target;

        target = scope_target(NULL, &options, TARGET_SELF);
        cr_expect_eq(target.scope, TARGET_SELF);
        options.scope = TARGET_NODE;
        target = scope_target(NULL, &options, TARGET_SELF);
        cr_expect_eq(target.scope, TARGET_NODE);
        options.cgroup = "/x";
        target = scope_target(NULL, &options, TARGET_SELF);
        cr_expect_eq(target.scope, TARGET_CGROUP);
        cr_expect_str_eq(target.cgroup, "/x");
        options.pid = 12;
        target = scope_target(NULL, &options, TARGET_SELF);
        cr_expect_eq(target.scope, TARGET_PID);
        cr_expect_eq(target.pid, 12);
}
