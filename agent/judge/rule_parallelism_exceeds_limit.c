/* SPDX-License-Identifier: Apache-2.0 */
/* ParallelismExceedsLimit: more threads or processes work at once than the limit has CPUs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "../base/number.h"
#include "excess.h"
#include "ratio.h"
#include "remedy.h"
#include "rules.h"

/* From twice the number on, a setting that did no harm is told: it will, once all of them have work. */
#define ASIDE_FACTOR 2

/* "haproxy 2.6 runs 48 threads by nbthread (default: …)" */
static const char *describe_row(const struct parallelism_facts *row, struct arena *arena) {
        char program[FINDING_NAME_MAX], setting[FINDING_NAME_MAX], source[FINDING_NAME_MAX],
                        says[FINDING_NAME_MAX] = "";
        const char *unit = row->row->unit == UNIT_PROCESSES ? "processes" : "threads";

        if (is_known(row->row->configured) && row->row->configured != row->row->effective)
                snprintf(says, sizeof(says), ", though its configuration says %" PRIu64 " by now",
                         row->row->configured);
        else if (row->row->aware == AWARENESS_QUOTA &&
                 (row->row->source == FROM_ENVIRONMENT || row->row->source == FROM_ARGUMENT ||
                  row->row->source == FROM_CONFIG || row->row->source == FROM_CODE))
                snprintf(says, sizeof(says), ", which overrides its own reading of the limit");
        return arena_format(arena, "%s: %s is %" PRIu64 " %s%s%s", finding_program(program, row->row),
                            finding_escape(setting, row->row->setting), row->row->effective, unit,
                            finding_source(source, row->row), says);
}

/* "app: 96 threads worker-, 90 of which worked; two for each CPU, it looks like" */
static const char *describe_pool(const struct facts *facts, const struct pool *pool, struct arena *arena) {
        char process[FINDING_NAME_MAX], name[FINDING_NAME_MAX], hint[FINDING_NAME_MAX] = "";
        const char *rule = facts_resembles(pool->group_threads, facts->cpus_online);

        finding_escape_name(process, pool->process);
        finding_escape_name(name, pool->name);
        if (pool->group_busy < 2)
                return arena_format(arena, "%" PRIu64 " threads of its programs worked", pool->busy);
        if (rule)
                snprintf(hint, sizeof(hint), ", which looks like %s (%u)", rule, facts->cpus_online);
        return arena_format(arena, "%s: %" PRIu64 " threads %s%s", process, pool->group_threads, name, hint);
}

static const char *describe_spinning(const struct facts *facts, const struct parallelism_facts *row,
                                     struct arena *arena) {
        char share[FINDING_SHARE_MAX];
        uint64_t spent_ns = facts->throttled_used_ns;

        if (!row->row->spins || known_or_zero(row->quota_spent_ns) == 0 || !is_known(row->quota_spent_ns) ||
            !is_known(spent_ns))
                return "";
        return arena_format(arena, "; they spin for work when idle, and used %s of the quota that was spent",
                            finding_format_share(share, row->quota_spent_ns, spent_ns));
}

static const char *describe(const struct facts *facts, const struct excess *excess, struct arena *arena) {
        char limit[NUMBER_TEXT_MAX], at_once[NUMBER_TEXT_MAX + 32] = "";
        const char *what = excess->row ? describe_row(excess->row, arena)
                                       : describe_pool(facts, &excess->pool, arena);
        const char *spinning = excess->row ? describe_spinning(facts, excess->row, arena) : "";

        if (!what || !spinning)
                return NULL;
        if (is_known(excess->at_once))
                snprintf(at_once, sizeof(at_once), ", up to %" PRIu64 " wanted to run at once",
                         excess->at_once);
        return arena_format(arena,
                            "%s; the limit %s has %" PRIu64 " CPU%s: %" PRIu64
                            " of them worked%s, and stalled together when its quota was used up%s",
                            what, number_format_cpus(limit, facts->limit_milli), excess->allowed,
                            excess->allowed == 1 ? "" : "s", excess->busy, at_once, spinning);
}

/* Fewer of them. 1, 0 where nobody knows which setting it is and how many, or -ENOMEM. */
static int fewer(const struct facts *facts, const struct parallelism_facts *row, uint64_t number,
                 struct arena *arena, struct fix *ret_fix) {
        struct fix fix = {.who = "app"};

        fix.then = facts->limit_milli < 1000
                                   ? "takes a restart. Below 1 CPU even one thread can use the quota up: "
                                     "fewer wait in each stall, but stalls remain"
                                   : "takes a restart; no more work is done or lost by it, the limit grants "
                                     "as much as before";
        fix.value = is_known(number) ? arena_format(arena, "%" PRIu64, number) : NULL;
        if (!row) {
                fix.setting = "threads that work at once";
                fix.how = "in the program's own configuration; what it calls them, this program does not "
                          "know";
        } else if (is_known(number) && is_known(row->row->configured) && row->row->configured <= number) {
                fix.setting = row->row->setting;
                fix.value = arena_format(arena, "%" PRIu64, row->row->configured);
                fix.how = "its configuration says so already: reload it, or restart it if it cannot";
        } else {
                fix.setting = row->row->setting;
                fix.how = row->how ? row->how : "let fewer of them work at once: a smaller pool in front";
        }
        if (is_known(number) && !fix.value)
                return -ENOMEM;
        *ret_fix = fix;
        return 1;
}

