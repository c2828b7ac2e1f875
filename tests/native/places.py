# SPDX-License-Identifier: Apache-2.0
"""Containers as they are: the agent and the application in groups and PID namespaces of their own, ancestors out of sight."""

import contextlib
import json
import os
import shutil
import subprocess

from native_lib import (LOAD, METHODS, MS, PROGRAM, Skip, check, containers, equal, group, hierarchy, load, main, near, need, one,
                        running, scratch, test, until, want)

# What a container runtime of cgroup v1 does: the container's own group is all that is mounted there.
HIDE = 'mount --make-rprivate / && mount --bind "$1" "$2" && mount -t proc proc /proc && shift 2 && exec "$@"'


def contained(own, *more, pid=True):
    """Words before a command that make it run where a container would: it sees its own group and its own processes."""
    where = hierarchy()
    if not shutil.which("unshare"):
        raise Skip("unshare is not installed")
    words = ["unshare", "--mount", *more, *(["--pid", "--fork", "--kill-child"] if pid else [])]
    done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"no namespaces can be made: {done.stderr.strip()}")
    return [*words, "sh", "-c", HIDE, "sh", own.path, where["mount"]]


def ids_of(inside):
    """{(pid, tid) in the innermost namespace} of the threads of a group."""
    found = set()
    for pid in inside.pids():
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as lines:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)
            found.add((int(fields["NStgid"].split()[-1]), int(fields["NSpid"].split()[-1])))
    return found


def compare_ids(report, inside, hidden=True):
    """The workers are known by the numbers of their own namespace; the agent's own numbers for them do not exist."""
    there = ids_of(inside)
    workers = [thread for thread in report["threads"] if thread["name"].startswith("busy-")]
    equal(len(workers), 2, f"workers in {[t['name'] for t in report['threads']]}")
    want(sum(worker["stall_ns"] for worker in workers) > 0, "no stall")
    for worker in workers:
        want((worker["pid"], worker["tid"]) in there, f"{worker['name']} is {worker['pid']}/{worker['tid']}, there are {sorted(there)}")
        if hidden:
            want("host_pid" not in worker and "host_tid" not in worker, f"{worker['name']} has numbers of the agent's namespace")


@contextlib.contextmanager
def pod(pod_ms=None, app_ms=None):
    """A Pod of two containers; the application works in its own PID namespace."""
    with group(quota_ms=pod_ms) as whole, group(below=whole, name="app", quota_ms=app_ms) as app, \
            group(below=whole, name="agent") as agent:
        with load("busy", "--here", "--seconds", "60", inside=app, prefix=["unshare", "--pid", "--fork", "--kill-child"]):
            yield whole, app, agent


@test
def a_sidecar_sees_its_siblings_without_seeing_their_processes():
    need("tracepoints")
    with pod(app_ms=40) as (_, app, agent):
        for more in ((), ("--cgroup",)):
            found = check("--scope", "pod", "--for", "1s", "--method", "tracepoints", wrap=contained(agent, *more), preexec_fn=agent.enter)
            report = one([r for r in found if r.get("cgroup", "").endswith("app")], f"app in {[r.get('cgroup') for r in found]}")
            compare_ids(report, app)
            equal(report["limit"]["quota_ns"], 40 * MS, "its quota")
            equal(report["limit"]["level"], "container", "level of the limit")
            want(report["verdict"] in ("quota", "mixed", "contention") and report["causes"]["quota_ns"] > 0, f"{report['verdict']}")
            # Its files are out of sight, but the scheduler's own group has the counters.
            want(report.get("periods", {}).get("throttled", 0) > 0, "no periods of a group whose files are out of sight")


@test
def a_sidecar_names_the_limit_of_the_pod():
    need("tracepoints")
    with pod(pod_ms=40) as (_, app, agent):
        found = check("--scope", "pod", "--for", "1s", "--method", "tracepoints", wrap=contained(agent), preexec_fn=agent.enter)
        report = one([r for r in found if r.get("cgroup", "").endswith("app")], f"app in {[r.get('cgroup') for r in found]}")
        compare_ids(report, app)
    compare_ancestor(report)


