/* SPDX-License-Identifier: Apache-2.0 */
#include "report_story.h"

/* The text of one story; the caller's until the next call. */
static const char *story_text(struct story *story) {
        static struct text text;

        text_release(&text);
        text_init(&text, 1 << 20);
        report_text(&story->report, &text);
        return text_string(&text);
}

static const char *first_line(const char *text) {
        static char line[512];

        snprintf(line, sizeof(line), "%.*s", (int) strcspn(text, "\n"), text);
        return line;
}

static const char *line_labelled(const char *text, const char *label) {
        static char line[4096];
        char start[32];
        const char *found;

        snprintf(start, sizeof(start), "\n  %s ", label);
        found = strstr(text, start);
        if (!found)
                return "";
        snprintf(line, sizeof(line), "%.*s", (int) strcspn(found + 1, "\n"), found + 1);
        return line;
}

#define expect_first(story, words)                                                                          \
        cr_expect(strstr(first_line(story_text(story)), words), "first line is: %s",                        \
                  first_line(story_text(story)))

Test(report_text, says_what_the_golden_files_hold) {
        for (size_t i = 0; i < ELEMENTS(story_rows); i++) {
                struct story *story = story_rows[i].make();

                if (story->report.threads_max > 20)
                        story->report.threads_max = 20;
                story_expect_golden(story_rows[i].name, "txt", story_text(story));
                free(story);
        }
}

Test(report_text, lines_have_at_most_100_columns_but_commands_subjects_and_ways_out) {
        for (size_t i = 0; i < ELEMENTS(story_rows); i++) {
                struct story *story = story_rows[i].make();
                const char *text = story_text(story);

                for (size_t length; *text; text += length + 1) {
                        char line[4096];

                        length = strcspn(text, "\n");
                        snprintf(line, sizeof(line), "%.*s", (int) length, text);
                        if (strncmp(line, "           kubectl ", 19) == 0 ||
                            strstr(line, " NOT MEASURED; ") || strncmp(line, "  subject", 9) == 0)
                                continue;
                        cr_expect(text_columns(line) <= 100, "%s: %zu columns: %s", story_rows[i].name,
                                  text_columns(line), line);
                }
                free(story);
        }
}

Test(report_text, lets_no_byte_through_that_moves_a_cursor) {
        struct story *story = story_hostile();

        for (const char *s = story_text(story); *s; s++)
                cr_expect((unsigned char) *s >= 0x20 || *s == '\n', "byte %02x", (unsigned char) *s);
        cr_expect(strstr(story_text(story), "\\x1b[2J took it \\x1b[31m\\xff all"),
                  "a name escaped before is not escaped again");
        free(story);
}

Test(report_text, each_verdict_has_its_word) {
        static const struct {
                char words[32];
                struct story *(*make)(void);
        } rows[] = {
                        {"THROTTLED 28% of wall time by", story_quota},
                        {"its own limit 250m", story_quota},
                        {"THROTTLED in 34% of", story_files},
                        {"an ancestor's limit 2", story_ancestor},
                        {"its Pod's limit 500m", story_pod},
                        {"WAITING 12%", story_contention},
                        {"STOLEN 4% of", story_steal},
                        {"MIXED 21%", story_mixed},
                        {"OK used 27m of", story_fine},
                        {"NO LIMIT used 1310m", story_no_limit},
                        {"NOT MEASURED", story_not_measured},
                        {"DaemonSet", story_not_measured},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct story *story = rows[i].make();

                expect_first(story, rows[i].words);
                free(story);
        }
}

Test(report_text, begins_with_time_and_subject) {
        struct story *story = story_quota();
        struct report_identity *identity = &story->report.identity;

        expect_first(story, "2026-11-30T12:00:30Z shop/web-7d4f9 container=app THROTTLED");
        *identity = (struct report_identity){.container = "db", .request_milli = ABSENT};
        expect_first(story, "Z container=db THROTTLED");
        *identity = (struct report_identity){.container_id = "3f4e1c0f8ad1c6f6e8c9", .cgroup = "/docker/x"};
        expect_first(story, "Z container=3f4e1c0f8ad1 THROTTLED");
        *identity = (struct report_identity){.cgroup = "/system.slice/foo.service", .process_id = 123};
        expect_first(story, "Z cgroup=/system.slice/foo.service THROTTLED");
        *identity = (struct report_identity){.process_id = 123};
        expect_first(story, "Z pid=123 THROTTLED");
        *identity = (struct report_identity){.request_milli = ABSENT};
        expect_first(story, "Z container=unknown THROTTLED");
        free(story);
}

