/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers that a program keeps in global variables which its symbol table names (servers that load extensions export theirs, also when
 * stripped): what is in force, whatever a configuration says by now.
 */
#include "process.h"

#define GLOBAL_NUMBERS_MAX 6u /* of one process: as many as a memo keeps */

struct global_number {
        const char *symbol;
        size_t bytes;   /* 4 or 8 */
        uint64_t value; /* filled; ABSENT: there is no such symbol, or it was not readable */
};

/*
 * Fills the values. Where the symbols are is kept in the memo of @runtime, which nothing else may use. 0; negative errno where nothing
 * could be read: then all of them are ABSENT.
 */
int global_numbers_read(struct process *process, const char *runtime, struct global_number *numbers,
                        size_t count);
