/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form: the contract of docs/report.md, field by field and in its order. */
#include <errno.h>

#include "../probe/probe.h"
#include "json_build.h"
#include "json_parallelism.h"
#include "json_threads.h"
#include "text_parts.h"

static void add_limit(struct build *build, cJSON *root, const struct report *report) {
        const struct facts *facts = report->facts;
        cJSON *request = build_object(build);
        if (facts->has_limit) {
                cJSON *limit = build_object(build);
                build_milli(build, limit, "cpus", facts->limit_milli);
                build_u64(build, limit, "quota_ns", facts->quota_ns);
                build_u64(build, limit, "period_ns", facts->period_ns);
                build_u64(build, limit, "burst_ns", facts->burst_ns);
                build_sentence(build, limit, "level", parts_limit_level(facts->limit_level));
                build_name(build, limit, "cgroup", facts->limit_cgroup, PARTS_ALL);
                build_attach(build, root, "limit", limit);
        }
        build_milli(build, request, "cpus", report->identity.request_milli);
        build_attach(build, root, "request", request);
        build_u64(build, root, "weight", facts->weight);
}

static void add_cpu(struct build *build, cJSON *root, const struct facts *facts) {
        cJSON *cpu = build_object(build);
        double window = (double) facts->window_ns, limit = (double) facts->limit_milli / 1000;
        build_u64(build, cpu, "used_ns", facts->cpu_used_ns);
        if (is_known(facts->cpu_used_ns) && facts->window_ns > 0) {
                double cpus = (double) facts->cpu_used_ns / window;
                build_fraction(build, cpu, "cpus", cpus);
                if (facts->has_limit && is_known(facts->limit_milli) && facts->limit_milli > 0)
                        build_fraction(build, cpu, "of_limit", cpus / limit);
        }
        build_attach(build, root, "cpu", cpu);
}

static void add_periods(struct build *build, cJSON *root, const struct facts *facts) {
        cJSON *periods = build_object(build);
        build_u64(build, periods, "total", facts->periods);
        build_u64(build, periods, "throttled", facts->periods_throttled);
        build_u64(build, periods, "bursts", facts->periods_bursts);
        build_u64(build, periods, "throttled_used_ns", facts->throttled_used_ns);
        build_attach(build, root, "periods", periods);
        build_u64(build, root, "runqueue_throttled_ns", facts->runqueue_throttled_ns);
        build_u64(build, root, "ancestor_throttled_ns", facts->ancestor_throttled_ns);
}

static void add_latency_steps(struct build *build, cJSON *stall, const struct facts *facts) {
        uint64_t steps[FACTS_STEPS_MAX];
        size_t count = facts_latency_steps(facts, steps);
        if (count == 0)
                return;
        cJSON *array = build_array(build);
        for (size_t i = 0; i < count; i++)
                build_append_u64(build, array, steps[i]);
        build_attach(build, stall, "latency_steps_ns", array);
}

static void add_stalls(struct build *build, cJSON *root, const struct facts *facts, size_t shown) {
        cJSON *stall = build_object(build);
        build_u64(build, stall, "count", facts->stall_count);
        build_u64(build, stall, "wall_ns", facts->stall_wall_ns);
        build_u64(build, stall, "longest_ns", facts->stall_longest_ns);
        build_u64(build, stall, "p50_ns", facts->stall_p50_ns);
        build_u64(build, stall, "p99_ns", facts->stall_p99_ns);
        add_latency_steps(build, stall, facts);
        build_attach(build, root, "stall", stall);
        if (!is_known(facts->stall_count) && facts->stalls_count == 0)
                return;
        cJSON *stalls = build_array(build);
        for (size_t i = 0; i < shown && i < facts->stalls_count; i++) {
                const struct stall_interval *interval = &facts->stalls[i];
                cJSON *one = build_object(build);
                build_time(build, one, "start", clock_real_ns(&facts->to, interval->start_ns));
                build_u64(build, one, "ns", interval->end_ns - interval->start_ns);
                build_append(build, stalls, one);
        }
        build_attach(build, root, "stalls", stalls);
}

