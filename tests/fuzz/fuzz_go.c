/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of Go says of itself. The first byte chooses a reader; the rest is build info, a table of functions, or code. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/runtimes/go_buildinfo.h"
#include "../../agent/runtimes/go_pclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void claim(int holds) {
        if (!holds)
                abort();
}

static void check_build(const uint8_t *data, size_t length) {
        struct arena *arena = arena_new(16u << 20);
        struct go_build build;

        claim(arena != NULL);
        if (go_build_parse(data, length, arena, &build) == 0) {
                claim(build.version && strlen(build.version) <= length);
                (void) go_build_minor(build.version);
                claim(go_debug_setting(build.godebug, "containermaxprocs") <= 1);
        }
        arena_free(arena);
}

static int read_bytes(const void *from, uint64_t offset, void *buffer, size_t length) {
        memcpy(buffer, (const uint8_t *) from + offset, length); /* past the end is seen */
        return 0;
}

static void check_table(const uint8_t *data, size_t length) {
        struct go_bytes bytes = {.read = read_bytes, .from = data, .size = length};
        struct go_pclntab table;
        uint32_t offset;

        if (go_pclntab_parse(bytes, false, &table) == 0)
                claim(go_pclntab_function(&table, "runtime.procresize", &offset) <= 1);
}

static bool is_even(uint64_t address, const void *data) {
        (void) data;
        return address % 2 == 0;
}

static void check_code(const uint8_t *data, size_t length) {
        uint64_t target;

        for (int is_arm64 = 0; is_arm64 < 2; is_arm64++)
                if (go_code_global(data, length, 0x400000, is_arm64, is_even, NULL, &target) > 0)
                        claim(target % 2 == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static void (*const checks[])(const uint8_t *, size_t) = {check_build, check_table, check_code};
        uint8_t *bytes;

        if (size == 0)
                return 0;
        /* Of its exact size: one byte too far is seen. */
        bytes = malloc(size - 1 ? size - 1 : 1);
        claim(bytes != NULL);
        memcpy(bytes, data + 1, size - 1);
        checks[data[0] % ELEMENTS(checks)](bytes, size - 1);
        free(bytes);
        return 0;
}
