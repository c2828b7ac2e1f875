/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>

static uint64_t surplus_of(const struct parallelism_facts *row) {
        return is_known(row->surplus) ? row->surplus : 0;
}

static bool is_stale(const struct parallelism *row) {
        return is_known(row->configured) && row->configured != row->effective;
}

bool row_matters(const struct parallelism_facts *row) {
        return surplus_of(row) > 0 || row->row->unreadable || is_stale(row->row);
}

/* Rows alike keep the order of the scan, in whose one array they lie. */
static int compare_rows(const void *a, const void *b) {
        const struct parallelism_facts *x = *(const struct parallelism_facts *const *) a,
                                       *y = *(const struct parallelism_facts *const *) b;
        const uint64_t keys[][2] = {
                        {surplus_of(x), surplus_of(y)},
                        {row_matters(x), row_matters(y)},
        };
        for (size_t i = 0; i < ELEMENTS(keys); i++)
                if (keys[i][0] != keys[i][1])
                        return keys[i][0] > keys[i][1] ? -1 : 1;
        return x < y ? -1 : x > y;
}

size_t rows_in_order(const struct facts *facts,
                     const struct parallelism_facts *ret_rows[static PARALLELISM_MAX]) {
        size_t count = facts->parallelism_count < PARALLELISM_MAX ? facts->parallelism_count
                                                                  : PARALLELISM_MAX;
        for (size_t i = 0; i < count; i++)
                ret_rows[i] = &facts->parallelism[i];
        if (count > 1)
                qsort(ret_rows, count, sizeof(struct parallelism_facts *), compare_rows);
        return count;
}
