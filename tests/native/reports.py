# SPDX-License-Identifier: Apache-2.0
"""check on real groups: the figures against the kernel's own, the form of both outputs, foreign names, many threads."""

import json
import os
import subprocess

from native_lib import (MEASURED, MS, PROGRAM, METHODS, Watch, busy, check, containers, each_method, equal, group, load, main,
                        near, need, one, run, running, scratch, test, until, want)

COLUMNS = 100


def whole(method, name, *words, seconds="1.2"):
    """check that begins before the work of `load` does, and is ended after it: its window holds all of it."""
    capture = scratch(f"whole-{method}-{name}")
    with group(name=name) as above, \
            load(*words, "--group", f"{name}/work", "--seconds", seconds, go=False) as work:
        cgroup = f"{above.name}/work"
        with Watch("--cgroup", cgroup, "--for", "10m", "--method", method, "--capture", capture, command="check") as looking:
            until(lambda: ticks_of(capture) > 0, "the first look")
            work.go()
            truth = work.results()
            status, rest, err = looking.stop()
    equal(status, 0, f"exit status ({err})")
    return one([record for record in rest if record["type"] == "container"]), truth


def ticks_of(capture):
    try:
        with open(f"{capture}/throttlescope-capture.json", encoding="utf-8") as file:
            return len(json.load(file)["ticks"])
    except (OSError, ValueError):
        return 0


def of_type(truth, kind):
    return [line for line in truth if line["type"] == kind]


def sum_of(report, field):
    return sum(thread.get(field, 0) for thread in report["threads"]) + report.get("omitted", {}).get(field, 0)


def compare_identities(report):
    """What must be true of any report by BPF, whatever has happened."""
    window = report["window_ns"]
    for thread in report["threads"]:
        want(all(field in thread for field in MEASURED), f"a figure is missing in {thread}")
        if not thread["ended"]:
            near(sum(thread[field] for field in MEASURED), window, 0.01, 10 * MS, f"run + wait + stall + sleep of {thread['name']}")
        want(thread["sleep_in_stall_ns"] <= thread["sleep_ns"], "more sleep within stalls than sleep")
        want(thread["stall_longest_ns"] <= thread["stall_ns"], "the longest stall is longer than all of them")
        want(thread["quota_spent_ns"] <= thread["run_ns"] * 1.01 + MS, "more quota spent than run")
    order = [(thread["stall_ns"], thread["run_ns"]) for thread in report["threads"]]
    equal(order, sorted(order, reverse=True), "order of the threads")
    equal(report["threads_total"], report["threads_omitted"] + sum(t.get("folded", 1) for t in report["threads"]), "threads")
    causes, stall, stalls = report["causes"], report["stall"], report["stalls"]
    equal(causes["quota_ns"] + causes["ancestor_ns"], sum_of(report, "stall_ns"), "quota + ancestor")
    equal(causes["contention_ns"], sum_of(report, "wait_ns"), "contention")
    want(stall["wall_ns"] <= min(window, sum_of(report, "stall_ns") * 1.02 + MS), f"stalled for {stall['wall_ns']} of {window}")
    want(len(stalls) <= 20 and [s["ns"] for s in stalls] == sorted((s["ns"] for s in stalls), reverse=True), "order of the stalls")
    if stalls:
        equal(stalls[0]["ns"], stall["longest_ns"], "the longest stall")
        want(stall["p50_ns"] <= stall["p99_ns"] <= stall["longest_ns"], f"order of {stall}")
    wanted = sum(sum_of(report, field) for field in MEASURED[:3]) / window
    near(report["demand"]["wanted_cpus"], wanted, 0.001, 0.001, "wanted CPUs")
    near(report["cpu"]["cpus"], report["cpu"]["used_ns"] / window, 0.001, 0.0001, "cpu.cpus")


def compare_group(report, truth, slack=2):
    """The kernel's counters over the same work; before and after it nothing ran, but a period can be counted late."""
    counted = one([g for g in of_type(truth, "group") if g["path"].endswith("/work")], "group")
    near(report["periods"]["total"], counted["nr_periods"], 0, slack, "periods")
    near(report["periods"]["throttled"], counted["nr_throttled"], 0, slack, "throttled periods")
    near(report["runqueue_throttled_ns"], counted["throttled_ns"], 0.01, 3 * MS, "the queues' throttled time")
    limit = report["limit"]
    equal((limit["quota_ns"], limit["period_ns"]), (counted["quota_ns"], counted["period_ns"]), "the limit")
    near(limit["cpus"], limit["quota_ns"] / limit["period_ns"], 0.0001, 0, "limit.cpus")
    near(report["cpu"]["of_limit"], report["cpu"]["cpus"] / limit["cpus"], 0.001, 0.001, "cpu.of_limit")


