/* SPDX-License-Identifier: Apache-2.0 */
#include "json_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text_parts.h"

static cJSON *note(struct build *build, cJSON *item) {
        if (!item)
                build->failed = true;
        return item;
}

cJSON *build_object(struct build *build) {
        return note(build, cJSON_CreateObject());
}

cJSON *build_array(struct build *build) {
        return note(build, cJSON_CreateArray());
}

void build_attach(struct build *build, cJSON *parent, const char *key, cJSON *child) {
        if (build->failed || !child || (cJSON_IsObject(child) && !child->child) ||
            !cJSON_AddItemToObjectCS(parent, key, child))
                cJSON_Delete(child);
}

void build_append(struct build *build, cJSON *array, cJSON *child) {
        if (build->failed || !cJSON_AddItemToArray(array, child))
                cJSON_Delete(child);
}

/*
 * Numbers are written by us: cJSON keeps them as double and would print 10^15 ns (eleven days) as "1e+15", and with the decimal point of
 * the locale.
 */
static void __attribute__((format(printf, 4, 5)))
add_raw(struct build *build, cJSON *parent, const char *key, const char *format, ...) {
        char digits[48];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(digits, sizeof(digits), format, arguments);
        va_end(arguments);
        build_attach(build, parent, key, note(build, cJSON_CreateRaw(digits)));
}

void build_u64(struct build *build, cJSON *parent, const char *key, uint64_t value) {
        if (is_known(value))
                add_raw(build, parent, key, "%" PRIu64, value);
}

void build_append_u64(struct build *build, cJSON *array, uint64_t value) {
        char digits[24];
        snprintf(digits, sizeof(digits), "%" PRIu64, value);
        build_append(build, array, note(build, cJSON_CreateRaw(digits)));
}

void build_id(struct build *build, cJSON *parent, const char *key, uint32_t value) {
        if (value > 0)
                add_raw(build, parent, key, "%" PRIu32, value);
}

void build_bool(struct build *build, cJSON *parent, const char *key, bool value) {
        build_attach(build, parent, key, note(build, cJSON_CreateBool(value)));
}

/* @value parts of 10^@digits, without trailing zeros. */
static void add_decimal(struct build *build, cJSON *parent, const char *key, uint64_t value,
                        unsigned digits) {
        uint64_t scale = 1;
        for (unsigned i = 0; i < digits; i++)
                scale *= 10;
        while (digits > 0 && value % 10 == 0) {
                value /= 10;
                scale /= 10;
                digits--;
        }
        if (digits == 0)
                add_raw(build, parent, key, "%" PRIu64, value);
        else
                add_raw(build, parent, key, "%" PRIu64 ".%0*" PRIu64, value / scale, (int) digits,
                        value % scale);
}

void build_milli(struct build *build, cJSON *parent, const char *key, uint64_t milli) {
        if (is_known(milli))
                add_decimal(build, parent, key, milli, 3);
}

void build_fraction(struct build *build, cJSON *parent, const char *key, double value) {
        if (value >= 0 && value < 1e12) /* false for NaN as well */
                add_decimal(build, parent, key, (uint64_t) (value * 1e6 + 0.5), 6);
}

void build_name(struct build *build, cJSON *parent, const char *key, const char *name, size_t length) {
        char escaped[PARTS_NAME_MAX];
        if (name)
                build_attach(build, parent, key,
                             note(build, cJSON_CreateString(parts_name(escaped, sizeof(escaped), name,
                                                                       length, PARTS_ALL))));
}

void build_sentence(struct build *build, cJSON *parent, const char *key, const char *sentence) {
        char escaped[PARTS_SENTENCE_MAX];
        if (sentence)
                build_attach(build, parent, key,
                             note(build,
                                  cJSON_CreateString(parts_sentence(escaped, sizeof(escaped), sentence))));
}

void build_time(struct build *build, cJSON *parent, const char *key, uint64_t real_ns) {
        char time[CLOCK_TEXT_MAX];
        build_sentence(build, parent, key, clock_format(time, real_ns, 3));
}

void build_head(struct build *build, cJSON *root, const char *type, uint64_t real_ns, uint64_t window_ns,
                const char *version) {
        build_u64(build, root, "schema", REPORT_SCHEMA);
        build_sentence(build, root, "type", type);
        build_time(build, root, "time", real_ns);
        build_u64(build, root, "window_ns", window_ns);
        build_sentence(build, root, "version", version);
}

void build_identity(struct build *build, cJSON *root, const struct report_identity *identity) {
        build_name(build, root, "node", identity->node, PARTS_ALL);
        build_name(build, root, "namespace", identity->namespace, PARTS_ALL);
        build_name(build, root, "pod", identity->pod, PARTS_ALL);
        build_name(build, root, "pod_uid", identity->pod_uid, PARTS_ALL);
        build_name(build, root, "container", identity->container, PARTS_ALL);
        build_name(build, root, "container_id", identity->container_id, PARTS_ALL);
        build_name(build, root, "cgroup", identity->cgroup, PARTS_ALL);
}

int build_print(struct build *build, cJSON *root, char *line) {
        /* Printing in place allocates nothing, so its only failure is a line that is too long. cJSON asks for five bytes more
         * than it writes. */
        char printed[REPORT_JSON_MAX + 8];
        bool fits = !build->failed && cJSON_PrintPreallocated(root, printed, sizeof(printed), 0);
        cJSON_Delete(root);
        if (build->failed)
                return -ENOMEM;
        size_t length = fits ? strlen(printed) : PARTS_ALL;
        if (length > REPORT_JSON_MAX - 1)
                return -EMSGSIZE;
        memcpy(line, printed, length);
        line[length] = '\n';
        line[length + 1] = '\0';
        return 0;
}
