# SPDX-License-Identifier: Apache-2.0
"""What the native tests share: groups of our own, the workload program, reports that are checked against the schema."""

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenarios"))
import cli_lib  # noqa: E402  pylint: disable=wrong-import-position
from cli_lib import PROGRAM, Skip, equal, try_rmdir, want, write  # noqa: E402,F401  pylint: disable=wrong-import-position

LOAD = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "tests/load"))
DEADLINE = 60.0  # a crowded machine is no failure
run = functools.partial(cli_lib.run, timeout=DEADLINE)
until = functools.partial(cli_lib.until, timeout=DEADLINE)
METHODS = ("tracepoints", "files")
MS = 1000000
LINE_MAX = 16384
MEASURED = ("run_ns", "wait_ns", "stall_ns", "sleep_ns")

tests = []
reports = []  # every line of JSON that a test has read: all are held against the schema at the end
works = {}


def test(function):
    tests.append(function)
    return function


def each_method(function):
    """A test of its own with every method of this machine."""
    for method in METHODS:
        def one(method=method):
            need(method)
            function(method)
        one.__name__ = f"{function.__name__} by {method}"
        tests.append(one)
    return function


def need(method):
    """Skips unless the method works here at all."""
    if method not in works:
        result = run("check", "--method", method, "--pid", str(os.getpid()), "--for", "100ms", "--threads", "0")
        works[method] = (result.status, result.err.strip().splitlines()[:1])
    if works[method][0] != 0:
        raise Skip(f"method {method} does not work here: {' '.join(works[method][1])[:200]}")


def main(name):
    """Runs the tests whose name contains one of the words given; `name` stands before theirs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for variable in [v for v in os.environ if v.startswith("THROTTLESCOPE_")]:
        del os.environ[variable]
    failures = 0
    for function in tests + [every_report_holds_the_contract]:
        title = function.__name__.replace("_", " ")
        if len(sys.argv) > 1 and function in tests and not any(word in title for word in sys.argv[1:]):
            continue
        begun = time.monotonic()
        try:
            function()
            print(f"PASS {name}/{title}", flush=True)
        except Skip as reason:
            print(f"SKIP {name}/{title}: {reason}", flush=True)
        except Exception as error:  # a test that breaks is a test that fails
            failures += 1
            text = str(error).strip().replace("\n", " | ") or type(error).__name__
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL {name}/{title}: line {where.lineno}: {text[:800]}", flush=True)
        if os.environ.get("TIMES"):
            print(f"     {time.monotonic() - begun:.1f} s", flush=True)
    sys.exit(1 if failures else 0)


def every_report_holds_the_contract():
    if not reports:
        raise Skip("no test here has read a report")
    done = subprocess.run(["tests/scenarios/schema.sh", "-"], input="\n".join(reports) + "\n", text=True,
                          capture_output=True, check=False)
    if done.stdout.startswith("SKIP"):
        raise Skip(done.stdout.split(": ", 1)[1].strip())
    equal(done.returncode, 0, f"status of the schema's test ({done.stdout[:600]}{done.stderr[:200]})")


def records(text):
    """The reports of JSON lines, each noted for the schema."""
    lines = text.splitlines()
    reports.extend(lines)
    for line in lines:
        want(len(line.encode(errors="surrogateescape")) < LINE_MAX, f"a line of {len(line)} bytes")
    return [json.loads(line) for line in lines]


def containers(text):
    return [record for record in records(text) if record["type"] == "container"]


def check(*words, status=0, wrap=(), timeout=DEADLINE, **more):
    """One `check -o json` to its end: its container reports."""
    done = subprocess.run([*wrap, PROGRAM, "check", "-o", "json", *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="surrogateescape", timeout=timeout, check=False, **more)
    equal(done.returncode, status, f"exit status ({done.stderr.strip()})")
    return containers(done.stdout)


def one(items, what="report"):
    want(len(items) == 1, f"{len(items)} of {what} instead of one")
    return items[0]


def near(got, wanted, share, slack, what):
    want(abs(got - wanted) <= abs(wanted) * share + slack,
         f"{what}: {got}, expected {wanted} within {share:.1%} and {slack}")


# ---- groups ----

class Group:
    """A group of the cpu controller; .name is its path as the program takes it, .path its folder."""

    def __init__(self, name, path, version):
        self.name, self.path, self.version = name, path, version

    def limit(self, quota_ms, period_ms=100):
        quota, period = round(quota_ms * 1000), round(period_ms * 1000)
        if self.version == 1:
            write(f"{self.path}/cpu.cfs_period_us", str(period))
            write(f"{self.path}/cpu.cfs_quota_us", str(quota))
        else:
            write(f"{self.path}/cpu.max", f"{quota} {period}")

    def preferred(self):
        """Before all that runs elsewhere on this machine: what the group wants it gets, up to its limit."""
        if self.version == 1:
            write(f"{self.path}/cpu.shares", "262144")
        else:
            write(f"{self.path}/cpu.weight", "10000")

    def stat(self, file="cpu.stat"):
        with open(f"{self.path}/{file}", encoding="utf-8") as lines:
            return {key: int(value) for key, value in (line.split() for line in lines)}

    def throttled_ns(self, file="cpu.stat"):
        stat = self.stat(file)
        return stat["throttled_time"] if "throttled_time" in stat else stat["throttled_usec"] * 1000

    def pids(self):
        """Processes of this group and those below."""
        found = []
        for folder, _, _ in os.walk(self.path):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="utf-8") as lines:
                found += [int(line) for line in lines]
        return found

    def enter(self):
        """For preexec_fn."""
        write(f"{self.path}/cgroup.procs", str(os.getpid()))


def hierarchy():
    done = subprocess.run([LOAD, "where"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Skip(done.stdout.strip() or "no cpu controller")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@contextlib.contextmanager
def group(*, below=None, quota_ms=None, period_ms=100, name=None):
    """A group that is removed in the end, with all that still runs in it."""
    if below:
        version, folder, above = below.version, below.path, below.name
    else:
        where = hierarchy()
        # Below the mount, not below our own group: in v2 a group with processes cannot have limited ones below it.
        version, folder, above = int(where["version"]), where["mount"], where["root"].rstrip("/")
    name = name or f"throttlescope-native-{os.getpid()}-{time.monotonic_ns()}"
    made = Group(f"{above}/{name}", f"{folder}/{name}", version)
    try:
        if version == 2:
            write(f"{folder}/cgroup.subtree_control", "+cpu")
        os.mkdir(made.path)
        if not below:
            made.preferred()
    except OSError as error:
        raise Skip(f"no group of the cpu controller can be made: {error}") from None
    try:
        if quota_ms is not None:
            made.limit(quota_ms, period_ms)
        yield made
    finally:
        remove(made)


def remove(made):
    """With all that still runs in it."""
    end = time.monotonic() + 20
    while not try_rmdir(made.path) and time.monotonic() < end:
        for pid in made.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


@contextlib.contextmanager
def running(words, inside=None, **more):
    """A process, in a group if one is given; killed in the end, with what it started in that group."""
    process = subprocess.Popen(words, preexec_fn=inside.enter if inside else None, **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextlib.contextmanager
def busy(inside, count=2):
    """Busy processes of one thread each."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running(["sh", "-c", "while :; do :; done"], inside)) for _ in range(count)]


