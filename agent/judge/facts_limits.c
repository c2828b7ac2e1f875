/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which limit applies, where it sits, and what its counters say. Levels come from files and from the
 * scheduler's own groups, which also show ancestors that a cgroup namespace hides.
 */
#include <errno.h>
#include <string.h>

#include "../probe/target.h"
#include "facts_internal.h"
#include "ratio.h"

/*
 * A Pod's quota is computed from the sum of its containers' limits and rounded apart from theirs: systemd
 * takes quotas in steps of 10 ms a second (10m), each container's up. A Pod counts as tighter only below
 * that noise; a limit set for the Pod itself differs by more.
 */
#define POD_ROUNDING_MILLI 10
#define POD_ROUNDING_PERCENT 5

struct level {
        const char *name, *component;
        uint64_t id;
        bool is_in_files, has_limit, is_unknown;
        uint64_t quota_ns, period_ns, burst_ns;
        uint64_t children_milli; /* ABSENT: a child has no limit, or this is not known */
        uint64_t nr_periods, nr_throttled, throttled_ns, nr_bursts, local_throttled_ns;
        uint64_t periods_seen,
                        throttled_seen; /* since the probe first saw it: as good as a difference at first sight */
};

struct levels {
        struct level *all; /* [0] is the container's own group */
        size_t count;
};

enum activity { IDLE, ACTED, ACTIVITY_UNKNOWN };

/* What is known of the levels of one container over the window. */
struct limits {
        struct levels now, before; /* before.count 0: one reading only, so no growth is known */
        const struct thread_sums *sums;
        bool is_measured;
};

