/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A root for the tests of the host readers: a folder of tests/fixtures, or a temporary one that the test fills. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../agent/base/memory.h"
#include "../../agent/host/root.h"

#define FIXTURE_ARENA_MAX ((size_t) 8 << 20)

struct fixture {
        struct root *root;
        struct arena *arena;
        struct why why;
        char directory[PATH_MAX]; /* temporary; "" if not ours */
};

static inline int fixture_remove(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void) st;
        (void) type;
        (void) ftw;
        return remove(path);
}

static inline void fixture_release(struct fixture *fixture) {
        root_free(fixture->root);
        arena_free(fixture->arena);
        if (fixture->directory[0])
                (void) nftw(fixture->directory, fixture_remove, 8, FTW_DEPTH | FTW_PHYS);
}
#define cleanup_fixture __attribute__((cleanup(fixture_release)))

static inline void fixture_open(struct fixture *fixture, const char *directory) {
        int r;

        fixture->arena = arena_new(FIXTURE_ARENA_MAX);
        cr_assert(fixture->arena);
        r = root_open(directory, &fixture->root, &fixture->why);
        cr_assert(r == 0, "%s", fixture->why.text);
}

/* tests/fixtures/@name; the tests run in the project's folder. */
#define FIXTURE(variable, name)                                                                             \
        cleanup_fixture struct fixture variable = {0};                                                      \
        fixture_open(&variable, "tests/fixtures/" name)

static inline void fixture_make(struct fixture *fixture) {
        const char *tmp = getenv("TMPDIR");

        (void) snprintf(fixture->directory, sizeof(fixture->directory), "%s/throttlescope.XXXXXX",
                        tmp ? tmp : "/tmp");
        cr_assert(mkdtemp(fixture->directory));
        fixture_open(fixture, fixture->directory);
}

/* Path of @name in the fixture's folder, its parents made. */
static inline const char *fixture_path(const struct fixture *fixture, const char *name) {
        static char path[PATH_MAX * 2];
        size_t start = strlen(fixture->directory) + 1;

        (void) snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
        for (char *p = path + start; (p = strchr(p, '/')); p++) {
                *p = '\0';
                cr_assert(mkdir(path, 0755) == 0 || errno == EEXIST, "%s", path);
                *p = '/';
        }
        return path;
}

static inline void fixture_write_n(const struct fixture *fixture, const char *name, const char *data,
                                   size_t length) {
        cleanup_file FILE *file = fopen(fixture_path(fixture, name), "we");

        cr_assert(file, "%s", name);
        cr_assert(fwrite(data, 1, length, file) == length);
}

__attribute__((format(printf, 3, 4))) static inline void
fixture_write(const struct fixture *fixture, const char *name, const char *format, ...) {
        char text[4096];
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        cr_assert(n >= 0 && (size_t) n < sizeof(text));
        fixture_write_n(fixture, name, text, (size_t) n);
}
