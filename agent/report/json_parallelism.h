/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `parallelism[]`. Internal to report/. */
#include "json_build.h"

/* The first @shown settings one by one, the others counted. Nothing if nobody looked. */
void json_parallelism(struct build *build, cJSON *root, const struct facts *facts, size_t shown);
