#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Redis: its `CONFIG GET io-threads` is what throttlescope says."""

import contextlib
import socket

from programs_lib import equal, folder, group, main, need, row, server, test, wait_for, want, write


def ask(path, *words):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(path)
        link.sendall((" ".join(words) + "\r\nQUIT\r\n").encode())
        answer = b""
        while data := link.recv(65536):
            answer += data
    return answer.decode().split("\r\n")


@contextlib.contextmanager
def redis(inside, lines, *words):
    """Yields its configuration, and the threads that it says it has."""
    program = need("redis-server")
    with folder() as place:
        path = f"{place}/redis.sock"
        config = write(f"{place}/redis.conf", f"port 0\nsave \"\"\nunixsocket {path}\n{lines}")
        with server([program, config, *words], inside, cwd=place):
            wait_for(lambda: ask(path, "PING")[0] == "+PONG", "redis answers")
            # The answer is an array: *2, $10, io-threads, $1, 4
            yield config, int(ask(path, "CONFIG", "GET", "io-threads")[4])


@test
def four_threads_on_one_cpu():
    with group(quota_ms=100) as inside, redis(inside, "io-threads 4\n") as (_, threads):
        found = row(inside, "redis", "io-threads")
        equal(threads, 4, "io-threads of CONFIG GET")
        equal(found["effective"], threads, "effective")
        # Its title is all that is left of its command line, and the file is in no usual place.
        equal(found["source"], "unknown", "source")
        want("overwritten by its title" in found["unreadable"], found)
        equal(found["recommended"], 1, "recommended")
        equal(found["surplus"], 3, "surplus")
        equal(found["aware"], False, "aware")
        want(found["how"].startswith("io-threads 1 "), found["how"])


@test
def without_a_title_its_file_is_named():
    with group(quota_ms=100) as inside, redis(inside, "io-threads 3\n", "--set-proc-title", "no") as (config, threads):
        found = row(inside, "redis", "io-threads")
        equal(found["effective"], threads, "effective")
        equal(found["source"], "config", "source")
        equal(found["source_detail"], f"{config}:4", "source_detail")


@test
def without_a_title_an_argument_is_named():
    words = ("--set-proc-title", "no", "--io-threads", "2")
    with group(quota_ms=100) as inside, redis(inside, "io-threads 3\n", *words) as (_, threads):
        found = row(inside, "redis", "io-threads")
        equal(threads, 2, "io-threads of CONFIG GET")
        equal(found["effective"], threads, "effective")
        equal(found["source"], "argument", "source")
        want("configured" not in found, found)


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=100) as inside, redis(inside, "io-threads 1\n") as (_, threads):
        found = row(inside, "redis", "io-threads")
        equal(threads, 1, "io-threads of CONFIG GET")
        equal(found["effective"], threads, "effective")
        want(not found.get("surplus"), found)


main("redis")
