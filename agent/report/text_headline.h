/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The verdict in words: what the first line of the text form says after the time and the subject. Internal to report/. */
#include "report.h"

#define HEADLINE_MAX 128
#define HEADLINE_WAYS 3

/*
 * One verdict said in three ways, the longest first: a long subject must not be cut where shorter words do. Each begins with the same
 * word that can be searched for (THROTTLED, WAITING, STOLEN, MIXED, OK, NO LIMIT, NOT MEASURED).
 */
struct headline {
        char words[HEADLINE_WAYS][HEADLINE_MAX];
};

void headline_of(const struct report *report, struct headline *ret_headline);
