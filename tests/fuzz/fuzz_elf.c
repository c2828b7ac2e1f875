/* SPDX-License-Identifier: Apache-2.0 */
/* An executable of a container: any bytes. Whatever is answered lies within the file. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../agent/runtimes/elf_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_elf_image struct elf_image *image = NULL;
        int fd = memfd_create("elf", MFD_CLOEXEC);
        struct elf_section section;
        uint64_t address, length;
        size_t count;
        char byte;

        if (fd < 0)
                return 0;
        if (write(fd, data, size) != (ssize_t) size) {
                close(fd);
                return 0;
        }
        if (elf_image_open_take(fd, &image) < 0)
                return 0;
        (void) elf_image_symbol(image, "main", &address, &length);
        (void) elf_image_section(image, ".text", &section);
        const struct elf_segment *segments = elf_image_segments(image, &count);
        if (count > ELF_SEGMENTS_MAX)
                abort();
        for (size_t i = 0; i < count; i++)
                if (elf_image_read_at(image, segments[i].address, &byte, 1) == 0 && size == 0)
                        abort();
        return 0;
}
