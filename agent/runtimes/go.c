/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of Go: GOMAXPROCS as it is in memory, and who has chosen it. The number is found by its symbol, or in stripped programs by
 * the code that loads it; there the list of Ps, which is as long, has to agree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "go_buildinfo.h"
#include "go_pclntab.h"
#include "runtime.h"

#define RUNTIME "go"
#define SETTING "GOMAXPROCS"
#define AWARE_SINCE 25 /* Go 1.25, and only where go.mod says so */
#define TEXT_START 24u /* in the table's header; from Go 1.26 on it is 0 there */
#define MODULE_WORDS 23u
#define MODULE_TEXT 22u /* word of runtime.moduledata, whose first word is the table's address */
#define SEARCH_MAX (64u << 20)
#define PIECE_BYTES (64u << 10)
#define PS_MAX 1024u

/* Of process_memo.values. The address is that in the file: what is executed anew lies elsewhere. */
enum { MEMO_ADDRESS, MEMO_EXE };

struct found {
        struct process *process;
        struct elf_image *image;
        struct go_build build;
        uint64_t bias;
};

/* Programs that are worth a word of their own. */
static const struct known {
        const char *path; /* what the main package's path begins with */
        const char *exe;  /* for those whose file is not readable; NULL: too common a name */
        const char *program;
        const char *how; /* how else its number is set, behind the variable; NULL: no other way */
} known_programs[] = {
                {"github.com/prometheus/prometheus/cmd/prometheus", "prometheus", "prometheus", NULL},
                {"github.com/coredns/coredns", "coredns", "coredns",
                 ", or CoreDNS 1.12 or later, which follows the limit"},
                {"github.com/traefik/traefik/", "traefik", "traefik",
                 ", which its Helm chart sets where resources.limits.cpu is set"},
                {"github.com/DataDog/datadog-agent/", NULL, "datadog-agent",
                 " of this container: every container of the agent's Pod has its own"},
                {"go.opentelemetry.io/collector/", "otelcol", "opentelemetry-collector", NULL},
                {"github.com/open-telemetry/opentelemetry-collector-", "otelcol-contrib",
                 "opentelemetry-collector", NULL},
                {"k8s.io/ingress-nginx/", "nginx-ingress-controller", "ingress-nginx",
                 " of the controller; its nginx has worker-processes in the ConfigMap"},
                {"github.com/elastic/", NULL, "elastic",
                 ", or agent.limits.go_max_procs: {n} where the Elastic Agent starts it"},
};

static const struct known *known_by_path(const char *path) {
        for (size_t i = 0; path && i < ELEMENTS(known_programs); i++)
                if (strncmp(path, known_programs[i].path, strlen(known_programs[i].path)) == 0)
                        return &known_programs[i];
        return NULL;
}

static const struct known *known_by_exe(const char *exe) {
        for (size_t i = 0; i < ELEMENTS(known_programs); i++)
                if (known_programs[i].exe && strcmp(exe, known_programs[i].exe) == 0)
                        return &known_programs[i];
        return NULL;
}

/* --- the number in memory --- */

static bool lies_in(const struct elf_image *image, uint64_t address, bool executable) {
        size_t count;
        const struct elf_segment *segments = elf_image_segments(image, &count);

        for (size_t i = 0; i < count; i++)
                if (address >= segments[i].address &&
                    address - segments[i].address < segments[i].memory_size)
                        return executable ? segments[i].executable : segments[i].writable;
        return false;
}

static bool is_data(uint64_t address, const void *image) {
        return lies_in(image, address, false);
}

static uint64_t word_at(const uint8_t *data, size_t index) {
        uint64_t word;

        memcpy(&word, data + index * sizeof(word),
               sizeof(word)); /* little-endian as the files that are read */
        return word;
}

typedef bool (*judge_words)(const struct found *found, const uint8_t *data, void *closure);

/* Offers each word of @size bytes at @address, with the @words - 1 behind it. 1: @is_it said so; 0; negative errno. */
static int search_range(const struct found *found, uint64_t address, uint64_t size, size_t words,
                        judge_words is_it, void *closure) {
        cleanup_free uint8_t *piece = malloc(PIECE_BYTES);

        if (!piece)
                return -ENOMEM;
        while (size >= words * 8) {
                size_t length = size < PIECE_BYTES ? (size_t) size & ~(size_t) 7 : PIECE_BYTES;
                int r = process_read_memory(found->process, address, piece, length);

                if (r < 0)
                        return r;
                for (size_t k = 0; k + words <= length / 8; k++)
                        if (is_it(found, piece + k * 8, closure))
                                return 1;
                /* The last ones have not had all that is behind them. */
                length -= (words - 1) * 8;
                address += length;
                size -= length;
        }
        return 0;
}

