"""Runs that are killed and resumed, and kept data with flipped bits: python -m bench.resume --kills 50 --flips 200.

Each case is a random program. `headrace run` is killed by SIGKILL: its client, its scheduler, a worker, or all of them
at a random moment, or the client at every write to the record and of a result file. `headrace resume` is called until
it is done, on the same workers or on others, and is killed itself at times. Counted are committed tasks that were
executed again, wrong results, and commands that did not end within --limit seconds. For the flips, random bits of what
runs have kept and written are flipped; each must be found, as by `headrace runs --verify`, and repaired by a resume.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.chaos_clusters import TlsGround
from bench.resume_case import Case

LIMIT = 180.0
KINDS = ("client", "worker", "scheduler", "everything")
_MOST_RESUMES = 6


@dataclass
class Counts:
    """What has happened in all cases."""

    kills: int = 0
    cases: int = 0
    again: int = 0
    wrong: int = 0
    hung: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return self.again + self.wrong + self.hung + self.refused

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {self.kills} kills: {self.again} committed tasks executed again, "
            f"{self.wrong} wrong results, {self.hung} hung, {self.refused} refused"
        )


class Trial:
    """One case: run, kill, resume until done."""

    def __init__(self, case: Case, counts: Counts, limit: float = LIMIT) -> None:
        self.case = case
        self.counts = counts
        self.limit = limit
        self.log: list[str] = []

    def killed(self, process: subprocess.Popen[str], what: str) -> bool:
        """Wait for a process that ends at a point of its own, or not at all; whether it was killed."""
        code = self.ended(process)
        hit = code == -signal.SIGKILL
        self.counts.kills += hit
        self.log.append(f"{what}: {'killed' if hit else f'exit {code}'}")
        return hit

    def ended(self, process: subprocess.Popen[str]) -> int | None:
        """The exit code; None if it hangs, and is then ended with everything it started."""
        try:
            _, error = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            self.counts.hung += 1
            self.problem("hung")
            end_tree(process)
            process.communicate()
            return None
        if process.returncode not in (0, -signal.SIGKILL):
            self.log.append(error.strip()[-300:])
        return process.returncode

    def resume(self, *options: str, point: str = "-") -> int | None:
        """One resume; what was committed before must not be executed again."""
        before, committed = self.case.settled(), self.case.committed()
        code = self.ended(self.case.start(point, "resume", "last", *options))
        if code == -signal.SIGKILL:
            self.counts.kills += 1
        self.log.append(f"resume {point}: exit {code}")
        again = sorted(committed & set(self.case.settled()[len(before) :]))
        if again:
            self.counts.again += len(again)
            self.problem(f"executed again: {', '.join(again)}")
        return code

    def finish(self, *options: str) -> None:
        """Resume until done, and look at the results."""
        for _ in range(_MOST_RESUMES):
            if self.case.has_run() and self.case.status() == "done":
                break
            if not self.case.has_run():  # killed before the run was recorded: there is nothing to resume
                self.ended(self.case.start("-", "run", "prog.py:program", "--no-learn", "--workers", "1"))
            elif self.resume(*options) is None:
                break
        else:
            self.counts.refused += 1
            self.problem("not done")
        self.counts.cases += 1
        wrong = self.case.wrong()
        self.counts.wrong += len(wrong)
        if wrong:
            self.problem(f"wrong: {', '.join(wrong)}")

    def problem(self, text: str) -> None:
        self.counts.problems.append(f"{self.case.folder.name}: {text} [{'; '.join(self.log)}]")


def end_tree(process: subprocess.Popen[str]) -> None:
    """Kill a `headrace` process and the workers that it has started."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def run_options(rng: random.Random) -> list[str]:
    scheduler = rng.choice(["heft", "lheft", "dask", "workqueue"])
    return ["--no-learn", "--keep", rng.choice(["all", "auto"]), "--scheduler", scheduler]


def wait_for_moment(case: Case, process: subprocess.Popen[str], rng: random.Random) -> None:
    """Until a random number of tasks was started since now, and a while longer."""
    wanted = len(case.executed()) + rng.randint(0, len(case.tasks) - 1)
    while len(case.executed()) < wanted and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.choice([0.0, 0.0, 0.02, 0.1, 0.3]))


