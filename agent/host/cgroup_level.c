/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one group's CPU files. Six of them at each level and tick, so: one directory handle, one call to read each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_internal.h"

/* The weight that a runtime gives a Pod's sandbox: the least there is. */
#define WEIGHT_LEAST_V1 2u
#define WEIGHT_LEAST_V2 1u

struct cgroup_level cgroup_level_unknown(void) {
        return (struct cgroup_level){
                        .id = ABSENT,
                        .limit = CGROUP_LIMIT_UNKNOWN,
                        .burst_ns = ABSENT,
                        .weight = ABSENT,
                        .stat = {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
                        .children_limit_milli = ABSENT,
        };
}

/* The file @file of the group @name ("": of the directory itself). */
static ssize_t read_file(const struct root_dir *dir, const char *name, const char *file,
                         char buffer[static CGROUP_RECORD_MAX]) {
        char path[NAME_MAX + 64];
        int length;

        if (!name[0])
                return root_dir_read(dir, file, buffer, CGROUP_RECORD_MAX);
        length = snprintf(path, sizeof(path), "%s/%s", name, file);
        if (length < 0 || (size_t) length >= sizeof(path))
                return -ENAMETOOLONG;
        return root_dir_read(dir, path, buffer, CGROUP_RECORD_MAX);
}

static uint64_t read_number(const struct root_dir *dir, const char *name, const char *file) {
        char buffer[CGROUP_RECORD_MAX];
        ssize_t n = read_file(dir, name, file, buffer);

        return n < 0 ? ABSENT : cgroup_parse_number(buffer, (size_t) n);
}

/* A missing file is "no limit here" (the controller is not enabled, or it is the root); an unreadable one is unknown. */
void cgroup_limit_read(const struct root_dir *dir, enum cgroup_version version, const char *name,
                       struct cgroup_limit *ret_limit) {
        char quota[CGROUP_RECORD_MAX], period[CGROUP_RECORD_MAX];
        ssize_t n = read_file(dir, name, version == CGROUP_V2 ? "cpu.max" : "cpu.cfs_quota_us", quota),
                m = -ENOENT;

        *ret_limit = (struct cgroup_limit){.state = n == -ENOENT ? CGROUP_LIMIT_NONE : CGROUP_LIMIT_UNKNOWN};
        if (n < 0)
                return;
        if (version == CGROUP_V2) {
                cgroup_parse_max(quota, (size_t) n, ret_limit);
                return;
        }
        if (quota[0] != '-')
                m = read_file(dir, name, "cpu.cfs_period_us", period);
        cgroup_parse_quota(quota, (size_t) n, m < 0 ? NULL : period, m < 0 ? 0 : (size_t) m, ret_limit);
}

bool cgroup_has_limit(const struct root_dir *dir, enum cgroup_version version) {
        struct cgroup_limit limit;
        uint64_t quota_us;

        if (version == CGROUP_V1) {
                /* The period changes nothing about there being a quota. */
                quota_us = read_number(dir, "", "cpu.cfs_quota_us");
                return is_known(quota_us) && quota_us > 0;
        }
        cgroup_limit_read(dir, version, "", &limit);
        return limit.state == CGROUP_LIMIT_SET;
}

/* Within a tick a child may have been read as a level of its own. */
static void child_limit_read(const struct root_dir *dir, enum cgroup_version version, const char *name,
                             struct cgroup_limit *ret_limit) {
        char directory[PATH_MAX];
        int length = snprintf(directory, sizeof(directory), "%s/%s", dir->path, name);
        const struct cgroup_reading *known = NULL;

        if (length > 0 && (size_t) length < sizeof(directory))
                known = cgroup_cache_find(dir->root, directory);
        if (known)
                *ret_limit = (struct cgroup_limit){known->level.limit, known->level.quota_ns,
                                                   known->level.period_ns};
        else
                cgroup_limit_read(dir, version, name, ret_limit);
}

/* At most one process and the least weight: the "pause" of a Pod, which never has a limit and never wants CPU. */
static bool is_sandbox(const struct root_dir *dir, enum cgroup_version version, const char *name) {
        char buffer[CGROUP_RECORD_MAX];
        const char *newline;
        ssize_t n;

        if (read_number(dir, name, version == CGROUP_V2 ? "cpu.weight" : "cpu.shares") !=
            (version == CGROUP_V2 ? WEIGHT_LEAST_V2 : WEIGHT_LEAST_V1))
                return false;
        n = read_file(dir, name, "cgroup.procs", buffer);
        if (n < 0)
                return false;
        newline = memchr(buffer, '\n', (size_t) n);
        return !newline || newline + 1 == buffer + n;
}

static uint64_t children_limit(const struct root_dir *dir, enum cgroup_version version,
                               size_t subdirectories) {
        cleanup_free struct root_entry *entries = NULL;
        uint64_t sum = ABSENT;
        size_t count, children = 0;

        if (subdirectories == 0 || root_dir_list(dir, &entries, &count) < 0)
                return ABSENT;
        for (size_t i = 0; i < count; i++) {
                const char *name = entries[i].name;
                struct cgroup_limit limit;

                if (!entries[i].is_directory)
                        continue;
                if (++children > CGROUP_CHILDREN_MAX)
                        return ABSENT;
                child_limit_read(dir, version, name, &limit);
                if (limit.state == CGROUP_LIMIT_SET)
                        known_add(&sum, cgroup_milli(limit.quota_ns, limit.period_ns));
                else if (limit.state != CGROUP_LIMIT_NONE ||
                         (!strstr(name, "conmon-") && !is_sandbox(dir, version, name)))
                        return ABSENT;
        }
        return sum;
}

/* Returns false if there is no cpu.stat. */
static bool read_counters(const struct root_dir *dir, enum cgroup_version version,
                          struct cgroup_level *level) {
        char buffer[CGROUP_RECORD_MAX];
        bool has_stat;
        ssize_t n;

