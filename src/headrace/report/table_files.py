"""Tables of plain values in files: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headrace.formats.files import STDOUT, encode_text, is_stdout, write_file
from headrace.model.errors import UsageError

SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""Endings of names that select a format."""


def is_table(path: str | Path) -> bool:
    """Whether the name of a file selects a format of tables.

    >>> is_table("runs.csv"), is_table("plan.json")
    (True, False)
    """
    return Path(path).name.lower().endswith(SUFFIXES)


def require_table(path: str | Path) -> None:
    """Refuse names that select no format, and Parquet without pyarrow: called before long work."""
    if is_stdout(path):
        return
    if not is_table(path):
        raise UsageError(f"the suffix of {str(path)!r} is not that of a table", hint="use .csv or .parquet")
    if Path(path).suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise UsageError(
            "Parquet files need pyarrow, which is not installed",
            where=str(path),
            hint="pip install pyarrow, or use .csv",
        )


def write_table(path: str | Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows of plain values as CSV or Parquet, as the suffix says; to stdout (`-`) as CSV.

    None is an empty cell.
    """
    require_table(path)
    if Path(path).suffix.lower() == ".parquet":
        data = {column: [row[k] for row in rows] for k, column in enumerate(columns)}
        write_file(path, _parquet(data))
        return
    write_file(path, encode_text(csv_text(columns, rows), "stdout" if path == STDOUT else str(path)))


def csv_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """
    >>> csv_text(["task", "start"], [["a, b", 0.5], ["c", None]])
    'task,start\\n"a, b",0.5\\nc,\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _parquet(data: Mapping[str, list[Any]]) -> bytes:
    """Columns in Parquet; one with texts and numbers is written as texts."""
    import pyarrow  # type: ignore[import-not-found,unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found,unused-ignore]

    columns = {}
    for name, values in data.items():
        mixed = len({str if isinstance(v, str) else float for v in values if v is not None}) > 1
        columns[name] = [None if v is None else str(v) for v in values] if mixed else values
    target = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), target)
    content: bytes = target.getvalue().to_pybytes()
    return content
