"""A real Snakefile, run by the real snakemake with `--scheduler headrace`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.record import Record
from headrace.record.steering_rows import steered_rows

from .snakemake_runs import HOSTS, PYTHON, run_workflow

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="needs snakemake: make snakemake")

REPORT = "report(a(a(a))b(b(b))c(c(c))d(d(d))e(e(e))f(f(f))g(g(g))h(h(h)))"


def options(record: Path) -> tuple[str, ...]:
    return (
        "--scheduler",
        "headrace",
        "--scheduler-headrace-hosts",
        HOSTS,
        "--scheduler-headrace-record",
        str(record),
    )


SAMPLES = {"a": 8, "b": 1, "c": 2, "d": 1, "e": 6, "f": 1, "g": 3, "h": 2}
"""Units of work of the jobs `align`, as in the Snakefile."""


@pytest.mark.slow
def test_a_workflow_runs_and_the_next_run_knows_its_jobs(tmp_path):
    record = tmp_path / "record"
    first = run_workflow(tmp_path / "work", *options(record), unit=0.5)
    assert first.code == 0, first.text
    assert (tmp_path / "work" / "report.txt").read_text() == REPORT
    assert len(first.jobs) == 25
    assert all(job.asked for job in first.jobs)
    with Record.open(record) as book:
        work = {
            part: seconds for prefix, part, seconds, _ in steered_rows(book) if prefix == "snakemake:align"
        }
    # Starting a job takes time as well, on a busy machine more for some: no job is shorter than its work.
    assert all(work[f"aligned/{name}.txt"] >= 0.9 * 0.5 * units for name, units in SAMPLES.items())
    longest = max(work, key=lambda part: work[part])
    again = run_workflow(tmp_path / "work", *options(record), unit=0.5)
    assert again.code == 0, again.text
    assert next(job.host for job in again.jobs if job.output == longest) == "fast"


@pytest.mark.slow
def test_a_platform_file_and_no_time_to_decide(tmp_path):
    platform = tmp_path / "lab.toml"
    platform.write_text(
        'name = "lab"\n[[site]]\nname = "lab"\nbandwidth = "1 Gbit/s"\nlatency = "1 ms"\n'
        + "".join(
            f'[[site.host]]\nname = "{n}"\nspeed = {s}\n' for n, s in (h.split("=") for h in HOSTS.split(","))
        )
    )
    done = run_workflow(
        tmp_path / "work",
        "--scheduler", "headrace", "--scheduler-headrace-platform", str(platform),
        "--scheduler-headrace-time-limit", "0", "--scheduler-headrace-record", str(tmp_path / "record"),
        unit=0.02,
    )  # fmt: skip
    assert done.code == 0, done.text
    assert len(done.jobs) == 25
    assert all(job.asked for job in done.jobs)


@pytest.mark.slow
def test_jobs_that_fail_do_not_stall_the_others(tmp_path):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(
        "rule all:\n    input: expand('out/{k}', k=range(12))\n"
        "rule one:\n    output: 'out/{k}'\n    retries: 1\n"
        "    shell: 'sleep 0.05; test {wildcards.k} -lt 6 && touch {output}'\n"
    )
    done = run_workflow(
        tmp_path / "work", *options(tmp_path / "record"), "--keep-going", target="all", snakefile=snakefile
    )
    assert done.code == 1
    assert sorted(int(p.name) for p in (tmp_path / "work" / "out").iterdir()) == list(range(6))
    assert "greedy" not in done.text


def in_plugin(code: str) -> str:
    """Run Python in the environment of snakemake."""
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    return done.stdout


def test_errors_are_left_to_the_greedy_scheduler_with_one_warning(tmp_path):
    said = in_plugin(f"""
import logging
from snakemake_scheduler_plugin_headrace import Scheduler, SchedulerSettings
class Logger:
    def warning(self, text):
        print("warning", text)
class Dag:
    def job_dependencies(self, job):
        raise ZeroDivisionError("a defect")
    def finished(self, job):
        return False
class Job:
    priority, input, output, benchmark, name, scheduler_resources = 0, [], ["x"], None, "r", {{"_cores": 1}}
made = Scheduler(Dag(), SchedulerSettings(record={str(tmp_path)!r}), Logger())
print(made.select_jobs([Job()], [Job()], {{"_cores": 2}}, {{}}))
print(made.select_jobs([Job()], [Job()], {{"_cores": 2}}, {{}}))
""")
    assert said.splitlines() == [
        "warning headrace: ZeroDivisionError: a defect; the greedy scheduler selects jobs instead.",
        "None",
        "None",
    ]


def test_wrong_hosts_are_refused(tmp_path):
    said = in_plugin("""
from snakemake_scheduler_plugin_headrace.hosts import read_lab
for text in ("fast", "fast=0", "a=1,a=2", "=3", "a=1x0", "a=1x"):
    try:
        read_lab(None, text)
    except Exception as error:
        print(type(error).__name__)
""")
    assert said.splitlines() == ["UsageError"] * 6


def test_benchmark_files_are_untrusted(tmp_path):
    good, bad, huge = (tmp_path / name for name in ("good", "bad", "huge"))
    good.write_text("s\th:m:s\n2.0\t0:00:02\n4.0\t0:00:04\n")
    bad.write_bytes(b"\xff\x00 s\n\t\t")
    huge.write_text("s\n" + "1\n" * 600_000)
    said = in_plugin(f"""
from pathlib import Path
from snakemake_scheduler_plugin_headrace.run_times import read_benchmark
for name in ({str(good)!r}, {str(bad)!r}, {str(huge)!r}, "/no/such"):
    print(read_benchmark(Path(name)))
""")
    assert said.splitlines() == ["3.0", "None", "None", "None"]