Test(report_text, shortens_words_before_it_shortens_a_subject) {
        struct story *story = story_quota();

        story->report.identity.pod = "web-7d4f9c6b5d";
        expect_first(story, "shop/web-7d4f9c6b5d container=app THROTTLED 28%, own limit 250m");
        story->report.identity.pod = "checkout-service-7d4f9c6b5d-x2x9z12345";
        expect_first(story, "shop/checkout-service-7d4f9c6b5d-x2x9z12345 container=app THROTTLED 28%");
        cr_expect_null(strstr(story_text(story), "subject"), "nothing was cut");
        story->report.identity.pod = "a-very-long-deployment-name-that-goes-on-and-on-7d4f9c6b5d-x2x9z";
        expect_first(story, "…");
        expect_first(story, " THROTTLED 28%");
        cr_expect(strstr(line_labelled(story_text(story), "subject"),
                         "shop/a-very-long-deployment-name-that-goes-on-and-on-7d4f9c6b5d-x2x9z "
                         "container=app"));
        free(story);
}

Test(report_text, names_a_hidden_ancestor_without_a_number) {
        struct story *story = story_ancestor();

        story->facts.limit_level = LIMIT_CONTAINER;
        expect_first(story, "by a limit above it");
        story->facts.has_limit = false;
        expect_first(story, "by a limit above it");
        free(story);
}

Test(report_text, says_nothing_of_what_was_not_measured) {
        struct story *story = story_new();

        story->judgement = (struct judgement){VERDICT_QUOTA, SEVERITY_NONE, story->findings, 0};
        cr_expect_str_eq(story_text(story),
                         "2026-11-30T12:00:30Z shop/web-7d4f9 container=app THROTTLED by its own limit\n"
                         "  method   tracepoints over 30 s, exact, nothing lost\n");
        for (enum verdict verdict = 0; verdict < VERDICT_COUNT; verdict++) {
                story->judgement.verdict = verdict;
                cr_expect_null(strpbrk(first_line(story_text(story)) + 45, "0123456789%"), "%s",
                               first_line(story_text(story)));
        }
        free(story);
}

Test(report_text, puts_a_long_command_whole_on_its_own_line_and_wraps_a_sentence) {
        struct story *story = story_quota();
        const char *text = story_text(story);

        cr_expect_str_eq(line_labelled(text, "do"), "  do       set limits.cpu to 500m:");
        cr_expect(strstr(text, "\n           kubectl -n shop patch pod web-7d4f9 --subresource resize -p "
                               "'{\"spec\":"));
        story->findings[0].fixes[0].how = "kubectl edit";
        cr_expect_str_eq(line_labelled(story_text(story), "do"),
                         "  do       set limits.cpu to 500m: kubectl edit");
        story->findings[0].fixes[0].who = "node";
        cr_expect_str_eq(line_labelled(story_text(story), "do"),
                         "  do       set limits.cpu to 500m (for the node's administrator): kubectl edit");
        story->findings[0].fixes[0].who = "app";
        story->findings[0].fixes[0].how =
                        "in the container's resources; a running Pod takes it with kubectl patch "
                        "--subresource resize";
        cr_expect(strstr(story_text(story),
                         ":\n           in the container's resources; a running Pod takes it with "
                         "kubectl patch --subresource\n           resize\n"),
                  "a sentence is wrapped: %s", story_text(story));
        story->findings[0].fixes[0] = (struct fix){"CPUQuota=", "300%", "", "app", NULL};
        cr_expect_str_eq(line_labelled(story_text(story), "do"), "  do       set CPUQuota=300%");
        story->findings[0].fixes_count = 0;
        cr_expect_str_empty(line_labelled(story_text(story), "do"));
        free(story);
}

Test(report_text, names_the_worst_burst_apart_where_the_longest_stall_is_elsewhere) {
        struct story *story = story_quota();

        cr_expect_str_eq(line_labelled(story_text(story), "worst"),
                         "  worst    12:00:14.312Z stalled 88 ms, in a burst that took 214 ms instead of 47 "
                         "ms");
        story->facts.worst_burst_at_ns = story_mono(20000);
        cr_expect_str_eq(line_labelled(story_text(story), "worst"),
                         "  worst    12:00:14.312Z stalled 88 ms; worst burst at 12:00:20.000Z took 214 ms "
                         "instead of 47 ms");
        story->facts.worst_burst_ns = ABSENT;
        cr_expect_str_eq(line_labelled(story_text(story), "worst"),
                         "  worst    12:00:14.312Z stalled 88 ms");
        story->facts.stalls_count = 0;
        cr_expect_str_empty(line_labelled(story_text(story), "worst"));
        free(story);
}

