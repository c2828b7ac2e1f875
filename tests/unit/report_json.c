/* SPDX-License-Identifier: Apache-2.0 */
#include "report_story.h"

#include <cjson/cJSON.h>
#include <errno.h>

static const char *json_of(struct story *story) {
        static struct text text;

        text_release(&text);
        text_init(&text, 1 << 20);
        cr_assert_eq(report_json(&story->report, &text), 0);
        return text_string(&text);
}

static cJSON *parsed(struct story *story) {
        cJSON *root = cJSON_Parse(json_of(story));

        cr_assert_not_null(root, "not JSON: %s", json_of(story));
        return root;
}

/* "limit.cpus" of @root, NULL if it is not there. */
static const cJSON *at(const cJSON *root, const char *path) {
        char key[64];

        while (root && *path) {
                size_t length = strcspn(path, ".");

                snprintf(key, sizeof(key), "%.*s", (int) length, path);
                root = cJSON_GetObjectItemCaseSensitive(root, key);
                path += length + (path[length] == '.');
        }
        return root;
}

static double number_at(const cJSON *root, const char *path) {
        const cJSON *item = at(root, path);

        cr_assert(cJSON_IsNumber(item), "%s is no number", path);
        return item->valuedouble;
}

Test(report_json, says_what_the_golden_files_hold) {
        for (size_t i = 0; i < ELEMENTS(story_rows); i++) {
                struct story *story = story_rows[i].make();

                story_expect_golden(story_rows[i].name, "json", json_of(story));
                free(story);
        }
}

Test(report_json, is_one_line_of_at_most_16_kib) {
        for (size_t i = 0; i < ELEMENTS(story_rows); i++) {
                struct story *story = story_rows[i].make();
                const char *json = json_of(story);

                cr_expect(strlen(json) <= REPORT_JSON_MAX, "%s: %zu bytes", story_rows[i].name,
                          strlen(json));
                cr_expect_eq(strcspn(json, "\n"), strlen(json) - 1);
                free(story);
        }
}

Test(report_json, leaves_out_what_is_absent) {
        static const char *const paths[] = {
                        "limit",
                        "request",
                        "weight",
                        "cpu",
                        "periods",
                        "runqueue_throttled_ns",
                        "ancestor_throttled_ns",
                        "stall",
                        "stalls",
                        "causes",
                        "burst",
                        "demand",
                        "omitted",
                        "lost",
                        "node",
                        "pod_uid",
                        "cgroup",
                        "version",
        };
        struct story *story = story_new();
        cJSON *root;

        story->judgement = (struct judgement){VERDICT_NOT_MEASURED, SEVERITY_NONE, story->findings, 0};
        story->report.version = NULL;
        root = parsed(story);
        for (size_t i = 0; i < ELEMENTS(paths); i++)
                cr_expect_null(at(root, paths[i]), "%s is there", paths[i]);
        cJSON_Delete(root);

        story_add_thread(story, story_thread_absent(0, 0, "sh", "sh"));
        root = parsed(story);
        cr_expect_eq(cJSON_GetArraySize(cJSON_GetArrayItem(at(root, "threads"), 0)), 3,
                     "process, name, ended");
        cJSON_Delete(root);
        free(story);
}

Test(report_json, zero_is_a_figure) {
        struct story *story = story_fine();
        cJSON *root = parsed(story);

        cr_expect_eq(number_at(root, "stall.wall_ns"), 0);
        cr_expect_eq(number_at(root, "stall.count"), 0);
        cr_expect_eq(cJSON_GetArraySize(at(root, "stalls")), 0);
        cr_expect(cJSON_IsArray(at(root, "stalls")), "measured, and none: an empty list");
        cr_expect_null(at(root, "stall.p50_ns"), "no stall has no median");
        cJSON_Delete(root);
        free(story);
}

Test(report_json, no_threads_seen_is_not_no_threads) {
        struct story *story = story_not_measured();
        cJSON *root = parsed(story);

        cr_expect_null(at(root, "threads"));
        cr_expect_null(at(root, "threads_total"));
        cJSON_Delete(root);
        story->facts.measured = true;
        root = parsed(story);
        cr_expect_eq(number_at(root, "threads_total"), 0);
        cJSON_Delete(root);
        free(story);
}

