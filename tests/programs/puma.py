#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puma and Unicorn: the workers that they say are booted are what throttlescope says."""

import contextlib
import os
import re

from programs_lib import equal, folder, free_port, group, main, need, row, server, test, wait_for, want, write

APP = 'run lambda { |env| [200, {"Content-Type" => "text/plain"}, ["ok\\n"]] }\n'


@contextlib.contextmanager
def ruby(inside, words, ready, config=None, **environment):
    """A server in a folder with an application; yields the text of its log once `ready` matches there."""
    with folder() as place:
        write(f"{place}/config.ru", APP)
        os.mkdir(f"{place}/config")
        if config:
            write(f"{place}/config/{config[0]}", config[1])
        with open(f"{place}/log", "w+", encoding="utf-8") as log:
            def said():
                with open(f"{place}/log", encoding="utf-8") as file:
                    return file.read()
            env = {key: value for key, value in os.environ.items() if key != "WEB_CONCURRENCY"} | environment
            with server(words, inside, cwd=place, stdout=log, stderr=log, env=env):
                wait_for(lambda: ready(said()), "it is ready")
                yield said()


def puma(inside, workers, *words, config=None, **environment):
    words = [need("puma"), "-b", f"tcp://127.0.0.1:{free_port()}", *words]
    booted = (lambda text: len(set(re.findall(r"Worker (\d+) .*booted", text))) == workers) if workers else \
             (lambda text: "Use Ctrl-C to stop" in text)
    return ruby(inside, words, booted, config and ("puma.rb", config), **environment)


@test
def a_cluster_from_the_environment():
    with group(quota_ms=200) as inside, puma(inside, 4, "--tag", "t", WEB_CONCURRENCY="4") as said:
        found = row(inside, "puma", "workers")
        equal(found["effective"], int(re.search(r"Workers: (\d+)", said).group(1)), "effective")
        equal(found["effective"], 4, "effective")
        equal(found["version"], re.search(r"Puma version: (\S+)", said).group(1), "version")
        equal((found["source"], found.get("source_detail")), ("environment", "WEB_CONCURRENCY"), "source")
        equal(found["recommended"], 2, "recommended")
        equal(found["surplus"], 2, "surplus")
        want("WEB_CONCURRENCY=2" in found["how"], found["how"])


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=200) as inside, puma(inside, 2, WEB_CONCURRENCY="2"):
        found = row(inside, "puma", "workers")
        equal(found["effective"], 2, "effective")
        want(not found.get("surplus"), found)


@test
def a_title_longer_than_the_arguments_hides_the_environment():
    with group(quota_ms=100) as inside, puma(inside, 3, config=f'tag "{"t" * 200}"\n', WEB_CONCURRENCY="3"):
        found = row(inside, "puma", "workers")
        equal((found["effective"], found["source"]), (3, "unknown"), "effective and source")
        want("the environment" in found["unreadable"] and "overwritten by its title" in found["unreadable"], found)


@test
def a_cluster_from_its_configuration():
    with group(quota_ms=100) as inside, puma(inside, 3, config="threads 1, 2\nworkers 3\n"):
        found = row(inside, "puma", "workers")
        equal(found["effective"], 3, "effective")
        equal((found["source"], found["source_detail"]), ("config", "config/puma.rb:2"), "source")


@test
def an_argument_that_its_title_hides():
    with group(quota_ms=100) as inside, puma(inside, 3, "-w", "3", "--tag", "t"):
        found = row(inside, "puma", "workers")
        equal((found["effective"], found["source"]), (3, "unknown"), "effective and source")
        want("the command line" in found["unreadable"], found)


@test
def one_process_without_workers():
    with group(quota_ms=100) as inside, puma(inside, 0):
        found = row(inside, "puma", "workers")
        equal((found["effective"], found["source"]), (1, "default"), "effective and source")


@test
def unicorn():
    words = [need("unicorn"), "-l", f"127.0.0.1:{free_port()}", "-c", "config/unicorn.rb"]

    def ready(text):
        return len(re.findall(r"worker=\d+ ready", text)) == 3
    with group(quota_ms=100) as inside, ruby(inside, words, ready, ("unicorn.rb", "worker_processes 3\n")):
        found = row(inside, "unicorn", "worker_processes")
        equal(found["effective"], 3, "effective")
        equal((found["source"], found["source_detail"]), ("config", "config/unicorn.rb:1"), "source")
        equal(found["blocking"], True, "blocking")


main("puma")
