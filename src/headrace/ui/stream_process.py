"""Processes of `headrace stream`: started, followed line by line, stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.model.errors import UsageError
from headrace.ui.feed import Feed

MOST_STREAMS = 2
_KEPT = 8
_TOLD = 2_000
"""Characters of what a failed command said that are passed on."""


@dataclass
class Stream:
    """A run of a pipeline."""

    process: subprocess.Popen[str]
    app: str
    status: str = "running"
    live: dict[str, Any] | None = None
    """The latest rates."""
    outcome: dict[str, Any] | None = None
    said: str = ""
    temporary: Any = field(default=None, repr=False)
    """A folder that lasts as long as the run."""

    def facts(self) -> dict[str, Any]:
        return {
            "process": self.process.pid,
            "app": self.app,
            "status": self.status,
            "live": self.live,
            "outcome": self.outcome,
            "said": self.said,
        }


class StreamLauncher:
    """Starts streams in processes of their own, and tells the feed about them."""

    def __init__(self, root: Path, feed: Feed) -> None:
        self._root, self._feed = root, feed
        self._streams: dict[int, Stream] = {}

    def start(self, app: str, make: Callable[[Path], list[str]]) -> dict[str, Any]:
        """Start a command that prints lines as `headrace stream --live` does; `make` is given a temporary folder."""
        if sum(one.status == "running" for one in self._streams.values()) >= MOST_STREAMS:
            raise UsageError(f"{MOST_STREAMS} pipelines run already", hint="stop one of them")
        temporary = tempfile.TemporaryDirectory(prefix="headrace-stream-")
        try:
            command = make(Path(temporary.name))
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
            process = subprocess.Popen(
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        except BaseException:
            temporary.cleanup()
            raise
        stream = Stream(process, app, temporary=temporary)
        for old in [pid for pid, one in self._streams.items() if one.status != "running"][:-_KEPT]:
            del self._streams[old]
        self._streams[process.pid] = stream
        threading.Thread(target=self._follow, args=(stream, said), daemon=True).start()
        return stream.facts() | {"command": command[3:]}

    def all(self) -> list[dict[str, Any]]:
        """What runs and what ran, the latest first; only that one with its rates."""
        found = [one.facts() for one in list(self._streams.values())[::-1]]
        return found[:1] + [facts | {"live": None, "outcome": None} for facts in found[1:]]

    def stop(self, process: int) -> dict[str, Any]:
        """Ask a run that was started here to end, as Ctrl-C does."""
        stream = self._streams.get(process)
        if stream is None:
            raise UsageError(f"no pipeline was started here as process {process}", hint="see /api/streams")
        if stream.process.poll() is None:
            stream.process.send_signal(signal.SIGINT)
        return stream.facts()

    def _follow(self, stream: Stream, said: Any) -> None:
        assert stream.process.stdout is not None
        with stream.process.stdout as lines:
            for line in lines:
                self._read(stream, line)
        code = stream.process.wait()
        with said:
            said.seek(0)
            text = said.read().decode(errors="replace")[-_TOLD:]
        stream.temporary.cleanup()
        stream.said = text if code else ""
        stream.status = {0: "done", 130: "stopped"}.get(code, "failed")
        self._feed.publish("stream", {"process": stream.process.pid, "status": stream.status})

    def _read(self, stream: Stream, line: str) -> None:
        try:
            values = json.loads(line)
        except ValueError:
            return  # something that the user's filters printed
        if not isinstance(values, dict):
            return
        if isinstance(values.get("live"), dict):
            stream.live = values["live"]
            # Events are kept for pages that were away, and rates can be long: pages ask for the latest.
            self._feed.publish("stream", {"process": stream.process.pid, "status": "running"})
        elif "copies" in values:
            stream.outcome = values
