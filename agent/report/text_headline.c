/* SPDX-License-Identifier: Apache-2.0 */
#include "text_headline.h"

#include <stdarg.h>
#include <stdio.h>

#include "text_parts.h"

enum { FULL, BRIEF, BARE };

static void __attribute__((format(printf, 3, 4)))
say(struct headline *headline, int way, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(headline->words[way], HEADLINE_MAX, format, arguments);
        va_end(arguments);
}

/* "28%" of the wanted time (run + stall + wait of all threads) went to @lost_ns; false if that cannot be said. */
static bool share_of_wanted(const struct facts *facts, uint64_t lost_ns, char out[static NUMBER_TEXT_MAX]) {
        if (!is_known(lost_ns) || !is_known(facts->wanted_milli) || facts->wanted_milli == 0 ||
            facts->window_ns == 0)
                return false;
        /* A part of it: where the two come from different clocks (files), the part can seem larger than the whole. */
        double share = (double) lost_ns * 1000 / ((double) facts->wanted_milli * (double) facts->window_ns);
        parts_percent(out, share < 1 ? share : 1);
        return true;
}

/*
 * How much of the time: of the wall clock where stalls were measured, else of the kernel's periods. Each begins with a blank; both are
 * empty if neither is known.
 */
struct extent {
        char full[64], brief[64];
};

static void extent_of(const struct facts *facts, struct extent *ret) {
        char percent[NUMBER_TEXT_MAX];
        *ret = (struct extent){0};
        if (is_known(facts->stall_wall_ns) && facts->window_ns > 0) {
                parts_percent(percent, (double) facts->stall_wall_ns / (double) facts->window_ns);
                snprintf(ret->full, sizeof(ret->full), " %s of wall time", percent);
                snprintf(ret->brief, sizeof(ret->brief), " %s", percent);
        } else if (is_known(facts->periods_throttled) && is_known(facts->periods) && facts->periods > 0) {
                parts_percent(percent, (double) facts->periods_throttled / (double) facts->periods);
                snprintf(ret->full, sizeof(ret->full), " in %s of its periods", percent);
                snprintf(ret->brief, sizeof(ret->brief), " in %s of periods", percent);
        }
}

static void say_quota(const struct facts *facts, struct headline *ret) {
        char limit[NUMBER_TEXT_MAX] = "";
        struct extent extent;
        extent_of(facts, &extent);
        if (is_known(facts->own_limit_milli))
                number_format_cpus(limit, facts->own_limit_milli);
        else if (facts->has_limit && is_known(facts->limit_milli))
                number_format_cpus(limit, facts->limit_milli);
        const char *blank = limit[0] ? " " : "";
        say(ret, FULL, "THROTTLED%s by its own limit%s%s", extent.full, blank, limit);
        say(ret, BRIEF, "THROTTLED%s, own limit%s%s", extent.brief, blank, limit);
        say(ret, BARE, "THROTTLED%s", extent.brief);
}

/* The last component is what people call a group; the whole path is in the line "limit". */
static const char *last_component(const char *path) {
        const char *name = path;
        for (const char *s = path; *s; s++)
                if (s[0] == '/' && s[1] != '\0')
                        name = s + 1;
        return name;
}

static void say_ancestor(const struct facts *facts, struct headline *ret) {
        char limit[NUMBER_TEXT_MAX] = "", group[64] = "", full[96] = "";
        const char *whose = "a limit above it";
        struct extent extent;
        extent_of(facts, &extent);
        /* The tightest limit that is visible may be the container's own, and the culprit hidden above our namespace. */
        if (facts->has_limit && facts->limit_level != LIMIT_CONTAINER && is_known(facts->limit_milli)) {
                whose = facts->limit_level == LIMIT_POD ? "its Pod's limit" : "an ancestor's limit";
                number_format_cpus(limit, facts->limit_milli);
                if (facts->limit_cgroup && facts->limit_level != LIMIT_POD) {
                        parts_name(group, sizeof(group), last_component(facts->limit_cgroup), PARTS_ALL, 32);
                        snprintf(full, sizeof(full), " at %s", group);
                }
        }
        const char *blank = limit[0] ? " " : "";
        say(ret, FULL, "THROTTLED%s by %s%s%s%s", extent.full, whose, blank, limit, full);
        say(ret, BRIEF, "THROTTLED%s by %s%s%s", extent.brief, whose, blank, limit);
        say(ret, BARE, "THROTTLED by %s", whose);
}

static void say_contention(const struct facts *facts, struct headline *ret) {
        char share[NUMBER_TEXT_MAX];
        if (share_of_wanted(facts, facts->contention_ns_lost, share)) {
                say(ret, FULL, "WAITING %s of wanted time: CPUs busy, not throttled", share);
                say(ret, BRIEF, "WAITING %s: CPUs busy, not throttled", share);
                say(ret, BARE, "WAITING %s", share);
                return;
        }
        say(ret, FULL, "WAITING: CPUs busy, not throttled");
        say(ret, BRIEF, "WAITING: CPUs busy");
        say(ret, BARE, "WAITING");
}

