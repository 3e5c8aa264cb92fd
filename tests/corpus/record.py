"""Record the corpus: `PYTHONPATH=tests python -m corpus.record` in the tree whose answers are to be kept.

Every case is carried out twice; one that does not give the same answer twice is left out. With names as
arguments, the answers to these cases are printed instead, all their rows included.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from corpus import results
from corpus.cases import Case, all_cases

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


def main(names: list[str], api: str = "corpus.present_api") -> None:
    carry_out = import_module(api).carry_out
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
    FOLDER.mkdir(exist_ok=True)
    for name, answers in parts.items():
        text = json.dumps(answers, separators=(",", ":"), sort_keys=True)
        with (FOLDER / f"{name}.json.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0.0) as out:
            out.write(text.encode())
        print(f"{name}: {len(answers)} answers, {len(text):,} characters", flush=True)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
