# SPDX-License-Identifier: Apache-2.0
"""Places where less than usual can be measured, or where the reports cannot be written: a sentence and the documented status."""

import os
import re
import shutil
import subprocess

from native_lib import DEADLINE, PROGRAM, Skip, Watch, busy, check, containers, equal, group, main, need, one, run, running, test, want

CAPS = "bpf,perfmon,sys_admin"


def without(capabilities):
    """Words before a command that take these capabilities away for good."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    drop = ",".join(f"-{name}" for name in capabilities.split(","))
    words = ["setpriv", "--bounding-set", drop, "--inh-caps", drop]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("capabilities cannot be dropped here")
    return words


def run_within(wrap, *words, **more):
    return subprocess.run([*wrap, PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          timeout=DEADLINE, check=False, **more)


def in_mounts(script):
    """Words before a command that run it in a mount namespace changed by a script."""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no mount namespace can be made and changed here")
    return words


def expect_files(wrap, *reasons):
    """Without --method: it goes on from files, with the reason and the remedy in the report; with it: 3, and the reason."""
    with group(quota_ms=20) as limited, busy(limited):
        report = one(check("--cgroup", limited.name, "--for", "500ms", wrap=wrap))
        equal((report["method"], report["exact"]), ("files", False), "method and exact")
        equal(report["verdict"], "quota", "verdict")
        want(any("stall" in m["what"] for m in report["missing"]), f"missing says nothing of stalls: {report['missing']}")
        text = " ".join(f"{m['why']} {m['remedy']}" for m in report["missing"])
        for reason in reasons:
            want(re.search(reason, text), f"missing says nothing of {reason}: {report['missing']}")
        forced = run_within(wrap, "check", "--cgroup", limited.name, "--for", "200ms", "--method", "tracepoints")
        doctor = run_within(wrap, "doctor")
    equal(forced.returncode, 3, f"exit status of the forced method ({forced.stdout}{forced.stderr})")
    want(any(re.search(reason, forced.stderr) for reason in reasons), f"no reason: {forced.stderr}")
    equal(doctor.returncode, 0, f"exit status of doctor, files can be read ({doctor.stdout}{doctor.stderr})")
    for reason in reasons:
        want(re.search(reason, doctor.stdout), f"doctor says nothing of {reason}: {doctor.stdout}")


@test
def without_the_capabilities_it_reads_files_and_says_why():
    expect_files(without(CAPS), "CAP_BPF|CAP_SYS_ADMIN")


@test
def two_capabilities_are_enough():
    """What a sidecar asks for: CAP_BPF and CAP_PERFMON, and no CAP_SYS_ADMIN."""
    need("tracepoints")
    wrap = ["setpriv", "--bounding-set", "-all,+bpf,+perfmon", "--inh-caps", "-all"]
    if not shutil.which("setpriv") or subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("capabilities cannot be dropped here")
    with group(quota_ms=20) as limited, busy(limited):
        report = one(check("--cgroup", limited.name, "--for", "500ms", "--method", "tracepoints", wrap=wrap))
    equal((report["method"], report["verdict"]), ("tracepoints", "quota"), "method and verdict")


@test
def as_an_ordinary_user_it_reads_files_and_says_why():
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    wrap = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all"]
    done = subprocess.run([*wrap, PROGRAM, "--version"], capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip("the build is in a folder that others cannot enter")
    expect_files(wrap, "CAP_BPF")


@test
def without_btf_it_reads_files_and_says_why():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("this kernel has no BTF")
    expect_files(in_mounts("mount -t tmpfs none /sys/kernel/btf"), "(?i)btf")


@test
def with_empty_btf_it_reads_files_and_says_why():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("this kernel has no BTF")
    expect_files(in_mounts("mount --bind /dev/null /sys/kernel/btf/vmlinux"), "(?i)btf")


@test
def without_the_cpu_controller_it_says_so():
    wrap = in_mounts("awk '$3 ~ /^cgroup/ { print $2 }' /proc/self/mounts | sort -r | xargs -r -n 1 umount --lazy")
    # Not --pid: of a process that sees the controller itself, its root would do.
    done = run_within(wrap, "check", "--for", "200ms", "--method", "files", "--scope", "self")
    equal(done.returncode, 3, f"exit status ({done.stdout}{done.stderr})")
    want(re.search("cgroup|controller", done.stderr + done.stdout), f"no word of the controller: {done.stdout}{done.stderr}")
    want(done.stderr.count("\n") <= 3, f"many words: {done.stderr}")
    doctor = run_within(wrap, "doctor")
    want(doctor.returncode in (0, 3) and re.search(r"^!!  cgroup", doctor.stdout, re.M), f"doctor: {doctor.returncode} {doctor.stdout}")


@test
def without_proc_it_says_so():
    for method in ("files", "tracepoints"):
        done = run_within(in_mounts("mount -t tmpfs none /proc"), "check", "--for", "200ms", "--method", method)
        equal(done.returncode, 3, f"exit status ({done.stdout}{done.stderr})")
        want("/proc" in done.stderr, f"no word of /proc: {done.stderr}")


@test
def a_target_that_does_not_exist_is_3_and_named():
    need("files")
    for words, name in ((["--cgroup", "/no/such/group"], "/no/such/group"), (["--pid", "4194303"], "4194303"),
                        (["--cgroup", "/../etc"], r"\.\."), (["--root", "/no/such/folder"], "/no/such/folder")):
        for command in ("check", "watch"):
            for method in ((), ("--method", "files")):
                if command == "watch" and "--root" in words:
                    continue
                result = run(command, *words, *method)
                want(result.status in ((2, 3) if name.startswith("\\") else (3,)), f"{command} {words}: exit status {result.status} {result.err}")
                want(re.search(name, result.err), f"{command} {words}: {result.err}")
                equal(result.out, "", f"{command} {words}: standard output")


@test
def an_end_between_two_looks_is_no_error():
    """A process that is there when the program starts, and is gone a moment later."""
    for method in ("files", "tracepoints"):
        need(method)
        for delay in ("0", "0.01", "0.05", "0.2"):
            with running(["sleep", delay]) as target:
                result = run("check", "--pid", str(target.pid), "--for", "300ms", "--method", method)
            want(result.status in (0, 3), f"{method}, {delay} s: exit status {result.status}: {result.err}")
            want(result.out or result.err, f"{method}, {delay} s: not a word")


@test
def output_that_is_closed_or_full_is_1():
    need("tracepoints")
    with group(quota_ms=20) as limited, busy(limited):
        for close in (">&-", ">/dev/full"):
            for form in ("text", "json"):
                done = run_within(["sh", "-c", f'exec "$@" {close}', "sh"], "check", "--cgroup", limited.name, "--for", "200ms",
                                  "--method", "tracepoints", "-o", form)
                equal(done.returncode, 1, f"exit status {close} ({done.stderr})")
                want("standard output" in done.stderr, f"{close}: {done.stderr}")


@test
def a_capture_that_cannot_be_written_is_named():
    for place in ("/proc/no-such-place", "/dev/null/x", "/dev/full"):
        result = run("check", "--pid", str(os.getpid()), "--for", "200ms", "--method", "files", "--capture", place)
        want(result.status in (1, 2, 3), f"{place}: exit status {result.status}")
        want(place in result.err, f"{place}: {result.err}")


@test
def low_limits_of_memory_and_files_are_survived():
    """What the program is refused it says: no signal, no silence."""
    need("files")
    for limit in ("-l 0", "-n 20", "-n 8", "-v 60000", "-f 0"):
        with group(quota_ms=20) as limited, busy(limited):
            done = run_within(["sh", "-c", f'ulimit {limit} && exec "$@"', "sh"], "check", "--cgroup", limited.name, "--for", "300ms",
                              "-o", "json")
        want(done.returncode in (0, 1, 3), f"ulimit {limit}: exit status {done.returncode}: {done.stderr}")
        want(done.returncode != 0 or one(containers(done.stdout)), f"ulimit {limit}: nothing said")
        want(done.returncode == 0 or done.stderr, f"ulimit {limit}: exit status {done.returncode} without a word")


@test
def the_agent_goes_on_when_its_output_fails():
    with group(quota_ms=20) as limited, busy(limited), open("/dev/full", "wb") as full:
        with Watch("--cgroup", limited.name, "--interval", "200ms", "--method", "files") as watch:
            watch.begun()
        process = subprocess.Popen([PROGRAM, "watch", "--cgroup", limited.name, "--interval", "200ms", "--method", "files"],
                                   stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True)
        try:
            process.wait(timeout=1.5)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, err = process.communicate(timeout=DEADLINE)
            equal(process.returncode, 0, f"exit status ({err})")
            want(re.search("could not be written", err), f"nothing said: {err!r}")
        else:
            raise AssertionError(f"it has ended with {process.returncode}")
        finally:
            process.stderr.close()


main("surroundings")
