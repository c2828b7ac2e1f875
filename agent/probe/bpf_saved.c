/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maps.json: one tick's harvest as a file, for a bug report, a test or a replay. A record is an object of its fields by name; fields that
 * are zero are left out. What comes back is foreign text: each number is checked, an unknown name is an error with its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "../base/number.h"
#include "bpf_fields.h"
#include "bpf_internal.h"

#define MAPS_FILE "maps.json"
#define MAPS_BYTES_MAX ((size_t) 128 << 20)
#define EXACT_DOUBLE (UINT64_C(1) << 53)

static uint64_t load(const unsigned char *at, size_t width) {
        uint64_t value = 0;

        memcpy(&value, at, width); /* both architectures are little-endian */
        return value;
}

/* JSON numbers are doubles: an address, or "all ones", is written as text. */
static cJSON *number_of(uint64_t value) {
        char text[24];

        if (value < EXACT_DOUBLE)
                return cJSON_CreateNumber((double) value);
        snprintf(text, sizeof(text), "%llu", (unsigned long long) value);
        return cJSON_CreateString(text);
}

/* Names may hold any byte: each is one character of U+0000..U+00FF. */
static cJSON *text_of(const unsigned char *bytes, size_t count) {
        char out[2 * GROUP_NAME_BYTES + 1];
        size_t n = 0;

        for (size_t i = 0; i < count && bytes[i]; i++) {
                if (bytes[i] < 0x80) {
                        out[n++] = (char) bytes[i];
                        continue;
                }
                out[n++] = (char) (0xc0 | bytes[i] >> 6);
                out[n++] = (char) (0x80 | (bytes[i] & 0x3f));
        }
        out[n] = '\0';
        return cJSON_CreateString(out);
}

static cJSON *field_to_json(const struct record_field *field, const unsigned char *record) {
        const unsigned char *at = record + field->offset;
        size_t count = field->count;
        cJSON *array;

        if (field->width == 1)
                return text_of(at, count);
        if (count == 1)
                return number_of(load(at, field->width));
        while (count > 0 && load(at + (count - 1) * field->width, field->width) == 0)
                count--;
        array = cJSON_CreateArray();
        for (size_t i = 0; i < count && array; i++)
                cJSON_AddItemToArray(array, number_of(load(at + i * field->width, field->width)));
        return array;
}

static bool field_is_zero(const struct record_field *field, const unsigned char *record) {
        for (size_t i = 0; i < (size_t) field->width * field->count; i++)
                if (record[field->offset + i])
                        return false;
        return true;
}

static cJSON *record_to_json(const struct record_kind *kind, const void *record) {
        cJSON *object = cJSON_CreateObject();

        for (size_t i = 0; i < kind->fields_count && object; i++)
                if (!field_is_zero(&kind->fields[i], record))
                        cJSON_AddItemToObject(object, kind->fields[i].name,
                                              field_to_json(&kind->fields[i], record));
        return object;
}

static cJSON *drained_to_json(const struct drained *drained) {
        cJSON *root = cJSON_CreateObject(), *list;

        cJSON_AddItemToObject(root, "from_ns", number_of(drained->from_ns));
        cJSON_AddItemToObject(root, "now_ns", number_of(drained->now_ns));
        cJSON_AddItemToObject(root, "clock_offset_ns", number_of(drained->clock_offset_ns));
        cJSON_AddItemToObject(root, "window", number_of(drained->window));
        cJSON_AddItemToObject(root, "clock_source", number_of(drained->clock_source));
        list = cJSON_AddArrayToObject(root, "lost");
        for (size_t i = 0; i < LOST_AT_COUNT; i++)
                cJSON_AddItemToArray(list, number_of(drained->lost[i]));
        for (size_t k = 0; k < record_kinds_count; k++) {
                list = cJSON_AddArrayToObject(root, record_kinds[k].name);
                DRAINED_EACH(drained, head)
                if (head->kind == record_kinds[k].kind)
                        cJSON_AddItemToArray(list, record_to_json(&record_kinds[k], head));
        }
        list = cJSON_AddArrayToObject(root, record_event.name);
        for (size_t i = 0; i < drained->events_count; i++)
                cJSON_AddItemToArray(list, record_to_json(&record_event, &drained->events[i]));
        return root;
}

