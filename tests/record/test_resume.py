"""Resume after kill -9: nothing committed is executed again, and the values are right."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import pytest

from .crashing import TASKS, Place


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two workers that outlives its clients."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


def crash_and_resume(place: Place, address: str, write: int, when: str) -> bool:
    """One crash and one resume; whether the write was reached."""
    process = place.client(address, "run", str(write), when)
    _, err = process.communicate(timeout=120)
    if process.returncode == 0:
        return False
    assert process.returncode == -signal.SIGKILL, err
    before, committed = place.settled(), place.committed()
    if not before and not committed and not list(place.home.glob("results/*")):
        return True  # the run itself was not recorded yet
    resumed = place.client(address, "resume")
    _, err = resumed.communicate(timeout=120)
    if resumed.returncode != 0:
        assert "there are no runs" in err, err
        assert before == []
        return True
    place.require_resumed(before, committed)
    return True


@pytest.mark.parametrize(("write", "when"), [(2, "after"), (4, "before")])
def test_a_crash_at_a_write_of_the_journal(address, tmp_path, write, when):
    assert crash_and_resume(Place.make(tmp_path), address, write, when)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_every_write_of_the_journal(address, tmp_path, when):
    write = 1
    while crash_and_resume(Place.make(tmp_path / f"{write}"), address, write, when):
        write += 1
    assert write > 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_several_crashes_one_after_another(address, tmp_path, seed):
    chance = random.Random(seed)
    place = Place.make(tmp_path)
    place.client(address, "run", "3", "after").communicate(timeout=120)
    executed, committed = place.settled(), place.committed()
    for _ in range(4):
        process = place.client(
            address, "resume", str(chance.randrange(2, 5)), chance.choice(["before", "after"])
        )
        process.communicate(timeout=120)
        again = place.settled()[len(executed) :]
        assert set(again) & committed == set()
        assert place.committed() >= committed
        executed, committed = place.settled(), place.committed()
    process = place.client(address, "resume")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    place.require_resumed(executed, committed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_kills_at_random_times(address, tmp_path, seed):
    """The client is killed when so many tasks were started; half of the time damage is done to its files too."""
    chance = random.Random(seed)
    place = Place.make(tmp_path)
    process = place.client(address, "run")
    wanted = chance.randrange(1, TASKS)
    while len(place.executed()) < wanted and process.poll() is None:
        chance.random()
    process.kill()
    process.communicate(timeout=120)
    before, committed = place.settled(), place.committed()
    damaged = damage(place, chance) if seed % 2 else set()
    resumed = place.client(address, "resume")
    _, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    place.require_resumed(before, committed - damaged)


def damage(place: Place, chance: random.Random) -> set[str]:
    """Flip a bit in each of some kept files; the tasks that made them, and that must therefore run again."""
    from headrace.record import Record

    with Record.open(place.home) as record:
        files = [kept for kept in record.kept("last") if kept.file]
        folder = record.kept_folder(record.last().id).folder
    hit = chance.sample(files, len(files) // 2)
    for kept in hit:
        path = folder / kept.file
        data = bytearray(path.read_bytes())
        bit = chance.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    # A damaged value that nobody needs any more is not made again.
    return {f"t{kept.item[1:]}" for kept in hit}
