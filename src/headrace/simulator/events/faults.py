"""Parser for the text form of faults: `kill=2@30%,slow=1*0.5@10%+20%,link=uw@100+60`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from headrace.model.behaviour import Change
from headrace.model.errors import UsageError
from headrace.model.platform import Host, Platform
from headrace.model.trace import Trace

KINDS = ("kill", "slow", "join", "cluster", "link")
_FORM = re.compile(
    r"(?P<kind>\w+)=(?P<who>[^@*]+)(?:\*(?P<factor>[\d.eE+-]+))?"
    r"@(?P<when>[\d.eE]+%?)(?:\+(?P<length>[\d.eE]+%?))?"
)
_HINT = (
    "such as kill=2@30% (two hosts, at 30 % of the planned time), kill=n3@100+60 (host n3 for 60 s), "
    "slow=1*0.5@10%, join=2@50%, cluster=uw@40%, link=uw@10%+5%"
)


def parse_faults(text: str, platform: Platform, planned: float, seed: int = 0) -> list[Change]:
    """Parse a comma-separated list of faults `kind=who@time+length` into changes, sorted by time.

    Kinds: kill (hosts leave), slow (hosts run at a share of their speed), join (hosts are absent until then), cluster
    (a site leaves with its hosts), link (a link or a site's uplink is down). `who` is a name, or the number of targets
    to draw at random. `+length` reverts the change after that time, so hosts that joined leave again. Times are in
    seconds, or percentages of `planned`.

    Raises UsageError for text that does not have this form.

    >>> lab = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    >>> [(c.time, c.what, c.name) for c in parse_faults("kill=h1@50%+5", lab, planned=100.0)]
    [(50.0, 'host-down', 'h1'), (55.0, 'host-up', 'h1')]
    """
    rng = np.random.default_rng([seed, 31])
    changes: list[Change] = []
    used: set[str] = set()
    for part in filter(None, (p.strip() for p in text.split(","))):
        found = _FORM.fullmatch(part)
        if found is None or found["kind"] not in KINDS:
            raise UsageError(f"fault {part!r} is invalid", where="--faults", hint=_HINT)
        begin = _time(found["when"], planned, part)
        end = begin + _time(found["length"], planned, part) if found["length"] else math.inf
        if (found["kind"] == "slow") != (found["factor"] is not None):
            raise UsageError(
                f"fault {part!r}: only slow takes a share of speed", where="--faults", hint=_HINT
            )
        factor = _factor(found["factor"] or "1", part)
        names = _who(found["who"].strip(), found["kind"], platform, used, rng, part)
        for name in names:
            changes.extend(_changes(found["kind"], name, begin, end, factor, platform))
    return sorted(changes, key=lambda change: change.time)


def _factor(text: str, part: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1:
        raise UsageError(
            f"fault {part!r}: {text} is not a share of speed", where="--faults", hint="use 0 to 1"
        )
    return factor


def _time(text: str, planned: float, part: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.inf
    if not value < math.inf:
        raise UsageError(f"fault {part!r}: {text!r} is not a time", where="--faults", hint=_HINT)
    return value / 100.0 * planned if text.endswith("%") else value


def _who(
    who: str, kind: str, platform: Platform, used: set[str], rng: np.random.Generator, part: str
) -> Sequence[str]:
    if kind in ("kill", "slow", "join"):
        known = [host.name for host in platform.hosts]
    elif kind == "cluster":
        known = [site.name for site in platform.sites if site.hosts]
    else:
        known = [site.name for site in platform.sites if site.uplink is not None]
        known += list(platform.network.link_names)
    if who in known:
        used.add(who)
        return [who]
    if not who.isdigit():
        raise UsageError(
            f"fault {part!r}: there is no {who!r}",
            where="--faults",
            hint=f"use one of {', '.join(known[:8])}",
        )
    left = [name for name in known if name not in used]
    if int(who) > len(left):
        raise UsageError(f"fault {part!r}: only {len(left)} are left", where="--faults", hint=_HINT)
    drawn = [left[k] for k in sorted(rng.permutation(len(left))[: int(who)].tolist())]
    used.update(drawn)
    return drawn


def _changes(
    kind: str, name: str, begin: float, end: float, factor: float, platform: Platform
) -> list[Change]:
    if kind == "join":
        made = [Change(begin, "host-up", name)]
        return made + ([Change(end, "host-down", name)] if end < math.inf else [])
    if kind == "slow":
        host = next(h for h in platform.hosts if h.name == name)
        made = [Change(begin, "host-trace", name, _slowed(host, factor))]
        back = host.trace or Trace.constant(1.0 - host.load)
        return made + ([Change(end, "host-trace", name, back)] if end < math.inf else [])
    if kind == "link":
        made = [Change(begin, "link-down", name)]
        return made + ([Change(end, "link-up", name)] if end < math.inf else [])
    hosts = [name]
    made = []
    if kind == "cluster":
        hosts = [h.name for h in next(s for s in platform.sites if s.name == name).hosts]
        made = [Change(begin, "link-down", name)]
        if end < math.inf:
            made.append(Change(end, "link-up", name))
    downs = [Change(begin, "host-down", host) for host in hosts]
    ups = [Change(end, "host-up", host) for host in hosts] if end < math.inf else []
    return [*downs, *made, *ups]


def _slowed(host: Host, factor: float) -> Trace:
    if host.trace is None:
        return Trace.constant(factor * (1.0 - host.load))
    return Trace(host.trace.time, host.trace.value * factor, host.trace.length, host.trace.offset)
