/* SPDX-License-Identifier: Apache-2.0 */
#include "../../agent/runtimes/global_number.h"

#include "runtimes_globals.h"

#define EXE "/usr/bin/server"

uint32_t made_narrow = 7;
uint64_t made_wide = UINT64_C(0x1122334455667788);

static const struct made_process server = {
                .pid = 10, .exe = EXE, .argv = {"server"}, .maps = MADE_MAPS(EXE)};

struct reading {
        struct process_memos *memos;
        struct process process;
        struct global_number numbers[4];
};

static int read_numbers(struct fixture *fixture, struct reading *reading) {
        static const struct global_number wanted[] = {{"made_narrow", 4, 1},
                                                      {"made_wide", 8, 1},
                                                      {"made_absent", 4, 1},
                                                      {"made_wide", 4, 1}};
        int r;

        if (!reading->memos)
                cr_assert_eq(process_memos_new(&reading->memos), 0);
        memcpy(reading->numbers, wanted, sizeof(wanted));
        cr_assert_eq(process_read(fixture->root, fixture->arena, reading->memos, 10, &reading->process), 0);
        r = global_numbers_read(&reading->process, "server", reading->numbers, ELEMENTS(wanted));
        process_close(&reading->process);
        return r;
}

static void expect(const struct reading *reading, uint64_t narrow, uint64_t wide) {
        cr_expect_eq(reading->numbers[0].value, narrow);
        cr_expect_eq(reading->numbers[1].value, wide);
        cr_expect_eq(reading->numbers[2].value, ABSENT);
        cr_expect_eq(reading->numbers[3].value, ABSENT, "a variable of another size");
}

Test(runtimes_global_number, reads_what_is_in_memory_now) {
        cleanup_fixture struct fixture fixture = {0};
        struct reading reading = {0};

        fixture_make(&fixture);
        fixture_process(&fixture, &server);
        fixture_own_image(&fixture, EXE);
        made_narrow = 40; /* not what the file says */
        fixture_global(&fixture, 10, &made_narrow, sizeof(made_narrow));
        fixture_global(&fixture, 10, &made_wide, sizeof(made_wide));
        cr_assert_eq(read_numbers(&fixture, &reading), 0);
        expect(&reading, 40, UINT64_C(0x1122334455667788));

        /* Where they are is remembered, not what they are: the executable is not read again. */
        cr_assert_eq(unlink(fixture_path(&fixture, EXE + 1)), 0);
        made_narrow = 41;
        fixture_global(&fixture, 10, &made_narrow, sizeof(made_narrow));
        cr_assert_eq(read_numbers(&fixture, &reading), 0);
        expect(&reading, 41, UINT64_C(0x1122334455667788));
        process_memos_free(reading.memos);
}

Test(runtimes_global_number, says_why_there_is_nothing) {
        cleanup_fixture struct fixture fixture = {0};
        struct reading reading = {0};

        /* No executable, one that is none, memory that is not there. */
        fixture_make(&fixture);
        fixture_process(&fixture, &server);
        cr_assert_eq(read_numbers(&fixture, &reading), -ENOENT);
        expect(&reading, ABSENT, ABSENT);
        process_memos_free(reading.memos);

        reading.memos = NULL;
        fixture_write(&fixture, EXE + 1, "#!/bin/sh\n");
        cr_assert_eq(read_numbers(&fixture, &reading), -ENOEXEC);
        expect(&reading, ABSENT, ABSENT);
        process_memos_free(reading.memos);

        reading.memos = NULL;
        fixture_own_image(&fixture, EXE);
        cr_assert_lt(read_numbers(&fixture, &reading), 0);
        expect(&reading, ABSENT, ABSENT);
        process_memos_free(reading.memos);
}

Test(runtimes_global_number, looks_again_where_rights_were_missing) {
        cleanup_fixture struct fixture fixture = {0};
        struct reading reading = {0};
        struct made_process hidden = server;

        fixture_make(&fixture);
        hidden.hides = true;
        hidden.maps = NULL;
        fixture_process(&fixture, &hidden);
        fixture_own_image(&fixture, EXE);
        cr_assert_eq(read_numbers(&fixture, &reading), -EACCES);
        expect(&reading, ABSENT, ABSENT);
        fixture_write(&fixture, "proc/10/maps", "%s", MADE_MAPS(EXE));
        fixture_global(&fixture, 10, &made_narrow, sizeof(made_narrow));
        fixture_global(&fixture, 10, &made_wide, sizeof(made_wide));
        cr_assert_eq(read_numbers(&fixture, &reading), 0);
        expect(&reading, made_narrow, made_wide);
        process_memos_free(reading.memos);
}
