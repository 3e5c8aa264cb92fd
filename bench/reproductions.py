"""The papers' experiments done again: writes docs/reproductions.md and its pictures.

python -m bench.reproductions [--update] [NAME ...]

With names only these are computed and printed, and nothing is written; with --update their sections of the page are
replaced.
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

and single sections by `python -m bench.reproductions --update NAME`.

*Agrees* says whether our measurement supports the claim according to the criterion in the column before it. If it does
not, the text below the table gives the reason, or says that none was found. Seconds of virtual time are
the same on every machine; scheduling costs in CPU seconds are not, and neither are the real runs of `lheft-real` and
`lpsched-real`.

A dagger (†) marks criteria that were chosen or changed, or that depend on settings chosen, after the first results were
known. The other criteria were committed together with the first results. The number of claims that agree is therefore
not a test.
Error bars in pictures are one standard error of the mean over seeds.

| experiment | what | claims that agree | takes |
| --- | --- | --- | --- |
"""


def page(names: Sequence[str], write: bool, before: str = "") -> str:
    """The whole page; draws the pictures beside it if it is to be written.

    With the text of a page from before, everything on it that has another name stays.
    """
    summary, sections = parts_of(before)
    for name in names:
        summary[name], sections[name] = computed(name, write)
    shown_names = [name for name in FIGURES if name in sections]
    rows, texts = [summary[name] for name in shown_names], [sections[name] for name in shown_names]
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(texts)


def computed(name: str, write: bool) -> tuple[str, str]:
    """One experiment: its row of the summary and its section."""
    began = time.perf_counter()
    made = reproduce(name, Ask(tell=lambda text: print(f"  {text}", file=sys.stderr)))
    took = time.perf_counter() - began
    print(f"{name}: {took:.0f} s", file=sys.stderr)
    agree = sum(claim.agrees for claim in made.claims)
    if write and made.pictures:
        write_curves(DOCS / "pictures" / f"{name}.svg", made.pictures)
    row = f"| [{name}](#{name}) | {FIGURES[name][1]} | {agree} of {len(made.claims)} | {took:.0f} s |"
    return row, section(name, made)


def parts_of(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The rows of the summary and the sections of a page, by name."""
    head, *parts = text.split("\n## ")
    rows = [line for line in head.splitlines() if line.startswith("| [")]
    return (
        {row[3 : row.index("]")]: row for row in rows},
        {part.split("\n", 1)[0]: f"## {part.rstrip()}\n\n" for part in parts},
    )


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
    asked = [name for name in sys.argv[1:] if name != "--update"]
    file, update = DOCS / "reproductions.md", "--update" in sys.argv[1:]
    text = page(asked or list(FIGURES), not asked or update, file.read_text() if update else "")
    if asked and not update:
        print(text)
    else:
        file.write_text(text)


if __name__ == "__main__":
    main()
