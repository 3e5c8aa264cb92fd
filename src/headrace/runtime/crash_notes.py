"""What a local worker was doing when it died: tasks that kill their worker are named, and not tried for ever.

Each worker process keeps a small file with a slot per thread that holds the digest of the key it executes. When the
process ends, its supervisor reads the slots and appends a line to a file for each such key. A worker that is about to
execute a key reads that file, if any worker has died yet. All of this is on one machine, in a folder that only this
user can read. The files are mapped into memory: what is written there survives the process, and a task costs no system
call, at which it might lose the interpreter to another thread.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from headrace.model.errors import PoisonTask

_SLOT = 33
_DIGITS = 32
_BLANK = b"\0" * _SLOT
_SLOTS = 1024
"""Threads of a worker beyond these share slots, and may hide each other."""
_ANY_DEATH = "deaths"
"""A file of one byte: whether any worker has died."""
_OWN_DEATHS = 2
"""How many workers a task may kill by itself: by a crash, an exit, or memory."""
_KILLED = 10
"""How often its worker may be killed from outside, which need not be the task's fault."""
_SETTLING = 0.3
"""Seconds until the death of a worker is surely noted."""
_SHOWN = 2000
_RESTARTING = 75
"""Exit status of a worker that ends because a function of it cannot be ended otherwise."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a worker ended that executed a task."""

    host: str
    status: int
    """As `subprocess.Popen.returncode`: negative for a signal."""
    out_of_memory: bool = False
    trace: str = ""
    """The Python frames of the thread that crashed."""

    @property
    def own_doing(self) -> bool:
        return self.out_of_memory or self.status not in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)

    def __str__(self) -> str:
        if self.out_of_memory:
            return f"{self.host} (out of memory)"
        if self.status >= 0:
            return f"{self.host} (exit status {self.status})"
        with suppress(ValueError):
            return f"{self.host} ({signal.Signals(-self.status).name})"
        return f"{self.host} (signal {-self.status})"


class CrashNotes:
    """The notes of this worker process.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     notes = CrashNotes(Path(folder), "w0")
    ...     notes.begin("t1", "t1")
    ...     note_death(Path(folder), notes.file_name, Death("w0", -11))
    ...     notes.begin("t2", "t2")
    ...     notes.end()
    ...     [str(death) for death in notes.deaths("t1")], notes.deaths("t2")
    (['w0 (SIGSEGV)'], [])
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.file_name = f"{digest_of(name)}.{os.getpid()}"
        self._slots = _mapped(folder / self.file_name, _SLOTS * _SLOT)
        self._any_death = _mapped(folder / _ANY_DEATH, 1)
        self._folder = folder
        self._slot = threading.local()
        self._taken = 0
        self._lock = threading.Lock()

    def trace_crashes(self) -> None:
        """Have the Python frames written to a file when this process crashes."""
        path = self._folder / f"{self.file_name}.trace"
        self._trace = path.open("wb")
        faulthandler.enable(self._trace, all_threads=False)

    def begin(self, key: str, task: str) -> None:
        """Note that this thread executes a key; raises if its task has killed too many workers."""
        digest = digest_of(key)
        if self._any_death[0] and (self._folder / f"died-{digest}").exists():
            self._refuse_poison(key, task)
        number = getattr(self._slot, "number", None)
        if number is None:
            with self._lock:
                number = self._slot.number = self._taken % _SLOTS
                self._taken += 1
        self._slots[number * _SLOT : (number + 1) * _SLOT] = f"{digest}\n".encode()

    def end(self) -> None:
        """Note that this thread is done with it."""
        number = self._slot.number
        self._slots[number * _SLOT : (number + 1) * _SLOT] = _BLANK

    def deaths(self, key: str) -> list[Death]:
        """The workers that died while they executed this key."""
        try:
            lines = (self._folder / f"died-{digest_of(key)}").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [Death(**json.loads(line)) for line in lines]

    def _refuse_poison(self, key: str, task: str) -> None:
        time.sleep(_SETTLING)  # another worker may have died just now
        deaths = self.deaths(key)
        own = [death for death in deaths if death.own_doing]
        if len(own) < _OWN_DEATHS and len(deaths) < _KILLED:
            return
        hint = "run the function by itself, in a separate process"
        if any(death.out_of_memory for death in deaths):
            hint = "use less memory, or fewer workers"
        trace = next((death.trace for death in reversed(deaths) if death.trace), "")
        raise PoisonTask(
            f"it killed {len(deaths)} workers: {', '.join(map(str, deaths))}"
            + (f"\n{trace}" if trace else ""),
            where=f"task {task!r}",
            hint=hint,
        )


def note_death(folder: Path, file_name: str, death: Death) -> None:
    """By the supervisor, when a worker has ended: note it for every key that it executed."""
    if death.status == _RESTARTING:
        return
    with suppress(FileNotFoundError):
        slots = (folder / file_name).read_bytes()
        for at in range(0, len(slots), _SLOT):
            digest = slots[at : at + _DIGITS].decode("ascii", "replace")
            if len(digest) == _DIGITS and digest.isalnum():
                with (folder / f"died-{digest}").open("a") as file:
                    file.write(json.dumps(asdict(death)) + "\n")
                _mapped(folder / _ANY_DEATH, 1)[0] = 1


def _mapped(path: Path, size: int) -> mmap.mmap:
    """A file of this size, made if need be, as shared memory."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(file, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)


def read_trace(folder: Path, file_name: str) -> str:
    """The user's frames that a crashed process wrote, if it did."""
    try:
        text = (folder / f"{file_name}.trace").read_text("utf-8", "replace")
    except OSError:
        return ""
    return text.partition(f'  File "{Path(__file__).parent}')[0].strip()[:_SHOWN]


def digest_of(key: str) -> str:
    """
    >>> len(digest_of("any"))
    32
    """
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def out_of_memory_kills() -> int:
    """How often the kernel has ended processes for want of memory; 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


NOTES: CrashNotes | None = None
"""The notes of this process; None unless it is a local worker."""


def keep_notes(folder: Path, name: str) -> None:
    """In a local worker, before its first task."""
    global NOTES
    NOTES = CrashNotes(folder, name)
    NOTES.trace_crashes()


def restart_worker() -> None:
    """End this local worker, to be started again: the only way to end a function that does not return."""
    os._exit(_RESTARTING)
