#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy with 48 threads on one CPU against one thread, under the same load: what the limit did to it, and what throttlescope says.

As many requests a second as LAB_RATE, LAB_BATCH at a time, each by a connection of its own over the loopback and answered by HAProxy itself after hashing the path
many times, which stands for TLS: the work is HAProxy's own. Latency counts from the planned time. CPU, stalls and the memory of the process are
throttlescope's and the kernel's; the client is outside of the group.
Ends with 1 if throttlescope does not name nbthread and 1 for the 48 threads, or still does after the change; with 77 if this cannot be measured.

environment: BUILD (build), LAB_SECONDS (15 a case), LAB_RATE (1000 a second), LAB_BATCH (200),
  LAB_THREADS ("48 1")
"""

import os
import selectors
import socket
import shutil
import subprocess
import time

from lab_lib import MS, Skip, agent, folder, group, lines_of, main, number, one, percentile, running, until, want

LATE_NS = 10_000 * MS  # an answer after this is no answer
# What a request costs: so many rules of so many hashes each; a line of its configuration is at most 2 KiB.
RULES, HASHES = 6, 180


def program():
    found = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise Skip("haproxy is not installed")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configure(place, threads, port):
    path = f"{place}/haproxy.cfg"
    hashes = ",".join(["sha2(256)"] * HASHES)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"global\n    nbthread {threads}\n    maxconn 4000\n"
                   "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n"
                   f"frontend lab\n    bind 127.0.0.1:{port} backlog 1024\n"
                   f"    http-request set-header X-Work %[path,{hashes},hex]\n" +
                   f"    http-request set-header X-Work %[req.hdr(X-Work),{hashes},hex]\n" * (RULES - 1) +
                   "    http-request return status 200 hdr X-Work %[req.hdr(X-Work)]\n")
    return path


def offer(port, rate, batch, seconds):
    """An open loop: each request at its planned time; returns latencies and how many got no answer."""
    selector, latencies, failed = selectors.DefaultSelector(), [], 0
    begun_ns, total, sent = time.monotonic_ns() + 100 * MS, round(rate * seconds), 0

    def planned():
        return begun_ns + sent // batch * batch * 1_000_000_000 // rate

    end_ns = begun_ns + round(seconds * 1e9) + LATE_NS
    while sent < total or selector.get_map():
        now_ns = time.monotonic_ns()
        if now_ns > end_ns:
            failed += total - sent + len(selector.get_map())
            break
        while sent < total and (planned_ns := planned()) <= now_ns:
            link = socket.socket()
            link.setblocking(False)
            sent += 1
            link.connect_ex(("127.0.0.1", port))
            selector.register(link, selectors.EVENT_WRITE, planned_ns)
        wait = 0.05 if sent == total else max(0, (planned() - time.monotonic_ns()) / 1e9)
        for key, _ in selector.select(wait):
            try:
                if key.events == selectors.EVENT_WRITE:
                    key.fileobj.send(b"GET /lab HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
                    selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                    continue
                answered = key.fileobj.recv(65536).startswith(b"HTTP/1.1 200")
            except OSError:
                answered = False
            if answered:
                latencies.append(time.monotonic_ns() - key.data)
            else:
                failed += 1
            selector.unregister(key.fileobj)
            key.fileobj.close()
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    selector.close()
    return latencies, failed


def rss_anon_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        return int(one([line for line in lines if line.startswith("RssAnon:")], "RssAnon").split()[1])


def connects(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def measure(threads, rate, batch, seconds):
    with folder() as place, group(name=f"throttlescope-lab-{os.getpid()}") as inside:
        port = free_port()
        with running([program(), "-db", "-f", configure(place, threads, port)], inside, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until(lambda: process.poll() is not None or connects(port), "haproxy answers")
            want(process.poll() is None, f"haproxy ended with {process.poll()}")
            inside.limit(100)  # its start is not the story
            with agent("whole", inside, place, "check", "--for", "10m") as whole:
                before = inside.stat()
                latencies, failed = offer(port, rate, batch, seconds)
                after = inside.stat()
                memory_kib = rss_anon_kib(process.pid)
                whole.end()
                report = whole.windows()[-1]
    want(latencies, "no request was answered")
    periods, throttled = (after[key] - before[key] for key in ("nr_periods", "nr_throttled"))
    stalled_ns = sum(row["stall_ns"] for row in report["threads"])
    print(f"{threads:8} {len(latencies):9} {failed:7}  {throttled:6} of {periods:<4} {report['stall']['wall_ns'] / 1e9:7.2f} s {stalled_ns / 1e9:9.2f} s "
          f"{report['cpu']['cpus']:7.3f} {memory_kib / 1024:8.1f} MiB {percentile(latencies, 0.5) / MS:8.1f} {percentile(latencies, 0.99) / MS:8.1f}", flush=True)
    return report, lines_of(whole.text, "do")


def judge(threads, report):
    """It has to name nbthread for 48 threads and nothing of the kind for one."""
    row = one([row for row in report.get("parallelism", []) if (row["runtime"], row["setting"]) == ("haproxy", "nbthread")], "row of nbthread")
    if row["effective"] != threads or row["recommended"] != 1:
        yield f"nbthread {threads}: it says {row['effective']} runs and recommends {row['recommended']}"
    blamed = [finding for finding in report["findings"] if finding["code"] == "ParallelismExceedsLimit"]
    if (threads > 1) != bool(blamed):
        yield f"nbthread {threads}: ParallelismExceedsLimit is {'found' if blamed else 'not found'}"
    if blamed and not any((fix["setting"], fix["value"]) == ("nbthread", "1") for fix in blamed[0]["fixes"]):
        yield f"nbthread {threads}: the fixes are {[(fix['setting'], fix['value']) for fix in blamed[0]['fixes']]}"


def lab():
    program()
    seconds, rate, batch = number("LAB_SECONDS", 15.0), number("LAB_RATE", 1000), number("LAB_BATCH", 200)
    wrong, said = [], []
    print(f"HAProxy limited to 1 CPU on {os.cpu_count()}, {rate} requests a second, {batch} at a time, for {seconds:g} s.\n"
          f"{'':28}throttled  any thread     threads    CPUs{'':16}latency, ms\n"
          "nbthread  answered  failed    periods     stalled     stalled    used      RssAnon      p50      p99")
    for threads in map(int, os.environ.get("LAB_THREADS", "48 1").split()):
        report, lines = measure(threads, rate, batch, seconds)
        said.append((threads, report, lines))
        wrong += judge(threads, report)
    print("\nthrottlescope beside it:")
    for threads, report, lines in said:
        first = report["findings"][0] if report["findings"] else None
        print(f"nbthread {threads}:", *(f"  {line}" for line in lines),
              f"    finding  {first['code']}: {first['summary']}" if first else "    finding  none", sep="\n")
    return wrong


main("lab-haproxy", lab)
