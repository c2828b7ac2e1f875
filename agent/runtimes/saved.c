/* SPDX-License-Identifier: Apache-2.0 */
#include "saved.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <cjson/cJSON.h>

#define SAVED_BYTES_MAX (1u << 20)
#define PATH_BYTES 64
#define NUMBER_LIMIT (UINT64_C(1) << 53) /* a number of JSON is a double */

enum field_kind { FIELD_TEXT, FIELD_U64, FIELD_U32, FIELD_ENUM, FIELD_BOOL };

static const struct row_field {
        const char *name;
        enum field_kind kind;
        size_t offset;
        uint64_t most; /* of an enum */
} fields[] = {
#define FIELD(name, kind, most)                                                                             \
        { #name, kind, offsetof(struct parallelism, name), most }
                FIELD(runtime, FIELD_TEXT, 0),
                FIELD(program, FIELD_TEXT, 0),
                FIELD(version, FIELD_TEXT, 0),
                FIELD(host_pid, FIELD_U32, UINT32_MAX),
                FIELD(pid, FIELD_U32, UINT32_MAX),
                FIELD(setting, FIELD_TEXT, 0),
                FIELD(effective, FIELD_U64, NUMBER_LIMIT),
                FIELD(configured, FIELD_U64, NUMBER_LIMIT),
                FIELD(source, FIELD_ENUM, FROM_COUNT - 1),
                FIELD(source_detail, FIELD_TEXT, 0),
                FIELD(aware, FIELD_ENUM, AWARENESS_QUOTA),
                FIELD(follows, FIELD_BOOL, 1),
                FIELD(rounding, FIELD_ENUM, ROUND_NEVER),
                FIELD(unit, FIELD_ENUM, UNIT_PROCESSES),
                FIELD(is_blocking, FIELD_BOOL, 1),
                FIELD(spins, FIELD_BOOL, 1),
                FIELD(affinity, FIELD_U32, UINT32_MAX),
                FIELD(memory_bytes, FIELD_U64, NUMBER_LIMIT),
                FIELD(threads_name, FIELD_TEXT, 0),
                FIELD(active, FIELD_U64, NUMBER_LIMIT),
                FIELD(leaving, FIELD_U64, NUMBER_LIMIT),
                FIELD(how, FIELD_TEXT, 0),
                FIELD(unreadable, FIELD_TEXT, 0),
#undef FIELD
};
_Static_assert(sizeof(enum parallelism_source) == sizeof(uint32_t), "FIELD_ENUM is of 32 bits");

static void path_of(char out[static PATH_BYTES], uint64_t container) {
        (void) snprintf(out, PATH_BYTES, "/runtimes/%" PRIu64 ".json", container);
}

static uint64_t number_of(const struct row_field *field, const void *at) {
        uint32_t narrow;
        uint64_t wide;

        switch (field->kind) {
        case FIELD_U64:
                memcpy(&wide, at, sizeof(wide));
                return wide;
        case FIELD_BOOL:
                return *(const bool *) at;
        case FIELD_U32:
        case FIELD_ENUM:
        case FIELD_TEXT:
                break;
        }
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
}

static cJSON *row_to_json(const struct parallelism *row) {
        cJSON *object = cJSON_CreateObject();

        for (size_t i = 0; i < ELEMENTS(fields) && object; i++) {
                const void *at = (const char *) row + fields[i].offset;
                const char *text = NULL;

                if (fields[i].kind == FIELD_TEXT) {
                        memcpy(&text, at, sizeof(text));
                        if (text)
                                cJSON_AddStringToObject(object, fields[i].name, text);
                } else if (number_of(&fields[i], at) <= NUMBER_LIMIT) {
                        cJSON_AddNumberToObject(object, fields[i].name, (double) number_of(&fields[i], at));
                }
        }
        return object;
}

int parallelism_save(struct root *root, uint64_t container, const struct parallelism_list *list) {
        cJSON *saved = cJSON_CreateObject(), *rows;
        cleanup_free char *text = NULL;
        char path[PATH_BYTES];

        cJSON_AddNumberToObject(saved, "omitted", (double) list->omitted);
        rows = cJSON_AddArrayToObject(saved, "rows");
        for (size_t i = 0; i < list->count; i++)
                cJSON_AddItemToArray(rows, row_to_json(&list->rows[i]));
        text = cJSON_Print(saved);
        cJSON_Delete(saved);
        if (!text)
                return -ENOMEM;
        path_of(path, container);
        root_capture_file(root, path, text, strlen(text));
        return 0;
}

static bool is_number(const cJSON *item, uint64_t most, uint64_t *ret_number) {
        if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > (double) NUMBER_LIMIT ||
            item->valuedouble != (double) (uint64_t) item->valuedouble)
                return false;
        *ret_number = (uint64_t) item->valuedouble;
        return *ret_number <= most;
}

