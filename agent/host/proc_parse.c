/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/number.h"
#include "proc_internal.h"

/* Ticks of /proc/stat a second: USER_HZ, 100 on every architecture that is left but alpha. */
#define NS_PER_TICK (NS_PER_S / 100)

/* Fields of /proc/PID/stat, counted from the state, which follows the name (proc_pid_stat in Documentation/filesystems/proc.rst). */
enum { STAT_STATE, STAT_PARENT, STAT_THREADS = 17, STAT_START = 19 };

/* The word at *@text up to a blank or the line's end; false: there is none. */
static bool next_word(const char **text, const char *end, const char **ret_word, size_t *ret_length) {
        const char *p = *text, *start;

        while (p < end && (*p == ' ' || *p == '\t'))
                p++;
        for (start = p; p < end && *p != ' ' && *p != '\t' && *p != '\n'; p++)
                ;
        if (p == start)
                return false;
        *text = p;
        *ret_word = start;
        *ret_length = (size_t) (p - start);
        return true;
}

static bool next_number(const char **text, const char *end, uint64_t *ret_value) {
        const char *word;
        size_t length;

        return next_word(text, end, &word, &length) && number_parse_u64_n(word, length, ret_value) == 0;
}

int proc_parse_schedstat(const char *text, size_t length, struct proc_schedstat *ret_schedstat) {
        struct proc_schedstat schedstat;
        const char *end = text + length;

        if (!next_number(&text, end, &schedstat.run_ns) ||
            !next_number(&text, end, &schedstat.runqueue_delay_ns) ||
            !next_number(&text, end, &schedstat.timeslices))
                return -EINVAL;
        *ret_schedstat = schedstat;
        return 0;
}

int proc_parse_stat(const char *text, size_t length, struct proc_stat *ret_stat) {
        const char *end = text + length, *open = memchr(text, '(', length),
                   *close = memrchr(text, ')', length), *word;
        struct proc_stat stat = {.name = ""};
        uint64_t value;
        size_t n;

        /* The name may itself hold ") R 1": everything behind it is a number, so the last parenthesis is its end. */
        if (!open || !close || close < open)
                return -EINVAL;
        n = (size_t) (close - open - 1);
        memcpy(stat.name, open + 1, n < sizeof(stat.name) ? n : sizeof(stat.name) - 1);
        text = close + 1;
        for (unsigned field = STAT_STATE; field <= STAT_START; field++) {
                if (!next_word(&text, end, &word, &n))
                        return -EINVAL;
                if (field == STAT_STATE && n == 1)
                        stat.state = *word;
                if (field != STAT_PARENT && field != STAT_THREADS && field != STAT_START)
                        continue;
                if (number_parse_u64_n(word, n, &value) < 0 || (field != STAT_START && value > INT32_MAX))
                        return -EINVAL;
                if (field == STAT_PARENT)
                        stat.parent = (pid_t) value;
                else if (field == STAT_THREADS)
                        stat.threads = (uint32_t) value;
                else
                        stat.start_ticks = value;
        }
        *ret_stat = stat;
        return 0;
}

static bool parse_hex(const char *word, size_t length, uint64_t *ret_value) {
        uint64_t value = 0;

        if (length == 0 || length > 16)
                return false;
        for (size_t i = 0; i < length; i++) {
                char c = word[i];
                unsigned digit = c >= '0' && c <= '9'   ? (unsigned) (c - '0')
                                 : c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10
                                                        : 16;

                if (digit == 16)
                        return false;
                value = value * 16 + digit;
        }
        *ret_value = value;
        return true;
}

static bool is_key(const char *line, const char *end, const char *key) {
        size_t n = strlen(key);

        return (size_t) (end - line) > n && memcmp(line, key, n) == 0;
}

static void parse_ns_pid(const char *text, const char *end, struct proc_status *status) {
        uint64_t value;

        while (next_number(&text, end, &value) && value <= INT32_MAX) {
                status->container_pid = (pid_t) value;
                status->pid_depth++;
        }
}

/* "real effective saved filesystem" */
static bool parse_uid(const char *text, const char *end, struct proc_status *status) {
        uint64_t value;

        if (!next_number(&text, end, &value) || !next_number(&text, end, &value) || value > UINT32_MAX)
                return false;
        status->uid = (uint32_t) value;
        return true;
}

static void parse_flags(const char *line, const char *end, struct proc_status *status) {
        const char *rest = memchr(line, ':', (size_t) (end - line));
        uint64_t value;

        if (!rest)
                return;
        rest++;
        if (is_key(line, end, "NoNewPrivs:") && next_number(&rest, end, &value))
                status->no_new_privs = value != 0;
        else if (is_key(line, end, "Seccomp:") && next_number(&rest, end, &value))
                status->seccomp = value < 3 ? (unsigned) value : 0;
}

