/* SPDX-License-Identifier: Apache-2.0 */

/* key=value parameters: counts ("8") and times ("30ms", "max"). Unknown keys are errors. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

int param_add(struct ctx *c, const char *text) {
        const char *eq = strchr(text, '=');
        char *key;

        if (!eq || eq == text || eq[1] == '\0')
                return -EINVAL;
        if (c->n_params == PARAM_MAX)
                return -E2BIG;
        key = strndup(text, (size_t) (eq - text)); /* lives as long as the program */
        if (!key)
                return -ENOMEM;
        c->params[c->n_params++] = (struct param){.key = key, .value = eq + 1};
        return 0;
}

static const char *param_find(struct ctx *c, const char *key) {
        const char *value = NULL;

        for (unsigned i = 0; i < c->n_params; i++)
                if (strcmp(c->params[i].key, key) == 0) {
                        c->params[i].used = true;
                        value = c->params[i].value;
                }
        return value;
}

static void param_bad(struct ctx *c, const char *key, const char *value, const char *form) {
        fprintf(stderr, "load: %s=%s: expected %s\n", key, value, form);
        c->bad_params = true;
}

uint64_t param_count(struct ctx *c, const char *key, uint64_t fallback) {
        const char *value = param_find(c, key);
        unsigned long long n;
        char *end;

        if (!value)
                return fallback;
        errno = 0;
        n = strtoull(value, &end, 10);
        if (errno != 0 || *end != '\0' || value[0] == '-' || n > 1000000000) {
                param_bad(c, key, value, "a count");
                return fallback;
        }
        return n;
}

int parse_time(const char *text, uint64_t *ret_ns) {
        static const struct {
                const char *unit;
                double ns;
        } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
        double x;
        char *end;

        if (strcmp(text, "max") == 0) {
                *ret_ns = NO_LIMIT;
                return 0;
        }
        x = strtod(text, &end);
        if (end == text || !(x >= 0 && x < 1e9))
                return -EINVAL;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strcmp(end, units[i].unit) == 0) {
                        *ret_ns = (uint64_t) (x * units[i].ns + 0.5);
                        return 0;
                }
        return -EINVAL;
}

uint64_t param_time(struct ctx *c, const char *key, uint64_t fallback_ns) {
        const char *value = param_find(c, key);
        uint64_t ns;

        if (!value)
                return fallback_ns;
        if (parse_time(value, &ns) < 0) {
                param_bad(c, key, value, "a time such as 30ms, 500us, 1s or max");
                return fallback_ns;
        }
        return ns;
}

bool params_all_used(const struct ctx *c) {
        bool all = true;

        for (unsigned i = 0; i < c->n_params; i++)
                if (!c->params[i].used) {
                        fprintf(stderr, "load: %s: this case has no parameter %s\n", c->load_case->name,
                                c->params[i].key);
                        all = false;
                }
        return all;
}