        n = root_dir_read(dir, "cpu.stat", buffer, sizeof(buffer));
        has_stat = n != -ENOENT;
        if (n >= 0)
                cgroup_parse_stat(buffer, (size_t) n, &level->stat);
        n = root_dir_read(dir, "cpu.stat.local", buffer, sizeof(buffer));
        if (n >= 0)
                cgroup_parse_stat_local(buffer, (size_t) n, &level->stat);
        /* Pressure belongs to the v2 tree alone. */
        if (version == CGROUP_V2) {
                n = root_dir_read(dir, "cpu.pressure", buffer, sizeof(buffer));
                if (n >= 0)
                        cgroup_parse_pressure(buffer, (size_t) n, &level->stat);
        }
        return has_stat;
}

/* A group that was removed under us has no file any more: that is not "no limit". Folders made by hand may have few files. */
static bool is_gone(const struct root_dir *dir) {
        char buffer[CGROUP_RECORD_MAX];

        return dir->root->live && root_dir_read(dir, "cgroup.procs", buffer, sizeof(buffer)) == -ENOENT;
}

static void read_usage(const struct root_dir *dir, const char *directory, struct cgroup_level *level) {
        char path[PATH_MAX], buffer[CGROUP_RECORD_MAX];
        ssize_t n;

        if (strcmp(directory, dir->path) == 0)
                n = root_dir_read(dir, "cpuacct.usage", buffer, sizeof(buffer));
        else {
                int length = snprintf(path, sizeof(path), "%s/cpuacct.usage", directory);

                n = length > 0 && (size_t) length < sizeof(path)
                                    ? root_read_record(dir->root, path, buffer, sizeof(buffer))
                                    : -ENAMETOOLONG;
        }
        if (n >= 0)
                level->stat.usage_ns = cgroup_parse_number(buffer, (size_t) n);
}

int cgroup_level_read(struct root *root, enum cgroup_version version, const char *directory,
                      const char *usage_directory, struct cgroup_reading *ret_reading) {
        const struct cgroup_reading *known = cgroup_cache_find(root, directory);
        struct cgroup_reading reading = {.level = cgroup_level_unknown(), .device = ABSENT};
        struct cgroup_level *level = &reading.level;
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        struct cgroup_limit limit;
        size_t subdirectories = SIZE_MAX;
        int r;

        if (known) {
                *ret_reading = *known;
                return 0;
        }
        r = root_dir_open(root, directory, &dir);
        if (r < 0) {
                *ret_reading = reading;
                return r;
        }
        (void) root_dir_id(&dir, &level->id, &reading.device, &subdirectories);
        cgroup_limit_read(&dir, version, "", &limit);
        level->limit = limit.state;
        if (limit.state == CGROUP_LIMIT_SET) {
                level->quota_ns = limit.quota_ns;
                level->period_ns = limit.period_ns;
                level->burst_ns = cgroup_us_to_ns(read_number(
                                &dir, "", version == CGROUP_V2 ? "cpu.max.burst" : "cpu.cfs_burst_us"));
                level->children_limit_milli = children_limit(&dir, version, subdirectories);
        }
        level->weight = read_number(&dir, "", version == CGROUP_V2 ? "cpu.weight" : "cpu.shares");
        if (!read_counters(&dir, version, level) && is_gone(&dir)) {
                *ret_reading = (struct cgroup_reading){.level = cgroup_level_unknown(), .device = ABSENT};
                return -ENOENT;
        }
        if (usage_directory)
                read_usage(&dir, usage_directory, level);
        *ret_reading = reading;
        cgroup_cache_add(root, directory, &reading);
        return 0;
}

/*
 * Files that only a true root lacks (v2: CFTYPE_NOT_ON_ROOT) or has (v1: CFTYPE_ONLY_ON_ROOT); the root of a cgroup namespace is not one.
 */
bool cgroup_top_has_parent(struct root *root, enum cgroup_version version, const char *directory) {
        cleanup_root_dir struct root_dir dir = ROOT_DIR_NONE;
        char buffer[CGROUP_RECORD_MAX];
        bool has_parent;

        if (cgroup_cache_find_top(root, directory, &has_parent))
                return has_parent;
        if (root_dir_open(root, directory, &dir) < 0)
                return true;
        if (version == CGROUP_V2)
                has_parent = root_dir_read(&dir, "cgroup.events", buffer, sizeof(buffer)) >= 0 ||
                             root_dir_read(&dir, "cpu.max", buffer, sizeof(buffer)) >= 0;
        else
                has_parent = root_dir_read(&dir, "release_agent", buffer, sizeof(buffer)) == -ENOENT;
        cgroup_cache_add_top(root, directory, has_parent);
        return has_parent;
}
