"""Headrace plans, simulates and runs dataflow programs on heterogeneous machines.

Names are imported on first use, so `import headrace` is fast.

>>> import headrace as hr
>>> program = hr.Program("two")
>>> first = program.task(None, outputs={"x": "1 MB"}, work=2.0)
>>> second = program.task(None, inputs=[first], outputs=["y"], work=1.0)
>>> plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), scheduler="heft")
>>> plan.makespan, plan.bound
(1.5, 1.5)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace import dask as dask
    from headrace import rules as rules
    from headrace.api import check as check
    from headrace.api import plan as plan
    from headrace.api import replay as replay
    from headrace.api import simulate as simulate
    from headrace.core.execution_policy import ExecutionPolicy as ExecutionPolicy
    from headrace.core.replan_policy import ReplanPolicy as ReplanPolicy
    from headrace.deploying import deploy as deploy
    from headrace.execution import run as run
    from headrace.experiment_results import results as results
    from headrace.model.deployment import Deployment as Deployment
    from headrace.model.errors import HeadraceError as HeadraceError
    from headrace.model.pipeline import FilterProfile as FilterProfile
    from headrace.model.pipeline import Knobs as Knobs
    from headrace.model.pipeline import Pipeline as Pipeline
    from headrace.model.pipeline import Source as Source
    from headrace.model.pipeline import Stream as Stream
    from headrace.model.plan import Plan as Plan
    from headrace.model.platform import Host as Host
    from headrace.model.platform import Link as Link
    from headrace.model.platform import Platform as Platform
    from headrace.model.platform import Site as Site
    from headrace.model.program import Command as Command
    from headrace.model.program import Data as Data
    from headrace.model.program import Program as Program
    from headrace.model.program import Task as Task
    from headrace.quoting import quote as quote
    from headrace.resuming import resume as resume
    from headrace.runtime.files import File as File
    from headrace.runtime.files import task_folder as task_folder
    from headrace.simulator.events.config import SimulationConfig as SimulationConfig
    from headrace.streaming import stream as stream
    from headrace.sweeping import sweep as sweep

_HOME = {
    "plan": "headrace.api",
    "deploy": "headrace.deploying",
    "run": "headrace.execution",
    "stream": "headrace.streaming",
    "resume": "headrace.resuming",
    "sweep": "headrace.sweeping",
    "quote": "headrace.quoting",
    "results": "headrace.experiment_results",
    "File": "headrace.runtime.files",
    "task_folder": "headrace.runtime.files",
    "simulate": "headrace.api",
    "replay": "headrace.api",
    "ReplanPolicy": "headrace.core.replan_policy",
    "SimulationConfig": "headrace.simulator.events.config",
    "ExecutionPolicy": "headrace.core.execution_policy",
    "check": "headrace.api",
    "Deployment": "headrace.model.deployment",
    "HeadraceError": "headrace.model.errors",
    "FilterProfile": "headrace.model.pipeline",
    "Knobs": "headrace.model.pipeline",
    "Pipeline": "headrace.model.pipeline",
    "Source": "headrace.model.pipeline",
    "Stream": "headrace.model.pipeline",
    "Plan": "headrace.model.plan",
    "Host": "headrace.model.platform",
    "Link": "headrace.model.platform",
    "Platform": "headrace.model.platform",
    "Site": "headrace.model.platform",
    "Command": "headrace.model.program",
    "Data": "headrace.model.program",
    "Program": "headrace.model.program",
    "Task": "headrace.model.program",
}
__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("rules", "dask"):
        return import_module(f"headrace.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "dask", "rules"]
