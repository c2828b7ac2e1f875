/* SPDX-License-Identifier: Apache-2.0 */

/* Processes and their threads: made, parked, let go, read, ended. */

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

int futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t until_ns) {
        struct timespec ts = {.tv_sec = (time_t) (until_ns / NS_PER_SEC),
                              .tv_nsec = (long) (until_ns % NS_PER_SEC)};

        if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, until_ns == 0 ? NULL : &ts, NULL,
                    FUTEX_BITSET_MATCH_ANY) < 0)
                return -errno;
        return 0;
}

int futex_wake(const _Atomic uint32_t *word, int count) {
        return syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0) < 0 ? -errno : 0;
}

static void wait_for(const _Atomic uint32_t *word) {
        while (atomic_load(word) == 0)
                futex_wait(word, 0, 0);
}

static struct slot *slot_add(struct ctx *c, struct team *t, const char *role, void (*work)(struct slot *s)) {
        struct slot *s;

        if (c->n_slots == SLOT_MAX)
                return NULL;
        s = &c->shared->slots[c->n_slots++];
        s->shared = c->shared;
        s->team = t;
        s->role = role;
        s->work = work;
        s->cpu = -1;
        snprintf(s->name, sizeof(s->name), "%.10s-%u", role, c->n_slots - 1);
        t->count++;
        return s;
}

/* All workers of a team are added before the next team is. */
struct team *team_add(struct ctx *c, int group) {
        struct team *t;

        if (c->n_teams == TEAM_MAX)
                return NULL;
        t = &c->shared->teams[c->n_teams];
        *t = (struct team){.group = group, .first = c->n_slots};
        if (!slot_add(c, t, "leader", NULL))
                return NULL;
        c->n_teams++;
        return t;
}

struct slot *team_add_worker(struct ctx *c, struct team *t, const char *role, void (*work)(struct slot *s)) {
        return slot_add(c, t, role, work);
}

/* A worker that just told the controller its state. */
static void slot_tell(struct slot *s, enum slot_state state) {
        uint64_t one = 1;
        ssize_t n;

        atomic_store(&s->state, state);
        n = write(s->shared->event_fd, &one, sizeof(one));
        (void) n; /* an eventfd with a small count takes it */
}

/* /proc numbers threads for the namespace it was mounted in: the controller's, also when we are in a nested
 * one. */
static int slot_identify(struct slot *s) {
        char link[64];
        ssize_t n;

        s->inner_pid = getpid();
        s->inner_tid = (pid_t) syscall(SYS_gettid);
        n = readlink("/proc/thread-self", link, sizeof(link) - 1);
        if (n < 0)
                return -errno;
        link[n] = '\0';
        if (sscanf(link, "%d/task/%d", &s->pid, &s->tid) != 2)
                return -EIO;
        return 0;
}

static int slot_prepare(struct slot *s) {
        struct sched_param fifo = {.sched_priority = s->fifo};
        int r;

        prctl(PR_SET_NAME, s->name);
        prctl(PR_SET_TIMERSLACK, 1UL);
        r = slot_identify(s);
        if (r < 0)
                return r;
        if (s->cpu >= 0) {
                cpu_set_t set;

                CPU_ZERO(&set);
                CPU_SET((size_t) s->cpu, &set);
                if (sched_setaffinity(0, sizeof(set), &set) < 0)
                        return -errno;
        }
        if (s->fifo > 0 && sched_setscheduler(0, SCHED_FIFO, &fifo) < 0)
                return -errno;
        return 0;
}

static void *worker_main(void *arg) {
        struct slot *s = arg;

        s->error = slot_prepare(s);
        if (s->error < 0) {
                slot_tell(s, SLOT_PARKED);
                return NULL;
        }
        if (!s->born) {
                slot_tell(s, SLOT_READY);
                wait_for(&s->shared->go);
        }
        slot_begin(s, s->born ? 0 : s->shared->go_ns);
        atomic_store(&s->state, SLOT_RUNNING);
        s->work(s);
        slot_end(s);
        atomic_store(&s->state,
                     SLOT_PARKED); /* untold: waking the controller might take the CPU from us here */
        wait_for(&s->team->leave);
        return NULL;
}

static int team_spawn_threads(struct team *t, struct slot *slots, pthread_t *threads) {
        pthread_attr_t attr;
        int r = 0;

        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 128 * 1024);
        for (unsigned i = 1; i < t->count && r == 0; i++) {
                slots[i].born = atomic_load(&slots[i].shared->go) != 0;
                r = pthread_create(&threads[i], &attr, worker_main, &slots[i]);
        }
        pthread_attr_destroy(&attr);
        return -r;
}

