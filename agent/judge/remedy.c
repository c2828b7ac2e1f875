/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../base/number.h"
#include "../probe/target.h"
#include "ratio.h"

#define DEFAULT_PERIOD_NS (100 * NS_PER_MS)
#define SHORT_ID_LENGTH 12 /* what docker prints */

uint64_t remedy_round_up(uint64_t milli) {
        uint64_t step = milli < 200 ? 50 : milli < 2000 ? 100 : 500;
        return (milli + step - 1) / step * step;
}

/*
 * CPU time that one period must offer so that the bursts seen end without a stall: a large one, and what follows it in the same period. That
 * is as many of the usual size as can begin there, but no more than what all of them used on average: many tiny ones in a row are rare.
 */
static uint64_t cpu_per_period_ns(const struct facts *facts, uint64_t period_ns) {
        uint64_t burst_ns = facts->burst_cpu_p99_ns, usual_ns = facts->burst_cpu_p50_ns, others_ns = 0;
        if (!is_known(burst_ns) || !is_known(period_ns))
                return ABSENT;
        if (is_known(facts->burst_gap_p50_ns) && is_known(usual_ns)) {
                uint64_t cycle_ns = facts->burst_gap_p50_ns + usual_ns;
                if (cycle_ns > 0 && cycle_ns < period_ns)
                        others_ns = ratio_scale(usual_ns, (period_ns + cycle_ns - 1) / cycle_ns - 1, 1);
        }
        uint64_t average_ns = is_known(facts->cpu_used_ns)
                                              ? ratio_scale(facts->cpu_used_ns, period_ns, facts->window_ns)
                                              : ABSENT;
        return burst_ns + (average_ns < others_ns ? average_ns : others_ns);
}

uint64_t remedy_needed_milli(const struct facts *facts, uint64_t limit_milli, uint64_t period_ns) {
        uint64_t per_period_ns = cpu_per_period_ns(facts, period_ns);
        /*
         * Without a finished burst: a CPU for each thread that wanted one, on average. More than the work
         * needs, as those that stall count too.
         */
        uint64_t needed = is_known(per_period_ns) ? ratio_scale_up(per_period_ns, 1000, period_ns)
                                                  : facts->wanted_milli;
        uint64_t at_once = known_or_zero(facts->runnable_max);

        /* Threads that all have a CPU of their own use no more than that, however long the burst is. */
        if (facts->cpus_online > 0 && (at_once == 0 || at_once > facts->cpus_online))
                at_once = facts->cpus_online;
        /* Below one CPU a single thread stalls, and the others only pile up behind it. */
        if (limit_milli < 1000 && facts->unstalled_milli < FACTS_SERIAL_MILLI)
                at_once = 1;
        if (at_once > 0 && needed > at_once * 1000)
                needed = at_once * 1000;
        if (!is_known(needed) || needed <= limit_milli)
                needed = limit_milli + 1;
        return remedy_round_up(needed);
}

