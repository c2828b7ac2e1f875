/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subcommands. */
#include "cmd/command.h"
#include "cmd/dispatch.h"

static const struct command *const commands[] = {
                &command_watch,
                &command_run,
                &command_check,
                &command_doctor,
};

int main(int argc, char **argv) {
        return dispatch(commands, sizeof(commands) / sizeof(commands[0]), argc, argv);
}
