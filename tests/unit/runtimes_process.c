/* SPDX-License-Identifier: Apache-2.0 */
/* What every runtime rests on: one process, as files of /proc that its owner can shape say it. */
#include "runtimes_fixture.h"

#define EXE "/opt/program"

static struct process read_made(struct fixture *fixture, const struct made_process *made) {
        struct process process;

        fixture_make(fixture);
        fixture_process(fixture, made);
        cr_assert_eq(process_read(fixture->root, fixture->arena, NULL, (pid_t) made->pid, &process), 0);
        return process;
}

Test(runtimes_process, reads_what_is_cheap) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10,
                                          .parent = 3,
                                          .exe = EXE,
                                          .argv = {"program", "", "last"},
                                          .cpus = "f,00000001,ffff0000",
                                          .rss_kb = 12,
                                          .threads = {{"pool-%u", 3}, {"other", 1}}};
        struct process process = read_made(&fixture, &made);

        cr_assert_eq(process.host_pid, 10);
        cr_assert_eq(process.parent, 3);
        cr_assert_str_eq(process.exe, EXE);
        cr_assert_str_eq(process.name, "program");
        cr_assert_eq(process.threads_count, 5);
        cr_assert_eq(process.affinity, 4 + 1 + 16);
        cr_assert_eq(process.rss_anon_bytes, 12 * 1024);
        cr_assert_eq(process.argc, 3);
        cr_assert_str_eq(process.argv[1], "");
        cr_assert_null(process.argv[3]);
        cr_assert_eq(process_count_threads(&process, "pool-"), 3);
        cr_assert_eq(process_count_threads(&process, "pool-2"), 1);
        cr_assert_eq(process_count_threads(&process, "none"), 0);
        process_close(&process);
}

Test(runtimes_process, a_deleted_executable_keeps_its_name) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = "/opt/program (deleted)", .argv = {"/other"}};
        struct process process = read_made(&fixture, &made);

        cr_assert_str_eq(process.exe, "/opt/program");
        cr_assert_str_eq(process_program(&process), "program");
        process_close(&process);
}

Test(runtimes_process, without_rights_the_arguments_are_left) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .argv = {"/opt/program", "-x"}, .hides = true};
        struct process process = read_made(&fixture, &made);
        const struct process_mapping *mapping;
        const char *value, *text;

        cr_assert_null(process.exe);
        cr_assert_eq(process.exe_error, -EACCES);
        cr_assert_str_eq(process_program(&process), "program");
        cr_assert_eq(process_variable(&process, "NAME", &value), -EACCES);
        cr_assert_eq(process_library(&process, "lib", &mapping), -EACCES);
        text = process_explain(&process, "the environment", -EACCES);
        cr_assert(strstr(text, "the environment of process 10 is not readable"), "%s", text);
        cr_assert(strstr(text, "CAP_SYS_PTRACE"), "%s", text);
        process_close(&process);
}

Test(runtimes_process, what_the_kernel_does_not_say_is_absent) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE};
        struct process process = {0};

        fixture_make(&fixture);
        fixture_process(&fixture, &made);
        fixture_write(&fixture, "proc/10/status", "Name:\tprogram\nXRssAnon:\t5 kB\nRssAnon:\tmuch\n");
        cr_assert_eq(process_read(fixture.root, fixture.arena, NULL, 10, &process), 0);
        cr_assert_eq(process.rss_anon_bytes, ABSENT);
        cr_assert_eq(process.affinity, 0);
        cr_assert_eq(process.argc, 0);
        cr_assert_null(process.argv[0]);
        process_close(&process);
        cr_assert_eq(process_read(fixture.root, fixture.arena, NULL, 11, &process), -ENOENT);
}

/* --- arguments --- */

Test(runtimes_process, finds_options_in_all_their_forms) {
        static const struct {
                const char *argv[MADE_WORDS_MAX], *option, *value;
        } rows[] = {
                        {{"p", "--workers", "4"}, "--workers", "4"},
                        {{"p", "--workers=4"}, "--workers", "4"},
                        {{"p", "--workers="}, "--workers", ""},
                        {{"p", "--workers"}, "--workers", NULL},
                        {{"p", "--workers-x=4"}, "--workers", NULL},
                        {{"p", "-w", "4"}, "-w", "4"},
                        {{"p", "-w4"}, "-w", "4"},
                        {{"p", "-w4", "-w", "5"}, "-w", "5"},
                        {{"p", "-w", "5", "-w"}, "-w", "5"},
                        {{"-w4", "x"}, "-w", NULL},
                        {{NULL}, "-w", NULL},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = {.pid = 10, .exe = EXE};

                memcpy(made.argv, rows[i].argv, sizeof(made.argv));
                struct process process = read_made(&fixture, &made);
                const char *value = process_option(&process, rows[i].option);

                cr_expect((value == NULL) == (rows[i].value == NULL) &&
                                          (!value || strcmp(value, rows[i].value) == 0),
                          "row %zu: %s", i, value ? value : "none");
                process_close(&process);
        }
}

