"""What a user asks of a run: where and how to carry a program out, and the cluster for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.core.replan_policy import ReplanPolicy, WhenImpossible
from headrace.core.scheduler import Planner, Scheduler
from headrace.model.arguments import as_float, checked_path, checked_workers, wrong_argument
from headrace.model.errors import UsageError
from headrace.model.platform import Platform
from headrace.online.adapter import accepted_policy, make_scheduler
from headrace.planners.registry import DEFAULT, registered_name
from headrace.runtime.clients import is_client, require_cluster
from headrace.runtime.run_policy import RunPolicy

if TYPE_CHECKING:
    from headrace.rules.given import Rules
    from headrace.rules.tree import RuleSet
    from headrace.runtime.cluster import Cluster

ENGINE = "dask"
"""The scheduler name that leaves placement to the engine."""

SSH = "ssh://"
"""Before the path of a hosts file, whose hosts are reached by ssh."""

PAUSE = 5.0
"""Minimum seconds between replans triggered by deviations in a real run: distributing a plan also takes time."""


@dataclass(frozen=True)
class RunRequest:
    """Where and how to run a program: parameters of `run`."""

    on: str | Cluster = "local"
    scheduler: str | Planner | Scheduler = DEFAULT
    rules: RuleSet | None = None
    when_impossible: WhenImpossible = "stop"
    workers: int | None = None
    speeds: Sequence[float] | None = None
    stretch: float = 1.0
    platform: Platform | str | Path | None = None
    tls: dict[str, Any] | None = None
    learn: bool = True
    output: str | Path = "."
    policy: RunPolicy = field(default_factory=RunPolicy)

    def stored(self) -> dict[str, Any]:
        """As JSON values; objects, which cannot be found again, are left out."""
        return {
            "on": _stored_place(self.on),
            "scheduler": self.scheduler if isinstance(self.scheduler, str) else DEFAULT,
            "rules": None if self.rules is None else self.rules.text,
            "when_impossible": self.when_impossible,
            "workers": self.workers,
            "speeds": None if self.speeds is None else list(self.speeds),
            "stretch": self.stretch,
            "platform": str(Path(self.platform).absolute())
            if isinstance(self.platform, str | Path)
            else None,
            "tls": None if self.tls is None else {k: str(v) for k, v in self.tls.items() if v is not None},
            "learn": self.learn,
            "output": str(Path(self.output).absolute()),
            "policy": asdict(self.policy),
        }


def _stored_place(on: str | Cluster) -> str:
    if not isinstance(on, str):
        return "local"
    return f"{SSH}{Path(on.removeprefix(SSH)).absolute()}" if on.startswith(SSH) else on


def run_request(*, rules: Rules | None = None, **given: Any) -> RunRequest:
    """Parameters of `run`, with rules read."""
    scheduler = given.get("scheduler")
    if isinstance(scheduler, str):
        given["scheduler"] = registered_name(scheduler)
    given["workers"] = checked_workers(given.get("workers"))
    _require_types(given)
    request = RunRequest(rules=_rules(rules), **given)
    if request.on != "local":
        _refuse_settings_of_local_workers(request)
    return request


def _require_types(given: dict[str, Any]) -> None:
    if "output" in given:
        checked_path(given["output"], "folder of the results")
    if as_float(given.get("stretch", 1.0)) is None:
        raise wrong_argument("stretch", given["stretch"], "give a number above 0")
    platform, tls = given.get("platform"), given.get("tls")
    if platform is not None and not isinstance(platform, Platform | str | Path):
        raise wrong_argument("platform", platform, "give a Platform, or the name of its file")
    if tls is not None and not isinstance(tls, Mapping):
        raise wrong_argument("tls", tls, 'give certificate files, such as {"ca": "ca.pem", ...}')


def _rules(given: Rules | None) -> RuleSet | None:
    if given is None:
        return None
    from headrace.rules.given import as_rules

    found = as_rules(given)
    return found if len(found) else None


@contextmanager
def opened_cluster(request: RunRequest) -> Iterator[Cluster]:
    """Workers for one run; a cluster passed in stays open."""
    on = request.on
    if is_client(on):
        from headrace.runtime.cluster import over_client

        yield over_client(on)
    elif not isinstance(on, str):
        require_cluster(on)
        yield on
    elif on == "local":
        from headrace.runtime.local_workers import spawn_workers

        # They start while this process loads the engine, and join while it loads compiled code.
        spawned = spawn_workers(request.workers, speeds=request.speeds, stretch=request.stretch)
        from headrace.runtime.cluster import join_workers

        with join_workers(spawned, meanwhile=lambda: _warm_up(request.scheduler)) as opened:
            yield opened
    elif "://" in on:
        with _remote_cluster(on, request.tls or {}) as joined:
            yield joined
    else:
        raise _cannot_run(on)


def _refuse_settings_of_local_workers(request: RunRequest) -> None:
    where = request.on if isinstance(request.on, str) else ""
    if request.workers is not None or request.speeds is not None:
        raise UsageError("workers and speeds apply only to local runs", where=where, hint="leave them out")
    if request.tls and not where:
        hint = "give them to the distributed.Client"
        raise UsageError("certificates apply only to clusters that are named by their address", hint=hint)


def _cannot_run(on: str) -> UsageError:
    hint = "use `local`, tls://host:port, tcp://127.0.0.1:port or ssh://hosts.toml"
    if Path(on).is_file():
        hint += "; a file that describes the workers is the option `platform`"
    return UsageError(f"cannot run on {on!r}", hint=hint)


def _remote_cluster(on: str, tls: dict[str, Any]) -> Cluster:
    """An existing cluster, or workers that are started over ssh."""
    if not on.startswith(SSH):
        from headrace.runtime.cluster import connect

        return connect(on, **tls)
    from headrace.runtime.ssh_cluster import open_ssh

    if tls:
        raise UsageError(
            "certificates of ssh:// workers are not options",
            where=on,
            hint="set `certificates` in the hosts file",
        )
    if on == SSH:
        raise UsageError("no file of hosts is named", where=on, hint="write ssh://hosts.toml")
    return open_ssh(on.removeprefix(SSH))


def _warm_up(scheduler: str | Planner | Scheduler) -> None:
    """Load the compiled code of a scheduler that is given by name."""
    if isinstance(scheduler, str) and scheduler != ENGINE:
        from headrace.runtime.warm_up import warm_up

        warm_up(make_scheduler(scheduler, accepted_policy(scheduler, ReplanPolicy(pause=PAUSE))))