static void say_steal(const struct facts *facts, struct headline *ret) {
        char share[NUMBER_TEXT_MAX];
        if (share_of_wanted(facts, facts->steal_ns_lost, share)) {
                say(ret, FULL, "STOLEN %s of wanted time by the hypervisor", share);
                say(ret, BRIEF, "STOLEN %s by the hypervisor", share);
                say(ret, BARE, "STOLEN %s", share);
                return;
        }
        say(ret, FULL, "STOLEN by the hypervisor");
        say(ret, BRIEF, "STOLEN");
        say(ret, BARE, "STOLEN");
}

/* How the loss is shared out is in the line "causes". */
static void say_mixed(const struct facts *facts, struct headline *ret) {
        const uint64_t causes[] = {facts->quota_ns_lost, facts->ancestor_ns_lost, facts->contention_ns_lost,
                                   facts->steal_ns_lost};
        char share[NUMBER_TEXT_MAX];
        uint64_t sum = ABSENT;

        for (size_t i = 0; i < ELEMENTS(causes); i++)
                known_add(&sum, causes[i]);
        if (share_of_wanted(facts, sum, share)) {
                say(ret, FULL, "MIXED %s of wanted time lost, to several causes", share);
                say(ret, BRIEF, "MIXED causes took %s", share);
                say(ret, BARE, "MIXED %s", share);
                return;
        }
        say(ret, FULL, "MIXED causes");
        say(ret, BRIEF, "MIXED");
        say(ret, BARE, "MIXED");
}

/* "used 108m", with what it may use where that is known. */
static void say_calm(const struct report *report, struct headline *ret) {
        const struct facts *facts = report->facts;
        const char *word = report->judgement->verdict == VERDICT_NO_LIMIT ? "NO LIMIT" : "OK";
        char used[NUMBER_TEXT_MAX], limit[NUMBER_TEXT_MAX], share[NUMBER_TEXT_MAX], stalled[64] = "";
        uint64_t milli = parts_used_milli(facts->cpu_used_ns, facts->window_ns);

        if (facts->stall_wall_ns == 0) {
                snprintf(stalled, sizeof(stalled), ", no stall");
        } else if (is_known(facts->stall_wall_ns)) {
                number_format_duration(used, facts->stall_wall_ns);
                snprintf(stalled, sizeof(stalled), ", stalled %s", used);
        }
        say(ret, FULL, "%s", word);
        say(ret, BRIEF, "%s", word);
        say(ret, BARE, "%s", word);
        if (!is_known(milli))
                return;
        number_format_cpus(used, milli);
        say(ret, FULL, "%s used %s%s", word, used, stalled);
        say(ret, BRIEF, "%s used %s", word, used);
        if (!facts->has_limit && is_known(report->identity.request_milli))
                say(ret, FULL, "%s used %s, requested %s%s", word, used,
                    number_format_cpus(limit, report->identity.request_milli), stalled);
        if (!facts->has_limit || !is_known(facts->limit_milli) || facts->limit_milli == 0)
                return;
        number_format_cpus(limit, facts->limit_milli);
        parts_percent(share, (double) milli / (double) facts->limit_milli);
        say(ret, FULL, "%s used %s of its limit %s (%s)%s", word, used, limit, share, stalled);
        say(ret, BRIEF, "%s used %s of %s (%s)", word, used, limit, share);
}

void headline_of(const struct report *report, struct headline *ret_headline) {
        const struct facts *facts = report->facts;
        switch (report->judgement->verdict) {
        case VERDICT_QUOTA:
                say_quota(facts, ret_headline);
                return;
        case VERDICT_ANCESTOR_QUOTA:
                say_ancestor(facts, ret_headline);
                return;
        case VERDICT_CONTENTION:
                say_contention(facts, ret_headline);
                return;
        case VERDICT_STEAL:
                say_steal(facts, ret_headline);
                return;
        case VERDICT_MIXED:
                say_mixed(facts, ret_headline);
                return;
        case VERDICT_FINE:
        case VERDICT_NO_LIMIT:
                say_calm(report, ret_headline);
                return;
        case VERDICT_NOT_MEASURED:
        case VERDICT_COUNT:
                break;
        }
        /* All ways out on the first line, however long: whoever reads this has nothing else to go by. */
        for (int way = 0; way < HEADLINE_WAYS; way++)
                say(ret_headline, way,
                    "NOT MEASURED; ways out: wrapper, kubectl debug, shareProcessNamespace, DaemonSet");
}
