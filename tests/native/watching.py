# SPDX-License-Identifier: Apache-2.0
"""watch on real groups: silence about health, speech about harm, an end at any moment, targets that change and go."""

import os
import random
import signal
import time

from native_lib import MS, Watch, busy, each_method, equal, group, load, main, need, running, test, until, want

MOMENTS = 20
random.seed(os.environ.get("SEED", "20261130"))


def of_kind(records, kind):
    return [record for record in records if record["type"] == kind]


def is_kind(kind):
    return lambda record: record["type"] == kind


@each_method
def a_healthy_group_is_passed_over_in_silence(method):
    with group(quota_ms=150) as ample, group(quota_ms=50) as idle, running(["sleep", "300"], idle), \
            load("bursts", "--here", "burn=2ms", "every=50ms", "--seconds", "300", inside=ample):
        for healthy in (ample, idle):
            with Watch("--cgroup", healthy.name, "--method", method, "--interval", "200ms", "--summary", "1s") as watch:
                watch.begun()
                for _ in range(2):
                    summary = watch.next(is_kind("summary"), "a summary")
                    want(summary["windows"] >= 1, f"windows: {summary}")
                status, _, err = watch.stop()
            equal(status, 0, f"exit status ({err})")
            spoken = of_kind(watch.seen, "container")
            # A window in which the whole machine was taken from it is not health, and may be told.
            want(all(r["verdict"] in ("contention", "steal") for r in spoken), f"{[r['verdict'] for r in spoken]} about {healthy.name}")
            want(len(spoken) < len(watch.seen), f"{len(spoken)} reports about {healthy.name}")


@each_method
def a_throttled_group_is_told_each_interval(method):
    with group(quota_ms=20) as limited, busy(limited):
        with Watch("--cgroup", limited.name, "--method", method, "--interval", "500ms") as watch:
            watch.begun()
            for _ in range(4):
                watch.next(is_kind("container"), "a report")
            status, rest, err = watch.stop()
    equal(status, 0, f"exit status ({err})")
    told = of_kind(watch.seen, "container")
    equal({(r["verdict"], r["severity"]) for r in told[:-1]}, {("quota", "warning")}, "verdicts")
    windows = sum(r["window_ns"] for r in told)
    missed = sum(r.get("lost", {}).get("ticks", 0) for r in watch.seen)
    want(abs(windows - (len(told) - 1 + missed) * 500 * MS) <= 700 * MS,
         f"{len(told)} reports cover {windows / 1e9:.2f} s, {missed} ticks missed")
    want(of_kind(rest, "summary"), f"no summary at the end: {rest}")
    # A last window of less than 100 ms has a place in the summary only.
    want(of_kind(rest, "summary")[-1]["windows"] - len(told) in (0, 1), f"{len(told)} reports, and {of_kind(rest, 'summary')}")


@each_method
def sigterm_at_any_moment_ends_it_with_a_report(method):
    with group(quota_ms=20) as limited, busy(limited):
        for number in range(MOMENTS if method == "tracepoints" else MOMENTS // 2):
            with Watch("--cgroup", limited.name, "--method", method, "--interval", "300ms") as watch:
                # Even ones: also while it starts. From when it can catch the signal, the end is an orderly one.
                if number % 2:
                    watch.begun()
                else:
                    until(lambda p=watch.process: catches(p.pid), "it catches signals")
                delay = random.uniform(0, 0.7)
                time.sleep(delay)
                begun = time.monotonic()
                status, rest, err = watch.stop(random.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)), timeout=30)
                took = time.monotonic() - begun
            moment = f"after {delay:.3f} s{' and its first word' if number % 2 else ''}"
            equal(status, 0, f"{moment}: exit status ({err})")
            # While it starts the verifier has it; after that 2 s are a promise.
            want(took < (2 + crowd() if number % 2 else 10 + crowd()), f"{moment}: {took:.1f} s to end")
            if number % 2 and delay % 0.3 > 0.15:
                want(of_kind(rest, "container"), f"{moment}: no report of the running interval: {rest}")
            want(of_kind(watch.seen, "summary"), f"{moment}: no last summary: {watch.seen}")


def catches(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return int(fields["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1


def crowd():
    """Seconds that anything may take longer here, with so many others on the CPUs."""
    return os.getloadavg()[0] / os.cpu_count() / 4


@each_method
def a_group_that_goes_is_told_and_one_that_comes_back_too(method):
    with group(quota_ms=20) as limited:
        name, path = limited.name, limited.path
        with Watch("--cgroup", name, "--method", method, "--interval", "300ms") as watch:
            with busy(limited):
                watch.begun()
                watch.next(is_kind("container"), "a report")
            until(lambda: gone(path), "the group is removed")
            watch.next(lambda r: r["type"] == "notice" and "gone" in r["text"], "the notice that it is gone")
            os.mkdir(path)
            watch.next(lambda r: r["type"] == "notice" and "back" in r["text"], "the notice that it is back")
            limited.limit(20)
            with busy(limited):
                report = watch.next(is_kind("container"), "a report of the new group")
                while report["verdict"] != "quota":  # the first window may begin before the limit
                    report = watch.next(is_kind("container"), "a report with the verdict quota")
            status, _, err = watch.stop()
    equal(status, 0, f"exit status ({err})")
    want(of_kind(watch.seen, "summary"), "no summary")


def gone(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@each_method
def a_process_that_ends_ends_it(method):
    with group(quota_ms=20) as limited, busy(limited, 1) as members:
        with Watch("--pid", str(members[0].pid), "--method", method, "--interval", "300ms") as watch:
            watch.begun()
            watch.next(is_kind("container"), "a report")
            members[0].kill()
            members[0].wait()
            until(lambda: watch.process.poll() is not None, "it ends with its process", timeout=20)
            status, rest, err = watch.stop()
    equal(status, 0, f"exit status ({err})")
    want(any("gone" in r.get("text", "") for r in rest), f"no word about it: {rest}")
    want(of_kind(rest, "summary"), f"no summary: {rest}")


@each_method
def a_limit_that_is_raised_shows_in_the_next_report(method):
    with group(quota_ms=10) as limited, busy(limited):
        with Watch("--cgroup", limited.name, "--method", method, "--interval", "500ms", "--warn-lost", "1%") as watch:
            notice = watch.begun()
            want("100m" in notice["text"], f"the first notice: {notice['text']}")
            equal(watch.next(is_kind("container"), "a report")["limit"]["quota_ns"], 10 * MS, "the limit before")
            limited.limit(25, 50)
            # The running window may have been read already: the one after has it.
            seen = [watch.next(is_kind("container"), "a report")["limit"] for _ in range(2)]
            equal((seen[1]["quota_ns"], seen[1]["period_ns"], seen[1]["cpus"]), (25 * MS, 50 * MS, 0.5), "the limit after")
            status, _, err = watch.stop()
    equal(status, 0, f"exit status ({err})")


@test
def a_busy_node_is_watched_whole():
    need("tracepoints")
    with group(quota_ms=15) as limited, busy(limited):
        with Watch("--scope", "node", "--method", "tracepoints", "--interval", "1s") as watch:
            watch.begun()
            report = watch.next(lambda r: r["type"] == "container" and r.get("cgroup") == limited.name, "a report about the group")
            equal(report["verdict"], "quota", "verdict")
            status, _, err = watch.stop()
    equal(status, 0, f"exit status ({err})")


main("watching")