@test
def tracepoints_say_what_the_kernel_counted():
    need("tracepoints")
    report, truth = whole("tracepoints", f"throttlescope-native-{os.getpid()}-t", "busy", "quota=40ms")
    compare_identities(report)
    compare_group(report, truth)
    equal((report["method"], report["limit"]["level"]), ("tracepoints", "container"), "method and level")
    exec_ns = sum(t["sum_exec_runtime_ns"] for t in of_type(truth, "thread"))
    near(report["cpu"]["used_ns"], exec_ns, 0.01, 5 * MS, "CPU time used")
    steal = one(of_type(truth, "machine"))["steal_ns"]
    near(sum_of(report, "run_ns"), exec_ns, 0.01, steal + 5 * MS, "time run")
    # One busy thread on each CPU: there, and only there, are the queues' sums the threads'.
    near(sum_of(report, "stall_ns"), report["runqueue_throttled_ns"], 0.02, 5 * MS, "stalls and the queues' clock")
    for thread in of_type(truth, "thread"):
        seen = one([t for t in report["threads"] if t["host_tid"] == thread["tid"]], thread["name"])
        near(seen["stall_ns"] + seen["wait_ns"], thread["run_delay_ns"], 0.01, MS + 10000 * thread["switches"],
             f"stall + wait of {thread['name']}")
    want(report["verdict"] in ("quota", "mixed", "contention"), f"verdict {report['verdict']}")
    codes = {f["code"] for f in report["findings"]}
    want(codes & {"CPUThrottled", "CPUContention"}, f"findings: {codes}")


@test
def files_say_what_schedstat_says():
    report, truth = whole("files", f"throttlescope-native-{os.getpid()}-f", "busy-unpinned", "quota=40ms")
    compare_group(report, truth)
    equal((report["method"], report["exact"]), ("files", False), "method and exact")
    want(report["missing"] and all(m["why"] and m["remedy"] for m in report["missing"]), f"missing: {report['missing']}")
    names = {name for record in [report, *report["threads"], report.get("omitted", {})] for name in record}
    wrong = {"stall", "stalls", "causes", "burst", "stall_ns", "wait_ns", "sleep_ns", "quota_spent_ns", "sleep_in_stall_ns"} & names
    want(not wrong, f"fields that files cannot measure: {sorted(wrong)}")
    want("throttled_used_ns" not in report["periods"], "throttled_used_ns")
    order = [(thread["runqueue_delay_ns"], thread["run_ns"]) for thread in report["threads"]]
    equal(order, sorted(order, reverse=True), "order of the threads")
    for thread in of_type(truth, "thread"):
        seen = one([t for t in report["threads"] if t["host_tid"] == thread["tid"]], thread["name"])
        near(seen["runqueue_delay_ns"], thread["run_delay_ns"], 0.01, MS, f"delay of {thread['name']}")
        near(seen["run_ns"], thread["sum_exec_runtime_ns"], 0.01, MS, f"run of {thread['name']}")


def is_long_by_right(line, previous):
    """Only commands, the line `subject` and NOT MEASURED may be longer (docs/report.md)."""
    return line.startswith("  subject ") or " NOT MEASURED" in line or (previous.startswith(("  do  ", "  then")) and
                                                                         line.startswith(" " * 11))


def compare_columns(text):
    lines = text.splitlines()
    want(lines, "no text")
    for previous, line in zip([""] + lines, lines):
        want(len(line) <= COLUMNS or is_long_by_right(line, previous), f"{len(line)} columns: {line}")
        want(line == line.rstrip(), f"blanks at the end: {line!r}")


@each_method
def text_keeps_to_100_columns(method):
    name = "a-group-with-a-rather-long-name-" * 4 + str(os.getpid())
    with group(quota_ms=30) as short, group(quota_ms=30, name=name) as long:
        for each in (short, long):
            with busy(each):
                result = run("check", "--cgroup", each.name, "--for", "500ms", "--method", method)
            equal(result.status, 0, f"exit status ({result.err})")
            compare_columns(result.out)
            want(method in result.out, f"no word of the method: {result.out}")


NAMES = [b"\x1b[31mred\x1b[0m", b"two\nlines\r\n", b"\xff\xfe\xc3(bad", "\u202eright\u202c".encode()[:15], b'quo"te\\back',
         b"tab\tbell\x07",
         "\u00fcml\u00e4ut".encode(), b"%s%n%d", b"\xc2\x9b31mC1", b"</script>"]