Test(runtimes_process, finds_a_word_or_the_end_of_a_path) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {
                        .pid = 10, .exe = EXE, .argv = {"gunicorn", "-u", "/usr/bin/gunicorn", "gunicorn"}};
        struct process process = read_made(&fixture, &made);

        cr_assert_eq(process_argument(&process, "gunicorn"), 2);
        cr_assert_eq(process_argument(&process, "unicorn"), 0);
        process_close(&process);
}

Test(runtimes_process, of_a_gigabyte_of_arguments_only_a_part_is_read) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE};
        size_t size = 4u << 20;
        cleanup_free char *text = malloc(size);
        struct process process;

        cr_assert(text);
        fixture_make(&fixture);
        fixture_process(&fixture, &made);
        memset(text, 'x', size);
        fixture_write_n(&fixture, "proc/10/cmdline", text, size);
        cr_assert_eq(process_read(fixture.root, fixture.arena, NULL, 10, &process), 0);
        cr_assert_eq(process.argc, 1);
        cr_assert_eq(strlen(process.argv[0]), PROCESS_ARGUMENTS_MAX);
        process_close(&process);
        /* As many empty words as there are bytes. */
        memset(text, 0, size);
        fixture_write_n(&fixture, "proc/10/cmdline", text, size);
        cr_assert_eq(process_read(fixture.root, fixture.arena, NULL, 10, &process), 0);
        cr_assert_leq(process.argc, PROCESS_ARGUMENTS_MAX);
        cr_assert_null(process.argv[process.argc]);
        process_close(&process);
}

/* --- environment --- */

Test(runtimes_process, tells_an_unset_variable_from_an_overwritten_block) {
        static const struct {
                const char *environment[MADE_WORDS_MAX], *value;
                int result;
        } rows[] = {
                        {{"NAMES=1", "NAME=2=3", "NAME=4"}, "2=3", 1},
                        {{"NAME="}, "", 1},
                        {{"OTHER=1"}, NULL, 0},
                        {{NULL}, NULL, 0},
                        {{"worker process", "", ""}, NULL, -ENODATA},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                struct made_process made = {.pid = 10, .exe = EXE};
                const char *value = NULL;

                memcpy(made.environment, rows[i].environment, sizeof(made.environment));
                struct process process = read_made(&fixture, &made);

                /* The second time from what was kept. */
                for (int k = 0; k < 2; k++)
                        cr_expect_eq(process_variable(&process, "NAME", &value), rows[i].result, "row %zu",
                                     i);
                cr_expect((value == NULL) == (rows[i].value == NULL) &&
                                          (!value || strcmp(value, rows[i].value) == 0),
                          "row %zu", i);
                process_close(&process);
        }
}

/* --- mappings --- */

Test(runtimes_process, reads_the_mappings_that_are_well_formed) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {
                        .pid = 10,
                        .exe = EXE,
                        .maps = "00400000-00500000 r-xp 00001000 fd:01 42                         /opt/a b\n"
                                "00500000-00600000 rw-p 00000000 00:00 0 \n"
                                "00700000-00800000 r--p 00000000 fd:01 43      /lib/libx.so.1 (deleted)\n"
                                "00900000-00800000 r--p 00000000 fd:01 43      /lib/liby.so.1\n"
                                "nonsense\n"
                                "00a00000-00b00000 r--p 00000000 fd:01\n"
                                "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0     [vsyscall]",
        };
        struct process process = read_made(&fixture, &made);
        const struct process_mapping *mappings, *found;
        size_t count;

        cr_assert_eq(process_mappings(&process, &mappings, &count), 0);
        cr_assert_eq(count, 4);
        cr_assert_eq(mappings[0].start, 0x400000);
        cr_assert_eq(mappings[0].end, 0x500000);
        cr_assert_eq(mappings[0].offset, 0x1000);
        cr_assert_eq(mappings[0].inode, 42);
        cr_assert(mappings[0].readable && mappings[0].executable && !mappings[0].writable);
        cr_assert_str_eq(mappings[0].path, "/opt/a b");
        cr_assert(mappings[1].writable && !mappings[1].executable);
        cr_assert_str_eq(mappings[1].path, "");
        cr_assert_str_eq(mappings[2].path, "/lib/libx.so.1");
        cr_assert_str_eq(mappings[3].path, "[vsyscall]");
        cr_assert_eq(process_library(&process, "libx.so", &found), 1);
        cr_assert_eq(found, &mappings[2]);
        cr_assert_eq(process_library(&process, "liby", &found), 0);
        process_close(&process);
}

/* --- files --- */

