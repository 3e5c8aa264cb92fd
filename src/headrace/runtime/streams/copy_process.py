"""One copy of a filter, in its own process: connect, then one cycle for each unit of work.

The process is forked by the agent of its host and speaks with it over a socket, in lines of JSON.
"""

from __future__ import annotations

import json
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.runtime.filters import App, Buffer, Filter, Reader, Sendable, Work, flat
from headrace.runtime.filters import Sender as CheckedSender
from headrace.runtime.packing import unpack
from headrace.runtime.spool import SpoolWriter
from headrace.runtime.streams.counters import COMPUTING, IDLE, WAITS_INPUT, Counters, number
from headrace.runtime.streams.framing import RUN_END, UNIT_END, Connection, LinkLost, accept, dial, listen
from headrace.runtime.streams.inlet import Inlet, Sender
from headrace.runtime.streams.outlet import Channel, Outlet
from headrace.runtime.streams.ports import Port
from headrace.runtime.streams.routing import make_router
from headrace.runtime.streams.spec import CopySpec, OutputSpec

_BUSY, _BUFFERS_IN, _BYTES_IN = number("busy_ns"), number("buffers_in"), number("bytes_in")
_BUFFERS_OUT, _BYTES_OUT, _RESULTS = number("buffers_out"), number("bytes_out"), number("results")
_LEAST_PAUSE = 1_000_000
"""Nanoseconds by which an emulated host must be behind before it sleeps: sleeping itself is not exact."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all copies of a host share."""

    payload: bytes
    """The pickled application."""
    token: bytes
    listen_on: str
    folder: Path
    accepting: ssl.SSLContext | None = None
    dialing: ssl.SSLContext | None = None


