/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/base/text.h"
#include "../../agent/probe/capture.h"

#define TRIALS                                                                                              \
        "\"trials\":{\"hooks\":{\"tried\":true,\"error\":-1,\"text\":\"no\"},"                              \
        "\"tracepoints\":{\"tried\":true,\"error\":-13,\"text\":\"no\"},"                                   \
        "\"files\":{\"tried\":true,\"error\":0,\"text\":\"\"}}"

/* One field each, so that a row can leave out or replace it. */
static const char *const fields[] = {
                "\"schema\":1",
                "\"version\":\"0.1.0\"",
                "\"method\":\"files\"",
                "\"forced\":false",
                "\"exact\":false",
                "\"warn_stall_ns\":\"50000000\"",
                "\"threads_max\":100",
                "\"kernel\":\"6.12\"",
                "\"hostname\":\"h\"",
                "\"cpus_online\":4",
                "\"target\":{\"scope\":\"pid\",\"pid\":12}",
                TRIALS,
                "\"ticks\":[{\"tick\":0,\"mono_ns\":\"5\",\"real_ns\":\"6\"},\n{\"tick\":3,\"mono_ns\":"
                "\"7\",\"real_ns\":\"8\"}]",
};

/* The manifest with field @index replaced by @field (NULL: left out). */
static char *manifest(size_t index, const char *field) {
        struct text text;

        text_init(&text, 1u << 20);
        for (size_t i = 0, n = 0; i < ELEMENTS(fields); i++) {
                const char *one = i == index ? field : fields[i];
                if (one)
                        text_add(&text, "%s%s", n++ ? ",\n" : "{", one);
        }
        text_add(&text, "}\n");
        char *copy = strdup(text_string(&text));
        text_release(&text);
        return copy;
}

static int parse(const char *data, struct capture_manifest *ret, struct why *why) {
        why->text[0] = 0;
        return capture_manifest_parse(data, strlen(data), ret, why);
}

Test(manifest, reads_what_it_should) {
        cleanup_free char *data = manifest(ELEMENTS(fields), NULL);
        struct capture_manifest m;
        struct why why;

        cr_assert(parse(data, &m, &why) == 0, "%s", why.text);
        cr_expect(m.method == PROBE_FILES && !m.forced && !m.exact);
        cr_expect(m.target.scope == TARGET_PID && m.target.pid == 12);
        cr_expect(m.warn_stall_ns == 50000000 && m.threads_max == 100 && m.cpus_online == 4);
        cr_expect(m.trials[PROBE_TRACEPOINTS].error == -13);
        cr_assert(m.ticks_count == 2);
        cr_expect(m.ticks[1].number == 3 && m.ticks[1].at.mono_ns == 7 && m.ticks[1].at.real_ns == 8);
        capture_manifest_release(&m);
}

Test(manifest, survives_being_written_and_read) {
        struct capture_tick ticks[] = {{0, {1, INT64_MAX}}, {7, {INT64_MAX - 1, 2}}, {8, {INT64_MAX, 3}}};
        struct capture_manifest m = {
                        .version = "0.1.0",
                        .method = PROBE_HOOKS,
                        .forced = true,
                        .exact = true,
                        .target = {.scope = TARGET_CGROUP, .cgroup = "/a\"\\\x1b\xff/b"},
                        .warn_stall_ns = 50000000,
                        .threads_max = 8192,
                        .kernel = "6.12 \xe2\x82\xac",
                        .hostname = "",
                        .cpus_online = 64,
                        .ticks = ticks,
                        .ticks_count = ELEMENTS(ticks),
        };
        struct capture_manifest back;
        cleanup_free char *text = NULL;
        struct why why;

        cr_assert(capture_manifest_format(&m, &text) == 0);
        cr_assert(parse(text, &back, &why) == 0, "%s", why.text);
        cr_expect(back.method == PROBE_HOOKS && back.forced && back.exact);
        cr_expect_str_eq(back.target.cgroup, m.target.cgroup);
        cr_expect_str_eq(back.kernel, m.kernel);
        cr_assert(back.ticks_count == 3);
        for (size_t i = 0; i < 3; i++)
                cr_expect(back.ticks[i].number == ticks[i].number &&
                                          back.ticks[i].at.mono_ns == ticks[i].at.mono_ns &&
                                          back.ticks[i].at.real_ns == ticks[i].at.real_ns,
                          "tick %zu: 64 bits survive", i);
        capture_manifest_release(&back);
}

