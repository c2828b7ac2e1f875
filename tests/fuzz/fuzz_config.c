/* SPDX-License-Identifier: Apache-2.0 */
/* A server's configuration is a container's: any bytes, in each syntax. It may include itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/runtimes/config_file.h"
#include "../../agent/runtimes/process_private.h"

#define ARENA_MAX ((size_t) 16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
        unsigned line;
        size_t statements;
};

/* What every runtime relies on: a word at least, ended, and lines that only grow within one file. */
static void visit(const struct config_statement *statement, void *data) {
        struct seen *seen = data;

        if (statement->count == 0 || statement->count > CONFIG_WORDS_MAX || statement->line == 0)
                abort();
        for (size_t i = 0; i < statement->count; i++)
                if (strlen(statement->words[i]) >= CONFIG_WORD_BYTES)
                        abort();
        if (strcmp(statement->path, "text") == 0) {
                if (statement->line < seen->line)
                        abort();
                seen->line = statement->line;
        }
        seen->statements++;
}

/* A machine of one process whose file /a is the input. Made once: the input goes through a link that stays. */
static struct root *made_root(const char *folder, const uint8_t *data, size_t size) {
        static struct root *root;
        static char path[256];
        struct why why;
        FILE *file;

        if (!root) {
                static const char *const parts[] = {"proc", "proc/1", "proc/1/root", "proc/1/root/d"};

                for (size_t i = 0; i < ELEMENTS(parts); i++) {
                        (void) snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
                        if (mkdir(path, 0700) < 0)
                                return NULL;
                }
                (void) snprintf(path, sizeof(path), "%s/proc/1/root/a", folder);
                if (root_open(folder, &root, &why) < 0)
                        return NULL;
        }
        file = fopen(path, "we");
        if (!file)
                return NULL;
        size_t written = fwrite(data, 1, size, file);
        return fclose(file) == 0 && written == size ? root : NULL;
}

static char folder[] = "/tmp/throttlescope-fuzz.XXXXXX";

static void forget(void) {
        static const char *const parts[] = {"proc/1/root/a", "proc/1/root/d", "proc/1/root", "proc/1",
                                            "proc"};
        char path[256];

        for (size_t i = 0; i < ELEMENTS(parts); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
                (void) remove(path);
        }
        (void) rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static bool is_made;
        struct arena *arena = arena_new(ARENA_MAX);
        struct process_private private = {.arena = arena, .memory_fd = -1};
        struct process process = {.host_pid = 1, .private = &private};

        if (!is_made) {
                if (!mkdtemp(folder) || atexit(forget) != 0)
                        abort();
                is_made = true;
        }
        private.root = made_root(folder, data, size);
        if (!arena || !private.root)
                abort();
        for (int syntax = CONFIG_LINES; syntax <= CONFIG_INI; syntax++) {
                struct seen seen = {0};
                struct config_reader reader = {
                                .process = &process,
                                .syntax = (enum config_syntax) syntax,
                                .include = "i",
                                .include_optional = "j",
                                .visit = visit,
                                .data = &seen,
                };

                config_read_text(&reader, "text", (const char *) data, size);
                reader.bytes = 0;
                config_read(&reader, "/a");
                config_read(&reader, "/");
                if (reader.files > CONFIG_FILES_MAX || seen.statements > (CONFIG_FILES_MAX + 1) * (size + 1))
                        abort();
        }
        arena_free(arena);
        return 0;
}
