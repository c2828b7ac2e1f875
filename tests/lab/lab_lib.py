# SPDX-License-Identifier: Apache-2.0
"""What the labs share: throttlescope beside a load, what it said as text and as JSON, percentiles, their frame."""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "native"))
import native_lib  # noqa: E402  pylint: disable=wrong-import-position
from native_lib import (LOAD, MS, PROGRAM, Skip, containers, equal, group, need,  # noqa: E402,F401  pylint: disable=wrong-import-position
                        one, running, until, want)

SKIPPED = 77


def number(name, default):
    """A setting of the lab, from the environment."""
    try:
        return type(default)(os.environ.get(name, default))
    except ValueError:
        sys.exit(f"{name} is not a number")


def rank(ranked, share):
    """Of what is sorted, the nearest rank: one that was seen."""
    return ranked[max(0, math.ceil(len(ranked) * share) - 1)]


def percentile(values, share):
    return rank(sorted(values), share)


@contextlib.contextmanager
def folder():
    """A folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="throttlescope-lab-") as made:
        yield made


class Agent:
    """throttlescope beside a load, from its first reading to end(); .text and .record are what it said of the whole time."""

    def __init__(self, name, inside, place, *words):
        self.place, self.text, self.record = f"{place}/{name}", "", None
        self.process = subprocess.Popen([PROGRAM, *words, "--cgroup", inside.name, "--capture", self.place], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        # The first reading is in the capture as soon as it measures.
        until(lambda: self.process.poll() is not None or os.path.isdir(f"{self.place}/tick-000"), f"{words[0]} measures")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.text, trouble = self.process.communicate(timeout=60)
        equal(self.process.returncode, 0, f"status of throttlescope ({trouble.strip()[:200]})")

    def windows(self):
        """Each window of the capture, those included that a report is silent about, with all threads."""
        done = subprocess.run([PROGRAM, "check", "--root", self.place, "-o", "json", "--threads", "10000"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=60, check=False)
        equal(done.returncode, 0, f"status of the replay ({done.stderr.strip()[:200]})")
        return containers(done.stdout)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def agent(*words):
    made = Agent(*words)
    try:
        yield made
    finally:
        made.kill()


def lines_of(text, *keys):
    """The first line of a report, and those of the keys with what they go on with below."""
    lines, kept = text.splitlines(), False
    chosen = lines[:1]
    for line in lines[1:]:
        if not line.startswith("   "):
            kept = line.startswith(tuple(f"  {key} " for key in keys))
        if kept:
            chosen.append(line)
    return chosen


def main(name, lab):
    """Ends with 77 where it cannot be measured, with 1 where the conclusion is not the expected one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for variable in [v for v in os.environ if v.startswith("THROTTLESCOPE_")]:
        del os.environ[variable]
    try:
        if os.geteuid() != 0:
            raise Skip("needs root")
        for program in (PROGRAM, LOAD):
            if not os.access(program, os.X_OK):
                raise Skip(f"{program} is not there: run make all workloads")
        need("tracepoints")
        wrong = lab()
    except Skip as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    for sentence in wrong:
        print(f"not as expected: {sentence}")
    sys.exit(1 if wrong else 0)
