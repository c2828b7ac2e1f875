/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of threads in the text form. Internal to report/. */
#include "report.h"

/*
 * Threads of one process and name are one row ("worker ×8"), at most threads_max rows; threads beyond them and threads that only
 * slept are summed in the last row. Columns that nothing was measured for are left out. Writes nothing without threads.
 */
void text_threads(const struct report *report, struct text *out);
