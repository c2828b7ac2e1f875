/* SPDX-License-Identifier: Apache-2.0 */
#include "text_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS "…"
#define ELLIPSIS_BYTES (sizeof(ELLIPSIS) - 1)

/* Length of one thing that must not be cut: an escape of text_escape() or one UTF-8 character. */
static size_t unit_length(const char *s) {
        const unsigned char *u = (const unsigned char *) s;
        if (u[0] == '\\') {
                if (u[1] == 'x' && isxdigit(u[2]) && isxdigit(u[3]))
                        return 4;
                return u[1] == '\\' ? 2 : 1;
        }
        size_t length = u[0] < 0xc0 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
        return strnlen(s, length);
}

static size_t unit_columns(const char *s, size_t length) {
        char unit[8] = "";
        memcpy(unit, s, length);
        return text_columns(unit);
}

/* The longest beginning of @s within both limits. */
static size_t head_length(const char *s, size_t max_columns, size_t max_bytes) {
        size_t columns = 0, at = 0;
        while (s[at]) {
                size_t length = unit_length(s + at);
                columns += unit_columns(s + at, length);
                if (columns > max_columns || at + length > max_bytes)
                        break;
                at += length;
        }
        return at;
}

/* Where the longest end of @s within both limits begins. */
static size_t tail_start(const char *s, size_t max_columns, size_t max_bytes) {
        size_t left = text_columns(s), bytes = strlen(s), at = 0;
        while (s[at] && (left > max_columns || bytes - at > max_bytes)) {
                size_t length = unit_length(s + at), columns = unit_columns(s + at, length);
                left -= columns < left ? columns : left;
                at += length;
        }
        return at;
}

char *parts_shorten(char *out, size_t room, const char *escaped, size_t max_columns) {
        size_t length = strlen(escaped);
        if (length < room && text_columns(escaped) <= max_columns) {
                memcpy(out, escaped, length + 1);
                return out;
        }
        if (max_columns < 1 || room < ELLIPSIS_BYTES + 1) {
                out[0] = '\0';
                return out;
        }
        size_t columns = max_columns - 1, bytes = room - 1 - ELLIPSIS_BYTES;
        size_t head = head_length(escaped, columns / 2, bytes / 2);
        size_t tail = tail_start(escaped, columns - columns / 2, bytes - bytes / 2);
        size_t tail_bytes = length - tail;
        memcpy(out, escaped, head);
        memcpy(out + head, ELLIPSIS, ELLIPSIS_BYTES);
        memcpy(out + head + ELLIPSIS_BYTES, escaped + tail, tail_bytes + 1);
        return out;
}

char *parts_name(char *out, size_t room, const char *foreign, size_t length, size_t max_columns) {
        char escaped[4 * PATH_MAX + 1];
        if (!foreign)
                foreign = "";
        text_escape(escaped, sizeof(escaped), foreign, strnlen(foreign, length));
        return parts_shorten(out, room, escaped, max_columns);
}

char *parts_sentence(char *out, size_t room, const char *sentence) {
        const size_t unit_room = 17; /* the longest escape of one character, and the NUL */
        size_t end = room - ELLIPSIS_BYTES, used = 0;
        const char *s = sentence ? sentence : "";
        out[0] = '\0';
        while (*s && end - used > unit_room) {
                size_t plain = strcspn(s, "\\");
                if (plain > 0) {
                        text_escape(out + used, end - used, s, plain);
                        used += strlen(out + used);
                        s += plain;
                        continue;
                }
                out[used++] = *s++;
                out[used] = '\0';
        }
        if (end - used <= unit_room)
                memcpy(out + used, ELLIPSIS, ELLIPSIS_BYTES + 1);
        return out;
}

static void add_label(struct text *out, const char *label) {
        text_add(out, "  %-*s", PARTS_INDENT - 2, label);
}

void parts_wrap(struct text *out, const char *label, const char *words) {
        const size_t width = PARTS_COLUMNS - PARTS_INDENT;
        char word[PARTS_SENTENCE_MAX], shown[PARTS_SENTENCE_MAX];
        size_t columns = 0;
        add_label(out, label);
        while (*words) {
                words += strspn(words, " ");
                size_t length = strcspn(words, " ");
                if (length == 0)
                        break;
                snprintf(word, sizeof(word), "%.*s", (int) length, words);
                words += length;
                parts_shorten(shown, sizeof(shown), word, width);
                size_t more = text_columns(shown);
                if (columns > 0 && columns + 1 + more > width) {
                        text_add(out, "\n%*s", PARTS_INDENT, "");
                        columns = 0;
                }
                text_add(out, "%s%s", columns > 0 ? " " : "", shown);
                columns += more + (columns > 0);
        }
        text_add(out, "\n");
}