Test(manifest, names_the_field_that_is_wrong) {
        static const struct {
                size_t index;
                const char *field, *names;
        } rows[] = {
                        {0, NULL, "field schema"},
                        {0, "\"schema\":2", "field schema: is 2, this version reads 1"},
                        {0, "\"schema\":\"1\"", "field schema"},
                        {0, "\"schema\":1.5", "field schema"},
                        {0, "\"schema\":-1", "field schema"},
                        {0, "\"schema\":1e400", "field schema"},
                        {0, "\"schema\":99999999999999999999999999", "field schema"},
                        {1, "\"version\":\"0123456789012345678901234567890123456789\"",
                         "field version: longer than 31 bytes"},
                        {2, NULL, "field method"},
                        {2, "\"method\":\"none\"", "field method: must be hooks, tracepoints or files"},
                        {2, "\"method\":null", "field method: must be hooks"},
                        {3, "\"forced\":0", "field forced: must be true or false"},
                        {5, "\"warn_stall_ns\":50000000", "field warn_stall_ns"},
                        {5, "\"warn_stall_ns\":\"-1\"", "field warn_stall_ns"},
                        {5, "\"warn_stall_ns\":\"1 \"", "field warn_stall_ns"},
                        {5, "\"warn_stall_ns\":\"18446744073709551615\"", "field warn_stall_ns"},
                        {5, "\"warn_stall_ns\":\"99999999999999999999\"", "field warn_stall_ns"},
                        {6, "\"threads_max\":0",
                         "field threads_max: must be a whole number from 1 to 1048576"},
                        {6, "\"threads_max\":1048577", "field threads_max"},
                        {9, "\"cpus_online\":1e308", "field cpus_online"},
                        {10, NULL, "field target: must be an object"},
                        {10, "\"target\":{\"scope\":\"world\"}",
                         "field target.scope: must be self, pod, node, pid or cgroup"},
                        {10, "\"target\":{\"scope\":\"pid\"}", "field pid"},
                        {10, "\"target\":{\"scope\":\"pid\",\"pid\":0}", "field pid"},
                        {10, "\"target\":{\"scope\":\"pid\",\"pid\":3000000000}", "field pid"},
                        {10, "\"target\":{\"scope\":\"cgroup\"}", "field target.cgroup"},
                        {11, "\"trials\":[]", "field trials: must be an object"},
                        {11, "\"trials\":{\"hooks\":1}", "field trials.hooks"},
                        {12, NULL, "field ticks: must be an array"},
                        {12, "\"ticks\":{}", "field ticks: must be an array"},
                        {12, "\"ticks\":[1]", "ticks[0]: must be an object"},
                        {12, "\"ticks\":[{\"tick\":0,\"mono_ns\":\"5\",\"real_ns\":\"6\"},{\"tick\":0}]",
                         "ticks[1]: field tick"},
                        {12,
                         "\"ticks\":[{\"tick\":0,\"mono_ns\":\"5\",\"real_ns\":\"6\"},"
                         "{\"tick\":1,\"mono_ns\":\"5\",\"real_ns\":\"7\"}]",
                         "ticks[1]: field mono_ns: must be later"},
                        {12, "\"ticks\":[{\"tick\":1000000,\"mono_ns\":\"5\",\"real_ns\":\"6\"}]",
                         "ticks[0]: field tick"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_free char *data = manifest(rows[i].index, rows[i].field);
                struct capture_manifest m = {.threads_max = 77};
                struct why why;
                int r = parse(data, &m, &why);

                cr_expect(r == -EINVAL, "row %zu: %d", i, r);
                cr_expect(strstr(why.text, rows[i].names), "row %zu: '%s' does not say '%s'", i, why.text,
                          rows[i].names);
                cr_expect(m.threads_max == 77 && !m.ticks, "row %zu: touched on failure", i);
        }
}

Test(manifest, names_the_line_where_it_stops_being_json) {
        cleanup_free char *data = manifest(ELEMENTS(fields), NULL);
        struct capture_manifest m;
        struct why why;

        /* Cut off everywhere. */
        for (size_t length = 0; length + 2 < strlen(data); length++) {
                cleanup_free char *cut = malloc(length ? length : 1);
                memcpy(cut, data, length);
                why.text[0] = 0;
                cr_assert(capture_manifest_parse(cut, length, &m, &why) == -EINVAL, "%zu", length);
                cr_assert(strncmp(why.text, "line ", 5) == 0, "%s", why.text);
        }
        cr_expect(parse("{\n\"schema\":1,\n\"version\": oops}", &m, &why) == -EINVAL);
        cr_expect_str_eq(why.text, "line 3: this is not JSON, or it is cut off");
        cr_expect(parse("{}\n\n{}", &m, &why) == -EINVAL);
        cr_expect_str_eq(why.text, "line 3: text after the end of the object");
        cr_expect(parse("[]", &m, &why) == -EINVAL);
        cr_expect_str_eq(why.text, "must be a JSON object");
}

Test(manifest, bounds_what_it_takes) {
        struct capture_manifest m;
        struct text text;
        struct why why;

        text_init(&text, 1u << 20);
        text_add(&text, "\"ticks\":[");
        for (unsigned i = 0; i <= CAPTURE_TICKS_MAX; i++)
                text_add(&text, "%s{\"tick\":%u,\"mono_ns\":\"%u\",\"real_ns\":\"1\"}", i ? "," : "", i,
                         i + 1);
        text_add(&text, "]");
        cleanup_free char *data = manifest(12, text_string(&text));
        text_release(&text);
        cr_expect(parse(data, &m, &why) == -EINVAL);
        cr_expect_str_eq(why.text, "field ticks: more than 1000");

        cleanup_free char *large = malloc(CAPTURE_MANIFEST_MAX + 2);
        memset(large, ' ', CAPTURE_MANIFEST_MAX + 1);
        large[CAPTURE_MANIFEST_MAX + 1] = 0;
        cr_expect(parse(large, &m, &why) == -EFBIG);

        cleanup_free char *nested = malloc(200001);
        memset(nested, '[', 200000);
        nested[200000] = 0;
        cr_expect(parse(nested, &m, &why) == -EINVAL);
}
