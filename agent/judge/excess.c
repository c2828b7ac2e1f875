/* SPDX-License-Identifier: Apache-2.0 */
#include "excess.h"

#include <errno.h>

#include "ratio.h"

/* From twice the limit's CPUs on, fewer threads are the better remedy; below that the limit is nearly met, and too low. */
#define FAR_FACTOR 2

static uint64_t cpus_of_limit(const struct facts *facts) {
        if (!facts->has_limit || !is_known(facts->limit_milli))
                return ABSENT;
        uint64_t milli = facts->limit_milli,
                 cpus = facts->affinity > 0 ? facts->affinity : facts->cpus_online;
        if (cpus > 0 && milli > cpus * 1000)
                milli = cpus * 1000;
        return milli > 1000 ? ratio_scale_up(milli, 1, 1000) : 1;
}

/* The setting whose threads used most of the quota, then most CPU, then the one that is most too high. */
static bool is_worse(const struct parallelism_facts *a, const struct parallelism_facts *b) {
        const uint64_t keys[][2] = {
                        {known_or_zero(a->quota_spent_ns), known_or_zero(b->quota_spent_ns)},
                        {known_or_zero(a->run_ns), known_or_zero(b->run_ns)},
                        {known_or_zero(a->surplus), known_or_zero(b->surplus)},
        };
        for (size_t i = 0; i < ELEMENTS(keys); i++)
                if (keys[i][0] != keys[i][1])
                        return keys[i][0] > keys[i][1];
        return false;
}

/* Of settings that mostly wait, how many there are says nothing: it is one to blame if more of them worked than there are CPUs. */
static bool is_candidate(const struct parallelism_facts *row, uint64_t allowed) {
        if (row->row->is_blocking)
                return known_or_zero(row->surplus) > 0 || row->threads_busy > allowed;
        return known_or_zero(row->surplus) > 0;
}

static const struct parallelism_facts *worst_row(const struct facts *facts, uint64_t allowed) {
        const struct parallelism_facts *worst = NULL;

        for (size_t i = 0; i < facts->parallelism_count; i++) {
                const struct parallelism_facts *row = &facts->parallelism[i];
                if (is_candidate(row, allowed) && (!worst || is_worse(row, worst)))
                        worst = row;
        }
        return worst;
}

/* More threads of it worked than it should have: idle ones are not what used the quota up. */
static bool is_row_at_work(const struct excess *excess) {
        uint64_t most = is_known(excess->row->recommended) ? excess->row->recommended : excess->allowed;
        /* Where none of its threads can be told, all that worked stand in. */
        uint64_t busy = excess->row->threads > 0 ? excess->row->threads_busy : excess->pool.busy;
        return busy > (most > excess->allowed ? most : excess->allowed);
}

/*
 * A thread that runs alone cannot use up a limit of a whole CPU or more, so stalls prove that several ran. Below one CPU it can; threads that
 * piled up behind its stalls (or behind its lock) then look parallel, and only the time without a stall tells.
 */
static bool is_parallel(const struct facts *facts, const struct excess *excess) {
        if (is_known(excess->at_once) && excess->at_once <= excess->allowed)
                return false;
        return facts->limit_milli >= 1000 || !is_known(facts->unstalled_milli) ||
               facts->unstalled_milli >= FACTS_SERIAL_MILLI;
}

int excess_of(const struct facts *facts, const struct lost_time *lost, struct arena *arena,
              struct excess *ret_excess) {
        struct excess excess = {.allowed = cpus_of_limit(facts),
                                .at_once = facts->runnable_p99,
                                .recommended = ABSENT};

        /* Nothing collided where nothing stalled: most containers, most of the time. */
        if (!is_known(excess.allowed) || lost_by_limits(lost) == 0) {
                *ret_excess = excess;
                return 0;
        }
        int r = facts_pool(facts, arena, &excess.pool);
        if (r < 0)
                return r;
        excess.row = worst_row(facts, excess.allowed);
        bool at_work = excess.row && is_row_at_work(&excess);
        if (!at_work && excess.pool.busy > excess.allowed) {
                excess.row = NULL;
                at_work = true;
        }
        excess.recommended = excess.row ? excess.row->recommended : excess.allowed;
        excess.busy = excess.row && excess.row->threads > 0 ? excess.row->threads_busy : excess.pool.busy;
        excess.collides = at_work && is_parallel(facts, &excess);
        uint64_t at_once = is_known(excess.at_once) ? excess.at_once : excess.busy;
        excess.is_far = excess.collides && at_once >= excess.allowed * FAR_FACTOR &&
                        excess.busy >= excess.allowed * FAR_FACTOR;
        *ret_excess = excess;
        return 0;
}