static void parse_capabilities(const char *line, const char *end, struct proc_status *status) {
        const struct {
                const char *key;
                uint64_t *mask;
        } masks[] = {
                        {"CapPrm:", &status->permitted},
                        {"CapEff:", &status->effective},
                        {"CapBnd:", &status->bounding},
        };

        for (size_t i = 0; i < ELEMENTS(masks); i++) {
                const char *rest = line + strlen(masks[i].key), *word;
                size_t n;

                if (is_key(line, end, masks[i].key) && next_word(&rest, end, &word, &n))
                        (void) parse_hex(word, n, masks[i].mask);
        }
}

int proc_parse_status(const char *text, size_t length, struct proc_status *ret_status) {
        struct proc_status status = {.uid = UINT32_MAX};
        bool has_uid = false;

        for (const char *line = text, *end = text + length, *next; line < end; line = next) {
                const char *newline = memchr(line, '\n', (size_t) (end - line));
                const char *stop = newline ? newline : end;

                next = newline ? newline + 1 : end;
                if (is_key(line, stop, "Uid:"))
                        has_uid |= parse_uid(line + 4, stop, &status);
                else if (is_key(line, stop, "NSpid:") && status.pid_depth == 0)
                        parse_ns_pid(line + 6, stop, &status);
                else {
                        parse_flags(line, stop, &status);
                        parse_capabilities(line, stop, &status);
                }
        }
        if (!has_uid)
                return -EINVAL;
        *ret_status = status;
        return 0;
}

void proc_parse_machine_stat(const char *text, size_t length, struct proc_machine_stat *ret_stat) {
        struct proc_machine_stat stat = {ABSENT, ABSENT, 0};

        for (const char *line = text, *end = text + length, *next; line < end; line = next) {
                const char *newline = memchr(line, '\n', (size_t) (end - line)),
                           *stop = newline ? newline : end, *p;
                uint64_t value, ns;

                next = newline ? newline + 1 : end;
                if (is_key(line, stop, "cpu ")) {
                        /* user nice system idle iowait irq softirq steal */
                        unsigned column = 0;

                        for (p = line + 4; column < 8 && next_number(&p, stop, &value); column++)
                                ;
                        if (column == 8 && !__builtin_mul_overflow(value, NS_PER_TICK, &ns))
                                stat.steal_ns = ns;
                } else if (is_key(line, stop, "btime ")) {
                        p = line + 6;
                        if (next_number(&p, stop, &value) && !__builtin_mul_overflow(value, NS_PER_S, &ns))
                                stat.boot_real_ns = ns;
                } else if (is_key(line, stop, "cpu") && line[3] >= '0' && line[3] <= '9')
                        stat.cpus++;
        }
        *ret_stat = stat;
}

unsigned proc_parse_cpu_list(const char *text, size_t length) {
        unsigned cpus = 0;

        length -= length > 0 && text[length - 1] == '\n';
        for (const char *range = text, *end = text + length; range < end;) {
                const char *comma = memchr(range, ',', (size_t) (end - range)), *stop = comma ? comma : end;
                const char *dash = memchr(range, '-', (size_t) (stop - range));
                uint64_t first, last;

                if (number_parse_u64_n(range, (size_t) ((dash ? dash : stop) - range), &first) < 0)
                        return 0;
                last = first;
                if (dash && number_parse_u64_n(dash + 1, (size_t) (stop - dash - 1), &last) < 0)
                        return 0;
                /* CONFIG_NR_CPUS goes up to 8192. */
                if (last < first || last >= 1u << 16)
                        return 0;
                cpus += (unsigned) (last - first) + 1;
                range = stop + 1;
        }
        return cpus < 1u << 16 ? cpus : 0;
}

void proc_join_command(const char *text, size_t length, char *out, size_t room) {
        size_t n;

        while (length > 0 && text[length - 1] == '\0')
                length--;
        n = length < room ? length : room - 1;
        for (size_t i = 0; i < n; i++)
                out[i] = text[i] ? text[i] : ' ';
        out[n] = '\0';
}

uint64_t proc_parse_namespace(const char *link) {
        const char *number = strstr(link, ":[");
        uint64_t value;
        size_t n;

        if (!number)
                return ABSENT;
        number += 2;
        n = strcspn(number, "]");
        return number[n] == ']' && !number[n + 1] && number_parse_u64_n(number, n, &value) == 0 ? value
                                                                                                : ABSENT;
}
