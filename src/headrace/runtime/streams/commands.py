"""Filters that are commands: buffers on standard input, results on standard output, framed by length or by line.

The command runs once for each unit of work and copy. It reads all its input before the stream ends, or answers as it
goes; a thread takes what it writes.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Literal

from headrace.model.errors import TaskFailed, UsageError
from headrace.runtime.filters import Buffer, Filter, Output, Work

Framing = Literal["length", "lines"]
LENGTH = struct.Struct("!I")
"""Before each buffer, in both directions, with length framing: its size, 4 bytes in network order."""
_MOST_ERROR = 4000
_MOST_WAITING = 16


class CommandFilter(Filter):
    """A filter that runs a command, without a shell. Use it with `functools.partial(CommandFilter, [...])`.

    With `lines`, a buffer is one or more lines and each line that the command prints is sent as one buffer,
    without its line break. The command must exit with status 0.

    >>> CommandFilter(["tr", "a-z", "A-Z"], framing="lines").framing
    'lines'
    """

    def __init__(self, command: Sequence[str], framing: Framing = "length", stream: str = "") -> None:
        if isinstance(command, str) or not command:
            raise UsageError(
                f"the command {command!r}", hint='give a list of words, such as ["tr", "a", "b"]'
            )
        if framing not in ("length", "lines"):
            raise UsageError(f"framing {framing!r}", hint="use length or lines")
        self.command = list(command)
        self.framing: Framing = framing
        self.stream = stream

    def init(self, work: Work) -> None:
        """Start the command in the scratch folder of the unit."""
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=work.folder,
        )
        self._changed = threading.Condition()
        self._input: deque[bytes | None] = deque()
        self._answers: deque[bytes] = deque()
        self._answered = False
        self._errors = b""
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._write_input, self._read_answers, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    def process(self, buffer: Buffer, out: Output) -> None:
        """Give one buffer to the command, and send what it answers until it has taken the buffer."""
        with self._changed:
            self._input.append(self._framed(buffer.data))
            self._changed.notify_all()
        self._send_until(lambda: not self._input or self._answered, out)
        if self._input:
            self._finish()  # its status says why
            raise TaskFailed("it ended before its input did", where=self._where)

    def finalize(self, out: Output) -> None:
        """Close the command's input and send all that it still answers."""
        with self._changed:
            self._input.append(None)
            self._changed.notify_all()
        self._send_until(lambda: self._answered and not self._answers, out)
        self._finish()

    @property
    def _where(self) -> str:
        return f"command {self.command[0]!r}"

    def _framed(self, data: bytes) -> bytes:
        if self.framing == "length":
            return LENGTH.pack(len(data)) + data
        return data if data.endswith(b"\n") else data + b"\n"

    def _send_until(self, done: Callable[[], bool], out: Output) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._answers or done())
                ready, finished = list(self._answers), done() or self._answered
                self._answers.clear()
                self._changed.notify_all()
            for answer in ready:
                out.send(answer, self.stream)
            if finished and not self._answers:
                return

    def _finish(self) -> None:
        with self._changed:
            self._input.append(None)
            self._changed.notify_all()
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        if status:
            said = self._errors.decode(errors="replace").strip()
            raise TaskFailed(f"it exited with {status}: {said[-500:]}", where=self._where)

    def _write_input(self) -> None:
        """A thread: buffers to the command. One stays in the queue until the pipe has taken it."""
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError), pipe:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._input)
                    data = self._input[0]
                if data is None:
                    return
                pipe.write(data)
                pipe.flush()
                with self._changed:
                    self._input.popleft()
                    self._changed.notify_all()

    def _read_answers(self) -> None:
        """A thread: answers of the command; when many wait, the command has to."""
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            for answer in self._frames(pipe):
                with self._changed:
                    self._changed.wait_for(lambda: len(self._answers) < _MOST_WAITING)
                    self._answers.append(answer)
                    self._changed.notify_all()
        with self._changed:
            self._answered = True
            self._changed.notify_all()

    def _frames(self, pipe: IO[bytes]) -> Iterator[bytes]:
        if self.framing == "lines":
            yield from (line.rstrip(b"\r\n") for line in pipe)
            return
        while (head := _exactly(pipe, LENGTH.size)) is not None:
            answer = _exactly(pipe, LENGTH.unpack(head)[0])
            if answer is None:
                return
            yield answer

    def _read_errors(self) -> None:
        pipe = self._process.stderr
        assert pipe is not None
        with pipe:
            for line in pipe:
                self._errors = (self._errors + line)[-_MOST_ERROR:]


def _exactly(pipe: IO[bytes], count: int) -> bytes | None:
    data = pipe.read(count)
    return data if len(data) == count else None
