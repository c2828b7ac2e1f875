/* SPDX-License-Identifier: Apache-2.0 */
/* A capture's maps.json comes with a bug report: any bytes. What is taken goes through the assembly of its intervals. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../agent/probe/bpf_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct drained *drained = NULL;
        struct why why = {.text = ""};
        int r = bpf_drained_parse((const char *) data, size, &drained, &why);

        if (r < 0) {
                /* A refusal has a sentence. */
                if (r != -ENOMEM && !why.text[0])
                        abort();
                return 0;
        }
        size_t records = 0;
        DRAINED_EACH(drained, head)
        records++;
        struct arena *arena = arena_new(16u << 20);
        struct container_sample container = {.id = 1};
        if (arena && bpf_intervals(drained, 0, arena, &container) == 0)
                for (size_t i = 1; i < container.intervals_count; i++)
                        if (container.intervals[i].start_ns <= container.intervals[i - 1].end_ns)
                                abort();
        arena_free(arena);
        drained_release(drained);
        return records > 1000000;
}
