/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One report structure; each form (text, JSON) renders it and decides nothing. */
#include "../base/text.h"
#include "../judge/judge.h"

#define REPORT_SCHEMA 1
/* The container runtimes split log lines longer than 16 KiB. */
#define REPORT_JSON_MAX (16u << 10)

struct report_identity {
        const char *node, *namespace, *pod, *pod_uid, *container, *container_id,
                        *cgroup; /* NULL: not known */
        uint64_t request_milli;  /* ABSENT */
        uint32_t process_id; /* some process of it for the subject line where nothing better is known; 0 none */
};

struct report {
        struct report_identity identity;
        const struct facts *facts;
        const struct judgement *judgement;
        const char *version;
        unsigned threads_max; /* --threads */
};

/* `type: summary`: the hourly line of a silent container. */
struct report_summary {
        struct report_identity identity;
        struct instant at;
        uint64_t window_ns;
        uint64_t windows, windows_lossless;
        uint64_t stall_wall_ns, cpu_used_ns;
        uint64_t worst_minute_stall_ns, worst_minute_at_ns; /* wall clock; 0: none */
        const char *version;
};
/* `type: notice`: something about the agent itself (method changed, permission missing, target gone). */
struct report_notice {
        struct instant at;
        const char *level; /* "info", "warning" */
        const char *text;
        const char *version;
};

/* Text form: lines of at most 100 columns, foreign names escaped, ends with a newline. */
void report_text(const struct report *report, struct text *out);
void report_summary_text(const struct report_summary *summary, struct text *out);
void report_notice_text(const struct report_notice *notice, struct text *out);

/*
 * JSON form: one line with its newline, at most REPORT_JSON_MAX bytes: while longer, the last threads, then the shortest stalls, are
 * moved to the omitted sums. 0, -ENOMEM, or -EMSGSIZE if even the core does not fit.
 */
int report_json(const struct report *report, struct text *out);
int report_summary_json(const struct report_summary *summary, struct text *out);
int report_notice_json(const struct report_notice *notice, struct text *out);
