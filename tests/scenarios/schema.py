# SPDX-License-Identifier: Apache-2.0
"""Validates reports; see schema.sh. Prints one line a test: PASS, or FAIL with the reason."""

import copy
import glob
import json
import re
import sys

import jsonschema

SCHEMA = "docs/report.schema.json"
MANUAL = "docs/report.md"
GOLDEN = "tests/fixtures/report/*.json"
LINE_MAX = 16384
KINDS = ("container", "summary", "notice")

failures = 0


def say(name, reasons):
    global failures
    if reasons:
        failures += 1
        print(f"FAIL schema/{name}: {'; '.join(reasons[:5])}")
    else:
        print(f"PASS schema/{name}")


def closed(node):
    """The schema without its permission to add fields: for others more may come, from us nothing undocumented may."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: closed(value) for key, value in node.items()}
    if "properties" in result and node.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def errors_of(line, schema):
    """What is wrong with one line of a report; the branch of its own type says more than "none of three fits"."""
    if len(line.encode()) + 1 > LINE_MAX:
        return [f"{len(line.encode()) + 1} bytes, more than {LINE_MAX}"]
    try:
        # A name twice is allowed by JSON and read differently by everybody.
        report = json.loads(line, object_pairs_hook=unique, parse_constant=no_constant)
    except ValueError as error:
        return [f"not JSON: {error}"]
    kind = report.get("type") if isinstance(report, dict) else None
    if kind not in KINDS:
        return [f"type is {kind!r}"]
    branch = {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}
    validator = jsonschema.Draft202012Validator(branch)
    return [f"{'.'.join(str(p) for p in e.absolute_path) or kind}: {e.message[:200]}" for e in validator.iter_errors(report)]


def unique(pairs):
    names = [name for name, _ in pairs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{sorted(twice)} twice in one object")
    return dict(pairs)


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def paths_of_schema(schema, node, prefix):
    """Every documented field: "limit.cpus", "stalls[].start". The names in `evidence` are the rules' own."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if "items" in node:
        yield from paths_of_schema(schema, node["items"], prefix + "[]")
    for name, child in node.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield path
        yield from paths_of_schema(schema, child, path)


def paths_of_kind(schema, kind):
    return paths_of_schema(schema, schema["$defs"][kind], "")


def paths_of_report(value, prefix):
    if isinstance(value, list):
        for item in value:
            yield from paths_of_report(item, prefix + "[]")
    elif isinstance(value, dict):
        for name, child in value.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path
            if name != "evidence":
                yield from paths_of_report(child, path)


def check_golden(schema):
    strict = closed(schema)
    seen = {kind: set() for kind in KINDS}
    for path in sorted(glob.glob(GOLDEN)):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        reasons = [] if len(lines) == 1 else [f"{len(lines)} lines"]
        for line in lines:
            reasons += errors_of(line, strict)
            report = json.loads(line)
            seen[report["type"]].update(paths_of_report(report, ""))
        say(f"golden {path.rsplit('/', 1)[1]}", reasons)
    for kind, paths in seen.items():
        documented = set(paths_of_kind(schema, kind))
        say(f"every field of a {kind} is in some kept report", sorted(documented - paths))


def check_manual(schema):
    with open(MANUAL, encoding="utf-8") as file:
        # Without the blocks of code, whose fences would pair with single backquotes.
        manual = set(re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)))
    wanted = set()
    for kind in KINDS:
        wanted.update(paths_of_kind(schema, kind))
    say("every field is in docs/report.md", sorted(wanted - manual))


def check_sources(schema):
    """A field that a source names must be in the schema, also if no kept report has it."""
    names, known = set(), set()
    for path in sorted(glob.glob("agent/report/json_*.c")):
        with open(path, encoding="utf-8") as file:
            # The third argument of what adds a field; build_head() takes the type there.
            names.update(re.findall(r'\b(?:build_(?!head)|add_)\w+\(&?build,\s*&?\w+,\s*"(\w+)"', file.read()))
    for kind in KINDS:
        known.update(path.rsplit(".", 1)[-1] for path in paths_of_kind(schema, kind))
    reasons = [] if len(names) > 60 else [f"only {len(names)} names found in the sources"]
    say("every name in the sources is in the schema", reasons + sorted(names - known))
    with open("agent/probe/snapshot.h", encoding="utf-8") as file:
        reasons_of_loss = set(re.findall(r"^\s*X\([A-Z_]+, ([a-z_]+),", file.read(), re.M))
    say("lost.* are those of the probe", sorted(reasons_of_loss ^ set(schema["$defs"]["lost"]["properties"])))


def check_refusals(schema):
    """The schema must refuse what breaks the contract, or it proves nothing."""
    strict = closed(schema)
    with open("tests/fixtures/report/full.json", encoding="utf-8") as file:
        good = json.load(file)

    def refused(name, change, by=strict):
        bad = copy.deepcopy(good)
        change(bad)
        say(f"refuses {name}", [] if errors_of(json.dumps(bad), by) else ["accepted"])

    refused("a missing verdict", lambda r: r.pop("verdict"))
    refused("a null figure", lambda r: r["cpu"].update(used_ns=None))
    refused("a figure as text", lambda r: r["threads"][0].update(run_ns="1"))
    refused("a negative figure", lambda r: r["stall"].update(wall_ns=-1))
    refused("a fraction of a nanosecond", lambda r: r.update(window_ns=1.5))
    refused("an unknown verdict", lambda r: r.update(verdict="bad"))
    refused("an unknown method", lambda r: r.update(method="guess"))
    refused("a thread 0", lambda r: r["threads"][0].update(tid=0))
    refused("a time without Z", lambda r: r.update(time="2026-11-30T12:00:30.000+01:00"))
    refused("an undocumented field", lambda r: r.update(extra=1))
    refused("an undocumented field of a thread", lambda r: r["threads"][0].update(extra=1))
    refused("threads without their total", lambda r: r.pop("threads_total"))
    refused("an unknown source", lambda r: r["parallelism"][0].update(source="guess"))
    refused("a surplus without a recommendation", lambda r: r["parallelism"][0].pop("recommended"))
    refused("a recommendation of none", lambda r: r["parallelism"][0].update(recommended=0))
    refused("an undocumented field of a setting", lambda r: r["parallelism"][0].update(extra=1))
    refused("an empty object", lambda r: r.update(lost={}))
    refused("evidence that is no number", lambda r: r["findings"][0]["evidence"].update(x="1"))
    more = copy.deepcopy(good)
    more["extra"] = more["threads"][0]["extra"] = 1
    say("a reader's schema accepts fields of later versions", errors_of(json.dumps(more), schema))
    say("refuses a name twice", [] if errors_of('{"type":"notice","type":"notice"}', strict) else ["accepted"])


def main():
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    if len(sys.argv) > 1:
        strict = closed(schema)
        for path in sys.argv[1:]:
            file = sys.stdin if path == "-" else open(path, encoding="utf-8")
            lines = file.read().splitlines()
            reasons = [] if lines else ["no report in it"]
            for number, line in enumerate(lines, 1):
                reasons += [f"line {number}: {error}" for error in errors_of(line, strict)]
            say(path, reasons)
    else:
        check_golden(schema)
        check_manual(schema)
        check_sources(schema)
        check_refusals(schema)
    return 1 if failures else 0


sys.exit(main())
