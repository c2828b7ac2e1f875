/* SPDX-License-Identifier: Apache-2.0 */
#include "global_number.h"

#include <errno.h>
#include <string.h>

#include "elf_image.h"

/* Addresses in memory; 0: no such symbol. */
static int find_all(struct process *process, const struct global_number *numbers, size_t count,
                    uint64_t *ret_addresses) {
        struct elf_image *image;
        uint64_t bias;
        int r = process_image(process, &image);

        if (r >= 0)
                r = process_bias(process, image, NULL, &bias);
        for (size_t i = 0; r >= 0 && i < count; i++) {
                uint64_t address, size;

                r = elf_image_symbol(image, numbers[i].symbol, &address, &size);
                /* One of another size is another variable, whatever its name. */
                ret_addresses[i] = r > 0 && size == numbers[i].bytes ? address + bias : 0;
        }
        return r < 0 ? r : 0;
}

int global_numbers_read(struct process *process, const char *runtime, struct global_number *numbers,
                        size_t count) {
        struct process_memo *memo = process_memo(process, runtime);
        int r = 0;

        for (size_t i = 0; i < count; i++)
                numbers[i].value = ABSENT;
        if (count > GLOBAL_NUMBERS_MAX)
                return -E2BIG;
        if (!memo->valid) {
                /* Out of memory, or without rights that may be given later: looked for again. */
                r = find_all(process, numbers, count, memo->values);
                if (r == -ENOMEM || r == -EACCES)
                        return r;
                memo->valid = true;
                memo->error = r;
        }
        if (memo->error < 0)
                return memo->error;
        for (size_t i = 0; i < count; i++) {
                uint64_t wide;
                uint32_t narrow;
                bool is_wide = numbers[i].bytes == sizeof(wide);

                if (memo->values[i] == 0)
                        continue;
                r = process_read_memory(process, memo->values[i], is_wide ? (void *) &wide : &narrow,
                                        is_wide ? sizeof(wide) : sizeof(narrow));
                if (r < 0)
                        break;
                numbers[i].value = is_wide ? wide : narrow;
        }
        if (r < 0)
                for (size_t i = 0; i < count; i++)
                        numbers[i].value = ABSENT;
        return r;
}
