"""Predict the run times of tasks from earlier executions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.errors import UsageError
from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.platform import Host, Platform

LEAST_SHARE = 1e-9
"""Smallest time on a host as a share of the slowest host's, so that a run time of 0 does not give an infinite speed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One execution: kind of task, host, run time in seconds, and input bytes."""

    kind: str
    host: str
    seconds: float
    input_size: float

    def __post_init__(self) -> None:
        for what, value in (("seconds", self.seconds), ("input_size", self.input_size)):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(
                    f"{what} is {value}",
                    where=f"measurement of {self.kind!r} on {self.host!r}",
                    hint="give a finite number, 0 or more",
                )


def predict(
    graph: Graph, platform: Platform, measurements: Iterable[Measurement], alpha: float = 0.9
) -> tuple[Graph, Platform]:
    """The program and platform with run times predicted from history; measurements are given oldest first.

    For each kind with history, a host that ran it takes, per input byte, the weighted mean of its own
    measurements: weights alpha, alpha (1 - alpha), alpha (1 - alpha)^2, ... from the latest back,
    divided by their sum (equation 1 of the macro-dataflow paper, normalised). A host that did not takes
    the mean over those that did (equation 2, divided by their number). Where the platform's hosts have
    different speeds that mean is one of work: measured seconds times that host's speed, averaged, divided
    by the speed of the host asked for; with equal speeds this is equation 2. Where the tasks of a kind have run times
    for each architecture, their means are these speeds, and hosts of the same architecture come first.

    A kind that never read a byte has a time per execution instead. In a kind that did, an execution or
    a task without known input bytes counts as one of average measured size. Measurements on hosts the
    platform does not have are used only when none of its own ran that kind, and then as of a host of
    speed 1. Kinds without history, and tasks without a kind, keep the user's figure.

    The answer is exact: work / speed of a host for a kind, load taken off, is the predicted time.
    O(measurements + reads + kinds * hosts).

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[9.0], size=[10.0], producer=[-1], read_ptr=[0, 1], reads=[0], kinds=("fft",))
    >>> seen = [Measurement("fft", "h0", 1.0, 5.0), Measurement("fft", "h1", 3.0, 5.0)]
    >>> g2, p2 = predict(g, Platform.pairwise([1.0, 1.0, 1.0], bandwidth=1.0), seen)
    >>> [round(float(t), 6) for t in g2.work[0] / p2.rates(g2)[0]]
    [2.0, 6.0, 4.0]
    """
    if not 0 < alpha <= 1:
        raise UsageError(f"alpha is {alpha}", where="predict", hint="give a number above 0, at most 1")
    history = _by_kind(measurements, set(graph.kinds) - {""})
    if not history:
        return graph, platform
    rates, groups = kind_rates(graph, platform.rates(graph)), sharing_hosts(graph, platform)
    by_architecture = graph.arch_speeds.shape[1] > 0
    if by_architecture:
        graph = graph.with_plain_classes()
    input_size, work = _input_sizes(graph), graph.work.copy()
    speeds: dict[str, Floats] = {}
    for number, kind in enumerate(graph.kinds):
        if kind not in history:
            continue
        unit = _unit_size(history[kind])
        per_byte = _per_byte(history[kind], platform.hosts, rates[number], groups[number], unit, alpha)
        reference = float(per_byte.mean())
        of_kind = graph.kind == number
        work[of_kind] = reference * _effective(input_size[of_kind], unit)
        if by_architecture:
            graph.speed_class[of_kind] = number
        if reference > 0:
            speeds[kind] = reference / np.maximum(per_byte, LEAST_SHARE * per_byte.max())
    return graph.with_work(work), _with_speeds(platform, speeds)


def kind_rates(graph: Graph, rates: Floats) -> Floats:
    """[kinds, hosts] the speeds given by the user for each kind, derived from those of the speed classes.

    Where the tasks of a kind are in several classes it is such that all of them together take as long.
    """
    kinds = len(graph.kinds)
    if len(graph.class_kind) == kinds:
        return rates
    work = np.bincount(graph.speed_class, weights=graph.work, minlength=len(graph.class_kind))
    total = np.bincount(graph.class_kind, weights=work, minlength=kinds)
    work[total[graph.class_kind] == 0] = 1.0
    seconds = np.zeros((kinds, rates.shape[1]))
    np.add.at(seconds, graph.class_kind, work[:, None] / rates)
    speed: Floats = np.bincount(graph.class_kind, weights=work, minlength=kinds)[:, None] / seconds
    return speed


