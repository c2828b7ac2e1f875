/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes have in force, beside the limit; and which threads are theirs. */
#include "judge_build.h"

struct rounding_row {
        uint64_t limit_milli, effective;
        unsigned affinity, cpus;
        enum parallelism_rounding rounding;
        uint64_t recommended, surplus;
};

Test(judge_parallelism, the_recommended_number_is_the_projects_own_rounding_of_the_limit) {
        static const struct rounding_row rows[] = {
                        {999, 48, 0, 48, ROUND_UP, 1, 47},
                        {1000, 48, 0, 48, ROUND_UP, 1, 47},
                        {1001, 48, 0, 48, ROUND_UP, 2, 46},
                        {250, 48, 0, 48, ROUND_UP, 1, 47},
                        /* Go's floor, which its own CPUs undercut */
                        {250, 2, 0, 48, ROUND_UP_FROM_TWO, 2, 0},
                        {2000, 2, 0, 48, ROUND_UP_FROM_TWO, 2, 0},
                        {2001, 2, 0, 48, ROUND_UP_FROM_TWO, 3, 0},
                        {250, 2, 2, 48, ROUND_UP_FROM_TWO, 2, 0},
                        {250, 2, 1, 48, ROUND_UP_FROM_TWO, 1, 1},
                        {999, 4, 0, 48, ROUND_DOWN, 1, 3},
                        {1999, 4, 0, 48, ROUND_DOWN, 1, 3},
                        {2000, 4, 0, 48, ROUND_DOWN, 2, 2},
                        {5000, 48, 0, 48, ROUND_TO_ONE, 1, 47},
                        {5000, 48, 0, 48, ROUND_NEVER, ABSENT, ABSENT},
                        /* a limit above the CPUs that it may use is none */
                        {96000, 8, 0, 8, ROUND_UP, 8, 0},
                        {96000, 9, 0, 8, ROUND_UP, 8, 1},
                        {3000, 4, 2, 48, ROUND_UP, 2, 2},
                        {3000, 4, 3, 48, ROUND_UP, 3, 1},
                        {3000, 4, 4, 48, ROUND_UP, 3, 1},
                        {3000, 4, 0, 0, ROUND_UP, 3, 1},
                        /* no limit, no number in force */
                        {ABSENT, 48, 0, 48, ROUND_UP, ABSENT, ABSENT},
                        {1000, ABSENT, 0, 48, ROUND_UP, 1, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court.facts.cpus_online = rows[i].cpus;
                if (is_known(rows[i].limit_milli))
                        court_limit(&court, LIMIT_CONTAINER, "/app", rows[i].limit_milli,
                                    rows[i].limit_milli);
                struct parallelism *row = court_runtime(&court, "go", "GOMAXPROCS", rows[i].effective);
                row->affinity = rows[i].affinity;
                row->rounding = rows[i].rounding;
                const struct parallelism_facts *facts = court_scanned(&court);
                cr_assert_eq(facts->recommended, rows[i].recommended, "row %zu: %" PRIu64, i,
                             facts->recommended);
                cr_assert_eq(facts->surplus, rows[i].surplus, "row %zu: %" PRIu64, i, facts->surplus);
                court_close(&court);
        }
}

Test(judge_parallelism, the_sentence_carries_the_number) {
        static const struct {
                const char *how, *filled;
        } rows[] = {
                        {"set GOMAXPROCS={n}", "set GOMAXPROCS=5"},
                        {"{n}", "5"},
                        {"{n}{n} or {n}:{n}", "55 or 5:5"},
                        {"nothing in it", "nothing in it"},
                        {"", ""},
                        {"100% of {n} {x} %s", "100% of 5 {x} %s"},
                        {NULL, NULL},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court.facts.cpus_online = 48;
                court_limit(&court, LIMIT_CONTAINER, "/app", 4500, 4500);
                court_runtime(&court, "go", "GOMAXPROCS", 48)->how = rows[i].how;
                const struct parallelism_facts *facts = court_scanned(&court);
                if (rows[i].filled)
                        cr_assert_str_eq(facts->how, rows[i].filled, "row %zu: %s", i, facts->how);
                else
                        cr_assert_null(facts->how);
                court_close(&court);
        }
}

Test(judge_parallelism, without_a_number_there_is_no_sentence) {
        struct court court;
        court_open(&court, 10000);
        court_runtime(&court, "go", "GOMAXPROCS", 48)->how = "set {n}";
        cr_assert_null(court_scanned(&court)->how);
        court_close(&court);
}

Test(judge_parallelism, memory_is_the_share_of_the_surplus_processes) {
        static const struct {
                enum parallelism_unit unit;
                uint64_t effective, memory, surplus_memory;
        } rows[] = {
                        {UNIT_PROCESSES, 8, 800, 600},       {UNIT_PROCESSES, 2, 800, 0},
                        {UNIT_PROCESSES, 1, 800, 0},         {UNIT_PROCESSES, 3, 1000, 333},
                        {UNIT_PROCESSES, 0, 1000, ABSENT},   {UNIT_PROCESSES, ABSENT, 1000, ABSENT},
                        {UNIT_PROCESSES, 8, ABSENT, ABSENT}, {UNIT_THREADS, 8, 800, ABSENT},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
                struct parallelism *row =
                                court_runtime(&court, "nginx", "worker_processes", rows[i].effective);
                row->unit = rows[i].unit;
                row->memory_bytes = rows[i].memory;
                const struct parallelism_facts *facts = court_scanned(&court);
                cr_assert_eq(facts->surplus_memory_bytes, rows[i].surplus_memory, "row %zu: %" PRIu64, i,
                             facts->surplus_memory_bytes);
                court_close(&court);
        }
}

/* Backends and request workers wait: only those at work can be too many. */
Test(judge_parallelism, those_that_block_are_counted_by_those_at_work) {
        static const struct {
                uint64_t active, surplus;
        } rows[] = {{ABSENT, ABSENT}, {0, 0}, {1, 0}, {2, 0}, {3, 1}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
                struct parallelism *row = court_runtime(&court, "php-fpm", "pm.max_children", 50);
                row->is_blocking = true;
                row->unit = UNIT_PROCESSES;
                row->memory_bytes = 5000;
                row->active = rows[i].active;
                const struct parallelism_facts *facts = court_scanned(&court);
                cr_assert_eq(facts->surplus, rows[i].surplus, "row %zu", i);
                cr_assert_eq(facts->surplus_memory_bytes, ABSENT, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_parallelism, threads_of_a_row_are_those_of_its_process_and_name) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
        court_thread_of(&court, COURT_PID, "java", "GC Thread#0", 1000 * MS)->quota_spent_ns = 700 * MS;
        court_thread_of(&court, COURT_PID, "java", "GC Thread#1", 101 * MS)->quota_spent_ns = 1 * MS;
        court_thread_of(&court, COURT_PID, "java", "GC Thread#2", 50 * MS)->stall_ns = 9 * MS;
        court_thread_of(&court, COURT_PID, "java", "http-1", 3000 * MS);
        court_thread_of(&court, 200, "java", "GC Thread#0", 3000 * MS);
        court_runtime(&court, "jvm", "ParallelGCThreads", 3)->threads_name = "GC Thread#";
        court_runtime(&court, "jvm", "ActiveProcessorCount", 3);
        const struct parallelism_facts *facts = court_scanned(&court);

        cr_assert_eq(facts[0].threads, 3);
        cr_assert_eq(facts[0].threads_busy, 2, "1 %% of 10 s is less than 5 %% of 3 s");
        cr_assert_eq(facts[0].run_ns, 1151 * MS);
        cr_assert_eq(facts[0].quota_spent_ns, 701 * MS);
        cr_assert_eq(facts[0].stall_ns, 9 * MS);
        cr_assert_eq(facts[1].threads, 4);
        court_close(&court);
}

Test(judge_parallelism, workers_of_a_tree_are_the_processes_named_as_the_master_without_it) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
        court_thread_of(&court, COURT_PID, "nginx", "nginx", 1 * MS);
        court_thread_of(&court, 201, "nginx", "nginx", 300 * MS);
        court_thread_of(&court, 202, "nginx", "nginx", 400 * MS);
        court_thread_of(&court, 300, "sh", "sh", 500 * MS);
        court_runtime(&court, "nginx", "worker_processes", 2)->unit = UNIT_PROCESSES;
        const struct parallelism_facts *facts = court_scanned(&court);

        cr_assert_eq(facts->threads, 2);
        cr_assert_eq(facts->run_ns, 700 * MS);
        court_close(&court);
}

/* The agent may not see the container's processes by its own numbers. */
Test(judge_parallelism, a_process_unseen_in_our_namespace_is_known_by_the_containers_number) {
        struct court court;
        court_open(&court, 10000);
        court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
        struct thread_facts *thread = court_thread(&court, 500 * MS);
        thread->host_pid = 0;
        thread->pid = 7;
        struct parallelism *row = court_runtime(&court, "go", "GOMAXPROCS", 48);
        row->pid = 7;
        cr_assert_eq(court_scanned(&court)->threads, 1);
        thread->pid = 0;
        row->pid = 0;
        cr_assert_eq(court_scanned(&court)->threads, 0, "two unknown ones are not the same");
        cr_assert_eq(court.facts.parallelism->run_ns, ABSENT);
        court_close(&court);
}

Test(judge_parallelism, sums_and_nobody_looked) {
        struct court court;
        court_open(&court, 10000);
        cr_assert_eq(facts_add_parallelism(&court.facts, NULL, court.arena), 0);
        cr_assert_null(court.facts.parallelism);
        cr_assert_eq(facts_add_parallelism(&court.facts, &court.list, court.arena), 0);
        cr_assert_not_null(court.facts.parallelism, "looked, and found none");
        cr_assert_eq(court.facts.parallelism_count, 0);
        court_runtime(&court, "go", "GOMAXPROCS", 48)->affinity = 4;
        court_runtime(&court, "openblas", "OPENBLAS_NUM_THREADS", 48)->affinity = 2;
        court.list.omitted = 3;
        court_scanned(&court);
        cr_assert_eq(court.facts.parallelism_count, 2);
        cr_assert_eq(court.facts.parallelism_omitted, 3);
        cr_assert_eq(court.facts.affinity, 4);
        court_close(&court);
}

Test(judge_parallelism, a_full_arena_is_an_error) {
        struct court court;
        court_open(&court, 10000);
        struct arena *arena = arena_new(1);
        court_limit(&court, LIMIT_CONTAINER, "/app", 2000, 2000);
        court_runtime(&court, "go", "GOMAXPROCS", 48)->how = "{n}";
        cr_assert_eq(facts_add_parallelism(&court.facts, &court.list, arena), -ENOMEM);
        cr_assert_null(court.facts.parallelism);
        arena_free(arena);
        court_close(&court);
}
