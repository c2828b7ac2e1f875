#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP-FPM: the processes of its own status page are what throttlescope says of each pool."""

import contextlib
import glob
import json
import signal
import socket
import struct

from programs_lib import Skip, equal, folder, group, main, need, rows, server, test, wait_for, want, write

POOL = """[{name}]
user = www-data
group = www-data
listen = {place}/{name}.sock
; pm.max_children = 99
pm = {pm}
pm.max_children = {most}
pm.start_servers = {start}
pm.min_spare_servers = 1
pm.max_spare_servers = {start}
pm.status_path = /status
"""
LINE = 7  # of pm.max_children


def record(kind, body):
    return struct.pack("!BBHHBB", 1, kind, 1, len(body), 0, 0) + body


def processes(place, pool):
    """What the status page of the pool says: a request of FastCGI."""
    def pair(name, value):
        return bytes([len(name), len(value)]) + name.encode() + value.encode()
    query = {"SCRIPT_NAME": "/status", "SCRIPT_FILENAME": "/status", "REQUEST_METHOD": "GET", "QUERY_STRING": "json"}
    parameters = b"".join(pair(*each) for each in query.items())
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(f"{place}/{pool}.sock")
        link.sendall(record(1, struct.pack("!HB5x", 1, 0)) + record(4, parameters) + record(4, b"") + record(5, b""))
        answer = b""
        while data := link.recv(65536):
            answer += data
    body = b""
    while len(answer) >= 8:
        _, kind, _, length, padding, _ = struct.unpack("!BBHHBB", answer[:8])
        if kind == 6:
            body += answer[8:8 + length]
        answer = answer[8 + length + padding:]
    text = body.decode(errors="replace").split("\r\n\r\n", 1)[-1]
    return json.loads(text)["total processes"] if text.startswith("{") else None


def fpm():
    found = sorted(glob.glob("/usr/sbin/php-fpm[0-9]*"))
    if not found:
        raise Skip("php-fpm is not installed")
    return need(found[-1])


@contextlib.contextmanager
def pools(inside, **each):
    """Pools by name: (pm, most, start)."""
    program = fpm()
    with folder() as place:
        config = write(f"{place}/php-fpm.conf", f"[global]\npid = {place}/pid\nerror_log = {place}/log\ninclude = {place}/*.pool\n")
        for name, (pm, most, start) in each.items():
            write(f"{place}/{name}.pool", POOL.format(place=place, name=name, pm=pm, most=most, start=start))
        with server([program, "-n", "-F", "-y", config], inside) as process:
            for name, (_, _, start) in each.items():
                wait_for(lambda name=name, start=start: processes(place, name) == start, f"pool {name} answers")
            yield place, process


def by_file(inside, place):
    found = [each for each in rows(inside) if each["runtime"] == "php-fpm"]
    for each in found:
        equal(each["setting"], "pm.max_children", "setting")
        equal(each["unit"], "processes", "unit")
        equal(each["blocking"], True, "blocking")
        equal(each["source"], "config", "source")
    return {each["source_detail"].removeprefix(f"{place}/"): each for each in found}


@test
def each_pool_is_counted():
    with group(quota_ms=100) as inside, pools(inside, web=("static", 6, 6), api=("dynamic", 9, 2)) as (place, _):
        found = by_file(inside, place)
        equal(sorted(found), [f"api.pool:{LINE}: at most 9", f"web.pool:{LINE}"], "sources")
        web, api = found[f"web.pool:{LINE}"], found[f"api.pool:{LINE}: at most 9"]
        equal(web["effective"], processes(place, "web"), "effective of web")
        equal(api["effective"], processes(place, "api"), "effective of api")
        equal((web["effective"], api["effective"]), (6, 2), "effective")
        want("configured" not in web and "configured" not in api, found)


@test
def an_edit_takes_a_reload():
    with group(quota_ms=100) as inside, pools(inside, web=("static", 6, 6)) as (place, process):
        with open(f"{place}/web.pool", encoding="utf-8") as file:
            text = file.read()
        write(f"{place}/web.pool", text.replace("pm.max_children = 6", "pm.max_children = 1"))
        found = by_file(inside, place)[f"web.pool:{LINE}"]
        equal((found["effective"], found["configured"]), (6, 1), "before the reload")
        process.send_signal(signal.SIGUSR2)
        wait_for(lambda: processes(place, "web") == 1, "one child after the reload")
        found = by_file(inside, place)[f"web.pool:{LINE}"]
        equal(found["effective"], 1, "effective after the reload")
        want("configured" not in found, found)


main("php_fpm")