/* Of the writable data in memory at most SEARCH_MAX bytes of each segment. */
static int search_memory(const struct found *found, size_t words, bool in_file, judge_words is_it,
                         void *closure) {
        size_t count;
        const struct elf_segment *segments = elf_image_segments(found->image, &count);
        int r = 0;

        for (size_t i = 0; i < count && r == 0; i++) {
                uint64_t size = in_file ? segments[i].file_size : segments[i].memory_size,
                         skipped = -segments[i].address % 8;

                if (!segments[i].writable || size <= skipped)
                        continue;
                size = size < SEARCH_MAX ? size : SEARCH_MAX;
                r = search_range(found, segments[i].address + skipped + found->bias, size - skipped, words,
                                 is_it, closure);
        }
        return r;
}

struct module {
        uint64_t table; /* in memory */
        uint64_t text;
};

static bool is_module(const struct found *found, const uint8_t *data, void *closure) {
        struct module *module = closure;

        if (word_at(data, 0) != module->table ||
            !lies_in(found->image, word_at(data, MODULE_TEXT) - found->bias, true))
                return false;
        module->text = word_at(data, MODULE_TEXT);
        return true;
}

/* Where the program's text begins in memory. */
static int find_text(const struct found *found, uint64_t table, uint64_t *ret_text) {
        struct module module = {.table = table + found->bias};
        int r = process_read_memory(found->process, module.table + TEXT_START, &module.text,
                                    sizeof(module.text));

        if (r < 0)
                return r;
        if (module.text == 0 || !lies_in(found->image, module.text - found->bias, true)) {
                r = search_memory(found, MODULE_WORDS, true, is_module, &module);
                if (r <= 0)
                        return r < 0 ? r : -ENOENT;
        }
        *ret_text = module.text;
        return 0;
}

struct table_place {
        const struct elf_image *image;
        uint64_t address;
};

static int read_table(const void *from, uint64_t offset, void *buffer, size_t length) {
        const struct table_place *place = from;

        return elf_image_read_at(place->image, place->address + offset, buffer, length);
}

/* The address, in the file, of the global that start-up's code loads first: gomaxprocs. */
static int find_by_code(const struct found *found, uint64_t *ret_address) {
        bool is_arm64 = elf_image_is_arm64(found->image);
        struct table_place place = {.image = found->image};
        struct go_pclntab table;
        uint8_t code[GO_CODE_MAX];
        uint64_t size, text;
        uint32_t offset;
        int r = go_pclntab_find(found->image, &place.address, &size);

        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        r = go_pclntab_parse((struct go_bytes){.read = read_table, .from = &place, .size = size}, is_arm64,
                             &table);
        if (r >= 0)
                r = go_pclntab_function(&table, "runtime.procresize", &offset);
        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        r = find_text(found, place.address, &text);
        if (r < 0)
                return r;
        text += offset - found->bias;
        r = elf_image_read_at(found->image, text, code, sizeof(code));
        if (r < 0)
                return r;
        r = go_code_global(code, sizeof(code), text, is_arm64, is_data, found->image, ret_address);
        return r > 0 ? 0 : -ENOENT;
}

/* A slice of as many Ps, each of which has its own index and a state: runtime.allp. */
static bool is_list_of_ps(const struct found *found, const uint8_t *data, void *closure) {
        uint64_t pointer = word_at(data, 0), length = word_at(data, 1), room = word_at(data, 2);
        uint64_t ps[PS_MAX];

        if (length != *(const uint32_t *) closure || room < length || room > 65536 || pointer == 0 ||
            pointer % 8 != 0)
                return false;
        if (length > PS_MAX)
                length = PS_MAX;
        if (process_read_memory(found->process, pointer, ps, length * sizeof(ps[0])) < 0)
                return false;
        for (uint32_t i = 0; i < length; i++) {
                uint32_t head[2]; /* index, state */

                if (ps[i] == 0 || ps[i] % 8 != 0 ||
                    process_read_memory(found->process, ps[i], head, sizeof(head)) < 0 || head[0] != i ||
                    head[1] > 4)
                        return false;
        }
        return true;
}

