/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms say about runtimes. */
#include <cjson/cJSON.h>

#include "report_story.h"

static const char *text_of(struct story *story) {
        static struct text text;

        text_release(&text);
        text_init(&text, 1 << 20);
        report_text(&story->report, &text);
        return text_string(&text);
}

static cJSON *parsed(struct story *story) {
        struct text text;

        text_init(&text, 1 << 20);
        cr_assert_eq(report_json(&story->report, &text), 0);
        cr_assert(text.length <= REPORT_JSON_MAX);
        cJSON *root = cJSON_Parse(text_string(&text));
        cr_assert_not_null(root);
        text_release(&text);
        return root;
}

static size_t count_lines(const char *text, const char *beginning) {
        size_t count = 0;

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (*line == '\0')
                        break;
                count += strncmp(line, beginning, strlen(beginning)) == 0;
        }
        return count;
}

Test(report_runtimes, nobody_looked_is_not_nothing_recognised) {
        struct story *story = story_fine();
        cJSON *root = parsed(story);

        cr_expect_null(cJSON_GetObjectItem(root, "parallelism"));
        cr_expect_null(strstr(text_of(story), "runtime"));
        cJSON_Delete(root);
        story->facts.parallelism = story->parallelism;
        root = parsed(story);
        cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(root, "parallelism")), 0);
        cr_expect(cJSON_IsArray(cJSON_GetObjectItem(root, "parallelism")));
        cr_expect_null(cJSON_GetObjectItem(root, "parallelism_omitted"));
        cr_expect_null(strstr(text_of(story), "runtime"));
        cJSON_Delete(root);
        free(story);
}

Test(report_runtimes, those_that_are_too_high_come_first) {
        static const char *const order[] = {"c", "b", "d", "a", "e"};
        struct story *story = story_fine();

        story_add_row(story, "a", "n", 1, 1);
        story_add_row(story, "b", "n", 4, 1);
        story_add_row(story, "c", "n", 48, 1);
        story_add_row(story, "d", "n", ABSENT, ABSENT)->unreadable = "memory of another uid";
        story_add_row(story, "e", "n", 3, ABSENT);
        cJSON *root = parsed(story);
        for (int i = 0; i < (int) ELEMENTS(order); i++)
                cr_expect_str_eq(cJSON_GetObjectItem(
                                                 cJSON_GetArrayItem(cJSON_GetObjectItem(root, "parallelism"),
                                                                    i),
                                                 "runtime")
                                                 ->valuestring,
                                 order[i]);
        cJSON_Delete(root);
        const char *text = text_of(story);
        cr_expect(strstr(text, "  runtime  c [12]: n 48; the limit suggests 1 thread\n"
                               "  runtime  b [11]: n 4; the limit suggests 1 thread\n"
                               "  runtime  d [13]: n; memory of another uid\n"
                               "  runtimes a n 1, e n 3\n"),
                  "%s", text);
        free(story);
}

Test(report_runtimes, four_lines_and_the_rest_in_one) {
        struct story *story = story_fine();

        for (int i = 0; i < 20; i++)
                story_add_row(story, "go", "GOMAXPROCS", 48, 1);
        story->facts.parallelism_omitted = 5;
        const char *text = text_of(story);
        cr_expect_eq(count_lines(text, "  runtime  "), 4);
        cr_expect_eq(count_lines(text, "  runtimes "), 1);
        cr_expect(strstr(text, "and 15 more\n"), "20 and 5, 4 with their own line, 6 named: %s", text);
        free(story);
}

Test(report_runtimes, a_configuration_that_says_another_number_is_told) {
        struct story *story = story_fine();

        struct parallelism *row = story_add_row(story, "nginx", "worker_processes", 2, 2);
        row->unit = UNIT_PROCESSES;
        row->configured = 4;
        row->source = FROM_CONFIG;
        cr_expect(strstr(text_of(story),
                         "  runtime  nginx [10]: worker_processes 2 (config); its configuration "
                         "says 4 by now\n"),
                  "%s", text_of(story));
        row->configured = 2;
        cr_expect(strstr(text_of(story), "  runtimes nginx worker_processes 2\n"));
        free(story);
}

