/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of target.h: which group of the CPU controller a process is in, by its name only; needs no mounted cgroup tree. */
#include <stddef.h>
#include <sys/types.h>

#include "../base/memory.h"
#include "../host/root.h"
#include "target.h"

/* The path in the text of a /proc/PID/cgroup. -ENODATA: no line is of the CPU controller or of v2. */
int target_group_parse(const char *text, const char **ret_path, size_t *ret_length);
/* As it stands in /proc/PID/cgroup (0: ourselves). -ENOENT: no such process, or its group was removed. */
int target_group_of_pid(struct root *root, pid_t pid, struct arena *arena, const char **ret_path);
/* target_list() for who reads all processes anyway: a_pid is 0 where finding one takes an extra look. */
int target_list_groups(struct root *root, const struct target_request *request, struct arena *arena,
                       struct target_container **ret_containers, size_t *ret_count, bool *ret_cut,
                       struct why *why);
