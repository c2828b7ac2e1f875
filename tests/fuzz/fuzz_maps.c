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
        struct container_sample containers[] = {{.id = 1}, {.id = 2}};
        struct snapshot snapshot = {
                        .arena = arena, .containers = containers, .containers_count = ELEMENTS(containers)};
        if (arena && bpf_intervals(drained, 0, &snapshot) == 0)
                for (size_t c = 0; c < ELEMENTS(containers); c++)
                        for (size_t i = 1; i < containers[c].intervals_count; i++)
                                if (containers[c].intervals[i].start_ns <=
                                    containers[c].intervals[i - 1].end_ns)
                                        abort();
        arena_free(arena);
        drained_release(drained);
        return records > 1000000;
}
