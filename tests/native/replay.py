# SPDX-License-Identifier: Apache-2.0
"""A capture gives the same report again; a broken or hostile one gives a sentence, never a crash."""

import json
import os
import random
import re
import shutil

from native_lib import busy, each_method, equal, group, main, need, records, run, scratch, test, want, write

MOMENTS = 60
random.seed(os.environ.get("SEED", "20261130"))


def captured(form, method, folder):
    with group(quota_ms=30) as limited, busy(limited):
        return run("check", "--cgroup", limited.name, "--for", "500ms", "--method", method, "-o", form, "--capture", folder)


@each_method
def a_capture_gives_the_same_report_again(method):
    for form in ("json", "text"):
        folder = scratch(f"{form}-{method}")
        first = captured(form, method, folder)
        equal(first.status, 0, f"exit status ({first.err})")
        again = run("check", "--root", folder, "-o", form)
        equal(again.status, 0, f"exit status of the replay ({again.err})")
        equal(again.out, first.out, f"the {form} of the replay")
        if form == "json":
            records(first.out)


@test
def a_capture_can_be_read_from_another_place_and_by_anybody():
    folder = good("tracepoints")
    moved = scratch("moved away")
    shutil.copytree(folder, moved)
    equal(run("check", "--root", moved).out, run("check", "--root", folder).out, "the report of the moved capture")


made = {}


def good(method):
    if method not in made:
        need(method)
        made[method] = scratch(f"good-{method}")
        result = captured("json", method, made[method])
        equal(result.status, 0, f"exit status ({result.err})")
    return made[method]


def spoiled(method, change):
    """A copy of a good capture, changed; what check says to it."""
    folder = scratch("spoiled")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good(method), folder)
    change(folder)
    result = run("check", "--root", folder, "-o", "json", timeout=30)
    want(result.status >= 0, f"it was ended by signal {-result.status}")
    want(len(result.err) < 2000, f"{len(result.err)} bytes on standard error")
    return result


def refused(what, change, *words, method="tracepoints"):
    """It must fail, with 1 or 3, in one sentence that has these words in it."""
    result = spoiled(method, change)
    want(result.status in (1, 3), f"{what}: exit status {result.status}, it says {result.err!r}")
    for word in words:
        want(re.search(word, result.err), f"{what}: no word of {word}: {result.err!r}")


