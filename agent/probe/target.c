/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../host/proc.h"
#include "backend.h"
#include "target.h"
#include "target_group.h"
#include "target_name.h"

#define GROUPS_MAX 16384u
#define PIDS_MAX 65536u
/* A program that changed its own credentials hides its /proc/PID/root; another process of the container may not. */
#define PIDS_TRIED_MAX 8u

struct listing {
        struct root *root;
        struct arena *arena;
        struct target_container *containers;
        unsigned *tried; /* processes asked for a container's chain so far */
        size_t count, room, tried_room;
        bool cut;
        bool without_pids; /* the caller reads all of them anyway */
};

/* ---- one group ---- */

static bool has_controller(const char *list, size_t length, const char *name) {
        size_t name_length = strlen(name);

        for (const char *p = list, *end = list + length; p < end;) {
                const char *comma = memchr(p, ',', (size_t) (end - p));
                size_t n = (size_t) ((comma ? comma : end) - p);
                if (n == name_length && strncmp(p, name, n) == 0)
                        return true;
                p += n + 1;
        }
        return false;
}

int target_group_parse(const char *text, const char **ret_path, size_t *ret_length) {
        const char *v1 = NULL, *v2 = NULL;

        for (const char *line = text; *line;) {
                const char *end = line + strcspn(line, "\n");
                const char *controllers = memchr(line, ':', (size_t) (end - line));
                controllers = controllers ? controllers + 1 : end;
                const char *path = memchr(controllers, ':', (size_t) (end - controllers));
                if (path && path[1] == '/') {
                        size_t length = (size_t) (path - controllers);
                        if (length == 0 && strncmp(line, "0:", 2) == 0)
                                v2 = path + 1;
                        else if (has_controller(controllers, length, "cpu"))
                                v1 = path + 1;
                }
                line = *end ? end + 1 : end;
        }

        /* Where the cpu controller is on v1, the v2 tree beside it (hybrid) has none. */
        const char *path = v1 ? v1 : v2;
        if (!path)
                return -ENODATA;
        *ret_path = path;
        *ret_length = strcspn(path, "\n");
        return 0;
}

