#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java: the flags in its memory are those that it prints itself."""

import contextlib
import os
import re
import subprocess

from programs_lib import equal, folder, group, main, need, rows, row, server, test, wait_for, want, write

APP = """public class App {
    public static void main(String[] words) throws Exception {
        System.out.println(Runtime.getRuntime().availableProcessors());
        System.out.flush();
        Thread.sleep(60000);
    }
}
"""
OPTIONS = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")


@contextlib.contextmanager
def java(inside, *words, **environment):
    """Yields the number of processors that it counts and its flags: what -XX:+PrintFlagsFinal says of each, as text."""
    program = need("java", "javac")
    env = {key: value for key, value in os.environ.items() if key not in OPTIONS} | environment
    with folder() as place:
        source, out = write(f"{place}/App.java", APP), f"{place}/out"

        def said():
            with open(out, encoding="utf-8") as file:
                return file.read()
        with open(out, "w", encoding="utf-8") as log, \
                server([program, "-Xmx64m", "-XX:+PrintFlagsFinal", *words, source], inside, stdout=log,
                       stderr=subprocess.STDOUT, env=env):
            wait_for(lambda: re.search(r"^\d+$", said(), re.M), "it runs")
            flags = dict(re.findall(r"^ +\w+ (\w+) += (\S+)", said(), re.M))
            yield int(re.search(r"^(\d+)$", said(), re.M).group(1)), flags


def version(program):
    text = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    return re.search(r'version "([\d.]+)', text).group(1)


@test
def gc_threads_are_what_it_prints():
    with group(quota_ms=50) as inside, java(inside, "-XX:+UseG1GC", "-XX:ActiveProcessorCount=12") as (processors, flags):
        found = row(inside, "jvm", "ParallelGCThreads")
        equal(found["effective"], int(flags["ParallelGCThreads"]), "effective")
        equal(found["effective"], 10, "effective")
        equal(found["source"], "default", "source")
        equal(found["version"], version(need("java")), "version")
        equal((found["recommended"], found["surplus"]), (1, 9), "recommended and surplus")
        found = row(inside, "jvm", "ActiveProcessorCount")
        equal((found["effective"], processors), (12, 12), "effective")
        equal((found["source"], found["source_detail"]), ("argument", "-XX:ActiveProcessorCount=12"), "source")
        want("-XX:ActiveProcessorCount=1 " in found["how"], found["how"])


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=50) as inside, java(inside, JAVA_TOOL_OPTIONS="-XX:ActiveProcessorCount=1"):
        found = row(inside, "jvm", "ActiveProcessorCount")
        equal((found["effective"], found["source"]), (1, "environment"), "effective and source")
        equal(found["source_detail"], "JAVA_TOOL_OPTIONS", "source_detail")
        want(not any(each.get("surplus") for each in rows(inside)), rows(inside))


@test
def the_processors_are_inferred():
    with group() as inside, java(inside, "-XX:+UseParallelGC", "-XX:-UseContainerSupport") as (processors, flags):
        found = row(inside, "jvm", "ActiveProcessorCount")
        equal((found["effective"], found["aware"]), (processors, False), "effective and aware")
        equal(row(inside, "jvm", "ParallelGCThreads")["effective"], int(flags["ParallelGCThreads"]), "threads")


@test
def variables_of_the_launcher_and_the_machine():
    for variable, setting in (("JDK_JAVA_OPTIONS", "ActiveProcessorCount"), ("_JAVA_OPTIONS", "ParallelGCThreads")):
        with group() as inside, java(inside, "-XX:+UseParallelGC", **{variable: f"-XX:{setting}=3"}) as (_, flags):
            found = row(inside, "jvm", setting)
            equal(found["effective"], int(flags[setting]), "effective")
            equal((found["effective"], found["source"], found["source_detail"]), (3, "environment", variable), setting)


@test
def serial_has_no_threads():
    with group() as inside, java(inside, "-XX:+UseSerialGC"):
        found = rows(inside)
        equal([each["setting"] for each in found], ["ActiveProcessorCount"], "settings")
        want("effective" not in found[0] and "unreadable" in found[0], found[0])


main("jvm")
