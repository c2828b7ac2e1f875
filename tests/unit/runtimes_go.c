/* SPDX-License-Identifier: Apache-2.0 */
/* A made program of Go: two segments without sections, as a stripped one of the system's linker has its tables. */
#include "../../agent/runtimes/go_buildinfo.h"
#include "../../agent/runtimes/go_pclntab.h"
#include "runtimes_fixture.h"

#include <elf.h>

#define EXE "/app/server"
#define TEXT 0x400000u
#define DATA 0x500000u /* in the file: at 4096 */
#define BIAS 0x10000000u
#define BYTES 8192u
#define TABLE 512u /* in the data */
#define MODULE 1024u
#define CODE 0x200u /* in the text */
#define NUMBER 2048u
#define LIST 2056u
#define POINTERS 2304u
#define PS 2560u
#define MAPS                                                                                                \
        "10400000-10401000 r-xp 00000000 00:10 7 /app/server\n"                                             \
        "10500000-10501000 rw-p 00001000 00:10 7 /app/server\n"

struct made_go {
        const char *version, *modules;
        uint32_t number, listed;
        bool has_text_start, is_older_table;
};

static void put32(uint8_t *p, uint32_t value) {
        memcpy(p, &value, sizeof(value));
}
static void put64(uint8_t *p, uint64_t value) {
        memcpy(p, &value, sizeof(value));
}

static size_t put_text(uint8_t *p, const char *text, size_t margin) {
        size_t length = strlen(text), n = 0, all = length > 0 ? length + 2 * margin : 0, rest = all;

        for (; rest > 0x7f; rest >>= 7)
                p[n++] = (uint8_t) (rest | 0x80);
        p[n++] = (uint8_t) rest;
        memcpy(p + n + (length > 0 ? margin : 0), text, length);
        return n + all;
}

static size_t make_build(uint8_t *p, const char *version, const char *modules) {
        size_t n = 32;

        memcpy(p, "\xff Go buildinf:\x08\x02", 16);
        n += put_text(p + n, version, 0);
        return n + put_text(p + n, modules, 16);
}

/* Two functions; the second is runtime.procresize at CODE. */
static void make_table(uint8_t *p, uint64_t text, bool is_older) {
        static const char names[] = "runtime.procresizeX\0Xruntime.procresize\0runtime.procresize";
        size_t wanted = sizeof(names) - sizeof("runtime.procresize");

        put32(p, is_older ? 0xfffffffb : 0xfffffff1);
        p[6] = 1;
        p[7] = 8;
        put64(p + 8, 2);
        put64(p + 24, text);
        put64(p + 32, 72);
        put64(p + 40, 72 + sizeof(names));
        put64(p + 64, 200);
        memcpy(p + 72, names, sizeof(names));
        put32(p + 200, 0);
        put32(p + 204, 40);
        put32(p + 208, CODE);
        put32(p + 212, 48);
        put32(p + 244, 0);
        put32(p + 252, (uint32_t) wanted);
}

/* The file's bytes; those of the memory are the same, plus what the loader has moved. */
static void make_image(uint8_t bytes[static BYTES], const struct made_go *made, uint64_t bias) {
        Elf64_Ehdr *head = (Elf64_Ehdr *) bytes;
        Elf64_Phdr *segments = (Elf64_Phdr *) (bytes + sizeof(*head));
        uint8_t *data = bytes + 4096;

        memset(bytes, 0, BYTES);
        *head = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_type = ET_DYN,
                             .e_machine = EM_X86_64,
                             .e_version = EV_CURRENT,
                             .e_phoff = sizeof(*head),
                             .e_ehsize = sizeof(*head),
                             .e_phentsize = sizeof(*segments),
                             .e_phnum = 2};
        segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R | PF_X,
                                   .p_vaddr = TEXT,
                                   .p_filesz = 4096,
                                   .p_memsz = 4096};
        segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R | PF_W,
                                   .p_offset = 4096,
                                   .p_vaddr = DATA,
                                   .p_filesz = 4096,
                                   .p_memsz = 4096};
        /* cmp rsp, [r14+16]; mov ecx, [rip + gomaxprocs] */
        memcpy(bytes + CODE, "\x49\x3b\x66\x10\x8b\x0d", 6);
        put32(bytes + CODE + 6, DATA + NUMBER - (TEXT + CODE + 10));
        (void) make_build(data, made->version, made->modules);
        make_table(data + TABLE, made->has_text_start ? TEXT + bias : 0, made->is_older_table);
        put64(data + MODULE, DATA + TABLE + bias);
        put64(data + MODULE + 22 * 8, TEXT + bias);
        put32(data + NUMBER, made->number);
        put64(data + LIST, DATA + POINTERS + bias);
        put64(data + LIST + 8, made->listed);
        put64(data + LIST + 16, 8);
        for (uint32_t i = 0; i < 8; i++) {
                put64(data + POINTERS + i * 8, DATA + PS + i * 16 + bias);
                put32(data + PS + i * 16, i);
        }
}

