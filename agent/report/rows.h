/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The settings of the container's runtimes, in the order in which they are told. Internal to report/. */
#include "report.h"

/*
 * Into @ret_rows: those that are too high (the highest first), then those of which something could not be read, then the others as the scan
 * found them. Returns how many.
 */
size_t rows_in_order(const struct facts *facts,
                     const struct parallelism_facts *ret_rows[static PARALLELISM_MAX]);
/* It is told by itself: too high, or not readable, or not what its configuration says. */
bool row_matters(const struct parallelism_facts *row);
