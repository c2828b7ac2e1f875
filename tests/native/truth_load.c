/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the workload program and reads what it found out about itself. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define ARGUMENTS_MAX 24

static uint64_t number(const cJSON *object, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

        return cJSON_IsNumber(item) ? (uint64_t) item->valuedouble : 0;
}

static void text(const cJSON *object, const char *name, char *out, size_t room) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

        snprintf(out, room, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static struct truth_group *group_of(struct truth *truth, uint64_t id) {
        for (size_t i = 0; i < truth->groups_count; i++)
                if (truth->groups[i].id == id)
                        return &truth->groups[i];
        return truth->groups_count < TRUTH_GROUPS_MAX ? &truth->groups[truth->groups_count++] : NULL;
}

static void read_group(struct truth *truth, const cJSON *line) {
        struct truth_group *g = group_of(truth, number(line, "id"));

        if (!g)
                return;
        text(line, "cgroup", g->cgroup, sizeof(g->cgroup));
        g->id = number(line, "id");
        g->quota_ns = number(line, "quota_ns");
        g->period_ns = number(line, "period_ns");
        g->nr_periods = number(line, "nr_periods");
        g->nr_throttled = number(line, "nr_throttled");
        g->throttled_ns = number(line, "throttled_ns");
        g->usage_ns = cJSON_HasObjectItem(line, "usage_ns") ? number(line, "usage_ns") : ABSENT;
        g->local_ns = cJSON_HasObjectItem(line, "local_throttled_ns") ? number(line, "local_throttled_ns")
                                                                      : UINT64_MAX;
}

static void read_thread(struct truth *truth, const cJSON *line) {
        struct truth_thread *t;

        if (truth->threads_count >= TRUTH_THREADS_MAX)
                return;
        t = &truth->threads[truth->threads_count++];
        text(line, "name", t->name, sizeof(t->name));
        text(line, "role", t->role, sizeof(t->role));
        t->tid = (uint32_t) number(line, "tid");
        t->pid = (uint32_t) number(line, "pid");
        t->inner_tid = (uint32_t) number(line, "inner_tid");
        t->inner_pid = (uint32_t) number(line, "inner_pid");
        t->group_id = number(line, "group_id");
        t->wall_ns = number(line, "wall_ns");
        t->cpu_ns = number(line, "cpu_ns");
        t->exec_ns = number(line, "sum_exec_runtime_ns");
        t->run_delay_ns = number(line, "run_delay_ns");
        t->switches = number(line, "switches");
        t->gap_ns = number(line, "gap_ns");
        t->gap_max_ns = number(line, "gap_max_ns");
        t->sleep_ns = number(line, "sleep_ns");
        t->tail_ns = number(line, "tail_delay_ns");
        t->children = number(line, "children");
        t->children_exec_ns = number(line, "children_exact_cpu_ns");
        t->children_run_delay_ns = number(line, "children_run_delay_ns");
}

static void read_line(struct truth *truth, const cJSON *line, const char *type) {
        const cJSON *group;

        if (strcmp(type, "setup") == 0) {
                cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(line, "groups"))
                                read_group(truth, group);
        } else if (strcmp(type, "thread") == 0) {
                read_thread(truth, line);
        } else if (strcmp(type, "group") == 0) {
                read_group(truth, line);
        } else if (strcmp(type, "process") == 0) {
                truth->processes_cpu_ns += number(line, "cpu_ns");
        } else if (strcmp(type, "machine") == 0) {
                truth->steal_ns = number(line, "steal_ns");
                truth->delay_ns = cJSON_HasObjectItem(line, "run_delay_ns") ? number(line, "run_delay_ns")
                                                                            : ABSENT;
                truth->cpus = (unsigned) number(line, "cpus");
        }
}

/* Reads lines until one begins with @until or is of type @until. 0; 1: UNSUPPORTED; -EPIPE: it ended before. */
static int read_until(struct workload *workload, const char *until, struct truth *truth) {
        char *line = NULL;
        size_t room = 0;
        int r = -EPIPE;

        while (r == -EPIPE && getline(&line, &room, workload->from) > 0) {
                if (strncmp(line, "UNSUPPORTED", 11) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        snprintf(workload->unsupported, sizeof(workload->unsupported), "%s", line + 12);
                        r = 1;
                } else if (strncmp(line, until, strlen(until)) == 0) {
                        r = 0;
                } else if (line[0] == '{') {
                        cJSON *json = cJSON_Parse(line);
                        const cJSON *type = cJSON_GetObjectItemCaseSensitive(json, "type");

                        if (cJSON_IsString(type)) {
                                read_line(truth, json, type->valuestring);
                                if (strcmp(type->valuestring, until) == 0)
                                        r = 0;
                        }
                        cJSON_Delete(json);
                }
        }
        free(line);
        return r;
}

int workload_start(struct workload *workload, const char *program, const char *arguments,
                   struct truth *truth) {
        char copy[512], *argv[ARGUMENTS_MAX] = {(char *) program}, *rest = NULL;
        int in[2], out[2], argc = 1;

        memset(truth, 0, sizeof(*truth));
        *workload = (struct workload){.pid = -1};
        snprintf(copy, sizeof(copy), "%s", arguments);
        for (char *word = strtok_r(copy, " ", &rest); word && argc < ARGUMENTS_MAX - 1;
             word = strtok_r(NULL, " ", &rest))
                argv[argc++] = word;
        if (pipe2(in, 02000000 /* O_CLOEXEC */) < 0 || pipe2(out, 02000000) < 0)
                return -errno;
        workload->pid = fork();
        if (workload->pid < 0)
                return -errno;
        if (workload->pid == 0) {
                dup2(in[0], STDIN_FILENO);
                dup2(out[1], STDOUT_FILENO);
                execv(program, argv);
                _exit(127);
        }
        close(in[0]);
        close(out[1]);
        workload->to = fdopen(in[1], "w");
        workload->from = fdopen(out[0], "r");
        return read_until(workload, "READY", truth);
}

void workload_go(struct workload *workload, struct truth *truth) {
        truth->threads_count = 0; /* the setup line's groups stay, threads come with their figures */
        fputs("go\n", workload->to);
        fflush(workload->to);
}

int workload_finish(struct workload *workload, struct truth *truth) {
        return read_until(workload, "machine", truth);
}

bool workload_has_output(const struct workload *workload, int timeout_ms) {
        struct pollfd fd = {.fd = fileno(workload->from), .events = POLLIN};

        return poll(&fd, 1, timeout_ms) != 0;
}

void workload_mark(const struct workload *workload, int signal_number) {
        kill(workload->pid, signal_number);
}

void workload_end(struct workload *workload) {
        if (workload->to) {
                fputs("exit\n", workload->to);
                fclose(workload->to);
        }
        if (workload->from)
                fclose(workload->from);
        if (workload->pid > 0)
                waitpid(workload->pid, NULL, 0);
        *workload = (struct workload){.pid = -1};
}
