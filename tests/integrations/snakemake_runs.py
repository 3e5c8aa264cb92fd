"""Run the workflow of the tests with a scheduler, by the real snakemake, on emulated hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = (
    ROOT
    / "integrations"
    / "snakemake-scheduler-plugin-headrace"
    / "src"
    / "snakemake_scheduler_plugin_headrace"
)
WORKFLOW = Path(__file__).parent / "snakemake_workflow"
PYTHON = Path(os.environ.get("HEADRACE_SNAKEMAKE", ROOT / ".venv-snakemake" / "bin" / "python"))
"""The interpreter of an environment with snakemake and the plugin: `make snakemake`."""
HOSTS = "fast=4,middle=2,slow1=1,slow2=1"


@dataclass(frozen=True)
class Execution:
    """One job, as the emulated host saw it."""

    output: str
    host: str
    began: float
    ended: float
    asked: bool


@dataclass(frozen=True)
class Outcome:
    code: int
    text: str
    seconds: float
    """From the first start of a job to the last end: without the start of snakemake itself."""
    jobs: tuple[Execution, ...]


def run_workflow(
    folder: Path,
    *options: str,
    unit: float = 0.2,
    hosts: str = HOSTS,
    python: str | Path = PYTHON,
    target: str = "report.txt",
    snakefile: Path = WORKFLOW / "Snakefile",
    timeout: float = 240.0,
) -> Outcome:
    """Run in a folder with the given options of snakemake; outputs of an earlier run are removed."""
    for old in ("prepared", "aligned", "counted", "locks"):
        shutil.rmtree(folder / old, ignore_errors=True)
    (folder / "report.txt").unlink(missing_ok=True)
    locks = folder / "locks"
    locks.mkdir(parents=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHASHSEED")}
    environment |= {"HOSTS": hosts, "LOCKS": str(locks)}
    command = [
        str(python), "-m", "snakemake", target, "--snakefile", str(snakefile), "--directory", str(folder),
        "--cores", str(len(hosts.split(","))), "--config", f"unit={unit}", f"python={python}", *options,
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=timeout, check=False
    )
    rows = (
        [line.split("\t") for line in (locks / "log").read_text().splitlines()]
        if (locks / "log").exists()
        else []
    )
    jobs = tuple(Execution(o, h, float(b), float(e), bool(asked)) for o, h, b, e, asked in rows)
    seconds = max((j.ended for j in jobs), default=0.0) - min((j.began for j in jobs), default=0.0)
    return Outcome(done.returncode, done.stdout + done.stderr, seconds, jobs)