/* Process 10, with the file and the memory of @made. */
static void fixture_go(struct fixture *fixture, const struct made_go *made, const char *const *environment) {
        struct made_process process = {.pid = 10, .parent = 1, .exe = EXE, .argv = {EXE}, .maps = MAPS};
        uint8_t bytes[BYTES];

        for (size_t i = 0; environment && environment[i]; i++)
                process.environment[i] = environment[i];
        fixture_process(fixture, &process);
        cr_assert_eq(remove(fixture_path(fixture, "proc/10/exe")), 0);
        fixture_write(fixture, "proc/10/exe.link", EXE);
        make_image(bytes, made, 0);
        fixture_write_n(fixture, "proc/10/exe", (const char *) bytes, BYTES);
        make_image(bytes, made, BIAS);
        cleanup_file FILE *memory = fopen(fixture_path(fixture, "proc/10/mem"), "we");
        cr_assert(memory);
        for (unsigned i = 0; i < 2; i++) {
                cr_assert_eq(fseek(memory, BIAS + (i ? DATA : TEXT), SEEK_SET), 0);
                cr_assert_eq(fwrite(bytes + i * 4096, 4096, 1, memory), 1);
        }
}

static const struct parallelism *row_of(struct fixture *fixture, const struct made_go *made,
                                        const char *const *environment) {
        static struct parallelism_list list;

        fixture_make(fixture);
        fixture_go(fixture, made, environment);
        list = fixture_scan(fixture);
        cr_assert_eq(list.count, 1);
        return fixture_row(&list, "go", "GOMAXPROCS");
}

#define OLD_MODULE "build\tDefaultGODEBUG=containermaxprocs=0,panicnil=1,updatemaxprocs=0\n"
#define LIBRARY "dep\tgo.uber.org/automaxprocs\tv1.6.0\th1:x\n"

Test(runtimes_go, reads_a_stripped_program) {
        static const struct made_go rows[] = {
                        {"go1.22.5", "path\texample.org/p\n", 5, 5, true, false},
                        {"go1.27.3", "path\texample.org/p\n", 5, 5, false,
                         false}, /* by runtime.moduledata */
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = row_of(&fixture, &rows[i], NULL);

                cr_assert_eq(row->effective, 5, "%zu: %s", i, row->unreadable);
                cr_assert_str_eq(row->version, rows[i].version + 2);
                cr_assert_eq(row->rounding, ROUND_UP_FROM_TWO);
                cr_assert_null(row->threads_name);
                cr_assert_null(row->unreadable);
        }
}

Test(runtimes_go, says_nothing_of_a_number_that_the_list_of_ps_denies) {
        static const struct made_go rows[] = {
                        {"go1.27.3", "", 5, 4, false, false},
                        {"go1.27.3", "", 0, 0, false, false}, /* it has not begun yet */
                        {"go1.27.3", "", 5, 5, false, true},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = row_of(&fixture, &rows[i], NULL);

                cr_assert_eq(row->effective, ABSENT, "%zu", i);
                cr_assert(row->unreadable);
        }
}