static void add_causes(struct build *build, cJSON *root, const struct facts *facts) {
        cJSON *causes = build_object(build), *demand = build_object(build);
        build_u64(build, causes, "quota_ns", facts->quota_ns_lost);
        build_u64(build, causes, "ancestor_ns", facts->ancestor_ns_lost);
        build_u64(build, causes, "contention_ns", facts->contention_ns_lost);
        build_u64(build, causes, "steal_ns", facts->steal_ns_lost);
        build_attach(build, root, "causes", causes);
        build_milli(build, demand, "wanted_cpus", facts->wanted_milli);
        build_u64(build, demand, "runnable_max", facts->runnable_max);
        build_u64(build, demand, "runnable_p99", facts->runnable_p99);
        build_milli(build, demand, "unstalled", facts->unstalled_milli);
        build_attach(build, root, "demand", demand);
}

static void add_burst(struct build *build, cJSON *root, const struct facts *facts) {
        cJSON *burst = build_object(build);
        build_u64(build, burst, "count", facts->burst_count);
        build_u64(build, burst, "cpu_p50_ns", facts->burst_cpu_p50_ns);
        build_u64(build, burst, "cpu_p99_ns", facts->burst_cpu_p99_ns);
        build_u64(build, burst, "cpu_max_ns", facts->burst_cpu_max_ns);
        build_u64(build, burst, "gap_p50_ns", facts->burst_gap_p50_ns);
        build_u64(build, burst, "longest_ns", facts->burst_longest_ns);
        build_milli(build, burst, "slowdown", facts->burst_slowdown_permille);
        build_attach(build, root, "burst", burst);
}

static cJSON *fixes_array(struct build *build, const struct finding *finding) {
        cJSON *fixes = build_array(build);
        for (size_t i = 0; i < finding->fixes_count; i++) {
                const struct fix *fix = &finding->fixes[i];
                cJSON *one = build_object(build);
                build_sentence(build, one, "setting", fix->setting);
                build_sentence(build, one, "value", fix->value);
                build_sentence(build, one, "how", fix->how);
                build_sentence(build, one, "who", fix->who);
                build_sentence(build, one, "then", fix->then);
                build_append(build, fixes, one);
        }
        return fixes;
}

static void add_judgement(struct build *build, cJSON *root, const struct judgement *judgement) {
        cJSON *findings = build_array(build);
        build_sentence(build, root, "verdict", verdict_name(judgement->verdict));
        build_sentence(build, root, "severity", severity_name(judgement->severity));
        for (size_t i = 0; i < judgement->findings_count; i++) {
                const struct finding *finding = &judgement->findings[i];
                cJSON *one = build_object(build), *evidence = build_object(build);
                build_sentence(build, one, "code", finding->code);
                build_sentence(build, one, "severity", severity_name(finding->severity));
                build_sentence(build, one, "summary", finding->summary);
                for (size_t k = 0; k < finding->evidence_count; k++)
                        build_u64(build, evidence, finding->evidence[k].name, finding->evidence[k].value);
                build_attach(build, one, "evidence", evidence);
                build_attach(build, one, "fixes", fixes_array(build, finding));
                build_append(build, findings, one);
        }
        build_attach(build, root, "findings", findings);
}

static void add_quality(struct build *build, cJSON *root, const struct facts *facts) {
        cJSON *missing = build_array(build);
        build_sentence(build, root, "method", probe_method_name(facts->method));
        build_bool(build, root, "exact", facts->exact);
        for (size_t i = 0; i < facts->missing_count; i++) {
                cJSON *one = build_object(build);
                build_sentence(build, one, "what", facts->missing[i].what);
                build_sentence(build, one, "why", facts->missing[i].why);
                build_sentence(build, one, "remedy", facts->missing[i].remedy);
                build_append(build, missing, one);
        }
        build_attach(build, root, "missing", missing);
}

static void add_lost(struct build *build, cJSON *root, const struct facts *facts) {
        static const char *const names[LOST_REASON_COUNT] = {
#define X(upper, lower, text) [LOST_##upper] = #lower,
                        LOST_LIST(X)
#undef X
        };
        cJSON *lost = build_object(build);
        for (size_t i = 0; i < LOST_REASON_COUNT; i++)
                if (facts->lost[i] > 0)
                        build_u64(build, lost, names[i], facts->lost[i]);
        build_attach(build, root, "lost", lost);
}

/* How much of what can be long is in the line. */
struct shown {
        size_t threads, stalls, rows;
};