void parts_whole(struct text *out, const char *label, const char *words) {
        add_label(out, label);
        text_add(out, "%s\n", words);
}

char *parts_percent(char out[static NUMBER_TEXT_MAX], double share) {
        uint64_t hundredths = share <= 0 ? 0 : share < 1e12 ? (uint64_t) (share * 1e4 + 0.5) : ABSENT / 2;

        if (hundredths == 0)
                snprintf(out, NUMBER_TEXT_MAX, "%s", share > 0 ? "<0.01%" : "0%");
        else if (hundredths >= 995 || hundredths % 100 == 0)
                snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 "%%", (hundredths + 50) / 100);
        else if (hundredths >= 100 || hundredths % 10 == 0)
                snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%%", (hundredths + 5) / 100,
                         (hundredths + 5) % 100 / 10);
        else
                snprintf(out, NUMBER_TEXT_MAX, "0.%02" PRIu64 "%%", hundredths);
        return out;
}

uint64_t parts_used_milli(uint64_t used_ns, uint64_t window_ns) {
        if (!is_known(used_ns) || !is_known(window_ns) || window_ns == 0)
                return ABSENT;
        return (uint64_t) ((double) used_ns / (double) window_ns * 1000 + 0.5);
}

/* A Kubernetes container has its namespace, Pod and name; the Pod's name tells most, so it is cut last. */
static bool subject_of_pod(char *out, size_t room, const struct report_identity *id, size_t max_columns) {
        enum { NAMESPACE, POD, CONTAINER, PART_COUNT };
        static const size_t least[PART_COUNT] = {12, 20, 16};
        static const int order[PART_COUNT] = {CONTAINER, NAMESPACE, POD};
        char part[PART_COUNT][PARTS_NAME_MAX], whole[PARTS_NAME_MAX];
        bool cut = false;
        parts_name(part[NAMESPACE], PARTS_NAME_MAX, id->namespace, PARTS_ALL, PARTS_ALL);
        parts_name(part[POD], PARTS_NAME_MAX, id->pod, PARTS_ALL, PARTS_ALL);
        const char *container = id->container ? id->container : id->container_id;
        parts_name(part[CONTAINER], PARTS_NAME_MAX, container, id->container ? PARTS_ALL : 12, PARTS_ALL);

        size_t fixed = (part[NAMESPACE][0] ? 1 : 0) + (part[CONTAINER][0] ? sizeof(" container=") - 1 : 0);
        for (size_t i = 0; i < PART_COUNT; i++) {
                size_t total = fixed;
                for (size_t k = 0; k < PART_COUNT; k++)
                        total += text_columns(part[k]);
                size_t has = text_columns(part[order[i]]);
                if (total <= max_columns || has <= least[order[i]])
                        continue;
                size_t over = total - max_columns;
                size_t want = has > over + least[order[i]] ? has - over : least[order[i]];
                memcpy(whole, part[order[i]], sizeof(whole));
                parts_shorten(part[order[i]], PARTS_NAME_MAX, whole, want);
                cut = true;
        }
        snprintf(out, room, "%s%s%s%s%s", part[NAMESPACE], part[NAMESPACE][0] ? "/" : "", part[POD],
                 part[CONTAINER][0] ? " container=" : "", part[CONTAINER]);
        return cut;
}

bool parts_subject(char *out, size_t room, const struct report_identity *identity, size_t max_columns) {
        char name[PARTS_NAME_MAX], short_name[PARTS_NAME_MAX];
        const char *key, *value;
        size_t length = PARTS_ALL;
        if (identity->pod)
                return subject_of_pod(out, room, identity, max_columns);
        if (identity->container) {
                key = "container=", value = identity->container;
        } else if (identity->container_id) {
                key = "container=", value = identity->container_id,
                length = 12; /* as "docker ps" shows it */
        } else if (identity->cgroup) {
                key = "cgroup=", value = identity->cgroup;
        } else {
                if (identity->process_id > 0)
                        snprintf(out, room, "pid=%" PRIu32, identity->process_id);
                else
                        snprintf(out, room, "container=unknown");
                return false;
        }
        size_t left = max_columns > strlen(key) ? max_columns - strlen(key) : 0;
        parts_name(name, sizeof(name), value, length, PARTS_ALL);
        parts_shorten(short_name, sizeof(short_name), name, left);
        snprintf(out, room, "%s%s", key, short_name);
        return strcmp(name, short_name) != 0;
}

const char *parts_limit_level(enum limit_level level) {
        static const char *const names[LIMIT_LEVEL_COUNT] = {
                        [LIMIT_CONTAINER] = "container",
                        [LIMIT_POD] = "pod",
                        [LIMIT_ANCESTOR] = "ancestor",
        };
        return (size_t) level < ELEMENTS(names) ? names[level] : "ancestor";
}
