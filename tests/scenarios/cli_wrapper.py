# SPDX-License-Identifier: Apache-2.0
"""run from outside: what a wrapper owes its command, its caller and its terminal."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

from cli_lib import (FILES, PROGRAM, Skip, children, command_of, equal, finish, group, kill_tree, main, proc_status, run, start,
                     start_in, state, test, until, until_listening, want)

RUN = ["run", *FILES, "--"]
PYTHON = sys.executable

# Prints each signal it gets, a line each; ends at SIGUSR2.
LISTENER = """
import os, signal, sys
all = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
signal.pthread_sigmask(signal.SIG_BLOCK, all)
print("ready", os.getpid(), flush=True)
while True:
    info = signal.sigwaitinfo(all)
    print(info.si_signo, flush=True)
    if info.si_signo == signal.SIGUSR2:
        sys.exit(3)
"""


@test
def exit_status_is_the_commands():
    for status in (0, 1, 2, 3, 7, 125, 255):
        equal(run(*RUN, "sh", "-c", f"exit {status}").status, status, "status")
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE):
        equal(run(*RUN, "sh", "-c", f"kill -{int(number)} $$").status, 128 + number, f"status after {number.name}")


@test
def command_that_cannot_run_is_126_or_127():
    with tempfile.TemporaryDirectory() as folder:
        plain = folder + "/plain"
        with open(plain, "w", encoding="utf-8"):
            pass
        for command, status, sentence in ((folder + "/none", 127, "No such file"), ("no-such-command", 127, "No such file"),
                                          (plain, 126, "Permission denied"), (folder, 126, "Permission denied")):
            # A folder in PATH that may not be entered would hide that there is no such command.
            result = run(*RUN, command, env={"PATH": "/usr/bin:/bin"})
            equal(result.status, status, f"status of {command}")
            want(f"{command}: {sentence}" in result.err, f"{command}: {result.err!r}")
            equal(result.err.count("\n"), 1, f"lines about {command}")


@test
def command_runs_though_nothing_can_be_measured():
    result = run("run", "--pid", "2147483647", *FILES, "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    equal(result.status, 5, "status")
    equal(result.out, "out\n", "standard output")
    want("err\n" in result.err, result.err)
    equal(result.err.count("runs without being measured"), 1, f"warnings in {result.err!r}")


@test
def options_of_the_command_are_its_own():
    equal(run("run", *FILES, "echo", "--interval", "x", "-v").out, "--interval x -v\n", "standard output")
    equal(run("run", *FILES, "--", "echo", "--", "a").out, "-- a\n", "standard output")


@test
def output_of_the_command_is_untouched():
    command = ["sh", "-c", "head -c 300000 /dev/zero; echo last"]
    with tempfile.TemporaryFile() as out:
        result = run(*RUN, *command, stdout=out)
        equal(result.status, 0, "status")
        out.seek(0)
        equal(out.read(), b"\0" * 300000 + b"last\n", "standard output")
    result = run(*RUN, "true")
    equal(result.out, "", "standard output of true")
    want("SUMMARY" in result.err, f"no line at the end: {result.err!r}")


@test
def standard_input_reaches_the_command():
    done = subprocess.run([PROGRAM, *RUN, "cat"], input="some\ntext", capture_output=True, text=True, timeout=20, check=False)
    equal(done.stdout, "some\ntext", "standard output")


@test
def reports_come_when_something_was_lost_and_once_at_the_end():
    with group(10) as (_, path):
        process = start_in(path, [PROGRAM, "run", *FILES, "--interval", "300ms", "-o", "json", "--", "sh", "-c",
                                  "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do :; done; echo done"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        result = finish(process)
    equal(result.out, "done\n", "standard output")
    kinds = re.findall(r'"type":"(\w+)"', result.err)
    want(kinds.count("container") >= 3 and kinds[-1] == "summary" and kinds.count("summary") == 1, f"records: {kinds}")


@test
def log_takes_the_reports_and_is_appended_to():
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        for _ in range(2):
            result = run("run", *FILES, "--log", log, "--", "true")
            equal((result.status, result.err), (0, ""), "status and standard error")
        with open(log, encoding="utf-8") as file:
            equal(file.read().count("SUMMARY"), 2, "summaries in the log")
        result = run("run", *FILES, "--log", folder + "/no/log", "--", "echo", "runs")
        equal((result.status, result.out), (0, "runs\n"), "status and output without a log")
        want("reports go to standard error" in result.err and "SUMMARY" in result.err, result.err)


def inherited(*prefix, **more):
    """What a process started so finds: not a shell, which has ideas of its own about signals."""
    found = ""
    for command in (["grep", "-E", "^(Sig(Blk|Ign|Cgt)|ShdPnd)", "/proc/self/status"], ["ls", "/proc/self/fd"],
                    ["cut", "-d ", "-f5,6,7", "/proc/self/stat"]):
        found += subprocess.run([*prefix, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, timeout=20, check=True, **more).stdout
    return found


@test
def command_inherits_what_the_wrapper_has():
    def ignore():
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGALRM})

    def defaults():
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)

    extra = os.open("/dev/null", os.O_RDONLY)
    for setup in (ignore, defaults):
        more = {"preexec_fn": setup, "pass_fds": (extra,), "restore_signals": False}
        direct, wrapped = inherited(**more), inherited(PROGRAM, *RUN, **more)
        equal(wrapped, direct, "what the command inherits")
    os.close(extra)


@contextlib.contextmanager
def listener(**more):
    """The wrapper around LISTENER, which has told its pid."""
    process = start("run", *FILES, "--log", "/dev/null", "--", PYTHON, "-c", LISTENER, **more)
    try:
        word, pid = process.stdout.readline().split()
        equal(word, "ready", "first word")
        yield process, int(pid)
    finally:
        kill_tree(process.pid)
        process.communicate()


@test
def every_signal_is_passed_on_once():
    own = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGUSR2, signal.SIGCONT}
    numbers = sorted(signal.valid_signals() - own)
    with listener() as (process, _):
        for number in numbers:
            process.send_signal(number)
            equal(process.stdout.readline().strip(), str(int(number)), "the signal that arrived")
        process.send_signal(signal.SIGUSR2)
        equal(process.stdout.read(), f"{int(signal.SIGUSR2)}\n", "what else arrived")
        equal(process.wait(timeout=10), 3, "status")


# The number and the value of the first signal; Python's own sigwaitinfo leaves the value out.
VALUE = """
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
print("ready", flush=True)
every, info = ctypes.create_string_buffer(b"\\xff" * 128), ctypes.create_string_buffer(128)
ctypes.CDLL(None).sigwaitinfo(every, info)
print(int.from_bytes(info.raw[0:4], "little"), int.from_bytes(info.raw[24:28], "little"))
"""


@test
def value_of_a_queued_signal_is_passed_on():
    process = start("run", *FILES, "--log", "/dev/null", "--", PYTHON, "-c", VALUE)
    equal(process.stdout.readline(), "ready\n", "first line")
    subprocess.run(["/usr/bin/env", "kill", "--signal", str(int(signal.SIGRTMIN)), "--queue", "4711", str(process.pid)], check=True)
    equal(finish(process).out, f"{int(signal.SIGRTMIN)} 4711\n", "signal and value")


@test
def signals_before_the_command_has_begun_are_not_lost():
    for _ in range(5):
        process = start(*RUN, "sleep", "60")
        until_listening(process)
        process.terminate()
        equal(finish(process, 10).status, 128 + signal.SIGTERM, "status")


@test
def signals_of_the_command_to_its_group_do_not_come_back():
    # A real-time signal, because two of another kind may become one.
    script = ("import os, signal\n"
              "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})\n"
              "os.kill(0, signal.SIGRTMIN)\n"
              "count = 0\n"
              "while signal.sigtimedwait({signal.SIGRTMIN}, 0.5):\n"
              "    count += 1\n"
              "print(count)\n")
    process = start("run", *FILES, "--", PYTHON, "-c", script, start_new_session=True)
    equal(finish(process).out, "1\n", "how often the command got its own signal")


@test
def no_zombie_is_left():
    process = start(*RUN, "sleep", "60")
    until_listening(process)
    child = until(lambda: children(process.pid), "the command has started")[0]
    os.kill(child, signal.SIGKILL)
    equal(finish(process).status, 128 + 9, "status")
    equal(proc_status(child, "State"), None, "state of the command afterwards")


@test
def as_pid_1_it_reaps_orphans_and_passes_signals_on():
    if os.geteuid() != 0:
        raise Skip("needs root for a PID namespace")
    # Ten orphans end at once; the command counts zombies until there are none, then waits for its signal.
    script = """
