/* SPDX-License-Identifier: Apache-2.0 */
/* Where the CPU controller is: /proc/PID/cgroup and /proc/PID/mountinfo. Pure functions over text. */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "../base/number.h"
#include "cgroup_internal.h"

/* Is @name one of the comma-separated words? "cpuset" and "cpuacct" are not "cpu". */
static bool has_word(const char *list, size_t length, const char *name) {
        size_t n = strlen(name);

        for (const char *word = list, *end = list + length; word < end;) {
                const char *comma = memchr(word, ',', (size_t) (end - word));
                size_t word_length = (size_t) ((comma ? comma : end) - word);

                if (word_length == n && memcmp(word, name, n) == 0)
                        return true;
                word += word_length + 1;
        }
        return false;
}

/* The line at *@text without its newline, and *@text moved behind it; NULL at the end. */
static const char *next_line(const char **text, const char *end, size_t *ret_length) {
        const char *line = *text, *newline;

        if (line >= end)
                return NULL;
        newline = memchr(line, '\n', (size_t) (end - line));
        *ret_length = (size_t) ((newline ? newline : end) - line);
        *text = newline ? newline + 1 : end;
        return line;
}

int cgroup_parse_membership(const char *text, size_t length, struct cgroup_membership *ret_membership) {
        struct cgroup_membership v1 = {CGROUP_V1, NULL, 0, NULL, 0}, v2 = {CGROUP_V2, NULL, 0, NULL, 0};
        const char *end = text + length, *line;
        size_t n;

        while ((line = next_line(&text, end, &n))) {
                const char *list = memchr(line, ':', n), *path;
                size_t list_length, path_length;
                uint64_t hierarchy;

                if (!list || number_parse_u64_n(line, (size_t) (list - line), &hierarchy) < 0)
                        continue;
                list++;
                path = memchr(list, ':', n - (size_t) (list - line));
                if (!path)
                        continue;
                list_length = (size_t) (path - list);
                path++;
                path_length = n - (size_t) (path - line);
                /* A NUL can't be in a path, and would end a different one early. */
                if (path_length == 0 || path[0] != '/' || memchr(path, '\0', path_length))
                        continue;
                if (hierarchy == 0 && list_length == 0 && !v2.path) {
                        v2.path = path;
                        v2.path_length = path_length;
                }
                if (hierarchy != 0 && !v1.path && has_word(list, list_length, "cpu")) {
                        v1.path = path;
                        v1.path_length = path_length;
                }
                if (hierarchy != 0 && !v1.usage_path && has_word(list, list_length, "cpuacct")) {
                        v1.usage_path = path;
                        v1.usage_length = path_length;
                }
        }
        if (!v1.path && !v2.path)
                return -ENODATA;
        *ret_membership = v1.path ? v1 : v2;
        return 0;
}

