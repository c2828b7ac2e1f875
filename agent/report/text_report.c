/* SPDX-License-Identifier: Apache-2.0 */
/* The text form: the verdict, what to do, why, the worst moment, the threads, and how well it was measured. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../probe/probe.h"
#include "text_headline.h"
#include "text_parts.h"
#include "text_runtimes.h"
#include "text_threads.h"

/* A line under way: several short parts, then wrapped under its label. */
struct line {
        char words[PARTS_SENTENCE_MAX];
        size_t used;
};

static void __attribute__((format(printf, 2, 3))) line_add(struct line *line, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        int more = vsnprintf(line->words + line->used, sizeof(line->words) - line->used, format, arguments);
        va_end(arguments);
        if (more > 0)
                line->used += (size_t) more < sizeof(line->words) - line->used
                                              ? (size_t) more
                                              : sizeof(line->words) - 1 - line->used;
}

/*
 * "TIME SUBJECT WORDS": the longest words that fit beside the whole subject; only beside the shortest ones is the subject shortened.
 * Returns which of the words were used.
 */
static int add_first_line(struct text *out, uint64_t real_ns, const struct report_identity *identity,
                          const struct headline *headline) {
        char time[CLOCK_TEXT_MAX], subject[4 * PARTS_NAME_MAX], whole[4 * PARTS_NAME_MAX];
        clock_format(time, real_ns, 0);
        parts_subject(whole, sizeof(whole), identity, PARTS_ALL);
        size_t left = 0;
        int way = 0;
        for (; way < HEADLINE_WAYS; way++) {
                size_t others = text_columns(time) + 2 + text_columns(headline->words[way]);
                left = others < PARTS_COLUMNS ? PARTS_COLUMNS - others : 0;
                if (text_columns(whole) <= left)
                        break;
        }
        if (way == HEADLINE_WAYS)
                way--;
        /* Words that fill the line by themselves (the ways out of "not measured") leave a subject room all the same. */
        bool cut = parts_subject(subject, sizeof(subject), identity, left < 30 ? 60 : left);
        text_add(out, "%s %s %s\n", time, subject, headline->words[way]);
        if (cut && identity->pod)
                parts_whole(out, "subject", whole);
        return way;
}

static void add_limit(struct text *out, const struct report *report) {
        const struct facts *facts = report->facts;
        char a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX], group[PARTS_NAME_MAX];
        struct line line = {.used = 0};
        if (!facts->has_limit || !is_known(facts->limit_milli))
                return;
        line_add(&line, "%s", number_format_cpus(a, facts->limit_milli));
        if (facts->limit_level != LIMIT_CONTAINER) {
                line_add(&line, " of %s", facts->limit_level == LIMIT_POD ? "its Pod" : "its ancestor");
                if (facts->limit_cgroup)
                        line_add(&line, " %s",
                                 parts_name(group, sizeof(group), facts->limit_cgroup, PARTS_ALL, 70));
        }
        if (is_known(facts->quota_ns) && is_known(facts->period_ns))
                line_add(&line, " (%s of CPU per %s)", number_format_duration(a, facts->quota_ns),
                         number_format_duration(b, facts->period_ns));
        if (is_known(facts->burst_ns) && facts->burst_ns > 0)
                line_add(&line, ", burst credit %s", number_format_duration(a, facts->burst_ns));
        if (facts->limit_level != LIMIT_CONTAINER && is_known(facts->own_limit_milli))
                line_add(&line, ", its own limit is %s", number_format_cpus(a, facts->own_limit_milli));
        /* Of a calm container the first line has said it. */
        bool calm = report->judgement->verdict == VERDICT_FINE ||
                    report->judgement->verdict == VERDICT_NO_LIMIT;
        uint64_t used = calm ? ABSENT : parts_used_milli(facts->cpu_used_ns, facts->window_ns);
        if (is_known(used))
                line_add(&line, "; used %s", number_format_cpus(a, used));
        if (is_known(used) && facts->limit_milli > 0)
                line_add(&line, " (%s)", parts_percent(a, (double) used / (double) facts->limit_milli));
        if (is_known(report->identity.request_milli))
                line_add(&line, ", requested %s", number_format_cpus(a, report->identity.request_milli));
        parts_wrap(out, "limit", line.words);
}

static const char *who_words(const char *who) {
        if (who && strcmp(who, "platform") == 0)
                return " (for the platform team)";
        return who && strcmp(who, "node") == 0 ? " (for the node's administrator)" : "";
}

