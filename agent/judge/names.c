/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

static const char *const verdict_names[VERDICT_COUNT] = {
                [VERDICT_QUOTA] = "quota",           [VERDICT_ANCESTOR_QUOTA] = "ancestor-quota",
                [VERDICT_CONTENTION] = "contention", [VERDICT_STEAL] = "steal",
                [VERDICT_MIXED] = "mixed",           [VERDICT_FINE] = "fine",
                [VERDICT_NO_LIMIT] = "no-limit",     [VERDICT_NOT_MEASURED] = "not-measured",
};

static const char *const severity_names[SEVERITY_COUNT] = {
                [SEVERITY_NONE] = "none",
                [SEVERITY_INFO] = "info",
                [SEVERITY_WARNING] = "warning",
};

const char *verdict_name(enum verdict verdict) {
        return verdict < VERDICT_COUNT ? verdict_names[verdict] : "unknown";
}

const char *severity_name(enum severity severity) {
        return severity < SEVERITY_COUNT ? severity_names[severity] : "unknown";
}
