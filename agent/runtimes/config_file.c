/* SPDX-License-Identifier: Apache-2.0 */
#include "config_file.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "process_private.h"

struct scanning {
        struct config_reader *reader;
        const char *path, *at, *end;
        unsigned line, depth, includes;
        struct config_statement statement;
        char words[CONFIG_WORDS_MAX][CONFIG_WORD_BYTES];
};

static void read_path(struct config_reader *reader, const char *path, unsigned includes);

/* --- includes --- */

static void folder_of(const char *path, char out[static PATH_MAX]) {
        const char *slash = strrchr(path, '/');

        (void) snprintf(out, PATH_MAX, "%.*s", slash ? (int) (slash - path) : 1, slash ? path : ".");
}

/* Wildcards are understood in the last component, where they are used. */
static void include(struct config_reader *reader, const char *from, const char *word, unsigned includes) {
        char folder[PATH_MAX], path[PATH_MAX + CONFIG_WORD_BYTES];
        char **names = NULL;
        const char *slash;

        if (reader->folder)
                (void) snprintf(folder, sizeof(folder), "%s", reader->folder);
        else
                folder_of(from, folder);
        (void) snprintf(path, sizeof(path), "%s%s%s", word[0] == '/' ? "" : folder,
                        word[0] == '/' ? "" : "/", word);
        slash = strrchr(path, '/');
        if (!strpbrk(word, "*?[")) {
                read_path(reader, path, includes);
                return;
        }
        (void) snprintf(folder, sizeof(folder), "%.*s", (int) (slash - path), path);
        if (process_list_files(reader->process, folder, &names) < 0)
                return; /* a pattern that matches nothing is no fault */
        for (char **name = names; *name; name++) {
                char found[PATH_MAX + NAME_MAX + 2];

                if (fnmatch(slash + 1, *name, FNM_PERIOD) != 0)
                        continue;
                (void) snprintf(found, sizeof(found), "%s/%s", folder, *name);
                read_path(reader, found, includes);
        }
        root_names_free(names);
}

static bool includes_others(const struct config_reader *reader, const char *word) {
        return (reader->include && strcasecmp(word, reader->include) == 0) ||
               (reader->include_optional && strcasecmp(word, reader->include_optional) == 0);
}

/* --- statements --- */

static void finish(struct scanning *scan) {
        struct config_reader *reader = scan->reader;
        struct config_statement *statement = &scan->statement;

        if (statement->count > 0) {
                statement->path = scan->path;
                statement->depth = scan->depth;
                reader->visit(statement, reader->data);
                if (statement->count > 1 && includes_others(reader, statement->words[0]))
                        include(reader, scan->path, statement->words[1], scan->includes + 1);
        }
        statement->count = 0;
}

static bool ends_word(const struct scanning *scan, char c) {
        switch (c) {
        case ' ':
        case '\t':
        case '\r':
        case '\n':
        case '\0':
                return true;
        case ';':
                return scan->reader->syntax != CONFIG_LINES;
        case '{':
        case '}':
                return scan->reader->syntax == CONFIG_BRACES;
        case '=':
                return scan->reader->syntax == CONFIG_INI;
        default:
                return false;
        }
}

static bool begins_comment(const struct scanning *scan, char c) {
        return c == (scan->reader->syntax == CONFIG_INI ? ';' : '#');
}

/* Between braces an apostrophe within a word is only that; where lines end statements, they end what is quoted as well. */
static void take_word(struct scanning *scan) {
        struct config_statement *statement = &scan->statement;
        char *word = statement->count < CONFIG_WORDS_MAX ? scan->words[statement->count] : NULL,
             quote = '\0';
        bool is_braces = scan->reader->syntax == CONFIG_BRACES;
        const char *begin = scan->at;
        size_t length = 0;

        if (statement->count == 0)
                statement->line = scan->line;
        for (; scan->at < scan->end; scan->at++) {
                char c = *scan->at;

                if ((quote == '\0' && ends_word(scan, c)) || (c == '\n' && !is_braces))
                        break;
                scan->line += c == '\n';
                if (c == quote) {
                        quote = '\0';
                        continue;
                }
                if (quote == '\0' && (c == '"' || c == '\'') && (!is_braces || scan->at == begin)) {
                        quote = c;
                        continue;
                }
                if (c == '\\' && scan->at + 1 < scan->end && scan->at[1] != '\n')
                        c = *++scan->at;
                if (word && length < CONFIG_WORD_BYTES - 1)
                        word[length++] = c;
        }
        if (!word)
                return;
        word[length] = '\0';
        statement->words[statement->count++] = word;
}

static void scan_text(struct scanning *scan) {
        while (scan->at < scan->end) {
                char c = *scan->at;

                if (begins_comment(scan, c)) {
                        const char *newline = memchr(scan->at, '\n', (size_t) (scan->end - scan->at));

                        scan->at = newline ? newline : scan->end;
                } else if (!ends_word(scan, c)) {
                        take_word(scan);
                } else {
                        bool is_brace = c == '{' || c == '}';

                        if (c == ';' || is_brace || (c == '\n' && scan->reader->syntax != CONFIG_BRACES))
                                finish(scan);
                        if (c == '{')
                                scan->depth++;
                        if (c == '}' && scan->depth > 0)
                                scan->depth--;
                        scan->line += c == '\n';
                        scan->at++;
                }
        }
        finish(scan);
}

static void read_text(struct config_reader *reader, const char *path, const char *text, size_t length,
                      unsigned includes) {
        struct scanning scan = {
                        .reader = reader,
                        .path = path,
                        .at = text,
                        .end = text + length,
                        .line = 1,
                        .includes = includes,
        };

        scan_text(&scan);
}

void config_read_text(struct config_reader *reader, const char *name, const char *text, size_t length) {
        read_text(reader, name, text, length, 0);
}

/* --- files --- */

static int read_folder(struct config_reader *reader, const char *path, unsigned includes) {
        bool has_slash = path[0] && path[strlen(path) - 1] == '/';
        char **names = NULL;
        int r = process_list_files(reader->process, path, &names);

        if (r < 0)
                return r;
        for (char **name = names; *name; name++) {
                char found[PATH_MAX + NAME_MAX + 2];

                (void) snprintf(found, sizeof(found), "%s%s%s", path, has_slash ? "" : "/", *name);
                read_path(reader, found, includes + 1);
        }
        root_names_free(names);
        return 0;
}

static void read_path(struct config_reader *reader, const char *path, unsigned includes) {
        const char *text;
        size_t length;
        int r;

        if (reader->files >= CONFIG_FILES_MAX || reader->bytes >= CONFIG_BYTES_MAX ||
            includes >= CONFIG_DEPTH_MAX ||
            arena_used(reader->process->private->arena) >= CONFIG_ARENA_MAX) {
                reader->cut = true;
                return;
        }
        reader->files++;
        r = process_read_file(reader->process, path, &text, &length);
        if (r == -EISDIR)
                r = read_folder(reader, path, includes);
        else if (r == 0) {
                reader->bytes += length;
                read_text(reader, path, text, length, includes);
        }
        if (r < 0 && reader->error == 0)
                reader->error = r;
}

void config_read(struct config_reader *reader, const char *path) {
        read_path(reader, path, 0);
}