/* Something to copy into a shell, which a line break would spoil; anything else is a sentence. */
static bool is_command(const char *how) {
        static const char *const tools[] = {"kubectl ", "docker ", "podman ", "systemctl ",
                                            "helm ",    "echo ",   "sudo "};

        for (size_t i = 0; i < ELEMENTS(tools); i++)
                if (strncmp(how, tools[i], strlen(tools[i])) == 0)
                        return true;
        return false;
}

/* What to set on the first line; how beside it if that fits, else on lines of its own. */
static void add_fix(struct text *out, const struct fix *fix) {
        char setting[PARTS_SENTENCE_MAX], value[PARTS_SENTENCE_MAX], how[PARTS_SENTENCE_MAX];
        struct line line = {.used = 0};

        parts_sentence(setting, sizeof(setting), fix->setting);
        parts_sentence(value, sizeof(value), fix->value);
        parts_sentence(how, sizeof(how), fix->how);
        size_t length = strlen(setting);
        const char *to = !value[0] || (length > 0 && setting[length - 1] == '=') ? "" : " to ";
        if (length > 0)
                line_add(&line, "set %s%s%s%s", setting, to, value, who_words(fix->who));
        if (!how[0] || !line.used) {
                parts_wrap(out, "do", line.used ? line.words : how);
        } else if (PARTS_INDENT + text_columns(line.words) + 2 + text_columns(how) <= PARTS_COLUMNS) {
                line_add(&line, ": %s", how);
                parts_whole(out, "do", line.words);
        } else {
                line_add(&line, ":");
                parts_wrap(out, "do", line.words);
                if (is_command(how))
                        parts_whole(out, "", how);
                else
                        parts_wrap(out, "", how);
        }
        if (fix->then) {
                parts_sentence(how, sizeof(how), fix->then);
                parts_wrap(out, "then", how);
        }
}

static void add_findings(struct text *out, const struct judgement *judgement) {
        char summary[PARTS_SENTENCE_MAX];
        struct line line = {.used = 0};
        if (judgement->findings_count == 0)
                return;
        const struct finding *first = &judgement->findings[0];
        if (first->fixes_count > 0)
                add_fix(out, &first->fixes[0]);
        line_add(&line, "%s [%s, %s]", parts_sentence(summary, sizeof(summary), first->summary), first->code,
                 severity_name(first->severity));
        parts_wrap(out, "why", line.words);

        line = (struct line){.used = 0};
        for (size_t i = 1; i < judgement->findings_count; i++)
                line_add(&line, "%s%s (%s)", i > 1 ? ", " : "", judgement->findings[i].code,
                         severity_name(judgement->findings[i].severity));
        if (line.used)
                parts_wrap(out, "also", line.words);
}

/* "; look for latency near 75 and 175 ms": what a histogram of requests will show. */
static void add_latency_steps(struct line *line, const struct facts *facts) {
        uint64_t steps[FACTS_STEPS_MAX];
        char text[FACTS_STEPS_MAX][NUMBER_TEXT_MAX];
        size_t count = facts_latency_steps(facts, steps);

        for (size_t i = 0; i < count; i++)
                number_format_duration(text[i], steps[i]);
        if (count > 0)
                line_add(line, "%slook for latency near ", line->used ? "; " : "");
        for (size_t i = 0; i < count; i++) {
                /* A unit that the next one repeats is said there. */
                const char *unit = strchr(text[i], ' '),
                           *next = i + 1 < count ? strchr(text[i + 1], ' ') : NULL;
                size_t length = unit && next && strcmp(unit, next) == 0 ? (size_t) (unit - text[i])
                                                                        : strlen(text[i]);
                line_add(line, "%s%.*s",
                         i == 0          ? ""
                         : i + 1 < count ? ", "
                                         : " and ",
                         (int) length, text[i]);
        }
}

