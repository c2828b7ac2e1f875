/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/sbin/php-fpm8.2"
#define CONFIG "/etc/php/8.2/fpm/php-fpm.conf"
#define POOLS "/etc/php/8.2/fpm/pool.d/"
#define TITLE "php-fpm: master process (" CONFIG ")"

static void add(struct fixture *fixture, unsigned pid, unsigned parent, const char *title) {
        const struct made_process process = {
                        .pid = pid, .parent = parent, .exe = EXE, .argv = {title}, .rss_kb = 100};

        fixture_process(fixture, &process);
}

/* A master with four children of the pool "www" and one of "api". */
static void make(struct fixture *fixture) {
        fixture_make(fixture);
        add(fixture, 10, 1, TITLE);
        for (unsigned i = 0; i < 4; i++)
                add(fixture, 20 + i, 10, "php-fpm: pool www");
        add(fixture, 30, 10, "php-fpm: pool api");
        add(fixture, 40, 39, "php-fpm: pool www");
}

Test(runtimes_php_fpm, counts_each_pool_and_names_its_line) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *www, *api;

        make(&fixture);
        fixture_file(&fixture, 10, CONFIG,
                     "; a comment ' with an apostrophe\n[global]\npid = /run/x.pid\ninclude=" POOLS
                     "*.conf\n");
        fixture_file(&fixture, 10, POOLS "api.conf",
                     "[api]\npm = dynamic\npm.max_children = 9 ; at most\n;pm.max_children = 3\n");
        fixture_file(&fixture, 10, POOLS "www.conf",
                     "[www-old]\npm.max_children=1\n[www]\npm=static\npm.max_children=4\n");
        fixture_file(&fixture, 10, POOLS "zzz.conf.off", "[www]\npm.max_children=7\n");
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(list.count, 2);
        www = &list.rows[0];
        api = &list.rows[1];
        cr_assert_str_eq(www->runtime, "php-fpm");
        cr_assert_str_eq(www->setting, "pm.max_children");
        cr_assert_eq(www->host_pid, 10);
        cr_assert_eq(www->effective, 4);
        cr_assert_eq(www->unit, UNIT_PROCESSES);
        cr_assert_eq(www->memory_bytes, 4 * 100 * 1024);
        cr_assert_eq(www->source, FROM_CONFIG);
        cr_assert_str_eq(www->source_detail, POOLS "www.conf:5");
        cr_assert_eq(www->configured, ABSENT);
        cr_assert(www->is_blocking);
        cr_assert_str_eq(www->how,
                         "pm.max_children = {n} in the pool [www] of " POOLS "www.conf, then reload");
        cr_assert_eq(api->effective, 1);
        cr_assert_str_eq(api->source_detail, POOLS "api.conf:3: at most 9");
        cr_assert_eq(api->configured, ABSENT);
}

Test(runtimes_php_fpm, tells_an_edit_from_a_pool_that_comes_and_goes) {
        static const struct {
                char config[96];
                enum parallelism_source source;
                uint64_t configured;
        } rows[] = {
                        {"[www]\npm = static\npm.max_children = 4\n", FROM_CONFIG, ABSENT},
                        {"[www]\npm = static\npm.max_children = 8\n", FROM_CONFIG, 8},
                        {"[www]\npm.max_children = 8\npm = static\n", FROM_CONFIG, 8},
                        {"[www]\npm = ondemand\npm.max_children = 8\n", FROM_CONFIG, ABSENT},
                        {"[www]\npm = ondemand\npm.max_children = 4\n", FROM_CONFIG, ABSENT},
                        {"[www]\npm = ondemand\npm.max_children = 2\n", FROM_CONFIG, 2},
                        {"[www]\npm = static\npm.max_children = ${MOST}\n", FROM_UNKNOWN, ABSENT},
                        {"[other]\npm.max_children = 4\n", FROM_UNKNOWN, ABSENT},
                        {"", FROM_UNKNOWN, ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};

                make(&fixture);
                fixture_file(&fixture, 10, CONFIG, rows[i].config);
                struct parallelism_list list = fixture_scan(&fixture);

                cr_assert_eq(list.count, 2);
                cr_expect_eq(list.rows[0].source, rows[i].source, "row %zu", i);
                cr_expect_eq(list.rows[0].configured, rows[i].configured, "row %zu", i);
                cr_expect((list.rows[0].unreadable != NULL) == (rows[i].source == FROM_UNKNOWN), "row %zu",
                          i);
        }
}

Test(runtimes_php_fpm, an_unreadable_file_is_said) {
        cleanup_fixture struct fixture fixture = {0};

        make(&fixture);
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(list.count, 2);
        cr_assert_eq(list.rows[0].effective, 4);
        cr_assert_eq(list.rows[0].source, FROM_UNKNOWN);
        cr_assert_str_eq(list.rows[0].unreadable, CONFIG " of process 10 is not there");
}

Test(runtimes_php_fpm, a_title_cut_short_is_no_trouble) {
        cleanup_fixture struct fixture fixture = {0};

        fixture_make(&fixture);
        add(&fixture, 10, 1, "php-fpm: master process (");
        add(&fixture, 11, 10, "php-fpm: pool ");
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(list.count, 1);
        cr_assert_eq(list.rows[0].effective, 1);
        cr_assert(list.rows[0].unreadable);
}
