"""The same seed gives the same log, byte for byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.testing.fault_runs import fault_case, run_case
from headrace.testing.faults import PROFILES

_DIGEST = "from simulator.events.test_same import digest; print(digest())"


def digest() -> str:
    """Of the logs of runs under all profiles and schedulers."""
    total = hashlib.sha256()
    for seed in range(100, 112):
        for profile in PROFILES:
            case = fault_case(seed, profile)
            if not case.tight:
                total.update("\n".join(run_case(case).log_lines()).encode())
    return total.hexdigest()


@pytest.mark.slow
def test_five_hash_seeds_give_one_log() -> None:
    def other_process(hash_seed: int) -> str:
        environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", _DIGEST]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=280, check=True
        ).stdout.strip()

    here = digest()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(other_process, [0, 1, 2, 42, 12345])) == [here] * 5


def test_another_seed_gives_another_log() -> None:
    first = run_case(fault_case(100, "crash", ["wild"])).log_lines()
    assert first == run_case(fault_case(100, "crash", ["wild"])).log_lines()
    assert first != run_case(fault_case(101, "crash", ["wild"])).log_lines()
