"""The papers' experiments done again: writes docs/reproductions.md and its pictures, all from one run.

python -m bench.reproductions [NAME ...]

With names only these are computed and printed, and nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from headrace.commands.reproduce import shown
from headrace.report.curves import write_curves
from headrace.reproductions import FIGURES, Ask, Cell, Reproduction, reproduce

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 120
HEAD = """# The papers' experiments, reproduced

Each section is `headrace reproduce NAME`, which prints the same tables; `--plot FILE` draws the pictures, `--json`
gives all numbers, `--seeds N` changes the number of repetitions. This page was written by

    python -m bench.reproductions

*Agrees* says whether our measurement supports the claim according to the criterion in the column before it. If it does
not, the text below the table gives the reason, or says that none was found. Seconds of virtual time are
the same on every machine; scheduling costs in CPU seconds are not.

A dagger (†) marks criteria that were chosen or changed, or that depend on settings chosen, after the first results were
known. The other criteria were committed together with the first results. The number of claims that agree is therefore
not a test.
Error bars in pictures are one standard error of the mean over seeds.

| experiment | what | claims that agree | takes |
| --- | --- | --- | --- |
"""


def page(names: Sequence[str], write: bool) -> str:
    """The whole page; draws the pictures beside it if it is to be written."""
    summary, sections = [], []
    for name in names:
        began = time.perf_counter()
        made = reproduce(name, Ask(tell=lambda text: print(f"  {text}", file=sys.stderr)))
        took = time.perf_counter() - began
        print(f"{name}: {took:.0f} s", file=sys.stderr)
        agree = sum(claim.agrees for claim in made.claims)
        what = FIGURES[name][1]
        summary.append(f"| [{name}](#{name}) | {what} | {agree} of {len(made.claims)} | {took:.0f} s |")
        if write and made.pictures:
            write_curves(DOCS / "pictures" / f"{name}.svg", made.pictures)
        sections.append(section(name, made))
    return HEAD + "\n".join(summary) + "\n\n" + "\n".join(sections)


def section(name: str, made: Reproduction) -> str:
    """One experiment: claims, reasons, picture, notes, table."""
    lines = [f"## {name}", "", f"{made.title} ({made.source}).", ""]
    if made.claims:
        lines += ["| the paper says | we measure | agrees if | agrees |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {c.paper} | {c.measured} | {c.rule}{' †' * c.afterwards} | {'yes' if c.agrees else 'no'} |"
            for c in made.claims
        ]
        lines.append("")
        for c in made.claims:
            if c.why:
                lines += [*wrapped(f'*Why not "{c.paper}"*: {c.why}.'), ""]
    if made.pictures:
        lines += [f"![{made.title}](pictures/{name}.svg)", ""]
    for note in made.notes:
        lines += wrapped(f"- {note}", indent="  ")
    lines += ["", "| " + " | ".join(made.headers) + " |", "|" + " --- |" * len(made.headers)]
    lines += ["| " + " | ".join(cell(c) for c in row) + " |" for row in made.rows]
    return "\n".join([*lines, "", ""])


def cell(value: Cell) -> str:
    return shown(value).replace("|", "\\|")


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH characters; words in code stay whole."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def main() -> None:
    asked = sys.argv[1:]
    text = page(asked or list(FIGURES), write=not asked)
    if asked:
        print(text)
    else:
        (DOCS / "reproductions.md").write_text(text)


if __name__ == "__main__":
    main()
