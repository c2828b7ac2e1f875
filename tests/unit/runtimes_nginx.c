/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes_fixture.h"

#define EXE "/usr/sbin/nginx"
#define CONFIG "/etc/nginx/nginx.conf"

static void add(struct fixture *fixture, unsigned pid, unsigned parent, const char *title) {
        const struct made_process process = {
                        .pid = pid, .parent = parent, .exe = EXE, .argv = {title}, .rss_kb = 1000};

        fixture_process(fixture, &process);
}

/* A master with @title and eight workers, one more that is leaving, and a cache manager. */
static const struct parallelism *row_with(struct fixture *fixture, const char *title, const char *config) {
        static struct parallelism_list list;

        fixture_make(fixture);
        add(fixture, 10, 1, title);
        for (unsigned i = 0; i < 8; i++)
                add(fixture, 20 + i, 10, "nginx: worker process");
        add(fixture, 30, 10, "nginx: worker process is shutting down");
        add(fixture, 31, 10, "nginx: cache manager process");
        add(fixture, 40, 39, "nginx: worker process"); /* of another master, in another container */
        if (config)
                fixture_file(fixture, 10, CONFIG, config);
        list = fixture_scan(fixture);
        return fixture_row(&list, "nginx", "worker_processes");
}

Test(runtimes_nginx, counts_the_workers_of_its_master) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row = row_with(&fixture, "nginx: master process nginx",
                                                 "user www;\nworker_processes  auto; # 4\nevents { }\n"
                                                 "http { worker_processes 3; }\n");

        cr_assert_eq(row->effective, 8);
        cr_assert_eq(row->leaving, 1);
        cr_assert_eq(row->unit, UNIT_PROCESSES);
        cr_assert_eq(row->memory_bytes, 9 * 1000 * 1024);
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, CONFIG ":2: auto");
        cr_assert_eq(row->configured, ABSENT);
        cr_assert_eq(row->host_pid, 10);
        cr_assert_str_eq(row->how, "worker_processes {n}; in " CONFIG ", then reload");
}

Test(runtimes_nginx, says_where_the_number_comes_from) {
        static const struct {
                char title[96], config[96];
                enum parallelism_source source;
                uint64_t configured;
        } rows[] = {
                        {"nginx: master process nginx", "worker_processes 8;", FROM_CONFIG, ABSENT},
                        {"nginx: master process nginx", "worker_processes 2;", FROM_CONFIG, 2},
                        {"nginx: master process nginx", "events {}", FROM_DEFAULT, ABSENT},
                        {"nginx: master process nginx", "http { worker_processes 2; }", FROM_DEFAULT,
                         ABSENT},
                        {"nginx: master process nginx -g worker_processes 8;", "worker_processes 2;",
                         FROM_ARGUMENT, ABSENT},
                        {"nginx: master process nginx -g daemon off;", "worker_processes 8;", FROM_CONFIG,
                         ABSENT},
                        {"nginx: master process nginx -g daemon off; -c /other.conf", "worker_processes 8;",
                         FROM_UNKNOWN, ABSENT},
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                cleanup_fixture struct fixture fixture = {0};
                const struct parallelism *row = row_with(&fixture, rows[i].title, rows[i].config);

                cr_expect_eq(row->source, rows[i].source, "row %zu: %s", i,
                             parallelism_source_name(row->source));
                cr_expect_eq(row->configured, rows[i].configured, "row %zu", i);
                cr_expect((row->unreadable != NULL) == (rows[i].source == FROM_UNKNOWN), "row %zu", i);
                cr_expect(row->how, "row %zu", i);
        }
}

Test(runtimes_nginx, follows_includes_but_not_in_circles) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row;

        fixture_make(&fixture);
        add(&fixture, 10, 1, "nginx: master process nginx");
        add(&fixture, 11, 10, "nginx: worker process");
        fixture_file(&fixture, 10, CONFIG, "include \"conf.d/*.conf\";\ninclude nginx.conf;\n");
        fixture_file(&fixture, 10, "/etc/nginx/conf.d/a.txt", "worker_processes 9;\n");
        fixture_file(&fixture, 10, "/etc/nginx/conf.d/b.conf", "\n\nworker_processes 1;\n");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "nginx", "worker_processes");
        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, "/etc/nginx/conf.d/b.conf:3");
}