/* 0 and *ret_number; -EAGAIN: the program is not that far yet. */
static int read_number(const struct found *found, uint64_t address, uint32_t *ret_number) {
        uint32_t number;
        int r = process_read_memory(found->process, address + found->bias, &number, sizeof(number));

        if (r < 0)
                return r;
        if (number == 0)
                return -EAGAIN;
        if (number > 65536)
                return -ENOENT;
        *ret_number = number;
        return 0;
}

static int find_number(const struct found *found, uint64_t *ret_address, uint32_t *ret_number) {
        int r = elf_image_symbol(found->image, "runtime.gomaxprocs", ret_address, NULL);

        if (r > 0)
                return read_number(found, *ret_address, ret_number);
        r = find_by_code(found, ret_address);
        if (r >= 0)
                r = read_number(found, *ret_address, ret_number);
        if (r < 0)
                return r;
        r = search_memory(found, 3, false, is_list_of_ps, ret_number);
        return r == 0 ? -ENOENT : r;
}

static int get_number(struct found *found, struct process_memo *memo, uint32_t *ret_number) {
        uint64_t address;
        int r;

        if (memo->valid && memo->error < 0)
                return memo->error;
        r = process_bias(found->process, found->image, NULL, &found->bias);
        if (r < 0)
                return r;
        if (memo->valid)
                return read_number(found, memo->values[MEMO_ADDRESS], ret_number);
        r = find_number(found, &address, ret_number);
        /* What this program will not say the next time either. */
        if (r >= 0 || r == -ENOENT || r == -ENOEXEC) {
                memo->valid = true;
                memo->error = r < 0 ? -ENOENT : 0;
                memo->values[MEMO_ADDRESS] = r < 0 ? 0 : address;
        }
        return r == -ENOEXEC ? -ENOENT : r < 0 ? r : 0;
}

/* --- who has chosen it --- */

/* Does Prometheus have the quota read? 1, 0; -1: its version decides, which it does not tell. */
static int prometheus_reads_quota(const struct process *process) {
        int reads = -1;

        for (size_t i = 1; i < process->argc; i++) {
                const char *argument = process->argv[i];

                if (strcmp(argument, "--no-auto-gomaxprocs") == 0)
                        return 0;
                if (strcmp(argument, "--auto-gomaxprocs") == 0 || strstr(argument, "auto-gomaxprocs"))
                        reads = 1;
        }
        return reads;
}

/* The variable as Go reads it, or as @known does: 1 and *ret_number; 0: not set, or no such number; negative errno. */
static int read_variable(struct process *process, const struct known *known, uint64_t *ret_number,
                         const char **ret_text) {
        char whole[16];
        int r = process_variable(process, SETTING, ret_text);
        size_t digits;

        if (r <= 0)
                return r;
        if (parallelism_parse(*ret_text, ret_number) == 0)
                return *ret_number > 0;
        /* Datadog's agents take a quantity of Kubernetes: whole CPUs, at least 1. */
        digits = strspn(*ret_text, "0123456789");
        if (!known || strcmp(known->program, "datadog-agent") != 0 || digits == 0 ||
            digits >= sizeof(whole) || strcmp(*ret_text + digits, "m") != 0)
                return 0;
        memcpy(whole, *ret_text, digits);
        whole[digits] = '\0';
        if (parallelism_parse(whole, ret_number) < 0)
                return 0;
        *ret_number = *ret_number < 2000 ? 1 : *ret_number / 1000;
        return 1;
}

struct origin {
        bool counts_quota; /* Go's own default does */
        bool updates;
        bool is_old_module; /* Go could, go.mod says it must not */
        bool is_switched;   /* by GODEBUG */
};

static struct origin origin_of(const struct go_build *build, const char *debug) {
        uint64_t minor = go_build_minor(build->version);
        struct origin origin = {0};
        int counts, updates;