/* 0; -EINVAL: not what it should be; -ENOMEM. */
static int field_from_json(const struct row_field *field, const cJSON *item, struct arena *arena, void *at) {
        uint64_t number;
        uint32_t narrow;
        const char *text;

        if (field->kind == FIELD_TEXT) {
                if (!cJSON_IsString(item))
                        return -EINVAL;
                text = arena_string(arena, item->valuestring);
                memcpy(at, &text, sizeof(text));
                return text ? 0 : -ENOMEM;
        }
        if (!is_number(item, field->most, &number))
                return -EINVAL;
        narrow = (uint32_t) number;
        if (field->kind == FIELD_U64)
                memcpy(at, &number, sizeof(number));
        else if (field->kind == FIELD_BOOL)
                *(bool *) at = number == 1;
        else
                memcpy(at, &narrow, sizeof(narrow));
        return 0;
}

static int row_from_json(const cJSON *object, const char *path, size_t index, struct arena *arena,
                         struct parallelism *row, struct why *why) {
        const struct process nobody = {0};

        *row = parallelism_of(NULL, &nobody);
        for (size_t i = 0; i < ELEMENTS(fields); i++) {
                const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields[i].name);
                int r = item ? field_from_json(&fields[i], item, arena, (char *) row + fields[i].offset) : 0;

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return why_set(why, -EBADMSG, "%s: rows[%zu].%s is not what it should be", path,
                                       index, fields[i].name);
        }
        if (!row->runtime || !row->setting)
                return why_set(why, -EBADMSG, "%s: rows[%zu] names no runtime or no setting", path, index);
        return 0;
}

static int list_from_json(const cJSON *saved, const char *path, struct arena *arena,
                          struct parallelism_list *list, struct why *why) {
        const cJSON *rows = cJSON_GetObjectItemCaseSensitive(saved, "rows"), *object;
        struct parallelism *made;

        if (!cJSON_IsArray(rows) ||
            !is_number(cJSON_GetObjectItemCaseSensitive(saved, "omitted"), NUMBER_LIMIT, &list->omitted))
                return why_set(why, -EBADMSG, "%s: rows or omitted is missing", path);
        if (cJSON_GetArraySize(rows) > (int) PARALLELISM_MAX)
                return why_set(why, -EBADMSG, "%s: has more than %u rows", path, PARALLELISM_MAX);
        made = arena_array(arena, (size_t) cJSON_GetArraySize(rows), sizeof(*made));
        if (!made)
                return -ENOMEM;
        cJSON_ArrayForEach(object, rows) {
                int r = row_from_json(object, path, list->count, arena, &made[list->count], why);

                if (r < 0)
                        return r;
                list->count++;
        }
        list->rows = made;
        return 0;
}

int parallelism_load(struct root *root, uint64_t container, struct arena *arena,
                     struct parallelism_list *ret_list, struct why *why) {
        struct parallelism_list list = {0};
        cleanup_free char *text = NULL;
        const char *end = NULL;
        char path[PATH_BYTES];
        size_t length;
        cJSON *saved;
        int r;

        path_of(path, container);
        r = root_read(root, path, SAVED_BYTES_MAX, &text, &length);
        if (r < 0)
                return r == -ENOENT ? r : why_set(why, r, "%s: %s", path, strerror(-r));
        saved = cJSON_ParseWithLengthOpts(text, length, &end, false);
        if (!saved)
                return why_set(why, -EBADMSG, "%s: not JSON at byte %zu", path,
                               end ? (size_t) (end - text) : 0);
        r = list_from_json(saved, path, arena, &list, why);
        cJSON_Delete(saved);
        if (r >= 0)
                *ret_list = list;
        return r;
}
