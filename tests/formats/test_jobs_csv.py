"""Jobs as CSV: what a row means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.jobs_csv import read_jobs, write_jobs
from headrace.formats.loading import load_program
from headrace.formats.registry import detect
from headrace.formats.wfformat import write_program
from headrace.model.errors import BadFile, HeadraceError

TABLE = """name,duration,input,input_size,sources,output_size,destinations,cores,release,deadline
a,50 min,x;y,2 GB;1 GB,s1|s2;s3,1 GB,s1,2,10,
b,30,x,2 GB,s1|s2,500,s2|s3,,,100
c,5,z,?,s1,?,,,,
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_rows_become_jobs_and_shared_files_one_item(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE)
    assert detect(path).kind == "program"
    program = load_program(path)
    a, b = program.tasks["a"], program.tasks["b"]
    assert (a.work, a.inputs, a.cores, a.release, a.deadline) == (3000.0, ("x", "y"), 2, 10.0, float("inf"))
    assert (b.work, b.inputs, b.deadline) == (30.0, ("x",), 100.0)
    assert program.data["x"].initial_locations == ("s1", "s2")
    assert program.data["y"].size == 1e9
    assert program.data["b.out"].destinations == ("s2", "s3")
    assert (program.data["z"].size, program.data["c.out"].size) == (None, None)


def test_written_and_read_back(tmp_path: Path) -> None:
    program = read_jobs(write(tmp_path, TABLE))
    write_jobs(program, tmp_path / "again.csv")
    again = read_jobs(tmp_path / "again.csv")
    assert again.tasks == program.tasks
    assert again.data == program.data


def test_wfformat_carries_the_same(tmp_path: Path) -> None:
    program = read_jobs(write(tmp_path, TABLE))
    write_program(program, tmp_path / "jobs.json")
    again = load_program(tmp_path / "jobs.json")
    assert again.tasks == program.tasks
    assert again.data == program.data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("duration,input_size\n", "no jobs"),
        ("duration,input_size\nx,1\n", "duration: 'x' is not a time"),
        ("duration,input_size\n,1\n", "duration"),
        ("duration,sources,speed\n1,a,2\n", "unknown column 'speed'"),
        ("duration,input_size\n1,2,3\n", "3 cells for 2 columns"),
        ("duration,output_size,cores\n1,2,0\n", "cores is '0'"),
        ("duration,input,input_size,sources\n1,x,2,a\n1,x,3,a\n", "different size"),
        ("duration,output_size,duration\n1,2,3\n", "twice"),
        ("name,duration,input_size\na,1,2\na,1,2\n", "two"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HeadraceError, match=said) as caught:
        read_jobs(write(tmp_path, text))
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_not_text(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"duration,input_size\n\xff\xfe,1\n")
    with pytest.raises(BadFile, match="UTF-8"):
        read_jobs(path)
