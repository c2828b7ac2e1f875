/* SPDX-License-Identifier: Apache-2.0 */
/* What else than a higher limit can be done about a limit, and what changing it sets off in the runtimes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../base/number.h"
#include "../base/text.h"
#include "ratio.h"
#include "remedy.h"

/* The kernel hands a quota out to the CPUs in slices of this (sched_cfs_bandwidth_slice_us); a smaller quota serves one CPU at a time. */
#define SLICE_NS (5 * NS_PER_MS)
#define PERIOD_STEP_NS (5 * NS_PER_MS)
#define PERIOD_LEAST_NS (10 * NS_PER_MS)
#define CONSEQUENCES_MAX 2 /* runtimes that are named */
#define NAME_MAX_BYTES 96

static enum limit_manager manager_of(const struct facts *facts) {
        return remedy_manager(facts->limit_level, facts->limit_cgroup);
}

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

/* CPUs used, as a request that the container needs for sure. */
static uint64_t used_milli(const struct facts *facts) {
        if (!is_known(facts->cpu_used_ns) || facts->window_ns == 0)
                return ABSENT;
        return ratio_scale_up(facts->cpu_used_ns, 1000, facts->window_ns);
}

static const char *how_to_remove(const struct facts *facts, struct arena *arena) {
        char request[NUMBER_TEXT_MAX];
        uint64_t used = used_milli(facts);
        const char *cgroup = facts->limit_cgroup;

        switch (manager_of(facts)) {
        case MANAGER_SYSTEMD:
                return arena_format(arena, "systemctl set-property '%s' CPUQuota=", last_component(cgroup));
        case MANAGER_NONE:
                if (facts->cgroup_v1_mount && remedy_is_safe(facts->cgroup_v1_mount))
                        return arena_format(arena, "echo -1 > '%s%s/cpu.cfs_quota_us'",
                                            facts->cgroup_v1_mount, cgroup);
                return arena_format(arena, "echo max > '/sys/fs/cgroup%s/cpu.max'", cgroup);
        case MANAGER_DOCKER:
        case MANAGER_PODMAN:
                return "run it without --cpus, and with --cpu-shares for its share among others";
        case MANAGER_KUBERNETES:
        case MANAGER_POD:
        case MANAGER_UNKNOWN:
                break;
        }
        if (is_known(facts->request_milli))
                used = facts->request_milli;
        if (!is_known(used) || used == 0)
                return "Kubernetes: only resources.requests.cpu, no resources.limits.cpu";
        number_format_cpus(request, is_known(facts->request_milli) ? used : remedy_round_up(used));
        return arena_format(arena, "Kubernetes: only resources.requests.cpu: %s, no resources.limits.cpu",
                            request);
}

int remedy_remove_limit(const struct facts *facts, struct arena *arena, struct fix *ret_fix) {
        struct fix fix = {.setting = "no CPU limit, but a request", .who = "app"};

        if (!facts->has_limit || facts->limit_level != LIMIT_CONTAINER)
                return 0;
        const char *first = remedy_consequences(facts, ABSENT, arena);
        if (!first)
                return -ENOMEM;
        fix.how = how_to_remove(facts, arena);
        fix.then = arena_format(arena,
                                "%s%sit takes what is idle on the node, and no more than its share beside "
                                "others; a Pod is no longer of class Guaranteed",
                                first, first[0] ? "; " : "");
        if (!fix.how || !fix.then)
                return -ENOMEM;
        *ret_fix = fix;
        return 1;
}

int remedy_burst_credit(const struct facts *facts, struct arena *arena, struct fix *ret_fix) {
        struct fix fix = {.setting = "burst credit", .who = "node"};
        uint64_t burst_ns = facts->burst_cpu_p99_ns;

        /* The kernel has it, the burst fits into a quota and a full credit, and enough is left over to save up. */
        if (!facts->has_limit || facts->limit_level != LIMIT_CONTAINER || !is_known(facts->burst_ns) ||
            !is_known(burst_ns) || !is_known(facts->quota_ns) || burst_ns <= facts->quota_ns ||
            burst_ns > 2 * facts->quota_ns || !is_known(facts->cpu_used_ns) ||
            !ratio_is_below(facts->cpu_used_ns, facts->window_ns, facts->limit_milli, 1000))
                return 0;
        uint64_t credit_us = ratio_scale_up(burst_ns - facts->quota_ns, 1, NS_PER_US);
        fix.value = arena_format(arena, "%" PRIu64, credit_us);
        if (manager_of(facts) == MANAGER_NONE && !facts->cgroup_v1_mount)
                fix.how = arena_format(arena, "echo %" PRIu64 " > '/sys/fs/cgroup%s/cpu.max.burst'",
                                       credit_us, facts->limit_cgroup);
        else
                fix.how = "cpu.max.burst of its group (cgroup v1: cpu.cfs_burst_us), in microseconds; "
                          "Kubernetes has no field for it";
        fix.then = "quota that it leaves unused is saved up to that, so one burst may take more than its "
                   "limit";
        if (!fix.value || !fix.how)
                return -ENOMEM;
        *ret_fix = fix;
        return 1;
}

