"""Values between tasks: read-only, never corrupted by a reader, and errors instead of hangs."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import BadProgram, TaskFailed
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster
from headrace.runtime.sealing import READ_ONLY_HINT, Sealed, safe_text, seal, unseal

from .tasks import OneHost, RoundRobin

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def moved(value: Any) -> Any:
    """A value after a transfer to another process, with large buffers apart."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(b.raw()) for b in buffers])


@given(VALUES)
def test_values_come_out_as_they_went_in(value: Any) -> None:
    sealed = seal(value, "t", "x")
    for reading in (
        sealed,
        moved(sealed),
        moved(moved(sealed)),
        pickle.loads(pickle.dumps(sealed, protocol=4)),
    ):
        assert unseal(reading) == value
        assert type(unseal(reading)) is type(value)


@given(st.lists(st.integers(), max_size=5))
def test_readers_do_not_see_each_other(value: list[int]) -> None:
    sealed = seal({"list": list(value)}, "t", "x")
    for reading in (sealed, moved(sealed)):
        unseal(reading)["list"].append(-1)
        assert unseal(reading) == {"list": value}


def test_arrays_are_read_only_and_not_copied() -> None:
    array = np.zeros(1000)
    for value in (seal(array, "t", "x"), unseal(array), unseal(moved(seal(array, "t", "x")))):
        with pytest.raises(ValueError, match="read-only"):
            value += 1
    assert np.shares_memory(unseal(seal(array, "t", "x")), array)
    assert array.flags.writeable  # the task's own


def test_arrays_inside_other_values_are_shared_and_read_only() -> None:
    array = np.arange(1000.0)
    sealed = seal({"a": array, "n": [1]}, "t", "x")
    first, second = unseal(sealed), unseal(sealed)
    assert np.shares_memory(first["a"], array)
    assert np.shares_memory(first["a"], second["a"])
    far = unseal(moved(sealed))
    for value in (first, second, far):
        with pytest.raises(ValueError, match="read-only"):
            value["a"][0] = 1


@pytest.mark.parametrize("value", [bytearray(b"abc"), memoryview(bytearray(b"abc"))])
def test_bytes_are_read_only(value: Any) -> None:
    seen = unseal(seal(value, "t", "x"))
    assert bytes(seen) == b"abc"
    with pytest.raises(TypeError):
        seen[0] = 1


def test_an_array_of_objects_is_a_value_like_others() -> None:
    value = np.array([[1], [2, 3]], dtype=object)
    sealed = seal(value, "t", "x")
    unseal(sealed)[0].append(9)
    assert unseal(sealed)[0] == [1]


def test_what_cannot_be_pickled_stays_where_it_is() -> None:
    lock = threading.Lock()
    sealed = seal(lock, "maker", "lock")
    assert unseal(sealed) is lock
    with pytest.raises(
        TaskFailed, match=r"item 'lock' of task 'maker', a lock, cannot be sent.*cannot pickle"
    ):
        unseal(moved(sealed))


class NoWayBack:
    def __reduce__(self) -> tuple[Any, ...]:
        return _broken, ()


def _broken() -> None:
    raise RuntimeError("broken \ud800")


