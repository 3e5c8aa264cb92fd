"""`headrace rules` prints rules that can be read, and every attribute."""

from __future__ import annotations

import json
from pathlib import Path

from cli.command import headrace
from headrace.rules.attributes import RELATIONS
from headrace.rules.parser import parse_rules


def test_the_default_rules_are_the_five_of_the_paper(tmp_path: Path) -> None:
    ended = headrace("rules", "--default", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    rules = parse_rules(ended.out)
    assert [r.name for r in rules.rules] == ["quiet", "progress", "longest-path", "early", "short"]
    assert [r.name for r in rules.requirements] == ["quiet"]
    assert json.loads(headrace("rules", "--default", "--json", cwd=tmp_path).out)["rules"] == ended.out


def test_all_attributes_are_listed(tmp_path: Path) -> None:
    shown = headrace("rules", "--attributes", cwd=tmp_path)
    assert shown.code == 0
    rows = json.loads(headrace("rules", "--attributes", "--json", cwd=tmp_path).out)["attributes"]
    names = [name for attributes in RELATIONS.values() for name in attributes]
    assert [row["attribute"] for row in rows] == [*names, "label-NAME"]
    assert all(row["meaning"] and row["type"] for row in rows)
    assert all(name in shown.out for name in names)


def test_one_of_the_two_must_be_asked_for(tmp_path: Path) -> None:
    for options in ([], ["--default", "--attributes"]):
        ended = headrace("rules", *options, cwd=tmp_path)
        assert ended.code == 2
        assert "--default or --attributes" in ended.err
