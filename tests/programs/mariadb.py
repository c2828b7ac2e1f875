#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""MariaDB: what SHOW says of its pool and its connections is what throttlescope says."""

import contextlib
import os
import shutil
import subprocess
import tempfile

from programs_lib import equal, folder, group, main, need, row, server, test, wait_for, want, write

template = None  # an empty data folder: made once, copied for each server


def data_folder(place):
    global template
    if not template:
        template = tempfile.TemporaryDirectory(prefix="throttlescope-mariadb-")
        subprocess.run(["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={template.name}/data", "--skip-test-db",
                        "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.copytree(f"{template.name}/data", f"{place}/data")


class Database:
    def __init__(self, place, config):
        self.config, self.client = config, ["mariadb", "--no-defaults", "-u", "root", "-S", f"{place}/socket", "-N", "-B", "-e"]

    def ask(self, command):
        return subprocess.run([*self.client, command], check=True, capture_output=True, text=True).stdout.split()

    def answers(self):
        return subprocess.run([*self.client, "SELECT 1"], check=False, capture_output=True).returncode == 0

    def says(self, name):
        return int(self.ask(f"SHOW GLOBAL VARIABLES LIKE '{name}'")[1])


@contextlib.contextmanager
def mariadb(inside, lines):
    program = need("mariadbd", "mariadb-install-db", "mariadb")
    with folder() as place:
        data_folder(place)
        config = write(f"{place}/my.cnf", f"[client]\n[mysqld]\nuser = root\ndatadir = {place}/data\nsocket = {place}/socket\n"
                       f"skip-networking\ninnodb_flush_log_at_trx_commit = 0\n{lines}")
        database = Database(place, config)
        with server([program, f"--defaults-file={config}"], inside):
            wait_for(database.answers, "mariadbd answers")
            yield database


@test
def the_pool_and_the_advice():
    lines = "thread_handling = pool-of-threads\nthread_pool_size = 8\n"
    with group(quota_ms=150) as inside, mariadb(inside, lines) as database:
        found = row(inside, "mariadb", "thread_pool_size")
        equal(database.says("thread_pool_size"), 8, "SHOW VARIABLES")
        equal(found["effective"], database.says("thread_pool_size"), "effective")
        equal((found["source"], found["source_detail"]), ("config", f"{database.config}:9"), "source")
        equal(found["aware"], False, "aware")
        equal((found["recommended"], found["surplus"]), (2, 6), "recommended and surplus")
        want("SET GLOBAL thread_pool_size = 2," in found["how"], found["how"])
        database.ask("SET GLOBAL thread_pool_size = 2")
        found = row(inside, "mariadb", "thread_pool_size")
        equal(found["effective"], database.says("thread_pool_size"), "effective after the advice")
        equal((found["effective"], found["configured"]), (2, 8), "after the advice, before the next start")
        want(not found.get("surplus"), found)


@test
def a_thread_for_each_connection():
    with group(quota_ms=100) as inside, mariadb(inside, "") as database, contextlib.ExitStack() as stack:
        for _ in range(5):
            client = stack.enter_context(subprocess.Popen([*database.client, "SELECT SLEEP(60)"], stdout=subprocess.DEVNULL,
                                                          stderr=subprocess.DEVNULL))
            stack.callback(client.kill)

        def threads():
            said = database.ask("SHOW STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_cached')")
            return sum(int(number) for number in said[1::2])
        # The thread that answers is one more; it is kept when its client has gone.
        wait_for(lambda: threads() == 6, "5 connections")
        found = row(inside, "mariadb", "max_connections")
        equal(found["effective"], threads(), "effective")
        equal((found["blocking"], found["source"]), (True, "default"), "blocking and source")
        equal(found["source_detail"], f"at most {database.says('max_connections')}", "source_detail")
        want("recommended" not in found, found)


@test
def its_default_is_its_affinity():
    with group(quota_ms=100) as inside, mariadb(inside, "thread_handling = pool-of-threads\n") as database:
        found = row(inside, "mariadb", "thread_pool_size")
        equal(database.says("thread_pool_size"), len(os.sched_getaffinity(0)), "SHOW VARIABLES")
        equal(found["effective"], database.says("thread_pool_size"), "effective")
        equal(found["source"], "default", "source")


main("mariadb")
