/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest's form. Times are decimal strings: JSON readers keep 53 bits of a number. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/number.h"
#include "capture.h"

#define CGROUP_MAX 4096u
#define TICK_NUMBER_MAX 999999u
#define THREADS_MAX 1048576u

static const char *const scope_names[TARGET_SCOPE_COUNT] = {
                [TARGET_SELF] = "self", [TARGET_POD] = "pod",       [TARGET_NODE] = "node",
                [TARGET_PID] = "pid",   [TARGET_CGROUP] = "cgroup",
};

static void delete_json(cJSON **json) {
        cJSON_Delete(*json);
}
#define cleanup_json __attribute__((cleanup(delete_json)))

void capture_manifest_release(struct capture_manifest *manifest) {
        free(manifest->cgroup);
        free(manifest->ticks);
        *manifest = (struct capture_manifest){.method = PROBE_METHOD_COUNT};
}

/* ---- parsing: the first failure is kept in `why`, each reader returns it ---- */

static int wrong(struct why *why, const char *field, const char *must) {
        return why_set(why, -EINVAL, "field %s: must be %s", field, must);
}

/* NULL: not a string. */
static const char *string_of(const cJSON *object, const char *field) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);

        return cJSON_IsString(item) ? item->valuestring : NULL;
}

static int read_text(const cJSON *object, const char *field, char *ret_text, size_t room, struct why *why) {
        const char *value = string_of(object, field);

        if (!value)
                return wrong(why, field, "a string");
        size_t length = strlen(value);
        if (length >= room)
                return why_set(why, -EINVAL, "field %s: longer than %zu bytes", field, room - 1);
        memcpy(ret_text, value, length + 1);
        return 0;
}

static int read_bool(const cJSON *object, const char *field, bool *ret_value, struct why *why) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);

        if (!cJSON_IsBool(item))
                return wrong(why, field, "true or false");
        *ret_value = cJSON_IsTrue(item);
        return 0;
}

static int read_number(const cJSON *object, const char *field, int64_t min, int64_t max, int64_t *ret_value,
                       struct why *why) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);

        /* The range is tested before the conversion, which is undefined for what does not fit. */
        if (!cJSON_IsNumber(item) ||
            !(item->valuedouble >= (double) min && item->valuedouble <= (double) max) ||
            (double) (int64_t) item->valuedouble != item->valuedouble)
                return why_set(why, -EINVAL, "field %s: must be a whole number from %" PRId64 " to %" PRId64,
                               field, min, max);
        *ret_value = (int64_t) item->valuedouble;
        return 0;
}

/* Nanoseconds that stay clear of the end of the range: sums of two must not overflow. */
static int read_ns(const cJSON *object, const char *field, uint64_t *ret_ns, struct why *why) {
        const char *text = string_of(object, field);
        uint64_t ns;

        if (!text || number_parse_u64(text, &ns) < 0 || ns > INT64_MAX)
                return wrong(why, field,
                             "nanoseconds as a string of decimal digits, at most 9223372036854775807");
        *ret_ns = ns;
        return 0;
}

static int parse_target(const cJSON *json, struct capture_manifest *manifest, struct why *why) {
        const cJSON *target = cJSON_GetObjectItemCaseSensitive(json, "target");
        const char *text = string_of(target, "scope");
        unsigned scope = 0;
        int64_t pid;

        if (!cJSON_IsObject(target))
                return wrong(why, "target", "an object");
        while (text && scope < TARGET_SCOPE_COUNT && strcmp(scope_names[scope], text) != 0)
                scope++;
        if (!text || scope == TARGET_SCOPE_COUNT)
                return wrong(why, "target.scope", "self, pod, node, pid or cgroup");
        manifest->target.scope = (enum target_scope) scope;

        if (manifest->target.scope == TARGET_PID) {
                int r = read_number(target, "pid", 1, INT32_MAX, &pid, why);
                if (r < 0)
                        return r;
                manifest->target.pid = (pid_t) pid;
        } else if (manifest->target.scope == TARGET_CGROUP) {
                text = string_of(target, "cgroup");
                if (!text)
                        return wrong(why, "target.cgroup", "a string");
                if (strlen(text) > CGROUP_MAX)
                        return why_set(why, -EINVAL, "field target.cgroup: longer than %u bytes",
                                       CGROUP_MAX);
                manifest->cgroup = strdup(text);
                if (!manifest->cgroup)
                        return why_set(why, -ENOMEM, "out of memory");
                manifest->target.cgroup = manifest->cgroup;
        }
        return 0;
}

