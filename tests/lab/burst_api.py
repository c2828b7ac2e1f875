#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow while its CPU graph looks idle: an API in Python whose requests come evenly or in bursts, below a limit it never uses up.

Each request is about 4 ms of SHA-256; 20 a second, evenly or 8 every 400 ms; in a group limited to 0.25 and to 0.5 CPU. Latency counts
from the time a request was planned for, so that a late client hides nothing. Where it went in the request of the 99th percentile:
  in line    from the planned time until the server made the request's thread: by stopwatch. Nobody's thread yet, so it is sleep: that
             which overlaps a stall of the container (throttlescope's `stalls`, to the millisecond) counts as sleep during a stall
  its thread run, stall, wait, sleep and sleep during a stall as throttlescope measured them for the thread that served it alone
  rest       what the two leave of the latency: the answer's way back; below 0: the thread took time to end after the answer
"Sleep during a stall" is an upper bound of what sat behind a stalled thread (the GIL's holder, the one that accepts).
Ends with 1 if a conclusion is not the expected one, with 77 if this cannot be measured here.

environment: BUILD (build), LAB_SECONDS (12 a case), LAB_CPUS ("0.25 0.5"), LAB_SHAPES ("even bursts"), LAB_ROUNDS (5025, or what takes 4 ms here)
"""

import contextlib
import datetime
import json
import os
import socket
import subprocess
import sys
import threading
import time

from lab_lib import MS, Skip, agent, folder, group, lines_of, main, native_lib, number, percentile, rank, running, want

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "burst_server.py")
SHAPES = {"even": (1, 0.05), "bursts": (8, 0.4)}  # so many at a time, seconds from one time to the next
ROUNDS, COST_NS = 5025, 4 * MS
OF_QUOTA = {"CPUThrottled", "BurstExceedsQuota", "ParallelismExceedsLimit"}
PARTS = ("run", "stall", "wait", "sleep in stall", "other sleep", "rest")


class Request(threading.Thread):
    """One request by a connection of its own, at its time."""

    def __init__(self, port, planned_ns):
        super().__init__(daemon=True)
        self.port, self.planned_ns, self.latency_ns, self.answer, self.trouble = port, planned_ns, None, None, None

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as link:
                link.sendall(b"GET / HTTP/1.0\r\n\r\n")
                data = b""
                while more := link.recv(65536):
                    data += more
            # The connection closes where the thread is about to end: the latency and the thread's figures are of the same time.
            self.latency_ns = time.monotonic_ns() - self.planned_ns
            self.answer = json.loads(data.split(b"\r\n\r\n", 1)[1])
        except (OSError, ValueError, IndexError) as error:
            self.trouble = error


def send(port, shape, seconds):
    """All requests of a case, each sent at its time whatever became of those before."""
    count, apart = SHAPES[shape]
    begun_ns, sent = time.monotonic_ns() + 300 * MS, []
    for turn in range(round(seconds / apart)):
        planned_ns = begun_ns + round(turn * apart * 1e9)
        ready = [Request(port, planned_ns) for _ in range(count)]
        time.sleep(max(0, (planned_ns - time.monotonic_ns()) / 1e9))
        for request in ready:
            request.start()
        sent += ready
    for request in sent:
        request.join(60)
        want(request.answer, f"a request of {shape} failed: {request.trouble or 'no answer within a minute'}")
    return sent


def stalls_of(windows):
    """[from, to) of the container's stalls, on the clock of the requests."""
    ahead_ns, found = time.time_ns() - time.monotonic_ns(), []
    for window in windows:
        for stall in window.get("stalls", []):
            start = datetime.datetime.fromisoformat(stall["start"].replace("Z", "+00:00"))
            begun_ns = round(start.timestamp() * 1000) * MS - ahead_ns
            found.append((begun_ns, begun_ns + stall["ns"]))
    return found


def split(request, windows):
    """Where the request's time went; None if its thread's record is not whole."""
    rows = [row for window in windows for row in window["threads"] if row["host_tid"] == request.answer["tid"]]
    if not rows or not any(row["ended"] for row in rows):
        return None
    figures = {key: sum(row[key] for row in rows) for key in ("run_ns", "stall_ns", "wait_ns", "sleep_ns", "sleep_in_stall_ns")}
    begun_ns, made_ns = request.planned_ns, request.answer["made_ns"]
    line_ns = made_ns - begun_ns
    line_in_stall_ns = min(line_ns, sum(max(0, min(to, made_ns) - max(since, begun_ns)) for since, to in stalls_of(windows)))
    parts = [figures["run_ns"], figures["stall_ns"], figures["wait_ns"], figures["sleep_in_stall_ns"] + line_in_stall_ns,
             figures["sleep_ns"] - figures["sleep_in_stall_ns"] + line_ns - line_in_stall_ns]
    return {"parts": parts + [request.latency_ns - sum(parts)], "line": line_ns, "line in stall": line_in_stall_ns}


def ms(value):
    return f"{value / MS:.1f}"


def start(rounds, inside, stack):
    """The server, and what it says of itself."""
    process = stack.enter_context(running([sys.executable, SERVER, str(rounds)], inside, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE))
    line = native_lib.Lines(process.stdout).next(30)
    want(line, "the server does not begin")
    return json.loads(line)


def measure(shape, cpus, rounds, seconds):
    """One case: its row, what throttlescope said, and what was not as expected."""
    with contextlib.ExitStack() as stack:
        inside, place = stack.enter_context(group(name=f"throttlescope-lab-{os.getpid()}")), stack.enter_context(folder())
        port = start(rounds, inside, stack)["port"]
        inside.limit(cpus * 100)  # its start is not the story
        windows = stack.enter_context(agent("windows", inside, place, "watch", "--interval", "1s"))
        whole = stack.enter_context(agent("whole", inside, place, "check", "--for", "10m"))
        before = inside.stat()
        sent = send(port, shape, seconds)
        after = inside.stat()
        whole.end()
        time.sleep(0.2)  # below 100 ms the last window would not count
        windows.end()
        each, report = windows.windows(), whole.windows()[-1]

    ranked = sorted(sent, key=lambda request: request.latency_ns)
    slow = rank(ranked, 0.99)
    latencies = [request.latency_ns for request in sent]
    periods, throttled = (after[key] - before[key] for key in ("nr_periods", "nr_throttled"))
    parts = split(slow, each)
    split_text = "  the record of its thread is not whole"
    if parts:
        split_text = "".join(f"{ms(part):>{max(6, len(name)) + 2}}" for part, name in zip(parts["parts"], PARTS)) + \
            f"   {ms(parts['line']):>6} ({ms(parts['line in stall'])} in a stall)"
    print(f"{shape:>6} {cpus:5} {len(sent):9} {ms(percentile(latencies, 0.5)):>7} {ms(slow.latency_ns):>7} {throttled:5} of {periods:<4}" +
          split_text, flush=True)
    return throttled, report, lines_of(whole.text, "do"), parts, slow


def judge(shape, cpus, throttled, report, parts, slow):
    """The article's conclusion, not more: use below the limit on average, bursts cut by the quota, evenly spread work not."""
    codes = [finding["code"] for finding in report["findings"]]
    case = f"{shape} at {cpus:g} CPU"
    if not parts:
        yield f"{case}: no split of the request of the 99th percentile"
    elif abs(parts["parts"][-1]) > 0.02 * slow.latency_ns + 3 * MS:
        yield f"{case}: {ms(parts['parts'][-1])} ms of {ms(slow.latency_ns)} ms are in no part"
    if report["cpu"]["of_limit"] >= 1:
        yield f"{case}: it used {report['cpu']['of_limit']:.0%} of its limit"
    if "ParallelismExceedsLimit" in codes:
        yield f"{case}: threads blamed, but one runs at a time"
    if shape == "bursts" and cpus == 0.25 and codes[:1] != ["BurstExceedsQuota"]:
        yield f"{case}: first of its findings is {codes[:1]}, not BurstExceedsQuota"
    blamed = [finding["code"] for finding in report["findings"] if finding["severity"] == "warning" and finding["code"] in OF_QUOTA]
    if blamed and (shape == "even" or not throttled):
        yield f"{case}: warns of {blamed} though {'no period was throttled' if not throttled else 'nothing comes in bursts'}"


def calibrated():
    """The rounds that take 4 ms here; the article's machine needed 5,025."""
    def cost(rounds):
        with contextlib.ExitStack() as stack:
            return start(rounds, stack.enter_context(group(name=f"throttlescope-lab-{os.getpid()}")), stack)["cost_ns"]
    took_ns = cost(ROUNDS)
    wanted = number("LAB_ROUNDS", 0)
    rounds = wanted or (ROUNDS if abs(took_ns - COST_NS) < 0.15 * COST_NS else round(ROUNDS * COST_NS / took_ns))
    print(f"{ROUNDS} rounds of SHA-256 take {took_ns / MS:.2f} ms of CPU here" +
          (f"; {rounds} are used, which take {cost(rounds) / MS:.2f} ms" if rounds != ROUNDS else ""))
    return rounds


def lab():
    if sys.version_info[:2] != (3, 11):
        print(f"(the article's Python is 3.11, this is {sys.version.split()[0]})")
    seconds, wrong, said = number("LAB_SECONDS", 12.0), [], []
    shapes = os.environ.get("LAB_SHAPES", "even bursts").split()
    if not set(shapes) <= set(SHAPES):
        raise Skip(f"LAB_SHAPES: not of {' '.join(SHAPES)}")
    rounds = calibrated()
    print(f"ThreadingHTTPServer of Python {sys.version.split()[0]}, 20 requests a second, {seconds:g} s a case. All times in ms.\n"
          f"{'':21} latency         throttled | the p99 request's latency, in parts that add up{'':15}| of it in line, until\n"
          f" shape  CPUs  requests     p50     p99  periods  {''.join(f'{name:>{max(6, len(name)) + 2}}' for name in PARTS)}   it had a thread")
    for cpus in map(float, os.environ.get("LAB_CPUS", "0.25 0.5").split()):
        for shape in shapes:
            throttled, report, lines, parts, slow = measure(shape, cpus, rounds, seconds)
            said.append((f"{shape} at {cpus:g} CPU", report, lines))
            wrong += judge(shape, cpus, throttled, report, parts, slow)
    print("\nthrottlescope beside it:")
    for case, report, lines in said:
        first = report["findings"][0] if report["findings"] else None
        print(f"{case}: used {report['cpu']['of_limit']:.0%} of the limit on average", *(f"  {line}" for line in lines),
              f"    finding  {first['code']}: {first['summary']}" if first else "    finding  none", sep="\n")
    return wrong


main("lab-burst-api", lab)