int bpf_drained_save(const struct drained *drained, const char *directory, struct why *why) {
        cleanup_free char *text = NULL;
        cleanup_file FILE *file = NULL;
        char path[PATH_MAX];
        cJSON *root = drained_to_json(drained);

        text = cJSON_Print(root);
        cJSON_Delete(root);
        if (!text)
                return -ENOMEM;
        if (snprintf(path, sizeof(path), "%s/" MAPS_FILE, directory) >= (int) sizeof(path))
                return why_set(why, -ENAMETOOLONG, "capture folder %s: the path is too long", directory);
        file = fopen(path, "we");
        if (!file || fputs(text, file) < 0 || fflush(file) != 0)
                return why_set(why, -errno, "cannot write %s: %s", path, strerror(errno));
        return 0;
}

static int value_from_json(const cJSON *item, unsigned width, uint64_t *ret_value) {
        uint64_t value, most = width == 8 ? UINT64_MAX : (UINT64_C(1) << width * 8) - 1;

        if (cJSON_IsString(item)) {
                int r = number_parse_u64(item->valuestring, &value);
                if (r < 0)
                        return r;
        } else if (cJSON_IsNumber(item) && item->valuedouble >= 0 &&
                   item->valuedouble < (double) EXACT_DOUBLE &&
                   item->valuedouble == (double) (uint64_t) item->valuedouble) {
                value = (uint64_t) item->valuedouble;
        } else {
                return -EINVAL;
        }
        if (value > most)
                return -ERANGE;
        *ret_value = value;
        return 0;
}

static int text_from_json(const cJSON *item, unsigned char *out, size_t room) {
        const unsigned char *at;
        size_t n = 0;

        if (!cJSON_IsString(item))
                return -EINVAL;
        for (at = (const unsigned char *) item->valuestring; *at; at++) {
                unsigned char byte = *at;

                if (byte >= 0x80) {
                        if ((byte != 0xc2 && byte != 0xc3) || (at[1] & 0xc0) != 0x80)
                                return -EILSEQ;
                        byte = (unsigned char) ((byte & 3) << 6 | (*++at & 0x3f));
                }
                if (n + 1 >= room)
                        return -ENAMETOOLONG;
                out[n++] = byte;
        }
        return 0;
}

static int field_from_json(const struct record_field *field, const cJSON *item, unsigned char *record) {
        unsigned char *at = record + field->offset;
        const cJSON *element;
        uint64_t value;
        size_t i = 0;
        int r;

        if (field->width == 1)
                return text_from_json(item, at, field->count);
        if (field->count == 1) {
                r = value_from_json(item, field->width, &value);
                if (r == 0)
                        memcpy(at, &value, field->width);
                return r;
        }
        if (!cJSON_IsArray(item))
                return -EINVAL;
        cJSON_ArrayForEach(element, item) {
                if (i >= field->count)
                        return -E2BIG;
                r = value_from_json(element, field->width, &value);
                if (r < 0)
                        return r;
                memcpy(at + i++ * field->width, &value, field->width);
        }
        return 0;
}

static int record_from_json(const struct record_kind *kind, const cJSON *object, size_t index, void *record,
                            struct why *why) {
        const cJSON *item;

        memset(record, 0, kind->bytes);
        if (!cJSON_IsObject(object))
                return why_set(why, -EBADMSG, "%s: %s[%zu] is not an object", MAPS_FILE, kind->name, index);
        cJSON_ArrayForEach(item, object) {
                const struct record_field *field = NULL;

                for (size_t i = 0; i < kind->fields_count && !field; i++)
                        if (strcmp(kind->fields[i].name, item->string) == 0)
                                field = &kind->fields[i];
                if (!field)
                        return why_set(why, -EBADMSG, "%s: %s[%zu] has an unknown field", MAPS_FILE,
                                       kind->name, index);
                if (field_from_json(field, item, record) < 0)
                        return why_set(why, -EBADMSG, "%s: %s[%zu].%s is not what it should be", MAPS_FILE,
                                       kind->name, index, field->name);
        }
        return 0;
}

