/* SPDX-License-Identifier: Apache-2.0 */
#include "root_below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "root_path.h"

int root_open_below(struct root *root, const char *path, struct root **ret_root, struct why *why) {
        char buffer[PATH_MAX], by_descriptor[64];
        const char *clean;

        int r = root_clean_path(path, buffer, &clean);
        if (r < 0)
                return why_set(why, r, "%s: %s", path, strerror(-r));
        cleanup_fd int fd = root_open_path(root, clean, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return why_set(why, fd, "%s: %s", path, strerror(-fd));
        /* The descriptor was reached without leaving the root; opening it by its number cannot leave it either. */
        (void) snprintf(by_descriptor, sizeof(by_descriptor), "/proc/self/fd/%d", fd);
        r = root_open(by_descriptor, ret_root, why);
        return r < 0 ? why_wrap(why, r, "%s", path) : 0;
}