static const char *last_component(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

static uint64_t milli_of(const struct level *level) {
        return ratio_scale(level->quota_ns, 1000, level->period_ns);
}

static bool is_lower(const struct level *a, const struct level *b) {
        return ratio_is_below(a->quota_ns, a->period_ns, b->quota_ns, b->period_ns);
}

static void level_from_file(struct level *out, const struct cgroup_level *file) {
        *out = (struct level){
                        .name = file->path ? file->path : "",
                        .id = file->id,
                        .is_in_files = true,
                        .is_unknown = file->limit == CGROUP_LIMIT_UNKNOWN,
                        .has_limit = file->limit == CGROUP_LIMIT_SET && file->period_ns > 0,
                        .quota_ns = file->quota_ns,
                        .period_ns = file->period_ns,
                        .burst_ns = file->burst_ns,
                        .children_milli = file->children_limit_milli,
                        .periods_seen = ABSENT,
                        .throttled_seen = ABSENT,
                        .nr_periods = file->stat.nr_periods,
                        .nr_throttled = file->stat.nr_throttled,
                        .throttled_ns = file->stat.throttled_ns,
                        .nr_bursts = file->stat.nr_bursts,
                        .local_throttled_ns = file->stat.local_throttled_ns,
        };
        out->component = last_component(out->name);
}

static void prefer_known(uint64_t *figure, uint64_t other) {
        if (!is_known(*figure))
                *figure = other;
}

static void level_add_group(struct level *level, const struct group_level *group) {
        bool has_limit = is_known(group->quota_ns) && is_known(group->period_ns) && group->period_ns > 0;

        level->is_unknown = false;
        if (has_limit && (!level->has_limit || ratio_is_below(group->quota_ns, group->period_ns,
                                                              level->quota_ns, level->period_ns))) {
                level->has_limit = true;
                level->quota_ns = group->quota_ns;
                level->period_ns = group->period_ns;
                level->burst_ns = group->burst_ns;
        }
        prefer_known(&level->burst_ns, group->burst_ns);
        prefer_known(&level->nr_periods, group->nr_periods);
        prefer_known(&level->nr_throttled, group->nr_throttled);
        prefer_known(&level->throttled_ns, group->throttled_ns);
        prefer_known(&level->nr_bursts, group->nr_bursts);
        level->periods_seen = group->periods_seen;
        level->throttled_seen = group->throttled_seen;
}

static void level_from_group(struct level *out, const struct group_level *group) {
        *out = (struct level){
                        .name = group->name,
                        .component = last_component(group->name),
                        .id = group->id,
                        .burst_ns = ABSENT,
                        .children_milli = ABSENT,
                        .periods_seen = ABSENT,
                        .throttled_seen = ABSENT,
                        .nr_periods = ABSENT,
                        .nr_throttled = ABSENT,
                        .throttled_ns = ABSENT,
                        .nr_bursts = ABSENT,
                        .local_throttled_ns = ABSENT,
        };
        level_add_group(out, group);
}

/*
 * The group that the file level at @index is, or groups_count. Both lists begin at the container's own
 * group.
 */
static size_t group_of_file(const struct container_sample *sample, size_t index) {
        const struct cgroup_level *file = &sample->chain.levels[index];
        for (size_t i = 0; is_known(file->id) && i < sample->groups_count; i++)
                if (sample->groups[i].id == file->id)
                        return i;
        bool has_ids = index < sample->groups_count && is_known(file->id) &&
                       is_known(sample->groups[index].id);
        return index < sample->groups_count && !has_ids ? index : sample->groups_count;
}

static int levels_make(struct levels *ret_levels, const struct container_sample *sample,
                       struct arena *arena) {
        size_t count = 0, files = sample->chain.levels_count, above = files;
        struct level *all = arena_array(arena, files + sample->groups_count, sizeof(*all));
        if (!all)
                return -ENOMEM;

        for (; count < files; count++) {
                level_from_file(&all[count], &sample->chain.levels[count]);
                size_t group = group_of_file(sample, count);
                if (group == sample->groups_count)
                        continue;
                level_add_group(&all[count], &sample->groups[group]);
                above = group + 1;
        }
        for (size_t i = above; i < sample->groups_count; i++)
                level_from_group(&all[count++], &sample->groups[i]);
        *ret_levels = (struct levels){all, count};
        return 0;
}

/* The same level at the previous reading; NULL if there is none. */
static const struct level *level_before(const struct limits *limits, size_t index) {
        const struct level *now = &limits->now.all[index];
        for (size_t i = 0; is_known(now->id) && i < limits->before.count; i++)
                if (limits->before.all[i].id == now->id)
                        return &limits->before.all[i];
        if (index >= limits->before.count)
                return NULL;
        const struct level *same = &limits->before.all[index];
        return is_known(now->id) && is_known(same->id) ? NULL : same;
}

/* Did the limit of this level throttle anybody in the window? */
static enum activity activity_of(const struct limits *limits, size_t index) {
        const struct level *now = &limits->now.all[index], *before = level_before(limits, index);
        if (!before)
                return ACTIVITY_UNKNOWN;
        uint64_t times = known_delta(now->nr_throttled, before->nr_throttled);
        uint64_t time_ns = known_delta(now->throttled_ns, before->throttled_ns);
        if (known_or_zero(times) > 0 || known_or_zero(time_ns) > 0)
                return ACTED;
        return is_known(times) || is_known(time_ns) ? IDLE : ACTIVITY_UNKNOWN;
}

/*
 * @level is lower than the limit of @quota_ns in @period_ns, by more than a Pod's rounding where it is a
 * Pod.
 */
static bool is_below_limit(const struct level *level, uint64_t quota_ns, uint64_t period_ns) {
        if (!ratio_is_below(level->quota_ns, level->period_ns, quota_ns, period_ns))
                return false;
        if (!target_is_pod_group(level->component))
                return true;
        uint64_t below = ratio_scale(quota_ns, 1000, period_ns),
                 rounding = below * POD_ROUNDING_PERCENT / 100;
        if (rounding < POD_ROUNDING_MILLI)
                rounding = POD_ROUNDING_MILLI;
        return milli_of(level) + rounding < below;
}

/*
 * Is the limit of an ancestor tighter than what lies below it asks for? Where it is not, it is the sum of
 * the limits below, and throttles beside them.
 */
static bool is_tighter(const struct limits *limits, size_t index) {
        const struct level *level = &limits->now.all[index], *own = &limits->now.all[0];

        if (!level->has_limit)
                return false;
        if (is_known(level->children_milli))
                return is_below_limit(level, level->children_milli, 1000);
        if (!own->has_limit || is_below_limit(level, own->quota_ns, own->period_ns))
                return true;
        /*
         * A child without a limit can ask for all of it. Not so in a Pod: Kubernetes gives each of its
         * containers a limit where the Pod has one; what has none is a sandbox that was not recognized.
         */
        if (level->is_in_files && !target_is_pod_group(level->component))
                return true;
        /*
         * The siblings' limits are not known; but if the own limit did nothing and this higher one did,
         * others took their part of it. Of equal ones either can run out first: their periods begin at
         * different times.
         */
        return is_lower(own, level) && activity_of(limits, 0) == IDLE && activity_of(limits, index) == ACTED;
}

/* The lowest ancestor's limit that is tighter than what lies below it and may have acted; 0: none. */
static size_t culprit_above(const struct limits *limits) {
        size_t lowest = 0;
        for (size_t i = 1; i < limits->now.count; i++)
                if (is_tighter(limits, i) && activity_of(limits, i) != IDLE &&
                    (lowest == 0 || is_lower(&limits->now.all[i], &limits->now.all[lowest])))
                        lowest = i;
        return lowest;
}

/* The tightest level with a limit, the lowest in the tree of equal ones; now.count: none. */
static size_t tightest_level(const struct limits *limits) {
        const struct levels *levels = &limits->now;
        size_t best = levels->all[0].has_limit ? 0 : levels->count;

        /* A Pod's sum that is a rounding below the only container's limit is not the limit to name. */
        for (size_t i = 1; i < levels->count; i++)
                if (is_tighter(limits, i) &&
                    (best == levels->count || is_lower(&levels->all[i], &levels->all[best])))
                        best = i;
        for (size_t i = 1; i < levels->count && best == levels->count; i++)
                if (levels->all[i].has_limit)
                        best = i;
        return best;
}

/*
 * An ancestor shared with others can be the one that stalls although its number is higher than the
 * container's own. The limit that did the stalling is the one to show.
 */
static bool is_ancestor_dominant(const struct limits *limits, size_t culprit) {
        if (culprit == 0)
                return false;
        if (limits->is_measured) {
                uint64_t above = known_or_zero(limits->sums->stall_above_ns);
                return above > 0 && above >= known_or_zero(limits->sums->stall_ns) / 2;
        }
        return activity_of(limits, 0) == IDLE && activity_of(limits, culprit) == ACTED;
}

static int fill_limit(const struct limits *limits, size_t index, struct arena *arena, struct facts *facts) {
        const struct level *level = &limits->now.all[index], *before = level_before(limits, index);

        facts->has_limit = true;
        facts->limit_milli = milli_of(level);
        facts->quota_ns = level->quota_ns;
        facts->period_ns = level->period_ns;
        facts->burst_ns = level->burst_ns;
        if (index == 0)
                facts->limit_level = LIMIT_CONTAINER;
        else
                facts->limit_level = target_is_pod_group(level->component) ? LIMIT_POD : LIMIT_ANCESTOR;
        /* Copied: facts may be kept longer than the snapshot. */
        facts->limit_cgroup = arena_string(arena, level->name);
        if (!facts->limit_cgroup)
                return -ENOMEM;
        if (before) {
                facts->periods = known_delta(level->nr_periods, before->nr_periods);
                facts->periods_throttled = known_delta(level->nr_throttled, before->nr_throttled);
                facts->periods_bursts = known_delta(level->nr_bursts, before->nr_bursts);
        } else {
                facts->periods = level->periods_seen;
                facts->periods_throttled = level->throttled_seen;
        }
        return 0;
}

static void fill_throttled(const struct limits *limits, struct facts *facts) {
        const struct level *own = &limits->now.all[0], *before = level_before(limits, 0);
        if (!before)
                return;
        facts->runqueue_throttled_ns = known_delta(own->throttled_ns, before->throttled_ns);
        uint64_t local = known_delta(own->local_throttled_ns, before->local_throttled_ns);
        uint64_t by_own = facts->runqueue_throttled_ns;
        if (!is_known(by_own) && !own->has_limit && !own->is_unknown)
                by_own = 0;
        if (is_known(local) && is_known(by_own))
                facts->ancestor_throttled_ns = difference_or_zero(local, by_own);
}

/*
 * The local clock ran although no limit that we see did anything: a limit above what this namespace shows.
 */
static bool is_proven_above(const struct limits *limits, const struct facts *facts) {
        if (known_or_zero(facts->ancestor_throttled_ns) == 0)
                return false;
        for (size_t i = 1; i < limits->now.count; i++)
                if (activity_of(limits, i) == ACTED)
                        return false;
        return !limits->now.all[0].has_limit || activity_of(limits, 0) == IDLE;
}

static bool is_root_seen(const struct container_sample *sample) {
        return sample->groups_count > 0 && sample->groups[sample->groups_count - 1].name[0] == '\0';
}

/*
 * Seen through a process' own root ("/proc/12/root/sys/fs/cgroup/cpu") the path is of use only while that process lives, and only here: a
 * person is told the place below it, which is where the hierarchy is mounted on the host as well.
 */
static const char *without_process(const char *mount) {
        static const char proc[] = "/proc/", root[] = "/root";
        const char *process = mount + strlen(proc), *end;

        if (strncmp(mount, proc, strlen(proc)) != 0)
                return mount;
        end = process + strspn(process, "0123456789");
        if (strncmp(end, root, strlen(root)) != 0 || end[strlen(root)] != '/')
                return mount;
        return end + strlen(root);
}

int facts_limits(const struct facts_window *window, struct facts *facts) {
        const struct container_sample *sample = window->now ? window->now : window->before;
        if (!sample)
                return -ENOENT;
        /* Its group is gone, but its threads ran in this window: the limit that was seen last held them. */
        if (window->before && sample->chain.levels_count == 0 && sample->groups_count == 0)
                sample = window->before;
        struct limits limits = {.sums = &window->sums, .is_measured = facts->measured};

        int r = levels_make(&limits.now, sample, window->arena);
        if (r == 0 && sample == window->now && window->before)
                r = levels_make(&limits.before, window->before, window->arena);
        if (r < 0)
                return r;

        bool is_root_known = is_root_seen(sample);
        facts->parent_hidden =
                        sample->chain.levels_count > 0 && sample->chain.parent_hidden && !is_root_known;
        facts->limit_unknown = limits.now.count == 0 || (sample->chain.limit_unknown && !is_root_known);
        if (sample->chain.levels_count > 0)
                facts->weight = sample->chain.levels[0].weight;
        if (limits.now.count == 0)
                return 0;
        if (sample->chain.levels_count > 0 && sample->chain.version == CGROUP_V1 && sample->chain.mount) {
                facts->cgroup_v1_mount = arena_string(window->arena, without_process(sample->chain.mount));
                if (!facts->cgroup_v1_mount)
                        return -ENOMEM;
        }

        fill_throttled(&limits, facts);
        if (limits.now.all[0].has_limit)
                facts->own_limit_milli = milli_of(&limits.now.all[0]);
        size_t culprit = culprit_above(&limits);
        facts->ancestor_is_tighter = culprit > 0;
        if (!is_root_known && culprit == 0 && is_proven_above(&limits, facts))
                facts->ancestor_is_tighter = facts->limit_unknown = true;
        /* Whoever has no limit of its own cannot be stalled by it. */
        if (!limits.now.all[0].has_limit && known_or_zero(window->sums.stall_above_ns) > 0)
                facts->ancestor_is_tighter = true;

        size_t tightest = tightest_level(&limits);
        if (tightest == 0 && is_ancestor_dominant(&limits, culprit))
                tightest = culprit;
        return tightest < limits.now.count ? fill_limit(&limits, tightest, window->arena, facts) : 0;
}
