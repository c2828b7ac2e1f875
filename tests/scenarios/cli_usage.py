# SPDX-License-Identifier: Apache-2.0
"""Usage: what is said about wrong options, help, configuration, and the exit statuses of docs/cli.md; doctor."""

import json
import os
import re
import tempfile

from cli_lib import FILES, Skip, equal, group, main, run, test, want

COMMANDS = ("watch", "run", "check", "doctor")


def refused(words, sentence, env=None):
    result = run(*words, env=env)
    equal(result.status, 2, f"status of {words}")
    equal(result.out, "", f"standard output of {words}")
    want(sentence in result.err, f"{words}: {result.err!r} does not say {sentence!r}")
    want(result.err.count("\n") == 1 or not words, f"{words}: more than one line: {result.err!r}")


@test
def wrong_usage_is_2_with_one_sentence():
    refused(["bogus"], "unknown command bogus")
    refused(["--bogus"], "unknown command --bogus")
    refused(["check", "--bogus"], "unknown option --bogus")
    refused(["check", "--interval", "10"], "--interval: '10' is not a duration with its unit (500ms, 10s, 1m)")
    refused(["watch", "--interval", "1ms"], "--interval: 1ms is out of range (100ms to 1h)")
    refused(["check", "--pid", "1", "--cgroup", "/x"], "--pid and --cgroup exclude each other: name one target")
    refused(["check", "--scope", "pod", "--pid", "1"], "--scope and --pid exclude each other")
    refused(["check", "--scope", "all"], "--scope: 'all' is none of self|pod|node")
    refused(["check", "file"], "check takes no argument: file")
    refused(["run"], "run needs a command")
    refused(["run", "--root", "/", "true"], "run has no option --root")
    refused(["watch", "--for", "1s"], "watch has no option --for")
    refused(["check"], "environment: THROTTLESCOPE_FOR: 'x' is not a duration", {"THROTTLESCOPE_FOR": "x"})
    refused(["check", "--interval", "\033[31m\n"], r"'\x1b[31m\x0a'")


@test
def no_command_is_2_with_the_overview():
    result = run()
    equal(result.status, 2, "status")
    for command in COMMANDS:
        want(re.search(rf"^  {command} ", result.err, re.M), f"{command} is not in {result.err!r}")


@test
def help_of_each_command_names_its_options_and_statuses():
    for command in COMMANDS:
        for words in ([command, "--help"], [command, "-h"], ["help", command]):
            result = run(*words, env={"THROTTLESCOPE_INTERVAL": "nonsense"})
            equal(result.status, 0, f"status of {words}")
            for piece in ("usage: throttlescope " + command, "--interval", "--config", "Exit status:", "  2    wrong usage"):
                want(piece in result.out, f"{words} does not mention {piece!r}")
            want(max(map(len, result.out.splitlines())) <= 100, f"{words}: a line is longer than 100")
    for words in (["--help"], ["help"], ["-h"]):
        result = run(*words)
        equal(result.status, 0, f"status of {words}")
        for command in COMMANDS:
            want(f"  {command}" in result.out, f"{words} does not mention {command}")


@test
def manual_holds_every_option_variable_and_status():
    with open("docs/cli.md", encoding="utf-8") as file:
        manual = file.read()
    helps = "".join(run(command, "--help").out for command in COMMANDS)
    for option in sorted(set(re.findall(r"--[a-z][a-z-]+", helps))):
        want(f"`{option}" in manual, f"docs/cli.md does not mention {option}")
        if option not in ("--help", "--version", "--print-config"):
            variable = "THROTTLESCOPE_" + option[2:].upper().replace("-", "_")
            want(f"`{variable}`" in manual, f"docs/cli.md does not mention {variable}")
    for status in ("0", "1", "2", "3", "126", "127", "128 + n"):
        want(f"| {status} |" in manual, f"docs/cli.md does not mention the exit status {status}")


@test
def version():
    for words in (["--version"], ["check", "--version"], ["run", "--version"]):
        result = run(*words)
        equal(result.status, 0, f"status of {words}")
        want(re.fullmatch(r"throttlescope \d+\.\d+\.\d+\n", result.out), f"{words}: {result.out!r}")


@test
def flag_beats_environment_beats_file():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("# a comment\ninterval = 4s\nthreads = 5 # another\nwarn-lost = 7%\n")
        file.flush()
        result = run("check", "--config", file.name, "--interval", "1s", "--print-config",
                     env={"THROTTLESCOPE_INTERVAL": "2s", "THROTTLESCOPE_THREADS": "6"})
        equal(result.status, 0, "status")
        for line in ("interval = 1s  # flag", "threads = 6  # environment", "warn-lost = 7%  # file",
                     "warn-stall = 50ms  # default"):
            want(line + "\n" in result.out, f"no {line!r} in {result.out!r}")
        again = tempfile.NamedTemporaryFile("w", suffix=".conf")
        with again:
            again.write(result.out)
            again.flush()
            back = run("check", "--config", again.name, "--print-config")
            equal(back.status, 0, "status")
            equal(re.sub(r"  # .*", "", back.out.replace(again.name, "")),
                  re.sub(r"  # .*", "", result.out.replace(file.name, "")), "the configuration read back")


