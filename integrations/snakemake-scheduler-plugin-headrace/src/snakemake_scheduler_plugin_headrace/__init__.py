"""`snakemake --scheduler headrace`: jobs go to the hosts of a platform where they finish first.

Snakemake asks which of the ready jobs to start, whenever a job has ended. The answer is made from the run times of
earlier jobs, the speeds and links of the hosts, and what runs now; see `placement`. Whatever goes wrong in here, the
greedy scheduler of Snakemake decides instead, with one warning.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_scheduler_plugins.base import SchedulerBase

from .hosts import Lab, read_lab
from .placement import HostState, Placing, Wish, place, upward_ranks
from .run_times import RunTimes, members, work_of
from .settings import SchedulerSettings

__all__ = ["Scheduler", "SchedulerSettings"]

_RESOURCE = "headrace_host"


class Scheduler(SchedulerBase):
    """Selects jobs; one instance for a whole run of Snakemake."""

    settings: SchedulerSettings

    def __post_init__(self) -> None:
        try:
            self.lab: Lab | None = read_lab(self.settings.platform, self.settings.hosts)
        except Exception as error:
            raise WorkflowError(f"--scheduler headrace: {error}") from error
        self.times = RunTimes(self.settings.record)
        self.running: dict[Any, Placing] = {}
        self.made_on: dict[str, str] = {}
        """The host that made each file."""
        self.host_of: dict[Any, str] = {}
        self.cores = 0
        self.warned = False

    def select_jobs(
        self,
        selectable_jobs: Sequence[Any],
        remaining_jobs: Sequence[Any],
        available_resources: Mapping[str, int | str],
        input_sizes: Mapping[Any, int],
    ) -> Sequence[Any] | None:
        """The jobs to start now; None leaves the selection to Snakemake's greedy scheduler."""
        try:
            return self._select(selectable_jobs, remaining_jobs, available_resources, input_sizes)
        except Exception as error:
            if not self.warned:
                self.warned = True
                self.logger.warning(
                    f"headrace: {type(error).__name__}: {error}; the greedy scheduler selects jobs instead."
                )
            return None

    def _select(
        self,
        selectable: Sequence[Any],
        remaining: Sequence[Any],
        available: Mapping[str, int | str],
        sizes: Mapping[Any, int],
    ) -> list[Any] | None:
        now, end = time.time(), time.monotonic() + float(self.settings.time_limit or 0.0)
        self.cores = max(self.cores, int(available.get("_cores", 0)))
        self._note_ended(selectable, int(available.get("_cores", 0)), now)
        hosts = self._hosts(now)
        ranks = self._ranks(remaining)
        order = sorted(selectable, key=lambda job: (-job.priority, -ranks.get(job, 0.0), str(job)))
        wishes = [self._wish(job, sizes, hosts) for job in order]
        placed = place(wishes, hosts, now, available, lambda: time.monotonic() > end)
        if not placed and not self.running:
            return None  # nothing runs: whatever the figures say, something must be started
        for placing in placed:
            self._start(placing, now)
        return [placing.job for placing in placed]

    # What is known.

    def _hosts(self, now: float) -> list[HostState]:
        if self.lab is None:
            hosts = [HostState("", 1.0, max(self.cores, 1))]
        else:
            hosts = [
                HostState(host.name, host.speed, host.cores, room=self.lab.room(host))
                for host in self.lab.hosts
            ]
        by_name = {host.name: host for host in hosts}
        for placing in self.running.values():
            if placing.host in by_name:
                end = placing.expected_end(now)
                by_name[placing.host].busy.append((end, placing.cores))
                by_name[placing.host].held.append((end, placing.resources))
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
        fixed = self.host_of.get(job)

        def seconds(host: HostState) -> float:
            moves = (
                0.0 if lab is None else sum(lab.seconds(source, host.name, size) for source, size in parts)
            )
            return work / host.speed + moves

        resources = {k: v for k, v in job.scheduler_resources.items() if isinstance(v, int)}
        allowed = [host for host in hosts if fixed is None or host.name == fixed]
        return Wish(job, int(resources.get("_cores", 1)), resources, seconds, allowed)

    # What happens.

    def _start(self, placing: Placing, now: float) -> None:
        placing.started = now
        self.running[placing.job] = placing
        for single in members(placing.job):
            for file in single.output:
                self.made_on[str(file)] = placing.host
            if placing.host and placing.job not in self.host_of:
                single.add_aux_resource(self.settings.host_resource or _RESOURCE, placing.host)
        if placing.host:
            self.host_of[placing.job] = placing.host

    def _note_ended(self, selectable: Sequence[Any], free: int, now: float) -> None:
        """Forget jobs that have ended, or failed, which Snakemake does not say; learn how long they took."""
        again = set(selectable)
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
