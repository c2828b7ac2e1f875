/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "ratio.h"

/* Where bin @i begins; see snapshot.h: four bins an octave, linear within it. */
static uint64_t bin_start(size_t i, unsigned shift) {
        if (i == 0)
                return 0;
        unsigned octave = shift + (unsigned) (i - 1) / 4;
        uint64_t quarter = (UINT64_C(1) << octave) / 4;
        return (UINT64_C(1) << octave) + (i - 1) % 4 * quarter;
}

uint64_t facts_quantile_u32(const uint32_t *bins, size_t count, unsigned shift, unsigned permille,
                            uint64_t max_ns) {
        uint64_t total = 0, below = 0;
        for (size_t i = 0; i < count; i++)
                total += bins[i];
        if (total == 0)
                return ABSENT;

        /* In thousandths of an entry, so that no rounding decides in which bin the rank falls. */
        uint64_t rank = total * permille;
        for (size_t i = 0; i < count; i++) {
                uint64_t here = (uint64_t) bins[i] * 1000;
                if (here == 0 || below + here < rank) {
                        below += here;
                        continue;
                }
                uint64_t start = bin_start(i, shift), end = bin_start(i + 1, shift);
                /* The last bin has no upper end of its own. */
                if (i + 1 == count && is_known(max_ns) && max_ns > end)
                        end = max_ns;
                uint64_t value = start + ratio_scale(end - start, rank - below, here);
                return is_known(max_ns) && value > max_ns ? max_ns : value;
        }
        return ABSENT; /* a permille above 1000 */
}
