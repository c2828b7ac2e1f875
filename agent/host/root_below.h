/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A folder below a root as a root of its own: the ticks of a capture. */
#include "root.h"

/* @path is a directory, taken below @root. The caller frees; @root need not outlive it. 0 or negative errno with a sentence. */
int root_open_below(struct root *root, const char *path, struct root **ret_root, struct why *why);
