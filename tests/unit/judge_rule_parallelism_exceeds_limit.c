/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "ParallelismExceedsLimit"

/* A Go program on a machine of 48, limited to @milli, 20 % of its time stalled; @busy of its threads worked. */
static struct parallelism *open_go(struct court *court, uint64_t milli, uint64_t effective, unsigned busy) {
        court_open(court, 10000);
        court->facts.cpus_online = 48;
        court_limit(court, LIMIT_CONTAINER, "/kubepods/pod1/x", milli, milli);
        for (unsigned i = 0; i < busy; i++)
                court_thread(court, 8000 * MS / busy);
        court->facts.quota_ns_lost = 2000 * MS;
        struct parallelism *row = court_runtime(court, "go", "GOMAXPROCS", effective);
        row->version = "1.24.1";
        row->how = "set GOMAXPROCS={n} in the container's environment";
        return row;
}

static const struct finding *found(struct court *court) {
        court_scanned(court);
        court_judge(court);
        return court_find(court, CODE);
}

Test(judge_rule_parallelism_exceeds_limit, tells_the_setting_and_both_ways) {
        struct court court;
        struct parallelism *row = open_go(&court, 4500, 48, 40);
        row->source_detail = "affinity";
        court.facts.runnable_p99 = 44;
        const struct finding *finding = found(&court);

        cr_assert(finding);
        cr_assert_eq(finding, &court.judgement.findings[0]);
        cr_assert_eq(finding->severity, SEVERITY_WARNING);
        cr_assert_str_eq(finding->summary,
                         "go 1.24.1: GOMAXPROCS is 48 threads (default: affinity); the limit 4500m has 5 "
                         "CPUs: "
                         "40 of them worked, up to 44 wanted to run at once, and stalled together when its "
                         "quota was used up",
                         "%s", finding->summary);
        cr_assert_eq(court_evidence(finding, "effective"), 48);
        cr_assert_eq(court_evidence(finding, "recommended"), 5);
        cr_assert_eq(court_evidence(finding, "threads_worked"), 40);
        cr_assert_eq(court_evidence(finding, "runnable_p99"), 44);
        cr_assert_eq(court_evidence(finding, "stall_ns"), 2000 * MS);
        cr_assert_eq(finding->fixes_count, 2);
        cr_assert_str_eq(finding->fixes[0].setting, "GOMAXPROCS");
        cr_assert_str_eq(finding->fixes[0].value, "5");
        cr_assert_str_eq(finding->fixes[0].how, "set GOMAXPROCS=5 in the container's environment");
        cr_assert_str_eq(finding->fixes[0].who, "app");
        cr_assert_str_eq(finding->fixes[1].setting, "resources.limits.cpu");
        court_close(&court);
}

struct limit_row {
        uint64_t at_once;
        unsigned busy;
        bool collides, is_fewer_first;
};

/* The limit has 4 CPUs; from 5 at once on it is exceeded, from 8 on fewer threads are the better remedy. */
Test(judge_rule_parallelism_exceeds_limit, boundaries) {
        static const struct limit_row rows[] = {
                        {3, 40, false, false},     {4, 40, false, false},    {5, 40, true, false},
                        {7, 40, true, false},      {8, 40, true, true},      {40, 4, false, false},
                        {40, 5, true, false},      {40, 7, true, false},     {40, 8, true, true},
                        {ABSENT, 4, false, false}, {ABSENT, 7, true, false}, {ABSENT, 8, true, true},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_go(&court, 4000, 48, rows[i].busy);
                court.facts.runnable_p99 = rows[i].at_once;
                const struct finding *finding = found(&court);
                cr_assert(finding, "row %zu", i);
                cr_assert_eq(finding->is_aside, !rows[i].collides, "row %zu", i);
                cr_assert_eq(finding->severity, rows[i].collides ? SEVERITY_WARNING : SEVERITY_INFO,
                             "row %zu", i);
                if (rows[i].collides)
                        cr_assert_eq(strcmp(finding->fixes[0].setting, "GOMAXPROCS") == 0,
                                     rows[i].is_fewer_first, "row %zu: %s", i, finding->fixes[0].setting);
                court_close(&court);
        }
}

/* Below one CPU even one thread stalls: only the time without a stall tells how many it were. */
Test(judge_rule_parallelism_exceeds_limit, those_that_piled_up_behind_a_stall_are_not_parallel) {
        static const struct {
                uint64_t limit, unstalled;
                bool collides;
        } rows[] = {
                        {500, 1000, false},  {500, 1499, false}, {500, 1500, true},
                        {500, ABSENT, true}, {999, 1499, false}, {1000, 1000, true},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_go(&court, rows[i].limit, 48, 8);
                court.facts.runnable_p99 = 8;
                court.facts.unstalled_milli = rows[i].unstalled;
                cr_assert_eq(found(&court)->is_aside, !rows[i].collides, "row %zu", i);
                court_close(&court);
        }
}

