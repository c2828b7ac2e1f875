/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers of /proc. The first byte chooses one; the rest is the file, whose names any process can choose. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/host/proc_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void claim(int holds) {
        if (!holds)
                abort();
}

static void check_schedstat(const char *text, size_t length) {
        struct proc_schedstat schedstat;

        (void) proc_parse_schedstat(text, length, &schedstat);
}

static void check_stat(const char *text, size_t length) {
        struct proc_stat stat;

        if (proc_parse_stat(text, length, &stat) == 0)
                claim(memchr(stat.name, '\0', sizeof(stat.name)) && stat.parent >= 0);
}

/* Whatever the name of a thread is, the fields behind it are found. */
static void check_name(const char *text, size_t length) {
        static const char head[] = "12 (",
                          tail[] = ") S 7 1 1 0 -1 4194304 104 0 0 0 1 2 0 0 20 -5 3 0 4711 1\n";
        char line[sizeof(head) + sizeof(tail) + 15];
        struct proc_stat stat;
        size_t n = length < 15 ? length : 15;

        memcpy(line, head, sizeof(head) - 1);
        memcpy(line + sizeof(head) - 1, text, n);
        memcpy(line + sizeof(head) - 1 + n, tail, sizeof(tail) - 1);
        claim(proc_parse_stat(line, sizeof(head) + sizeof(tail) - 2 + n, &stat) == 0);
        claim(memcmp(stat.name, text, n) == 0 && stat.state == 'S' && stat.parent == 7 &&
              stat.start_ticks == 4711);
}

static void check_status(const char *text, size_t length) {
        struct proc_status status;

        if (proc_parse_status(text, length, &status) == 0)
                claim(status.seccomp < 3 && status.container_pid >= 0);
}

static void check_machine(const char *text, size_t length) {
        struct proc_machine_stat stat;

        proc_parse_machine_stat(text, length, &stat);
        claim(proc_parse_cpu_list(text, length) < 1u << 16);
}

static void check_command(const char *text, size_t length) {
        size_t room = length > 0 ? (unsigned char) text[0] + 1u : 1;
        char *out = malloc(room);

        claim(out != NULL);
        proc_join_command(text, length, out, room);
        claim(strlen(out) < room && strlen(out) <= length);
        free(out);
}

static void check_namespace(const char *text, size_t length) {
        char *link = malloc(length + 1);

        claim(link != NULL);
        memcpy(link, text, length);
        link[length] = '\0';
        (void) proc_parse_namespace(link);
        free(link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static void (*const checks[])(const char *, size_t) = {
                        check_schedstat, check_stat,    check_name,      check_status,
                        check_machine,   check_command, check_namespace,
        };
        char *text;

        if (size == 0)
                return 0;
        /* Of its exact size, without a NUL behind it: one byte too far is seen. */
        text = malloc(size - 1 ? size - 1 : 1);
        claim(text != NULL);
        memcpy(text, data + 1, size - 1);
        checks[data[0] % ELEMENTS(checks)](text, size - 1);
        free(text);
        return 0;
}
