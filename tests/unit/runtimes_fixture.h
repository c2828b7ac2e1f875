/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Processes of a made machine: a temporary folder with a /proc that the runtimes are let loose on. */
#include "../../agent/runtimes/process_private.h"
#include "../../agent/runtimes/scan.h"
#include "host_fixture.h"

#define MADE_WORDS_MAX 16
#define MADE_GROUPS_MAX 6

struct made_threads {
        const char *name; /* "%u" in it: its number */
        unsigned count;
};
struct made_process {
        unsigned pid, parent;
        const char *exe; /* NULL: not readable */
        const char *argv[MADE_WORDS_MAX];
        const char *environment[MADE_WORDS_MAX];
        bool hides;       /* another uid without rights: exe, environ, maps and memory cannot be read */
        const char *name; /* comm; NULL: the last component of exe */
        const char *cpus; /* Cpus_allowed; NULL: "ff" */
        unsigned rss_kb;  /* RssAnon */
        struct made_threads threads[MADE_GROUPS_MAX]; /* besides the main one */
        const char *maps;
};

static inline size_t made_join(char *out, size_t room, const char *const *words) {
        size_t length = 0;

        for (size_t i = 0; i < MADE_WORDS_MAX && words[i]; i++) {
                size_t n = strlen(words[i]) + 1;

                cr_assert(length + n <= room);
                memcpy(out + length, words[i], n);
                length += n;
        }
        return length;
}

static inline void made_thread(struct fixture *fixture, unsigned pid, unsigned tid, unsigned parent,
                               unsigned threads, const char *name) {
        char path[64];

        (void) snprintf(path, sizeof(path), "proc/%u/task/%u/stat", pid, tid);
        fixture_write(fixture, path, "%u (%s) S %u 1 1 0 -1 4194304 0 0 0 0 1 2 0 0 20 0 %u 0 %u 1 1 1\n",
                      tid, name, parent, threads, 1000 + pid);
        (void) snprintf(path, sizeof(path), "proc/%u/task/%u/schedstat", pid, tid);
        fixture_write(fixture, path, "1000000 2000 3\n");
}

static inline void made_text(struct fixture *fixture, unsigned pid, const char *file,
                             const char *const *words, bool is_denied) {
        char path[64], text[4096];

        (void) snprintf(path, sizeof(path), "proc/%u/%s%s", pid, file, is_denied ? ".errno" : "");
        if (is_denied)
                fixture_write(fixture, path, "%d", EACCES);
        else
                fixture_write_n(fixture, path, text, made_join(text, sizeof(text), words));
}

static inline void fixture_process(struct fixture *fixture, const struct made_process *made) {
        const char *slash = made->exe ? strrchr(made->exe, '/') : NULL, *name = made->name ? made->name
                                                                                : slash    ? slash + 1
                                                                                           : "main";
        unsigned threads = 1, tid = made->pid;
        char path[64], thread_name[64];

        for (size_t i = 0; i < MADE_GROUPS_MAX; i++)
                threads += made->threads[i].count;
        made_thread(fixture, made->pid, made->pid, made->parent, threads, name);
        for (size_t i = 0; i < MADE_GROUPS_MAX; i++)
                for (unsigned k = 0; k < made->threads[i].count; k++) {
                        const char *mark = strstr(made->threads[i].name, "%u");

                        if (mark)
                                (void) snprintf(thread_name, sizeof(thread_name), "%.*s%u%s",
                                                (int) (mark - made->threads[i].name), made->threads[i].name,
                                                k, mark + 2);
                        else
                                (void) snprintf(thread_name, sizeof(thread_name), "%s",
                                                made->threads[i].name);
                        made_thread(fixture, made->pid, ++tid, made->parent, threads, thread_name);
                }
        (void) snprintf(path, sizeof(path), "proc/%u/status", made->pid);
        fixture_write(fixture, path,
                      "Name:\t%s\nUid:\t0\t0\t0\t0\nNSpid:\t%u\nRssAnon:\t%8u kB\nCpus_allowed:\t%s\n", name,
                      made->pid, made->rss_kb, made->cpus ? made->cpus : "ff");
        made_text(fixture, made->pid, "cmdline", made->argv, false);
        made_text(fixture, made->pid, "environ", made->environment, made->hides);
        if (made->hides || made->maps) {
                (void) snprintf(path, sizeof(path), "proc/%u/maps%s", made->pid,
                                made->hides ? ".errno" : "");
                fixture_write(fixture, path, "%s", made->hides ? "13" : made->maps);
        }
        (void) snprintf(path, sizeof(path), "proc/%u/exe%s", made->pid, made->exe ? "" : ".errno");
        if (made->exe)
                cr_assert(symlink(made->exe, fixture_path(fixture, path)) == 0);
        else
                fixture_write(fixture, path, "%d", EACCES);
}

/* A file as process @pid sees it. */
static inline void fixture_file(struct fixture *fixture, unsigned pid, const char *path, const char *text) {
        char placed[PATH_MAX];

        (void) snprintf(placed, sizeof(placed), "proc/%u/root%s", pid, path);
        fixture_write_n(fixture, placed, text, strlen(text));
}

/* All processes that were made, on a machine of 8 CPUs. Rows live as long as the fixture. */
static inline struct parallelism_list fixture_scan(struct fixture *fixture) {
        struct parallelism_list list = {0};
        struct process_memos *memos;
        struct scan_request request = {.cpus_online = 8};
        pid_t *pids;

        cr_assert_eq(proc_pids(fixture->root, 4096, fixture->arena, &pids, &request.pids_count), 0);
        request.pids = pids;
        cr_assert_eq(process_memos_new(&memos), 0);
        cr_assert_eq(scan_processes(fixture->root, memos, &request, fixture->arena, &list), 0);
        process_memos_free(memos);
        return list;
}

/* The one row of @runtime and @setting; the test fails unless there is exactly one. */
static inline const struct parallelism *fixture_row(const struct parallelism_list *list, const char *runtime,
                                                    const char *setting) {
        const struct parallelism *found = NULL;

        for (size_t i = 0; i < list->count; i++) {
                if (strcmp(list->rows[i].runtime, runtime) != 0 ||
                    strcmp(list->rows[i].setting, setting) != 0)
                        continue;
                cr_assert_null(found, "two rows of %s %s", runtime, setting);
                found = &list->rows[i];
        }
        cr_assert(found, "no row of %s %s among %zu", runtime, setting, list->count);
        return found;
}
