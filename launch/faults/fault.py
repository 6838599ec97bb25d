"""What all fault scripts share: a job that suffers a fault, and the check of its root against the history of what was
acknowledged.

A script defines a Fault and hands it to main(): a job of `vckpt drill save` ranks is started, the fault strikes it at a
moment drawn from the seed and is healed, another job saves on the same root, and then every checkpoint that any rank was
told is durable must be there, whole, and load bit-exactly. Standard library only.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time

from job import ACKNOWLEDGED, JOB_SECONDS_MAX, Broken, Job, Missing, run

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # exit code
SLACK_SECONDS = 6  # a busy machine's share of every wait, and the pulses by which peers notice each other
CHECKPOINT_OVERHEAD = 1.3  # bytes on disk of a checkpoint over those of its tensors, and of the root's records below
RECORD_BYTES = 256 * 1024


class Setting:
    """What was asked for, and what the seed drew."""

    def __init__(self, arguments, name):
        self.vckpt = os.path.join(arguments.bin, "vckpt")
        self.coordinator = os.path.join(arguments.bin, "vckpt-coordinator")
        self.deadline_s = arguments.deadline
        self.model = arguments.model
        self.seed = arguments.seed
        self.random = random.Random(f"{name} {arguments.seed}")
        self.saves = arguments.saves
        self.ranks = arguments.ranks or self.random.randint(2, 4)
        self.layout = self.draw_layout(self.ranks)

    def draw_layout(self, ranks):
        axes = ["dp", "fsdp"] + (["tp", "pp"] if ranks in (2, 4) else [])
        return f"{self.random.choice(axes)}={ranks}"

    def drill(self, what, layout, *more):
        return [self.vckpt, "drill", what, "--model", self.model, "--layout", layout, "--deadline",
                str(self.deadline_s), *more]


class Fault:
    """One kind of fault. A script overrides what it needs."""

    name = ""
    saves = 6  # of the job that suffers, without --saves
    seconds = 0.0  # for how long it may delay a call, beyond the deadline
    outlasts = False  # the struck job ends only after() another has saved

    def need(self):
        """Raises Missing, or goes on apart."""

    def place(self, folder):
        """Where the root will be; made before the job starts."""
        return os.path.join(folder, "root")

    def begin(self, setting, root):
        """The job that will suffer."""
        options = setting.random.choice([[], ["--restart-coordinator"]])
        return Job(setting).launch(root, setting.ranks, setting.layout, 1, setting.saves, *options)

    def strike(self, job):
        """Does it, once. What was done, in words; None: the job was over before."""
        raise NotImplementedError

    def fired(self, job):
        """Known at the end of the job: whether it hit anything."""
        return True

    def heal(self):
        """Undoes it."""

    def after(self, job):
        """What is left to do when another job has saved."""

    def keep(self, folder):
        """Saves for inspection what leave() will take away."""

    def leave(self):
        """Takes away what place() made outside of its folder; everything has ended."""


def at_a_moment(job):
    """Waits until a moment drawn from the seed: some saves are done, and the next is under way. What it is, in words."""
    draw = job.setting.random
    saves = draw.randrange(1 + job.setting.saves // 2)
    delay_s = draw.uniform(0, 0.04)
    if not job.until(lambda: count_saves(job) >= saves and len(job.members()) > job.setting.ranks, JOB_SECONDS_MAX):
        return None
    return f"{delay_s * 1000:.0f} ms after save {saves}" if job.pause(delay_s) else None


def count_saves(job):
    return sum(1 for _, who, text in job.lines if who == "rank 0" and ACKNOWLEDGED.match(text))


def draw_member(job):
    """The coordinator, or any rank; (name, process id), or None when it is gone."""
    names = ["coordinator"] + [f"rank {rank}" for rank in range(job.setting.ranks)]
    name = job.setting.random.choice(names)
    pid = job.members().get(name)
    return (name, pid) if pid else None


def newer(identity):
    """Checkpoints in their order: epoch, attempt."""
    return tuple(int(number) for number in re.findall(r"\d+", identity)[:2])


def check_root(setting, root, acknowledged):
    """Every acknowledged checkpoint is listed, whole and loads bit-exactly; what else is listed is whole."""
    listed = run([setting.vckpt, "ls", root, "--json"])
    if listed.returncode != 0:
        raise Broken(f"ls: {listed.stderr.strip()}")
    root_state = json.loads(listed.stdout)
    committed = {checkpoint["id"]: checkpoint for checkpoint in root_state["checkpoints"]}
    for identity in acknowledged:
        if identity not in committed:
            raise Broken(f"{identity} was acknowledged, and is not listed")
    if root_state["unreadable"]:
        raise Broken(f"unreadable: {root_state['unreadable']}")
    newest = [identity for identity, checkpoint in committed.items() if checkpoint["newest"]]
    if acknowledged and newer(newest[0]) < max(map(newer, acknowledged)):
        raise Broken(f"newest is {newest[0]}, older than an acknowledged one")
    for identity in committed:
        whole = run([setting.vckpt, "verify", f"{root}@{identity}", "--deep"])
        if whole.returncode != 0:
            raise Broken(f"{identity} is not whole: {whole.stdout.strip()} {whole.stderr.strip()}")
    for identity in acknowledged:
        step = int(identity.rsplit("-s", 1)[1])
        loaded = run(setting.drill("load", "dp=1", "--root", root, "--step", str(step), "--verify"))
        if loaded.returncode != 0 or not loaded.stdout.startswith(f"loaded {identity}:"):
            raise Broken(f"{identity} does not load: {loaded.stdout.strip()} {loaded.stderr.strip()}")
    return root_state


def check_disk(root, root_state):
    """No more lies there than what is committed needs."""
    left = {kind: count for kind, count in root_state["bytes"].items() if kind != "live" and count > 0}
    if left:
        raise Broken(f"bytes that belong to no checkpoint: {left}")
    used = sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(root) for name in names)
    needed = sum(checkpoint["bytes"] for checkpoint in root_state["checkpoints"])
    if used > needed * CHECKPOINT_OVERHEAD + RECORD_BYTES:
        raise Broken(f"{used} bytes are used where checkpoints have {needed}")


def suffer(fault, setting, folder, jobs):
    """One round: (what the fault did or None, acknowledged, committed)."""
    root = fault.place(folder)
    job = fault.begin(setting, root)
    jobs.append(job)
    done = fault.strike(job)
    patience_s = setting.deadline_s + SLACK_SECONDS + fault.seconds
    if not fault.outlasts:
        job.finish(patience_s)
    fired = done is not None and fault.fired(job)
    fault.heal()
    ranks = setting.random.randint(1, 4)
    follower = Job(setting).launch(root, ranks, setting.draw_layout(ranks), 101, 2)
    jobs.append(follower)
    follower.finish(setting.deadline_s + SLACK_SECONDS)
    if follower.processes["run"].returncode != 0:
        raise Broken("the job that followed the fault could not save")
    fault.after(job)
    if fault.outlasts:
        job.finish(setting.deadline_s + SLACK_SECONDS)
    acknowledged = job.acknowledged() + follower.acknowledged()
    root_state = check_root(setting, root, acknowledged)
    check_disk(root, root_state)
    return done if fired else None, len(acknowledged), len(root_state["checkpoints"])


def parse(fault):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, epilog=(
        "Ends with one line that begins with fired, missed (nothing was hit), skipped (something is missing "
        f"here; exit code {SKIPPED}) or broken (exit code 1; the folder with root and log is kept)."))
    built = os.path.normpath(os.path.join(HERE, "..", "..", "build", "release", "bin"))
    installed = os.path.dirname(shutil.which("vckpt") or "")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="of all that is drawn")
    parser.add_argument("--bin", default=built if os.path.exists(built) else installed,
                        help="folder of vckpt and vckpt-coordinator (%(default)s)")
    parser.add_argument("--folder", help="where the root is made, to try a file system; default: a temporary folder")
    parser.add_argument("--ranks", type=int, default=0, help="of the job that suffers; default: 2 to 4, by the seed")
    parser.add_argument("--saves", type=int, default=fault.saves, help="of the job that suffers (%(default)s)")
    parser.add_argument("--model", default="llama:tiny", help="llama:SIZE or .safetensors (%(default)s)")
    parser.add_argument("--deadline", type=float, default=2, help="seconds without progress (%(default)s)")
    return parser.parse_args()


def main(fault):
    arguments = parse(fault)
    begun = time.monotonic()
    title = f"{fault.name} seed {arguments.seed}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left behind
    try:
        if not os.path.exists(os.path.join(arguments.bin, "vckpt")):
            sys.exit(f"{fault.name}: there is no vckpt in '{arguments.bin}'; say --bin FOLDER")
        fault.need()
    except Missing as missing:
        print(f"skipped {title}: {missing}")
        sys.exit(SKIPPED)
    folder = tempfile.mkdtemp(prefix=f"vckpt-{fault.name}-", dir=arguments.folder)
    jobs = []
    line, code = "", 0
    try:
        done, acknowledged, committed = suffer(fault, Setting(arguments, fault.name), folder, jobs)
        line = (f"{'fired' if done else 'missed'} {title}: {done or 'nothing was hit'}; {acknowledged} acknowledged, "
                f"{committed} committed, all whole, {time.monotonic() - begun:.1f} s")
    except Broken as broken:
        line, code = f"broken {title}: {broken}; kept {folder}", 1
    except Missing as missing:
        line, code = f"skipped {title}: {missing}", SKIPPED
    finally:
        fault.heal()
        for job in jobs:
            job.end()
        if code == 1:
            fault.keep(folder)
            print("\n".join(f"-- job\n{job.log()}" for job in jobs), file=sys.stderr)
        fault.leave()
        if code != 1:
            shutil.rmtree(folder)
    print(line)
    sys.exit(code)
