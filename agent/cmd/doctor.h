/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * doctor in three steps: facts are read, judged (pure, so that fixtures can test it), printed. One line a question: is it
 * in order, and if not, what would change it.
 */
#include "../host/proc.h"
#include "../probe/kernel.h"
#include "../probe/probe.h"
#include "options.h"

enum doctor_mark {
        DOCTOR_OK,    /* "ok" in order */
        DOCTOR_NOTE,  /* "--" not there, but nothing that is wanted depends on it here */
        DOCTOR_FAULT, /* "!!" stands in the way of measuring, or of measuring better */
        DOCTOR_MARK_COUNT,
};

/* What opening the target and reading it once has shown; only on a live machine. */
struct doctor_probe {
        bool tried;
        int error; /* of opening or reading, 0: it works */
        char why[512];
        enum probe_method method;
        bool exact, forced; /* forced: --method */
        struct probe_trial trials[PROBE_METHOD_COUNT];
        size_t containers; /* seen of the target */
};

/* One process of the target, and what of it may be read: 0 or the errno of the refusal. */
struct doctor_access {
        pid_t pid; /* 0: there was none to try */
        uint32_t uid;
        int root_error, memory_error, environment_error;
};

struct doctor_facts {
        bool live;
        struct proc_machine machine;
        struct kernel_facts kernel;
        int kernel_error; /* why there is no BTF */
        bool has_schedstat;

        enum cgroup_version version; /* of the hierarchy with the cpu controller; UNKNOWN: none found */
        bool has_v1, has_v2;         /* what is mounted */
        char cpu_mount[128];
        int cgroup_error;
        char cgroup_why[512];

        bool has_rights;
        struct proc_rights rights;
        bool user_namespace, pid_namespace; /* our own, not the machine's first */
        char lockdown[32];                  /* "none", "integrity", "confidentiality"; "" not known */
        uint64_t unprivileged_bpf_disabled; /* ABSENT: not known */

        struct doctor_probe probe;
        struct doctor_access access;
};

#define DOCTOR_LINES_MAX 20
struct doctor_line {
        const char *id;
        enum doctor_mark mark;
        char text[640], remedy[256]; /* remedy: "" none needed */
};

/* Reads everything; what cannot be read is a fact too. */
void doctor_read(struct root *root, const struct options *options, struct doctor_facts *ret_facts);
/* Pure. Returns how many lines. */
size_t doctor_judge(const struct doctor_facts *facts, struct doctor_line lines[static DOCTOR_LINES_MAX]);
/* Can the target be measured, in whatever way? On a folder: could it, by what its files say? */
bool doctor_can_measure(const struct doctor_facts *facts);
