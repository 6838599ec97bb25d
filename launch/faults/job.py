"""A drilled job: its processes, what they say and when, and what a fault script does to them. Standard library only.
Processes are ended by their process id, and only those that were started here.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

JOB_SECONDS_MAX = 120
COMMAND_SECONDS_MAX = 60
ACKNOWLEDGED = re.compile(r"saved (e\d+-a\d+-s\d+)(?::|$)")


class Broken(Exception):
    """A promise was not kept."""


class Missing(Exception):
    """What this fault needs is not on this machine."""


def tool(name):
    """The path of a program; Missing when there is none."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise Missing(f"no {name}")
    return found


def need_root():
    if os.geteuid() != 0:
        raise Missing("not root")


def apart(*spaces):
    """Goes on in mount and other namespaces of its own (`--net`), which vanish with the last process in them."""
    need_root()
    if os.environ.get("VCKPT_FAULT_APART") == "yes":
        return
    unshare = [tool("unshare"), "--mount", "--propagation", "private", *spaces]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        raise Missing("unshare: no namespaces")
    os.environ["VCKPT_FAULT_APART"] = "yes"
    os.execv(unshare[0], [*unshare, sys.executable, "-B", *sys.argv])


def run(command, seconds=COMMAND_SECONDS_MAX):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Broken(f"{' '.join(command)}: no end within {seconds} s") from None


def attempt(command):
    """Runs a tool of the fault's own; Missing when it refuses."""
    done = run(command)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}: {done.stderr.strip()}")


class Job:
    """Processes of one job: who they are, what they say and when. Lines come from threads of its own."""

    def __init__(self, setting):
        self.setting = setting
        self.lines = []    # (seconds since the start, who, text)
        self.processes = {}  # name: Popen
        self._heard = {}   # who: when
        self._known = {}   # process id: name
        self._news = threading.Condition()
        self._begun = time.monotonic()

    def launch(self, root, ranks, layout, step, saves, *options):
        """`vckpt run` of drills that save."""
        setting = self.setting
        self.start("run", [setting.vckpt, "run", "-n", str(ranks), "--root", root, "--deadline",
                           str(setting.deadline_s), "--grace", str(JOB_SECONDS_MAX), *options, "--",
                           *setting.drill("save", layout, "--step", str(step), "--saves", str(saves),
                                          "--failures-max", "2")])
        return self

    def start(self, name, command, environment=None):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
        self.processes[name] = process
        threading.Thread(target=self._listen, args=(name, process.stdout), daemon=True).start()
        return process

    def _listen(self, name, pipe):
        for line in pipe:
            named = re.match(r"\[(\w+)\] (.*)", line) if name == "run" else None
            who, text = named.groups() if named else (name, line.rstrip())
            who = f"rank {who}" if who.isdigit() else who
            with self._news:
                now = time.monotonic()
                self.lines.append((now - self._begun, who, text))
                self._heard[who] = now
                self._news.notify_all()

    def members(self):
        """Living processes of the job by name: `coordinator`, `rank 0`, ..."""
        found = {name: process.pid for name, process in self.processes.items()
                 if name != "run" and process.poll() is None}
        run_process = self.processes.get("run")
        if run_process is None or run_process.poll() is not None:
            return found
        try:
            with open(f"/proc/{run_process.pid}/task/{run_process.pid}/children", encoding="ascii") as file:
                children = [int(pid) for pid in file.read().split()]
        except OSError:
            return found
        for pid in children:
            name = self._known.get(pid) or name_of(pid)
            if name:
                found[name] = pid
                self._known[pid] = name
        return found

    def until(self, holds, seconds):
        """Waits until holds(); False when the job ended, or the time did, before."""
        end = time.monotonic() + seconds
        with self._news:
            while not holds():
                if not self.running() or time.monotonic() >= end:
                    return holds()
                self._news.wait(0.01)
        return True

    def running(self):
        return any(process.poll() is None for process in self.processes.values())

    def awaited(self):
        """Whether what must end by itself has not."""
        return self.running()

    def pause(self, seconds):
        """Lets the job go on for a while; whether it still runs."""
        self.until(lambda: False, seconds)
        return self.running()

    def acknowledged(self):
        """Checkpoints that any rank said it was told are durable."""
        with self._news:
            return sorted({match.group(1) for _, _, text in self.lines if (match := ACKNOWLEDGED.match(text))})

    def excuse(self, who):
        """Who was kept from speaking until now."""
        with self._news:
            self._heard[who] = time.monotonic()

    def finish(self, patience_s):
        """Waits for the end of all. Broken: a rank that is silent, so inside a call, for longer than `patience_s`."""
        end = time.monotonic() + JOB_SECONDS_MAX
        while self.awaited():
            now = time.monotonic()
            for who in self.members():
                silent_s = now - self._heard.get(who, self._begun)
                if who.startswith("rank") and silent_s > patience_s:
                    raise Broken(f"{who} has been silent for {silent_s:.0f} s; its deadline is "
                                 f"{self.setting.deadline_s:g} s")
            if now > end:
                raise Broken(f"the job has not ended after {JOB_SECONDS_MAX} s: {', '.join(self.members())}")
            self.pause(0.1)

    def end(self):
        """Kills what is left of it."""
        for pid in self.members().values():
            send(pid, signal.SIGKILL)
        for process in self.processes.values():
            if process.poll() is None:
                send(process.pid, signal.SIGCONT)
                send(process.pid, signal.SIGKILL)
            process.wait()

    def log(self):
        with self._news:
            return "".join(f"{at:7.3f} {who}: {text}\n" for at, who, text in self.lines)


def name_of(pid):
    """`coordinator` or `rank N`, for a child of `vckpt run` that has become its program."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            program = file.read().strip()
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    except OSError:
        return None
    if program.startswith("vckpt-coordinat"):
        return "coordinator"
    return f"rank {int(variables[b'RANK'])}" if program == "vckpt" and b"RANK" in variables else None


def send(pid, number):
    """Whether the process was there to be told."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Injection:
    """System calls of a living process that are made to fail, to be late, or to kill it: strace, attached to it."""

    def __init__(self, job, pid, calls, effect, log):
        self.log = log
        self.strace = subprocess.Popen(
            [tool("strace"), "-f", "-qq", "-o", log, "-p", str(pid), "-e", f"trace={calls}", "-e",
             f"inject={calls}:{effect}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        end = time.monotonic() + 10
        while self.strace.poll() is None and not traced(pid) and time.monotonic() < end:
            job.pause(0.002)
        self.ended_before = pid not in job.members().values()

    def end(self):
        """Leaves the process alone again; whether any call was hit."""
        if self.strace.poll() is None:
            self.strace.terminate()
        self.strace.wait()
        said = self.strace.stderr.read()
        if "Operation not permitted" in said and not self.ended_before:
            raise Missing(f"strace may not attach: {said.strip()}")
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                text = file.read()
            return "(INJECTED)" in text or "(DELAYED)" in text or "killed by SIGKILL" in text
        except FileNotFoundError:
            return False


def traced(pid):
    """Whether a tracer has all threads of a process."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii", errors="replace") as file:
                if "TracerPid:\t0\n" in file.read():
                    return False
    except OSError:
        return False
    return True
