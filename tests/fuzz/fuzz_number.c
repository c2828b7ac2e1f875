/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that people and kernels write: outputs only on success, and each parser agrees with the others. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/base/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void claim(int holds) {
        if (!holds)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint64_t number = 42, duration = 42, again;
        int64_t with_sign = 42;
        uint32_t share = 42;
        char *text = malloc(size + 1), out[NUMBER_TEXT_MAX], exact[40];
        int r;

        claim(text != NULL);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';

        r = number_parse_u64(text, &number);
        claim(r == 0 || ((r == -EINVAL || r == -ERANGE) && number == 42));
        if (r == 0) {
                claim(number_parse_u64_n((const char *) data, strlen(text), &again) == 0 && again == number);
                claim(strlen(number_format_cpus(out, number)) < sizeof(out));
                claim(strlen(number_format_duration(out, number)) < sizeof(out));
        }
        r = number_parse_s64(text, &with_sign);
        claim(r == 0 || ((r == -EINVAL || r == -ERANGE) && with_sign == 42));
        r = number_parse_duration(text, &duration);
        claim(r == 0 || ((r == -EINVAL || r == -ERANGE) && duration == 42));
        if (r == 0) {
                snprintf(exact, sizeof(exact), "%" PRIu64 "ns", duration);
                claim(number_parse_duration(exact, &again) == 0 && again == duration);
                claim(number_parse_u64(text, &again) < 0);
                number_format_duration(out, duration);
        }
        r = number_parse_share(text, &share);
        claim(r == 0 || ((r == -EINVAL || r == -ERANGE) && share == 42));
        claim(r < 0 || share <= 1000000);
        free(text);
        return 0;
}
