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

    @property
    def n(self) -> int:
        return len(self.first)

    def members(self, g: int) -> Numbers:
        """Hosts of a class in platform order."""
        members: Numbers = np.flatnonzero(self.of_host == g)
        return members


def find_classes(rates: Rates) -> Classes:
    """Hosts that agree in zone, power for every filter, cores, port and every share: O(hosts log hosts)."""
    key = np.vstack(
        [rates.zone[None, :].astype(np.float64), rates.core, rates.cores, rates.port, rates.share]
    )
    _, first, of_host, size = np.unique(
        key, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    first = first[order]
    return Classes(
        of_host=rank[of_host.ravel()],
        first=first,
        size=size[order],
        core=rates.core[:, first],
        cores=rates.cores[first],
        port=rates.port[first],
        zone=rates.zone[first],
        share=rates.share[:, first],
    )
