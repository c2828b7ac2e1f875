/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtimes keep about processes from scan to scan: an address found in an ELF file, a version. A list of them for each process; a
 * process that no scan asked for is forgotten by a sweep.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process_private.h"

#define MEMOS_MAX 65536u
#define BUCKETS 1024u /* power of two */

struct memo_entry {
        struct memo_entry *next;
        uint32_t pid;
        uint64_t start_ticks;
        const char *runtime; /* a literal */
        uint64_t used_ns;    /* when last */
        struct process_memo memo;
};

struct process_memos {
        struct memo_entry *buckets[BUCKETS];
        size_t count;
        uint64_t now_ns;
        struct process_memo
                        overflow; /* handed out when there is no room: nothing is kept, all is read again */
};

int process_memos_new(struct process_memos **ret_memos) {
        struct process_memos *memos = calloc(1, sizeof(*memos));

        if (!memos)
                return -ENOMEM;
        *ret_memos = memos;
        return 0;
}

static void drop(struct process_memos *memos, uint64_t since_ns) {
        for (size_t i = 0; i < BUCKETS; i++)
                for (struct memo_entry **at = &memos->buckets[i]; *at;) {
                        struct memo_entry *entry = *at;

                        if (entry->used_ns >= since_ns) {
                                at = &entry->next;
                                continue;
                        }
                        *at = entry->next;
                        free(entry);
                        memos->count--;
                }
}

void process_memos_free(struct process_memos *memos) {
        if (!memos)
                return;
        drop(memos, UINT64_MAX);
        free(memos);
}

void process_memos_begin(struct process_memos *memos, uint64_t now_ns) {
        memos->now_ns = now_ns;
}

void process_memos_sweep(struct process_memos *memos, uint64_t since_ns) {
        drop(memos, since_ns);
}

struct process_memo *process_memos_get(struct process_memos *memos, uint32_t pid, uint64_t start_ticks,
                                       const char *runtime) {
        struct memo_entry **bucket = &memos->buckets[pid & (BUCKETS - 1)], *entry;

        for (entry = *bucket; entry; entry = entry->next)
                if (entry->pid == pid && entry->start_ticks == start_ticks &&
                    strcmp(entry->runtime, runtime) == 0) {
                        entry->used_ns = memos->now_ns;
                        return &entry->memo;
                }
        entry = memos->count < MEMOS_MAX ? calloc(1, sizeof(*entry)) : NULL;
        if (!entry) {
                memos->overflow = (struct process_memo){0};
                return &memos->overflow;
        }
        *entry = (struct memo_entry){
                        .next = *bucket,
                        .pid = pid,
                        .start_ticks = start_ticks,
                        .runtime = runtime,
                        .used_ns = memos->now_ns,
        };
        *bucket = entry;
        memos->count++;
        return &entry->memo;
}
