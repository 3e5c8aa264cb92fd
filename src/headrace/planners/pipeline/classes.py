"""Classes of hosts that are equivalent in all constraints: the program counts their hosts instead of naming them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Floats
from headrace.planners.pipeline.rates import Rates


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes in the order of their first hosts."""

    of_host: Numbers
    first: Numbers
    """The first host of each class."""
    size: Numbers
    core: Floats
    """[filters, classes]"""
    cores: Floats
    port: Floats
    zone: Numbers
    share: Floats
    """[options, classes] the share of the input that each host reads."""
    power: Floats
    """[filters, classes] processing rate of one host with all its cores, at most the reader's rate."""
    limit: Floats
    """[filters, classes] the same, also limited by the host's port."""
    extra_cost: Floats
    """[filters, classes] cost of running a filter on a host, besides W_X."""

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def reads(self) -> Numbers:
        """[options, classes] 1 where the hosts of a class read the input."""
        return (self.share > 0).astype(np.int64)

    def members(self, g: int) -> Numbers:
        """Hosts of a class in platform order."""
        members: Numbers = np.flatnonzero(self.of_host == g)
        return members


def find_classes(rates: Rates, extra_cost: Floats | None = None) -> Classes:
    """Hosts that agree in zone, power for every filter, cores, port, shares and costs: O(hosts log hosts).

    `extra_cost` is by filters and hosts.
    """
    extra = np.zeros(rates.core.shape) if extra_cost is None else extra_cost
    key = np.vstack(
        [rates.zone[None, :].astype(np.float64), rates.core, rates.cores, rates.port, rates.share, extra]
    )
    _, first, of_host, size = np.unique(
        key, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    first = first[order]
    power = np.minimum(rates.core * rates.cores, rates.most)[:, first]
    with np.errstate(divide="ignore"):
        by_port = rates.port[first] / np.maximum(rates.rate_in, rates.rate_out)[:, None]
    return Classes(
        of_host=rank[of_host.ravel()],
        first=first,
        size=size[order],
        core=rates.core[:, first],
        cores=rates.cores[first],
        port=rates.port[first],
        zone=rates.zone[first],
        share=rates.share[:, first],
        power=power,
        limit=np.minimum(power, by_port),
        extra_cost=extra[:, first],
    )
