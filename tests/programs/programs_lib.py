# SPDX-License-Identifier: Apache-2.0
"""What the tests with real programs share: a program in a limited group, and what throttlescope says runs there."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "native"))
import native_lib  # noqa: E402  pylint: disable=wrong-import-position
from native_lib import Skip, check, equal, group, main, one, running, test, want  # noqa: E402,F401  pylint: disable=wrong-import-position

READY = 20.0  # seconds a program has to come up


def need(*programs):
    """Skips unless all of them are installed; returns the path of the first."""
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip(f"{program} is not installed")
    return shutil.which(programs[0], path=os.environ["PATH"] + ":/usr/sbin:/sbin")


@contextlib.contextmanager
def folder():
    """A folder that goes away, which any user may enter."""
    with tempfile.TemporaryDirectory(prefix="throttlescope-programs-") as made:
        os.chmod(made, 0o755)
        yield made


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what):
    """Until it holds; an OSError counts as not yet."""
    end = time.monotonic() + READY
    while True:
        with contextlib.suppress(OSError):
            if condition():
                return
        want(time.monotonic() < end, f"{what}: not within {READY} s")
        time.sleep(0.05)


def wait_for_port(port):
    def connects():
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    wait_for(connects, f"port {port} answers")


def rows(inside, seconds="200ms"):
    """`parallelism[]` of the group."""
    return one(check("--cgroup", inside.name, "--for", seconds)).get("parallelism", [])


def row(inside, runtime, setting):
    found = rows(inside)
    return one([each for each in found if each["runtime"] == runtime and each["setting"] == setting],
               f"rows of {runtime} {setting} among {[(each['runtime'], each['setting']) for each in found]}")


@contextlib.contextmanager
def server(words, inside, **more):
    """A program in the group; it, and what it started there, ends with the block."""
    more.setdefault("stdout", subprocess.DEVNULL)
    more.setdefault("stderr", subprocess.DEVNULL)
    with running(words, inside, stdin=subprocess.DEVNULL, **more) as process:
        yield process
