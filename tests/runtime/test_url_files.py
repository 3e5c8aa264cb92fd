"""Inputs from URLs."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest

import headrace as hr
from headrace.model.errors import TaskFailed, UsageError
from headrace.runtime.cluster import Cluster
from headrace.runtime.input_files import require_inputs
from headrace.runtime.url_files import fetch_url, require_known


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    handler = functools.partial(_Quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_run_fetches_its_inputs(cluster: Cluster, server: str, tmp_path: Path) -> None:
    (tmp_path / "www" / "large").write_bytes(bytes(3_000_000))
    (tmp_path / "www" / "small.txt").write_text("small")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("in a folder")
    program = hr.Program("urls")
    large = program.input("large", f"{server}/large")
    small = program.input("small", f"{server}/small.txt")
    tree = program.input("tree", f"file://{tmp_path}/tree/")
    program.output(program.task(lambda path: path.stat().st_size, inputs=[large], outputs=["size"]))
    program.output(program.task(lambda path: (path.name, path.read_text()), inputs=[small], outputs=["text"]))
    program.output(program.task(lambda path: (path / "a").read_text(), inputs=[tree], outputs=["a"]))
    run = hr.run(program, on=cluster, scheduler="heft", record=tmp_path / "record", output=tmp_path)
    assert run.failure is None
    assert run.results == {"size": 3_000_000, "text": ("small.txt", "small"), "a": "in a folder"}


def test_what_is_not_there_fails_its_task(cluster: Cluster, server: str, tmp_path: Path) -> None:
    program = hr.Program("missing")
    program.output(program.task(len, inputs=[program.input("x", f"{server}/x")], outputs=["y"]))
    run = hr.run(program, on=cluster, scheduler="heft", record=tmp_path / "record", output=tmp_path)
    assert "404" in str(run.failure)
    assert "/x" in str(run.failure)


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    """No driver for S3 is installed here."""
    with pytest.raises(UsageError, match="install s3fs"):
        require_known("s3://bucket/x", "input 'x'")
    with pytest.raises(TaskFailed, match="install s3fs on the workers"):
        fetch_url("s3://bucket/x", tmp_path / "x")


def test_unknown_protocols_are_refused_before_anything_starts() -> None:
    program = hr.Program("odd")
    program.output(program.task(len, inputs=[program.input("x", "gopherz://a/x")], outputs=["y"]))
    with pytest.raises(UsageError, match="gopherz:// is unknown"):
        hr.run(program)


def test_results_are_not_written_to_urls() -> None:
    program = hr.Program("to a URL")
    program.output(program.task(len, outputs=["y"]), "https://a.org/y")
    with pytest.raises(UsageError, match="cannot be written"):
        require_inputs(program)


def test_a_folder_of_a_storage_may_not_lead_out(tmp_path: Path) -> None:
    storage = fsspec.filesystem("memory")
    storage.store.clear()
    storage.pipe("/top/a", b"a")
    storage.pipe("/top/../../b", b"b")
    with suppress(TaskFailed):  # the storage may refuse such names itself
        fetch_url("memory://top/", tmp_path / "x" / "y")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "x" / "b").exists()
    with pytest.raises(TaskFailed, match="does not exist"):
        fetch_url("memory://nothing/", tmp_path / "z")