static int print_container(const struct report *report, const struct shown *shown, char *line) {
        const struct facts *facts = report->facts;
        struct build build = {.failed = false};
        cJSON *root = build_object(&build);
        build_head(&build, root, "container", facts->to.real_ns, facts->window_ns, report->version);
        build_identity(&build, root, &report->identity);
        add_quality(&build, root, facts);
        add_limit(&build, root, report);
        add_cpu(&build, root, facts);
        add_periods(&build, root, facts);
        add_stalls(&build, root, facts, shown->stalls);
        add_causes(&build, root, facts);
        add_burst(&build, root, facts);
        json_threads(&build, root, facts, shown->threads);
        json_parallelism(&build, root, facts, shown->rows);
        add_judgement(&build, root, report->judgement);
        add_lost(&build, root, facts);
        return build_print(&build, root, line);
}

/*
 * The most that fit of *@part, one of the numbers in @shown, which is lowered to that; @line then holds that line. Halving instead of leaving
 * out one by one: a line takes as long as a tick may with hundreds of threads. 0, -EMSGSIZE if not even none of them fits, -ENOMEM.
 */
static int print_most(const struct report *report, struct shown *shown, size_t *part, char *line) {
        size_t fits = 0, too_many = *part;
        *part = 0;
        int r = print_container(report, shown, line);
        if (r < 0)
                return r;
        while (too_many - fits > 1) {
                *part = fits + (too_many - fits) / 2;
                r = print_container(report, shown, line);
                if (r == 0)
                        fits = *part;
                else if (r == -EMSGSIZE)
                        too_many = *part;
                else
                        return r;
        }
        *part = fits;
        return print_container(report, shown, line);
}

static int add_line(struct text *out, const char *line) {
        text_add(out, "%s", line);
        return out->cut ? -ENOMEM : 0;
}

int report_json(const struct report *report, struct text *out) {
        /* The shortest thread takes more than this, so more of them need not be tried. */
        const size_t thread_least = sizeof("{\"process\":\"\",\"name\":\"\",\"ended\":true},") - 1;
        const struct facts *facts = report->facts;
        char line[REPORT_JSON_MAX + 1];
        struct shown shown = {
                        .threads = facts->threads_count < report->threads_max ? facts->threads_count
                                                                              : report->threads_max,
                        .stalls = facts->stalls_count,
                        .rows = facts->parallelism_count,
        };
        /* What tells least goes first. */
        size_t *const parts[] = {&shown.threads, &shown.stalls, &shown.rows};
        if (shown.threads > REPORT_JSON_MAX / thread_least)
                shown.threads = REPORT_JSON_MAX / thread_least;

        int r = print_container(report, &shown, line);
        for (size_t i = 0; r == -EMSGSIZE && i < ELEMENTS(parts); i++)
                r = print_most(report, &shown, parts[i], line);
        return r < 0 ? r : add_line(out, line);
}

int report_summary_json(const struct report_summary *summary, struct text *out) {
        char line[REPORT_JSON_MAX + 1];
        struct build build = {.failed = false};
        cJSON *root = build_object(&build), *stall = build_object(&build), *cpu = build_object(&build),
              *worst = build_object(&build);
        build_head(&build, root, "summary", summary->at.real_ns, summary->window_ns, summary->version);
        build_identity(&build, root, &summary->identity);
        build_u64(&build, root, "windows", summary->windows);
        build_u64(&build, root, "windows_lossless", summary->windows_lossless);
        build_u64(&build, cpu, "used_ns", summary->cpu_used_ns);
        if (is_known(summary->cpu_used_ns) && summary->window_ns > 0)
                build_fraction(&build, cpu, "cpus",
                               (double) summary->cpu_used_ns / (double) summary->window_ns);
        build_attach(&build, root, "cpu", cpu);
        build_u64(&build, stall, "wall_ns", summary->stall_wall_ns);
        build_attach(&build, root, "stall", stall);
        if (summary->worst_minute_at_ns > 0 && is_known(summary->worst_minute_at_ns)) {
                build_u64(&build, worst, "stall_ns", summary->worst_minute_stall_ns);
                build_time(&build, worst, "time", summary->worst_minute_at_ns);
        }
        build_attach(&build, root, "worst_minute", worst);
        int r = build_print(&build, root, line);
        return r < 0 ? r : add_line(out, line);
}

int report_notice_json(const struct report_notice *notice, struct text *out) {
        char line[REPORT_JSON_MAX + 1];
        struct build build = {.failed = false};
        cJSON *root = build_object(&build);
        build_head(&build, root, "notice", notice->at.real_ns, ABSENT, notice->version);
        build_sentence(&build, root, "level", notice->level);
        build_sentence(&build, root, "text", notice->text);
        int r = build_print(&build, root, line);
        return r < 0 ? r : add_line(out, line);
}