Test(runtimes_go, says_who_has_chosen_it) {
        static const struct {
                struct made_go made;
                const char *environment[3];
                enum parallelism_source source;
                enum awareness aware;
                bool follows;
                uint64_t configured;
                const char *program;
        } rows[] = {
                        {{"go1.24.1", "", 8, 8, false, false},
                         {0},
                         FROM_DEFAULT,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.24.1", "", 5, 5, false, false},
                         {0},
                         FROM_CODE,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.25.0", "", 5, 5, false, false},
                         {0},
                         FROM_DEFAULT,
                         AWARENESS_QUOTA,
                         true,
                         ABSENT,
                         NULL},
                        {{"go1.25.0", "", 1, 1, false, false},
                         {0},
                         FROM_CODE,
                         AWARENESS_QUOTA,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.27.3", OLD_MODULE, 8, 8, false, false},
                         {0},
                         FROM_DEFAULT,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.27.3", OLD_MODULE, 5, 5, false, false},
                         {"GODEBUG=containermaxprocs=1,updatemaxprocs=1"},
                         FROM_DEFAULT,
                         AWARENESS_QUOTA,
                         true,
                         ABSENT,
                         NULL},
                        {{"go1.27.3", "", 8, 8, false, false},
                         {"GODEBUG=containermaxprocs=0"},
                         FROM_DEFAULT,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.27.3", "", 5, 5, false, false},
                         {"GOMAXPROCS=5"},
                         FROM_ENVIRONMENT,
                         AWARENESS_QUOTA,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.24.1", "", 3, 3, false, false},
                         {"GOMAXPROCS=5"},
                         FROM_CODE,
                         AWARENESS_NONE,
                         false,
                         5,
                         NULL},
                        {{"go1.24.1", "", 8, 8, false, false},
                         {"GOMAXPROCS=2500m"},
                         FROM_DEFAULT,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         NULL},
                        {{"go1.24.1", "path\tgithub.com/DataDog/datadog-agent/cmd/agent\n", 2, 2, false,
                          false},
                         {"GOMAXPROCS=2500m"},
                         FROM_ENVIRONMENT,
                         AWARENESS_NONE,
                         false,
                         ABSENT,
                         "datadog-agent"},
                        {{"go1.24.1", "path\tgithub.com/coredns/coredns\n" LIBRARY, 2, 2, false, false},
                         {0},
                         FROM_LIBRARY,
                         AWARENESS_QUOTA,
                         false,
                         ABSENT,
                         "coredns"},
                        {{"go1.22.1", "path\tgithub.com/prometheus/prometheus/cmd/prometheus\n" LIBRARY, 8,
                          8, false, false},
                         {0},
                         FROM_DEFAULT,
                         AWARENESS_UNKNOWN,
                         false,
                         ABSENT,
                         "prometheus"},
                        {{"go1.22.1", "path\tgithub.com/prometheus/prometheus/cmd/prometheus\n" LIBRARY, 2,
                          2, false, false},
                         {0},
                         FROM_LIBRARY,
                         AWARENESS_QUOTA,
                         false,
                         ABSENT,
                         "prometheus"},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = row_of(&fixture, &rows[i].made, rows[i].environment);

                cr_assert_eq(row->effective, rows[i].made.number, "%zu", i);
                cr_assert_eq(row->source, rows[i].source, "%zu: %s", i,
                             parallelism_source_name(row->source));
                cr_assert_eq(row->aware, rows[i].aware, "%zu", i);
                cr_assert_eq(row->follows, rows[i].follows, "%zu", i);
                cr_assert_eq(row->configured, rows[i].configured, "%zu", i);
                cr_assert(row->program == rows[i].program || strcmp(row->program, rows[i].program) == 0,
                          "%zu", i);
                cr_assert(strstr(row->how, "GOMAXPROCS={n}"), "%zu", i);
        }
}

Test(runtimes_go, an_environment_that_hides_is_no_default) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_go made = {"go1.24.1", "", 8, 8, false, false};

        fixture_make(&fixture);
        fixture_go(&fixture, &made, NULL);
        cr_assert_eq(remove(fixture_path(&fixture, "proc/10/environ")), 0);
        fixture_write(&fixture, "proc/10/environ.errno", "%d", EACCES);
        struct parallelism_list list = fixture_scan(&fixture);
        const struct parallelism *row = fixture_row(&list, "go", "GOMAXPROCS");
        cr_assert_eq(row->effective, 8);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert(row->unreadable);
}

