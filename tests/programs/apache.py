#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Apache httpd: the workers of its own status page are what throttlescope says, in both of its models."""

import contextlib
import os
import urllib.request

from programs_lib import Skip, equal, folder, free_port, group, need, main, row, server, test, wait_for, want, write

MODULES = "/usr/lib/apache2/modules"
CONFIG = """ServerRoot /etc/apache2
ServerName test
Mutex file:{place} default
PidFile {place}/pid
ErrorLog {place}/error.log
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule status_module {modules}/mod_status.so
Listen 127.0.0.1:{port}
User www-data
Group www-data
<IfModule mpm_{mpm}_module>
StartServers {children}
ServerLimit {children}
MinSpareServers {children}
MaxSpareServers {children}
ThreadsPerChild 16
MaxRequestWorkers {most}
</IfModule>
<IfModule !mpm_{mpm}_module>
MaxRequestWorkers 1
</IfModule>
<Location /status>
SetHandler server-status
</Location>
"""


def status(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status?auto", timeout=5) as answer:
        return dict(line.split(": ", 1) for line in answer.read().decode().splitlines() if ": " in line)


def workers(port):
    said = status(port)
    return int(said["BusyWorkers"]) + int(said["IdleWorkers"])


@contextlib.contextmanager
def apache(inside, mpm, children, most):
    program = need("apache2")
    if not os.path.exists(f"{MODULES}/mod_mpm_{mpm}.so"):
        raise Skip(f"{MODULES}/mod_mpm_{mpm}.so is not there")
    with folder() as place:
        port = free_port()
        text = CONFIG.format(place=place, mpm=mpm, modules=MODULES, port=port, children=children, most=most)
        if mpm == "prefork":
            text = text.replace("ThreadsPerChild 16\n", "")
        else:
            text = text.replace(f"MinSpareServers {children}\nMaxSpareServers {children}\n", "")
        config = write(f"{place}/httpd.conf", text)
        with server([program, "-f", config, "-DFOREGROUND"], inside):
            wait_for(lambda: workers(port) == most, f"{most} workers")
            yield port, config, text.splitlines().index(f"MaxRequestWorkers {most}") + 1


def expect(found, port, config, line, most, unit):
    equal(found["effective"], workers(port), "effective")
    equal(found["effective"], most, "effective")
    equal(found["unit"], unit, "unit")
    equal(found["source"], "config", "source")
    equal(found["source_detail"], f"{config}:{line}: at most {most}", "source_detail")
    equal(found["blocking"], True, "blocking")
    # Connections, not CPUs, decide it: there is nothing to advise.
    want("recommended" not in found and "surplus" not in found, found)


@test
def worker_threads_of_all_children():
    with group(quota_ms=100) as inside, apache(inside, "event", 3, 48) as (port, config, line):
        expect(row(inside, "apache", "MaxRequestWorkers"), port, config, line, 48, "threads")


@test
def processes_without_worker_threads():
    with group(quota_ms=100) as inside, apache(inside, "prefork", 6, 6) as (port, config, line):
        expect(row(inside, "apache", "MaxRequestWorkers"), port, config, line, 6, "processes")


main("apache")