/* A path field of mountinfo: blank, tab, newline and backslash come as three octal digits (mangle_path() in the kernel). */
static char *unescape(struct arena *arena, const char *field, size_t length) {
        char *out = arena_string_n(arena, field, length), *to = out;

        if (!out)
                return NULL;
        for (size_t i = 0; i < length; i++) {
                if (field[i] == '\\' && length - i >= 4 && field[i + 1] >= '0' && field[i + 1] <= '3' &&
                    field[i + 2] >= '0' && field[i + 2] <= '7' && field[i + 3] >= '0' &&
                    field[i + 3] <= '7') {
                        *to++ = (char) ((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 +
                                        (field[i + 3] - '0'));
                        i += 3;
                } else
                        *to++ = field[i];
        }
        *to = '\0';
        return out;
}

struct field {
        const char *text;
        size_t length;
};

static bool next_field(const char **text, const char *end, struct field *ret_field) {
        const char *start = *text, *blank;

        if (start >= end)
                return false;
        blank = memchr(start, ' ', (size_t) (end - start));
        *ret_field = (struct field){start, (size_t) ((blank ? blank : end) - start)};
        *text = blank ? blank + 1 : end;
        return true;
}

static bool is_word(const struct field *field, const char *word) {
        return field->length == strlen(word) && memcmp(field->text, word, field->length) == 0;
}

static bool parse_device(const struct field *field, uint64_t *ret_device) {
        const char *colon = memchr(field->text, ':', field->length);
        uint64_t major_number, minor_number;

        if (!colon || number_parse_u64_n(field->text, (size_t) (colon - field->text), &major_number) < 0 ||
            number_parse_u64_n(colon + 1, field->length - (size_t) (colon + 1 - field->text),
                               &minor_number) < 0 ||
            major_number > UINT32_MAX || minor_number > UINT32_MAX)
                return false;
        *ret_device = makedev((unsigned) major_number, (unsigned) minor_number);
        return true;
}

/* "/..", "/../..": 1, 2; anything else: 0. */
static unsigned levels_up(const char *path) {
        unsigned up = 0;

        for (; strncmp(path, "/..", 3) == 0; path += 3)
                up++;
        return *path ? 0 : up;
}

/*
 * "36 35 98:0 /root /mnt rw,noatime shared:1 master:2 - cgroup2 source rw". Only the super options (the last field, which may hold
 * blanks on some systems) name controllers: source, point and mount options can be anything. 1: a cgroup mount, 0: not.
 */
static int parse_mount(const char *line, size_t length, struct arena *arena,
                       struct cgroup_mount *ret_mount) {
        const char *end = line + length;
        struct field head[6], type, source, dash;
        struct cgroup_mount mount = {0};
        char *root, *point;

        for (size_t i = 0; i < ELEMENTS(head); i++)
                if (!next_field(&line, end, &head[i]))
                        return 0;
        do
                if (!next_field(&line, end, &dash))
                        return 0;
        while (!is_word(&dash, "-"));
        if (!next_field(&line, end, &type) || !next_field(&line, end, &source))
                return 0;
        if (is_word(&type, "cgroup2")) {
                mount.version = CGROUP_V2;
                mount.has_cpu = true;
        } else if (is_word(&type, "cgroup")) {
                mount.version = CGROUP_V1;
                mount.has_cpu = has_word(line, (size_t) (end - line), "cpu");
                mount.has_usage = has_word(line, (size_t) (end - line), "cpuacct");
        } else
                return 0;
        if (!parse_device(&head[2], &mount.device) || head[3].text[0] != '/' || head[4].text[0] != '/')
                return 0;
        root = unescape(arena, head[3].text, head[3].length);
        point = unescape(arena, head[4].text, head[4].length);
        if (!root || !point)
                return -ENOMEM;
        mount.root = root;
        mount.point = point;
        mount.up = levels_up(root);
        *ret_mount = mount;
        return 1;
}

/* The lower, the more levels it shows. */
static long rank(const struct cgroup_mount *mount) {
        return mount->up > 0 ? -(long) mount->up : (long) strlen(mount->root);
}

int cgroup_parse_mounts(const char *text, size_t length, struct arena *arena,
                        struct cgroup_mount **ret_mounts, size_t *ret_count) {
        static const char mark[] = " - cgroup";
        const char *end = text + length, *line;
        struct cgroup_mount *mounts = arena_array(arena, CGROUP_MOUNTS_MAX, sizeof(*mounts)), mount;
        size_t count = 0, n;

        if (!mounts)
                return -ENOMEM;
        while ((line = next_line(&text, end, &n))) {
                size_t at;
                int r;

                /* A node has thousands of mounts, and a handful of these. */
                if (!memmem(line, n, mark, sizeof(mark) - 1))
                        continue;
                r = parse_mount(line, n, arena, &mount);
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                for (at = count; at > 0 && rank(&mounts[at - 1]) > rank(&mount); at--)
                        if (at < CGROUP_MOUNTS_MAX)
                                mounts[at] = mounts[at - 1];
                if (at < CGROUP_MOUNTS_MAX)
                        mounts[at] = mount;
                count += count < CGROUP_MOUNTS_MAX;
        }
        *ret_mounts = mounts;
        *ret_count = count;
        return 0;
}

static bool has_dot_dot(const char *path) {
        for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
                if (p[3] == '/' || p[3] == '\0')
                        return true;
        return false;
}

bool cgroup_path_below(const char *path, const char *top, const char **ret_rest) {
        size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
        const char *rest;

        if (strncmp(path, top, n) != 0)
                return false;
        rest = path + n;
        if (rest[0] != '\0' && rest[0] != '/')
                return false;
        if (has_dot_dot(rest))
                return false;
        *ret_rest = strcmp(rest, "/") == 0 ? "" : rest;
        return true;
}