static void add_worst(struct text *out, const struct facts *facts) {
        char time[CLOCK_TEXT_MAX], a[NUMBER_TEXT_MAX], b[NUMBER_TEXT_MAX];
        struct line line = {.used = 0};
        const struct stall_interval *stall = facts->stalls_count > 0 ? &facts->stalls[0] : NULL;
        bool has_burst = is_known(facts->worst_burst_ns) && is_known(facts->worst_burst_stall_ns) &&
                         is_known(facts->worst_burst_at_ns) && facts->worst_burst_stall_ns > 0 &&
                         facts->worst_burst_stall_ns <= facts->worst_burst_ns;
        uint64_t at = facts->worst_burst_at_ns;
        bool is_inside = stall && has_burst && stall->start_ns >= at &&
                         stall->start_ns - at <= facts->worst_burst_ns;
        if (stall)
                line_add(&line, "%s stalled %s",
                         clock_format_time(time, clock_real_ns(&facts->to, stall->start_ns)),
                         number_format_duration(a, stall->end_ns - stall->start_ns));
        if (stall && has_burst)
                line_add(&line, is_inside ? ", in a burst that" : "; worst burst at ");
        if (has_burst && !is_inside)
                line_add(&line, "%s%s", stall ? "" : "burst at ",
                         clock_format_time(time, clock_real_ns(&facts->to, at)));
        if (has_burst)
                line_add(&line, " took %s instead of %s", number_format_duration(a, facts->worst_burst_ns),
                         number_format_duration(b, facts->worst_burst_ns - facts->worst_burst_stall_ns));
        add_latency_steps(&line, facts);
        if (line.used)
                parts_wrap(out, "worst", line.words);
}

/* Where the threads' time went, if to more than one cause; and what limits above did, which may be all that can be seen. */
static void add_causes(struct text *out, const struct facts *facts) {
        const struct {
                uint64_t ns;
                const char *name;
        } causes[] = {
                        {facts->quota_ns_lost, "own limit"},
                        {facts->ancestor_ns_lost, "limits above"},
                        {facts->contention_ns_lost, "busy CPUs"},
                        {facts->steal_ns_lost, "hypervisor"},
        };
        char time[NUMBER_TEXT_MAX];
        struct line line = {.used = 0};
        size_t count = 0;

        for (size_t i = 0; i < ELEMENTS(causes); i++) {
                if (!is_known(causes[i].ns) || causes[i].ns == 0)
                        continue;
                line_add(&line, "%s%s %s", count > 0 ? ", " : "thread time lost to: ", causes[i].name,
                         number_format_duration(time, causes[i].ns));
                count++;
        }
        if (count > 1)
                parts_wrap(out, "causes", line.words);
        if (!is_known(facts->ancestor_throttled_ns) || facts->ancestor_throttled_ns == 0)
                return;
        line = (struct line){.used = 0};
        line_add(&line, "limits above its own throttled it for %s (a sum over CPUs)",
                 number_format_duration(time, facts->ancestor_throttled_ns));
        parts_wrap(out, "above", line.words);
}

static bool has_delay(const struct facts *facts) {
        for (size_t i = 0; i < facts->threads_count; i++)
                if (is_known(facts->threads[i].runqueue_delay_ns))
                        return true;
        return false;
}

static void add_method(struct text *out, const struct report *report) {
        static const char *const reasons[LOST_REASON_COUNT] = {
#define X(upper, lower, text) [LOST_##upper] = text,
                        LOST_LIST(X)
#undef X
        };
        const struct facts *facts = report->facts;
        const char *quality = facts->exact ? "exact" : "estimate";
        char window[NUMBER_TEXT_MAX];
        struct line line = {.used = 0};
        bool lost = false;

        if (report->judgement->verdict == VERDICT_NOT_MEASURED)
                quality = "not enough to judge";
        line_add(&line, "%s over %s, %s", probe_method_name(facts->method),
                 number_format_duration(window, facts->window_ns), quality);
        if (facts->method == PROBE_FILES && has_delay(facts))
                line_add(&line, " (delayed = stalled and waited together; files cannot tell them apart)");
        for (size_t i = 0; i < LOST_REASON_COUNT; i++) {
                if (!is_known(facts->lost[i]) || facts->lost[i] == 0)
                        continue;
                line_add(&line, "%s %" PRIu64 " × %s", lost ? ";" : ", lost:", facts->lost[i], reasons[i]);
                lost = true;
        }
        if (!lost)
                line_add(&line, ", nothing lost");
        parts_wrap(out, "method", line.words);
}

