"""What kind of file is this: told by its first bytes, not by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, TypeAlias

from headrace.formats.files import read_head
from headrace.formats.jobs_csv import is_jobs_csv
from headrace.formats.pst import pst_kind
from headrace.model.errors import BadFile

Kind: TypeAlias = Literal["program", "platform", "plan", "campaign", "behaviour", "pipeline", "deployment"]
_PST: dict[str, Kind] = {"work": "program", "grid": "platform", "behaviour": "behaviour"}
_CAMPAIGN = re.compile(rb"^[ \t]*\[\[[ \t]*application[ \t]*\]\]", re.MULTILINE)
_DEPLOYMENT = re.compile(rb"^[ \t]*\[deployment\]", re.MULTILINE)
_PIPELINE = re.compile(rb"^[ \t]*+(?:\[filter[ \t]++[^\]\n]++\]|\[\[[ \t]*+filter[ \t]*+\]\])", re.MULTILINE)
_PLAN = re.compile(rb'"format"\s*:\s*"headrace-plan')
_TOML_LINE = re.compile(
    rb"""^[ \t]*(?:\[\[?[ \t]*[A-Za-z_]['"\w. -]*\]|(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*[.=])""", re.MULTILINE
)


def detect(path: str | Path) -> Kind:
    """JSON is a plan if it says so and else a program; TOML with applications is a campaign, other TOML a
    platform. Reads at most 64 kB.

    A CSV table of jobs and an application description of the parameter-sweep template are programs, a grid
    description a platform, and what begins with a number of values a behaviour.

    Whether the file is a good one of its kind is for its reader to say.
    """
    head = read_head(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_jobs_csv(head):
        return "program"
    pst = pst_kind(head)
    if pst is not None:
        return _PST[pst]
    if _PLAN.search(head):
        return "plan"
    if not head.startswith(b"{") and _DEPLOYMENT.search(head):
        return "deployment"
    if not head.startswith(b"{") and _PIPELINE.search(head):
        return "pipeline"
    if head.startswith(b"{") or (head.startswith(b"[") and not _TOML_LINE.match(head)):
        return "program"
    if _CAMPAIGN.search(head) and _TOML_LINE.search(head):
        return "campaign"
    if _TOML_LINE.search(head) or (head.startswith(b"#") and b"\0" not in head):
        return "platform"
    what = "is empty" if not head else f"starts with {head[:16]!r}"
    raise BadFile(
        f"{what}: not a program, platform or plan",
        where=str(path),
        hint="a program is WfFormat JSON, a platform TOML, a plan JSON from headrace plan",
    )
