"""The memory of a copy stays flat, however much flows through it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress
from headrace.runtime.streams.supervisor import Supervisor

from .made import flood
from .test_faults import children_of

BUFFERS = 30_000


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_memory_is_flat_over_many_buffers():
    with LocalHosts(["a"]) as hosts:
        app = flood(BUFFERS)
        seen: dict[int, list[int]] = {}

        def observe(progress: Progress) -> None:
            if len(progress.copies) == 3 and progress.copies[2]["buffers_in"] > BUFFERS // 10:
                for pid in children_of(hosts.pids["a"]):
                    seen.setdefault(pid, []).append(resident(pid))

        plan = even_plan(app, {}, hosts.names)
        run = Supervisor(app, plan, hosts, StreamOptions(), commit=lambda unit: None, observe=observe)
        progress = run.run()
        assert progress.copies[2]["buffers_in"] == BUFFERS
        assert len(seen) == 3
        for sizes in seen.values():
            assert max(sizes) - sizes[0] < 8_000_000
        for _ in range(100):
            if not children_of(hosts.pids["a"]):
                break
            time.sleep(0.05)
        assert children_of(hosts.pids["a"]) == []


def resident(pid: int) -> int:
    """Bytes of memory that a process has; 0 if it has just ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
