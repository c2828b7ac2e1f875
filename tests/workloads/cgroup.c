/* SPDX-License-Identifier: Apache-2.0 */

/* Groups of the cpu controller, wherever it is: cgroup v1, v2, or both side by side (hybrid). */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static void file_close(FILE **f) {
        if (*f)
                fclose(*f);
}
#define _cleanup_file_ __attribute__((cleanup(file_close)))

static int file_read(const char *dir, const char *name, char *buf, size_t size) {
        char path[PATH_LEN + 64];
        ssize_t n;
        int fd, r;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buf, size - 1);
        r = n < 0 ? -errno : 0;
        close(fd);
        buf[n < 0 ? 0 : n] = '\0';
        return r;
}

static int __attribute__((format(printf, 3, 4)))
file_write(const char *dir, const char *name, const char *format, ...) {
        char path[PATH_LEN + 64], text[64];
        va_list ap;
        int fd, n, r;

        va_start(ap, format);
        n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        snprintf(path, sizeof(path), "%s/%s", dir, name);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write(fd, text, (size_t) n) < 0 ? -errno : 0;
        close(fd);
        return r;
}

static bool list_has(const char *list, const char *word, const char *separators) {
        size_t n = strlen(word);

        for (const char *p = list; (p = strstr(p, word)); p += n)
                if ((p == list || strchr(separators, p[-1])) && (p[n] == '\0' || strchr(separators, p[n])))
                        return true;
        return false;
}

static bool v2_has_cpu(const char *root_dir, const char *mount) {
        char dir[2 * PATH_LEN], buf[256];

        snprintf(dir, sizeof(dir), "%s%s", root_dir, mount);
        return file_read(dir, "cgroup.controllers", buf, sizeof(buf)) >= 0 && list_has(buf, "cpu", " \n");
}

/* A v1 mount of cpu wins: a controller sits in one hierarchy only. root_dir is "" but for tests. */
int hierarchy_find(const char *root_dir, struct hierarchy *ret) {
        char path[PATH_LEN], line[4096];
        _cleanup_file_ FILE *f = NULL;
        struct hierarchy found = {};

        snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root_dir);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                char root[PATH_LEN], mount[PATH_LEN], type[32], options[512];
                const char *rest = strstr(line, " - ");
                int version = 0;

                if (!rest || sscanf(line, "%*s %*s %*s %511s %511s", root, mount) != 2 ||
                    sscanf(rest, " - %31s %*s %511s", type, options) != 2)
                        continue;
                if (strcmp(type, "cgroup") == 0 && list_has(options, "cpu", ",\n"))
                        version = 1;
                else if (strcmp(type, "cgroup2") == 0 && v2_has_cpu(root_dir, mount))
                        version = 2;
                if (version == 0 || (found.version != 0 && found.version <= version))
                        continue;
                found.version = version;
                snprintf(found.root, sizeof(found.root), "%s", root);
                snprintf(found.mount, sizeof(found.mount), "%s", mount);
        }
        if (found.version == 0)
                return -ENOENT;
        *ret = found;
        return 0;
}

/* The directory of the group this process is in, as far as the mount shows it. */
int group_own_path(const struct hierarchy *h, const char *root_dir, char ret[static PATH_LEN]) {
        char path[PATH_LEN], line[PATH_LEN];
        _cleanup_file_ FILE *f = NULL;

        snprintf(path, sizeof(path), "%s/proc/self/cgroup", root_dir);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                char *controllers = strchr(line, ':'),
                     *rel = controllers ? strchr(controllers + 1, ':') : NULL;
                size_t root_len = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);

                if (!rel)
                        continue;
                *controllers++ = '\0';
                *rel++ = '\0';
                rel[strcspn(rel, "\n")] = '\0';
                if (h->version == 2 ? strcmp(line, "0") != 0 : !list_has(controllers, "cpu", ","))
                        continue;
                if (strncmp(rel, h->root, root_len) == 0)
                        rel += root_len;
                if (strcmp(rel, "/") == 0)
                        rel++;
                if ((size_t) snprintf(ret, PATH_LEN, "%s%s", h->mount, rel) >= PATH_LEN)
                        return -ENAMETOOLONG;
                return 0;
        }
        return -ENOENT;
}

/* The setting is left on: other groups may have come to need it. */
static int v2_enable_cpu(const char *dir) {
        char buf[256];
        int r;

        r = file_read(dir, "cgroup.subtree_control", buf, sizeof(buf));
        if (r < 0)
                return r;
        if (list_has(buf, "cpu", " \n"))
                return 0;
        return file_write(dir, "cgroup.subtree_control", "+cpu");
}

static void group_read_limit(struct group *g) {
        char buf[64], *rest;

        g->quota_ns = NO_LIMIT;
        g->period_ns = 100 * NS_PER_MS;
        if (g->version == 2) {
                if (file_read(g->path, "cpu.max", buf, sizeof(buf)) < 0)
                        return;
                rest = strchr(buf, ' ');
                if (strncmp(buf, "max", 3) != 0)
                        g->quota_ns = strtoull(buf, NULL, 10) * NS_PER_US;
                if (rest)
                        g->period_ns = strtoull(rest, NULL, 10) * NS_PER_US;
                return;
        }
        if (file_read(g->path, "cpu.cfs_quota_us", buf, sizeof(buf)) >= 0 && buf[0] != '-')
                g->quota_ns = strtoull(buf, NULL, 10) * NS_PER_US;
        if (file_read(g->path, "cpu.cfs_period_us", buf, sizeof(buf)) >= 0)
                g->period_ns = strtoull(buf, NULL, 10) * NS_PER_US;
}

