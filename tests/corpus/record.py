"""Record the corpus: `PYTHONPATH=tests python -m corpus.record` in the tree whose answers are to be kept.

Every case is carried out twice; one that does not give the same answer twice is left out. With names as
arguments, the answers to these cases are printed instead, all their rows included. With `--bounds`, only lower bounds
are taken over, and only those that are tighter than the recorded ones; everything else stays as it was recorded.
With `--links`, all that differs is taken over of cases with contention `fifo` or `fair`, and nothing of the others.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from corpus import results
from corpus.cases import Case, all_cases
from corpus.changes import CHANGES

FOLDER = Path(__file__).parent / "recorded"


def recorded() -> dict[str, Any]:
    """All answers by the names of their cases."""
    found: dict[str, Any] = {}
    for path in sorted(FOLDER.glob("*.json.gz")):
        found |= json.loads(gzip.decompress(path.read_bytes()))
    return found


def part_of(case: Case) -> str:
    """The file that keeps a case."""
    return "large" if case.slow else case.what


def keep(part: str, answers: dict[str, Any]) -> None:
    """Write the answers of one file; the same answers give the same bytes."""
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(answers, separators=(",", ":"), sort_keys=True)
    with (FOLDER / f"{part}.json.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0.0) as out:
        out.write(text.encode())
    print(f"{part}: {len(answers)} answers, {len(text):,} characters", flush=True)


def tighten(carry_out: Callable[[Case], dict[str, Any] | None]) -> None:
    """Replace recorded bounds by higher ones of the present program that are not above the makespan."""
    cases = {case.name: case for case in all_cases()}
    for path in sorted(FOLDER.glob("*.json.gz")):
        answers = json.loads(gzip.decompress(path.read_bytes()))
        for name, old in answers.items():
            if name in CHANGES or "bound" not in old.get("numbers", ()):
                continue
            numbers = (carry_out(cases[name]) or {}).get("numbers")
            bound = numbers["bound"] if numbers else 0.0
            if bound > old["numbers"]["bound"] and not results.same(bound, old["numbers"]["bound"]):
                allowed = bound <= old["numbers"]["makespan"] * (1 + results.TOLERANCE)
                said = "" if allowed else f"; kept: above the makespan {old['numbers']['makespan']}"
                print(f"{name}: {old['numbers']['bound']} -> {bound}{said}", flush=True)
                if allowed:
                    old["numbers"]["bound"] = bound
        keep(path.name.removesuffix(".json.gz"), answers)


def _contention(platform: dict[str, Any]) -> str:
    """Platforms in files are grids of parameter sweeps, whose links carry one transfer at a time."""
    return str(platform.get("contention", "fifo" if "file" in platform else "none"))


def renew_links(carry_out: Callable[[Case], dict[str, Any] | None]) -> None:
    """Replace answers of cases with contention on links by those of the present program, where they differ."""
    cases = {case.name: case for case in all_cases()}
    for path in sorted(FOLDER.glob("*.json.gz")):
        answers = json.loads(gzip.decompress(path.read_bytes()))
        for name, old in answers.items():
            platform = cases[name].platform()
            if name in CHANGES or platform is None or _contention(platform) == "none":
                continue
            new = carry_out(cases[name])
            if new is not None and list(results.differences(old, new)):
                print(name, next(results.differences(old, new)), flush=True)
                answers[name] = new
        keep(path.name.removesuffix(".json.gz"), answers)


def main(names: list[str], api: str = "corpus.present_api") -> None:
    carry_out = import_module(api).carry_out
    if names == ["--bounds"]:
        tighten(carry_out)
        return
    if names == ["--links"]:
        renew_links(carry_out)
        return
    if names:
        results.FEW = 10**9
        for case in all_cases():
            if case.name in names:
                print(case.name, json.dumps(carry_out(case), indent=1))
        return
    parts: dict[str, dict[str, Any]] = {}
    began = time.perf_counter()
    for case in all_cases():
        first, second = carry_out(case), carry_out(case)
        if first is None or second is None or list(results.differences(first, second)):
            print("left out:", case.name, flush=True)
            continue
        parts.setdefault(part_of(case), {})[case.name] = first
    for name, answers in parts.items():
        keep(name, answers)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
