# SPDX-License-Identifier: Apache-2.0
"""What the cli tests share: running the program, waiting with a deadline, groups with a limit, one line a test."""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
import traceback

PROGRAM = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "throttlescope"))
FILES = ["--method", "files"]
DEADLINE = 20.0

tests = []
failures = 0


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def main():
    """Runs the tests whose name contains one of the words given."""
    global failures
    for variable in [v for v in os.environ if v.startswith("THROTTLESCOPE_")]:
        del os.environ[variable]
    for function in tests:
        name = function.__name__.replace("_", " ")
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        try:
            function()
            print(f"PASS cli/{name}", flush=True)
        except Skip as reason:
            print(f"SKIP cli/{name}: {reason}", flush=True)
        except Exception as error:  # a test that breaks is a test that fails
            failures += 1
            text = str(error).strip().replace("\n", " | ") or type(error).__name__
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL cli/{name}: line {where.lineno}: {text[:600]}", flush=True)
    sys.exit(1 if failures else 0)


def want(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(got, wanted, what=""):
    want(got == wanted, f"{what} is {got!r}, not {wanted!r}")


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


def run(*words, env=None, timeout=DEADLINE, **more):
    """The program to its end; status is negative for a signal."""
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run([PROGRAM, *words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                          timeout=timeout, text=True, errors="replace", **more)
    return Result(done.returncode, done.stdout, done.stderr)


def start(*words, **more):
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([PROGRAM, *words], text=True, errors="replace", **more)


def finish(process, timeout=DEADLINE):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.communicate()
        raise AssertionError(f"did not end in {timeout} s") from None
    return Result(process.returncode, out, err)


def children(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    return []


def kill_tree(pid):
    """A wrapper that is killed leaves its command behind, with our pipes."""
    below = children(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    for child in below:
        kill_tree(child)


def until(condition, what, timeout=DEADLINE):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"{what}: not within {timeout} s")


def proc_status(pid, field):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return line.split(":", 1)[1].strip()
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def is_blocked(pid, number):
    mask = proc_status(pid, "SigBlk")
    return mask is not None and int(mask, 16) >> (number - 1) & 1


def until_listening(process, number=signal.SIGTERM):
    """From here on a signal is the program's to handle; before, nothing could."""
    until(lambda: process.poll() is not None or is_blocked(process.pid, number), "the program listens to signals")


def state(pid):
    value = proc_status(pid, "State")
    return value[0] if value else None


def command_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def cpu_groups():
    """Where a group with a CPU limit can be made, and how the limit is written."""
    if os.path.isfile("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or glob.glob("/sys/fs/cgroup/cpu/tasks"):
        return "/sys/fs/cgroup/cpu", "v1"
    try:
        with open("/sys/fs/cgroup/cgroup.subtree_control", encoding="utf-8") as file:
            if "cpu" in file.read().split():
                return "/sys/fs/cgroup", "v2"
    except OSError:
        pass
    return None, None


@contextlib.contextmanager
def group(limit_percent, busy=0):
    """A group with a limit and some busy processes in it; yields its name below the hierarchy and its directory."""
    top, version = cpu_groups()
    name = f"throttlescope-cli-{os.getpid()}-{time.monotonic_ns()}"
    path = f"{top}/{name}"
    members = []
    try:
        try:
            os.mkdir(path)
            if version == "v1":
                write(f"{path}/cpu.cfs_quota_us", str(limit_percent * 1000))
            else:
                write(f"{path}/cpu.max", f"{limit_percent * 1000} 100000")
        except (OSError, TypeError) as error:
            raise Skip(f"no group with a CPU limit can be made: {error}") from None
        for _ in range(busy):
            members.append(start_in(path, ["sh", "-c", "while :; do :; done"]))
        yield "/" + name, path
    finally:
        for member in members:
            member.kill()
            member.wait()
        remove_group(path)


def start_in(path, words, **more):
    return subprocess.Popen(words, preexec_fn=lambda: write(f"{path}/cgroup.procs", str(os.getpid())), **more)


def remove_group(path):
    with contextlib.suppress(FileNotFoundError, AssertionError):
        until(lambda: try_rmdir(path), "the group is empty", 5)


def try_rmdir(path):
    try:
        os.rmdir(path)
        return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
