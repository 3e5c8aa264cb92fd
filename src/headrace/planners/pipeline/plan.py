"""Planners of deployments by name."""

from __future__ import annotations

from collections.abc import Callable

from headrace.model.deployment import Deployment
from headrace.planners.pipeline.comparators import deploy_total, deploy_trivial
from headrace.planners.pipeline.portfolio import GAP, SECONDS, deploy_lpsched

__all__ = ["GAP", "PLANNERS", "SECONDS", "deploy_lpsched", "deploy_total", "deploy_trivial"]

PLANNERS: dict[str, Callable[..., Deployment]] = {
    "lpsched": deploy_lpsched,
    "trivial": deploy_trivial,
    "total": deploy_total,
}