Test(report_json, numbers_are_exact_and_without_exponent) {
        static const struct {
                uint64_t value;
                char text[40];
        } rows[] = {
                        {0, "\"used_ns\":0,"},
                        {UINT64_C(1000000000000000), "\"used_ns\":1000000000000000,"},
                        {UINT64_C(9007199254740992), "\"used_ns\":9007199254740992,"},
                        {UINT64_C(9007199254740993), "\"used_ns\":9007199254740993,"},
                        {UINT64_MAX - 1, "\"used_ns\":18446744073709551614,"},
        };
        static const struct {
                uint64_t milli;
                char text[24];
        } cpus[] = {
                        {250, "\"cpus\":0.25,\"q"}, {1000, "\"cpus\":1,\"q"},      {1, "\"cpus\":0.001,\"q"},
                        {0, "\"cpus\":0,\"q"},      {12340, "\"cpus\":12.34,\"q"},
        };
        struct story *story = story_fine();

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                story->facts.cpu_used_ns = rows[i].value;
                cr_expect(strstr(json_of(story), rows[i].text), "%s in %s", rows[i].text, json_of(story));
        }
        for (size_t i = 0; i < ELEMENTS(cpus); i++) {
                story->facts.limit_milli = cpus[i].milli;
                cr_expect(strstr(json_of(story), cpus[i].text), "%s in %s", cpus[i].text, json_of(story));
        }
        free(story);
}

Test(report_json, an_empty_window_has_no_rates) {
        struct story *story = story_fine();
        cJSON *root;

        story->facts.window_ns = 0;
        root = parsed(story);
        cr_expect_null(at(root, "cpu.cpus"));
        cr_expect_null(at(root, "cpu.of_limit"));
        cr_expect_eq(number_at(root, "cpu.used_ns"), 810e6);
        cJSON_Delete(root);
        free(story);
}

Test(report_json, hostile_names_stay_one_string) {
        struct story *story = story_hostile();
        cJSON *root = parsed(story);
        const cJSON *threads = at(root, "threads");

        for (const char *s = json_of(story); *s; s++)
                cr_expect((unsigned char) *s >= 0x20 || !s[1], "byte %02x", (unsigned char) *s);
        cr_expect_eq(cJSON_GetArraySize(threads), 10);
        cr_expect_str_eq(at(cJSON_GetArrayItem(threads, 0), "name")->valuestring, "\\x1b[2J\\x1b[31mred");
        cr_expect_str_eq(at(cJSON_GetArrayItem(threads, 2), "name")->valuestring, "\"},{\"pid\":1");
        cr_expect_str_eq(at(cJSON_GetArrayItem(threads, 3), "name")->valuestring, "\\xff\\xfe\\xc3(");
        cr_expect_str_eq(at(cJSON_GetArrayItem(threads, 4), "name")->valuestring, "\\\\x1b[0m",
                         "a name that looks escaped can be told from an escaped one");
        cr_expect_str_eq(at(root, "limit.cgroup")->valuestring, "/a\"b\\\\c\\x0a\\xc0\\x80");
        cJSON_Delete(root);
        free(story);
}

/* Sums over what is shown, plus what is omitted, must not depend on how much is shown. */
Test(report_json, omitted_threads_are_in_the_sums) {
        struct story *story = story_full();
        uint64_t run = 0, threads = 0;

        for (size_t i = 0; i < story->facts.threads_count; i++)
                run += story->facts.threads[i].run_ns;
        for (unsigned max = 0; max < 30; max++) {
                cJSON *root, *thread;
                uint64_t shown = 0;

                story->report.threads_max = max;
                root = parsed(story);
                cJSON_ArrayForEach(thread, at(root, "threads")) shown +=
                                (uint64_t) number_at(thread, "run_ns");
                if (at(root, "omitted.run_ns"))
                        shown += (uint64_t) number_at(root, "omitted.run_ns");
                cr_expect_eq(shown, run, "%u threads: %" PRIu64 " of %" PRIu64, max, shown, run);
                cr_expect_eq(at(root, "omitted") == NULL, max >= 21);
                threads = 0;
                cJSON_ArrayForEach(thread, at(root, "threads")) threads +=
                                at(thread, "folded") ? (uint64_t) number_at(thread, "folded") : 1;
                cr_expect_eq(threads + (uint64_t) number_at(root, "threads_omitted"),
                             (uint64_t) number_at(root, "threads_total"));
                cJSON_Delete(root);
        }
        cr_expect_eq(threads, 20 + 37, "a folded row stands for its threads");
        free(story);
}

Test(report_json, a_crowd_fills_the_line_and_no_more) {
        struct story *story = story_crowd();
        cJSON *root = parsed(story);
        size_t length = strlen(json_of(story)), shown = (size_t) cJSON_GetArraySize(at(root, "threads"));

        cr_expect(length <= REPORT_JSON_MAX);
        cr_expect(length > REPORT_JSON_MAX - 700, "only %zu bytes: another thread would have fitted",
                  length);
        cr_expect(shown > 10 && shown < 500);
        cr_expect_eq(number_at(root, "threads_total"), 500);
        cr_expect_eq(number_at(root, "threads_omitted"), 500 - (double) shown);
        cr_expect_eq(cJSON_GetArraySize(at(root, "stalls")), 20, "threads go first");
        cJSON_Delete(root);
        free(story);
}