Test(runtimes_go, a_known_program_of_somebody_else_has_a_row_that_says_why) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process other = {.pid = 10, .argv = {"/bin/prometheus"}, .hides = true},
                                  shell = {.pid = 11, .argv = {"/bin/sh"}, .hides = true};

        fixture_make(&fixture);
        fixture_process(&fixture, &other);
        fixture_process(&fixture, &shell);
        struct parallelism_list list = fixture_scan(&fixture);
        const struct parallelism *row = fixture_row(&list, "go", "GOMAXPROCS");
        cr_assert_eq(list.count, 1);
        cr_assert_eq(row->effective, ABSENT);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_str_eq(row->program, "prometheus");
        cr_assert(strstr(row->unreadable, "CAP_SYS_PTRACE"));
}

Test(runtimes_go, build_info_that_is_cut_anywhere_is_no_build_info_or_less_of_it) {
        struct arena cleanup_arena *arena = arena_new(1u << 20);
        struct go_build build;
        uint8_t bytes[1024];
        size_t length = make_build(bytes, "go1.25.4", "path\tp\n" LIBRARY OLD_MODULE);

        cr_assert_eq(go_build_parse(bytes, length, arena, &build), 0);
        cr_assert_str_eq(build.automaxprocs, "v1.6.0");
        cr_assert_eq(go_debug_setting(build.godebug, "containermaxprocs"), 0);
        cr_assert_eq(go_debug_setting(build.godebug, "maxprocs"), -1);
        cr_assert_eq(go_build_minor("devel go1.28-0123 X:y"), 28);
        cr_assert_eq(go_build_minor("devel +abc"), ABSENT);
        for (size_t cut = 0; cut < length; cut++) {
                int r = go_build_parse(bytes, cut, arena, &build);

                cr_assert_eq(r, cut < 41 ? -ENOEXEC : 0, "%zu", cut);
                cr_assert(r < 0 || !build.path, "%zu", cut);
        }
}

static bool is_anything(uint64_t address, const void *data) {
        (void) data;
        return address > 0;
}

/* Of start-up in programs built by Go 1.26.8: procresize for arm64 at 0x60e00, for amd64 at 0x454ba0. */
Test(runtimes_go, finds_the_global_in_real_code) {
        static const uint32_t arm64[] = {0xf9400b90, 0xd10303f1, 0xeb10023f, 0x540062c9, 0xd10503f4,
                                         0xa93ffa9d, 0x9100029f, 0xd10023fd, 0xb0000a9b, 0xb9837f63};
        static const uint32_t with_add[] = {0xb0000a9b, 0x910df37b,
                                            0xb9800363}; /* add x27, x27, 892; ldrsw x3, [x27] */
        static const uint8_t amd64[] = {0x4c, 0x8d, 0xa4, 0x24, 0x58, 0xff, 0xff, 0xff, 0x4d,
                                        0x3b, 0x66, 0x10, 0x0f, 0x86, 0x39, 0x0d, 0x00, 0x00,
                                        0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0x20, 0x01,
                                        0x00, 0x00, 0x8b, 0x15, 0x3d, 0x12, 0x15, 0x00};
        uint64_t target;

        cr_assert_eq(go_code_global((const uint8_t *) arm64, sizeof(arm64), 0x60e00, true, is_anything, NULL,
                                    &target),
                     1);
        cr_assert_eq(target, 0x1b137c);
        cr_assert_eq(go_code_global((const uint8_t *) with_add, sizeof(with_add), 0x60e20, true, is_anything,
                                    NULL, &target),
                     1);
        cr_assert_eq(target, 0x1b137c);
        cr_assert_eq(go_code_global(amd64, sizeof(amd64), 0x454ba0, false, is_anything, NULL, &target), 1);
        cr_assert_eq(target, 0x5a5e00);
        cr_assert_eq(go_code_global(amd64, sizeof(amd64) - 1, 0x454ba0, false, is_anything, NULL, &target),
                     0);
}
