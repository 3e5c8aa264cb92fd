"""Programs from Dask collections and back, and runs on a client that exists."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.model.errors import BadProgram, TaskFailed, UsageError
from headrace.runtime.bodies import Job, execute_job
from headrace.runtime.packing import packer


def inc(x: int) -> int:
    return x + 1


def total(*values: int) -> int:
    return sum(values)


def same(x: object) -> object:
    return x


def halves(x: int) -> tuple[int, int]:
    return x // 2, x - x // 2


def test_delayed_becomes_a_program(cluster, tmp_path):
    from dask import delayed

    parts = [delayed(inc)(k) for k in range(4)]
    program = hr.Program.from_dask(delayed(total)(*parts), "sums")
    assert sorted({task.kind for task in program.tasks.values()}) == ["inc", "total"]
    plan = hr.plan(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), scheduler="heft")
    assert plan.bound <= plan.makespan
    assert hr.check(program, hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6), plan) == []
    done = hr.run(program, on=cluster.client, scheduler="heft", record=tmp_path, output=tmp_path)
    assert done.failure is None
    assert list(done.results.values()) == [10]
    assert cluster.client.status == "running"


def test_annotated_resources_become_needs():
    import dask

    with dask.annotate(resources={"GPU": 1, "MEMORY": 2e9}):
        part = dask.delayed(inc)(1)
    program = hr.Program.from_dask(dask.delayed(total)(part, 2))
    by_kind = {task.kind: task for task in program.tasks.values()}
    assert (by_kind["inc"].memory, dict(by_kind["inc"].resources)) == (2e9, {"GPU": 1})
    assert (by_kind["total"].memory, dict(by_kind["total"].resources)) == (0, {})
    hosts = [hr.Host("fast", 9.0), hr.Host("gpu", 1.0, memory="4 GB", resources={"GPU": 1})]
    plan = hr.plan(program, hr.Platform([hr.Site("lab", hosts, bandwidth="1 GB/s")]), "heft")
    assert {task.id.split("-")[0]: task.host for task in plan.tasks()}["inc"] == "gpu"


def test_arrays_and_bags(cluster, tmp_path):
    da, db = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    x = da.arange(100, chunks=10)
    for collection, expected in (
        ((x * x).sum(), 328350),
        (db.from_sequence(range(20), npartitions=4).map(inc).sum(), 210),
    ):
        done = hr.run(
            hr.Program.from_dask(collection), on=cluster, scheduler="dask", record=tmp_path, output=tmp_path
        )
        assert [int(value) for value in done.results.values()] == [expected]


def frame_of_numbers():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    return dd.from_pandas(pd.DataFrame({"a": [k % 3 for k in range(30)], "b": range(30)}), npartitions=3)


def test_shuffles_do_not_leave_the_graph(cluster, tmp_path):
    # With a client, Dask would choose P2P, whose tasks do not work under other keys.
    joined = frame_of_numbers().shuffle("a").map_partitions(len).sum()
    done = hr.run(hr.Program.from_dask(joined), on=cluster.client, record=tmp_path, output=tmp_path)
    assert done.failure is None
    assert [int(value) for value in done.results.values()] == [30]


def test_chosen_p2p_shuffles_are_refused(cluster):
    da = pytest.importorskip("dask.array")
    array = da.ones((8, 8), chunks=(8, 2)).rechunk((2, 8), method="p2p")
    for collection in (array, frame_of_numbers().shuffle("a", shuffle_method="p2p")):
        with pytest.raises(UsageError, match="belongs to a P2P shuffle"):
            hr.Program.from_dask(collection)


def test_futures_and_persisted_data_become_inputs(cluster, tmp_path):
    da = pytest.importorskip("dask.array")
    from dask import delayed

    future = cluster.client.submit(inc, 5)
    with cluster.client.as_current():
        persisted = da.arange(10, chunks=4).persist()
        programs = [
            hr.Program.from_dask(delayed(total)(future, delayed(inc)(1), future)),
            hr.Program.from_dask(persisted.sum()),
        ]
    assert [len(program.inputs()) for program in programs] == [1, 3]
    for program, expected in zip(programs, (14, 45), strict=True):
        done = hr.run(program, on=cluster.client, record=tmp_path, output=tmp_path)
        assert [int(value) for value in done.results.values()] == [expected]


def test_futures_of_another_client(cluster):
    from dask import delayed

    later = delayed(inc)(cluster.client.submit(inc, 5))
    with pytest.raises(UsageError, match="the current client does not hold it"):
        hr.Program.from_dask(later)


def test_a_key_read_twice_under_two_names(cluster, tmp_path):
    from dask import delayed

    one = delayed(inc)(1)
    done = hr.run(
        hr.Program.from_dask(delayed(total)(one, one, 5)), on=cluster, record=tmp_path, output=tmp_path
    )
    assert list(done.results.values()) == [9]


def test_what_is_no_collection():
    with pytest.raises(UsageError, match="the Dask collection is 5, an int"):
        hr.Program.from_dask(5)
    from dask import delayed

    with pytest.raises(UsageError, match=r"give dask.delayed\(\[one, another\]\)"):
        hr.Program.from_dask([delayed(inc)(1)])

    with pytest.raises(UsageError, match="from_dask"):
        hr.plan(delayed(inc)(1), "local")


def test_a_program_as_delayed_objects():
    program = hr.Program("p")
    x = program.input("x", value=7)
    low, high = program.task(halves, inputs=[x], outputs=["low", "high"])
    program.output(program.task(total, inputs=[low, high], outputs=["sum"]))
    program.output(program.task(inc, inputs=[high], outputs=["more"]))
    results = program.to_dask()
    assert {name: one.compute(scheduler="sync") for name, one in results.items()} == {"sum": 7, "more": 5}


@pytest.mark.parametrize("value", [(1, 2, 3), [1], "ab", 5, None])
def test_a_wrong_number_of_outputs_is_told_as_in_a_real_run(value):
    program = hr.Program("p")
    x = program.input("x", value=value)
    program.task(same, inputs=[x], outputs=["a", "b"], name="t")
    with packer() as pack, pytest.raises(TaskFailed) as real:
        execute_job(Job("t", pack(same, "t"), ("x",), ("a", "b")), (value,))
    for result in program.to_dask().values():
        with pytest.raises(TaskFailed) as caught:
            result.compute(scheduler="sync")
        assert str(caught.value) == str(real.value)
        assert "but has 2 outputs" in str(caught.value)


def test_there_and_back(cluster, tmp_path):
    from dask import delayed

    program = hr.Program.from_dask(delayed(total)(delayed(inc)(1), delayed(inc)(2)))
    (again,) = program.to_dask().values()
    assert again.compute(scheduler="sync") == 5


@pytest.mark.parametrize(("body", "says"), [(["echo", "{x}"], "is a command"), (None, "nothing to execute")])
def test_what_cannot_become_a_graph(body, says):
    program = hr.Program("p")
    x = program.input("x", value=1)
    program.task(body, inputs=[x], outputs=["y"], name="t")
    with pytest.raises(BadProgram, match=says):
        program.to_dask()


def test_a_file_cannot_become_a_graph():
    program = hr.Program("p")
    program.output(program.task(inc, inputs=[program.input("x", "x.txt")], outputs=["y"]))
    with pytest.raises(BadProgram, match="is a file"):
        program.to_dask()