Test(runtimes_process, reads_files_as_the_process_sees_them) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE};
        struct process process = read_made(&fixture, &made);
        const char *text;
        size_t length;

        fixture_file(&fixture, 10, "/etc/a.conf", "absolute");
        fixture_write(&fixture, "proc/10/cwd/a.conf", "relative");
        cr_assert_eq(process_read_file(&process, "/etc/a.conf", &text, &length), 0);
        cr_assert_str_eq(text, "absolute");
        cr_assert_eq(length, 8);
        cr_assert_eq(process_read_file(&process, "a.conf", &text, NULL), 0);
        cr_assert_str_eq(text, "relative");
        cr_assert_eq(process_read_file(&process, "/etc/none", &text, NULL), -ENOENT);
        cr_assert_eq(process_read_file(&process, "/etc", &text, NULL), -EISDIR);
        process_close(&process);
}

Test(runtimes_process, a_file_without_end_is_refused) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE};
        struct process process = read_made(&fixture, &made);
        const char *text;

        fixture_write(&fixture, "proc/10/root/big", "x");
        cr_assert_eq(truncate(fixture_path(&fixture, "proc/10/root/big"), PROCESS_FILE_MAX + 1), 0);
        cr_assert_eq(process_read_file(&process, "/big", &text, NULL), -EFBIG);
        /* Opening it would wait for a writer. */
        cr_assert_eq(mkfifo(fixture_path(&fixture, "proc/10/root/pipe"), 0600), 0);
        cr_assert_lt(process_read_file(&process, "/pipe", &text, NULL), 0);
        process_close(&process);
}

/* --- memory --- */

Test(runtimes_process, reads_memory_only_where_there_is_some) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process made = {.pid = 10, .exe = EXE};
        struct process process = read_made(&fixture, &made);
        const char *text;
        char bytes[128] = "abcd\0efgh";

        memset(bytes + 60, 'x', sizeof(bytes) - 60);
        fixture_write_n(&fixture, "proc/10/mem", bytes, sizeof(bytes));
        cr_assert_eq(process_read_memory(&process, 5, bytes, 4), 0);
        cr_assert_eq(memcmp(bytes, "efgh", 4), 0);
        cr_assert_eq(process_read_memory(&process, 125, bytes, 4), -EFAULT);
        cr_assert_eq(process_read_memory(&process, UINT64_MAX - 1, bytes, 4), -EFAULT);
        cr_assert_eq(process_read_string(&process, 0, 64, &text), 0);
        cr_assert_str_eq(text, "abcd");
        cr_assert_eq(process_read_string(&process, 5, 2, &text), 0);
        cr_assert_str_eq(text, "ef");
        /* It ends with the memory, not with a NUL. */
        cr_assert_eq(process_read_string(&process, 60, 256, &text), -EFAULT);
        cr_assert_eq(process_read_string(&process, 60, 68, &text), 0);
        cr_assert_eq(strlen(text), 68);
        process_close(&process);
}

/* --- the set --- */

Test(runtimes_process, numbers_of_foreign_text_are_bounded) {
        static const struct {
                const char *text;
                int result;
                uint64_t number;
        } rows[] = {{"0", 0, 0},        {"65536", 0, 65536},  {"65537", -ERANGE, 7},
                    {"", -EINVAL, 7},   {"-1", -EINVAL, 7},   {"4x", -EINVAL, 7},
                    {" 4", -EINVAL, 7}, {"0x10", -EINVAL, 7}, {"99999999999999999999", -ERANGE, 7}};

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint64_t number = 7;

                cr_expect_eq(parallelism_parse(rows[i].text, &number), rows[i].result, "%s", rows[i].text);
                cr_expect_eq(number, rows[i].number, "%s", rows[i].text);
        }
}

static bool is_any(const struct process *process, void *data) {
        (void) data;
        return process->host_pid > 0;
}

Test(runtimes_process, finds_parents_and_adds_memory_up) {
        struct process processes[] = {
                        {.host_pid = 3, .parent = 1, .rss_anon_bytes = 10},
                        {.host_pid = 7, .parent = 3, .rss_anon_bytes = 20},
                        {.host_pid = 9, .parent = 8, .rss_anon_bytes = 30},
        };
        struct process_set set = {.processes = processes, .count = ELEMENTS(processes)};

        cr_assert_eq(process_set_parent(&set, &processes[1]), &processes[0]);
        cr_assert_null(process_set_parent(&set, &processes[0]));
        cr_assert_null(process_set_parent(&set, &processes[2]));
        cr_assert_eq(process_set_memory(&set, is_any, NULL), 60);
        processes[1].rss_anon_bytes = ABSENT;
        cr_assert_eq(process_set_memory(&set, is_any, NULL), ABSENT);
}

Test(runtimes_process, more_rows_than_fit_are_counted) {
        struct arena *arena = arena_new(1u << 20);
        struct process_set set = {.arena = arena};
        const struct parallelism row = {.runtime = "made"};

        cr_assert(arena);
        for (size_t i = 0; i < PARALLELISM_MAX + 3; i++)
                cr_assert_eq(process_set_add(&set, &row), 0);
        cr_assert_eq(set.found_count, PARALLELISM_MAX);
        cr_assert_eq(set.omitted, 3);
        arena_free(arena);
}
