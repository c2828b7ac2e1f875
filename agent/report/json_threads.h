/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `threads[]` and the sums of those left out. Internal to report/. */
#include "json_build.h"

/* The first @shown threads one by one, the others as sums. Nothing if no threads could be seen. */
void json_threads(struct build *build, cJSON *root, const struct facts *facts, size_t shown);
