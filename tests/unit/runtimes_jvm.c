/* SPDX-License-Identifier: Apache-2.0 */
/* A JVM whose libjvm.so is this very test program, with the exported tables, and whose memory is a made file. */
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../agent/runtimes/elf_image.h"
#include "runtimes_fixture.h"

#define LIBRARY "/opt/jdk/lib/server/libjvm.so"
#define BASE UINT64_C(0x40000000)
#define DATA UINT64_C(0x10000000) /* where the made tables lie */

/* Only their addresses matter: what they hold is in the made memory. */
#define EXPORTED(name)                                                                                      \
        extern uint64_t name;                                                                               \
        uint64_t name = 1
EXPORTED(gHotSpotVMStructs);
EXPORTED(gHotSpotVMStructEntryArrayStride);
EXPORTED(gHotSpotVMStructEntryTypeNameOffset);
EXPORTED(gHotSpotVMStructEntryFieldNameOffset);
EXPORTED(gHotSpotVMStructEntryOffsetOffset);
EXPORTED(gHotSpotVMStructEntryAddressOffset);
EXPORTED(gHotSpotVMTypes);
EXPORTED(gHotSpotVMTypeEntryArrayStride);
EXPORTED(gHotSpotVMTypeEntryTypeNameOffset);
EXPORTED(gHotSpotVMTypeEntrySizeOffset);

struct made_flag {
        const char *name;
        int value;
        unsigned origin;
};

struct made_vm {
        int fd;
        uint64_t next; /* free place in the made memory */
        struct elf_image *image;
        uint64_t bias;
};

static void put(struct made_vm *vm, uint64_t address, const void *data, size_t length) {
        cr_assert_eq(pwrite(vm->fd, data, length, (off_t) address), (ssize_t) length);
}

static void put_number(struct made_vm *vm, uint64_t address, uint64_t value) {
        put(vm, address, &value, sizeof(value));
}

static uint64_t place(struct made_vm *vm, const void *data, size_t length) {
        uint64_t at = vm->next;

        put(vm, at, data, length);
        vm->next += (length + 15) / 16 * 16;
        return at;
}

static uint64_t place_text(struct made_vm *vm, const char *text) {
        return place(vm, text, strlen(text) + 1);
}

static void set_variable(struct made_vm *vm, const char *name, uint64_t value) {
        uint64_t address;

        cr_assert_eq(elf_image_symbol(vm->image, name, &address, NULL), 1, "%s", name);
        put_number(vm, address + vm->bias, value);
}

/* Offset, then address, behind the names of type and field. */
static void set_struct(struct made_vm *vm, uint64_t table, unsigned index, const char *type,
                       const char *name, uint64_t offset, uint64_t address) {
        uint64_t entry[4] = {place_text(vm, type), place_text(vm, name), offset, address};

        put(vm, table + index * sizeof(entry), entry, sizeof(entry));
}

/* Flags of 40 bytes: name at 8, address at 16, origin at 28. */
static void set_tables(struct made_vm *vm, const struct made_flag *flags, size_t count,
                       const char *release) {
        uint64_t structs = vm->next, types = structs + 512, array = types + 512, size[2], at;

        vm->next = array + 1024;
        for (size_t i = 0; i < count; i++) {
                at = place(vm, &flags[i].value, sizeof(flags[i].value));
                put_number(vm, array + 40 * i + 8, place_text(vm, flags[i].name));
                put_number(vm, array + 40 * i + 16, at);
                put(vm, array + 40 * i + 28, &flags[i].origin, sizeof(flags[i].origin));
        }
        put_number(vm, array + 40 * count + 32, 0);
        at = place_text(vm, release);
        set_struct(vm, structs, 0, "Abstract_VM_Version", "_s_vm_release", 0, place(vm, &at, sizeof(at)));
        set_struct(vm, structs, 1, "JVMFlag", "flags", 0, place(vm, &array, sizeof(array)));
        at = count + 1;
        set_struct(vm, structs, 2, "JVMFlag", "numFlags", 0, place(vm, &at, sizeof(at)));
        set_struct(vm, structs, 3, "JVMFlag", "_name", 8, 0);
        set_struct(vm, structs, 4, "JVMFlag", "_addr", 16, 0);
        set_struct(vm, structs, 5, "JVMFlag", "_flags", 28, 0);
        put_number(vm, structs + 6 * 32, 0);
        size[0] = place_text(vm, "JVMFlag");
        size[1] = 40;
        put(vm, types, size, sizeof(size));
        put_number(vm, types + sizeof(size), 0);
        set_variable(vm, "gHotSpotVMStructs", structs);
        set_variable(vm, "gHotSpotVMStructEntryArrayStride", 32);
        set_variable(vm, "gHotSpotVMStructEntryTypeNameOffset", 0);
        set_variable(vm, "gHotSpotVMStructEntryFieldNameOffset", 8);
        set_variable(vm, "gHotSpotVMStructEntryOffsetOffset", 16);
        set_variable(vm, "gHotSpotVMStructEntryAddressOffset", 24);
        set_variable(vm, "gHotSpotVMTypes", types);
        set_variable(vm, "gHotSpotVMTypeEntryArrayStride", 16);
        set_variable(vm, "gHotSpotVMTypeEntryTypeNameOffset", 0);
        set_variable(vm, "gHotSpotVMTypeEntrySizeOffset", 8);
}