static int group_open(struct ctx *c, const char *path, bool create, bool internal) {
        struct group *g = &c->groups[c->n_groups];
        struct stat st;

        if (c->n_groups == GROUP_MAX)
                return -E2BIG;
        *g = (struct group){.version = c->hierarchy.version, .internal = internal};
        g->mount_len = strlen(c->hierarchy.mount);
        snprintf(g->path, sizeof(g->path), "%s", path);
        if (create) {
                if (mkdir(path, 0755) >= 0)
                        g->created = true;
                else if (errno != EEXIST)
                        return -errno;
        }
        c->n_groups++; /* from here on it is cleaned up */
        if (stat(path, &st) < 0)
                return -errno;
        g->id = st.st_ino;
        group_read_limit(g);
        return c->n_groups - 1;
}

static int group_add_here(struct ctx *c) {
        char path[PATH_LEN];
        int r;

        if (c->n_groups > 0)
                return 0;
        r = group_own_path(&c->hierarchy, "", path);
        return r < 0 ? r : group_open(c, path, false, false);
}

/* name may have several parts: each is created if it is missing, and removed in the end if we created it. */
int group_add(struct ctx *c, int parent, const char *name) {
        char path[PATH_LEN];
        const char *base = parent < 0 ? c->hierarchy.mount : c->groups[parent].path;
        size_t used = strlen(base);
        int r = -EINVAL;

        if (c->here)
                return group_add_here(c);
        if (used + strlen(name) + 2 > sizeof(path) || strstr(name, ".."))
                return -EINVAL;
        memcpy(path, base, used + 1);
        for (const char *part = name; *part;) {
                size_t n = strcspn(part, "/");

                if (n > 0) {
                        if (c->hierarchy.version == 2) {
                                r = v2_enable_cpu(path);
                                if (r < 0)
                                        return r;
                        }
                        path[used++] = '/';
                        memcpy(path + used, part, n);
                        used += n;
                        path[used] = '\0';
                        r = group_open(c, path, true, part[n] == '/');
                        if (r < 0)
                                return r;
                }
                part += n + (part[n] == '/');
        }
        return r;
}

int group_set_limit(struct group *g, uint64_t quota_ns, uint64_t period_ns) {
        uint64_t quota = quota_ns / NS_PER_US, period = period_ns / NS_PER_US;
        int r;

        if (g->version == 2)
                r = quota_ns == NO_LIMIT
                                    ? file_write(g->path, "cpu.max", "max %" PRIu64, period)
                                    : file_write(g->path, "cpu.max", "%" PRIu64 " %" PRIu64, quota, period);
        else {
                r = period_ns == g->period_ns ? 0
                                              : file_write(g->path, "cpu.cfs_period_us", "%" PRIu64, period);
                if (r >= 0)
                        r = quota_ns == NO_LIMIT
                                            ? file_write(g->path, "cpu.cfs_quota_us", "-1")
                                            : file_write(g->path, "cpu.cfs_quota_us", "%" PRIu64, quota);
        }
        if (r < 0)
                return r;
        g->quota_ns = quota_ns;
        g->period_ns = period_ns;
        return 0;
}

int group_set_burst(struct group *g, uint64_t burst_ns) {
        int r;

        r = file_write(g->path, g->version == 2 ? "cpu.max.burst" : "cpu.cfs_burst_us", "%" PRIu64,
                       burst_ns / NS_PER_US);
        if (r >= 0)
                g->burst_ns = burst_ns;
        return r;
}

int group_set_rt_runtime(struct group *g, uint64_t runtime_us) {
        return file_write(g->path, "cpu.rt_runtime_us", "%" PRIu64, runtime_us);
}

int group_move(const struct group *g, pid_t pid) {
        return file_write(g->path, "cgroup.procs", "%d", (int) pid);
}

static uint64_t key_read(const char *text, const char *key, uint64_t unit_ns) {
        size_t n = strlen(key);

        for (const char *p = text; p; p = strchr(p, '\n')) {
                p += *p == '\n';
                if (strncmp(p, key, n) == 0 && p[n] == ' ')
                        return strtoull(p + n, NULL, 10) * unit_ns;
                if (*p == '\0')
                        break;
        }
        return UNKNOWN;
}

void group_read(const struct group *g, struct group_stat *ret) {
        bool v2 = g->version == 2;
        const char *throttled = v2 ? "throttled_usec" : "throttled_time";
        uint64_t unit = v2 ? NS_PER_US : 1;
        char buf[1024];

        *ret = (struct group_stat){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
        if (file_read(g->path, "cpu.stat", buf, sizeof(buf)) >= 0) {
                ret->periods = key_read(buf, "nr_periods", 1);
                ret->throttled = key_read(buf, "nr_throttled", 1);
                ret->throttled_ns = key_read(buf, throttled, unit);
                ret->bursts = key_read(buf, "nr_bursts", 1);
                ret->burst_ns = key_read(buf, v2 ? "burst_usec" : "burst_time", unit);
                ret->usage_ns = key_read(buf, "usage_usec", NS_PER_US);
        }
        if (file_read(g->path, "cpu.stat.local", buf, sizeof(buf)) >= 0)
                ret->local_ns = key_read(buf, throttled, unit);
        if (file_read(g->path, "cpuacct.usage", buf, sizeof(buf)) >= 0)
                ret->usage_ns = strtoull(buf, NULL, 10);
}

/* A process that has just ended may still be counted: try for a while. */
int group_remove(struct group *g) {
        if (!g->created || g->removed)
                return 0;
        for (unsigned tries = 0; rmdir(g->path) < 0; tries++) {
                if (errno == ENOENT)
                        break;
                if (errno != EBUSY || tries == 300)
                        return -errno;
                nanosleep(&(struct timespec){.tv_nsec = 10 * (long) NS_PER_MS}, NULL);
        }
        g->removed = true;
        return 0;
}
