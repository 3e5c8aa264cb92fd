"""The resource of a job that has the name of its host.

Snakemake lets a scheduler add a resource to a job, but neither change nor remove it. A job that is tried again may need
another host, so this reaches into the job; if a later Snakemake has no such attributes, the job keeps its host.
"""

from __future__ import annotations

from typing import Any

from .run_times import members


def assign(job: Any, name: str, host: str) -> None:
    """Give a job, or all jobs of a group, the host. What a rule says itself is left as it is."""
    for single in members(job):
        single.add_aux_resource(name, host)
    if hasattr(job, "jobs"):
        _renew(job)  # the resources of a group are made of those of its jobs, once


def withdraw(job: Any, name: str) -> bool:
    """Take the host back; whether that was possible. What the job needs is then evaluated again, for this attempt."""
    singles = members(job)
    if not all(hasattr(single, "_aux_resources") for single in singles):
        return False
    for single in singles:
        single._aux_resources.pop(name, None)
        single._params = None  # they may contain the host
        _renew(single)
    _renew(job)
    return True


def _renew(job: Any) -> None:
    job._scheduler_resources = None
    job.attempt = job.attempt  # drops the resources, too
