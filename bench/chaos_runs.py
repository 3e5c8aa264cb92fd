"""The runs of `bench.chaos`: one random program on one cluster, with what is done to it, and the judgement."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import headrace as hr
from bench.chaos_case import PROGRAM, Case, random_case
from bench.chaos_clusters import Ground, LocalGround, Namespaces, TlsGround, can_make_namespaces
from bench.chaos_faults import Chaos
from headrace.model.errors import HeadraceError, RunStopped
from headrace.model.events import Event, TaskFinished
from headrace.online.adapter import make_scheduler
from headrace.record import Record
from headrace.runtime.cluster import open_local
from headrace.runtime.run_policy import RunPolicy

SCHEDULERS = ("lheft", "workqueue", "heft", "dheft", "minmin")
KINDS = {"local": 8, "tls": 4, "scheduler": 2, "client": 3, "link": 3}
"""Kinds of runs, and how often they come."""
WORKER_FAULTS = ("kill", "stop", "join", "retire", "pause")
LIMIT = 90.0
POLICY = RunPolicy(suspect=3.0, stall=20.0)


@dataclass(frozen=True)
class Verdict:
    """How a run ended."""

    seed: int
    kind: str
    scheduler: str
    outcome: str = "right"
    """right, wrong, hang, abort, or skipped"""
    did: tuple[str, ...] = ()
    seconds: float = 0.0
    executions: int = 0
    tasks: int = 0
    error: str = ""
    noticed: float = 0.0
    """Seconds from the death of the scheduler to the error."""
    left: tuple[str, ...] = ()
    """Processes that were left behind."""

    def __str__(self) -> str:
        text = f"{self.outcome}: seed {self.seed}, {self.kind}, {self.scheduler}, {self.seconds:.1f} s, "
        text += ", ".join(self.did) or "no fault"
        if self.left:
            text += f"; left behind: {', '.join(self.left)}"
        return text + (f": {self.error}" if self.error else "")


@dataclass
class _Trial:
    """One run that is under way."""

    seed: int
    limit: float
    rng: random.Random
    case: Case
    scheduler: str
    home: Path
    did: list[str] = field(default_factory=list)
    finished: int = 0
    noticed: float = 0.0
    on_first: Callable[[], None] = lambda: None
    """Called when the first task has finished."""

    def observe(self, event: Event) -> None:
        if isinstance(event, TaskFinished):
            self.finished += 1
            if self.finished == 1:
                self.on_first()

    def judged(self, results: dict[str, Any], failure: object = None) -> tuple[str, str]:
        if failure is not None:
            return "abort", str(failure)
        return ("right", "") if results == self.case.results else ("wrong", "")


def disturbed_run(seed: int, limit: float = LIMIT, kind: str = "") -> Verdict:
    """One run of one seed; of the given kind, or one that the seed chooses."""
    rng = random.Random(seed)
    chosen = rng.choices(list(KINDS), list(KINDS.values()))[0]
    kind = kind or chosen
    case, scheduler = random_case(random.Random(seed)), rng.choice(SCHEDULERS)
    began = time.perf_counter()
    home = Path(tempfile.mkdtemp(prefix="headrace-chaos-home-"))
    trial = _Trial(seed, limit, rng, case, scheduler, home)
    verdict = Verdict(seed, kind, scheduler, tasks=len(case.program.tasks))
    try:
        outcome, error = _RUNS[kind](trial)
    except RunStopped as problem:
        outcome, error = "hang", str(problem)
    except HeadraceError as problem:
        outcome, error = "abort", str(problem)
    except Exception:  # an error without a type is one too
        outcome, error = "abort", traceback.format_exc()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return replace(
        verdict,
        outcome=outcome,
        error=error,
        did=tuple(trial.did),
        seconds=time.perf_counter() - began,
        executions=trial.finished,
        noticed=trial.noticed,
    )


def warm_up() -> None:
    """Have everything compiled that runs need: that could take longer than a run may."""
    with open_local(1) as cluster:
        for scheduler in SCHEDULERS:
            cluster.execute(random_case(random.Random(0)).program, make_scheduler(scheduler), policy=POLICY)


def _disturb(
    trial: _Trial, ground: Ground, faults: tuple[str, ...], spaces: Namespaces | None = None
) -> Chaos:
    """Faults from the first task on, or from the start."""
    chaos = Chaos(ground, random.Random(trial.seed + 1), faults, spaces, trial.did)
    if trial.rng.random() < 0.3:
        chaos.begin()
    else:
        trial.on_first = chaos.begin
    return chaos


def _local(trial: _Trial) -> tuple[str, str]:
    """On local workers, without a record."""
    rng = trial.rng
    restart = rng.random() < 0.7
    known = (*WORKER_FAULTS, "restart") if restart else WORKER_FAULTS
    faults = tuple(rng.choices(known, k=rng.randint(1, 5)))
    with LocalGround(rng.randint(2, 4), restart) as ground:
        chaos = _disturb(trial, ground, faults)
        try:
            done = ground.cluster.execute(
                trial.case.program,
                make_scheduler(trial.scheduler),
                trial.observe,
                timeout=trial.limit,
                policy=POLICY,
            )
        finally:
            chaos.end()
    return trial.judged(done.results, done.failure)


def _tls(trial: _Trial) -> tuple[str, str]:
    """On a TLS cluster of separate processes, with a record."""
    rng = trial.rng
    nanny = rng.random() < 0.3
    known = (*WORKER_FAULTS, "restart") if nanny else WORKER_FAULTS
    faults = tuple(rng.choices(known, k=rng.randint(1, 4)))
    with TlsGround(2 if nanny else rng.randint(2, 3), nanny) as ground:
        chaos = _disturb(trial, ground, faults)
        try:
            done = _run(trial, ground)
        finally:
            chaos.end()
    return trial.judged(done.results, done.failure)


def _link(trial: _Trial) -> tuple[str, str]:
    """On a TLS cluster whose workers are in network namespaces."""
    if not can_make_namespaces():
        return "skipped", "needs root and ip"
    rng = trial.rng
    faults = ("cut", *rng.choices(("cut", "kill", "pause", "stop"), k=rng.randint(0, 2)))
    spaces = Namespaces(3, namespace_tag())
    with closing(spaces), TlsGround(3, spaces=spaces) as ground:
        chaos = _disturb(trial, ground, faults, spaces)
        try:
            done = _run(trial, ground)
        finally:
            chaos.end()
    return trial.judged(done.results, done.failure)


def namespace_tag() -> str:
    """The tag of the namespaces of this process, unless its parent has chosen one."""
    return os.environ.get("HEADRACE_CHAOS_TAG", f"{os.getpid() % 2**20:x}")


def _run(trial: _Trial, ground: Ground) -> hr.Run:
    return hr.run(
        trial.case.program,
        ground.cluster,
        trial.scheduler,
        record=trial.home,
        output=trial.home,
        learn=False,
        policy=POLICY,
        observe=trial.observe,
    )


def _scheduler(trial: _Trial) -> tuple[str, str]:
    """The scheduler is killed or frozen: an error soon, and the run is resumed on a new cluster."""
    with TlsGround(2) as ground:
        fault = "scheduler" if trial.rng.random() < 0.8 else "freeze"
        chaos = Chaos(ground, random.Random(trial.seed + 1), (fault,), None, trial.did)
        trial.on_first = chaos.begin
        try:
            done = _run(trial, ground)
            return trial.judged(done.results, done.failure)  # it was faster
        except HeadraceError:
            chaos.end()
            if fault not in trial.did:
                raise
            trial.noticed = time.monotonic() - chaos.killed_at
    with TlsGround(2) as ground:
        done = hr.resume(
            "last",
            trial.case.program,
            record=trial.home,
            on=ground.cluster,
            observe=trial.observe,
        )
    return trial.judged(done.results, done.failure)


def _client(trial: _Trial) -> tuple[str, str]:
    """`headrace run` is killed, once or twice, and resumed; its workers end with it, or are those of a cluster."""
    (trial.home / "case.py").write_text(PROGRAM.format(seed=trial.seed))
    rng = trial.rng
    if rng.random() < 0.5:
        return _killed_clients(trial, ["--workers", "2"], rng.random() < 0.3)
    with TlsGround(2) as ground:
        files = {f"--tls-{name}": path for name, path in ground.tls.items()}
        where = ["--on", ground.url, *(part for pair in files.items() for part in pair)]
        return _killed_clients(trial, where, False)


def _killed_clients(trial: _Trial, where: list[str], stop_one: bool) -> tuple[str, str]:
    options = [*where, "-s", trial.scheduler, "--no-learn", "--suspect", "3", "--stall", "20", "--json"]
    command = ["run", "case.py:program", *options]
    for _ in range(trial.rng.randint(1, 2)):
        if not _killed(trial, command, stop_one):
            break
        command = ["resume", "last", "--json"]
    with _headrace(trial, ["resume", "last", "--json"]) as last:
        _, said = last.communicate(timeout=trial.limit)
    if last.returncode:
        return "abort", said.decode(errors="replace")[-2000:]
    done = hr.resume("last", trial.case.program, record=trial.home / "record")
    return trial.judged(done.results, done.failure)


def _killed(trial: _Trial, command: list[str], stop_one: bool) -> bool:
    """Start a run and kill it while it runs, with one of its workers stopped or not; False if it was faster."""
    import psutil  # type: ignore[import-untyped]

    session = trial.did.count("client") + 1
    with _headrace(trial, command) as process:
        end = time.monotonic() + trial.limit
        while not _has_begun(trial, session) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(trial.rng.uniform(0.0, 2.0))
        stopped = []
        if stop_one:
            with suppress(psutil.Error, IndexError):
                stopped = [psutil.Process(process.pid).children()[0]]
                stopped[0].suspend()
                trial.did.append("stop")
        faster = process.poll() is not None
        if not faster:
            os.kill(process.pid, signal.SIGKILL)
            trial.did.append("client")
        for worker in stopped:  # it cannot notice the end of its parent
            with suppress(psutil.Error):
                worker.kill()
        process.communicate()
    return not faster


def _has_begun(trial: _Trial, session: int) -> bool:
    """Whether this session of the run has been recorded."""
    if not (trial.home / "record").is_dir():
        return False
    with suppress(HeadraceError), Record.open(trial.home / "record") as record:
        return record.last().status == "running" and len(record.sessions(record.last().id)) >= session
    return False


def _headrace(trial: _Trial, command: list[str]) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in [*sys.path, str(Path(__file__).parents[1])] if path)
    return subprocess.Popen(
        [sys.executable, "-c", "from headrace.cli import main; main()", *command],
        cwd=trial.home,
        env=os.environ | {"HEADRACE_HOME": str(trial.home / "record"), "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


_RUNS: dict[str, Callable[[_Trial], tuple[str, str]]] = {
    "local": _local,
    "tls": _tls,
    "link": _link,
    "scheduler": _scheduler,
    "client": _client,
}
