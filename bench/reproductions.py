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
HEAD = """# The papers' experiments, done again

Each section is `headrace reproduce NAME`, which prints the same tables; `--plot FILE` draws the pictures, `--json`
gives all numbers, `--seeds N` repeats with more random numbers. All of this page was written by one run of

    python -m bench.reproductions

*Agrees* says whether what we measure supports the claim, by the rule in the column before it, which the code of the
figure applies. Where it does not, the lines below the table say why, as far as that was tried; where no cause is known
they say so. Seconds of virtual time are the same on every machine; scheduling costs in CPU seconds are not.

A dagger (†) marks rules that were chosen or changed, or that depend on settings that were chosen, after first results
were known; the notes of the experiment say which. The other rules are as they were when the experiment was first
committed, which was together with its first results. The number of claims that agree is therefore no test of anything.
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
