/* SPDX-License-Identifier: Apache-2.0 */
/* What was found in a container, saved into a capture and read back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../agent/runtimes/saved.h"

static char folder[] = "/tmp/throttlescope-saved-XXXXXX";
static struct arena *arena;
static struct root *root;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        (void) st, (void) flag, (void) ftw;
        return remove(path);
}

static void setup(void) {
        struct why why;

        cr_assert(mkdtemp(folder));
        cr_assert_eq(root_open(folder, &root, &why), 0);
        arena = arena_new(1 << 20);
        cr_assert(arena);
}

static void teardown(void) {
        arena_free(arena);
        root_free(root);
        (void) nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(saved, .init = setup, .fini = teardown);

static void write_saved(const char *text) {
        char path[128];
        FILE *file;

        (void) snprintf(path, sizeof(path), "%s/runtimes", folder);
        (void) mkdir(path, 0700);
        (void) snprintf(path, sizeof(path), "%s/runtimes/7.json", folder);
        file = fopen(path, "w");
        cr_assert(file && fputs(text, file) >= 0);
        fclose(file);
}

Test(saved, comes_back_as_it_was) {
        const struct process process = {.host_pid = 4000, .pid = 12, .affinity = 48};
        struct parallelism rows[2] = {parallelism_of("go", &process), parallelism_of("openblas", &process)};
        const struct parallelism_list list = {.rows = rows, .count = 2, .omitted = 3};
        struct parallelism_list loaded;
        struct root *live;
        struct why why;

        rows[0].setting = "GOMAXPROCS";
        rows[0].version = "1.24\n\x1b[31m\xff"; /* foreign text may hold anything */
        rows[0].effective = 48;
        rows[0].source = FROM_CODE;
        rows[0].aware = AWARENESS_QUOTA;
        rows[0].follows = true;
        rows[0].rounding = ROUND_UP_FROM_TWO;
        rows[1].setting = "OPENBLAS_NUM_THREADS";
        rows[1].unit = UNIT_PROCESSES;
        rows[1].memory_bytes = UINT64_C(1) << 40;
        rows[1].unreadable = "why not";
        cr_assert_eq(root_open(NULL, &live, &why), 0);
        cr_assert_eq(root_capture_to(live, folder, &why), 0, "%s", why.text);
        cr_assert_eq(parallelism_save(live, 7, &list), 0);
        root_free(live);

        cr_assert_eq(parallelism_load(root, 7, arena, &loaded, &why), 0, "%s", why.text);
        cr_assert_eq(loaded.count, 2);
        cr_assert_eq(loaded.omitted, 3);
        const struct parallelism *go = &loaded.rows[0], *blas = &loaded.rows[1];
        cr_assert_str_eq(go->runtime, "go");
        cr_assert_str_eq(go->version, rows[0].version);
        cr_assert_eq(go->host_pid, 4000);
        cr_assert_eq(go->pid, 12);
        cr_assert_eq(go->affinity, 48);
        cr_assert_eq(go->effective, 48);
        cr_assert_eq(go->configured, ABSENT);
        cr_assert_eq(go->source, FROM_CODE);
        cr_assert_eq(go->aware, AWARENESS_QUOTA);
        cr_assert(go->follows);
        cr_assert_eq(go->rounding, ROUND_UP_FROM_TWO);
        cr_assert_null(go->unreadable);
        cr_assert_eq(blas->effective, ABSENT);
        cr_assert_eq(blas->unit, UNIT_PROCESSES);
        cr_assert_eq(blas->memory_bytes, UINT64_C(1) << 40);
        cr_assert_str_eq(blas->unreadable, "why not");
        cr_assert_not(blas->follows);
}

Test(saved, is_absent_where_nobody_looked) {
        struct parallelism_list loaded;
        struct why why;

        cr_assert_eq(parallelism_load(root, 7, arena, &loaded, &why), -ENOENT);
}

Test(saved, names_the_culprit) {
        static const struct {
                char text[160], culprit[64];
        } rows[] = {
                        {"{\"omitted\":0,\"rows\":[{]}", "not JSON at byte 2"},
                        {"{\"omitted\":0}", "rows or omitted is missing"},
                        {"{\"omitted\":-1,\"rows\":[]}", "rows or omitted is missing"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":\"go\"}]}", "rows[0] names no runtime"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":\"go\",\"setting\":\"x\",\"source\":7}]}",
                         "rows[0].source"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":\"go\",\"setting\":\"x\",\"rounding\":5}]}",
                         "rows[0].rounding"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":\"go\",\"setting\":\"x\",\"effective\":1.5}]"
                         "}",
                         "rows[0].effective"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":\"go\",\"setting\":\"x\",\"follows\":2}]}",
                         "rows[0].follows"},
                        {"{\"omitted\":0,\"rows\":[{\"runtime\":7,\"setting\":\"x\"}]}", "rows[0].runtime"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct parallelism_list loaded;
                struct why why = {0};

                write_saved(rows[i].text);
                cr_expect_eq(parallelism_load(root, 7, arena, &loaded, &why), -EBADMSG, "row %zu", i);
                cr_expect(strstr(why.text, rows[i].culprit), "row %zu: %s", i, why.text);
                cr_expect(strstr(why.text, "/runtimes/7.json"), "row %zu: %s", i, why.text);
        }
}
