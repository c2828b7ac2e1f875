#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Go: what runtime.GOMAXPROCS(0) says in programs of many toolchains, stripped or not, is what throttlescope reads in their memory."""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess

from programs_lib import Skip, equal, folder, group, main, row, rows, server, test, want, write

CACHE = os.path.expanduser("~/.cache/throttlescope/go")
VERSIONS = ("1.18.10", "1.20.14", "1.22.12", "1.24.9", "1.25.4", "1.27.3")
CPUS = len(os.sched_getaffinity(0))
FORCED = CPUS + 3  # no default of Go is above the CPUs of the machine
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())

SOURCE = """package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		n, _ := strconv.Atoi(os.Args[1])
		runtime.GOMAXPROCS(n)
	}
	fmt.Println(runtime.GOMAXPROCS(0))
	time.Sleep(time.Hour)
}
"""
WITH_C = SOURCE.replace("import (", 'import "C"\n\nimport (', 1)
WITH_LIBRARY = SOURCE.replace('"time"\n', '"time"\n\n\t_ "go.uber.org/automaxprocs"\n', 1)
STRIPPED = "-ldflags=-s -w"
OUTSIDE = "-ldflags=-linkmode=external"
FLAVOURS = {
    "plain": (SOURCE, ()),
    "stripped": (SOURCE, (STRIPPED,)),
    "pie": (SOURCE, ("-buildmode=pie",)),
    "stripped-pie": (SOURCE, ("-buildmode=pie", STRIPPED)),
    "c": (WITH_C, (OUTSIDE,)),
    "stripped-c-pie": (WITH_C, ("-buildmode=pie", OUTSIDE + " -s -w")),
}


def run_go(go, words, place, **variables):
    """Never a toolchain other than this one, and nothing in the user's own caches."""
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOMODCACHE": f"{CACHE}/mod", "GOCACHE": f"{CACHE}/build",
                   "GOFLAGS": "-modcacherw -mod=mod", "GOENV": "off" if variables.pop("alone", True) else "", **variables}
    return subprocess.run([go, *words], cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=200, check=False)


@functools.cache
def toolchain(version):
    """Its folder, fetched if it was not; a reason to skip is an exception."""
    name = f"golang.org/toolchain@v0.0.1-go{version}.linux-{MACHINE}"
    place, stamp = f"{CACHE}/mod/{name}", f"{CACHE}/{version}-{MACHINE}.ready"
    if os.path.exists(stamp) and os.path.exists(f"{place}/bin/go"):
        return place
    starter = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin:/usr/lib/go/bin")
    if not MACHINE or not starter:
        raise Skip("no go that could fetch toolchains" if MACHINE else f"no toolchains for {platform.machine()}")
    os.makedirs(CACHE, exist_ok=True)
    with folder() as empty:
        done = run_go(starter, ["mod", "download", name], empty, alone=False)
    if done.returncode != 0:
        raise Skip(f"toolchain {version} cannot be fetched: {' '.join(done.stderr.split())[-200:]}")
    # A module's files lose their modes; the archive is as large again.
    for directory in (f"{place}/bin", f"{place}/pkg/tool/linux_{MACHINE}"):
        for file in os.listdir(directory):
            os.chmod(f"{directory}/{file}", 0o755)
    with contextlib.suppress(OSError):
        os.unlink(f"{CACHE}/mod/cache/download/golang.org/toolchain/@v/v0.0.1-go{version}.linux-{MACHINE}.zip")
    write(stamp, "")
    return place


def build(version, flavour, source, options, language=None, require=""):
    """A program of that toolchain, from the cache if it was built before."""
    module = f"module example.org/program\n\ngo {language or version.rsplit('.', 1)[0]}\n{require}"
    key = hashlib.sha256(repr((version, MACHINE, source, options, module)).encode()).hexdigest()[:16]
    program = f"{CACHE}/programs/{version}-{flavour}-{key}"
    if os.path.exists(program):
        return program
    place = toolchain(version)
    os.makedirs(f"{CACHE}/programs", exist_ok=True)
    with folder() as made:
        write(f"{made}/go.mod", module)
        write(f"{made}/main.go", source)
        done = run_go(f"{place}/bin/go", ["build", *options, "-o", f"{program}.new", "."], made, GOROOT=place, alone=not require,
                      CGO_ENABLED="1" if 'import "C"' in source else "0")
    want(done.returncode == 0, f"go {version} builds {flavour}: {done.stderr[-300:]}")
    os.rename(f"{program}.new", program)
    return program


def flavours_here():
    has_c = shutil.which("gcc") is not None
    return {name: how for name, how in FLAVOURS.items() if has_c or how[0] is SOURCE}


def minor(version):
    return int(version.split(".")[1])


