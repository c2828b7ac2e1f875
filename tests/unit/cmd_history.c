/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../agent/cmd/history.h"

#define START (1000 * NS_PER_S)
#define REAL_AHEAD (UINT64_C(1796040000) * NS_PER_S)

static struct instant at_second(uint64_t second) {
        return (struct instant){.mono_ns = START + second * NS_PER_S,
                                .real_ns = REAL_AHEAD + START + second * NS_PER_S};
}

/* Windows of ten seconds, each stalled for @stall_ms milliseconds, from @second on. */
static void add(struct history_entry *entry, uint64_t second, uint64_t stall_ms) {
        struct facts facts = {
                        .from = at_second(second),
                        .to = at_second(second + 10),
                        .window_ns = 10 * NS_PER_S,
                        .stall_wall_ns = stall_ms * NS_PER_MS,
                        .cpu_used_ns = NS_PER_S,
        };

        history_add(entry, &facts, stall_ms == 0);
}

Test(history, sums_and_the_worst_minute_with_its_time) {
        struct history history = {0};
        struct history_entry *entry;
        struct report_summary summary;

        cr_assert_eq(history_get(&history, 7, &entry), 0);
        for (uint64_t second = 0; second < 180; second += 10)
                add(entry, second, second >= 60 && second < 80 ? 300 : second == 130 ? 500 : 0);
        history_summarize(entry, at_second(180), &summary);
        cr_expect_eq(summary.windows, UINT64_C(18));
        cr_expect_eq(summary.windows_lossless, UINT64_C(15));
        cr_expect_eq(summary.window_ns, 180 * NS_PER_S);
        cr_expect_eq(summary.stall_wall_ns, 1100 * NS_PER_MS);
        cr_expect_eq(summary.cpu_used_ns, 18 * NS_PER_S);
        cr_expect_eq(summary.worst_minute_stall_ns, 600 * NS_PER_MS);
        cr_expect_eq(summary.worst_minute_at_ns, at_second(60).real_ns);
        history_release(&history);
}

Test(history, the_running_minute_can_be_the_worst) {
        struct history history = {0};
        struct history_entry *entry;
        struct report_summary summary;

        cr_assert_eq(history_get(&history, 7, &entry), 0);
        add(entry, 0, 10);
        add(entry, 60, 20);
        history_summarize(entry, at_second(70), &summary);
        cr_expect_eq(summary.worst_minute_stall_ns, 20 * NS_PER_MS);
        cr_expect_eq(summary.worst_minute_at_ns, at_second(60).real_ns);
        history_release(&history);
}

Test(history, each_summary_starts_anew) {
        struct history history = {0};
        struct history_entry *entry;
        struct report_summary summary;

        cr_assert_eq(history_get(&history, 7, &entry), 0);
        add(entry, 0, 10);
        history_summarize(entry, at_second(10), &summary);
        add(entry, 10, 0);
        history_summarize(entry, at_second(20), &summary);
        cr_expect_eq(summary.windows, UINT64_C(1));
        cr_expect_eq(summary.windows_lossless, UINT64_C(1));
        cr_expect_eq(summary.stall_wall_ns, UINT64_C(0));
        cr_expect_eq(summary.window_ns, 10 * NS_PER_S);
        cr_expect_eq(summary.worst_minute_at_ns, UINT64_C(0), "nothing was bad, so nothing was worst");
        history_release(&history);
}

Test(history, what_was_never_measured_stays_absent) {
        struct history history = {0};
        struct history_entry *entry;
        struct report_summary summary;
        struct facts facts = {.from = at_second(0), .stall_wall_ns = ABSENT, .cpu_used_ns = ABSENT};

        cr_assert_eq(history_get(&history, 7, &entry), 0);
        history_add(entry, &facts, true);
        history_summarize(entry, at_second(10), &summary);
        cr_expect_eq(summary.stall_wall_ns, ABSENT);
        cr_expect_eq(summary.cpu_used_ns, ABSENT);
        cr_expect_eq(summary.worst_minute_stall_ns, UINT64_C(0));
        history_release(&history);
}

Test(history, a_stepped_clock_does_not_move_the_worst_minute_out_of_the_window) {
        struct history history = {0};
        struct history_entry *entry;
        struct report_summary summary;
        struct instant end = at_second(70);

        cr_assert_eq(history_get(&history, 7, &entry), 0);
        add(entry, 0, 10);
        add(entry, 60, 0);
        end.real_ns -= 3600 * NS_PER_S;
        history_summarize(entry, end, &summary);
        cr_expect_eq(summary.worst_minute_at_ns, end.real_ns - 70 * NS_PER_S);
        history_release(&history);
}

Test(history, entries_are_found_again_and_taken_out_when_gone) {
        struct history history = {0};
        struct history_entry *entry, gone;

        for (uint64_t id = 20; id > 0; id--) {
                cr_assert_eq(history_get(&history, id, &entry), 0);
                entry->windows = id;
                entry->seen = true;
        }
        cr_assert_eq(history.count, (size_t) 20);
        history_begin(&history);
        for (uint64_t id = 1; id <= 20; id++) {
                cr_assert_eq(history_get(&history, id, &entry), 0);
                cr_expect_eq(entry->windows, id);
                entry->seen = id != 3 && id != 20;
        }
        cr_assert(history_take_gone(&history, &gone));
        cr_expect_eq(gone.id, UINT64_C(3));
        cr_assert(history_take_gone(&history, &gone));
        cr_expect_eq(gone.id, UINT64_C(20));
        cr_assert_not(history_take_gone(&history, &gone));
        cr_expect_eq(history.count, (size_t) 18);
        history_release(&history);
}

Test(history, has_a_maximum) {
        struct history history = {0};
        struct history_entry *entry;

        for (uint64_t id = 0; id < HISTORY_MAX; id++)
                cr_assert_eq(history_get(&history, id, &entry), 0);
        cr_expect_eq(history_get(&history, HISTORY_MAX, &entry), -ENOSPC);
        cr_expect_eq(history_get(&history, 5, &entry), 0);
        history_release(&history);
}