static int records_from_json(const struct record_kind *kind, const cJSON *root, struct drained *drained,
                             struct why *why) {
        union {
                struct drain_head head;
                struct drain_thread thread;
                struct drain_level level;
                struct drain_fold fold;
                struct drain_container container;
                struct drain_queue queue;
                struct stall_event event;
        } record;
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, kind->name), *object;
        size_t index = 0;

        if (!cJSON_IsArray(list))
                return why_set(why, -EBADMSG, "%s: %s is missing or not a list", MAPS_FILE, kind->name);
        cJSON_ArrayForEach(object, list) {
                int r = record_from_json(kind, object, index++, &record, why);

                if (r < 0)
                        return r;
                if (kind == &record_event) {
                        r = drained_add_event(drained, &record.event);
                } else {
                        record.head = (struct drain_head){.kind = kind->kind, .bytes = kind->bytes};
                        r = drained_add(drained, &record, kind->bytes);
                }
                if (r < 0)
                        return why_set(why, r, "%s: %s has too many records", MAPS_FILE, kind->name);
        }
        return 0;
}

static int head_from_json(const cJSON *root, struct drained *drained, struct why *why) {
        const struct {
                const char *name;
                unsigned width;
                void *at;
        } numbers[] = {
                        {"from_ns", 8, &drained->from_ns},
                        {"now_ns", 8, &drained->now_ns},
                        {"clock_offset_ns", 8, &drained->clock_offset_ns},
                        {"window", 4, &drained->window},
                        {"clock_source", 4, &drained->clock_source},
        };
        const cJSON *lost = cJSON_GetObjectItemCaseSensitive(root, "lost");
        uint64_t value;

        for (size_t i = 0; i < ELEMENTS(numbers); i++) {
                if (value_from_json(cJSON_GetObjectItemCaseSensitive(root, numbers[i].name),
                                    numbers[i].width, &value) < 0)
                        return why_set(why, -EBADMSG, "%s: %s is missing or not a number", MAPS_FILE,
                                       numbers[i].name);
                memcpy(numbers[i].at, &value, numbers[i].width);
        }
        for (int i = 0; i < LOST_AT_COUNT; i++)
                if (value_from_json(cJSON_GetArrayItem(lost, i), 8, &drained->lost[i]) < 0)
                        return why_set(why, -EBADMSG, "%s: lost[%d] is missing or not a number", MAPS_FILE,
                                       i);
        return 0;
}

int bpf_drained_parse(const char *text, size_t length, struct drained **ret_drained, struct why *why) {
        cleanup_drained struct drained *drained = drained_new();
        const char *end = text;
        cJSON *json;
        int r;

        if (!drained)
                return -ENOMEM;
        json = cJSON_ParseWithLengthOpts(text, length, &end, false);
        if (!json)
                return why_set(why, -EBADMSG, "%s: byte %zu: this is not JSON, or it is cut off", MAPS_FILE,
                               end ? (size_t) (end - text) : 0);
        r = head_from_json(json, drained, why);
        for (size_t k = 0; k < record_kinds_count && r == 0; k++)
                r = records_from_json(&record_kinds[k], json, drained, why);
        if (r == 0)
                r = records_from_json(&record_event, json, drained, why);
        cJSON_Delete(json);
        if (r < 0)
                return r;
        *ret_drained = take_ptr(drained);
        return 0;
}

int bpf_drained_load(struct probe_backend *base, struct root *root, struct drained **ret_drained,
                     struct why *why) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = root_read(root, "/" MAPS_FILE, MAPS_BYTES_MAX, &text, &length);

        (void) base;
        if (r < 0)
                return why_set(why, r, "%s: %s", MAPS_FILE, strerror(-r));
        return bpf_drained_parse(text, length, ret_drained, why);
}
