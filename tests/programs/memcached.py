#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""memcached: its `stats settings` is what throttlescope says."""

import contextlib
import socket

from programs_lib import equal, folder, group, main, need, row, server, test, wait_for, want


def settings(path):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(path)
        link.sendall(b"stats settings\r\nquit\r\n")
        answer = b""
        while data := link.recv(65536):
            answer += data
    return dict(line.split(" ", 2)[1:] for line in answer.decode().split("\r\n") if line.startswith("STAT "))


@contextlib.contextmanager
def memcached(inside, *words):
    """Yields the threads that it says it has."""
    program = need("memcached")
    with folder() as place:
        path = f"{place}/socket"
        with server([program, "-u", "root", "-s", path, *words], inside):
            said = {}

            def answers():
                said.update(settings(path))
                return "num_threads" in said
            wait_for(answers, "memcached answers")
            yield int(said["num_threads"])


@test
def four_are_its_default():
    with group(quota_ms=50) as inside, memcached(inside) as threads:
        found = row(inside, "memcached", "-t")
        equal(threads, 4, "num_threads of stats settings")
        equal(found["effective"], threads, "effective")
        equal(found["source"], "default", "source")
        equal(found["recommended"], 1, "recommended")
        equal(found["surplus"], 3, "surplus")
        equal(found["aware"], False, "aware")
        want("-t 1 " in found["how"], found["how"])


@test
def its_argument_counts():
    for words in (("-t", "7"), ("-t7",), ("--threads=7",)):
        with group(quota_ms=200) as inside, memcached(inside, *words) as threads:
            found = row(inside, "memcached", "-t")
            equal(threads, 7, "num_threads of stats settings")
            equal(found["effective"], threads, "effective")
            equal(found["source"], "argument", "source")
            equal(found["recommended"], 2, "recommended")


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=50) as inside, memcached(inside, "-t", "1") as threads:
        found = row(inside, "memcached", "-t")
        equal(found["effective"], threads, "effective")
        want(not found.get("surplus"), found)


main("memcached")
