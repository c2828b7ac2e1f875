#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy: what its statistics socket says of its threads is what throttlescope says."""

import contextlib
import socket

from programs_lib import equal, folder, free_port, group, main, need, row, server, test, wait_for, want, write


def ask(path, command):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(path)
        link.sendall(command.encode() + b"\n")
        answer = b""
        while data := link.recv(65536):
            answer += data
    return dict(line.split(": ", 1) for line in answer.decode().splitlines() if ": " in line)


@contextlib.contextmanager
def haproxy(inside, threads, *words):
    need("haproxy")
    with folder() as place:
        config = write(f"{place}/haproxy.cfg", f"global\n    stats socket {place}/stats\n{threads}"
                       f"defaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n"
                       f"frontend f\n    bind 127.0.0.1:{free_port()}\n    http-request return status 200\n")
        with server([need("haproxy"), *words, "-f", config], inside):
            info = {}

            def answers():
                info.update(ask(f"{place}/stats", "show info"))
                return "Nbthread" in info
            wait_for(answers, "haproxy answers")
            yield config, int(info["Nbthread"])


@test
def forty_eight_threads_on_one_cpu():
    with group(quota_ms=100) as inside, haproxy(inside, "    nbthread 48\n", "-db") as (config, threads):
        found = row(inside, "haproxy", "nbthread")
        equal(threads, 48, "Nbthread of show info")
        equal(found["effective"], threads, "effective")
        equal(found["source"], "config", "source")
        equal(found["source_detail"], f"{config}:3", "source_detail")
        equal(found["recommended"], 1, "recommended")
        equal(found["surplus"], 47, "surplus")
        equal(found["aware"], False, "aware")
        want(f"nbthread 1 in the section global of {config}" in found["how"], found["how"])


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=100) as inside, haproxy(inside, "    nbthread 1\n", "-db") as (_, threads):
        found = row(inside, "haproxy", "nbthread")
        equal(found["effective"], threads, "effective")
        equal(threads, 1, "Nbthread of show info")
        want(not found.get("surplus"), found)


@test
def the_worker_of_a_master():
    with group(quota_ms=100) as inside, haproxy(inside, "    nbthread 6\n", "-W", "-db") as (_, threads):
        found = row(inside, "haproxy", "nbthread")
        equal(threads, 6, "Nbthread of show info")
        equal(found["effective"], threads, "effective")


@test
def the_default_is_what_it_says():
    with group(quota_ms=50) as inside, haproxy(inside, "", "-db") as (_, threads):
        found = row(inside, "haproxy", "nbthread")
        equal(found["effective"], threads, "effective")
        equal(found["source"], "default", "source")
        equal(found["recommended"], 1, "recommended")


main("haproxy")