Test(judge_rule_parallelism_exceeds_limit, without_a_stall_twice_the_number_is_information) {
        static const struct {
                uint64_t effective;
                bool is_found;
        } rows[] = {{2, false}, {3, false}, {4, true}, {5, true}, {ABSENT, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_go(&court, 2000, rows[i].effective, 5);
                court.facts.quota_ns_lost = 0;
                const struct finding *finding = found(&court);
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                cr_assert_eq(court.judgement.severity, SEVERITY_NONE);
                if (finding) {
                        cr_assert_eq(finding->severity, SEVERITY_INFO);
                        cr_assert(strstr(finding->summary, "no harm in this window"), "%s",
                                  finding->summary);
                        cr_assert_eq(finding->fixes_count, 1);
                }
                court_close(&court);
        }
}

Test(judge_rule_parallelism_exceeds_limit, idle_or_blocking_ones_harm_nobody) {
        struct court court;
        struct parallelism *row = open_go(&court, 1000, 40, 1);
        court.threads[0].run_ns = 0;
        cr_assert_null(found(&court), "all of them slept");
        court_close(&court);

        row = open_go(&court, 1000, 40, 1);
        row->is_blocking = true;
        cr_assert_null(found(&court), "one of them worked");
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit,
     blocking_ones_at_work_together_are_found_and_the_limit_comes_first) {
        struct court court;
        struct parallelism *row = open_go(&court, 2000, 100, 10);
        row->is_blocking = true;
        row->rounding = ROUND_NEVER;
        row->how = "a pooler in front";
        court.facts.runnable_p99 = 10;
        const struct finding *finding = found(&court);

        cr_assert(finding);
        cr_assert_not(finding->is_aside);
        cr_assert_str_eq(finding->fixes[0].setting, "resources.limits.cpu");
        cr_assert_str_eq(finding->fixes[1].setting, "GOMAXPROCS");
        cr_assert_null(finding->fixes[1].value, "no number follows from the limit");
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit, says_what_overrides_and_what_was_not_reloaded) {
        struct court court;
        struct parallelism *row = open_go(&court, 4000, 48, 40);
        row->aware = AWARENESS_QUOTA;
        row->source = FROM_ENVIRONMENT;
        row->source_detail = "GOMAXPROCS";
        const struct finding *finding = found(&court);
        cr_assert(strstr(finding->summary, "48 threads (environment: GOMAXPROCS), which overrides its own "
                                           "reading of the limit"),
                  "%s", finding->summary);
        court_close(&court);

        row = open_go(&court, 4000, 48, 40);
        row->configured = 4;
        row->unit = UNIT_THREADS;
        finding = found(&court);
        cr_assert(strstr(finding->summary, "though its configuration says 4 by now"), "%s",
                  finding->summary);
        cr_assert_str_eq(finding->fixes[0].value, "4");
        cr_assert(strstr(finding->fixes[0].how, "reload"), "%s", finding->fixes[0].how);
        court_close(&court);

        row = open_go(&court, 4000, 48, 40);
        row->configured = 24;
        finding = found(&court);
        cr_assert_str_eq(finding->fixes[0].value, "4", "the new one is too high as well");
        cr_assert_not(strstr(finding->fixes[0].how, "reload"));
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit, an_unknown_program_is_known_by_its_threads) {
        static const struct {
                unsigned busy;
                bool is_found;
        } rows[] = {{3, false}, {4, false}, {5, true}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                court_open(&court, 10000);
                court.facts.cpus_online = 48;
                court_limit(&court, LIMIT_CONTAINER, "/app", 4000, 4000);
                for (unsigned k = 0; k < 48; k++) {
                        char name[PROC_NAME_MAX];
                        snprintf(name, sizeof(name), "w-%u", k);
                        court_thread_of(&court, COURT_PID, "solver", name, k < rows[i].busy ? 900 * MS : 0);
                }
                court.facts.quota_ns_lost = 2000 * MS;
                const struct finding *finding = found(&court);
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding) {
                        cr_assert(strstr(finding->summary,
                                         "solver: 48 threads w-, which looks like one for each CPU (48)"),
                                  "%s", finding->summary);
                        cr_assert_eq(court_evidence(finding, "recommended"), 4);
                        cr_assert_eq(court_evidence(finding, "threads_worked"), 5);
                }
                court.facts.quota_ns_lost = 0;
                cr_assert_null(found(&court), "without a stall it is a risk, not a finding");
                court_close(&court);
        }
}

/* GOMAXPROCS 2 hands its work from thread to thread: their number is no pool. */
Test(judge_rule_parallelism_exceeds_limit, gos_floor_of_two_is_by_design) {
        struct court court;
        struct parallelism *row = open_go(&court, 250, 2, 6);
        row->rounding = ROUND_UP_FROM_TWO;
        court.facts.runnable_p99 = 2;
        court.facts.unstalled_milli = 2000;
        cr_assert_null(found(&court));
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit, spinning_is_said) {
        struct court court;
        struct parallelism *row = open_go(&court, 2000, 48, 40);
        row->spins = true;
        court.facts.throttled_used_ns = 4000 * MS;
        court.threads[0].quota_spent_ns = 3000 * MS;
        const struct finding *finding = found(&court);
        cr_assert(strstr(finding->summary, "they spin for work when idle, and used 75% of the quota"), "%s",
                  finding->summary);
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit, foreign_words_are_escaped) {
        struct court court;
        struct parallelism *row = open_go(&court, 2000, 48, 40);
        row->program = "evil\x1b[2J";
        row->source_detail = "/etc/\n.cfg:1";
        const struct finding *finding = found(&court);
        cr_assert_not(strpbrk(finding->summary, "\x1b\n"));
        cr_assert(strstr(finding->summary, "evil\\x1b[2J"), "%s", finding->summary);
        court_close(&court);
}

Test(judge_rule_parallelism_exceeds_limit, nothing_without_a_limit_or_a_row) {
        struct court court;
        open_go(&court, 2000, 48, 40);
        court.facts.has_limit = false;
        court.facts.limit_milli = ABSENT;
        cr_assert_null(found(&court));
        court_close(&court);
        court_open(&court, 10000);
        cr_assert_null(found(&court));
        court_close(&court);
}