static void copy_program(struct fixture *fixture, unsigned pid) {
        cleanup_file FILE *file = fopen("/proc/self/exe", "re");
        cleanup_free char *data = malloc((size_t) 64 << 20);
        char path[128];

        cr_assert(file && data);
        size_t length = fread(data, 1, (size_t) 64 << 20, file);
        (void) snprintf(path, sizeof(path), "proc/%u/root" LIBRARY, pid);
        fixture_write_n(fixture, path, data, length);
}

/* The process is made; now its library and memory. */
static void make_vm(struct fixture *fixture, const struct made_flag *flags, size_t count,
                    const char *release) {
        struct made_vm vm = {.next = DATA};
        const struct elf_segment *segments;
        size_t segments_count;

        copy_program(fixture, 10);
        cr_assert_eq(elf_image_open_take(open(fixture_path(fixture, "proc/10/root" LIBRARY),
                                              O_RDONLY | O_CLOEXEC),
                                         &vm.image),
                     0);
        segments = elf_image_segments(vm.image, &segments_count);
        vm.bias = BASE - segments[0].address;
        vm.fd = open(fixture_path(fixture, "proc/10/mem"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        cr_assert(vm.fd >= 0);
        set_tables(&vm, flags, count, release);
        elf_image_free(vm.image);
        close(vm.fd);
}

static const struct made_process java = {
                .pid = 10,
                .parent = 1,
                .exe = "/opt/jdk/bin/java",
                .argv = {"java", "-jar", "app.jar"},
                .environment = {"HOME=/"},
                .threads = {{"GC Thread#%u", 3}, {"VM Thread", 1}},
                .maps = "40000000-48000000 r--p 00000000 08:01 77 " LIBRARY "\n",
};

static struct parallelism_list scan_vm(struct fixture *fixture, const struct made_process *process,
                                       const struct made_flag *flags, size_t count, const char *release) {
        fixture_make(fixture);
        fixture_process(fixture, process);
        fixture_write(fixture, "proc/cgroups",
                      "#subsys_name\thierarchy\tnum_"
                      "cgroups\tenabled\ncpuset\t0\t1\t1\ncpu\t0\t1\t1\nmemory\t0\t1\t1\n");
        make_vm(fixture, flags, count, release);
        return fixture_scan(fixture);
}

Test(runtimes_jvm, infers_the_processors_from_its_gc_threads) {
        static const struct {
                unsigned threads, processors;
                const char *cpus; /* of its affinity */
        } rows[] = {{2, 2, "ff"},     {8, 8, "ff"},  {8, 9, "1ff"}, {8, 8, "ffff"},
                    {13, 16, "ffff"}, {33, 48, "3"}, {43, 64, "3"}, {63, 96, "3"}};

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct made_flag flags[] = {{"Xyz", 9, 0},
                                                  {"ActiveProcessorCount", -1, 0},
                                                  {"ParallelGCThreads", (int) rows[i].threads, 0x105},
                                                  {"UseContainerSupport", 0xffff01, 0},
                                                  {"UseG1GC", 1, 5}};
                struct made_process process = java;
                const struct parallelism *row;

                process.cpus = rows[i].cpus;
                struct parallelism_list list =
                                scan_vm(&fixture, &process, flags, ELEMENTS(flags), "17.0.21+9-Debian");
                cr_assert_eq(list.count, 2);
                row = fixture_row(&list, "jvm", "ActiveProcessorCount");
                cr_expect_eq(row->effective, rows[i].processors, "row %zu: %u", i,
                             (unsigned) row->effective);
                cr_expect_eq(row->source, FROM_DEFAULT);
                cr_expect_str_eq(row->version, "17.0.21");
                cr_expect_eq(row->aware, AWARENESS_QUOTA);
                cr_expect_eq(row->rounding, ROUND_UP);
                cr_expect_null(row->unreadable);
                row = fixture_row(&list, "jvm", "ParallelGCThreads");
                cr_expect_eq(row->effective, rows[i].threads);
                cr_expect_str_eq(row->threads_name, "GC Thread#");
                cr_expect_eq(row->source, FROM_DEFAULT);
                cr_expect_not(row->follows);
        }
}

Test(runtimes_jvm, says_who_has_set_a_flag) {
        static const struct {
                unsigned origin;
                const char *argument, *variable;
                enum parallelism_source source;
                const char *detail;
        } rows[] = {
                        {1, "-XX:ActiveProcessorCount=6", NULL, FROM_ARGUMENT, "-XX:ActiveProcessorCount=6"},
                        {1, "@options", "JAVA_TOOL_OPTIONS=-Xmx1g", FROM_ARGUMENT,
                         "-XX:ActiveProcessorCount=6"},
                        {1, NULL, "JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=6", FROM_ENVIRONMENT,
                         "JDK_JAVA_OPTIONS"},
                        {2, NULL, "JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=6", FROM_ENVIRONMENT,
                         "JAVA_TOOL_OPTIONS"},
                        {2, NULL, "_JAVA_OPTIONS=-XX:ActiveProcessorCount=6", FROM_ENVIRONMENT,
                         "_JAVA_OPTIONS"},
                        {2, NULL, NULL, FROM_ENVIRONMENT, NULL},
                        {3, NULL, NULL, FROM_CONFIG, NULL},
                        {4, NULL, NULL, FROM_CODE, NULL},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct made_flag flags[] = {{"ActiveProcessorCount", 6, rows[i].origin},
                                                  {"ParallelGCThreads", 0, 0}};
                struct made_process process = java;
                const struct parallelism *row;

                if (rows[i].argument)
                        process.argv[1] = rows[i].argument;
                process.environment[1] = rows[i].variable;
                struct parallelism_list list = scan_vm(&fixture, &process, flags, ELEMENTS(flags), "25+36");
                /* A collector without threads has no row. */
                cr_assert_eq(list.count, 1);
                row = fixture_row(&list, "jvm", "ActiveProcessorCount");
                cr_expect_eq(row->effective, 6);
                cr_expect_eq(row->source, rows[i].source, "row %zu: %s", i,
                             parallelism_source_name(row->source));
                cr_expect((row->source_detail == NULL) == (rows[i].detail == NULL), "row %zu", i);
                if (row->source_detail && rows[i].detail)
                        cr_expect_str_eq(row->source_detail, rows[i].detail, "row %zu", i);
                cr_expect_str_eq(row->version, "25");
        }
}

Test(runtimes_jvm, awareness_is_what_the_release_and_the_kernel_make_of_it) {
        static const struct {
                const char *release, *version;
                int support; /* -1: no such flag */
                bool lists;  /* the kernel has controllers of cgroup v1 */
                enum awareness aware;
        } rows[] = {
                        {"25.0.5+8-LTS", "25.0.5", 1, false, AWARENESS_QUOTA},
                        {"21.0.13+9", "21.0.13", 1, true, AWARENESS_QUOTA},
                        {"21.0.13+9", "21.0.13", 1, false, AWARENESS_UNKNOWN},
                        {"21.0.13+9", "21.0.13", 0, true, AWARENESS_NONE},
                        {"11.0.16+8", "11.0.16", 1, true, AWARENESS_QUOTA},
                        {"11.0.15+8", "11.0.15", 1, true, AWARENESS_UNKNOWN},
                        {"25.372-b08", "8u372", 1, true, AWARENESS_QUOTA},
                        {"25.362-b08", "8u362", 1, true, AWARENESS_UNKNOWN},
                        {"25.181-b13", "8u181", -1, true, AWARENESS_NONE},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct made_flag flags[] = {
                                {"ParallelGCThreads", 4, 5},
                                {"UseParallelGC", 1, 0},
                                {rows[i].support < 0 ? "Other" : "UseContainerSupport", rows[i].support, 0}};
                const struct parallelism *row;

                fixture_make(&fixture);
                fixture_process(&fixture, &java);
                if (rows[i].lists)
                        fixture_write(&fixture, "proc/cgroups",
                                      "cpuset\t0\t1\t1\ncpu\t0\t1\t1\nmemory\t0\t1\t1\n");
                else
                        fixture_write(&fixture, "proc/cgroups", "cpuacct\t0\t1\t1\ncpuset\t0\t1\t1\n");
                make_vm(&fixture, flags, ELEMENTS(flags), rows[i].release);
                struct parallelism_list list = fixture_scan(&fixture);
                row = fixture_row(&list, "jvm", "ActiveProcessorCount");
                cr_expect_eq(row->aware, rows[i].aware, "row %zu: %d", i, (int) row->aware);
                cr_expect_str_eq(row->version, rows[i].version);
                cr_expect_eq(row->effective, 4);
        }
}

Test(runtimes_jvm, another_collector_tells_no_processors) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_flag flags[] = {{"ActiveProcessorCount", -1, 0}, {"ParallelGCThreads", 5, 5}};
        struct parallelism_list list = scan_vm(&fixture, &java, flags, ELEMENTS(flags), "21.0.1+1");
        const struct parallelism *row = fixture_row(&list, "jvm", "ActiveProcessorCount");

        cr_assert_not(is_known(row->effective));
        cr_assert(row->unreadable);
        cr_assert_eq(fixture_row(&list, "jvm", "ParallelGCThreads")->effective, 5);
}