def compare_ancestor(report):
    want(report["limit"]["level"] in ("pod", "ancestor"), f"level {report['limit']['level']}")
    equal((report["limit"]["quota_ns"], report["limit"]["period_ns"]), (40 * MS, 100 * MS), "limit")
    near(report["limit"]["cpus"], 0.4, 0, 0.0001, "limit.cpus")
    equal(report["causes"]["quota_ns"], 0, "stall blamed on its own limit")
    want(report["causes"]["ancestor_ns"] > 0, "no stall blamed on the ancestor")
    want(report["verdict"] in ("ancestor-quota", "mixed", "contention"), f"verdict {report['verdict']}")
    want("AncestorThrottled" in [f["code"] for f in report["findings"]], f"findings: {[f['code'] for f in report['findings']]}")
    want(report.get("ancestor_throttled_ns", 1) > 0, "ancestor_throttled_ns is 0")


@test
def a_limit_above_what_can_be_seen_is_found():
    need("tracepoints")
    with pod(pod_ms=40) as (_, app, _):
        report = one(check("--scope", "self", "--for", "1s", "--method", "tracepoints", wrap=contained(app), preexec_fn=app.enter))
        compare_ancestor(report)
        # With files it must see the threads: here they are in its own PID namespace.
        beside = 'sh -c "while :; do :; done" & "$@"; s=$?; kill $!; exit $s'
        files = one(check("--scope", "self", "--for", "1s", "--method", "files", wrap=[*contained(app), "sh", "-c", beside, "sh"],
                          preexec_fn=app.enter))
    want("limit" not in files, f"files see a limit: {files.get('limit')}")
    want(files["verdict"] in ("ancestor-quota", "mixed"), f"verdict from files {files['verdict']}")
    want(files.get("ancestor_throttled_ns", 1) > 0, "the kernel's own counter shows that something above was at work")


@test
def files_alone_say_what_would_let_them_see():
    """Without BPF a sidecar sees its own container only: no verdict about others, and the ways out."""
    with pod(app_ms=40) as (_, _, agent):
        done = subprocess.run([*contained(agent), PROGRAM, "check", "--scope", "pod", "--for", "300ms", "--method", "files"],
                              capture_output=True, text=True, check=False, preexec_fn=agent.enter)
    equal(done.returncode, 3, f"exit status ({done.stdout}{done.stderr})")
    for word in ("wrapper", "debug", "shareProcessNamespace", "DaemonSet"):
        want(word in done.stdout + done.stderr, f"no word of {word}: {done.stdout}{done.stderr}")


@test
def ids_of_nested_pid_namespaces_are_translated():
    with group() as above, load("pidns", "--group", f"{above.name.rsplit('/', 1)[1]}/work", "--seconds", "60", "quota=40ms") as work:
        workers = {t["tid"]: t for t in work.setup["threads"] if t["role"] != "leader"}
        for method in METHODS:
            need(method)
            report = one(check("--pid", str(next(iter(workers.values()))["pid"]), "--for", "500ms", "--method", method))
            seen = {t["host_tid"]: t for t in report["threads"]}
            for tid, worker in workers.items():
                want(tid in seen, f"{method}: {worker['name']} ({tid}) is not among {sorted(seen)}")
                got = tuple(seen[tid][name] for name in ("pid", "tid", "host_pid", "host_tid"))
                equal(got, (worker["inner_pid"], worker["inner_tid"], worker["pid"], tid), f"{method}: ids of {worker['name']}")


@test
def an_agent_in_a_pid_namespace_looks_into_one_below():
    """As on a kind node: host_* are the agent's, which are not the machine's."""
    need("tracepoints")
    with group(quota_ms=40) as app:
        script = '"$0" --pid --fork --kill-child "$1" busy --here --seconds 60 --no-wait >/dev/null & app=$!\n' \
                 'until [ -n "$(cat /proc/$app/task/$app/children)" ]; do :; done\n' \
                 'read -r child rest </proc/$app/task/$app/children\n' \
                 '"$2" check -o json --pid "$child" --for 1s --method tracepoints --threads 10; s=$?; kill $child; exit $s'
        done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "unshare", LOAD, PROGRAM],
                              capture_output=True, text=True, timeout=30, check=False, preexec_fn=app.enter)
    equal(done.returncode, 0, f"exit status ({done.stderr})")
    report = one(containers(done.stdout))
    workers = [t for t in report["threads"] if t["name"].startswith("busy-")]
    equal(len(workers), 2, f"workers among {[t['name'] for t in report['threads']]}")
    for worker in workers:
        want(worker["tid"] < worker["host_tid"] < 100, f"tid {worker['tid']}, host_tid {worker.get('host_tid')}")