Test(report_runtimes, lines_of_hostile_rows_stay_within_their_width) {
        static char word[5000], words[5000];
        struct story *story = story_fine();

        memset(word, 'x', sizeof(word) - 1);
        for (size_t i = 0; i < sizeof(words) - 1; i++)
                words[i] = i % 7 ? '\x1b' : ' ';
        struct parallelism *row = story_add_row(story, "go", word, 48, 1);
        row->program = words;
        row->version = word;
        row->source = FROM_CODE;
        row->source_detail = words;
        row->unreadable = word;
        const char *text = text_of(story);
        char line[1024];
        for (; *text; text += strcspn(text, "\n") + 1) {
                snprintf(line, sizeof(line), "%.*s", (int) strcspn(text, "\n"), text);
                cr_expect(text_columns(line) <= 100, "%zu columns: %s", text_columns(line), line);
                cr_expect_null(strchr(line, '\x1b'));
        }
        free(story);
}

/* Threads go first, then stalls, then settings; all that is gone is counted. */
Test(report_runtimes, settings_are_cut_last_and_counted) {
        static char how[900];
        struct story *story = story_quota();

        memset(how, 'y', sizeof(how) - 1);
        for (size_t i = 0; i < PARALLELISM_MAX; i++) {
                story_add_row(story, "go", "GOMAXPROCS", 1000 - i, 1);
                story->parallelism[i].how = how;
        }
        cJSON *root = parsed(story);
        int shown = cJSON_GetArraySize(cJSON_GetObjectItem(root, "parallelism"));

        cr_expect(shown > 5 && shown < 20, "%d", shown);
        cr_expect_eq(cJSON_GetObjectItem(root, "parallelism_omitted")->valueint, PARALLELISM_MAX - shown);
        cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(root, "threads")), 0);
        cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(root, "stalls")), 0);
        cr_expect_eq(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "parallelism"), 0),
                                         "effective")
                                     ->valueint,
                     1000, "the highest stays");
        cJSON_Delete(root);
        free(story);
}

Test(report_runtimes, memory_is_told_as_people_read_it) {
        static const struct {
                uint64_t bytes;
                const char *text;
        } rows[] = {
                        {1, "1 bytes"},
                        {10239, "10239 bytes"},
                        {10240, "10 KiB"},
                        {230686720, "220 MiB"},
                        {UINT64_C(10737418240), "10 GiB"},
                        {UINT64_MAX - 1, "16777215 TiB"},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct story *story = story_fine();
                char expected[64];
                story_add_row(story, "go", "n", 3, 1)->unit = UNIT_PROCESSES;
                story->parallelism[0].surplus_memory_bytes = rows[i].bytes;
                snprintf(expected, sizeof(expected), "1 process, 2 beyond that hold %s\n", rows[i].text);
                cr_expect(strstr(text_of(story), expected), "row %zu: %s", i, text_of(story));
                free(story);
        }
}

/* The design's: 25 ms per 100 ms, bursts of 43 ms, one thread. */
Test(report_runtimes, steps_in_latency_are_told_in_one_unit) {
        struct story *story = story_quota();

        cr_expect_null(strstr(text_of(story), "latency"), "not without bursts");
        story->facts.burst_cpu_p99_ns = 43 * MS;
        story->facts.runnable_p99 = 1;
        cr_expect(strstr(text_of(story), "latency near 75 and 175 ms\n"), "%s", text_of(story));
        story->facts.burst_cpu_p99_ns = 500 * MS;
        cr_expect(strstr(text_of(story), "near 75, 175 and 275 ms\n"), "%s", text_of(story));
        story->facts.burst_cpu_p99_ns = 3 * MS;
        cr_expect(strstr(text_of(story), "near 75 ms\n"), "%s", text_of(story));
        story->facts.period_ns = 600 * MS;
        story->facts.burst_cpu_p99_ns = 50 * MS;
        cr_expect(strstr(text_of(story), "near 575 ms and 1.18 s\n"), "%s", text_of(story));
        free(story);
}