@test
def file_errors_name_file_and_line():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("interval = 1s\n\nintervall = 1s\n")
        file.flush()
        refused(["check", "--config", file.name], f"configuration file {file.name}: line 3: unknown key 'intervall'")
    refused(["check", "--config", "/nonexistent"], "configuration file /nonexistent: No such file or directory")


@test
def check_is_0_whatever_it_finds_unless_asked():
    with group(10, busy=2) as (name, _):
        words = ["check", "--cgroup", name, "--for", "1s", *FILES]
        result = run(*words)
        equal(result.status, 0, f"status ({result.err})")
        want("THROTTLED" in result.out or "MIXED" in result.out, f"no throttling in {result.out!r}")
        result = run(*words, "--exit-code", "42")
        equal(result.status, 42, "status with --exit-code")
        result = run(*words, "--output", "json")
        equal(result.status, 0, "status")
        equal(json.loads(result.out)["severity"], "warning", "severity")


@test
def exit_code_is_only_for_warnings():
    result = run("check", "--pid", str(os.getpid()), "--for", "200ms", "--exit-code", "42", *FILES,
                 env={"THROTTLESCOPE_WARN_LOST": "100%"})
    equal(result.status, 0, f"status ({result.err})")


@test
def what_cannot_be_measured_is_3():
    with tempfile.TemporaryDirectory() as empty:
        equal(run("check", "--root", empty, "--for", "100ms").status, 3, "status of an empty folder")
        for words in (["--pid", "2147483647"], ["--cgroup", "/there/is/none"], ["--root", empty + "/no"]):
            for command in ("check", "watch"):
                result = run(command, *words, *FILES)
                equal(result.status, 3, f"status of {command} {words} ({result.err})")
                equal(result.out, "", f"standard output of {command} {words}")
                want("ways out" in result.err, f"{command} {words}: no ways out in {result.err!r}")
        result = run("check", "--pid", "2147483647", "-o", "json", *FILES)
        equal(json.loads(result.out)["type"], "notice", "type")


@test
def doctor_has_a_line_for_each_question():
    result = run("doctor", "--pid", str(os.getpid()))
    equal(result.status, 0, f"status ({result.out})")
    for name in ("method", "kernel", "btf", "capabilities", "lockdown", "seccomp", "pid-ns", "user-ns", "cgroup", "proc"):
        want(re.search(rf"^(ok|--|!!)  {name} +\S", result.out, re.M), f"no line about {name}")
    for line in result.out.splitlines():
        want(re.match(r"(ok|--|!!)  \S+ +\S", line), f"odd line {line!r}")


@test
def doctor_as_json_says_the_same():
    text = run("doctor", "--pid", str(os.getpid()))
    result = run("doctor", "--pid", str(os.getpid()), "-o", "json")
    equal(result.status, text.status, "status")
    equal(result.out.count("\n"), 1, "lines")
    report = json.loads(result.out)
    equal(report["type"], "doctor", "type")
    equal(report["measurable"], True, "measurable")
    names = [line.split()[1] for line in text.out.splitlines()]
    equal([check["id"] for check in report["checks"]], names, "ids")
    want({check["status"] for check in report["checks"]} <= {"ok", "note", "fault"}, "unknown status")


@test
def doctor_is_3_where_nothing_can_be_measured():
    with tempfile.TemporaryDirectory() as empty:
        for words in (["--root", empty], ["--pid", "2147483647"]):
            result = run("doctor", *words)
            equal(result.status, 3, f"status of {words} ({result.out})")
            want("!!" in result.out, f"{words}: nothing stands in the way in {result.out!r}")


@test
def doctor_without_privileges_says_what_is_missing():
    if os.geteuid() != 0:
        raise Skip("needs root to give root up")
    result = run("doctor", "--pid", str(os.getpid()), user=65534, group=65534, extra_groups=[])
    want(re.search(r"^!!  capabilities +uid 65534 .* => .*BPF, PERFMON", result.out, re.M), result.out)
    want(re.search(r"^!!  proc .*the application runs as 0, this as 65534 => set runAsUser: 0", result.out, re.M), result.out)
    want(re.search(r"^!!  method +files", result.out, re.M), result.out)
    equal(result.status, 0, "status")


main()