# ---- the real thing ----

CAPS = ["CAP_BPF", "CAP_PERFMON"]


def bundle(name, words, cgroups, caps=()):
    """A folder that runc can run: the two programs and the libraries they need."""
    folder = scratch(name)
    root = f"{folder}/rootfs"
    for each in ("proc", "sys", "dev", "tmp", "bin"):
        os.makedirs(f"{root}/{each}")
    shutil.copy(LOAD, f"{root}/bin/load")
    shutil.copy(PROGRAM, f"{root}/bin/throttlescope")
    libraries = subprocess.run(["ldd", PROGRAM], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for library in [word for word in libraries if word.startswith("/")]:
        os.makedirs(root + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, root + library)
    subprocess.run(["runc", "spec"], cwd=folder, check=True)
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    config["process"].update(terminal=False, args=words)
    held = sorted({*config["process"]["capabilities"]["bounding"], *caps})
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind] = held
    config["linux"]["cgroupsPath"] = cgroups
    config["root"]["readonly"] = True
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    return folder


@contextlib.contextmanager
def container(state, name, folder, **more):
    full = f"{name}-{os.getpid()}"
    with open(f"{folder}/err", "wb") as err:
        process = subprocess.Popen(["runc", "--root", state, "run", "--bundle", folder, full], stdin=subprocess.DEVNULL, stderr=err, **more)
    try:
        yield process
    finally:
        subprocess.run(["runc", "--root", state, "delete", "--force", full], capture_output=True, check=False)
        process.wait(timeout=10)


def said(folder):
    with open(f"{folder}/err", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def leftovers(name):
    """runc makes the group in every hierarchy; what is empty goes."""
    for folder in [name.join(("/sys/fs/cgroup/", ""))] + [f"/sys/fs/cgroup/{each}{name}" for each in os.listdir("/sys/fs/cgroup")]:
        for child in ("app", "agent", ""):
            with contextlib.suppress(OSError):
                os.rmdir(f"{folder}/{child}")


@test
def runc_containers_of_one_pod():
    need("tracepoints")
    if not shutil.which("runc"):
        raise Skip("runc is not installed")
    with group() as whole:
        try:
            busy = ["/bin/load", "busy", "--here", "--seconds", "60", "--no-wait"]
            app = bundle("app", busy, f"{whole.name}/app")
            with open(f"{app}/config.json", encoding="utf-8") as file:
                config = json.load(file)
            config["linux"]["resources"]["cpu"] = {"quota": 40000, "period": 100000}
            with open(f"{app}/config.json", "w", encoding="utf-8") as file:
                json.dump(config, file)
            look = ["/bin/throttlescope", "check", "--scope", "pod", "--for", "1s", "-o", "json", "--method", "tracepoints"]
            agent = bundle("agent", look, f"{whole.name}/agent", CAPS)
            with container(scratch("runc"), "app", app, stdout=subprocess.DEVNULL) as first:
                try:
                    until(lambda: len(ids_below(whole)) >= 3 or first.poll() is not None, "the application runs")
                except AssertionError as error:
                    raise AssertionError(f"{error}: {said(app)}") from None
                if first.poll() is not None:
                    raise Skip(f"runc cannot run a container here: {said(app)[-200:]}")
                with container(scratch("runc"), "agent", agent, stdout=subprocess.PIPE, text=True) as second:
                    out, _ = second.communicate(timeout=30)
                    equal(second.returncode, 0, f"exit status ({said(agent)})")
                found = containers(out)
                report = one([r for r in found if r.get("cgroup", "").endswith("app")], f"app in {[r.get('cgroup') for r in found]}")
                workers = [t for t in report["threads"] if t["name"].startswith("busy-")]
                equal(len(workers), 2, f"workers among {[t['name'] for t in report['threads']]}")
                for worker in workers:
                    want((worker["pid"], worker["tid"]) in ids_below(whole), f"{worker['name']}: {worker}")
                    want(worker["stall_ns"] > 0 and "host_tid" not in worker, f"{worker['name']}: {worker}")
                equal(report["limit"]["quota_ns"], 40 * MS, "quota")
        finally:
            leftovers(whole.name)


def ids_below(whole):
    try:
        return ids_of(whole)
    except (FileNotFoundError, ProcessLookupError):
        return set()


main("places")
