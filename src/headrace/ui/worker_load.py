"""CPU and memory of the worker processes of a run that was started here."""

from __future__ import annotations

from typing import Any

_WORKER = "headrace.runtime.worker_process"


class WorkerLoad:
    """The workers below a process, by the order in which they appeared."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._known: dict[int, Any] = {}
        self._number: dict[int, int] = {}

    def look(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Each worker's share of a core and bytes of memory, with all its own processes; and who came or went.

        The first look at a worker measures no CPU time: it is the beginning of an interval.
        """
        import psutil  # type: ignore[import-untyped]

        try:
            children = psutil.Process(self._process).children(recursive=True)
        except psutil.Error:
            children = []
        now = {child.pid: child for child in children if _is_worker(child)}
        changes = [f"worker {self._number[pid]} left" for pid in self._known if pid not in now]
        for pid in list(self._known):
            if pid not in now:
                del self._known[pid]
        for pid, child in now.items():
            if pid not in self._known:
                self._known[pid] = child
                self._number[pid] = len(self._number) + 1
                changes.append(f"worker {self._number[pid]} joined")
        return [facts for pid in self._known if (facts := self._facts(pid)) is not None], changes

    def _facts(self, pid: int) -> dict[str, Any] | None:
        import psutil

        worker = self._known[pid]
        try:
            inside = worker.children(recursive=True)
            memory = sum(one.memory_info().rss for one in (worker, *inside) if one.is_running())
            return {"worker": self._number[pid], "cpu": worker.cpu_percent(None) / 100, "memory": memory}
        except psutil.Error:
            return None


def _is_worker(process: Any) -> bool:
    import psutil

    try:
        return _WORKER in process.cmdline()
    except psutil.Error:
        return False
