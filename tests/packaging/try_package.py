"""Install a built wheel and source archive into empty environments, and try what a user would try first.

    python tests/packaging/try_package.py dist [python3.12 ...]

Each environment has nothing but pip, and the commands run in an empty folder, so that files missing from the package
are noticed. Further arguments are other Python interpreters to try it with; compiled code is kept between them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import headrace as hr

def double(x):
    return 2 * x

program = hr.Program("double")
number = program.input("number", value=21)
program.output(program.task(double, inputs=[number], outputs=["answer"], work="10 ms"), "answer.json")
"""
PLATFORM = """
[[host]]
name = "fast"
speed = 2.0
[[host]]
name = "slow"
"""


def run(*words: str | Path, cwd: Path) -> str:
    """What a command prints; its errors are shown if it fails. No variable of the caller names Python's folders."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=kept, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def try_package(archive: Path, python: str, work: Path) -> str:
    """Install an archive, and plan, simulate, run and report with it; returns the version that was installed."""
    environment = work / "environment"
    run(python, "-m", "venv", environment, cwd=work)
    pip, headrace = environment / "bin" / "pip", environment / "bin" / "headrace"
    run(pip, "install", "--quiet", "--disable-pip-version-check", archive, cwd=work)
    run(pip, "check", cwd=work)
    folder = work / "empty"
    folder.mkdir()
    (folder / "double.py").write_text(PROGRAM)
    (folder / "two.toml").write_text(PLATFORM)
    version = run(headrace, "--version", cwd=folder).split()[-1]
    run(headrace, "check", "double.py:program", "two.toml", cwd=folder)
    plan = ("plan", "double.py:program", "--on", "two.toml", "-s", "heft")
    assert json.loads(run(headrace, *plan, "--json", "--gantt", "plan.svg", cwd=folder))["makespan"] == 0.005
    run(headrace, *plan, "-o", "plan.json", cwd=folder)
    run(headrace, "simulate", "double.py:program", "--on", "two.toml", "--seed", "1", cwd=folder)
    run(headrace, "run", "double.py:program", "--workers", "1", cwd=folder)
    assert json.loads((folder / "answer.json").read_text()) == 42
    run(headrace, "report", "last", "-o", "run.html", cwd=folder)
    assert "<script>" in (folder / "run.html").read_text()
    assert "assert " in run(headrace, "rules", "--default", cwd=folder)
    imported = (
        "import headrace; assert set(headrace.__all__) <= set(dir(headrace)); print(headrace.__version__)"
    )
    assert run(environment / "bin" / "python", "-c", imported, cwd=folder).strip() == version
    return version


def main(dist: str, *pythons: str) -> None:
    wheels, sources = sorted(Path(dist).glob("*.whl")), sorted(Path(dist).glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        raise SystemExit(f"{dist}: expected one wheel and one source archive (try: make package)")
    for archive in (*wheels, *sources):
        for python in pythons or (sys.executable,):
            work = Path(tempfile.mkdtemp(prefix="headrace-package-"))
            try:
                version = try_package(archive.resolve(), python, work)
            finally:
                shutil.rmtree(work)
            assert f"-{version}" in archive.name, f"{archive.name} installs version {version}"
            print(f"{archive.name} with {python}: installed and tried")


if __name__ == "__main__":
    main(*sys.argv[1:])