class NoText(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_what_cannot_be_unpickled_is_named() -> None:
    with pytest.raises(
        TaskFailed, match=r"item 'x' of task 't' cannot be unpickled: RuntimeError: broken \\ud800"
    ):
        unseal(moved(seal(NoWayBack(), "t", "x")))


@given(st.text(st.characters()))
def test_safe_text_can_be_encoded(text: str) -> None:
    safe_text(text).encode()  # does not raise
    assert safe_text("plain \u00e9") == "plain \u00e9"


def make_lock() -> Any:
    return threading.Lock()


def kind_of(value: Any) -> str:
    return type(value).__name__


def make_no_way_back() -> NoWayBack:
    return NoWayBack()


def add_one(array: Any) -> float:
    array += 1
    return float(array[0])


def zeros() -> Any:
    return np.zeros(1000)


def append(values: list[int]) -> int:
    values.append(1)
    return len(values)


def fail_oddly() -> None:
    raise NoText


def fail_brokenly() -> None:
    raise ValueError("broken \ud800")


def fail_basely() -> None:
    raise KeyboardInterrupt


def broken_text() -> str:
    return "broken \ud800"


@pytest.mark.parametrize("scheduler", [RoundRobin(), None], ids=["planned", "engine"])
@pytest.mark.parametrize("make", [make_lock, make_no_way_back])
def test_what_cannot_move_is_an_error(cluster: Cluster, scheduler: RoundRobin | None, make: Any) -> None:
    program = Program("stuck")
    value = program.task(make, outputs=["value"], name="maker")
    for i in range(3):
        program.task(kind_of, inputs=[value], outputs=[f"kind{i}"], name=f"read{i}")
    program.output("value")
    outcome = cluster.execute(program, scheduler, timeout=60)
    assert outcome.errors
    assert "item 'value' of task 'maker'" in outcome.errors[0].error
    assert "value" not in outcome.results


def test_a_result_that_cannot_be_fetched_is_named_and_others_are_kept(cluster: Cluster) -> None:
    program = Program("results")
    program.task(make_lock, outputs=["lock"], name="maker")
    program.task(zeros, outputs=["zeros"], name="other")
    outcome = cluster.execute(program, RoundRobin(), timeout=60)
    assert list(outcome.results) == ["zeros"]
    assert [(e.task, "cannot be sent" in e.error) for e in outcome.errors] == [("maker", True)]
    assert outcome.failure is not None
    assert outcome.failure.exit_code == 1


def test_a_task_that_changes_its_input_is_told_to_copy_it(cluster: Cluster) -> None:
    program = Program("in-place")
    array = program.task(zeros, outputs=["array"], name="zeros")
    program.task(add_one, inputs=[array], outputs=["one"], name="add")
    (error,) = cluster.execute(program, OneHost("w0", {}), timeout=60).errors
    assert READ_ONLY_HINT in error.error


@pytest.mark.parametrize("inline", [True, False])
def test_readers_in_one_process_do_not_corrupt_each_other(cluster: Cluster, inline: bool) -> None:
    program = Program("lists")
    values = program.input("values", value=[0] * (2 if inline else 5000))
    for i in range(3):
        program.task(append, inputs=[values], outputs=[f"n{i}"], name=f"append{i}")
    results = cluster.execute(program, OneHost("w0", {}), timeout=60).results
    assert set(results.values()) == {3 if inline else 5001}


@pytest.mark.parametrize(
    ("fail", "told"),
    [
        (fail_oddly, "NoText"),
        (fail_brokenly, "ValueError: broken \\ud800"),
        (fail_basely, "KeyboardInterrupt"),
    ],
)
def test_odd_errors_end_the_run(cluster: Cluster, fail: Any, told: str) -> None:
    program = Program("odd")
    program.task(fail, outputs=["x"], name="odd")
    (error,) = cluster.execute(program, RoundRobin(), timeout=60).errors
    assert told in error.error


def test_broken_text_moves_and_arrives(cluster: Cluster) -> None:
    program = Program("text")
    text = program.task(broken_text, outputs=["text"], name="text")
    for i in range(3):
        program.task(kind_of, inputs=[text], outputs=[f"kind{i}"], name=f"read{i}")
    program.output(text)
    assert cluster.execute(program, RoundRobin(), timeout=60).results == {"text": "broken \ud800"}


@pytest.mark.parametrize("where", ["task", "item", "kind"])
def test_broken_names_are_refused(cluster: Cluster, where: str) -> None:
    program = Program("names")
    names = {"task": "t", "item": "x", "kind": "k"} | {where: "broken \ud800"}
    program.task(zeros, outputs=[names["item"]], name=names["task"], kind=names["kind"])
    with pytest.raises(BadProgram, match="is not valid Unicode"):
        cluster.execute(program, RoundRobin(), timeout=60)


def test_sealed_values_have_the_size_of_their_values() -> None:
    assert isinstance(seal([1], "t", "x", 10**6), Sealed)
    assert seal([1], "t", "x", 10**6).__sizeof__() >= 10**6
