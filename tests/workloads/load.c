/* SPDX-License-Identifier: Apache-2.0 */

/* load CASE [options] [key=value…]: the table of cases and the command line. See README.md. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "load.h"

enum {
        EXIT_USAGE = 2,
        EXIT_UNSUPPORTED = 77,
};

static const struct load_case *const tables[] = {cases_busy, cases_limits, cases_groups, cases_wake,
                                                 cases_spawn};

static const struct load_case *case_find(const char *name) {
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                for (const struct load_case *k = tables[i]; k->name; k++)
                        if (strcmp(k->name, name) == 0)
                                return k;
        return NULL;
}

static void usage(FILE *f) {
        fputs("load CASE [--seconds S] [--group NAME] [--here] [--window] [--no-wait] [--gaps] "
              "[key=value...]\n"
              "load where [--root DIR]     says which hierarchy would be used\n\n",
              f);
        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                for (const struct load_case *k = tables[i]; k->name; k++)
                        fprintf(f, "  %-16s %s\n", k->name, k->help);
}

static int parse_options(struct ctx *c, int argc, char **argv, const char **ret_root) {
        static const struct option options[] = {
                        {"seconds", required_argument, NULL, 's'}, {"group", required_argument, NULL, 'g'},
                        {"root", required_argument, NULL, 'r'},    {"here", no_argument, NULL, 'h'},
                        {"window", no_argument, NULL, 'w'},        {"no-wait", no_argument, NULL, 'n'},
                        {"gaps", no_argument, NULL, 'G'},          {NULL, 0, NULL, 0},
        };
        int opt, r;

        while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (opt) {
                case 's': {
                        char text[32];

                        snprintf(text, sizeof(text), "%.30ss", optarg);
                        r = parse_time(text, &c->run_ns);
                        if (r < 0 || c->run_ns == 0)
                                return -EINVAL;
                        break;
                }
                case 'g':
                        c->group_name = optarg;
                        break;
                case 'r':
                        *ret_root = optarg;
                        break;
                case 'h':
                        c->here = true;
                        break;
                case 'w':
                        c->window = true;
                        break;
                case 'n':
                        c->no_wait = true;
                        break;
                case 'G':
                        c->gaps_output = true;
                        break;
                default:
                        return -EINVAL;
                }
        for (int i = optind; i < argc; i++) {
                r = param_add(c, argv[i]);
                if (r < 0) {
                        fprintf(stderr, "load: %s: expected key=value\n", argv[i]);
                        return r;
                }
        }
        return 0;
}

static int show_hierarchy(const char *root_dir) {
        struct hierarchy h;
        char own[PATH_LEN];
        int r;

        r = hierarchy_find(root_dir, &h);
        if (r >= 0)
                r = group_own_path(&h, root_dir, own);
        if (r < 0) {
                printf("UNSUPPORTED no cpu controller: %s\n", strerror(-r));
                return EXIT_UNSUPPORTED;
        }
        printf("version %d\nmount %s\nroot %s\nown %s\n", h.version, h.mount, h.root, own);
        return EXIT_SUCCESS;
}

static int ctx_init(struct ctx *c) {
        sigset_t signals;
        cpu_set_t set;
        void *p;
        int r;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return -errno;
        for (int i = 0; i < CPU_SETSIZE && c->n_cpus < CPU_LIST_MAX; i++)
                if (CPU_ISSET((size_t) i, &set))
                        c->cpus[c->n_cpus++] = i;
        r = hierarchy_find("", &c->hierarchy);
        if (r < 0)
                return ctx_unsupported(c, "no cpu controller of either cgroup version: %s", strerror(-r));
        p = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return -errno;
        c->shared = p;
        atomic_store(&c->shared->deadline_ns, UINT64_MAX);
        c->shared->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGUSR1);
        sigaddset(&signals, SIGUSR2);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        c->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        signal(SIGPIPE, SIG_IGN);
        return c->shared->event_fd < 0 || c->signal_fd < 0 ? -errno : 0;
}

static int run_case(struct ctx *c) {
        int r;

        if (c->load_case->flags & CASE_WINDOW)
                c->window = true;
        r = ctx_init(c);
        if (r >= 0 && c->here && !(c->load_case->flags & CASE_HERE))
                r = ctx_unsupported(c, "%s needs groups of its own, so not --here", c->load_case->name);
        if (r >= 0 && c->window && (c->load_case->flags & CASE_NO_WINDOW))
                r = ctx_unsupported(c, "%s has no figures for a part of its time, so no --window",
                                    c->load_case->name);
        if (r >= 0)
                r = ctx_run(c);
        if (r == -EOPNOTSUPP) {
                printf("UNSUPPORTED %s\n", c->reason);
                return EXIT_UNSUPPORTED;
        }
        if (c->bad_params)
                return EXIT_USAGE;
        if (r < 0)
                fprintf(stderr, "load: %s: %s\n", c->load_case->name, strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        static struct ctx c = {.run_ns = 5 * NS_PER_SEC};
        const char *root_dir = "";
        static char name[64];

        if (argc < 2 || strcmp(argv[1], "--help") == 0) {
                usage(argc < 2 ? stderr : stdout);
                return argc < 2 ? EXIT_USAGE : EXIT_SUCCESS;
        }
        snprintf(name, sizeof(name), "throttlescope-load-%d", (int) getpid());
        c.group_name = name;
        if (parse_options(&c, argc - 1, argv + 1, &root_dir) < 0)
                return EXIT_USAGE;
        if (strcmp(argv[1], "where") == 0)
                return show_hierarchy(root_dir);
        c.load_case = case_find(argv[1]);
        if (!c.load_case) {
                fprintf(stderr, "load: no case named %s; load --help lists them\n", argv[1]);
                return EXIT_USAGE;
        }
        return run_case(&c);
}
