/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_build.h"

#define CODE "ParallelismBelowLimit"

static struct parallelism *open_raised(struct court *court, uint64_t effective, uint64_t limit) {
        court_open(court, 10000);
        court->facts.cpus_online = 48;
        if (is_known(limit))
                court_limit(court, LIMIT_CONTAINER, "/app", limit, limit);
        court_thread(court, 1000 * MS);
        struct parallelism *row = court_runtime(court, "go", "GOMAXPROCS", effective);
        row->aware = AWARENESS_QUOTA;
        row->source = FROM_LIBRARY;
        return row;
}

static const struct finding *found(struct court *court) {
        court_scanned(court);
        court_judge(court);
        return court_find(court, CODE);
}

/* automaxprocs rounds down: 2 of 2999m is right, 2 of 3 is from another time. */
Test(judge_rule_parallelism_below_limit, boundaries) {
        static const struct {
                uint64_t effective, limit;
                bool is_found;
        } rows[] = {{2, 2000, false},  {2, 2999, false},      {2, 3000, true},
                    {2, 3001, true},   {1, 999, false},       {48, 96000, false},
                    {47, 96000, true}, {ABSENT, 4000, false}, {2, ABSENT, false}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct court court;
                open_raised(&court, rows[i].effective, rows[i].limit);
                const struct finding *finding = found(&court);
                cr_assert_eq(finding != NULL, rows[i].is_found, "row %zu", i);
                if (finding)
                        cr_assert_eq(finding->severity, SEVERITY_INFO);
                court_close(&court);
        }
}

Test(judge_rule_parallelism_below_limit, says_to_restart) {
        struct court court;
        open_raised(&court, 2, 4000);
        const struct finding *finding = found(&court);
        cr_assert_str_eq(
                        finding->summary,
                        "go: GOMAXPROCS is 2, from a lower limit than the 4 of now: it reads the limit only "
                        "when it starts",
                        "%s", finding->summary);
        cr_assert_str_eq(finding->fixes[0].value, "4");
        cr_assert(strstr(finding->fixes[0].how, "restart"));
        court_close(&court);
}

Test(judge_rule_parallelism_below_limit, not_what_follows_or_was_chosen) {
        struct court court;
        struct parallelism *row = open_raised(&court, 2, 4000);
        row->follows = true;
        cr_assert_null(found(&court));
        row->follows = false;
        row->source = FROM_ENVIRONMENT;
        cr_assert_null(found(&court));
        row->source = FROM_DEFAULT;
        row->aware = AWARENESS_NONE;
        cr_assert_null(found(&court));
        row->aware = AWARENESS_QUOTA;
        row->is_blocking = true;
        cr_assert_null(found(&court));
        row->is_blocking = false;
        row->rounding = ROUND_TO_ONE;
        cr_assert_null(found(&court));
        row->rounding = ROUND_NEVER;
        cr_assert_null(found(&court));
        row->rounding = ROUND_UP;
        cr_assert(found(&court));
        court_close(&court);
}