Test(runtimes_jvm, threads_that_were_set_tell_no_processors) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_flag flags[] = {{"ParallelGCThreads", 5, 1}, {"UseG1GC", 1, 5}};
        struct made_process process = java;

        process.argv[1] = "-XX:ParallelGCThreads=5";
        struct parallelism_list list = scan_vm(&fixture, &process, flags, ELEMENTS(flags), "21.0.1+1");
        const struct parallelism *row = fixture_row(&list, "jvm", "ParallelGCThreads");

        cr_assert_not(is_known(fixture_row(&list, "jvm", "ActiveProcessorCount")->effective));
        cr_assert_eq(row->source, FROM_ARGUMENT);
        cr_assert_str_eq(row->source_detail, "-XX:ParallelGCThreads=5");
}

Test(runtimes_jvm, is_counted_by_its_threads_where_memory_is_not_readable) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process process = java;
        const struct parallelism *row;

        process.hides = true;
        process.exe = NULL;
        fixture_make(&fixture);
        fixture_process(&fixture, &process);
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "jvm", "ParallelGCThreads");
        cr_assert_eq(row->effective, 3);
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert(strstr(row->unreadable, "CAP_SYS_PTRACE"));
}

Test(runtimes_jvm, tables_that_lie_are_no_numbers) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_flag flags[] = {{"ActiveProcessorCount", 4, 0}, {"ParallelGCThreads", 4, 0}};
        const uint64_t endless = UINT64_MAX;
        cleanup_fd int fd = -1;

        fixture_make(&fixture);
        fixture_process(&fixture, &java);
        make_vm(&fixture, flags, ELEMENTS(flags), "17.0.1");
        /* Where the first field's name should be. */
        fd = open(fixture_path(&fixture, "proc/10/mem"), O_RDWR | O_CLOEXEC);
        cr_assert(fd >= 0 && pwrite(fd, &endless, sizeof(endless), (off_t) DATA) == sizeof(endless));
        struct parallelism_list list = fixture_scan(&fixture);
        cr_assert_eq(list.count, 1);
        cr_assert(list.rows[0].unreadable);
        cr_assert_eq(list.rows[0].source, FROM_UNKNOWN);
}

Test(runtimes_jvm, openj9_is_none) {
        cleanup_fixture struct fixture fixture = {0};
        struct made_process process = java;

        process.maps = "40000000-48000000 r--p 00000000 08:01 77 " LIBRARY
                       "\n50000000-50001000 r-xp 00000000 08:01 78 /opt/lib/libj9vm29.so\n";
        fixture_make(&fixture);
        fixture_process(&fixture, &process);
        cr_assert_eq(fixture_scan(&fixture).count, 0);
}
