/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Somebody else's text inside a sentence of ours: escaped, cut to a length that leaves the sentence room. */
#include <string.h>

#include "../base/text.h"

#define ESCAPED_MAX 128
/* Lives as long as the block it is used in. */
#define escaped(foreign) text_escape((char[ESCAPED_MAX]){0}, ESCAPED_MAX, foreign, strlen(foreign))
