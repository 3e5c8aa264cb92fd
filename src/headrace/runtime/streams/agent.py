"""The agent of one host: `python -m headrace.runtime.streams.agent`. It forks the copies and watches over them.

Commands come in on standard input and events go out on standard output, in lines of JSON. The agent has one
thread, so that it can fork: a copy starts in a hundredth of the time that a new interpreter takes. When standard
input closes, the agent ends, and all copies and the commands they started with it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from headrace.model.errors import HeadraceError
from headrace.runtime.streams.copy_process import Control, Copy, Surroundings
from headrace.runtime.streams.counters import Counters
from headrace.runtime.streams.framing import LinkLost
from headrace.runtime.streams.spec import CopySpec
from headrace.runtime.streams.tls import contexts

PROGRESS_SECONDS = 0.25
_TRACE_LINES = 14
_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Child:
    """A copy as its agent sees it."""

    spec: CopySpec
    pid: int
    control: socket.socket
    counters: Counters
    heard: bytes = b""
    finished: bool = False
    failed: bool = False
    stopped: bool = False
    """Whether its process was stopped by a signal."""


class Agent:
    """Forks copies, relays messages between them and the supervisor, and reports progress."""

    def __init__(self, name: str, listen_on: str, folder: Path) -> None:
        self._name = name
        self._listen_on = listen_on
        self._folder = folder
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ, None)
        self._heard = b""
        # Read by every copy, written by nobody: it closes when the agent dies, however that happens.
        self._lifeline, self._alive = os.pipe()
        self._next_progress = time.monotonic() + PROGRESS_SECONDS

    def serve(self) -> None:
        """Until standard input closes."""
        self._tell("agent", pid=os.getpid(), folder=str(self._folder))
        while True:
            patience = max(0.0, self._next_progress - time.monotonic()) if self._children else None
            for key, _ in self._selector.select(patience):
                if key.data is None:
                    data = os.read(0, 65536)
                    if not data:
                        return
                    self._heard = self._take_lines(self._heard + data)
                elif key.data.spec.copy in self._children:
                    self._listen_to(key.data)
            if self._children and time.monotonic() >= self._next_progress:
                self.report()

    def _take_lines(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            command = json.loads(line)
            getattr(self, f"_do_{command['do']}")(command)
        return rest

    def report(self) -> None:
        """What every copy has done so far."""
        self._next_progress = time.monotonic() + PROGRESS_SECONDS
        now = time.monotonic_ns()
        copies = {
            copy: child.counters.read()
            | {"now_ns": now, "sent": child.counters.sent(), "stopped": _is_stopped(child)}
            for copy, child in self._children.items()
        }
        self._tell("progress", copies=copies)

    def _do_start(self, command: dict[str, Any]) -> None:
        accepting, dialing = contexts(command["tls"])
        around = Surroundings(
            base64.b64decode(command["payload"]),
            bytes.fromhex(command["token"]),
            self._listen_on,
            self._folder,
            accepting,
            dialing,
        )
        for given in command["copies"]:
            self._fork(CopySpec.from_json(given), around)

    def _do_wire(self, command: dict[str, Any]) -> None:
        self._pass_on(command)

    def _do_grant(self, command: dict[str, Any]) -> None:
        self._pass_on(command, readers_only=True)

    def _do_weights(self, command: dict[str, Any]) -> None:
        for copy, weights in command["weights"].items():
            if int(copy) in self._children:
                self._children[int(copy)].counters.write_weights(weights)

    def _do_discard(self, command: dict[str, Any]) -> None:
        for file in command["files"]:
            (self._folder / Path(file).name).unlink(missing_ok=True)

    def _do_stop(self, command: dict[str, Any]) -> None:
        """End all copies."""
        if self._children:
            self.report()
        for child in list(self._children.values()):
            self._remove(child)
        self._tell("stopped")

    def _pass_on(self, command: dict[str, Any], *, readers_only: bool = False) -> None:
        line = json.dumps(command).encode() + b"\n"
        for child in self._children.values():
            if not readers_only or not child.spec.inputs:
                try:
                    child.control.sendall(line)
                except OSError:
                    continue  # it has ended, which is noticed when its socket is read

    def _fork(self, spec: CopySpec, around: Surroundings) -> None:
        ours, theirs = socket.socketpair()
        counters = Counters(spec.targets)
        pid = os.fork()
        if pid == 0:
            os.close(self._alive)
            self._selector.close()
            for other in self._children.values():
                other.control.close()
            ours.close()
            _be_copy(spec, around, theirs, counters, self._lifeline)
        os.setpgid(pid, pid)
        theirs.close()
        child = Child(spec, pid, ours, counters)
        self._children[spec.copy] = child
        self._selector.register(ours, selectors.EVENT_READ, child)

    def _listen_to(self, child: Child) -> None:
        try:
            data = child.control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._bury(child)
            return
        *lines, child.heard = (child.heard + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            child.finished = child.finished or message["event"] == "finished"
            child.failed = child.failed or message["event"] == "failed"
            self._tell(message.pop("event"), copy=child.spec.copy, **message)

    def _bury(self, child: Child) -> None:
        status = self._remove(child)
        if not child.failed:
            self._tell("died", copy=child.spec.copy, status=status)

    def _remove(self, child: Child) -> int:
        self._selector.unregister(child.control)
        child.control.close()
        del self._children[child.spec.copy]
        os.killpg(
            child.pid, signal.SIGKILL
        )  # also the commands it started; not waited for, it still has its id
        _, status = os.waitpid(child.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _tell(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "host": self._name} | facts)
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]

    def kill_all(self) -> None:
        for child in list(self._children.values()):
            self._remove(child)


def _is_stopped(child: Child) -> bool:
    """Whether the process of a copy is stopped, which its counters do not show; its exit status stays to be read."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):  # it has ended, which its socket will tell
            change = os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
            if change is not None:
                child.stopped = change.si_code in (os.CLD_STOPPED, os.CLD_TRAPPED)
    return child.stopped


def _be_copy(
    spec: CopySpec, around: Surroundings, raw: socket.socket, counters: Counters, lifeline: int
) -> NoReturn:
    """The rest of the life of a forked copy."""
    code = 1
    try:
        os.setpgrp()  # with the commands it starts, it is a group that can be ended
        _die_with_parent()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what filters print must not mix with our messages
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_agent, args=(lifeline,), daemon=True).start()
        control = Control(raw)
        try:
            Copy(spec, around, control, counters).run()
        except Exception as error:
            control.tell("failed", unit=counters.get("unit"), **_describe(error))
            while True:  # the others may still read what this copy has sent: its sockets stay open
                control.hear()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _die_with_parent() -> None:
    """On Linux, have the kernel kill this process when the agent dies, even if it is stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_agent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(os.getpid(), signal.SIGKILL)


def _describe(error: Exception) -> dict[str, Any]:
    if isinstance(error, HeadraceError):
        return {
            "problem": error.problem,
            "where": error.where,
            "hint": error.hint,
            "link": isinstance(error, LinkLost),
        }
    trace = "".join(traceback.format_exception(error)).strip().splitlines()[-_TRACE_LINES:]
    return {"problem": "it raised an error:\n" + "\n".join(trace), "where": "", "hint": "", "link": False}


def main() -> None:
    """Serve until standard input closes."""
    settings = json.loads(sys.argv[1])
    sys.path += [folder for folder in settings["path"] if folder not in sys.path]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = Path(tempfile.mkdtemp(prefix="headrace-stream-"))
    agent = Agent(settings["name"], settings["listen"], folder)
    try:
        agent.serve()
    finally:
        agent.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
