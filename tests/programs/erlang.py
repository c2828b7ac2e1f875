#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Erlang: the schedulers that it says are online are what throttlescope says."""

import contextlib
import os
import subprocess

from programs_lib import equal, folder, group, main, need, row, server, test, wait_for, want

CODE = 'io:format("~p ~p~n", [erlang:system_info(schedulers), erlang:system_info(schedulers_online)])'
VARIABLES = ("ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS")


@contextlib.contextmanager
def erlang(inside, *words, **environment):
    """Yields its schedulers and how many of them are online."""
    env = {key: value for key, value in os.environ.items() if key not in VARIABLES} | environment
    with folder() as place:
        def said():
            with open(f"{place}/out", encoding="utf-8") as file:
                return file.read().split()
        with open(f"{place}/out", "w", encoding="utf-8") as out, \
                server([need("erl"), *words, "-noshell", "-eval", CODE], inside, stdout=out,
                       stderr=subprocess.STDOUT, env=env):
            wait_for(lambda: len(said()) == 2, "it runs")
            yield tuple(int(each) for each in said())


@test
def schedulers_online():
    with group(quota_ms=200) as inside, erlang(inside, "+S", "5:3") as (total, online):
        found = row(inside, "beam", "+S")
        equal((total, online, found["effective"]), (5, 3, online), "effective")
        equal((found["source"], found["source_detail"], found["spins"]), ("argument", "+S 5:3", True), "source")
        equal((found["recommended"], found["surplus"]), (2, 1), "recommended and surplus")
        want("+S 2:2" in found["how"], found["how"])


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=200) as inside, erlang(inside, ERL_FLAGS="+S 2:2 +sbwt none") as (_, online):
        found = row(inside, "beam", "+S")
        equal((found["effective"], found["spins"]), (online, False), "effective and spins")
        want(not found.get("surplus"), found)


@test
def nothing_said_is_not_guessed():
    with group(quota_ms=200) as inside, erlang(inside) as (total, _):
        found = row(inside, "beam", "+S")
        want(("effective" not in found and "unreadable" in found) or (total == 1 and found["effective"] == 1), found)


main("erlang")
