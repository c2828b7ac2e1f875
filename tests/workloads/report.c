/* SPDX-License-Identifier: Apache-2.0 */

/* The truth, one JSON object a line. What is not known is left out. */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

static const char *separator = "";

static void json_text(const char *key, const char *value) {
        printf("%s\"%s\":\"", separator, key);
        for (; *value; value++)
                if (*value == '"' || *value == '\\')
                        printf("\\%c", *value);
                else if ((unsigned char) *value < 0x20)
                        printf("\\u%04x", (unsigned) *value);
                else
                        putchar(*value);
        putchar('"');
        separator = ",";
}

static void json_number(const char *key, uint64_t value) {
        if (value == UNKNOWN)
                return;
        printf("%s\"%s\":%" PRIu64, separator, key, value);
        separator = ",";
}

static void json_open(const char *type) {
        separator = "";
        putchar('{');
        json_text("type", type);
}

static void json_close(void) {
        puts("}");
}

static uint64_t delta(uint64_t begin, uint64_t end) {
        return begin == UNKNOWN || end == UNKNOWN ? UNKNOWN : end - begin;
}

int read_steal_ns(uint64_t *ret) {
        unsigned long long v[8];
        FILE *f;
        int n;

        f = fopen("/proc/stat", "re");
        if (!f)
                return -errno;
        n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
                   &v[5], &v[6], &v[7]);
        fclose(f);
        if (n != 8)
                return -EIO;
        *ret = v[7] * (NS_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK));
        return 0;
}

/* The kernel's threads are children of its first one, whose number is 2 wherever it can be seen. */
static bool is_kernel_thread(pid_t pid) {
        char path[64], line[512], *behind;
        int parent = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (!f)
                return false;
        behind = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
        fclose(f);
        return behind && sscanf(behind, ") %*c %d", &parent) == 1 && (pid == 2 || parent == 2);
}

/* What had waited beside the workload, as far as it is known to be none of it: the kernel, init, who started us, and this controller. */
static uint64_t read_others_delay_ns(void) {
        struct dirent *entry;
        uint64_t sum = 0;
        DIR *proc = opendir("/proc");

        while (proc && (entry = readdir(proc))) {
                pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);
                struct schedstat sched;

                if (pid <= 0 || (pid != 1 && pid != getppid() && pid != getpid() && !is_kernel_thread(pid)))
                        continue;
                if (schedstat_read(pid, pid, &sched) == 0)
                        sum += sched.delay_ns;
        }
        if (proc)
                closedir(proc);
        return sum;
}

/*
 * Each CPU adds up what all that ran on it had waited for it, ended threads and their exits included; others than the workload are taken off.
 */
uint64_t read_machine_delay_ns(void) {
        unsigned long long delay;
        uint64_t sum = UNKNOWN;
        char line[512];
        FILE *f;

        f = fopen("/proc/schedstat", "re");
        if (!f)
                return UNKNOWN;
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "cpu%*u %*u %*u %*u %*u %*u %*u %*u %llu", &delay) == 1)
                        sum = (sum == UNKNOWN ? 0 : sum) + delay;
        fclose(f);
        return sum == UNKNOWN ? sum : sum - read_others_delay_ns();
}

static void report_group(const struct group *g) {
        const char *cgroup = g->path + g->mount_len;

        json_text("path", g->path);
        json_text("cgroup", *cgroup ? cgroup : "/");
        json_number("version", (uint64_t) g->version);
        json_number("id", g->id);
        json_number("quota_ns", g->quota_ns);
        json_number("period_ns", g->period_ns);
        if (g->burst_ns > 0)
                json_number("burst_ns", g->burst_ns);
}

static void report_ids(const struct ctx *c, const struct slot *s) {
        int group = s->team->group;

        json_text("name", s->name);
        json_text("role", s->role);
        json_number("pid", (uint64_t) s->pid);
        json_number("tid", (uint64_t) s->tid);
        json_number("inner_pid", (uint64_t) s->inner_pid);
        json_number("inner_tid", (uint64_t) s->inner_tid);
        if (group >= 0)
                json_number("group_id", c->groups[group].id);
        if (s->cpu >= 0)
                json_number("cpu", (uint64_t) s->cpu);
}

