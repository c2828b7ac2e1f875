/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Configuration files of servers, read as statements of words: enough to find one directive and the line it stands on. The files are
 * the container's: bounded in size, number and depth; includes that lead in circles end at these bounds.
 */
#include "process.h"

#define CONFIG_FILES_MAX 256u       /* with includes: Debian's Apache has a hundred */
#define CONFIG_BYTES_MAX (2u << 20) /* of all of them */
#define CONFIG_DEPTH_MAX 8u         /* of includes */
#define CONFIG_WORDS_MAX 8u         /* of a statement that are kept */
#define CONFIG_WORD_BYTES 256u

/* Of the scan's memory: beyond that no file is read, so that many servers with large files leave room for the other runtimes. */
#define CONFIG_ARENA_MAX ((size_t) 32 << 20)

enum config_syntax {
        CONFIG_LINES,  /* a statement a line, "#" begins a comment (HAProxy, Apache) */
        CONFIG_BRACES, /* statements end with ";" or "{" (nginx) */
        CONFIG_INI,    /* a statement a line, "=" parts its words, ";" begins a comment (PHP-FPM) */
};

struct config_statement {
        const char *path; /* as the process sees it */
        unsigned line;
        const char *words
                        [CONFIG_WORDS_MAX]; /* without quotes, cut at CONFIG_WORD_BYTES; valid during the visit */
        size_t count;
        unsigned depth; /* of open braces */
};

struct config_reader {
        struct process *process;
        enum config_syntax syntax;
        /* The directives that include other files, in any case (their word may hold wildcards); NULL: there is none. */
        const char *include, *include_optional;
        const char *folder; /* what relative includes are below; NULL: the folder of the file they stand in */
        void (*visit)(const struct config_statement *statement, void *data);
        void *data;

        unsigned files; /* read so far */
        size_t bytes;
        bool cut;  /* one of the maxima was reached */
        int error; /* of the first file that could not be read, negative errno */
};

/* Visits the statements of @path (a file, or each file of a directory in the order of their names) and of what it includes. */
void config_read(struct config_reader *reader, const char *path);
/* The same for text that is not in a file ("nginx -g"). @name stands for its path. */
void config_read_text(struct config_reader *reader, const char *name, const char *text, size_t length);