def text_of(path, text):
    """A change that puts a text into a file of the capture."""
    def change(folder):
        with open(f"{folder}/{path}", "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    return change


def json_of(path, edit):
    """A change of what is in a JSON file."""
    def change(folder):
        with open(f"{folder}/{path}", encoding="utf-8") as file:
            value = json.load(file)
        edit(value)
        with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
            json.dump(value, file)
    return change


def cut(path, share):
    def change(folder):
        size = os.path.getsize(f"{folder}/{path}")
        os.truncate(f"{folder}/{path}", int(size * share))
    return change


def replaced(path, make):
    def change(folder):
        if os.path.isdir(f"{folder}/{path}"):
            shutil.rmtree(f"{folder}/{path}")
        else:
            os.unlink(f"{folder}/{path}")
        make(f"{folder}/{path}")
    return change


def nothing(_):
    pass


MAPS, MANIFEST = "tick-001/maps.json", "throttlescope-capture.json"


@test
def broken_maps_are_refused_with_their_place():
    for share in (0, 0.2, 0.5, 0.99):
        refused(f"maps.json cut to {share}", cut(MAPS, share), "maps.json", "tick 1")
    for text in ("[]", "{}", "null", "7", "\0\0\0", "[" * 100000, '{"a":' * 5000, b"\xff" * 100):
        refused(f"maps.json of {text[:10]!r}", text_of(MAPS, text), "maps.json", "tick 1")
    refused("no maps.json", replaced(MAPS, nothing), "maps.json", "tick 1")
    refused("a folder", replaced(MAPS, os.mkdir), "maps.json", "tick 1")
    refused("a fifo", replaced(MAPS, os.mkfifo), "maps.json", "tick 1")
    refused("a link out of the capture", replaced(MAPS, lambda path: os.symlink("/etc/passwd", path)), "maps.json", "tick 1")


@test
def wrong_types_and_numbers_are_refused_with_their_place():
    def wrong(name, value, *words):
        change = json_of(MAPS, lambda maps: maps["threads"][0].update({name: value}))
        refused(f"{name} = {value!r}", change, "maps.json", r"threads\[0\]", *words)

    for value in (-1, 1.5, 1e300, "x", "", "99999999999999999999999", None, [], {}, True):
        wrong("rec.run_ns", value, "rec.run_ns")
    for value in (7, None, [], "x" * 5000):
        wrong("rec.name", value, "rec.name")
    wrong("rec.tid", 1 << 40, "rec.tid")
    wrong("no such field", 1, "unknown field")
    for name in ("now_ns", "threads", "lost", "containers", "clock_source"):
        refused(f"no {name}", json_of(MAPS, lambda maps, n=name: maps.pop(n)), "maps.json", name)
        refused(f"{name} a word", json_of(MAPS, lambda maps, n=name: maps.update({n: "word"})), "maps.json", name)
    refused("a record that is a number", json_of(MAPS, lambda maps: maps["threads"].append(1)), "maps.json", r"threads\[\d+\]")


@test
def a_broken_manifest_is_refused_with_its_place():
    for share in (0, 0.3, 0.95):
        refused(f"the manifest cut to {share}", cut(MANIFEST, share), MANIFEST)
    for text in ("[]", "7", "[" * 100000):
        refused(f"a manifest of {text[:10]!r}", text_of(MANIFEST, text), MANIFEST)
    for name, value in (("schema", 99), ("method", "guess"), ("exact", 1), ("threads_max", -1), ("threads_max", 1e99), ("kernel", 5),
                        ("version", "x" * 5000), ("ticks", 5), ("target", [])):
        refused(f"{name} = {value!r}"[:60], json_of(MANIFEST, lambda m, n=name, v=value: m.update({n: v})), MANIFEST, name)
    refused("a time that goes back", json_of(MANIFEST, lambda m: m["ticks"][1].update(mono_ns="1")), MANIFEST, r"ticks\[1\]")
    refused("one tick twice", json_of(MANIFEST, lambda m: m["ticks"][1].update(tick=0)), MANIFEST, r"ticks\[1\]")
    refused("a million ticks", json_of(MANIFEST, lambda m: m.update(ticks=m["ticks"] * 500000)), MANIFEST)
    refused("no tick at all", json_of(MANIFEST, lambda m: m.update(ticks=[])))


@each_method
def a_missing_tick_is_named(method):
    refused("no second tick", replaced("tick-001", nothing), "tick.?1|tick-001", method=method)
    refused("no first tick", replaced("tick-000", nothing), "tick.?0|tick-000", method=method)
    refused("a tick that is a file", replaced("tick-001", lambda path: write(path, "x")), "tick.?1|tick-001", method=method)
    # Such a link leads to the capture's own folder, never out of it: nothing of this machine is shown.
    refused("a tick that leads out", replaced("tick-001", lambda path: os.symlink("/", path)), method=method)


def compare_answer(what, result):
    """A report, or a refusal with a reason; a report that says why nothing could be judged is both."""
    want(result.status in (0, 1, 3), f"{what}: exit status {result.status}: {result.err}")
    want(result.status == 0 or result.err or "not-measured" in result.out, f"{what}: exit status {result.status} without a word")
    records(result.out)


JUNK = [b"", b"\0" * 64, b"\xff" * 4096, b"9" * 400, b"-1\n", b"nr_periods -5\nnr_throttled 99999999999999999999999\n", b"max max max\n",
        b"nr_periods 18446744073709551615\nnr_throttled 18446744073709551615\nthrottled_time 18446744073709551615\n", b"%n%s\n" * 500]


@each_method
def junk_in_any_captured_file_is_no_crash(method):
    """Unknown for what the file says, or a refusal: 0, 1 or 3, and valid JSON if there is any."""
    files = [os.path.relpath(os.path.join(folder, name), good(method))
             for folder, _, names in os.walk(good(method)) for name in names if not name.endswith(".json")]
    for path in files:
        for junk in random.sample(JUNK, 3):
            result = spoiled(method, text_of(path, junk))
            compare_answer(f"{path} of {junk[:20]!r}", result)


@test
def numbers_changed_at_random_are_no_crash():
    """Any figure of the maps may be anything: the report may be nonsense, but is a report, or a refusal."""
    extremes = [0, 1, 2, 3, 7, 255, 65536, *((1 << bits) - 1 for bits in (31, 32, 53)), *(str((1 << bits) - 1) for bits in (62, 63, 64))]

    def shake(maps):
        for _ in range(random.choice((1, 1, 3, 30))):
            kind = random.choice([name for name in maps if isinstance(maps[name], list) and maps[name]])
            index = random.randrange(len(maps[kind]))
            if not isinstance(maps[kind][index], dict):
                maps[kind][index] = random.choice(extremes)
                continue
            record = maps[kind][index]
            name = random.choice(list(record))
            if isinstance(record[name], list):
                record[name] = [random.choice(extremes) for _ in record[name]]
            elif not name.endswith(("name", "process")):
                record[name] = random.choice(extremes)
        for name in ("now_ns", "from_ns", "clock_offset_ns", "window", "clock_source"):
            if random.random() < 0.05:
                maps[name] = random.choice(extremes)

    for number in range(MOMENTS):
        result = spoiled("tracepoints", json_of(random.choice((MAPS, "tick-000/maps.json")), shake))
        compare_answer(f"change {number}", result)


main("replay")