void report_setup(const struct ctx *c) {
        json_open("setup");
        json_text("case", c->load_case->name);
        json_number("pid", (uint64_t) getpid());
        json_text("mode", c->window ? "window" : "whole");
        printf(",\"groups\":[");
        for (int i = 0; i < c->n_groups; i++) {
                printf("%s{", i == 0 ? "" : ",");
                separator = "";
                report_group(&c->groups[i]);
                putchar('}');
        }
        printf("],\"threads\":[");
        for (unsigned i = 0, n = 0; i < c->n_slots; i++) {
                const struct slot *s = &c->shared->slots[i];

                if (!s->team->started)
                        continue;
                printf("%s{", n++ == 0 ? "" : ",");
                separator = "";
                report_ids(c, s);
                putchar('}');
        }
        putchar(']');
        json_close();
}

static void report_children(const struct slot *s) {
        const struct children *k = &s->children;

        if (atomic_load(&k->count) == 0)
                return;
        json_number("children", atomic_load(&k->count));
        json_number("children_cpu_ns", atomic_load(&k->cpu_ns));
        if (s->children_exact_cpu_ns > 0)
                json_number("children_exact_cpu_ns", s->children_exact_cpu_ns);
        json_number("children_run_delay_ns", atomic_load(&k->delay_ns));
        json_number("children_wall_ns", atomic_load(&k->wall_ns));
        json_number("children_gap_ns", atomic_load(&k->gap_ns));
        json_number("children_start_delay_ns", atomic_load(&k->start_delay_ns));
}

/* Without a window the time runs from the word to go, the wake-up included. */
static void report_thread(const struct ctx *c, const struct slot *s) {
        const struct tally *b = &s->begin.tally, *e = &s->end.tally;
        uint64_t start = c->window ? b->at_ns : s->go_ns;

        json_open("thread");
        json_text("case", c->load_case->name);
        report_ids(c, s);
        if (s->work) {
                json_number("start_ns", start);
                json_number("first_ns", s->first_ns);
                json_number("end_ns", e->at_ns);
                json_number("wall_ns", e->at_ns - start);
                json_number("cpu_ns", e->cpu_ns - b->cpu_ns);
        }
        json_number("sum_exec_runtime_ns", s->end.sched.run_ns - s->begin.sched.run_ns);
        json_number("run_delay_ns", s->end.sched.delay_ns - s->begin.sched.delay_ns);
        json_number("switches", s->end.sched.switches - s->begin.sched.switches);
        if (s->work && !s->no_own_clock) {
                json_number("gap_ns", e->gap_ns - b->gap_ns);
                json_number("gap_max_ns", e->epoch == atomic_load(&c->shared->epoch) || e->gaps > b->gaps
                                                          ? e->gap_max_ns
                                                          : 0);
                json_number("gaps", e->gaps - b->gaps);
                json_number("sleep_ns", e->sleep_ns - b->sleep_ns);
        }
        if (s->work && !c->window)
                json_number("tail_delay_ns", s->end.sched.delay_ns - s->own_delay_ns);
        if (s->requests > 0) {
                json_number("requests", s->requests);
                json_number("latency_mean_ns", s->latency_sum_ns / s->requests);
                json_number("latency_max_ns", s->latency_max_ns);
        }
        if (atomic_load(&s->signals) > 0)
                json_number("signals", atomic_load(&s->signals));
        report_children(s);
        json_close();
}

