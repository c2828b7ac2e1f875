/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <sys/signalfd.h>

static void fill(sigset_t *set) {
        sigemptyset(set);
        sigaddset(set, SIGINT);
        sigaddset(set, SIGTERM);
        sigaddset(set, SIGHUP);
}

int stop_listen(struct loop **ret_loop, loop_signal_fn fn, void *data) {
        struct loop *loop;
        sigset_t set;
        int r = loop_new(&loop);

        if (r < 0)
                return r;
        fill(&set);
        r = loop_add_signals(loop, &set, fn, data);
        if (r < 0) {
                loop_free(loop);
                return r;
        }
        *ret_loop = loop;
        return 0;
}

void stop_ignore(void) {
        (void) signal(SIGINT, SIG_IGN);
        (void) signal(SIGTERM, SIG_IGN);
        (void) signal(SIGHUP, SIG_IGN);
}

int stop_fd(void) {
        sigset_t set;

        fill(&set);
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
