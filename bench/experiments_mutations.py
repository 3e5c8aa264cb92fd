"""Changes of code, data and parameters: none may reuse a stale result, and harmless ones should reuse everything."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.experiments_case import FILES, fresh, recorded, truth, write_case
from headrace.runtime.cluster import Cluster, open_local
from headrace.sweeping import Swept, sweep

CHANGES = (
    "code", "constant", "called function", "other file", "input byte", "parameter", "order of arguments", "default",
    "global constant", "package version", "class", "bound value",
)  # fmt: skip
HARMLESS = (
    "comment",
    "formatting",
    "unrelated function",
    "unused file",
    "docstring",
    "unused function beside",
)


@dataclass
class Counts:
    """What became of all changes."""

    changed: int = 0
    stale: int = 0
    harmless: int = 0
    reused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        share = self.reused / self.harmless if self.harmless else 1.0
        told = f"; first: {self.wrong[:5]}" if self.wrong else ""
        return (
            f"{self.changed} changes: {self.stale} stale results; {self.harmless} harmless ones: "
            f"{share:.1%} reused everything{told}"
        )


def mutations(folder: Path, count: int, seed: int) -> Counts:
    """So many changes that matter, and as many that do not, on two workers."""
    counts = Counts()
    sys.path.insert(0, str(folder / "packages"))
    try:
        with open_local(2) as cluster:
            for number in range(count):
                _one(folder, cluster, random.Random(seed * 1_000_003 + number), counts, number)
    finally:
        sys.path.remove(str(folder / "packages"))
    return counts


def _one(folder: Path, cluster: Cluster, rng: random.Random, counts: Counts, number: int) -> None:
    """A change that matters and a harmless one, each compared with the case as it was."""
    home = folder / "home"
    case = folder / "case"
    _package(folder, "1.0")
    (case / "data_a.bin").unlink(missing_ok=True)
    file = write_case(
        case,
        {"case.toml": FILES["case.toml"].replace("[replace.data]", 'packages = ["casepkg"]\n[replace.data]')},
    )
    base, before = _sweep(file, home, cluster), truth(file)
    what = HARMLESS[number % len(HARMLESS)]
    write_case(case, _harmless(what, rng) | {"case.toml": file.read_text()})
    done = _sweep(file, home, cluster)
    counts.harmless += 1
    if done.reused == done.tasks and recorded(home) == truth(file):
        counts.reused += 1
    else:
        counts.wrong.append(f"{what}: {done.reused} of {done.tasks} reused")
    what = CHANGES[number % len(CHANGES)]
    changed = _changed(what, rng, case, folder)
    write_case(case, {"case.toml": file.read_text()} | changed)
    done = _sweep(file, home, cluster)
    counts.changed += 1
    if what != "package version":
        assert truth(file) != before, f"{what} has changed nothing"
    stale = (
        done.reused > 0
        if what == "package version" and done.tasks == base.tasks
        else recorded(home) != truth(file)
    )
    if stale:
        counts.stale += 1
        counts.wrong.append(f"stale after {what}")


def _sweep(file: Path, home: Path, cluster: Cluster) -> Swept:
    fresh()
    done = sweep(file, cluster, record=home, scheduler="dask", learn=False)
    assert done.failure is None, done.failure
    return done


def _package(folder: Path, version: str) -> None:
    info = folder / "packages" / "casepkg-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: casepkg\nVersion: {version}\n")


def _changed(what: str, rng: random.Random, case: Path, folder: Path) -> dict[str, str]:
    """The files after a change that matters."""
    main, steps, n = FILES["case.py"], FILES["steps_of_case.py"], rng.randrange(1000, 10**9)
    match what:
        case "code":
            return {"case.py": main.replace("mixed(a, b, c)", f"mixed(a, b, c) + {n}")}
        case "constant":
            return {"case.py": main.replace(rng.choice(["11)", "23)"]), f"{n})")}
        case "called function":
            return {"case.py": main.replace("1469598103", str(n))}
        case "other file":
            old, new = rng.choice([("43", str(n)), ("LAST = 41", f"LAST = {n}"), ("% 1000003", f"% {n}")])
            return {"steps_of_case.py": steps.replace(old, new)}
        case "input byte":
            data = bytearray((case / "data_a.bin").read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            (case / "data_a.bin").write_bytes(data)
            return {}
        case "parameter":
            return {"case.toml": (case / "case.toml").read_text().replace("[1, 2, 3]", f"[1, {n}, 3]")}
        case "order of arguments":
            new = rng.choice(
                ["inputs=[two, one, three]", "inputs=[three, two, one]", "inputs=[one, three, two]"]
            )
            return {"case.py": main.replace("inputs=[one, two, three]", new)}
        case "default":
            return {"case.py": main.replace("shift=3", f"shift={n}")}
        case "global constant":
            old, new = rng.choice(
                [("OFFSET = 17", f"OFFSET = {n}"), ('"a": 3', f'"a": {n}'), ("[5, 7]", f"[5, {n}]")]
            )
            return {"case.py": main.replace(old, new)}
        case "package version":
            _package(folder, str(n))
            return {}
        case "class":
            old, new = rng.choice(
                [
                    ("weight = 29", f"weight = {n}"),
                    ("Third(37)", f"Third({n})"),
                    ("(x, self.weight,", f"(x, {n},"),
                ]
            )
            return {"case.py": main.replace(old, new)}
        case "bound value":
            return {"case.py": main.replace("scale=5)", f"scale={n})").replace("value=31", f"value={n}")}
    raise AssertionError(what)


def _harmless(what: str, rng: random.Random) -> dict[str, str]:
    """The files after a change that does not matter."""
    main, steps, n = FILES["case.py"], FILES["steps_of_case.py"], rng.randrange(10**9)
    match what:
        case "comment":
            lines = main.splitlines(keepends=True)
            at = rng.choice(
                [k for k, line in enumerate(lines) if line.startswith(("def ", "OFFSET", "class "))]
            )
            return {"case.py": "".join([*lines[:at], f"# note {n}\n", *lines[at:]])}
        case "formatting":
            old, new = rng.choice(
                [
                    ("mixed(a, b, c)", "mixed(\n        a,  b,\n        c)"),
                    ("(x, scale)", "( x,scale )"),
                    ("\n\n\n", "\n\n\n\n\n"),
                ]
            )
            return {"case.py": main.replace(old, new)}
        case "unrelated function":
            return {"case.py": main.replace("return x + 1", f"return x + {n}")}
        case "unused file":
            return {"other.py": f"VALUE = {n}\n"}
        case "docstring":
            return {"case.py": main.replace("A number that changes", f"Number {n} that changes")}
        case "unused function beside":
            return {"steps_of_case.py": steps.replace("return x\n", f"return x - {n}\n")}
    raise AssertionError(what)
