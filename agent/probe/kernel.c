/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#include "../base/memory.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

static void free_btf(struct btf **btf) {
        btf__free(*btf);
}

/* @name may be inside an anonymous union of the struct. The nesting is the kernel's, a few levels; foreign BTF may be anything. */
static bool type_has_member(const struct btf *btf, const struct btf_type *type, const char *name,
                            unsigned depth) {
        const struct btf_member *members = btf_members(type);

        for (unsigned i = 0; i < btf_vlen(type); i++) {
                const char *member = btf__name_by_offset(btf, members[i].name_off);
                const struct btf_type *inner;

                if (member && strcmp(member, name) == 0)
                        return true;
                if ((member && *member) || depth == 0)
                        continue;
                inner = btf__type_by_id(btf, members[i].type);
                if (inner && btf_is_composite(inner) && type_has_member(btf, inner, name, depth - 1))
                        return true;
        }
        return false;
}

static bool struct_has(const struct btf *btf, const char *type, const char *member) {
        int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);

        return id > 0 && type_has_member(btf, btf__type_by_id(btf, (__u32) id), member, 4);
}

static bool has_function(const struct btf *btf, const char *name) {
        return btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

static int load(struct root *root, struct btf **ret_btf, struct why *why) {
        cleanup_free char *data = NULL;
        struct btf *btf;
        size_t length;
        int r;

        r = root_read(root, BTF_PATH, ROOT_FILE_MAX, &data, &length);
        if (r < 0)
                return why_set(why, r, "%s: %s", BTF_PATH, strerror(-r));
        btf = btf__new(data, (__u32) length);
        if (!btf)
                return why_set(why, errno ? -errno : -EINVAL, "%s is not understood", BTF_PATH);
        *ret_btf = btf;
        return 0;
}

int kernel_facts_read(struct root *root, struct kernel_facts *ret_facts, struct why *why) {
        struct btf *btf __attribute__((cleanup(free_btf))) = NULL;
        int r;

        *ret_facts = (struct kernel_facts){0};
        r = load(root, &btf, why);
        if (r < 0)
                return r;
        *ret_facts = (struct kernel_facts){
                        .btf = true,
                        .bandwidth = struct_has(btf, "task_group", "cfs_bandwidth") &&
                                     struct_has(btf, "cfs_bandwidth", "quota"),
                        .clocks = struct_has(btf, "cfs_rq", "throttled_clock_self_time"),
                        .pelt_clocks = struct_has(btf, "cfs_rq", "throttled_clock_pelt_time") ||
                                       struct_has(btf, "cfs_rq", "throttled_clock_task_time"),
                        .tasks_parked = struct_has(btf, "task_struct", "throttled"),
                        .task_storage = struct_has(btf, "task_struct", "bpf_storage"),
                        .hooks = has_function(btf, "tg_throttle_down") &&
                                 has_function(btf, "tg_unthrottle_up"),
        };
        return 0;
}
