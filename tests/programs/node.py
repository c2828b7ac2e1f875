#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js: the workers that the primary of a cluster says are online are what throttlescope says."""

import contextlib

from programs_lib import equal, folder, group, main, need, row, rows, server, test, wait_for, want, write

APP = """const cluster = require("cluster");
let online = 0;
if (cluster.isMaster) {
  for (let i = 0; i < Number(process.argv[2]); i++) cluster.fork();
  cluster.on("online", () => console.log("online " + ++online));
}
setTimeout(() => {}, 60000);
"""


@contextlib.contextmanager
def node(inside, workers):
    with folder() as place:
        def said():
            with open(f"{place}/out", encoding="utf-8") as file:
                return file.read().count("online")
        with open(f"{place}/out", "w", encoding="utf-8") as out, \
                server([need("node"), write(f"{place}/app.js", APP), str(workers)], inside, stdout=out):
            wait_for(lambda: said() == workers, f"{workers} workers")
            yield said()


@test
def a_cluster():
    with group(quota_ms=200) as inside, node(inside, 3) as workers:
        found = row(inside, "node", "cluster workers")
        equal((found["effective"], found["unit"], found["source"]), (workers, "processes", "code"), "effective")
        equal((found["recommended"], found["surplus"]), (2, 1), "recommended and surplus")


@test
def the_advice_removes_the_surplus():
    with group(quota_ms=200) as inside, node(inside, 2) as workers:
        found = row(inside, "node", "cluster workers")
        equal(found["effective"], workers, "effective")
        want(not found.get("surplus"), found)


@test
def a_process_alone_has_no_cluster():
    with group() as inside, node(inside, 0):
        equal([each for each in rows(inside) if each["setting"] == "cluster workers"], [], "rows")


main("node")