static bool has_prefix(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool has_suffix(const char *text, const char *suffix) {
        size_t length = strlen(text), wanted = strlen(suffix);
        return length > wanted && strcmp(text + length - wanted, suffix) == 0;
}

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

/* The parent is a Pod's group, or the path goes through the kubelet's tree. */
static bool is_in_kubernetes(const char *cgroup) {
        char parent[256];
        const char *end = strrchr(cgroup, '/'), *start = end;

        if (strstr(cgroup, "kubepods"))
                return true;
        while (start && start > cgroup && start[-1] != '/')
                start--;
        if (!start || (size_t) (end - start) >= sizeof(parent))
                return false;
        memcpy(parent, start, (size_t) (end - start));
        parent[end - start] = '\0';
        return target_is_pod_group(parent);
}

static enum limit_manager manager_of(enum limit_level level, const char *cgroup) {
        char id[65];

        if (level == LIMIT_POD)
                return MANAGER_POD;
        if (!cgroup || !cgroup[0] || strcmp(cgroup, "/") == 0)
                return MANAGER_UNKNOWN;
        const char *name = last_component(cgroup);
        if (level == LIMIT_CONTAINER) {
                if (is_in_kubernetes(cgroup) || has_prefix(name, "cri-containerd-") ||
                    has_prefix(name, "crio-"))
                        return MANAGER_KUBERNETES;
                if (target_container_id(cgroup, id)) {
                        if (has_prefix(name, "libpod-"))
                                return MANAGER_PODMAN;
                        /* A bare id does not show whose it is. */
                        return has_prefix(name, "docker-") || strstr(cgroup, "/docker/") ? MANAGER_DOCKER
                                                                                         : MANAGER_UNKNOWN;
                }
        }
        if (has_suffix(name, ".service") || has_suffix(name, ".scope") || has_suffix(name, ".slice"))
                return MANAGER_SYSTEMD;
        return cgroup[0] == '/' ? MANAGER_NONE : MANAGER_UNKNOWN;
}

bool remedy_is_safe(const char *text) {
        return text[strspn(text,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@\\/")] ==
               '\0';
}

/* "0.5", "1", "1.25": what docker and podman take. */
static const char *format_cpus(struct arena *arena, uint64_t milli) {
        uint64_t whole = milli / 1000, rest = milli % 1000;

        if (rest == 0)
                return arena_format(arena, "%" PRIu64, whole);
        if (rest % 100 == 0)
                return arena_format(arena, "%" PRIu64 ".%" PRIu64, whole, rest / 100);
        if (rest % 10 == 0)
                return arena_format(arena, "%" PRIu64 ".%02" PRIu64, whole, rest / 10);
        return arena_format(arena, "%" PRIu64 ".%03" PRIu64, whole, rest);
}

enum limit_manager remedy_manager(enum limit_level level, const char *cgroup) {
        enum limit_manager manager = manager_of(level, cgroup);

        if (manager != MANAGER_UNKNOWN && manager != MANAGER_POD && manager != MANAGER_KUBERNETES &&
            !remedy_is_safe(cgroup))
                return MANAGER_UNKNOWN;
        return manager;
}

static void set_for_group(struct arena *arena, const char *v1_mount, const char *cgroup, uint64_t milli,
                          uint64_t period_ns, struct fix *fix) {
        uint64_t period_us =
                        (is_known(period_ns) && period_ns >= NS_PER_US ? period_ns : DEFAULT_PERIOD_NS) /
                        NS_PER_US;
        uint64_t quota_us = ratio_scale_up(milli, period_us, 1000);

        if (v1_mount && remedy_is_safe(v1_mount)) {
                fix->setting = "cpu.cfs_quota_us";
                fix->value = arena_format(arena, "%" PRIu64, quota_us);
                fix->how = arena_format(arena, "echo %" PRIu64 " > '%s%s/cpu.cfs_quota_us'", quota_us,
                                        v1_mount, cgroup);
                return;
        }
        fix->setting = "cpu.max";
        fix->value = arena_format(arena, "%" PRIu64 " %" PRIu64, quota_us, period_us);
        fix->how = arena_format(arena, "echo '%" PRIu64 " %" PRIu64 "' > '/sys/fs/cgroup%s/cpu.max'",
                                quota_us, period_us, cgroup);
}

static void set_for_unit(struct arena *arena, const char *unit, uint64_t milli, struct fix *fix) {
        uint64_t percent = (milli + 9) / 10;

        fix->setting = "CPUQuota=";
        fix->value = arena_format(arena, "%" PRIu64 "%%", percent);
        fix->how = arena_format(arena, "systemctl set-property '%s' CPUQuota=%" PRIu64 "%%", unit, percent);
}

static void set_for_container(struct arena *arena, const char *tool, const char *cgroup, uint64_t milli,
                              struct fix *fix) {
        char id[65];

        fix->setting = "--cpus";
        fix->value = format_cpus(arena, milli);
        if (target_container_id(cgroup, id) && fix->value)
                fix->how = arena_format(arena, "%s update --cpus %s %.*s", tool, fix->value, SHORT_ID_LENGTH,
                                        id);
}

static void set_anywhere(struct arena *arena, uint64_t milli, struct fix *fix) {
        char quantity[NUMBER_TEXT_MAX];
        const char *cpus = format_cpus(arena, milli);

        number_format_cpus(quantity, milli);
        fix->setting = "the CPU limit";
        fix->value = arena_string(arena, quantity);
        if (cpus)
                fix->how = arena_format(
                                arena,
                                "Kubernetes: resources.limits.cpu: %s; Docker: --cpus %s; a systemd unit: "
                                "CPUQuota=%" PRIu64 "%%",
                                quantity, cpus, (milli + 9) / 10);
}

static void set_in_kubernetes(struct arena *arena, bool is_pod, uint64_t milli, struct fix *fix) {
        char quantity[NUMBER_TEXT_MAX];

        number_format_cpus(quantity, milli);
        fix->value = arena_string(arena, quantity);
        fix->setting = is_pod ? "spec.resources.limits.cpu" : "resources.limits.cpu";
        fix->how = is_pod ? "in the Pod's own spec.resources; a Pod without one gets the sum of its "
                            "containers' limits"
                          : "in the container's resources; a running Pod takes it with kubectl patch "
                            "--subresource resize";
}

int remedy_set_limit(struct arena *arena, const char *v1_mount, enum limit_level level, const char *cgroup,
                     uint64_t milli, uint64_t period_ns, struct fix *ret_fix) {
        struct fix fix = {.who = level == LIMIT_ANCESTOR ? "platform" : "app"};
        enum limit_manager manager = remedy_manager(level, cgroup);

        switch (manager) {
        case MANAGER_KUBERNETES:
        case MANAGER_POD:
                set_in_kubernetes(arena, manager == MANAGER_POD, milli, &fix);
                break;
        case MANAGER_SYSTEMD:
                set_for_unit(arena, last_component(cgroup), milli, &fix);
                break;
        case MANAGER_DOCKER:
                set_for_container(arena, "docker", cgroup, milli, &fix);
                break;
        case MANAGER_PODMAN:
                set_for_container(arena, "podman", cgroup, milli, &fix);
                break;
        case MANAGER_NONE:
                set_for_group(arena, v1_mount, cgroup, milli, period_ns, &fix);
                break;
        case MANAGER_UNKNOWN:
                set_anywhere(arena, milli, &fix);
                break;
        }
        if (!fix.value || !fix.how)
                return -ENOMEM;
        *ret_fix = fix;
        return 0;
}
