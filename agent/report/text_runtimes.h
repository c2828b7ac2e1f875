/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lines `runtime` of the text form. Internal to report/. */
#include "report.h"

/* A line for each setting that is too high or not readable, at most four, and one for all others. Writes nothing without any. */
void text_runtimes(const struct report *report, struct text *out);