        if (!is_known(minor) || minor < AWARE_SINCE)
                return origin;
        counts = go_debug_setting(debug, "containermaxprocs");
        updates = go_debug_setting(debug, "updatemaxprocs");
        origin.is_switched = counts >= 0;
        if (counts < 0)
                counts = go_debug_setting(build->godebug, "containermaxprocs");
        if (updates < 0)
                updates = go_debug_setting(build->godebug, "updatemaxprocs");
        origin.is_old_module = !origin.is_switched && counts == 0;
        origin.counts_quota = counts != 0;
        origin.updates = updates != 0;
        return origin;
}

/* Without a variable of its own: what Go does, unless the number shows that somebody else was here. */
static void explain_default(const struct found *found, const struct known *known, struct origin origin,
                            struct arena *arena, struct parallelism *row) {
        bool is_prometheus = known && strcmp(known->program, "prometheus") == 0;
        unsigned cpus = found->process->affinity;
        int library = found->build.automaxprocs ? 1 : 0;
        /* Go's own rule never leaves these numbers. */
        bool is_own = !is_known(row->effective) || cpus == 0 || row->effective == cpus ||
                      (origin.counts_quota && row->effective < cpus && row->effective >= 2);

        if (library > 0 && is_prometheus)
                library = prometheus_reads_quota(found->process);
        if (library < 0)
                library = is_known(row->effective) && cpus > 0 && row->effective != cpus ? 1 : -1;
        if (library > 0) {
                row->source = FROM_LIBRARY;
                row->aware = AWARENESS_QUOTA;
                row->source_detail = arena_format(arena, "go.uber.org/automaxprocs %s",
                                                  found->build.automaxprocs);
                return;
        }
        row->aware = library < 0 || !found->build.version ? AWARENESS_UNKNOWN
                     : origin.counts_quota                ? AWARENESS_QUOTA
                                                          : AWARENESS_NONE;
        if (!is_own) {
                row->source = FROM_CODE;
                row->source_detail = "the program calls runtime.GOMAXPROCS";
                return;
        }
        row->source = FROM_DEFAULT;
        row->follows = origin.counts_quota && origin.updates;
        if (origin.is_old_module)
                row->source_detail = arena_format(
                                arena,
                                "built by %s, but go.mod below go 1.25 or a //go:debug line turns it off",
                                found->build.version);
        else if (origin.is_switched && !origin.counts_quota)
                row->source_detail = "environment GODEBUG has containermaxprocs=0";
        else if (found->build.version)
                row->source_detail = arena_format(arena, "built by %s", found->build.version);
}

/* The advice: the variable, then what would make it follow by itself. */
static const char *advice(const struct found *found, const struct known *known, struct origin origin,
                          struct arena *arena, const struct parallelism *row) {
        uint64_t minor = go_build_minor(found->build.version);
        const char *other = "";

        if (known && strcmp(known->program, "prometheus") == 0 && row->source != FROM_ENVIRONMENT &&
            row->source != FROM_LIBRARY)
                other = process_argument(found->process, "--no-auto-gomaxprocs")
                                        ? ", or no --no-auto-gomaxprocs"
                                        : ", or --enable-feature=auto-gomaxprocs (version 2.35 or later)";
        else if (known && known->how &&
                 !(strcmp(known->program, "coredns") == 0 && found->build.automaxprocs))
                other = known->how;
        else if (row->source == FROM_CODE)
                other = ", if the program's own call of runtime.GOMAXPROCS lets that stand";
        else if (row->source == FROM_DEFAULT && origin.is_old_module)
                other = ", or go 1.25 or later in its go.mod, or "
                        "GODEBUG=containermaxprocs=1,updatemaxprocs=1";
        else if (row->source == FROM_DEFAULT && is_known(minor) && minor < AWARE_SINCE)
                other = ", or a build by Go 1.25 or later with go 1.25 in its go.mod";
        return arena_format(arena, SETTING "={n} in the environment%s", other);
}