@contextlib.contextmanager
def started(program, inside, *words, **variables):
    """The program, and the number that it prints."""
    environment = {key: value for key, value in os.environ.items() if key not in ("GOMAXPROCS", "GODEBUG")}
    with server([program, *words], inside, env={**environment, **variables}, stdout=subprocess.PIPE) as process:
        with process.stdout as out:
            yield process.pid, int(out.readline())


def each_flavour(version, words, variables, source, detail=None, number=None):
    """All flavours of a version in one group: one look at all of them."""
    flavours = flavours_here()
    with group(quota_ms=100) as inside, contextlib.ExitStack() as stack:
        said = {}
        for flavour, (text, options) in flavours.items():
            program = build(version, flavour, text, options)
            pid, printed = stack.enter_context(started(program, inside, *words, **variables))
            want(number in (None, printed), f"{flavour} was told {number}, says {printed}")
            said[pid] = (flavour, printed)
        found = {each["host_pid"]: each for each in rows(inside)}
        equal(len(found), len(flavours), "rows")
        for pid, (flavour, printed) in said.items():
            got = found[pid]
            equal((got["runtime"], got["setting"]), ("go", "GOMAXPROCS"), flavour)
            equal(got.get("effective"), printed, f"effective of {flavour} ({got.get('unreadable')})")
            equal(got["version"], version, f"version of {flavour}")
            equal(got["source"], source, f"source of {flavour}")
            equal(got["recommended"], 2, f"recommended of {flavour}")
            equal(got.get("surplus", 0), max(printed - 2, 0), f"surplus of {flavour}")
            equal(got["aware"], minor(version) >= 25, f"aware of {flavour}")
            equal(got["follows"], source == "default" and minor(version) >= 25, f"follows of {flavour}")
            want(detail is None or got["source_detail"] == detail, got)


def each_version(function):
    for version in VERSIONS:
        def with_version(version=version):
            toolchain(version)
            function(version)
        with_version.__name__ = f"{function.__name__} {version}"
        test(with_version)


@each_version
def by_default(version):
    each_flavour(version, (), {}, "default")


@each_version
def by_the_environment(version):
    each_flavour(version, (), {"GOMAXPROCS": str(FORCED)}, "environment", "environment GOMAXPROCS", FORCED)


@each_version
def by_the_code(version):
    each_flavour(version, (str(FORCED),), {}, "code", number=FORCED)


@test
def an_old_module_turns_it_off_and_a_variable_on_again():
    version = VERSIONS[-1]
    toolchain(version)
    program = build(version, "old-module", SOURCE, (STRIPPED,), language="1.24")
    with group(quota_ms=100) as inside, started(program, inside) as (_, printed):
        found = row(inside, "go", "GOMAXPROCS")
        equal(found["effective"], printed, "effective")
        equal((found["aware"], found["follows"]), (False, False), "aware, follows")
        want("go.mod" in found["source_detail"], found)
    with group(quota_ms=100) as inside, started(program, inside, GODEBUG="containermaxprocs=1,updatemaxprocs=1"):
        found = row(inside, "go", "GOMAXPROCS")
        equal((found["aware"], found["follows"]), (True, True), "aware, follows")


@test
def a_quantity_is_no_number_for_go():
    version = "1.24.9"
    program = build(version, "plain", *FLAVOURS["plain"])
    with group(quota_ms=100) as inside, started(program, inside, GOMAXPROCS="1500m") as (_, printed):
        found = row(inside, "go", "GOMAXPROCS")
        equal(printed, CPUS, "what Go makes of 1500m")
        equal((found["effective"], found["source"]), (printed, "default"), "effective, source")
        want("ignores" in found["source_detail"], found)


@test
def a_library_reads_the_quota():
    version = "1.24.9"
    toolchain(version)
    program = build(version, "library", WITH_LIBRARY, (STRIPPED,), require="\nrequire go.uber.org/automaxprocs v1.6.0\n")
    with group(quota_ms=100) as inside, started(program, inside) as (_, printed):
        found = row(inside, "go", "GOMAXPROCS")
        equal((found["effective"], found["source"]), (printed, "library"), "effective, source")
        equal(found["source_detail"], "go.uber.org/automaxprocs v1.6.0", "source_detail")
        equal((found["aware"], found["follows"]), (True, False), "aware, follows")


@test
def the_advice_removes_the_surplus():
    program = build(VERSIONS[0], "stripped", *FLAVOURS["stripped"])
    with group(quota_ms=100) as inside, started(program, inside, GOMAXPROCS=str(FORCED)):
        found = row(inside, "go", "GOMAXPROCS")
        equal(found["surplus"], FORCED - 2, "surplus")
        want("GOMAXPROCS=2 in the environment" in found["how"], found["how"])
        name, value = found["how"].split(" ", 1)[0].split("=")
    with group(quota_ms=100) as inside, started(program, inside, **{name: value}) as (_, printed):
        found = row(inside, "go", "GOMAXPROCS")
        equal((printed, found["effective"], found.get("surplus", 0)), (2, 2, 0), "said, effective, surplus")


main("go")
