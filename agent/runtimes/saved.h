/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was found in a container, as a file of a capture's tick: "/runtimes/ID.json". The answers, not what they were read from: command
 * lines, environments and memory hold secrets. What comes back is foreign text: bug reports come from anywhere.
 */
#include "../base/why.h"
#include "runtime.h"

/* Into the folder that @root is captured to; nothing if it is not. 0 or -ENOMEM. */
int parallelism_save(struct root *root, uint64_t container, const struct parallelism_list *list);
/* Rows and strings in @arena. 0; -ENOENT: nobody looked; -EBADMSG with a sentence that names file, row and field; -ENOMEM. */
int parallelism_load(struct root *root, uint64_t container, struct arena *arena,
                     struct parallelism_list *ret_list, struct why *why);