int target_group_of_pid(struct root *root, pid_t pid, struct arena *arena, const char **ret_path) {
        static const char deleted[] = " (deleted)";
        cleanup_free char *data = NULL;
        char name[64] = "/proc/self/cgroup";
        const char *path;
        size_t length;

        if (pid > 0)
                (void) snprintf(name, sizeof(name), "/proc/%d/cgroup", (int) pid);
        int r = root_read(root, name, 64u << 10, &data, NULL);
        if (r < 0)
                return r;
        r = target_group_parse(data, &path, &length);
        if (r < 0)
                return r;
        if (length >= sizeof(deleted) - 1 &&
            strncmp(path + length - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
                return -ENOENT;

        char *copy = arena_string_n(arena, path, length);
        if (!copy)
                return -ENOMEM;
        *ret_path = copy;
        return 0;
}

static bool is_tighter(const struct cgroup_level *a, const struct cgroup_level *b) {
        return (unsigned __int128) a->quota_ns * b->period_ns <
               (unsigned __int128) b->quota_ns * a->period_ns;
}

/*
 * A container is its group and every group below it: drops the levels that are its own affair. All paths of the levels are beginnings
 * of one path, so their lengths say which is which. Where the container's own level is not there (a cgroup namespace made below it, as
 * with crun's child; nested too deep), the nearest one below it stands for it.
 */
static void chain_trim(struct cgroup_chain *chain, size_t length) {
        size_t drop = 0;

        while (drop + 1 < chain->levels_count && strlen(chain->levels[drop + 1].path) >= length)
                drop++;
        if (drop == 0)
                return;
        chain->levels += drop;
        chain->levels_count -= drop;
        chain->usage_from -= drop < chain->usage_from ? drop : chain->usage_from;
        chain->tightest = -1;
        chain->limit_unknown = chain->levels_cut;
        for (size_t i = 0; i < chain->levels_count; i++) {
                const struct cgroup_level *level = &chain->levels[i];
                if (level->limit == CGROUP_LIMIT_UNKNOWN)
                        chain->limit_unknown = true;
                if (level->limit == CGROUP_LIMIT_SET &&
                    (chain->tightest < 0 || is_tighter(level, &chain->levels[chain->tightest])))
                        chain->tightest = (int) i;
        }
}

static bool has_suffix(const char *path, const char *suffix) {
        size_t n = strlen(path), m = strlen(suffix);

        return n > m && strcmp(path + n - m, suffix) == 0;
}

/*
 * How much of @path names the container. Within a private cgroup namespace nothing does: there the namespace's root is its group, unless a
 * systemd of its own made the groups in it.
 */
static size_t container_length(const char *path, const struct cgroup_chain *chain) {
        struct target_name name;

        target_name_parse(path, &name);
        if (name.kind == TARGET_NAME_OTHER && chain->parent_hidden && chain->levels_count > 0 &&
            target_name_is_below(path, "/", 1) && !has_suffix(path, ".slice") && !has_suffix(path, ".scope"))
                return strlen(chain->levels[chain->levels_count - 1].path);
        return target_name_cut(path, name.levels_below);
}

/* Fills in chain and id from what process @pid shows. 0 also when the group's files cannot be reached (levels_count 0). */
static int container_of_pid(struct root *root, pid_t pid, const char *path, struct arena *arena,
                            struct target_container *ret_container, struct why *why) {
        struct target_container container = {.id = ABSENT, .a_pid = pid, .chain.tightest = -1};

        int r = cgroup_chain_of_pid(root, pid, arena, &container.chain, why);
        if (r == -ENOENT || r == -ENOMEM)
                return r;
        if (r < 0)
                container.chain = (struct cgroup_chain){.tightest = -1, .limit_unknown = true};

        size_t length = container_length(path, &container.chain);
        chain_trim(&container.chain, length);
        if (container.chain.levels_count > 0)
                container.id = container.chain.levels[0].id;
        container.path = arena_string_n(arena, path, length);
        if (!container.path)
                return -ENOMEM;
        *ret_container = container;
        return 0;
}

/* ---- the list ---- */

static struct target_container *listing_find_path(struct listing *listing, const char *path, size_t length) {
        for (size_t i = 0; i < listing->count; i++) {
                struct target_container *c = &listing->containers[i];
                if (strncmp(c->path, path, length) == 0 && !c->path[length])
                        return c;
        }
        return NULL;
}

static bool listing_find_id(const struct listing *listing, uint64_t id) {
        if (!is_known(id))
                return false;
        for (size_t i = 0; i < listing->count; i++)
                if (listing->containers[i].id == id)
                        return true;
        return false;
}

static int listing_add(struct listing *listing, const struct target_container *container) {
        /* One group can have two paths (two mounts), and a path two groups (made again between two readings). */
        if (listing_find_id(listing, container->id) ||
            listing_find_path(listing, container->path, strlen(container->path)))
                return 0;
        if (listing->count == PROBE_CONTAINERS_MAX) {
                listing->cut = true;
                return 0;
        }

        struct target_container *grown = arena_grow(listing->arena, listing->containers, listing->count,
                                                    &listing->room, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        listing->containers = grown;
        unsigned *tried = arena_grow(listing->arena, listing->tried, listing->count, &listing->tried_room,
                                     sizeof(*tried));
        if (!tried)
                return -ENOMEM;
        listing->tried = tried;
        tried[listing->count] = 1;
        listing->containers[listing->count++] = *container;
        return 0;
}

static int list_pid(struct listing *listing, pid_t pid, struct why *why) {
        struct target_container container;
        const char *path;

        int r = target_group_of_pid(listing->root, pid, listing->arena, &path);
        if (r == 0)
                r = container_of_pid(listing->root, pid, path, listing->arena, &container, why);
        if (r == -ENOENT && pid > 0)
                return why_set(why, r, "there is no process %d, or its group is gone", (int) pid);
        if (r == -ENOENT)
                return why_set(why, r,
                               "/proc/self/cgroup is not there: is this a host's root folder with /proc in "
                               "it?");
        if (r == -ENODATA)
                return why_set(why, r,
                               "process %d: /proc/PID/cgroup names no group of the cpu controller (0: "
                               "ourselves)",
                               (int) pid);
        if (r < 0)
                return why_wrap(why, r, "the group of process %d", (int) pid);
        return listing_add(listing, &container);
}

static int list_path(struct listing *listing, const char *path, struct why *why) {
        struct target_container container = {.id = ABSENT};
        pid_t *pids;
        size_t count;

        int r = cgroup_chain_of_path(listing->root, path, listing->arena, &container.chain, why);
        if (r < 0)
                return r;
        container.path = container.chain.path;
        if (container.chain.levels_count > 0) {
                container.path = container.chain.levels[0].path;
                container.id = container.chain.levels[0].id;
        }
        if (!listing->without_pids) {
                r = cgroup_pids(listing->root, &container.chain, true, 1, listing->arena, &pids, &count);
                if (r == -ENOMEM)
                        return r;
                if (r >= 0 && count > 0)
                        container.a_pid = pids[0];
        }
        return listing_add(listing, &container);
}

typedef bool (*wanted_fn)(const char *own, const char *path);

/* Containers of the visible processes for which @wanted holds. */
static int list_of_processes(struct listing *listing, const char *own, wanted_fn wanted) {
        pid_t *pids;
        size_t count;

        int r = proc_pids(listing->root, PIDS_MAX, listing->arena, &pids, &count);
        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++) {
                const char *path;
                r = target_group_of_pid(listing->root, pids[i], listing->arena, &path);
                if (r == -ENOMEM)
                        return r;
                if (r < 0 || !wanted(own, path))
                        continue;

                size_t length = target_name_cut(path, target_container_level(path));
                struct target_container found, *known = listing_find_path(listing, path, length);
                unsigned *tried = known ? &listing->tried[known - listing->containers] : NULL;
                if (known && (known->chain.levels_count > 0 || *tried >= PIDS_TRIED_MAX))
                        continue;
                r = container_of_pid(listing->root, pids[i], path, listing->arena, &found, NULL);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        continue;
                if (!known)
                        r = listing_add(listing, &found);
                else if (found.chain.levels_count > 0 && !listing_find_id(listing, found.id))
                        *known = found;
                else
                        (*tried)++;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int list_pod(struct listing *listing, struct why *why) {
        const char *own;

        /* Our own container first: it is there even if no other process can be seen. */
        int r = list_pid(listing, 0, why);
        if (r < 0)
                return r;
        r = target_group_of_pid(listing->root, 0, listing->arena, &own);
        if (r < 0)
                return r;
        r = list_of_processes(listing, own, target_name_same_pod);
        /* A root folder without process directories still has our own container. */
        return r == -ENOMEM ? r : 0;
}

static bool is_runtime_container(const char *path) {
        struct target_name name;

        target_name_parse(path, &name);
        return name.kind == TARGET_NAME_CONTAINER && name.levels_below == 0;
}

static bool is_of_a_runtime(const char *own, const char *path) {
        struct target_name name;

        (void) own;
        target_name_parse(path, &name);
        return name.kind == TARGET_NAME_CONTAINER;
}

/* A limited group counts if no container lies above it (then it is that container's affair) or below it (then it is a Pod or slice). */
static bool stands_alone(const struct cgroup_entry *group, const struct cgroup_entry *const *containers,
                         size_t count) {
        size_t length = strlen(group->path);

        if (length <= 1)
                return false;
        for (size_t i = 0; i < count; i++)
                if (target_name_is_below(containers[i]->path, group->path, length) ||
                    target_name_is_below(group->path, containers[i]->path, strlen(containers[i]->path)))
                        return false;
        return true;
}

/* Some group's chain reaches up to the hierarchy's own root: no namespace hides a part of it. */
static bool is_tree_whole(const struct listing *listing) {
        for (size_t i = 0; i < listing->count; i++)
                if (listing->containers[i].chain.levels_count > 0 &&
                    !listing->containers[i].chain.parent_hidden)
                        return true;
        return false;
}

static int list_node(struct listing *listing, struct why *why) {
        struct cgroup_entry *entries;
        size_t count, containers_count = 0;

        int r = cgroup_list(listing->root, GROUPS_MAX, listing->arena, &entries, &count, &listing->cut, why);
        if (r < 0 && r != -ENOENT && r != -ENODATA)
                return r;
        int error = r;
        if (error < 0)
                count = 0;

        const struct cgroup_entry **containers = arena_array(listing->arena, count, sizeof(*containers));
        if (!containers)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                if (is_runtime_container(entries[i].path))
                        containers[containers_count++] = &entries[i];
        for (size_t i = 0; i < count; i++) {
                if (!is_runtime_container(entries[i].path) &&
                    !(entries[i].has_limit && stands_alone(&entries[i], containers, containers_count)))
                        continue;
                /* Groups come and go between listing and reading. */
                r = list_path(listing, entries[i].path, NULL);
                if (r == -ENOMEM)
                        return r;
        }
        if (containers_count > 0 || is_tree_whole(listing))
                return 0;
        /* Perhaps the tree is hidden by a cgroup namespace while the host's processes are visible. */
        r = list_of_processes(listing, "", is_of_a_runtime);
        if (r == -ENOMEM)
                return r;
        /* Neither groups nor processes of containers: the sentence is the list's. */
        return listing->count == 0 ? error : 0;
}

static int list_all(struct listing *listing, const struct target_request *request,
                    struct target_container **ret_containers, size_t *ret_count, bool *ret_cut,
                    struct why *why) {
        int r = -EINVAL;

        switch (request->scope) {
        case TARGET_SELF:
                r = list_pid(listing, 0, why);
                break;
        case TARGET_POD:
                r = list_pod(listing, why);
                break;
        case TARGET_NODE:
                r = list_node(listing, why);
                break;
        case TARGET_PID:
                r = list_pid(listing, request->pid, why);
                break;
        case TARGET_CGROUP:
                r = list_path(listing, request->cgroup, why);
                break;
        case TARGET_SCOPE_COUNT:
                return why_set(why, -EINVAL, "no such scope");
        }
        if (r == -ENOMEM)
                return why_set(why, r, "out of memory while listing containers");
        if (r < 0)
                return r;
        *ret_containers = listing->containers;
        *ret_count = listing->count;
        *ret_cut = listing->cut;
        return 0;
}

int target_list(struct root *root, const struct target_request *request, struct arena *arena,
                struct target_container **ret_containers, size_t *ret_count, bool *ret_cut,
                struct why *why) {
        struct listing listing = {.root = root, .arena = arena};

        return list_all(&listing, request, ret_containers, ret_count, ret_cut, why);
}

int target_list_groups(struct root *root, const struct target_request *request, struct arena *arena,
                       struct target_container **ret_containers, size_t *ret_count, bool *ret_cut,
                       struct why *why) {
        struct listing listing = {.root = root, .arena = arena, .without_pids = true};

        return list_all(&listing, request, ret_containers, ret_count, ret_cut, why);
}