for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.1 &) ; done
trap 'echo got; exit 9' TERM
sleep 0.5
ps -A -o stat= | grep -c ^Z
echo ready
while :; do sleep 0.1; done
"""
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", PROGRAM, *RUN, "sh", "-c", script],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        equal(process.stdout.readline(), "0\n", "zombies")
        equal(process.stdout.readline(), "ready\n", "next line")
        os.kill(children(process.pid)[0], signal.SIGTERM)
        result = finish(process)
    finally:
        kill_tree(process.pid)
        process.wait()
    equal((result.out, result.status), ("got\n", 9), "output and status")


@test
def command_starts_in_time():
    best = 10.0
    for _ in range(5):
        begun = time.time()
        result = run("run", "--", "date", "+%s.%N")  # with the best method, which may take long to attach
        best = min(best, float(result.out) - begun)
    want(best < 0.35, f"at best after {best * 1000:.0f} ms")


@test
def standard_error_that_nobody_reads_does_not_hold_the_end_up():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 65536)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    begun = time.monotonic()
    process = start("run", *FILES, "--interval", "100ms", "--", "sleep", "0.5", stderr=writer)
    equal(process.wait(timeout=10), 0, "status")
    process.stdout.close()
    want(time.monotonic() - begun < 4, "it took too long")
    want(os.get_blocking(writer), "the wrapper has made a shared descriptor non-blocking")
    os.close(reader)
    os.close(writer)


class Terminal:
    """A session with a terminal and a shell's part in job control: us in a forked process, driven over a pipe."""

    def __init__(self, words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self.shell(words)
        self.text = ""

    @staticmethod
    def shell(words):
        """The shell: starts the job in a group of its own in the foreground, tells its stops, and continues it at once."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(words[0], words)
        with contextlib.suppress(PermissionError):
            os.setpgid(job, job)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                break
            os.tcsetpgrp(0, os.getpgrp())
            os.write(1, f"[stopped by {os.WSTOPSIG(status)}]\n".encode())
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        os.tcsetpgrp(0, os.getpgrp())
        os.write(1, f"[ended {os.waitstatus_to_exitcode(status)}]\n".encode())
        os._exit(0)

    def expect(self, pattern, timeout=10):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            left = end - time.monotonic()
            ready = select.select([self.fd], [], [], max(left, 0))[0]
            want(ready, f"no {pattern!r} on the terminal: {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                want(False, f"the terminal was closed before {pattern!r}: {self.text!r}")

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        os.close(self.fd)
        kill_tree(self.pid)
        os.waitpid(self.pid, 0)


JOB = """
import os, signal, sys, time
count = [0]
def interrupted(*_):
    count[0] += 1
    print("interrupted", count[0], flush=True)
signal.signal(signal.SIGINT, interrupted)
signal.signal(signal.SIGCONT, lambda *_: print("continued", flush=True))
print("tty", os.isatty(0), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
for line in sys.stdin:
    print("read", line.strip(), count[0], flush=True)
    if line.strip() == "end":
        sys.exit(4)
"""


@contextlib.contextmanager
def job():
    terminal = Terminal([PROGRAM, "run", *FILES, "--log", "/dev/null", "--", PYTHON, "-c", JOB])
    try:
        terminal.expect("tty True True")
        yield terminal
    finally:
        terminal.close()


@test
def terminal_is_the_commands_and_ctrl_c_reaches_it_once():
    with job() as terminal:
        terminal.type("hello\n")
        terminal.expect("read hello 0")
        terminal.type("\x03")
        terminal.expect("interrupted 1")
        time.sleep(0.3)
        terminal.type("end\n")
        terminal.expect("read end 1")
        terminal.expect(r"\[ended 4\]")


@test
def ctrl_z_stops_the_whole_job_and_it_goes_on():
    with job() as terminal:
        for _ in range(2):
            terminal.type("\x1a")
            terminal.expect(r"\[stopped by \d+\]")
            terminal.expect("continued")
            terminal.text = ""
        terminal.type("more\n")
        terminal.expect("read more 0")
        terminal.type("end\n")
        terminal.expect(r"\[ended 4\]")


@test
def hangup_of_the_terminal_reaches_the_command():
    with tempfile.TemporaryDirectory() as folder:
        mark = folder + "/hup"
        script = f"trap 'echo hup > {mark}; exit' HUP; echo ready; while :; do sleep 0.05; done"
        pid, fd = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, *RUN, "sh", "-c", script])
        until(lambda: b"ready" in os.read(fd, 4096), "the command has begun")
        os.close(fd)
        until(lambda: os.path.exists(mark), "the command has had its hangup")
        equal(os.WEXITSTATUS(os.waitpid(pid, 0)[1]), 0, "status")


@test
def stop_and_continue_sent_to_the_wrapper_reach_both():
    # A session of its own with a living parent in another group of it, or the kernel ignores SIGTSTP.
    keeper = subprocess.Popen([PYTHON, "-c", "import os, subprocess, sys\n"
                               "p = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0))\n"
                               "print(p.pid, flush=True)\n"
                               "sys.exit(p.wait() & 255)", PROGRAM, *RUN, "sleep", "60"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        wrapper = int(keeper.stdout.readline())
        child = until(lambda: [c for c in children(wrapper) if command_of(c) == "sleep"], "the command has started")[0]
        for _ in range(2):
            os.kill(wrapper, signal.SIGTSTP)
            until(lambda: state(child) == "T" and state(wrapper) == "T", "both have stopped")
            os.kill(wrapper, signal.SIGCONT)
            until(lambda: state(child) == "S" and state(wrapper) == "S", "both go on")
        os.kill(wrapper, signal.SIGTERM)
        equal(keeper.wait(timeout=10), 128 + signal.SIGTERM, "status")
    finally:
        kill_tree(keeper.pid)
        keeper.communicate()


main()
