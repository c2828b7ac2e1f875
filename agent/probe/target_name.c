/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of group names: what the kubelet, containerd, CRI-O, Docker, Podman and systemd call their groups, with the
 * cgroupfs and the systemd driver. Pure text. The names are foreign: a container that may create groups can imitate all of them,
 * which at worst mislabels its own.
 *
 *   /kubepods/burstable/pod<uid>/<64 hex>
 *   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<64 hex>.scope
 *   /kubepods.slice/…-pod<uid>.slice/crio-<64 hex>.scope/container          (crun's child)
 *   /system.slice/containerd.service/kubepods-pod<uid>.slice:cri-containerd:<64 hex>   (drivers that do not match)
 *   /docker/<64 hex>   /system.slice/docker-<64 hex>.scope   /machine.slice/libpod-<64 hex>.scope/container
 *   /../cri-containerd-<64 hex>.scope                                       (a sibling seen from a private cgroup namespace)
 */
#include <string.h>

#include "target.h"
#include "target_name.h"

#define CONTAINER_ID_LENGTH 64
#define POD_UID_LENGTH 36  /* 8-4-4-4-12, all dashes or (systemd driver) all underscores */
#define POD_HASH_LENGTH 32 /* static Pods: hash of the manifest */

static bool is_hex(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t hex_run(const char *text, const char *end) {
        size_t n = 0;

        while (text + n < end && is_hex(text[n]))
                n++;
        return n;
}

/* Length of the Pod uid that starts at @text, 0: none. */
static size_t pod_uid_length(const char *text, const char *end) {
        static const size_t groups[] = {8, 4, 4, 4, 12};
        const char *p = text;
        char separator = 0;

        if (hex_run(text, end) == POD_HASH_LENGTH)
                return POD_HASH_LENGTH;
        for (size_t i = 0; i < ELEMENTS(groups); i++) {
                if (i > 0) {
                        if (p >= end || (*p != '-' && *p != '_') || (separator && *p != separator))
                                return 0;
                        separator = *p++;
                }
                if (hex_run(p, end) != groups[i])
                        return 0;
                p += groups[i];
        }
        return POD_UID_LENGTH;
}

/* In one component: the end of "pod<uid>", which starts the component or follows a dash. NULL: not there. */
static const char *pod_part_end(const char *component, const char *end) {
        for (const char *p = component; p + 3 < end; p++) {
                if (strncmp(p, "pod", 3) != 0 || (p > component && p[-1] != '-'))
                        continue;

                size_t length = pod_uid_length(p + 3, end);
                const char *after = p + 3 + length;
                if (length > 0 && (after == end || *after == '.'))
                        return after;
        }
        return NULL;
}

/* CRI-O's and Podman's monitor has a group beside the container, with the same id: "crio-conmon-<id>.scope". */
static bool is_monitor(const char *component, const char *end) {
        static const char monitor[] = "conmon";
        const size_t length = sizeof(monitor) - 1;

        for (const char *p = component; p + length <= end; p++)
                if (strncmp(p, monitor, length) == 0)
                        return true;
        return false;
}

/* The 64 hex digits in [@text, @end), NULL: none. The run must be exactly that long. */
static const char *container_id_in(const char *text, const char *end) {
        if (is_monitor(text, end))
                return NULL;
        for (const char *p = text; p < end;) {
                size_t run = hex_run(p, end);
                if (run == CONTAINER_ID_LENGTH)
                        return p;
                p += run > 0 ? run : 1;
        }
        return NULL;
}

static const char *component_end(const char *component) {
        return component + strcspn(component, "/");
}

static const char *next_component(const char *component) {
        const char *end = component_end(component);

        return end + strspn(end, "/");
}

static size_t components_from(const char *component) {
        size_t count = 0;

        for (const char *p = component; *p; p = next_component(p))
                count++;
        return count;
}

static bool ends_with(const char *component, const char *end, const char *suffix) {
        size_t length = strlen(suffix);

        return (size_t) (end - component) > length && strncmp(end - length, suffix, length) == 0;
}

/* Right of the Pod's uid, also within its component: the first id; whatever is deeper is the container's own affair. */
static void parse_in_pod(const char *after_pod, struct target_name *name) {
        const char *child = next_component(after_pod);

        for (const char *p = after_pod;; p = next_component(p)) {
                name->id = container_id_in(p, component_end(p));
                if (name->id) {
                        name->kind = TARGET_NAME_CONTAINER;
                        name->levels_below = components_from(next_component(name->id));
                        return;
                }
                if (!*next_component(p))
                        break;
        }
        if (!*child)
                name->kind = TARGET_NAME_POD;
        else if (!is_monitor(child, component_end(child))) {
                name->kind = TARGET_NAME_CONTAINER;
                name->levels_below = components_from(next_component(child));
        }
}

void target_name_parse(const char *path, struct target_name *ret_name) {
        const char *after_pod = NULL, *service = NULL, *innermost = NULL;
        struct target_name name = {.kind = TARGET_NAME_OTHER};

        for (const char *p = path + strspn(path, "/"); *p; p = next_component(p)) {
                const char *end = component_end(p), *pod_end = pod_part_end(p, end);

                /* The last Pod: a node that is itself a container (kind) has its Pods below its own group. */
                if (pod_end)
                        after_pod = pod_end;
                if (container_id_in(p, end))
                        innermost = p;
                if (ends_with(p, end, ".service"))
                        service = p;
                else if (ends_with(p, end, ".slice") || ends_with(p, end, ".scope"))
                        service = NULL; /* that service is a manager (user@1000.service), the unit below it counts */
        }

        if (after_pod) {
                name.pod_end = (size_t) (after_pod - path);
                parse_in_pod(after_pod, &name);
        } else if (innermost) {
                name.kind = TARGET_NAME_CONTAINER;
                name.id = container_id_in(innermost, component_end(innermost));
                name.levels_below = components_from(next_component(innermost));
        } else if (service) {
                name.kind = TARGET_NAME_SERVICE;
                name.levels_below = components_from(next_component(service));
        }
        *ret_name = name;
}

size_t target_container_level(const char *cgroup_path) {
        struct target_name name;

        target_name_parse(cgroup_path, &name);
        return name.levels_below;
}

bool target_is_pod_group(const char *component) {
        const char *end = component_end(component), *after = pod_part_end(component, end);
        static const char slice[] = ".slice";

        return after && (after == end || ((size_t) (end - after) == sizeof(slice) - 1 &&
                                          strncmp(after, slice, sizeof(slice) - 1) == 0));
}

bool target_container_id(const char *cgroup_path, char out[static 65]) {
        struct target_name name;

        target_name_parse(cgroup_path, &name);
        if (!name.id)
                return false;
        memcpy(out, name.id, CONTAINER_ID_LENGTH);
        out[CONTAINER_ID_LENGTH] = 0;
        return true;
}

size_t target_name_cut(const char *path, size_t levels) {
        size_t length = strlen(path);

        while (length > 1 && path[length - 1] == '/')
                length--;
        for (; levels > 0 && length > 1; levels--) {
                while (length > 1 && path[length - 1] != '/')
                        length--;
                while (length > 1 && path[length - 1] == '/')
                        length--;
        }
        return length;
}

static bool is_up(const char *component) {
        return component_end(component) - component == 2 && component[0] == '.' && component[1] == '.';
}

bool target_name_is_below(const char *path, const char *group, size_t group_length) {
        if (group_length == 1 && group[0] == '/')
                /* The namespace's own root: groups beside it are written "/../…". */
                return path[0] == '/' && !is_up(path + 1);
        return strncmp(path, group, group_length) == 0 &&
               (path[group_length] == 0 || path[group_length] == '/');
}

bool target_name_same_pod(const char *own, const char *other) {
        struct target_name mine, theirs;

        target_name_parse(own, &mine);
        target_name_parse(other, &theirs);
        if (mine.pod_end > 0)
                return theirs.pod_end == mine.pod_end && strncmp(own, other, mine.pod_end) == 0;

        size_t own_length = target_name_cut(own, mine.levels_below);
        if (target_name_is_below(other, own, own_length))
                return true;
        /*
         * A private cgroup namespace hides the Pod's name, but shows how to get from here to there: up to the Pod and down to a
         * container's leaf. Anything else on the way is another Pod's or the host's.
         */
        const char *p = other + strspn(other, "/");
        bool went_up = false;
        for (; is_up(p); p = next_component(p))
                went_up = true;
        return went_up && theirs.pod_end == 0 && theirs.id && theirs.id >= p && theirs.id < component_end(p);
}
