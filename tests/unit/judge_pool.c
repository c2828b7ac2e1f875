/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of threads of a program that nobody recognised. */
#include "judge_build.h"

static struct pool pool_of(struct court *court) {
        struct pool pool;
        cr_assert_eq(facts_pool(&court->facts, court->arena, &pool), 0);
        return pool;
}

Test(judge_pool, a_thread_is_of_a_pool_by_what_it_ran) {
        static const struct {
                uint64_t busiest_us, other_us;
                uint64_t busy;
        } rows[] = {
                        /* more than 1 % of 10 s */
                        {5000000, 100000, 1},
                        {5000000, 100001, 2},
                        /* or more than 5 % of the busiest, where that is less */
                        {400000, 20000, 1},
                        {400000, 20001, 2},
                        {0, 0, 0},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court_thread(&court, rows[i].busiest_us * NS_PER_US);
                court_thread(&court, rows[i].other_us * NS_PER_US);
                court_thread(&court, ABSENT);
                cr_assert_eq(pool_of(&court).busy, rows[i].busy, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_pool, threads_that_ended_are_no_pool) {
        struct court court;
        court_open(&court, 10000);
        court_thread(&court, 5000 * MS)->ended = true;
        court_thread(&court, 5000 * MS)->folded = 300;
        court_thread(&court, 300 * MS);
        cr_assert_eq(pool_of(&court).busy, 1);
        cr_assert_eq(facts_threads_in(&court.threads[1]), 300);
        court_close(&court);
}

Test(judge_pool, the_largest_group_goes_by_name_without_its_number) {
        struct court court;
        court_open(&court, 10000);
        for (unsigned i = 0; i < 12; i++) {
                char name[PROC_NAME_MAX];
                snprintf(name, sizeof(name), "worker-%u", i);
                court_thread_of(&court, COURT_PID, "app", name, i < 9 ? 500 * MS : 0);
        }
        court_thread_of(&court, COURT_PID, "app", "main", 9000 * MS);
        court_thread_of(&court, COURT_PID, "app", "worker-", 500 * MS);
        struct pool pool = pool_of(&court);

        cr_assert_eq(pool.busy, 11);
        cr_assert_eq(pool.group_threads, 13);
        cr_assert_eq(pool.group_busy, 10);
        cr_assert_str_eq(pool.name, "worker-");
        cr_assert_str_eq(pool.process, "app");
        court_close(&court);
}

/* Names are bytes of others' choice: 16 of them without an end, digits only, none. */
Test(judge_pool, names_of_any_kind_are_told_apart) {
        static const char *const names[] = {"123", "456", "", "a1", "a22", "a"};
        struct court court;
        court_open(&court, 10000);
        for (size_t i = 0; i < ELEMENTS(names); i++)
                court_thread_of(&court, COURT_PID, "app", names[i], 500 * MS);
        struct pool pool = pool_of(&court);

        cr_assert_eq(pool.busy, 6);
        cr_assert_eq(pool.group_threads, 3);
        cr_assert_str_eq(pool.name, "a");
        court_close(&court);
}

Test(judge_pool, children_of_one_program_are_one_group) {
        struct court court;
        court_open(&court, 10000);
        for (uint32_t i = 0; i < 8; i++)
                court_thread_of(&court, COURT_PID + i, "ruby", "ruby", 500 * MS);
        struct pool pool = pool_of(&court);

        cr_assert_eq(pool.group_busy, 8);
        court_close(&court);
}

Test(judge_pool, no_thread_no_pool) {
        struct court court;
        court_open(&court, 10000);
        struct pool pool = pool_of(&court);

        cr_assert_eq(pool.busy, 0);
        cr_assert_eq(pool.group_threads, 0);
        cr_assert_str_eq(pool.name, "");
        court_close(&court);
}

Test(judge_pool, numbers_that_come_from_the_machines_cpus) {
        static const struct {
                uint64_t number;
                unsigned cpus;
                const char *words;
        } rows[] = {
                        {48, 48, "one for each CPU"},
                        {47, 48, "one less"},
                        {49, 48, "one more"},
                        {96, 48, "two for each CPU"},
                        {97, 48, "two for each CPU, and one"},
                        {73, 48, "one and a half"},
                        {24, 48, "one for two"},
                        {33, 48, "garbage"},
                        {34, 48, NULL},
                        {46, 48, NULL},
                        {0, 48, NULL},
                        /* on a small machine any number is some formula's */
                        {7, 7, "one for each CPU"},
                        {8, 7, NULL},
                        {9, 8, "one more"},
                        {2, 2, "one for each CPU"},
                        {1, 1, NULL},
                        {1, 0, NULL},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const char *words = facts_resembles(rows[i].number, rows[i].cpus);
                cr_assert_eq(words != NULL, rows[i].words != NULL, "row %zu: %s", i, words ? words : "none");
                if (words)
                        cr_assert(strstr(words, rows[i].words), "row %zu: %s", i, words);
        }
}

Test(judge_pool, a_full_arena_is_an_error) {
        struct court court;
        struct pool pool;
        court_open(&court, 10000);
        for (int i = 0; i < 30; i++)
                court_thread(&court, 5 * MS);
        struct arena *arena = arena_new(1);
        cr_assert_eq(facts_pool(&court.facts, arena, &pool), -ENOMEM);
        arena_free(arena);
        court_close(&court);
}
