/* SPDX-License-Identifier: Apache-2.0 */
#include "scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process_private.h"

#define SCAN_ARENA_MAX ((size_t) 64 << 20)

/* In the order of the report. Ends with NULL. */
static const struct runtime *const runtimes[] = {
                &runtime_haproxy,
                &runtime_nginx,
                &runtime_apache,
                &runtime_php_fpm,
                &runtime_ruby,
                &runtime_envoy,
                &runtime_go,
                &runtime_redis,
                &runtime_memcached,
                &runtime_jvm,
                &runtime_postgres,
                &runtime_pgbouncer,
                &runtime_python,
                &runtime_beam,
                &runtime_mysql,
                &runtime_node,
                NULL,
};

struct scanned {
        uint64_t container, at_ns, processes_hash;
        bool seen;
        struct arena *arena;
        struct parallelism_list list;
};

struct scanner {
        struct root *root;
        struct process_memos *memos;
        struct scanned *entries; /* sorted by container */
        size_t count, room;
        unsigned calm_looks; /* since the last sweep */
};

int scanner_new(const char *directory, struct scanner **ret_scanner, struct why *why) {
        struct scanner *scanner = calloc(1, sizeof(*scanner));
        int r;

        if (!scanner)
                return -ENOMEM;
        r = root_open(directory, &scanner->root, why);
        if (r >= 0)
                r = process_memos_new(&scanner->memos);
        if (r < 0) {
                scanner_free(scanner);
                return r;
        }
        *ret_scanner = scanner;
        return 0;
}

void scanner_free(struct scanner *scanner) {
        if (!scanner)
                return;
        for (size_t i = 0; i < scanner->count; i++)
                arena_free(scanner->entries[i].arena);
        free(scanner->entries);
        process_memos_free(scanner->memos);
        root_free(scanner->root);
        free(scanner);
}

static int read_processes(struct process_set *set, struct process_memos *memos,
                          const struct scan_request *request) {
        size_t count = request->pids_count < SCAN_PROCESSES_MAX ? request->pids_count : SCAN_PROCESSES_MAX;

        set->processes = arena_array(set->arena, count, sizeof(*set->processes));
        if (!set->processes)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                int r = process_read(set->root, set->arena, memos, request->pids[i],
                                     &set->processes[set->count]);

                if (r == -ENOMEM)
                        return r;
                /* It has ended, or is not for us to see: the others count all the same. */
                if (r >= 0)
                        set->count++;
        }
        return 0;
}

int scan_processes(struct root *root, struct process_memos *memos, const struct scan_request *request,
                   struct arena *arena, struct parallelism_list *ret_list) {
        struct process_set set = {.root = root, .arena = arena, .cpus_online = request->cpus_online};
        int r;

        process_memos_begin(memos, request->now_ns);
        r = read_processes(&set, memos, request);

        for (size_t i = 0; r >= 0 && runtimes[i]; i++)
                r = runtimes[i]->find(&set);
        for (size_t i = 0; i < set.count; i++)
                process_close(&set.processes[i]);
        if (r < 0)
                return r;
        *ret_list = (struct parallelism_list){
                        .rows = set.found, .count = set.found_count, .omitted = set.omitted};
        return 0;
}

/* FNV-1a over the pids: a reused pid goes unnoticed until the next look by time. */
static uint64_t hash_of(const struct scan_request *request) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < request->pids_count; i++)
                hash = (hash ^ (uint64_t) request->pids[i]) * UINT64_C(0x100000001b3);
        return hash;
}