static void add_missing(struct text *out, const struct facts *facts) {
        char what[PARTS_SENTENCE_MAX / 4], why[PARTS_SENTENCE_MAX / 4], remedy[PARTS_SENTENCE_MAX / 4];
        for (size_t i = 0; i < facts->missing_count; i++) {
                const struct missing_item *item = &facts->missing[i];
                struct line line = {.used = 0};
                parts_sentence(what, sizeof(what), item->what);
                parts_sentence(why, sizeof(why), item->why);
                parts_sentence(remedy, sizeof(remedy), item->remedy);
                line_add(&line, "%s%s%s%s%s", what, why[0] ? ": " : "", why, remedy[0] ? "; remedy: " : "",
                         remedy);
                parts_wrap(out, "missing", line.words);
        }
}

void report_text(const struct report *report, struct text *out) {
        struct headline headline;
        headline_of(report, &headline);
        add_first_line(out, report->facts->to.real_ns, &report->identity, &headline);
        add_findings(out, report->judgement);
        add_limit(out, report);
        add_worst(out, report->facts);
        add_causes(out, report->facts);
        text_runtimes(report, out);
        text_threads(report, out);
        add_method(out, report);
        add_missing(out, report->facts);
}

/* One line where it fits, because silence is known to be health by it; else what is more on a second one. */
void report_summary_text(const struct report_summary *summary, struct text *out) {
        char length[NUMBER_TEXT_MAX], number[NUMBER_TEXT_MAX], time[CLOCK_TEXT_MAX],
                        lost[48] = "", used[40] = "", worst[56] = "";
        bool lossless = summary->windows == summary->windows_lossless;
        struct headline headline;
        struct line line = {.used = 0};

        number_format_duration(length, summary->window_ns);
        if (lossless)
                snprintf(lost, sizeof(lost), "nothing lost");
        else if (is_known(summary->stall_wall_ns))
                snprintf(lost, sizeof(lost), "stalled %s",
                         number_format_duration(number, summary->stall_wall_ns));
        else
                snprintf(lost, sizeof(lost), "loss in %" PRIu64 " of %" PRIu64 " windows",
                         summary->windows - summary->windows_lossless, summary->windows);
        uint64_t milli = parts_used_milli(summary->cpu_used_ns, summary->window_ns);
        if (is_known(milli))
                snprintf(used, sizeof(used), ", used %s", number_format_cpus(number, milli));
        if (summary->worst_minute_at_ns > 0 && is_known(summary->worst_minute_at_ns) &&
            is_known(summary->worst_minute_stall_ns) && summary->worst_minute_stall_ns > 0)
                snprintf(worst, sizeof(worst), ", worst %.5sZ %s",
                         clock_format_time(time, summary->worst_minute_at_ns),
                         number_format_duration(number, summary->worst_minute_stall_ns));
        snprintf(headline.words[0], HEADLINE_MAX, "SUMMARY of %.20s: %.40s%s%s", length, lost, worst, used);
        snprintf(headline.words[1], HEADLINE_MAX, "SUMMARY: %s%s", lost, worst);
        snprintf(headline.words[2], HEADLINE_MAX, "SUMMARY");
        if (add_first_line(out, summary->at.real_ns, &summary->identity, &headline) == 0)
                return;
        line_add(&line, "%s: %s%s%s; %" PRIu64 " of %" PRIu64 " windows without a loss", length, lost, worst,
                 used, summary->windows_lossless, summary->windows);
        parts_wrap(out, "in all", line.words);
}

void report_notice_text(const struct report_notice *notice, struct text *out) {
        char time[CLOCK_TEXT_MAX], sentence[PARTS_SENTENCE_MAX], first[PARTS_SENTENCE_MAX];
        const char *word = notice->level && strcmp(notice->level, "warning") == 0 ? "WARNING" : "NOTICE";
        clock_format(time, notice->at.real_ns, 0);
        parts_sentence(sentence, sizeof(sentence), notice->text);
        /* As much of the sentence as fits stays on the line with the word that people search for. */
        size_t width = PARTS_COLUMNS - text_columns(time) - strlen(" throttlescope ") - strlen(word) - 1,
               end = 0;
        for (size_t at = 0;; at += 1 + strcspn(sentence + at + 1, " ")) {
                if (sentence[at] != ' ' && sentence[at] != '\0')
                        continue;
                snprintf(first, sizeof(first), "%.*s", (int) at, sentence);
                if (text_columns(first) > width)
                        break;
                end = at;
                if (sentence[at] == '\0')
                        break;
        }
        text_add(out, "%s throttlescope %s%s%.*s\n", time, word, end > 0 ? " " : "", (int) end, sentence);
        if (sentence[end])
                parts_wrap(out, "", sentence + end);
}
