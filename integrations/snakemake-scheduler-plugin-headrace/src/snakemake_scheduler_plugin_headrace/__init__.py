"""`snakemake --scheduler headrace`: jobs go to the hosts of a platform where they finish first.

Snakemake asks which of the ready jobs to start, whenever a job has ended. The answer is made from the run times of
earlier jobs, the speeds and links of the hosts, and what runs now; see `placement`. Whatever goes wrong in here, the
greedy scheduler of Snakemake decides instead, with one warning; jobs have a host then as well.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_scheduler_plugins.base import SchedulerBase

from headrace.model.errors import UsageError

from .host_resource import assign, withdraw
from .hosts import Lab, read_lab
from .placement import HostState, Placing, Wish, closest, place, shortage, upward_ranks
from .run_times import RunTimes, members, rule_of, work_of
from .settings import SchedulerSettings

__all__ = ["Scheduler", "SchedulerSettings"]

_RESOURCE = "headrace_host"
_ONLY_HOST = "local"
"""The host if none is given."""


class Scheduler(SchedulerBase):
    """Selects jobs; one instance for a whole run of Snakemake."""

    settings: SchedulerSettings

    def __post_init__(self) -> None:
        try:
            self.lab: Lab | None = read_lab(self.settings.platform, self.settings.hosts)
            self.seconds = _time_limit(self.settings.time_limit)
        except Exception as error:
            raise WorkflowError(f"--scheduler headrace: {error}") from error
        self.resource = self.settings.host_resource or _RESOURCE
        self.times = RunTimes(self.settings.record)
        self.running: dict[Any, Placing] = {}
        self.offered: dict[Any, Placing] = {}
        """Jobs that the greedy scheduler could have started when it was last asked."""
        self.made_on: dict[str, str] = {}
        """The host that made each file."""
        self.host_of: dict[Any, str] = {}
        """The host of each single job that got one here, not by its rule."""
        self.cores = 0
        self.warned: set[str] = set()

    def select_jobs(
        self,
        selectable_jobs: Sequence[Any],
        remaining_jobs: Sequence[Any],
        available_resources: Mapping[str, int | str],
        input_sizes: Mapping[Any, int],
    ) -> Sequence[Any] | None:
        """The jobs to start now; None leaves the selection to Snakemake's greedy scheduler."""
        now = time.time()
        try:
            return self._select(selectable_jobs, remaining_jobs, available_resources, input_sizes, now)
        except Exception as error:
            self._warn("", f"{type(error).__name__}: {error}; the greedy scheduler selects jobs instead.")
        with suppress(Exception):
            self._offer(selectable_jobs, now)
        return None

    def _select(
        self,
        selectable: Sequence[Any],
        remaining: Sequence[Any],
        available: Mapping[str, int | str],
        sizes: Mapping[Any, int],
        now: float,
    ) -> list[Any] | None:
        end = time.monotonic() + self.seconds
        if self.times.problem:
            self._warn("record", f"run times are not kept between runs: {self.times.problem}.")
        self.cores = max(self.cores, int(available.get("_cores", 0)))
        self._note_ended(selectable, int(available.get("_cores", 0)), now)
        for job in selectable:
            self._withdraw(job)
        hosts = self._hosts(now)
        ranks = self._ranks(remaining)
        order = sorted(selectable, key=lambda job: (-job.priority, -ranks.get(job, 0.0), str(job)))
        wishes = [self._wish(job, sizes, hosts) for job in order]
        placed = place(wishes, hosts, now, available, lambda: time.monotonic() > end)
        if not placed and not self.running:
            self._offer(selectable, now)
            return None  # nothing runs: whatever the figures say, something must be started
        for placing in placed:
            if placing.alone:
                self._warn_of_shortage(placing.job, hosts)
            placing.started = now
            self._assign(placing.job, placing.host)
            self._note_started(placing)
        return [placing.job for placing in placed]

    def _offer(self, selectable: Sequence[Any], now: float) -> None:
        """Give all jobs a host, since Snakemake does not say which of them it starts; no estimate is used."""
        hosts = self._hosts(now)
        given = {host.name: sum(cores for _, cores in host.busy) for host in hosts}
        for job in selectable:
            with suppress(Exception):  # a job that makes trouble must not leave the others without a host
                self._offer_one(job, hosts, given, now)

    def _offer_one(self, job: Any, hosts: Sequence[HostState], given: dict[str, int], now: float) -> None:
        self._withdraw(job)
        cores, resources = _needs(job)
        allowed = self._allowed(job, hosts)
        roomy = [host for host in allowed if not host.lacks(cores, resources)]
        if not roomy and allowed:
            roomy = [closest(allowed, cores, resources)]
            self._warn_of_shortage(job, hosts)
        name = ""
        if roomy:
            name = min(roomy, key=lambda h: (given[h.name] + cores) / (h.cores * h.speed)).name
            given[name] += cores
        self._assign(job, name)
        self.offered[job] = Placing(job, name, cores, now + 1.0, now, resources)

    def _warn_of_shortage(self, job: Any, hosts: Sequence[HostState]) -> None:
        found = shortage(hosts, *_needs(job))
        if found is not None:
            needs, host, has = found
            self._warn(
                rule_of(job),
                f"a job of rule {rule_of(job)} needs {_listed(needs)}, which no host has; such jobs run alone on "
                f"{host.name}, which comes closest with {_listed(has)}.",
            )

    def _warn(self, about: str, text: str) -> None:
        """One warning about each subject."""
        if about not in self.warned:
            self.warned.add(about)
            self.logger.warning(f"headrace: {text}")

    # What is known.

    def _hosts(self, now: float) -> list[HostState]:
        if self.lab is None:
            hosts = [HostState(_ONLY_HOST, 1.0, max(self.cores, 1))]
        else:
            hosts = [
                HostState(host.name, host.speed, host.cores, room=self.lab.room(host))
                for host in self.lab.hosts
            ]
        by_name = {host.name: host for host in hosts}
        for placing in self.running.values():
            if placing.host in by_name:
                placing.occupy(by_name[placing.host], placing.expected_end(now))
        return hosts

    def _ranks(self, remaining: Sequence[Any]) -> dict[Any, float]:
        jobs = {single for job in remaining for single in members(job)}
        work = {job: self.times.work(job) for job in jobs}
        return upward_ranks(
            work, {job: [d for d in self.dag.job_dependencies(job) if d in jobs] for job in jobs}
        )

    def _wish(self, job: Any, sizes: Mapping[Any, int], hosts: Sequence[HostState]) -> Wish:
        work = work_of(job, self.times)
        parts = [
            (self.made_on[str(f)], float(sizes.get(f) or 0)) for f in job.input if str(f) in self.made_on
        ]
        lab = self.lab

        def seconds(host: HostState) -> float:
            moves = (
                0.0 if lab is None else sum(lab.seconds(source, host.name, size) for source, size in parts)
            )
            return work / host.speed + moves

        return Wish(job, *_needs(job), seconds, self._allowed(job, hosts))

    def _named(self, job: Any) -> str | None:
        """The host that its rule names, or that it has and cannot lose."""
        for single in members(job):
            if single in self.host_of:
                return self.host_of[single]
        named = job.scheduler_resources.get(self.resource)
        return named if isinstance(named, str) else None

    def _allowed(self, job: Any, hosts: Sequence[HostState]) -> list[HostState]:
        named = self._named(job)
        return [host for host in hosts if named is None or host.name == named]

    # What happens.

    def _assign(self, job: Any, host: str) -> None:
        named = self._named(job) or host
        if named:
            self.host_of.update(dict.fromkeys(members(job), named))
            assign(job, self.resource, named)

    def _withdraw(self, job: Any) -> None:
        """A job that was to be started before gets a host anew, by what it needs now."""
        singles = [single for single in members(job) if single in self.host_of]
        if singles and withdraw(job, self.resource):
            for single in singles:
                del self.host_of[single]

    def _note_started(self, placing: Placing) -> None:
        self.running[placing.job] = placing
        for single in members(placing.job):
            for file in single.output:
                self.made_on[str(file)] = placing.host

    def _note_ended(self, selectable: Sequence[Any], free: int, now: float) -> None:
        """Forget jobs that have ended, or failed, which Snakemake does not say; learn how long they took."""
        again = set(selectable)
        for job, placing in self.offered.items():
            if job not in again and placing.cores > 0:
                self._note_started(placing)
        self.offered.clear()
        for job, placing in list(self.running.items()):
            if all(self.dag.finished(single) for single in members(job)):
                del self.running[job]
                self.times.note(job, placing, self._speed(placing.host), now)
            elif job in again:
                del self.running[job]
        used = self.cores - free
        while self.running and sum(p.cores for p in self.running.values()) > used:
            longest = max(self.running, key=lambda job: now - self.running[job].finish)
            del self.running[longest]

    def _speed(self, host: str) -> float:
        found = None if self.lab is None else self.lab.speed.get(host)
        return 1.0 if found is None else found


def _needs(job: Any) -> tuple[int, dict[str, int]]:
    """Cores, and all resources that are numbers."""
    resources = {k: v for k, v in job.scheduler_resources.items() if isinstance(v, int)}
    return int(resources.get("_cores", 1)), resources


def _listed(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:.10g}" for name, amount in sorted(amounts.items()))


def _time_limit(seconds: float | None) -> float:
    """Seconds for one selection; with 0, the first job that can start is started at once."""
    limit = 0.0 if seconds is None else float(seconds)
    if not limit >= 0:
        raise UsageError(
            f"--scheduler-headrace-time-limit is {limit:g}", hint="give 0 or more seconds, such as 5"
        )
    return limit
