"""Read a program or a platform, whichever of their formats the file has."""

from __future__ import annotations

from pathlib import Path

from headrace.formats.files import read_head
from headrace.formats.jobs_csv import is_jobs_csv
from headrace.formats.pst import pst_kind
from headrace.formats.sections import is_ini
from headrace.model.behaviour import GridScript
from headrace.model.errors import HeadraceError
from headrace.model.platform import Platform
from headrace.model.program import Program


def read_any_program(path: str | Path) -> Program:
    """WfFormat JSON, a CSV table of jobs, or an application description of the parameter-sweep template."""
    if is_jobs_csv(_head(path)):
        from headrace.formats.jobs_csv import read_jobs

        return read_jobs(path)
    if pst_kind(_head(path)) == "work":
        from headrace.formats.pst_work import read_work

        return read_work(path)
    from headrace.formats.wfformat import read_program

    return read_program(path)


def read_any_platform(path: str | Path) -> Platform:
    """Platform TOML, INI, or a grid description of the parameter-sweep template as it is at time 0."""
    if is_ini(path):
        from headrace.formats.machines_ini import read_machines

        return read_machines(path).platform
    if pst_kind(_head(path)) == "grid":
        from headrace.formats.pst_grid import read_grid

        try:
            return read_grid(path).start()
        except HeadraceError as error:
            raise error if str(path) in error.where else error.at(str(path)) from None
    from headrace.formats.platform_toml import read_platform

    return read_platform(path)


def read_grid_or_platform(path: str | Path) -> GridScript | Platform:
    """Any platform, and a grid description with all that happens in it."""
    if not is_ini(path) and pst_kind(_head(path)) == "grid":
        from headrace.formats.pst_grid import read_grid

        return read_grid(path)
    return read_any_platform(path)


def _head(path: str | Path) -> bytes:
    return read_head(path).removeprefix(b"\xef\xbb\xbf")