class Control:
    """Lines of JSON to and from the agent."""

    def __init__(self, raw: socket.socket) -> None:
        self._socket = raw
        self._lines = raw.makefile("r", encoding="utf-8")

    def tell(self, event: str, **facts: Any) -> None:
        self._socket.sendall(json.dumps({"event": event} | facts).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        """The next message; ends this process if the agent is gone."""
        line = self._lines.readline()
        if not line:
            raise SystemExit(1)
        message: dict[str, Any] = json.loads(line)
        return message


class Clock:
    """Measures the filter's own time, without its sends, and stretches it on an emulated host."""

    def __init__(
        self, counters: Counters, factor: float, slowdown: tuple[float, float] | None = None
    ) -> None:
        self._integers = counters.integers
        self._extra = factor - 1.0
        self._slowdown = slowdown
        self._since = 0
        self._debt = 0.0

    def start(self) -> None:
        self._since = time.monotonic_ns()

    def stop(self) -> None:
        """The filter's own code pauses. Before it goes on, it waits as long as the emulated host would work."""
        spent = time.monotonic_ns() - self._since
        if self._slowdown is not None and time.monotonic() >= self._slowdown[0]:
            self._extra = (self._extra + 1.0) * self._slowdown[1] - 1.0
            self._slowdown = None
        if self._extra:
            spent += self._stretch(spent)
        self._integers[_BUSY] += spent

    def _stretch(self, spent: int) -> int:
        self._debt += spent * self._extra
        if self._debt < _LEAST_PAUSE:
            return 0
        began = time.monotonic_ns()
        time.sleep(self._debt / 1e9)
        slept = time.monotonic_ns() - began
        self._debt -= slept
        return slept


class StreamOutput(CheckedSender):
    """Sends what a filter produces: to the next filters, or, without any, to the results of the unit."""

    def __init__(self, app: App, name: str, outlet: Outlet, counters: Counters, clock: Clock) -> None:
        super().__init__(app, name)
        self._outlet = outlet
        self._number = {stream.name: i for i, stream in enumerate(app.out_of(name))}
        self._integers = counters.integers
        self._clock = clock
        self.unit = 0
        self.results: SpoolWriter | None = None

    def send(self, data: Sendable, stream: str = "") -> None:
        """Send one buffer."""
        self._clock.stop()
        plain = flat(data)
        view = memoryview(plain)
        chosen = self.checked(plain, stream)
        self._integers[_BUFFERS_OUT] += 1
        self._integers[_BYTES_OUT] += len(view)
        if chosen:
            self._outlet.send(self._number[chosen], view, self.unit, isinstance(plain, bytes))
        else:
            assert self.results is not None
            self._integers[_RESULTS] += 1
            self.results.append(view)
        self._clock.start()


class Copy:
    """A connected copy that is ready for units of work."""

    def __init__(self, spec: CopySpec, around: Surroundings, control: Control, counters: Counters) -> None:
        self.spec = spec
        self._around = around
        self._control = control
        self._counters = counters
        self._clock = Clock(counters, spec.factor, spec.slowdown)
        self.app: App = unpack(around.payload)
        self._filter: Filter = self.app.make(spec.filter)
        self._granted = 0
        self._last = False
        inlet, outlet = self._connect()
        self._inlet = inlet
        self._outlet = outlet
        self._out = StreamOutput(self.app, spec.filter, outlet, counters, self._clock)

    def run(self) -> None:
        """All units of work, in order."""
        self._counters.put("started_ns", time.monotonic_ns())
        unit = self.spec.first_unit
        while True:
            first = self._begin(unit)
            if first is _NO_UNIT:
                break
            self._counters.put("unit", unit)
            with tempfile.TemporaryDirectory(dir=self._around.folder) as scratch:
                self._cycle(unit, Path(scratch), first)
            self._outlet.end(UNIT_END, unit)
            self._counters.put("state", IDLE)
            unit += 1
        self._outlet.end(RUN_END, unit)
        self._outlet.flush()
        self._control.tell("finished")
        while True:  # what is still in our sockets would be lost if we closed them now
            self._control.hear()

    def _begin(self, unit: int) -> Any:
        """Wait until the unit begins: its first buffer, None if there is none, or _NO_UNIT after the last."""
        if not isinstance(self._filter, Reader):
            self._inlet.begin_unit()
            first = self._inlet.next(unit)
            return _NO_UNIT if first is None and self._inlet.run_ended else first
        while unit >= self._granted and not self._last:
            self._counters.put("state", WAITS_INPUT)
            message = self._control.hear()
            if message["do"] == "grant":
                self._granted, self._last = message["units"], message["last"]
        return None if unit < self._granted else _NO_UNIT

    def _cycle(self, number: int, scratch: Path, first: tuple[str, bytes] | None) -> None:
        unit = self.app.units[number % len(self.app.units)]
        work = Work(unit.name, unit.settings, scratch, self.spec.begin, self.spec.end)
        out, clock = self._out, self._clock
        out.unit = number
        spool = self._around.folder / f"{self.spec.copy}.{number}"
        if not self.spec.outputs:
            out.results = SpoolWriter(spool, self.spec.limit, self.spec.name)
        self._counters.put("state", COMPUTING)
        if isinstance(self._filter, Reader):
            self._filter.prepare(work)
        clock.start()
        self._filter.init(work)
        if isinstance(self._filter, Reader):
            self._filter.read(out)
        else:
            self._process(number, first)
        self._filter.finalize(out)
        clock.stop()
        if out.results is not None:
            out.results.close()
            self._control.tell("unit", unit=number, file=str(spool), buffers=out.results.buffers)

    def _process(self, unit: int, first: tuple[str, bytes] | None) -> None:
        """All buffers of the unit, as they come."""
        integers, clock, process, out = self._counters.integers, self._clock, self._filter.process, self._out
        arrived = first
        while arrived is not None:
            stream, data = arrived
            integers[_BUFFERS_IN] += 1
            integers[_BYTES_IN] += len(data)
            process(Buffer(stream, data), out)
            clock.stop()
            arrived = self._inlet.next(unit)
            clock.start()

    def _connect(self) -> tuple[Inlet, Outlet]:
        """Listen, learn the addresses of the others, connect to the next filters, accept those before."""
        spec, around = self.spec, self._around
        server = listen(around.listen_on)
        self._control.tell("listening", port=server.getsockname()[1])
        message = self._control.hear()
        while message["do"] != "wire":
            message = self._control.hear()
        addresses = {int(copy): (host, port) for copy, (host, port) in message["addresses"].items()}
        numbers = iter(range(spec.targets))
        streams = [
            (
                make_router(
                    spec.routing,
                    [target.weight for target in output.targets],
                    skip=spec.copy,
                    work_conserving=spec.work_conserving,
                ),
                list(self._dial_all(output, addresses, numbers)),
            )
            for output in spec.outputs
        ]
        watched = spec.work_conserving or spec.routing == "least-loaded"
        outlet = Outlet(streams, spec.credits, self._counters, needs_credits=watched)
        with server:
            senders = self._accept_all(server)
        return Inlet(senders, spec.credits, self.app.buffer, self._counters), outlet

    def _dial_all(
        self, output: OutputSpec, addresses: dict[int, tuple[str, int]], numbers: Iterator[int]
    ) -> Iterator[Channel]:
        for target in output.targets:
            identity = (self.spec.copy, output.stream)
            try:
                link = dial(
                    addresses[target.copy],
                    self._around.token,
                    identity,
                    self._around.dialing,
                    self.spec.stall,
                )
            except LinkLost as error:
                raise error.at(f"to {target.name}") from None
            ports = [Port(Path(file), rate) for file, rate in target.ports]
            yield Channel(next(numbers), link, target.name, self.spec.credits, ports)

    def _accept_all(self, server: socket.socket) -> list[Sender]:
        expected = {(given.source, given.stream): given for given in self.spec.inputs}
        found: dict[tuple[int, int], Connection] = {}
        deadline = time.monotonic() + server.gettimeout() if server.gettimeout() else None  # type: ignore[operator]
        while len(found) < len(expected):
            try:
                accepted = accept(server, self._around.token, self._around.accepting, self.spec.stall)
            except TimeoutError:
                accepted = None
            if accepted is None:
                if deadline is not None and time.monotonic() > deadline:
                    missing = next(given.name for key, given in expected.items() if key not in found)
                    raise LinkLost("it did not connect in time", where=f"from {missing}") from None
                continue
            who, link = accepted
            if who in found or who not in expected:
                raise HeadraceError(f"an unexpected connection {who}", where=self.spec.name)
            found[who] = link
        return [Sender(found[key], given.stream_name, given.name) for key, given in expected.items()]


_NO_UNIT = object()