/* Runs in the team's own process; never returns. */
static void __attribute__((noreturn)) team_main(struct team *t, struct slot *slots) {
        pthread_t *threads = calloc(t->count, sizeof(*threads));
        struct slot *leader = &slots[0];
        int r;

        prctl(PR_SET_NAME, leader->name);
        r = threads ? slot_identify(leader) : -ENOMEM;
        if (r >= 0)
                r = team_spawn_threads(t, slots, threads);
        leader->error = r;
        slot_tell(leader, r < 0 ? SLOT_PARKED : SLOT_READY);
        if (r < 0)
                _exit(1);
        wait_for(&t->leave);
        for (unsigned i = 1; i < t->count; i++)
                pthread_join(threads[i], NULL);
        _exit(0);
}

/* Each level waits for the next: the innermost is pid 1 of its namespace. */
static void team_nest(struct team *t, struct slot *leader) {
        for (unsigned i = 0; i < t->nested_pidns; i++) {
                int status = 0;
                pid_t pid;

                pid = unshare(CLONE_NEWPID) < 0 ? -1 : fork();
                if (pid < 0) {
                        leader->error = -errno;
                        slot_tell(leader, SLOT_PARKED);
                        _exit(1);
                }
                if (pid > 0) {
                        waitpid(pid, &status, 0);
                        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
                }
                prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
}

int team_start(struct ctx *c, struct team *t) {
        struct slot *slots = &c->shared->slots[t->first];
        pid_t pid;
        int r = 0;

        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                sigset_t none;

                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                wait_for(&t->start);
                team_nest(t, &slots[0]);
                team_main(t, slots);
        }
        t->pid = pid;
        t->started = true;
        if (t->group >= 0 && !c->here)
                r = group_move(&c->groups[t->group], pid);
        if (r < 0)
                return ctx_unsupported(c, "cannot move a process into %s: %s", c->groups[t->group].path,
                                       strerror(-r));
        atomic_store(&t->start, 1);
        futex_wake(&t->start, 1);
        return 0;
}

static char thread_state(pid_t pid, pid_t tid) {
        char path[64], buf[256] = {}, *end;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int) pid, (int) tid);
        f = fopen(path, "re");
        if (!f)
                return 'X';
        if (!fgets(buf, sizeof(buf), f))
                buf[0] = '\0';
        fclose(f);
        end = strrchr(buf, ')');
        return end && end[1] == ' ' ? end[2] : 'X';
}

static unsigned team_count_threads(const struct ctx *c, const struct team *t) {
        char path[64];
        unsigned count = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/task", (int) c->shared->slots[t->first].pid);
        dir = opendir(path);
        for (const struct dirent *entry; dir && (entry = readdir(dir));)
                count += entry->d_name[0] != '.';
        if (dir)
                closedir(dir);
        return count;
}

/* Parked threads are read once they sleep, and spawned ones are gone: then the kernel's figures are complete. */
int team_collect(struct ctx *c, struct team *t) {
        uint64_t give_up = now_ns() + 30 * NS_PER_SEC;

        while (team_count_threads(c, t) > t->count) {
                if (now_ns() > give_up)
                        return -ETIMEDOUT;
                nanosleep(&(struct timespec){.tv_nsec = (long) NS_PER_MS}, NULL);
        }

        for (unsigned i = 0; i < t->count; i++) {
                struct slot *s = &c->shared->slots[t->first + i];
                int r;

                while (thread_state(s->pid, s->tid) != 'S') {
                        if (now_ns() > give_up)
                                return -ETIMEDOUT;
                        nanosleep(&(struct timespec){.tv_nsec = (long) NS_PER_MS}, NULL);
                }
                r = schedstat_read(s->pid, s->tid, &s->end.sched);
                if (r < 0)
                        return r;
                s->end.tally = s->pub[atomic_load(&s->version) & 1];
                s->collected = true;
        }
        t->collected = true;
        return process_cpu_ns(c->shared->slots[t->first].pid, &t->cpu_end_ns);
}

/* Lets a team's threads and its process end. */
int team_leave(struct ctx *c, struct team *t) {
        uint64_t give_up = now_ns() + 30 * NS_PER_SEC;
        int r;

        (void) c;
        if (!t->started || t->reaped)
                return 0;
        atomic_store(&t->leave, 1);
        futex_wake(&t->leave, INT32_MAX);
        while ((r = waitpid(t->pid, NULL, WNOHANG)) == 0) {
                if (now_ns() > give_up)
                        return -ETIMEDOUT;
                nanosleep(&(struct timespec){.tv_nsec = (long) NS_PER_MS}, NULL);
        }
        t->reaped = true;
        return r < 0 ? -errno : 0;
}

void team_kill(struct team *t) {
        if (!t->started || t->reaped)
                return;
        kill(t->pid, SIGKILL);
        waitpid(t->pid, NULL, 0);
        t->reaped = true;
}

/* Every worker of the team has been silent that long. */
bool team_is_stalled(struct ctx *c, const struct team *t, uint64_t for_ns) {
        for (unsigned i = 1; i < t->count; i++)
                if (!slot_is_stalled(&c->shared->slots[t->first + i], for_ns))
                        return false;
        return true;
}
