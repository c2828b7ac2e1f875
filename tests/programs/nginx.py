#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""nginx: the workers that its master has are what throttlescope says, also through reloads."""

import contextlib
import signal

from programs_lib import equal, folder, free_port, group, main, need, row, server, test, wait_for, wait_for_port, want, write


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        return len(file.read().split())


@contextlib.contextmanager
def nginx(inside, directive, *words):
    program = need("nginx")
    with folder() as place:
        port = free_port()
        text = (f"pid {place}/pid;\nerror_log {place}/error.log;\nevents {{ worker_connections 64; }}\n"
                f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; return 200; }} }}\n")
        config = write(f"{place}/nginx.conf", f"{directive}daemon off;\n{text}")
        with server([program, "-c", config, *words], inside) as process:
            wait_for_port(port)
            yield config, process


@test
def eight_workers_on_half_a_cpu():
    with group(quota_ms=50) as inside, nginx(inside, "worker_processes 8;\n") as (config, process):
        wait_for(lambda: children(process) == 8, "8 workers")
        found = row(inside, "nginx", "worker_processes")
        equal(found["effective"], children(process), "effective")
        equal(found["unit"], "processes", "unit")
        equal(found["source"], "config", "source")
        equal(found["source_detail"], f"{config}:1", "source_detail")
        equal(found["recommended"], 1, "recommended")
        equal(found["surplus"], 7, "surplus")
        want(found["surplus_memory_bytes"] > 0, found)
        write(config, open(config, encoding="utf-8").read().replace("worker_processes 8", "worker_processes 1"))
        found = row(inside, "nginx", "worker_processes")
        equal(found["effective"], 8, "effective before the reload")
        equal(found["configured"], 1, "configured before the reload")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: children(process) == 1, "1 worker after the reload")
        found = row(inside, "nginx", "worker_processes")
        equal(found["effective"], 1, "effective after the advice")
        want(not found.get("surplus"), found)


@test
def auto_is_the_machine():
    with group(quota_ms=100) as inside, nginx(inside, "worker_processes auto;\n") as (config, process):
        found = row(inside, "nginx", "worker_processes")
        equal(found["effective"], children(process), "effective")
        equal(found["source_detail"], f"{config}:1: auto", "source_detail")
        equal(found["aware"], False, "aware")


@test
def an_argument_beats_the_file():
    with group(quota_ms=100) as inside, nginx(inside, "", "-g", "worker_processes 3;") as (_, process):
        wait_for(lambda: children(process) == 3, "3 workers")
        found = row(inside, "nginx", "worker_processes")
        equal(found["effective"], 3, "effective")
        equal(found["source"], "argument", "source")


main("nginx")