static int parse_trials(const cJSON *json, struct capture_manifest *manifest, struct why *why) {
        const cJSON *trials = cJSON_GetObjectItemCaseSensitive(json, "trials");

        if (!cJSON_IsObject(trials))
                return wrong(why, "trials", "an object");
        for (unsigned i = 0; i < PROBE_METHOD_COUNT; i++) {
                const char *name = probe_method_name((enum probe_method) i);
                const cJSON *item = cJSON_GetObjectItemCaseSensitive(trials, name);
                struct probe_trial *trial = &manifest->trials[i];
                int64_t error;

                if (!cJSON_IsObject(item))
                        return why_set(why, -EINVAL, "field trials.%s: must be an object", name);
                int r = read_bool(item, "tried", &trial->tried, why);
                if (r == 0)
                        r = read_number(item, "error", -4095, 0, &error, why);
                if (r == 0)
                        r = read_text(item, "text", trial->text, sizeof(trial->text), why);
                if (r < 0)
                        return why_wrap(why, r, "trials.%s", name);
                trial->error = (int) error;
        }
        return 0;
}

static int parse_tick(const cJSON *item, const struct capture_tick *before, struct capture_tick *ret_tick,
                      struct why *why) {
        struct capture_tick tick;
        int64_t number;

        if (!cJSON_IsObject(item))
                return why_set(why, -EINVAL, "must be an object");
        int r = read_number(item, "tick", before ? (int64_t) before->number + 1 : 0, TICK_NUMBER_MAX,
                            &number, why);
        if (r == 0)
                r = read_ns(item, "mono_ns", &tick.at.mono_ns, why);
        if (r == 0)
                r = read_ns(item, "real_ns", &tick.at.real_ns, why);
        if (r < 0)
                return r;
        if (before && tick.at.mono_ns <= before->at.mono_ns)
                return wrong(why, "mono_ns", "later than in the tick before");
        tick.number = (unsigned) number;
        *ret_tick = tick;
        return 0;
}

static int parse_ticks(const cJSON *json, struct capture_manifest *manifest, struct why *why) {
        const cJSON *ticks = cJSON_GetObjectItemCaseSensitive(json, "ticks"), *item;
        size_t i = 0;

        if (!cJSON_IsArray(ticks))
                return wrong(why, "ticks", "an array");
        for (item = ticks->child; item && i <= CAPTURE_TICKS_MAX; item = item->next)
                i++;
        if (i > CAPTURE_TICKS_MAX)
                return why_set(why, -EINVAL, "field ticks: more than %u", CAPTURE_TICKS_MAX);
        manifest->ticks = calloc(i + 1, sizeof(*manifest->ticks));
        if (!manifest->ticks)
                return why_set(why, -ENOMEM, "out of memory");

        i = 0;
        for (item = ticks->child; item; item = item->next, i++) {
                int r = parse_tick(item, i > 0 ? &manifest->ticks[i - 1] : NULL, &manifest->ticks[i], why);
                if (r < 0)
                        return why_wrap(why, r, "ticks[%zu]", i);
        }
        manifest->ticks_count = i;
        return 0;
}

static int parse_fields(const cJSON *json, struct capture_manifest *manifest, struct why *why) {
        int64_t schema, threads_max, cpus;
        const char *method = string_of(json, "method");

        if (!cJSON_IsObject(json))
                return why_set(why, -EINVAL, "must be a JSON object");
        int r = read_number(json, "schema", 1, INT32_MAX, &schema, why);
        if (r == 0 && schema != CAPTURE_SCHEMA)
                return why_set(why, -EINVAL, "field schema: is %" PRId64 ", this version reads %d", schema,
                               CAPTURE_SCHEMA);
        if (r == 0)
                r = read_text(json, "version", manifest->version, sizeof(manifest->version), why);
        if (r == 0 && (!method || probe_method_parse(method, &manifest->method) < 0))
                r = wrong(why, "method", "hooks, tracepoints or files");
        if (r == 0)
                r = read_bool(json, "forced", &manifest->forced, why);
        if (r == 0)
                r = read_bool(json, "exact", &manifest->exact, why);
        if (r == 0)
                r = read_ns(json, "warn_stall_ns", &manifest->warn_stall_ns, why);
        if (r == 0)
                r = read_number(json, "threads_max", 1, THREADS_MAX, &threads_max, why);
        if (r == 0)
                r = read_text(json, "kernel", manifest->kernel, sizeof(manifest->kernel), why);
        if (r == 0)
                r = read_text(json, "hostname", manifest->hostname, sizeof(manifest->hostname), why);
        if (r == 0)
                r = read_number(json, "cpus_online", 0, 65536, &cpus, why);
        if (r < 0)
                return r;
        manifest->threads_max = (size_t) threads_max;
        manifest->cpus_online = (unsigned) cpus;
        r = parse_target(json, manifest, why);
        if (r == 0)
                r = parse_trials(json, manifest, why);
        if (r == 0)
                r = parse_ticks(json, manifest, why);
        return r;
}

