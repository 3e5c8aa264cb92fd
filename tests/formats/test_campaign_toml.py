"""Campaign files: what they mean, and one typed error for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.campaign_toml import Shape, combinations, read_campaign
from headrace.model.errors import BadFile, BadPlatform, HeadraceError

GOOD = """
schedulers = ["minmin", "workqueue"]
seeds = 3
events = ["S1:60", "S2"]
estimates = "forecast"
[run]
planning_fixed = "2 s"
steal = true
[[application]]
name = "a"
tasks = [10, 20]
shared = ["1 MB", { uniform = ["1 kB", "2 kB"] }]
time = { lognormal = ["1 min", 0.5] }
time_error = { uniform = [0.8, 1.2] }
[[application]]
name = "j"
graph = "jacobi"
iterations = 3
[[grid]]
up = "2 h"
[[grid.cluster]]
hosts = 4
load = { walk = [0.3, "10 min"] }
bandwidth = "10 kB/s"
"""


def read(tmp_path: Path, text: str) -> object:
    (tmp_path / "c.toml").write_text(text)
    return read_campaign(tmp_path / "c.toml")


def test_what_a_campaign_says(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(GOOD)
    campaign = read_campaign(tmp_path / "c.toml")
    assert campaign.name == "c"
    assert [e.name for e in campaign.applications] == [
        "a tasks=10, shared=1 MB",
        "a tasks=10, shared=an object of 1",
        "a tasks=20, shared=1 MB",
        "a tasks=20, shared=an object of 1",
        "j",
    ]
    first, second = campaign.applications[:2]
    assert first.options["time"] == Shape("lognormal", 60.0, 0.5)
    assert first.options["time_error"] == Shape("uniform", 0.8, 1.2)
    assert first.varied == {"tasks": 10, "shared": Shape("constant", 1e6)}
    assert second.options["shared"] == Shape("uniform", 1e3, 2e3)
    assert campaign.applications[-1].form == "jacobi"
    assert campaign.grids[0].options == {"up": 7200.0}
    assert campaign.grids[0].clusters == ({"hosts": 4, "load": Shape("walk", 0.3, 600.0), "bandwidth": 1e4},)
    assert campaign.seeds == (0, 1, 2)
    assert campaign.estimates == ("forecast",)
    assert campaign.run == {"planning_fixed": 2.0, "steal": True}
    assert combinations(campaign) == 5 * 1 * 2 * 2 * 3


def test_a_list_of_seeds(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(GOOD.replace("seeds = 3", "seeds = [4, 9]"))
    assert read_campaign(tmp_path / "c.toml").seeds == (4, 9)


BAD = {
    "no application": ("[[application]]", "[[applications]]", "applications"),
    "no grid": (GOOD[GOOD.index("[[grid]]") :], "", "no grid"),
    "no scheduler": ('schedulers = ["minmin", "workqueue"]', "", "no schedulers"),
    "empty schedulers": ('["minmin", "workqueue"]', "[]", "schedulers is []"),
    "scheduler twice": ('["minmin", "workqueue"]', '["minmin", "minmin"]', "duplicate"),
    "scheduler that is no text": ('["minmin", "workqueue"]', "[3]", "schedulers has 3"),
    "no seeds": ("seeds = 3", "seeds = 0", "seeds is 0"),
    "negative seed": ("seeds = 3", "seeds = [-1]", "seeds is"),
    "seed twice": ("seeds = 3", "seeds = [1, 1]", "seeds is"),
    "seeds that are nothing": ("seeds = 3", "seeds = [[1]]", "seeds is"),
    "unknown key": ("seeds = 3", "seed = 3", "seed"),
    "unknown option": ("tasks = [10, 20]", "taks = 3", "'taks'"),
    "unknown graph": ('"jacobi"', '"jakobi"', "'jakobi'"),
    "graph for a grid": ("up = \"2 h\"", 'graph = "fft"', "graph"),
    "option of another form": ("iterations = 3", "blocks = 3", "'blocks'"),
    "empty list": ("tasks = [10, 20]", "tasks = []", "empty list"),
    "no tasks": ("tasks = [10, 20]", "tasks = 0", "tasks is 0"),
    "unit that does not fit": ('"1 MB"', '"1 min"', "1 min"),
    "unknown distribution": ("uniform = [\"1 kB\"", "poisson = [\"1 kB\"", "shared is"),
    "too few numbers": ('{ lognormal = ["1 min", 0.5] }', '{ lognormal = ["1 min"] }', "time is"),
    "two distributions": ('{ lognormal = ["1 min", 0.5] }', "{ constant = 1, uniform = [1, 2] }", "time is"),
    "series without numbers": ('{ walk = [0.3, "10 min"] }', "{ walk = 0.3 }", "load is"),
    "cluster without hosts": ("hosts = 4", "arch = 0", "no hosts"),
    "flag that is none": ("steal = true", 'steal = "yes"', "steal is 'yes'"),
    "unknown link order": ("steal = true", 'link_order = "fifo"', "link_order is 'fifo'"),
    "file and options": ('graph = "jacobi"', 'file = "x.pst"', "iterations"),
    "file outside": ('graph = "jacobi"\niterations = 3', 'file = "../x.pst"', "../x.pst"),
    "one name twice": ('name = "j"', 'name = "a tasks=10, shared=1 MB"', "the same name"),
    "too many combinations": ("seeds = 3", "seeds = 100000", "combinations"),
    "not TOML": ("seeds = 3", "seeds = = 3", "not valid TOML"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_campaigns(case: str, tmp_path: Path) -> None:
    old, new, *parts = BAD[case]
    assert old in GOOD
    with pytest.raises(HeadraceError) as caught:
        read(tmp_path, GOOD.replace(old, new))
    message = str(caught.value)
    assert type(caught.value) in (BadFile, BadPlatform)
    assert all(part in message for part in (*parts, "c.toml")), message
    assert caught.value.hint
    assert len(message) < 600
