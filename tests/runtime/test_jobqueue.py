"""Workers that a batch system starts through dask-jobqueue, with certificates of `headrace certificates`.

Commands that stand in for those of the batch systems execute the submitted jobs on this machine.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.runtime.certificates import write_certificates

pytest.importorskip("dask_jobqueue")

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUBMIT = """#!{python}
import re, shlex, subprocess, sys
from pathlib import Path
folder = Path("{folder}")
text = Path(sys.argv[-1]).read_text()
number = len(list(folder.glob("job-*"))) + 1
job = folder / f"job-{{number}}"
job.write_text(text)
if "Queue" in text:  # HTCondor: arguments in double quotes, each in single quotes if it has blanks
    arguments = re.search(r'Arguments = "(.*)"', text).group(1)
    command = ["/bin/sh", *shlex.split(arguments)]
else:
    command = ["bash", str(job)]
with (folder / f"log-{{number}}").open("wb") as log:
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env={environment})
(folder / f"pid-{{number}}").write_text(str(process.pid))
print({answer})
"""
ANSWERS = {
    "sbatch": 'f"Submitted batch job {number}"',
    "qsub": 'f"{number}.server"',
    "condor_submit": 'f"1 job(s) submitted to cluster {number}."',
}
CANCEL = ("scancel", "qdel", "condor_rm")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of submitted jobs; those that still run are ended."""
    commands = tmp_path / "bin"
    commands.mkdir()
    folder = tmp_path / "jobs"
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}
    for name, answer in ANSWERS.items():
        script = SUBMIT.format(python=sys.executable, folder=folder, answer=answer, environment=environment)
        (commands / name).write_text(script)
    for name in CANCEL:
        (commands / name).write_text("#!/bin/sh\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    monkeypatch.chdir(tmp_path)
    yield folder
    for file in folder.glob("pid-*"):
        with suppress(ProcessLookupError):
            os.killpg(int(file.read_text()), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_programs_of_the_guide_run(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_certificates("tls")
    blocks = BLOCK.findall((ROOT / "docs" / "guide-clusters.md").read_text())
    names: dict[str, object] = {"__name__": "documentation"}
    for number, (system, block) in enumerate(zip(("SBATCH", "PBS", "Queue"), blocks, strict=True), 1):
        exec(compile(block, f"guide-clusters.md, {system}", "exec"), names)
        assert names["done"].results == {"sum": 14}  # type: ignore[attr-defined]
        scripts = [file.read_text() for file in jobs.glob("job-*")]
        assert len(scripts) >= 2 * number
        assert sum(system in script for script in scripts) >= 2
        assert all("--tls-ca-file" in script and "tls://" in script for script in scripts)
    assert capsys.readouterr().out == "14\n"