static size_t line_of(const char *data, const char *position) {
        size_t line = 1;

        for (const char *p = data; p < position; p++)
                line += *p == '\n';
        return line;
}

int capture_manifest_parse(const char *data, size_t length, struct capture_manifest *ret_manifest,
                           struct why *why) {
        cleanup_manifest struct capture_manifest manifest = {.method = PROBE_METHOD_COUNT};
        const char *end = data;

        if (length > CAPTURE_MANIFEST_MAX)
                return why_set(why, -EFBIG, "larger than %u bytes", CAPTURE_MANIFEST_MAX);
        cleanup_json cJSON *json = cJSON_ParseWithLengthOpts(data, length, &end, false);
        if (!json)
                return why_set(why, -EINVAL, "line %zu: this is not JSON, or it is cut off",
                               line_of(data, end));
        for (; end < data + length; end++)
                if (!strchr(" \t\r\n", *end) && *end)
                        return why_set(why, -EINVAL, "line %zu: text after the end of the object",
                                       line_of(data, end));

        int r = parse_fields(json, &manifest, why);
        if (r < 0)
                return r;
        *ret_manifest = manifest;
        manifest = (struct capture_manifest){.method = PROBE_METHOD_COUNT};
        return 0;
}

/* ---- formatting ---- */

static bool add_ns(cJSON *object, const char *field, uint64_t ns) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%" PRIu64, ns);
        return cJSON_AddStringToObject(object, field, text);
}

static bool add_target(cJSON *json, const struct target_request *target) {
        cJSON *object = cJSON_AddObjectToObject(json, "target");
        bool ok = object && cJSON_AddStringToObject(object, "scope", scope_names[target->scope]);

        if (ok && target->scope == TARGET_PID)
                ok = cJSON_AddNumberToObject(object, "pid", target->pid);
        if (ok && target->scope == TARGET_CGROUP)
                ok = cJSON_AddStringToObject(object, "cgroup", target->cgroup);
        return ok;
}

static bool add_trials(cJSON *json, const struct probe_trial trials[static PROBE_METHOD_COUNT]) {
        cJSON *object = cJSON_AddObjectToObject(json, "trials");
        bool ok = object;

        for (unsigned i = 0; ok && i < PROBE_METHOD_COUNT; i++) {
                cJSON *item = cJSON_AddObjectToObject(object, probe_method_name((enum probe_method) i));
                ok = item && cJSON_AddBoolToObject(item, "tried", trials[i].tried) &&
                     cJSON_AddNumberToObject(item, "error", trials[i].error) &&
                     cJSON_AddStringToObject(item, "text", trials[i].text);
        }
        return ok;
}

static bool add_ticks(cJSON *json, const struct capture_tick *ticks, size_t count) {
        cJSON *array = cJSON_AddArrayToObject(json, "ticks");
        bool ok = array;

        for (size_t i = 0; ok && i < count; i++) {
                cJSON *item = cJSON_CreateObject();
                if (!item || !cJSON_AddItemToArray(array, item)) {
                        cJSON_Delete(item);
                        return false;
                }
                ok = cJSON_AddNumberToObject(item, "tick", ticks[i].number) &&
                     add_ns(item, "mono_ns", ticks[i].at.mono_ns) &&
                     add_ns(item, "real_ns", ticks[i].at.real_ns);
        }
        return ok;
}

int capture_manifest_format(const struct capture_manifest *manifest, char **ret_text) {
        cleanup_json cJSON *json = cJSON_CreateObject();

        bool ok = json && cJSON_AddNumberToObject(json, "schema", CAPTURE_SCHEMA) &&
                  cJSON_AddStringToObject(json, "version", manifest->version) &&
                  cJSON_AddStringToObject(json, "method", probe_method_name(manifest->method)) &&
                  cJSON_AddBoolToObject(json, "forced", manifest->forced) &&
                  cJSON_AddBoolToObject(json, "exact", manifest->exact) &&
                  add_ns(json, "warn_stall_ns", manifest->warn_stall_ns) &&
                  cJSON_AddNumberToObject(json, "threads_max", (double) manifest->threads_max) &&
                  cJSON_AddStringToObject(json, "kernel", manifest->kernel) &&
                  cJSON_AddStringToObject(json, "hostname", manifest->hostname) &&
                  cJSON_AddNumberToObject(json, "cpus_online", manifest->cpus_online) &&
                  add_target(json, &manifest->target) && add_trials(json, manifest->trials) &&
                  add_ticks(json, manifest->ticks, manifest->ticks_count);
        char *text = ok ? cJSON_Print(json) : NULL;
        if (!text)
                return -ENOMEM;
        *ret_text = text;
        return 0;
}