Test(runtimes_nginx, the_ingress_controller_decides_itself) {
        cleanup_fixture struct fixture fixture = {0};
        const struct made_process controller = {.pid = 5,
                                                .parent = 1,
                                                .exe = "/nginx-ingress-controller",
                                                .argv = {"/nginx-ingress-controller"}};

        fixture_make(&fixture);
        fixture_process(&fixture, &controller);
        add(&fixture, 10, 5, "nginx: master process nginx");
        add(&fixture, 11, 10, "nginx: worker process");
        struct parallelism_list list = fixture_scan(&fixture);
        const struct parallelism *row = fixture_row(&list, "nginx", "worker_processes");

        cr_assert_str_eq(row->program, "ingress-nginx");
        cr_assert_eq(row->aware, AWARENESS_QUOTA);
        cr_assert_str_eq(row->how, "worker-processes: \"{n}\" in the controller's ConfigMap");
}

Test(runtimes_nginx, binary_configurations_are_only_bytes) {
        cleanup_fixture struct fixture fixture = {0};
        char junk[4096];

        fixture_make(&fixture);
        for (size_t i = 0; i < sizeof(junk); i++)
                junk[i] = (char) (i * 31 % 255 + 1);
        add(&fixture, 10, 1, "nginx: master process nginx");
        fixture_write_n(&fixture, "proc/10/root" CONFIG, junk, sizeof(junk));
        struct parallelism_list list = fixture_scan(&fixture);

        cr_assert_eq(fixture_row(&list, "nginx", "worker_processes")->effective, 0);
}

Test(runtimes_nginx, an_apostrophe_within_a_word_quotes_nothing) {
        cleanup_fixture struct fixture fixture = {0};
        const struct parallelism *row = row_with(&fixture, "nginx: master process nginx",
                                                 "http { server { location ~ ^/it's { set $a 'b;}'; } } }\n"
                                                 "worker_processes 8;\n");

        cr_assert_eq(row->source, FROM_CONFIG);
        cr_assert_str_eq(row->source_detail, CONFIG ":2");
}

Test(runtimes_nginx, more_than_is_read_is_no_default) {
        cleanup_fixture struct fixture fixture = {0};
        cleanup_free char *text = malloc(600001);
        const struct parallelism *row;

        cr_assert(text);
        memset(text, ' ', 600000);
        memcpy(text, "include d/*;", 12);
        text[600000] = '\0';
        fixture_make(&fixture);
        add(&fixture, 10, 1, "nginx: master process nginx");
        fixture_file(&fixture, 10, CONFIG, text);
        for (char name[] = "/etc/nginx/d/a"; name[13] <= 'd'; name[13]++)
                fixture_file(&fixture, 10, name, text + 12);
        fixture_file(&fixture, 10, "/etc/nginx/d/z", "worker_processes 1;");
        struct parallelism_list list = fixture_scan(&fixture);
        row = fixture_row(&list, "nginx", "worker_processes");
        cr_assert_eq(row->source, FROM_UNKNOWN);
        cr_assert_str_eq(row->unreadable, CONFIG " of process 10 is larger than is read");
}

Test(runtimes_nginx, many_large_configurations_leave_memory_to_others) {
        cleanup_fixture struct fixture fixture = {0};
        struct arena cleanup_arena *arena = arena_new((size_t) 64 << 20);
        struct process_memos *memos;
        struct scan_request request = {0};
        struct parallelism_list list;
        cleanup_free char *text = malloc(PROCESS_FILE_MAX);
        uint64_t cut = 0;
        pid_t *pids;

        cr_assert(text && arena);
        fixture_make(&fixture);
        memset(text, ' ', PROCESS_FILE_MAX);
        fixture_write_n(&fixture, "large", text, PROCESS_FILE_MAX);
        for (unsigned pid = 10; pid < 80; pid++) {
                char path[64];

                add(&fixture, pid, 1, "nginx: master process nginx");
                (void) snprintf(path, sizeof(path), "proc/%u/root" CONFIG, pid);
                cr_assert_eq(symlink("/large", fixture_path(&fixture, path)), 0);
        }
        cr_assert_eq(proc_pids(fixture.root, 100, fixture.arena, &pids, &request.pids_count), 0);
        request.pids = pids;
        cr_assert_eq(process_memos_new(&memos), 0);
        cr_assert_eq(scan_processes(fixture.root, memos, &request, arena, &list), 0);
        for (size_t i = 0; i < list.count; i++)
                cut += list.rows[i].unreadable != NULL;
        cr_assert_eq(list.count, PARALLELISM_MAX);
        cr_assert_gt(cut, 0);
        cr_assert_lt(cut, PARALLELISM_MAX);
        /* There is room left for what other runtimes read. */
        cr_assert_lt(arena_used(arena), (size_t) 40 << 20);
        process_memos_free(memos);
}