uint64_t remedy_shorter_period(const struct facts *facts) {
        if (!facts->has_limit || !is_known(facts->period_ns) || known_or_zero(facts->limit_milli) == 0 ||
            !is_known(facts->limit_milli))
                return ABSENT;
        uint64_t period_ns = ratio_scale_up(SLICE_NS, 1000, facts->limit_milli);
        period_ns = ratio_scale_up(period_ns, 1, PERIOD_STEP_NS) * PERIOD_STEP_NS;
        if (period_ns < PERIOD_LEAST_NS)
                period_ns = PERIOD_LEAST_NS;
        return period_ns < facts->period_ns ? period_ns : ABSENT;
}

/* The quota first: for a moment the limit is lower, never higher. */
static const char *period_of_group(const struct facts *facts, uint64_t quota_us, uint64_t period_us,
                                   struct arena *arena) {
        const char *cgroup = facts->limit_cgroup, *mount = facts->cgroup_v1_mount;

        if (mount && remedy_is_safe(mount))
                return arena_format(arena,
                                    "echo %" PRIu64 " > '%s%s/cpu.cfs_quota_us' && echo %" PRIu64
                                    " > '%s%s/cpu.cfs_period_us'",
                                    quota_us, mount, cgroup, period_us, mount, cgroup);
        return arena_format(arena, "echo '%" PRIu64 " %" PRIu64 "' > '/sys/fs/cgroup%s/cpu.max'", quota_us,
                            period_us, cgroup);
}

int remedy_period(const struct facts *facts, uint64_t period_ns, struct arena *arena, struct fix *ret_fix) {
        char period[NUMBER_TEXT_MAX];
        struct fix fix = {.setting = "period",
                          .who = facts->limit_level == LIMIT_ANCESTOR ? "platform" : "app"};
        const char *cgroup = facts->limit_cgroup;

        if (!facts->has_limit || !is_known(period_ns) || !is_known(facts->limit_milli) ||
            !is_known(facts->period_ns) || period_ns >= facts->period_ns)
                return 0;
        uint64_t period_us = period_ns / NS_PER_US,
                 quota_us = ratio_scale_up(facts->limit_milli, period_us, 1000);
        number_format_duration(period, period_ns);
        fix.value = arena_string(arena, period);
        switch (manager_of(facts)) {
        case MANAGER_SYSTEMD:
                fix.how = arena_format(arena, "systemctl set-property '%s' CPUQuotaPeriodSec=%" PRIu64 "ms",
                                       last_component(cgroup), period_ns / NS_PER_MS);
                break;
        case MANAGER_NONE:
                fix.how = period_of_group(facts, quota_us, period_us, arena);
                break;
        case MANAGER_DOCKER:
        case MANAGER_PODMAN:
                fix.how = arena_format(arena, "--cpu-period %" PRIu64 " with --cpu-quota %" PRIu64,
                                       period_us, quota_us);
                break;
        case MANAGER_KUBERNETES:
        case MANAGER_POD:
        case MANAGER_UNKNOWN:
                fix.who = "node";
                fix.how = "the kubelet's cpuCFSQuotaPeriod, for all Pods of the node; never the period "
                          "alone: "
                          "the quota has to shrink with it";
                break;
        }
        fix.then = "each stall is shorter and there are more of them: a burst that exceeds its quota takes "
                   "about as long in all";
        if (!fix.value || !fix.how)
                return -ENOMEM;
        *ret_fix = fix;
        return 1;
}

/* Its number came from the quota when it started (or comes from it now). */
static bool is_from_quota(const struct parallelism *row) {
        return row->aware == AWARENESS_QUOTA &&
               (row->source == FROM_DEFAULT || row->source == FROM_LIBRARY) && !row->is_blocking &&
               row->setting;
}

const char *remedy_consequences(const struct facts *facts, uint64_t milli, struct arena *arena) {
        const char *words = "";
        size_t named = 0;

        for (size_t i = 0; words && i < facts->parallelism_count && named < CONSEQUENCES_MAX; i++) {
                const struct parallelism_facts *row = &facts->parallelism[i];
                uint64_t number = facts_parallelism_for(facts, row->row, milli);
                char setting[NAME_MAX_BYTES];

                if (!is_from_quota(row->row) || !is_known(number) || number == row->row->effective)
                        continue;
                text_escape(setting, sizeof(setting), row->row->setting, strlen(row->row->setting));
                const char *end = row->row->follows ? "by itself" : "with the next start";
                if (is_known(milli) || !is_known(row->recommended))
                        words = arena_format(arena, "%s%s%s becomes %" PRIu64 " %s", words,
                                             named > 0 ? "; " : "", setting, number, end);
                else
                        words = arena_format(arena,
                                             "%s%s%s becomes %" PRIu64 " %s: set it to %" PRIu64 " first",
                                             words, named > 0 ? "; " : "", setting, number, end,
                                             row->recommended);
                named++;
        }
        return words;
}
