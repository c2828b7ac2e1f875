#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gunicorn, uvicorn and Celery: the workers that they say have started are what throttlescope says."""

import contextlib
import os
import re
import subprocess
import sys

from programs_lib import equal, folder, free_port, group, main, need, row, server, test, wait_for, want, write

APP = """def app(environ, start_response):
    start_response("200 OK", [])
    return [b"ok"]


async def asgi(scope, receive, send):
    pass
"""
VARIABLES = ("WEB_CONCURRENCY", "UVICORN_WORKERS", "GUNICORN_CMD_ARGS")


@contextlib.contextmanager
def python(inside, words, started, workers, config=None, **environment):
    """A server in a folder with an application, once its log has `workers` lines that match `started`; yields their number."""
    env = {key: value for key, value in os.environ.items() if key not in VARIABLES} | \
        {"PYTHONUNBUFFERED": "1"} | environment
    with folder() as place:
        write(f"{place}/app.py", APP)
        if config:
            write(f"{place}/gunicorn.conf.py", config)

        def said():
            with open(f"{place}/log", encoding="utf-8") as file:
                return len(re.findall(started, file.read(), re.M))
        with open(f"{place}/log", "w", encoding="utf-8") as log, \
                server(words, inside, cwd=place, stdout=log, stderr=subprocess.STDOUT, env=env):
            wait_for(lambda: said() == workers, f"{workers} workers")
            yield said()


def gunicorn(inside, workers, *words, **more):
    words = [need("gunicorn"), "-b", f"127.0.0.1:{free_port()}", *words, "app:app"]
    return python(inside, words, r"Booting worker with pid", workers, **more)


def uvicorn(inside, workers, *words, **more):
    words = [need("uvicorn"), "--port", str(free_port()), *words, "app:asgi"]
    return python(inside, words, r"Started server process", workers, **more)


@test
def gunicorn_by_its_arguments():
    with group(quota_ms=100) as inside, gunicorn(inside, 4, "-w", "4") as workers:
        found = row(inside, "gunicorn", "--workers")
        equal((found["effective"], found["unit"]), (workers, "processes"), "effective")
        equal((found["source"], found["source_detail"]), ("argument", "-w 4"), "source")
        equal((found["recommended"], found["surplus"]), (1, 3), "recommended and surplus")
        want("--workers 1" in found["how"], found["how"])


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=100) as inside, gunicorn(inside, 1, WEB_CONCURRENCY="1") as workers:
        found = row(inside, "gunicorn", "--workers")
        equal((found["effective"], found["source"], found["source_detail"]), (workers, "environment", "WEB_CONCURRENCY"),
              "effective and source")
        want(not found.get("surplus"), found)


@test
def gunicorn_by_its_configuration():
    text = "import multiprocessing\nworkers = multiprocessing.cpu_count() * 2 + 1\n"
    wanted = os.sysconf("SC_NPROCESSORS_ONLN") * 2 + 1
    with group(quota_ms=200) as inside, gunicorn(inside, wanted, config=text) as workers:
        found = row(inside, "gunicorn", "--workers")
        equal((found["effective"], found["source"], found["source_detail"]), (workers, "config", "gunicorn.conf.py:2"),
              "effective and source")


@test
def uvicorn_with_workers():
    with group(quota_ms=200) as inside, uvicorn(inside, 3, "--workers", "3") as workers:
        found = row(inside, "uvicorn", "--workers")
        equal((found["effective"], found["source"], found["source_detail"]), (workers, "argument", "--workers 3"),
              "effective and source")
        equal((found["recommended"], found["surplus"]), (2, 1), "recommended and surplus")


@test
def uvicorn_by_its_environment():
    for variable in ("UVICORN_WORKERS", "WEB_CONCURRENCY"):
        with group() as inside, uvicorn(inside, 2, **{variable: "2"}) as workers:
            found = row(inside, "uvicorn", "--workers")
            equal((found["effective"], found["source"], found["source_detail"]), (workers, "environment", variable), variable)


@test
def uvicorn_alone():
    with group() as inside, uvicorn(inside, 1) as workers:
        found = row(inside, "uvicorn", "--workers")
        equal((found["effective"], found["source"]), (workers, "default"), "effective and source")


@test
def celery():
    # Its script takes the first interpreter of PATH, which may lack the distribution's modules.
    words = [sys.executable, need("celery"), "-b", "memory://", "worker", "-l", "info", "-c", "3"]
    with group(quota_ms=200) as inside, python(inside, words, r"\.> concurrency: +3 \(prefork\)", 1):
        def children():
            return len(inside.pids()) == 4
        wait_for(children, "its pool")
        found = row(inside, "celery", "--concurrency")
        equal((found["effective"], found["source"], found["source_detail"]), (3, "argument", "-c 3"), "effective and source")


main("python_servers")
