/* SPDX-License-Identifier: Apache-2.0 */
/* A capture's manifest comes with a bug report: any bytes. What is taken is written again and must be taken again, the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/probe/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct capture_manifest first, second;
        struct why why = {.text = ""};
        char *text, *again;

        int r = capture_manifest_parse((const char *) data, size, &first, &why);
        if (r < 0) {
                /* A refusal has a sentence. */
                if (!why.text[0])
                        abort();
                return 0;
        }
        if (first.ticks_count > CAPTURE_TICKS_MAX || first.method >= PROBE_METHOD_COUNT)
                abort();
        for (size_t i = 1; i < first.ticks_count; i++)
                if (first.ticks[i].number <= first.ticks[i - 1].number ||
                    first.ticks[i].at.mono_ns <= first.ticks[i - 1].at.mono_ns)
                        abort();

        if (capture_manifest_format(&first, &text) < 0)
                abort();
        if (capture_manifest_parse(text, strlen(text), &second, &why) < 0 ||
            capture_manifest_format(&second, &again) < 0)
                abort();
        if (strcmp(text, again) != 0)
                abort();
        free(text);
        free(again);
        capture_manifest_release(&first);
        capture_manifest_release(&second);
        return 0;
}