Test(report_text, never_says_that_more_than_all_was_lost) {
        struct story *story = story_contention();

        story->facts.contention_ns_lost = 2 * story->facts.window_ns * story->facts.wanted_milli / 1000;
        cr_expect(strstr(story_text(story), "WAITING 100%"), "%s", story_text(story));
        free(story);
}

Test(report_text, groups_threads_of_one_process_and_name) {
        struct story *story = story_quota();
        const char *text = story_text(story);

        cr_expect(strstr(text, "\n  python3 worker ×8   16.9 s "), "%s", text);
        cr_expect(strstr(text, "\n  12 others slept\n"), "those that only slept are the rest");
        story->report.threads_max = 1;
        cr_expect(strstr(story_text(story), "\n  13 others "), "rows beyond --threads are in the rest");
        story->report.threads_max = 0;
        cr_expect(strstr(story_text(story), "\n  21 threads "));
        story->facts.threads_count = 1;
        cr_expect(strstr(story_text(story), "\n  1 thread "), "one is no plural");
        free(story);
}

Test(report_text, tells_processes_of_one_name_apart) {
        struct story *story = story_contention();

        cr_expect(strstr(story_text(story), "\n  nginx[1] "));
        cr_expect(strstr(story_text(story), "\n  nginx[2] "));
        free(story);
}

Test(report_text, has_no_table_without_threads_that_did_anything) {
        struct story *story = story_fine();

        story->facts.threads_count = 0;
        cr_expect_null(strstr(story_text(story), "  threads"));
        story_add_measured(story, 1, 1, "cat", "cat", 0, 0);
        cr_expect_null(strstr(story_text(story), "  threads"));
        free(story);
}

Test(report_text, files_show_delay_and_never_a_stall) {
        struct story *story = story_files();
        const char *text = story_text(story);

        cr_expect(strstr(text, "delayed"));
        cr_expect_null(strstr(line_labelled(text, "threads"), "stalled"));
        cr_expect(strstr(text, "delayed = stalled and waited together"));
        cr_expect_str_eq(line_labelled(text, "missing"),
                         "  missing  thread stalls: no right to load BPF programs (EPERM); remedy: run as "
                         "root, or give");
        free(story);
}

Test(report_text, says_what_was_lost) {
        struct story *story = story_fine();

        cr_expect(strstr(line_labelled(story_text(story), "method"), "exact, nothing lost"));
        story->facts.exact = false;
        story->facts.lost[LOST_TICKS] = 2;
        cr_expect(strstr(line_labelled(story_text(story), "method"),
                         "estimate, lost: 2 × ticks that were missed"));
        free(story);
}

Test(report_text, summary_is_one_line_where_it_fits) {
        struct text text;
        struct report_summary summary = story_summary_lossless;

        text_init(&text, 4096);
        report_summary_text(&summary, &text);
        cr_expect_str_eq(text_string(&text),
                         "2026-11-30T12:00:30Z shop/web-7d4f9 container=app SUMMARY of 60 min: "
                         "nothing lost, used 108m\n");
        text_clear(&text);
        report_summary_text(&story_summary_lossy, &text);
        story_expect_golden("summary", "txt", text_string(&text));
        text_clear(&text);
        summary.stall_wall_ns = summary.cpu_used_ns = ABSENT;
        summary.windows_lossless = 119;
        report_summary_text(&summary, &text);
        cr_expect(strstr(text_string(&text), "SUMMARY of 60 min: loss in 1 of 120 windows\n"), "%s",
                  text_string(&text));
        text_release(&text);
}

Test(report_text, notice_is_wrapped_and_escaped) {
        struct text text;
        struct report_notice notice = {.at = {0, STORY_END_REAL}, .level = "info", .text = "target is gone"};

        text_init(&text, 4096);
        report_notice_text(&notice, &text);
        cr_expect_str_eq(text_string(&text), "2026-11-30T12:00:30Z throttlescope NOTICE target is gone\n");
        text_clear(&text);
        report_notice_text(&story_notice, &text);
        story_expect_golden("notice", "txt", text_string(&text));
        text_clear(&text);
        notice.text = "";
        report_notice_text(&notice, &text);
        cr_expect_str_eq(text_string(&text), "2026-11-30T12:00:30Z throttlescope NOTICE\n");
        text_release(&text);
}
