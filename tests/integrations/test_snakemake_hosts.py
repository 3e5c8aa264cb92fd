"""Every job has a host, whatever happens: one run of the real snakemake for each case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .snakemake_runs import PYTHON, ROOT, Outcome, run_workflow

pytestmark = [
    pytest.mark.skipif(not PYTHON.exists(), reason="needs snakemake: make snakemake"),
    pytest.mark.slow,
]

PLATFORM = """
[[site]]
name = "lab"
[[site.host]]
name = "fast"
speed = 4
memory = "1 GB"
[[site.host]]
name = "slow"
cores = 2
memory = "4 GB"
"""


def run(folder: Path, snakefile: str, *options: str, platform: bool = True) -> Outcome:
    (folder / "Snakefile").write_text(snakefile)
    if platform:
        (folder / "lab.toml").write_text(PLATFORM)
        options += ("--scheduler-headrace-platform", str(folder / "lab.toml"))
    options += ("--scheduler-headrace-record", str(folder / "record"))
    return run_workflow(
        folder, "--scheduler", "headrace", *options,
        hosts="fast=4,slow=1,slow=1", target="all", snakefile=folder / "Snakefile",
    )  # fmt: skip


def test_jobs_that_fit_no_host_run_on_the_largest_with_one_warning(tmp_path):
    done = run(
        tmp_path,
        """
rule all:
    input: expand("{k}.txt", k=range(4))
rule work:
    output: "{k}.txt"
    resources: mem_mb=lambda wildcards: 9000 if wildcards.k in "23" else 300
    shell: "echo {resources.headrace_host} > {output}"
""",
    )
    assert done.code == 0, done.text
    assert [(tmp_path / f"{k}.txt").read_text() for k in (2, 3)] == ["slow\n"] * 2
    assert [line for line in done.text.splitlines() if line.startswith("headrace:")] == [
        "headrace: a job of rule work needs mem_mb=9000, which no host has; "
        "such jobs run alone on slow, which comes closest with mem_mb=4000."
    ]


def test_without_hosts_the_host_is_local(tmp_path):
    done = run(
        tmp_path,
        """
rule all:
    output: "all.txt"
    shell: "echo {resources.headrace_host} > {output}"
""",
        platform=False,
    )
    assert done.code == 0, done.text
    assert (tmp_path / "all.txt").read_text() == "local\n"


def test_the_rule_of_the_guide_works_in_dry_runs(tmp_path):
    guide = (ROOT / "docs" / "guide-snakemake.md").read_text()
    (rule,) = re.findall(r"^```text\n(rule align:.*?)^```", guide, re.DOTALL | re.MULTILINE)
    snakefile = f"rule all:\n    input: 'a.bam'\n{rule}"
    (tmp_path / "a.fastq").touch()
    done = run(tmp_path, snakefile, "--dry-run", "--printshellcmds")
    assert done.code == 0, done.text
    assert "Shell command: ssh local " in done.text


def test_when_planning_fails_jobs_have_hosts(tmp_path):
    done = run(
        tmp_path,
        """
import snakemake_scheduler_plugin_headrace as plugin

def broken(*arguments):
    raise ZeroDivisionError("a defect")

plugin.Scheduler._ranks = broken

rule all:
    input: expand("{k}.txt", k=range(5))
rule work:
    output: "{k}.txt"
    resources: mem_mb=lambda wildcards: 2000 if wildcards.k == "0" else 300
    retries: 1
    shell: "test -e {wildcards.k} || (touch {wildcards.k}; false) && echo {resources.headrace_host} > {output}"
""",
    )
    assert done.code == 0, done.text
    assert done.text.count("headrace: ZeroDivisionError: a defect; the greedy scheduler") == 1
    found = [(tmp_path / f"{k}.txt").read_text().strip() for k in range(5)]
    assert found[0] == "slow"
    assert set(found) == {"fast", "slow"}


def test_a_retry_gets_a_host_by_what_it_needs_then(tmp_path):
    done = run(
        tmp_path,
        """
rule all:
    output: "all.txt"
    retries: 2
    resources: mem_mb=lambda wildcards, attempt: 900 * attempt
    params: host=lambda wildcards, resources: resources.get("headrace_host", "none")
    shell: "echo {params.host} {resources.headrace_host} {resources.mem_mb} >> tried;"
        " test {resources.mem_mb} = 2700 && touch {output}"
""",
        "--resources",
        "mem_mb=3000",
    )
    assert done.code == 0, done.text
    assert (tmp_path / "tried").read_text().splitlines() == [
        "fast fast 900",
        "slow slow 1800",
        "slow slow 2700",
    ]


def test_a_host_that_a_rule_names_is_kept(tmp_path):
    done = run(
        tmp_path,
        """
rule all:
    input: "slow.txt", "elsewhere.txt"
rule work:
    output: "{host}.txt"
    resources: headrace_host=lambda wildcards: wildcards.host
    shell: "echo {resources.headrace_host} > {output}"
""",
    )
    assert done.code == 0, done.text
    for host in ("slow", "elsewhere"):
        assert (tmp_path / f"{host}.txt").read_text() == f"{host}\n"
    assert "headrace:" not in done.text


def test_a_negative_time_limit_is_refused(tmp_path):
    done = run(
        tmp_path, "rule all:\n    output: 'x'\n    shell: 'touch x'\n",
        "--scheduler-headrace-time-limit", "-1",
    )  # fmt: skip
    assert done.code == 1
    said = "--scheduler-headrace-time-limit is -1 (try: give 0 or more seconds, such as 5)"
    assert said in done.text


def test_a_record_that_cannot_be_used_is_named_once(tmp_path):
    (tmp_path / "record").write_text("a file where the folder should be")
    done = run(tmp_path, RULE_OF_THREE)
    assert done.code == 0, done.text
    told = [line for line in done.text.splitlines() if line.startswith("headrace:")]
    assert len(told) == 1
    assert told[0].startswith("headrace: run times are not kept between runs: ")


RULE_OF_THREE = """
rule all:
    input: expand("{k}.txt", k=range(3))
rule work:
    output: "{k}.txt"
    shell: "echo {resources.headrace_host} > {output}"
"""