def sharing_hosts(graph: Graph, platform: Platform) -> Ints:
    """[kinds, hosts] group numbers: hosts of one group share the history of a kind before that of other hosts is used.

    These are the hosts of one architecture if the user's figures for the kind depend on it, or else all.
    """
    depends = np.zeros(len(graph.kinds), np.int32)
    if graph.arch_speeds.shape[1]:
        np.maximum.at(depends, graph.class_kind, (~np.isnan(graph.arch_speeds)).any(axis=1))
    arch = np.array([host.arch for host in platform.hosts], np.int32)
    shared: Ints = depends[:, None] * arch
    return shared


def work_elsewhere(work: Floats, own: Bools, group: Ints) -> Floats:
    """Equation 2, as work: for each host, the mean over the hosts of its group that ran a kind, or over all."""
    elsewhere = np.full(len(work), float(work[own].mean()))
    for one in np.unique(group[own]).tolist() if group.any() else ():
        elsewhere[group == one] = float(work[own & (group == one)].mean())
    return elsewhere


def _by_kind(measurements: Iterable[Measurement], wanted: set[str]) -> dict[str, list[Measurement]]:
    history: dict[str, list[Measurement]] = {}
    for measured in measurements:
        if measured.kind in wanted:
            history.setdefault(measured.kind, []).append(measured)
    return history


def _input_sizes(graph: Graph) -> Floats:
    """Bytes that each task reads, counting known sizes only."""
    reader = np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr))
    sizes: Floats = np.zeros(graph.n_tasks)
    np.add.at(sizes, reader, graph.known_size[graph.reads])
    return sizes


def _unit_size(history: Sequence[Measurement]) -> float:
    """Mean input bytes over the executions with input; 0 for a kind without any."""
    sizes = [m.input_size for m in history if m.input_size > 0]
    return math.fsum(sizes) / len(sizes) if sizes else 0.0


def _effective(size: Floats, unit: float) -> Floats:
    """The sizes to which run times are proportional: bytes, or 1 for kinds without input."""
    return np.where(size > 0, size, unit) if unit > 0 else np.ones_like(size)


def _per_byte(
    history: Sequence[Measurement],
    hosts: Sequence[Host],
    rates: Floats,
    group: Ints,
    unit: float,
    alpha: float,
) -> Floats:
    """Seconds per input byte on each host: equation 1 if the host has history, otherwise equation 2."""
    mean = _weighted_means(history, unit, alpha)
    own = np.array([host.name in mean for host in hosts])
    if not own.any():
        at_speed_one = math.fsum(mean.values()) / len(mean)
        return np.asarray(at_speed_one / rates)
    measured = np.array([mean.get(host.name, 0.0) for host in hosts])
    return np.where(own, measured, work_elsewhere(measured * rates, own, group) / rates)


def _weighted_means(history: Sequence[Measurement], unit: float, alpha: float) -> dict[str, float]:
    """Equation 1 for each host, as a running sum in which each new value outweighs all earlier ones."""
    sums: dict[str, tuple[float, float]] = {}
    for measured in history:
        size = (measured.input_size or unit) if unit > 0 else 1.0
        total, weight = sums.get(measured.host, (0.0, 0.0))
        sums[measured.host] = (
            (1 - alpha) * total + alpha * measured.seconds / size,
            (1 - alpha) * weight + alpha,
        )
    return {host: total / weight for host, (total, weight) in sums.items()}


def _with_speeds(platform: Platform, speeds: Mapping[str, Floats]) -> Platform:
    """The platform with these net speeds for these kinds. Measured run times already include the load."""
    number = {host.name: j for j, host in enumerate(platform.hosts)}

    def changed(host: Host) -> Host:
        net = {kind: float(of[number[host.name]]) / (1.0 - host.load) for kind, of in speeds.items()}
        return replace(host, kinds={**host.kinds, **net})

    sites = tuple(replace(site, hosts=tuple(changed(h) for h in site.hosts)) for site in platform.sites)
    return replace(platform, sites=sites)