def local_trial(folder: Path, seed: int, kind: str, counts: Counts, limit: float = LIMIT) -> Trial:
    """Kill the client, a worker, or everything, on local workers; a resume is killed too at times."""
    rng = random.Random(seed)
    trial = Trial(Case.make(folder / f"{kind}-{seed}", seed), counts, limit)
    case = trial.case
    process = case.start("-", "run", "prog.py:program", "--workers", "2", *run_options(rng))
    wait_for_moment(case, process, rng)
    kill(process, kind, rng)
    counts.kills += 1
    trial.log.append(f"killed {kind}")
    trial.ended(process)
    if rng.random() < 0.5 and case.has_run():
        point = f"journal:{rng.randint(1, 8)}:{rng.choice(['before', 'after'])}"
        trial.resume("--workers", "1", point=point)
    trial.finish("--workers", str(rng.randint(1, 3)))
    return trial


def kill(process: subprocess.Popen[str], kind: str, rng: random.Random) -> None:
    import psutil

    if kind == "client":
        process.kill()
    elif kind == "everything":
        end_tree(process)
    else:
        with suppress(psutil.NoSuchProcess, IndexError):
            workers = sorted(p.pid for p in psutil.Process(process.pid).children())
            os.kill(rng.choice(workers), signal.SIGKILL)


def scheduler_trial(folder: Path, seed: int, counts: Counts, limit: float = LIMIT) -> Trial:
    """Kill the scheduler of a shared cluster; go on at another cluster, or locally."""
    rng = random.Random(seed)
    trial = Trial(Case.make(folder / f"scheduler-{seed}", seed), counts, limit)
    with TlsGround(2) as ground:
        process = trial.case.start("-", "run", "prog.py:program", *where(ground), *run_options(rng))
        wait_for_moment(trial.case, process, rng)
        ground.scheduler.kill()
        counts.kills += 1
        trial.ended(process)
    if rng.random() < 0.5:
        with TlsGround(1) as other:
            trial.finish(*where(other))
    else:
        trial.finish("--on", "local", "--workers", "2")
    return trial


def where(ground: TlsGround) -> list[str]:
    """Options that lead to a cluster."""
    files = ground.tls
    return [
        "--on",
        ground.url,
        "--tls-ca",
        files["ca"],
        "--tls-cert",
        files["cert"],
        "--tls-key",
        files["key"],
    ]


def write_trials(
    folder: Path, seed: int, what: str, when: str, counts: Counts, most: int, limit: float
) -> int:
    """End the client at every write of a kind, on one shared cluster; resume there, or locally. Returns the writes."""
    with TlsGround(2) as ground:
        for number in range(1, most + 1):
            trial = Trial(Case.make(folder / f"{what}-{when}-{number}", seed), counts, limit)
            options = ["--no-learn", "--keep", "all", "--scheduler", "dask", *where(ground)]
            run = trial.case.start(f"{what}:{number}:{when}", "run", "prog.py:program", *options)
            hit = trial.killed(run, f"{what}:{number}:{when}")
            trial.finish(*(["--on", "local", "--workers", "1"] if number % 4 == 3 else []))
            if not hit:
                return number - 1
    return most


def kills(folder: Path, wanted: int, seed: int, limit: float = LIMIT, most: int = 1000) -> Counts:
    """Every write first, then random moments until there were so many kills."""
    counts = Counts()
    for what in ("journal", "file"):
        for when in ("before", "after"):
            writes = write_trials(folder, seed, what, when, counts, most, limit)
            print(f"{what} {when}: {writes} writes; {counts}", file=sys.stderr, flush=True)
    number = 0
    while counts.kills < wanted or number < len(KINDS):
        kind = KINDS[number % len(KINDS)]
        if kind == "scheduler":
            scheduler_trial(folder, seed + number, counts, limit)
        else:
            local_trial(folder, seed + number, kind, counts, limit)
        number += 1
        print(f"{kind}: {counts}", file=sys.stderr, flush=True)
    return counts


def main(wanted: int, flips: int, seed: int, limit: float = LIMIT) -> int:
    """Print the counts; returns how much went wrong."""
    from bench.resume_flips import flip_bits

    folder = Path(tempfile.mkdtemp(prefix="headrace-resume-"))
    faults = 0
    try:
        if wanted:
            counts = kills(folder, wanted, seed, limit)
            print(counts)
            print("\n".join(counts.problems), end="\n" if counts.problems else "")
            faults += counts.faults
        if flips:
            flipped = flip_bits(folder / "flips", flips, seed)
            print(flipped)
            faults += flipped.missed + flipped.wrong
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT)
    given = parser.parse_args()
    sys.exit(1 if main(given.kills, given.flips, given.seed, given.limit) else 0)