static void report_sums(const struct ctx *c) {
        uint64_t wall = 0, cpu = 0, gap = 0, sleep = 0, exec = 0, run_delay = 0, threads = 0;

        for (unsigned i = 0; i < c->n_slots; i++) {
                const struct slot *s = &c->shared->slots[i];
                const struct tally *b = &s->begin.tally, *e = &s->end.tally;

                if (!s->work || !s->team->started)
                        continue;
                threads++;
                wall += e->at_ns - (c->window ? b->at_ns : s->go_ns);
                cpu += e->cpu_ns - b->cpu_ns;
                gap += e->gap_ns - b->gap_ns;
                sleep += e->sleep_ns - b->sleep_ns;
                exec += s->end.sched.run_ns - s->begin.sched.run_ns;
                run_delay += s->end.sched.delay_ns - s->begin.sched.delay_ns;
        }
        json_open("sums");
        json_number("threads", threads);
        json_number("wall_ns", wall);
        json_number("cpu_ns", cpu);
        json_number("gap_ns", gap);
        json_number("sleep_ns", sleep);
        json_number("sum_exec_runtime_ns", exec);
        json_number("run_delay_ns", run_delay);
        json_close();
}

static void report_groups(const struct ctx *c) {
        for (int i = 0; i < c->n_groups; i++) {
                const struct group_stat *b = &c->groups[i].begin, *e = &c->groups[i].end;

                json_open("group");
                report_group(&c->groups[i]);
                json_number("nr_periods", delta(b->periods, e->periods));
                json_number("nr_throttled", delta(b->throttled, e->throttled));
                json_number("throttled_ns", delta(b->throttled_ns, e->throttled_ns));
                json_number("nr_bursts", delta(b->bursts, e->bursts));
                json_number("burst_used_ns", delta(b->burst_ns, e->burst_ns));
                json_number("local_throttled_ns", delta(b->local_ns, e->local_ns));
                json_number("usage_ns", delta(b->usage_ns, e->usage_ns));
                json_close();
        }
}

void report_json(const struct ctx *c) {
        json_open("case");
        json_text("case", c->load_case->name);
        json_text("mode", c->window ? "window" : "whole");
        json_number("begin_ns", c->window ? atomic_load(&c->shared->begin_ns) : c->shared->go_ns);
        if (!c->window)
                json_number("run_ns", c->run_ns);
        json_number("actions", c->actions);
        json_close();
        for (unsigned i = 0; i < c->n_slots; i++)
                if (c->shared->slots[i].team->started)
                        report_thread(c, &c->shared->slots[i]);
        for (unsigned i = 0; i < c->n_teams; i++) {
                const struct team *t = &c->shared->teams[i];

                if (!t->started)
                        continue;
                json_open("process");
                json_number("pid", (uint64_t) c->shared->slots[t->first].pid);
                json_number("threads", t->count);
                json_number("cpu_ns", t->cpu_end_ns - t->cpu_begin_ns);
                json_close();
        }
        report_sums(c);
        report_groups(c);
        json_open("machine");
        json_number("cpus", c->n_cpus);
        json_number("steal_ns", c->steal_end_ns - c->steal_begin_ns);
        json_number("run_delay_ns", delta(c->delay_begin_ns, c->delay_end_ns));
        json_close();
}

/* For people, and for the lab: what the threads themselves noticed. */
void report_gaps(const struct ctx *c) {
        printf("%-16s %8s %12s %10s %8s %9s\n", "thread", "tid", "largest gap", "gaps", "in gaps",
               "of wall");
        for (unsigned i = 0; i < c->n_slots; i++) {
                const struct slot *s = &c->shared->slots[i];
                const struct tally *b = &s->begin.tally, *e = &s->end.tally;
                uint64_t wall = e->at_ns - (c->window ? b->at_ns : s->go_ns), gap = e->gap_ns - b->gap_ns;

                if (!s->work || s->no_own_clock || !s->team->started || wall == 0)
                        continue;
                printf("%-16s %8d %9.1f ms %10" PRIu64 " %6.2f s %8.1f%%\n", s->name, (int) s->inner_tid,
                       (double) e->gap_max_ns / 1e6, e->gaps - b->gaps, (double) gap / 1e9,
                       100.0 * (double) gap / (double) wall);
        }
}
