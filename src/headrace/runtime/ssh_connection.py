"""One connection of `ssh` to a host on which workers are started, and what its failures mean."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from headrace.formats.hosts_toml import SshHost
from headrace.model.errors import UsageError, WorkerStartFailed
from headrace.runtime.installed import own_version
from headrace.runtime.ssh_worker import MARK

CONNECT_SECONDS = 10
_GRACE = 5.0
_FAILED = 255
"""The exit status of ssh when it could not connect; others are those of the command there."""
_NOT_FOUND = 127
_KEPT_LINES = 20


class SshConnection:
    """A process of `ssh` that runs `headrace.runtime.ssh_worker` on a host."""

    def __init__(self, host: SshHost) -> None:
        self.host = host
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._passing = False
        try:
            self._process = subprocess.Popen(
                command_line(host),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C reaches only us
            )
        except FileNotFoundError:
            raise UsageError(
                "there is no `ssh` command", where="ssh", hint="install the OpenSSH client"
            ) from None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def await_versions(self, seconds: float) -> None:
        """Wait until headrace has started there, and require that it is the same version."""
        found = self._answer(seconds)
        if found is None:
            raise self._failure()
        here = {"headrace": own_version(), "python": list(sys.version_info[:2])}
        if found["headrace"] != here["headrace"]:
            raise self.error(
                f"headrace {found['headrace']} is installed there, and {here['headrace']} here",
                "install the same version on both",
            )
        if found["python"] != here["python"]:
            there, ours = (".".join(map(str, each["python"])) for each in (found, here))
            raise self.error(
                f"Python there is {there}, and {ours} here",
                "name a Python of the same version with `python = ...`",
            )

    def instruct(self, settings: Mapping[str, Any]) -> None:
        """Send the settings of the workers: they contain a key, which a command line would expose."""
        host = self.host
        own = {
            "names": host.worker_names,
            "threads": host.threads,
            "memory": host.memory,
            "folder": host.folder,
        }
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({**settings, **own}).encode() + b"\n")
            self._process.stdin.flush()

    def require_running(self, scheduler: str) -> None:
        """Raise an error if the workers there cannot start, or the connection has ended."""
        with suppress(queue.Empty):
            found = self._answers.get_nowait()
            if found is None:
                raise self._failure()
            if found["problem"] == "unreachable":
                raise self.error(
                    f"workers there cannot reach this machine at {scheduler}: {found['text']}",
                    "set `listen` and `listen_port` to an address and port that they can reach",
                )
            raise self.error(f"workers have no folder there: {found['text']}", "set `folder`")

    def pass_output(self) -> None:
        """From now on, show what workers print on stderr."""
        self._passing = True

    def close(self) -> None:
        """End the connection, and with it the workers there."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(_GRACE)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def error(self, problem: str, hint: str) -> WorkerStartFailed:
        return WorkerStartFailed(problem, where=f"host {self.host.name!r} ({self.host.address})", hint=hint)

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        try:
            return self._answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise self.error(
                "headrace did not start there in time", f"`{shlex.join(command_line(self.host))}`"
            ) from None

    def _read_answers(self, stream: IO[bytes]) -> None:
        for line in stream:
            if line.startswith(MARK.encode()):
                self._answers.put(json.loads(line[len(MARK) :]))
        self._answers.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        for line in stream:
            text = line.decode("utf-8", "replace").rstrip()
            self._last_lines.append(text)
            if self._passing:
                print(text, file=sys.stderr)

    def _failure(self) -> WorkerStartFailed:
        """Why ssh, or headrace there, has ended."""
        status = self._process.wait()
        self._readers[1].join(_GRACE)
        return self.error(*explain(status, list(self._last_lines), self.host))


def command_line(host: SshHost) -> list[str]:
    """How ssh is called; it never asks for a password or whether to trust a host.

    >>> command_line(SshHost("a", "me@a.example.org", port=2222))[-5:]
    ['-p', '2222', '--', 'me@a.example.org', 'exec python3 -m headrace.runtime.ssh_worker']
    """
    found = ["ssh", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"]
    # A connection that is silently cut is noticed after 45 s.
    found += ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]
    for flag, value in (("-F", host.config), ("-i", host.identity), ("-p", host.port)):
        found += [flag, str(value)] if value is not None else []
    return [*found, "--", host.address, f"exec {shlex.quote(host.python)} -m headrace.runtime.ssh_worker"]


def explain(status: int, lines: list[str], host: SshHost) -> tuple[str, str]:
    """What an exit status of ssh with these last lines means, and what to try.

    >>> explain(255, ["me@a: Permission denied (publickey)."], SshHost("a", "me@a"))[0]
    'ssh is not allowed to log in: me@a: Permission denied (publickey).'
    >>> explain(127, [], SshHost("a", "a"))
    ("there is no 'python3' there", 'set `python` to the Python there that has headrace')
    """
    text = next((line for line in reversed(lines) if line.strip()), f"exit status {status}")
    everything = "\n".join(lines)
    if status == _FAILED:
        if "Permission denied" in everything:
            return f"ssh is not allowed to log in: {text}", (
                f"set `identity` to a key that is accepted there, or load it with ssh-add; `ssh {host.address}` must "
                "work without a password"
            )
        if "Host key verification failed" in everything:
            return "ssh does not know the key of this host, or it has changed", (
                f"run `ssh {host.address}` once and compare the key"
            )
        return f"ssh cannot connect: {text}", "check `address` and `port`, and that an ssh server runs there"
    if status == _NOT_FOUND:
        return f"there is no {host.python!r} there", "set `python` to the Python there that has headrace"
    if "No module named 'headrace" in everything:
        return f"headrace is not installed there for {host.python}", (
            "install the same version there, or set `python` to the Python that has it"
        )
    return f"headrace does not start there: {text}", f"`{shlex.join(command_line(host))}`"