static int higher_limit(const struct facts *facts, struct arena *arena, struct fix *ret_fix) {
        char quantity[NUMBER_TEXT_MAX];
        uint64_t milli = remedy_needed_milli(facts, facts->limit_milli, facts->period_ns);
        int r = remedy_set_limit(arena, facts->cgroup_v1_mount, facts->limit_level, facts->limit_cgroup,
                                 milli, facts->period_ns, ret_fix);
        if (r < 0)
                return r;
        const char *sets_off = remedy_consequences(facts, milli, arena);
        if (!sets_off)
                return -ENOMEM;
        ret_fix->then = arena_format(arena, "it may use up to %s at once%s%s",
                                     number_format_cpus(quantity, milli), sets_off[0] ? "; " : "", sets_off);
        return ret_fix->then ? 1 : -ENOMEM;
}

/* Both ways, the one that the evidence favours first. */
static int add_fixes(const struct facts *facts, const struct excess *excess, struct arena *arena,
                     struct finding *finding) {
        struct fix less, more;
        bool is_fewer_first = excess->is_far && !(excess->row && excess->row->row->is_blocking);
        int r = fewer(facts, excess->row, excess->recommended, arena, &less);

        if (r >= 0 && is_fewer_first)
                r = finding_take_fix(finding, r, &less);
        if (r >= 0) {
                int s = higher_limit(facts, arena, &more);
                int taken = finding_take_fix(finding, s, &more);
                r = taken < 0 ? taken : r;
        }
        if (r >= 0 && !is_fewer_first)
                r = finding_take_fix(finding, 1, &less);
        return r < 0 ? r : 0;
}

/* A setting that is far too high and did nothing yet; NULL: none. */
static const struct parallelism_facts *waiting_row(const struct facts *facts) {
        const struct parallelism_facts *found = NULL;

        for (size_t i = 0; i < facts->parallelism_count; i++) {
                const struct parallelism_facts *row = &facts->parallelism[i];
                /* Those that mostly wait are no fault; those that all slept harm nobody. */
                bool is_idle = row->threads > 0 && row->threads_busy == 0;
                if (!row->row->is_blocking && !is_idle && is_known(row->surplus) &&
                    row->row->effective >= row->recommended * ASIDE_FACTOR &&
                    (!found || row->surplus > found->surplus))
                        found = row;
        }
        return found;
}

static int tell_aside(const struct facts *facts, const struct excess *excess, const struct lost_time *lost,
                      struct arena *arena, struct finding *finding) {
        const struct parallelism_facts *row = waiting_row(facts);
        char limit[NUMBER_TEXT_MAX];
        struct fix fix;

        if (!row)
                return 0;
        const char *what = describe_row(row, arena);
        if (!what)
                return -ENOMEM;
        finding->severity = SEVERITY_INFO;
        finding->is_aside = true;
        finding->summary = arena_format(
                        arena, "%s, where the limit %s suggests %" PRIu64 "; %s", what,
                        number_format_cpus(limit, facts->limit_milli), row->recommended,
                        lost_by_limits(lost) > 0 ? "they did not work at the same time, so the stalls are "
                                                   "not their doing"
                                                 : "no harm in this window");
        if (!finding->summary)
                return -ENOMEM;
        finding_add_evidence(finding, "effective", row->row->effective);
        finding_add_evidence(finding, "recommended", row->recommended);
        finding_add_evidence(finding, "threads_worked", row->threads > 0 ? row->threads_busy : ABSENT);
        finding_add_evidence(finding, "runnable_p99", excess->at_once);
        finding_add_evidence(finding, "limit_millicpus", facts->limit_milli);
        finding_add_evidence(finding, "surplus_memory_bytes", row->surplus_memory_bytes);
        int r = fewer(facts, row, row->recommended, arena, &fix);
        r = finding_take_fix(finding, r, &fix);
        return r < 0 ? r : 1;
}

int rule_parallelism_exceeds_limit(const struct facts *facts, const struct judge_options *options,
                                   struct arena *arena, struct finding *ret_finding) {
        struct lost_time lost = lost_time_of(facts);
        struct finding finding = {.code = "ParallelismExceedsLimit"};
        struct excess excess;
        int r = excess_of(facts, &lost, arena, &excess);

        if (r < 0 || !is_known(excess.allowed))
                return r;
        if (!excess.collides) {
                r = tell_aside(facts, &excess, &lost, arena, &finding);
                if (r > 0)
                        *ret_finding = finding;
                return r;
        }
        finding.severity = lost_severity(facts, options, &lost);
        /* Many threads of no known pool at a start: compilers and loaders, which will be gone. */
        finding.is_aside = !excess.row && facts_is_starting(facts);
        finding.summary = describe(facts, &excess, arena);
        if (!finding.summary)
                return -ENOMEM;
        finding_add_evidence(&finding, "effective",
                             excess.row ? excess.row->row->effective : excess.pool.group_threads);
        finding_add_evidence(&finding, "recommended", excess.recommended);
        finding_add_evidence(&finding, "threads_worked", excess.busy);
        finding_add_evidence(&finding, "runnable_p99", excess.at_once);
        finding_add_evidence(&finding, "limit_millicpus", facts->limit_milli);
        finding_add_evidence(&finding, "stall_ns", lost_by_limits(&lost));
        finding_add_evidence(&finding, "quota_spent_ns", excess.row ? excess.row->quota_spent_ns : ABSENT);
        finding_add_evidence(&finding, "surplus_memory_bytes",
                             excess.row ? excess.row->surplus_memory_bytes : ABSENT);
        r = add_fixes(facts, &excess, arena, &finding);
        if (r < 0)
                return r;
        *ret_finding = finding;
        return 1;
}
