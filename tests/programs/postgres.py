#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: what SHOW and pg_stat_activity say is what throttlescope says; and the PgBouncers in front of it."""

import contextlib
import glob
import os
import pwd
import shutil
import subprocess

from programs_lib import Skip, equal, folder, free_port, group, main, need, row, rows, server, test, wait_for, wait_for_port, want, write

# Each of its rows costs some sleep, on pages enough for all helpers of a query.
SLOW = "SELECT count(*) FROM slow WHERE pg_sleep(0.02) IS NOT NULL"
PREPARE = """CREATE TABLE slow AS SELECT i, repeat('x', 700) AS padding FROM generate_series(1, 2000) i;
ALTER TABLE slow SET (parallel_workers = 4); ANALYZE slow"""
PARALLEL = ("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "
            "SET max_parallel_workers_per_gather = 4; ")


def as_user(*words):
    try:
        pwd.getpwnam("postgres")
    except KeyError as error:
        raise Skip("there is no user postgres") from error
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *words]


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not found:
        raise Skip("postgres is not installed")
    return found[-1]


class Cluster:
    def __init__(self, place):
        self.place, self.data = place, f"{place}/data"
        self.psql = as_user(f"{programs()}/psql", "-h", place, "-U", "postgres", "-AtqX")

    def ask(self, *commands):
        words = [word for command in commands for word in ("-c", command)]
        return subprocess.run([*self.psql, *words], check=True, capture_output=True, text=True, cwd="/").stdout.strip()

    def activity(self, condition):
        return int(self.ask(f"SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {condition}"))

    @contextlib.contextmanager
    def session(self, *commands):
        """A connection that does these and then stays."""
        with subprocess.Popen(self.psql, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                              cwd="/") as client:
            try:
                client.stdin.write(";\n".join((*commands, "")))
                client.stdin.flush()
                yield client
            finally:
                client.kill()


@contextlib.contextmanager
def postgres(inside, *options):
    with folder() as place:
        cluster = Cluster(place)
        shutil.chown(place, "postgres")
        subprocess.run(as_user(f"{programs()}/initdb", "-D", cluster.data, "-A", "trust", "-N", "--no-instructions"), check=True,
                       stdout=subprocess.DEVNULL, cwd="/")
        words = ["-D", cluster.data, "-k", place, "-F", "-c", "listen_addresses=", *options]
        with server(as_user(f"{programs()}/postgres", *words), inside, cwd="/"):
            wait_for(lambda: subprocess.run([*cluster.psql, "-c", "SELECT 1"], capture_output=True, check=False, cwd="/").returncode == 0,
                     "postgres answers")
            yield cluster


@test
def active_backends_are_told_from_idle_ones():
    with group(quota_ms=100) as inside, postgres(inside, "-c", "cluster_name=15/main", "-N", "40") as cluster:
        with contextlib.ExitStack() as sessions:
            for _ in range(3):
                sessions.enter_context(cluster.session("SELECT pg_sleep(60)"))
            sessions.enter_context(cluster.session("BEGIN", "SELECT 1"))
            sessions.enter_context(cluster.session("SELECT 1"))
            wait_for(lambda: (cluster.activity("state = 'active' AND backend_type = 'client backend'"),
                              cluster.activity("state LIKE 'idle%'")) == (3, 2), "3 active and 2 idle backends")
            found = row(inside, "postgres", "max_connections")
            equal(found["effective"], cluster.activity("backend_type = 'client backend'"), "effective")
            equal(found["active"], 3, "active")
            equal(found["unit"], "processes", "unit")
            equal(found["blocking"], True, "blocking")
            equal(found["source"], "argument", "source")
            equal(found["source_detail"], f"-N: at most {cluster.ask('SHOW max_connections')}", "source_detail")
            want(found["version"] and cluster.ask("SHOW server_version").startswith(found["version"]), found)
            # How many connections there are follows from the clients, not from the limit.
            want("recommended" not in found and not found.get("surplus"), found)
            found = row(inside, "postgres", "max_parallel_workers")
            equal(found["effective"], int(cluster.ask("SHOW max_parallel_workers")), "effective of max_parallel_workers")
            equal((found["source"], found["active"]), ("default", 0), "source, and workers of no query")
            want(not found.get("surplus"), found)


@test
def parallel_workers_and_the_advice():
    with group(quota_ms=100) as inside, postgres(inside) as cluster:
        cluster.ask(PREPARE)

        def workers(count):
            with cluster.session(PARALLEL, SLOW):
                wait_for(lambda: cluster.activity("backend_type = 'parallel worker'") == count, f"{count} parallel workers")
                found = row(inside, "postgres", "max_parallel_workers")
                # It would not notice before its end that its client has gone.
                cluster.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                            "AND pid <> pg_backend_pid()")
                return found

        found = workers(4)
        equal((found["effective"], found["active"]), (8, 4), "effective and active")
        equal((found["recommended"], found["surplus"]), (1, 3), "recommended and surplus")
        want("ALTER SYSTEM SET max_parallel_workers = 1," in found["how"], found["how"])
        wait_for(lambda: cluster.activity("backend_type = 'parallel worker'") == 0, "the query has ended")
        cluster.ask("ALTER SYSTEM SET max_parallel_workers = 1")
        found = row(inside, "postgres", "max_parallel_workers")
        equal((found["effective"], found["configured"]), (8, 1), "before the reload")
        cluster.ask("SELECT pg_reload_conf()")
        wait_for(lambda: cluster.ask("SHOW max_parallel_workers") == "1", "max_parallel_workers is 1")
        found = workers(1)
        equal((found["effective"], found["active"]), (1, 1), "effective and active after the advice")
        equal(found["source"], "config", "source")
        equal(found["source_detail"], f"{cluster.data}/postgresql.auto.conf:3", "source_detail")
        want(not found.get("surplus") and "configured" not in found, found)


@test
def poolers_that_share_a_port():
    program = need("pgbouncer")
    with folder() as place, group(quota_ms=100) as inside, contextlib.ExitStack() as stack:
        port = free_port()
        config = write(f"{place}/pgbouncer.ini", f"[databases]\n* = host=127.0.0.1\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                       f"listen_port = {port}\nunix_socket_dir =\nso_reuseport = 1\nauth_type = any\n")
        started = [stack.enter_context(server(as_user(program, "-q", config), inside)) for _ in range(3)]
        wait_for_port(port)
        wait_for(lambda: all(os.readlink(f"/proc/{each.pid}/exe") == os.path.realpath(program) for each in started), "3 poolers")
        found = row(inside, "pgbouncer", "processes")
        equal((found["effective"], found["unit"]), (len(started), "processes"), "effective")
        equal((found["recommended"], found["surplus"]), (1, 2), "recommended and surplus")
        equal([each for each in rows(inside) if each["runtime"] == "postgres"], [], "rows of postgres")


main("postgres")