static int explain(struct found *found, const struct known *known, struct arena *arena,
                   struct parallelism *row) {
        const char *text = NULL, *debug = NULL;
        struct origin origin;
        uint64_t wanted;
        int r = read_variable(found->process, known, &wanted, &text);

        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                origin = origin_of(&found->build, NULL);
                row->source = FROM_UNKNOWN;
                if (!row->unreadable)
                        row->unreadable = process_explain(found->process, "the environment", r);
        } else {
                if (process_variable(found->process, "GODEBUG", &debug) <= 0)
                        debug = NULL;
                origin = origin_of(&found->build, debug);
                if (r > 0 && (!is_known(row->effective) || row->effective == wanted)) {
                        row->source = FROM_ENVIRONMENT;
                        row->source_detail = "environment " SETTING;
                        row->aware = origin.counts_quota ? AWARENESS_QUOTA : AWARENESS_NONE;
                } else if (r > 0) {
                        row->source = FROM_CODE;
                        row->source_detail = "the program calls runtime.GOMAXPROCS";
                        row->configured = wanted;
                        row->aware = AWARENESS_NONE;
                } else {
                        explain_default(found, known, origin, arena, row);
                        if (text && row->source == FROM_DEFAULT)
                                row->source_detail =
                                                "environment " SETTING " is no whole number, Go ignores it";
                }
        }
        row->how = advice(found, known, origin, arena, row);
        return row->how ? 0 : -ENOMEM;
}

/* --- recognising --- */

/* FNV-1a: a program that executes another one keeps its pid and start. */
static uint64_t hash_of(const char *text) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        return hash;
}

/* 1 and *ret_found; 0: no program of Go; -ENOMEM. */
static int recognise(struct process *process, struct process_memo *memo, struct arena *arena,
                     struct found *ret_found) {
        struct found found = {.process = process};
        struct elf_section section;
        uint64_t exe = hash_of(process->exe);
        int r;

        if (memo->values[MEMO_EXE] != exe)
                *memo = (struct process_memo){.values[MEMO_EXE] = exe};
        if (memo->valid && memo->error == -ENOEXEC)
                return 0;
        r = process_image(process, &found.image);
        if (r >= 0)
                r = go_build_read(found.image, arena, &found.build);
        /* Some builds leave the build info out; their functions' table is Go's all the same. */
        if (r == -ENOEXEC && found.image &&
            (elf_image_section(found.image, ".gopclntab", &section) > 0 ||
             elf_image_section(found.image, ".data.rel.ro.gopclntab", &section) > 0))
                r = 0;
        if (r == -ENOEXEC) {
                memo->valid = true;
                memo->error = r;
        }
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        *ret_found = found;
        return 1;
}

static const char *version_of(struct arena *arena, const char *version) {
        return arena_string(arena, strncmp(version, "go", 2) == 0 ? version + 2 : version);
}

static int add_hidden(struct process_set *set, struct process *process) {
        const struct known *known = known_by_exe(process_program(process));
        struct parallelism row = parallelism_of(RUNTIME, process);

        if (!known)
                return 0;
        row.setting = SETTING;
        row.program = known->program;
        row.rounding = ROUND_UP_FROM_TWO;
        row.how = SETTING "={n} in the environment";
        row.unreadable = process_explain(process, "the executable", process->exe_error);
        return row.unreadable ? process_set_add(set, &row) : -ENOMEM;
}

static int add(struct process_set *set, struct process *process) {
        struct process_memo *memo = process_memo(process, RUNTIME);
        struct parallelism row = parallelism_of(RUNTIME, process);
        const struct known *known;
        struct found found;
        uint32_t number = 0;
        int r = recognise(process, memo, set->arena, &found);

        if (r <= 0)
                return r;
        known = known_by_path(found.build.path);
        row.setting = SETTING;
        row.program = known ? known->program : NULL;
        row.rounding = ROUND_UP_FROM_TWO;
        if (found.build.version) {
                row.version = version_of(set->arena, found.build.version);
                if (!row.version)
                        return -ENOMEM;
        }
        r = get_number(&found, memo, &number);
        if (r == -ENOMEM)
                return r;
        if (r >= 0)
                row.effective = number;
        else if (r == -ENOENT || r == -EAGAIN)
                row.unreadable = arena_format(set->arena,
                                              "gomaxprocs of process %u was not found in its memory",
                                              process->pid);
        else
                row.unreadable = process_explain(process, "the memory", r);
        if (r < 0 && !row.unreadable)
                return -ENOMEM;
        r = explain(&found, known, set->arena, &row);
        return r < 0 ? r : process_set_add(set, &row);
}

static int find(struct process_set *set) {
        for (size_t i = 0; i < set->count; i++) {
                struct process *process = &set->processes[i];
                int r = process->exe ? add(set, process) : add_hidden(set, process);

                if (r < 0)
                        return r;
        }
        return 0;
}

const struct runtime runtime_go = {.name = RUNTIME, .find = find};