NAMER = """
import ctypes, os, sys, time
names = [bytes.fromhex(word) for word in sys.argv[1:]]
reader, writer = os.pipe()
for name in names[1:]:
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)  # until all are there: busy ones would leave nothing for the others' birth
        break
else:
    name = names[0]
    os.close(writer)
ctypes.CDLL(None).prctl(15, ctypes.c_char_p(name), 0, 0, 0)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""


def escaped(name):
    """As docs/report.md has it: what is not part of a printable character is \\xNN, a backslash is \\\\."""
    text = ""
    for character in name.decode(errors="surrogateescape"):
        if character == "\\":
            text += "\\\\"
        elif character.isprintable():
            text += character
        else:
            text += "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))
    return text


@each_method
def hostile_names_are_escaped(method):
    words = ["/usr/bin/python3", "-c", NAMER, *[name.hex() for name in NAMES]]
    wanted = {escaped(name[:15]) for name in NAMES}
    with group(quota_ms=60) as hostile, running(words, hostile):
        until(lambda: wanted_names(hostile) >= {name[:15] for name in NAMES}, "the names are set")
        report = one(check("--cgroup", hostile.name, "--for", "500ms", "--method", method))
        text = subprocess.run([PROGRAM, "check", "--cgroup", hostile.name, "--for", "500ms", "--method", method],
                              capture_output=True, check=True).stdout
    equal({thread["name"] for thread in report["threads"]}, wanted, "names in JSON")
    equal({thread["process"] for thread in report["threads"]}, wanted, "processes in JSON")
    decoded = text.decode()  # strict: it must be valid UTF-8
    bad = [c for c in decoded if c != "\n" and not c.isprintable()]
    want(not bad, f"not printable in the text: {bad}")
    for name in wanted:
        want(name in decoded, f"{name} is not in the text: {decoded}")
    compare_columns(decoded)


def wanted_names(hostile):
    names = set()
    for pid in hostile.pids():
        with open(f"/proc/{pid}/comm", "rb") as file:
            names.add(file.read()[:-1])
    return names


@each_method
def four_hundred_threads_fit_a_line(method):
    # Each has the name that takes most room.
    words = ["/usr/bin/python3", "-c", NAMER, *[b"\x1b".hex() * 15] * 400]
    with group(quota_ms=80) as crowd, running(words, crowd):
        until(lambda: len(crowd.pids()) == 400, "400 processes")
        few = one(check("--cgroup", crowd.name, "--for", "1s", "--method", method))
        many = one(check("--cgroup", crowd.name, "--for", "1s", "--method", method, "--threads", "10000"))
        text = run("check", "--cgroup", crowd.name, "--for", "500ms", "--method", method)
    equal((len(few["threads"]), few["threads_total"] >= 400), (20, True), "threads shown, threads in all")
    for report in (few, many):  # that no line is longer than 16 KiB is tested of all lines
        equal(report["threads_total"], report["threads_omitted"] + len(report["threads"]), "threads")
        near(sum_of(report, "run_ns"), report["cpu"]["used_ns"], 0.1, 10 * MS, "shown and omitted threads' time")
    want(len(many["threads"]) > 20 and len(json.dumps(many)) > 12000, f"{len(many['threads'])} threads where more would fit")
    compare_columns(text.out)


@test
def exit_code_is_what_was_asked_for():
    with group(quota_ms=20) as limited, busy(limited):
        for method in METHODS:
            result = run("check", "--cgroup", limited.name, "--for", "1s", "--method", method, "--exit-code", "42")
            equal(result.status, 42, f"exit status by {method} ({result.out}{result.err})")
    with group() as free:
        with running(["sleep", "60"], free):
            equal(run("check", "--cgroup", free.name, "--for", "200ms", "--exit-code", "42").status, 0, "exit status of the idle")


@test
def doctor_says_yes_and_how():
    result = run("doctor", "-o", "json")
    equal(result.status, 0, f"exit status ({result.err})")
    answer = json.loads(result.out)
    equal((answer["type"], answer["measurable"]), ("doctor", True), "type and measurable")
    for item in answer["checks"]:
        want(item["status"] in ("ok", "note", "fault") and item["text"], f"check {item}")
        want(item["status"] != "fault" or item.get("remedy"), f"no remedy: {item}")
    report = check("--pid", str(os.getpid()), "--for", "200ms", "--threads", "0")
    equal(one(report)["method"], answer["method"], "the method that doctor promised")


main("reports")
