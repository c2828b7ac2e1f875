/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From the command line to one command: finds it, parses its options, prints help, version or configuration. */
#include <stddef.h>

#include "command.h"

int dispatch(const struct command *const *commands, size_t count, int argc, char **argv);