static void expect_longest_stalls(const cJSON *root) {
        const cJSON *stall;
        double before = 1e18;

        cJSON_ArrayForEach(stall, at(root, "stalls")) {
                cr_expect(number_at(stall, "ns") <= before, "the shortest go first");
                before = number_at(stall, "ns");
        }
        cr_expect(before > 69e6, "the shortest of all is not there");
}

Test(report_json, drops_stalls_only_when_no_thread_is_left_and_fails_after_that) {
        static char summary[PATH_MAX];
        struct story *story = story_quota();
        struct text text;
        int r, stalls = 20;
        size_t length = 1;

        text_init(&text, 1 << 20);
        memset(summary, 'x', sizeof(summary) - 1);
        story->judgement.findings_count = 3;
        for (size_t i = 0; i < 3; i++) {
                story->findings[i].code = "CPUThrottled";
                story->findings[i].summary = summary;
                story->findings[i].fixes_count = 4;
                for (size_t k = 0; k < 4; k++)
                        story->findings[i].fixes[k] = (struct fix){"a", "b", "", "app", NULL};
        }
        /* Longer and longer commands: at some length all threads are gone, then all stalls, then it is an error. */
        for (r = 0; r == 0; length++) {
                static char how[2048];
                cJSON *root;

                cr_assert(length < sizeof(how));
                memset(how, 'y', length);
                for (size_t i = 0; i < 3; i++)
                        for (size_t k = 0; k < 4; k++)
                                story->findings[i].fixes[k].how = how;
                text_clear(&text);
                r = report_json(&story->report, &text);
                if (r < 0)
                        break;
                cr_assert(text.length <= REPORT_JSON_MAX);
                root = cJSON_Parse(text_string(&text));
                cr_assert_not_null(root);
                if (cJSON_GetArraySize(at(root, "stalls")) < 20) {
                        stalls = cJSON_GetArraySize(at(root, "stalls"));
                        cr_expect_eq(cJSON_GetArraySize(at(root, "threads")), 0);
                        cr_expect_eq(number_at(root, "threads_omitted"), 21);
                        if (stalls > 0)
                                expect_longest_stalls(root);
                }
                cJSON_Delete(root);
        }
        cr_expect_eq(r, -EMSGSIZE);
        cr_expect_eq(stalls, 0, "%d stalls were left before it failed", stalls);
        cr_expect_eq(text.length, 0, "nothing of a line that does not fit");
        text_release(&text);
        free(story);
}

static int failing_after;

static void *failing_malloc(size_t size) {
        return failing_after-- > 0 ? malloc(size) : NULL;
}

/* Every allocation of cJSON fails once: an error each time, nothing written, and (with the sanitizer) nothing leaked. */
Test(report_json, out_of_memory_is_an_error_wherever_it_happens) {
        cJSON_Hooks hooks = {.malloc_fn = failing_malloc, .free_fn = free};
        struct story *story = story_full();
        struct text text;
        int r = -ENOMEM, tries = 0;

        text_init(&text, 1 << 20);
        cJSON_InitHooks(&hooks);
        for (; r == -ENOMEM; tries++) {
                failing_after = tries;
                cr_assert_eq(text.length, 0);
                r = report_json(&story->report, &text);
        }
        cJSON_InitHooks(NULL);
        cr_expect_eq(r, 0);
        cr_expect(tries > 300);
        text_release(&text);
        free(story);
}

Test(report_json, a_full_buffer_is_an_error) {
        struct story *story = story_fine();
        struct text text;

        text_init(&text, 100);
        cr_expect_eq(report_json(&story->report, &text), -ENOMEM);
        text_release(&text);
        free(story);
}

Test(report_json, summary_and_notice_say_what_the_golden_files_hold) {
        struct text text;

        text_init(&text, 1 << 16);
        cr_assert_eq(report_summary_json(&story_summary_lossy, &text), 0);
        story_expect_golden("summary", "json", text_string(&text));
        text_clear(&text);
        cr_assert_eq(report_notice_json(&story_notice, &text), 0);
        story_expect_golden("notice", "json", text_string(&text));
        text_release(&text);
}

Test(report_json, summary_leaves_out_what_is_absent) {
        struct report_summary summary = story_summary_lossless;
        struct text text;
        cJSON *root;

        summary.stall_wall_ns = summary.cpu_used_ns = ABSENT;
        text_init(&text, 1 << 16);
        cr_assert_eq(report_summary_json(&summary, &text), 0);
        root = cJSON_Parse(text_string(&text));
        cr_assert_not_null(root);
        cr_expect_null(at(root, "stall"));
        cr_expect_null(at(root, "cpu"));
        cr_expect_null(at(root, "worst_minute"));
        cr_expect_eq(number_at(root, "windows"), 120);
        cJSON_Delete(root);
        text_release(&text);
}
