/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/base/why.h"

Test(why, describes_and_returns_the_error) {
        struct why why = {""};

        cr_assert(why_set(&why, -ENOENT, "no %s", "group") == -ENOENT);
        cr_assert_str_eq(why.text, "no group");
        cr_assert(why_wrap(&why, -EINVAL, "file %d", 3) == -EINVAL);
        cr_assert_str_eq(why.text, "file 3: no group");
}

Test(why, nobody_has_to_ask) {
        cr_assert(why_set(NULL, -EPERM, "x") == -EPERM);
        cr_assert(why_wrap(NULL, -EPERM, "x") == -EPERM);
}

Test(why, arguments_may_be_its_own_text) {
        struct why why = {""};

        why_set(&why, -1, "inner");
        why_set(&why, -1, "outer (%s)", why.text);
        cr_assert_str_eq(why.text, "outer (inner)");
        why_wrap(&why, -1, "%s", why.text);
        cr_assert_str_eq(why.text, "outer (inner): outer (inner)");
}

Test(why, is_cut_at_its_size_between_characters) {
        char name[2000];
        struct why why = {""};

        memset(name, 'n', sizeof(name));
        name[sizeof(name) - 1] = '\0';
        why_set(&why, -1, "%s", name);
        cr_assert(strlen(why.text) == sizeof(why.text) - 1);
        why_wrap(&why, -1, "front");
        cr_assert(strncmp(why.text, "front: nnn", 10) == 0 && strlen(why.text) == sizeof(why.text) - 1);
        for (size_t offset = 0; offset < 4; offset++) {
                size_t length = sizeof(why.text) - 2 - offset;

                memset(name, 'n', length);
                memcpy(name + length, "\xf0\x9f\x90\x8d", 5);
                why_set(&why, -1, "%s", name);
                /* With three bytes more room it fits. */
                cr_assert(strlen(why.text) == length + (offset == 3 ? 4 : 0), "offset %zu: %zu", offset,
                          strlen(why.text));
                why_set(&why, -1, "%.*s", (int) length - 7, name);
                why_wrap(&why, -1, "a\xf0\x9f\x90\x8d");
                cr_assert((why.text[strlen(why.text) - 1] & 0x80) == 0);
        }
}