static int get_entry(struct scanner *scanner, uint64_t container, struct scanned **ret_entry) {
        size_t low = 0, high = scanner->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (scanner->entries[middle].container < container)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == scanner->count || scanner->entries[low].container != container) {
                if (scanner->count >= SCAN_CONTAINERS_MAX)
                        return -ENOSPC;
                if (scanner->count == scanner->room) {
                        size_t room = scanner->room > 0 ? 2 * scanner->room : 16;
                        struct scanned *grown = reallocarray(scanner->entries, room, sizeof(*grown));

                        if (!grown)
                                return -ENOMEM;
                        scanner->entries = grown;
                        scanner->room = room;
                }
                memmove(scanner->entries + low + 1, scanner->entries + low,
                        (scanner->count - low) * sizeof(*scanner->entries));
                scanner->entries[low] = (struct scanned){.container = container, .at_ns = ABSENT};
                scanner->count++;
        }
        *ret_entry = &scanner->entries[low];
        return 0;
}

/* Is it time? *@hash is that of its processes, where they were asked for. */
static bool is_due(const struct scanner *scanner, const struct scanned *entry,
                   const struct scan_request *request, uint64_t hash) {
        uint64_t again_ns = request->is_needed ? SCAN_AGAIN_NS : SCAN_AGAIN_CALM_NS;

        if (!request->is_needed && scanner->calm_looks >= SCAN_CALM_MAX)
                return false;
        return !is_known(entry->at_ns) || request->now_ns - entry->at_ns >= again_ns ||
               (request->is_needed && hash != entry->processes_hash);
}

/* Those of its group if that can be seen, else those that the caller knows. */
static int list_pids(struct scanner *scanner, struct scan_request *request, struct arena *arena) {
        pid_t *pids;
        size_t count;
        int r;

        if (!request->chain)
                return 0;
        r = cgroup_pids(scanner->root, request->chain, true, SCAN_PROCESSES_MAX, arena, &pids, &count);
        if (r == -ENOMEM)
                return r;
        if (r >= 0 && count > 0) {
                request->pids = pids;
                request->pids_count = count;
        }
        return 0;
}

static int look(struct scanner *scanner, struct scanned *entry, const struct scan_request *wanted) {
        struct arena cleanup_arena *arena = arena_new(SCAN_ARENA_MAX);
        struct scan_request request = *wanted;
        struct parallelism_list list = {0};
        int r = arena ? list_pids(scanner, &request, arena) : -ENOMEM;
        uint64_t hash;

        if (r < 0)
                return r;
        hash = hash_of(&request);
        if (!is_due(scanner, entry, &request, hash))
                return 0;
        r = scan_processes(scanner->root, scanner->memos, &request, arena, &list);
        if (r < 0)
                return r;
        scanner->calm_looks += !request.is_needed;
        arena_free(entry->arena);
        entry->arena = take_ptr(arena);
        entry->list = list;
        entry->at_ns = request.now_ns;
        entry->processes_hash = hash;
        return 0;
}

int scanner_look(struct scanner *scanner, const struct scan_request *request,
                 struct parallelism_list *ret_list) {
        struct scanned *entry;
        int r = get_entry(scanner, request->container, &entry);

        if (r < 0)
                return r == -ENOSPC ? 0 : r;
        entry->seen = true;
        /* Listing its processes costs as well: only when their change would matter, or it is time. */
        if (request->is_needed || is_due(scanner, entry, request, entry->processes_hash)) {
                r = look(scanner, entry, request);
                if (r < 0)
                        return r;
        }
        if (!is_known(entry->at_ns))
                return 0;
        *ret_list = entry->list;
        return 1;
}

void scanner_sweep(struct scanner *scanner, uint64_t now_ns) {
        size_t kept = 0;

        for (size_t i = 0; i < scanner->count; i++) {
                struct scanned *entry = &scanner->entries[i];

                if (!entry->seen) {
                        arena_free(entry->arena);
                        continue;
                }
                entry->seen = false;
                scanner->entries[kept++] = *entry;
        }
        scanner->count = kept;
        scanner->calm_looks = 0;
        /* Twice the time after which every container has been looked at again. */
        if (now_ns > 2 * SCAN_AGAIN_CALM_NS)
                process_memos_sweep(scanner->memos, now_ns - 2 * SCAN_AGAIN_CALM_NS);
}