class Lines:
    """Lines from a pipe, each with a deadline."""

    def __init__(self, stream):
        self.fd, self.rest = stream.fileno(), b""

    def next(self, timeout):
        """None: no whole line within the time; "": the end."""
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            data = os.read(self.fd, 65536)
            if not data:
                return ""
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="surrogateescape") + "\n"


class Load:
    """The workload program; its threads are parked until go()."""

    def __init__(self, words, inside=None, prefix=()):
        # What it says when it is told to end is of no interest.
        self.process = subprocess.Popen([*prefix, LOAD, *words], stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=inside.enter if inside else None)
        self.reader, self.setup, self.lines, self.last = Lines(self.process.stdout), None, [], ""
        while self.setup is None or not self.last.startswith("READY"):
            self.last = self.line()
            if self.last.startswith("UNSUPPORTED"):
                self.process.wait()
                raise Skip(self.last.strip())
            if self.last.startswith("{"):
                self.setup = json.loads(self.last)

    def line(self, timeout=60):
        text = self.reader.next(timeout)
        want(text, "the workload says nothing" if text is None else "the workload has ended")
        return text

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def results(self):
        """Waits for the end of the work; the lines of the truth."""
        while True:
            line = json.loads(self.line())
            self.lines.append(line)
            if line["type"] == "machine":
                return self.lines

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def load(*words, inside=None, prefix=(), go=True):
    work = Load(words, inside, prefix)
    try:
        if go:
            work.go()
        yield work
    finally:
        if work.process.poll() is None and prefix:
            work.process.kill()  # unshare passes no signal on, but its own end
        elif work.process.poll() is None:
            work.process.terminate()
        work.end()
        if "--here" not in words:
            for each in reversed(work.setup["groups"] if work.setup else []):
                remove(Group(each["cgroup"], each["path"], each["version"]))


_folder = None


def scratch(name):
    """A path below a folder that goes away at the end."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="throttlescope-native-")
        atexit.register(_folder.cleanup)
    return os.path.join(_folder.name, name)


class Watch:
    """`watch -o json` (or another command that goes on), line by line."""

    def __init__(self, *words, wrap=(), command="watch", **more):
        more.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen([*wrap, PROGRAM, command, "-o", "json", *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, **more)
        self.reader, self.seen = Lines(self.process.stdout), []

    def next(self, condition, what, timeout=DEADLINE):
        """Reads until a record fulfils the condition."""
        end = time.monotonic() + timeout
        while True:
            line = self.reader.next(max(0, end - time.monotonic()))
            want(line, f"{what}: not within {timeout} s; " + "; ".join(map(brief, self.seen[-5:])) +
                 ("; it has ended" if line == "" else ""))
            record = one(records(line))
            self.seen.append(record)
            if condition(record):
                return record

    def begun(self):
        return self.next(lambda r: r["type"] == "notice", "the notice that it has begun")

    def stop(self, number=signal.SIGTERM, timeout=DEADLINE):
        """Ends it; returns (status, the rest of the records, standard error)."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"did not end within {timeout} s of the signal") from None
        rest = records((self.reader.rest + out).decode(errors="surrogateescape"))
        self.seen += rest
        return self.process.returncode, rest, err.decode(errors="replace").strip() if err else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()


def brief(record):
    return f"{record['type']}: {record.get('text') or record.get('verdict') or ''}"
