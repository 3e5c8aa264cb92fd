"""Clusters that somebody else runs: `dask scheduler` and `dask worker` over TLS."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from headrace.model.errors import UsageError
from headrace.model.events import Event, HostJoined, HostLeft, TaskFinished
from headrace.model.program import Program
from headrace.runtime import tls_check
from headrace.runtime.cluster import Cluster, connect
from headrace.testing.conformance import check_backend

from .tasks import RoundRobin, finished, layered, wait_for_file


def write_certificate(folder: Path) -> Path:
    """A key with a certificate that it signed itself: its own authority."""
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "headrace test")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder


def start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *map(str, arguments), "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a scheduler with two workers, a and b, and the folder of its certificate."""
    folder = tmp_path_factory.mktemp("tls")
    ours = write_certificate(folder / "ours")
    files = [
        "--tls-ca-file",
        ours / "cert.pem",
        "--tls-cert",
        ours / "cert.pem",
        "--tls-key",
        ours / "key.pem",
    ]
    contact = folder / "scheduler.json"
    processes = [
        start("dask_scheduler", *files, "--protocol", "tls", "--host", "127.0.0.1", "--port", 0,
              "--scheduler-file", contact)
    ]  # fmt: skip
    try:
        processes += [
            start("dask_worker", *files, "--scheduler-file", contact, "--name", name, "--nthreads", 1,
                  "--host", "127.0.0.1", "--local-directory", folder / name)
            for name in ("a", "b")
        ]  # fmt: skip
        yield scheduler_address(contact), ours
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def scheduler_address(contact: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if contact.exists() and contact.read_text():
            return str(json.loads(contact.read_text())["address"])
        time.sleep(0.05)
    raise AssertionError("no scheduler")


def join(tls: tuple[str, Path]) -> Cluster:
    """Connect, and wait until both workers are there."""
    address, ours = tls
    end = time.monotonic() + 60
    while True:
        # Refused while there is no worker at all.
        with contextlib.suppress(UsageError):
            cluster = connect(address, ca=ours / "cert.pem", cert=ours / "cert.pem", key=ours / "key.pem")
            if len(cluster.platform.hosts) == 2:
                return cluster
            cluster.close()
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
def test_a_dask_cluster_conforms(tls: tuple[str, Path]) -> None:
    with join(tls) as cluster:
        check_backend(cluster, seeds=(3, 4))


def test_tls_cluster_runs_a_program_and_takes_back_a_lost_worker(
    tls: tuple[str, Path], tmp_path: Path
) -> None:
    with join(tls) as cluster:
        assert [h.name for h in cluster.platform.hosts] == ["a", "b"]
        assert min(h.speed for h in cluster.platform.hosts) == 1.0
        program, answer = layered(4, 4, 0.0)
        outcome = cluster.execute(program, RoundRobin(), timeout=60)
        assert outcome.results == {"answer": answer}
        assert {e.host for e in finished(outcome.events)} == {"a", "b"}
        workers = cluster.client.scheduler_info(n_workers=-1)["workers"]
        address = next(address for address, worker in workers.items() if worker["name"] == "a")
        pid = cluster.client.run(os.getpid, workers=[address])[address]
        lose_one_and_go_on(cluster, pid, tmp_path / "joined")


def lose_one_and_go_on(cluster: Cluster, pid: int, note: Path) -> None:
    """Worker a dies while it runs; its nanny starts it again; only then may the last tasks end."""
    program = Program("waits")
    for i in range(4):
        program.task(
            wait_for_file, inputs=[program.input(f"p{i}", value=str(note))], outputs=[f"w{i}"], name=f"t{i}"
        )
    program.task(sum_all, inputs=[f"w{i}" for i in range(4)], outputs=["n"], name="sum")
    heard: list[Event] = []

    def observe(event: Event) -> None:
        heard.append(event)
        if len(heard) == 1:
            os.kill(pid, signal.SIGKILL)
        if isinstance(event, HostJoined):
            note.touch()

    outcome = cluster.execute(program, RoundRobin(), observe, timeout=90)
    assert outcome.results == {"n": 4}
    kinds = [type(e) for e in heard if isinstance(e, HostLeft | HostJoined | TaskFinished)]
    assert kinds[:2] == [HostLeft, HostJoined]


def sum_all(*values: int) -> int:
    return sum(values)


def test_foreign_certificates_are_refused(tls: tuple[str, Path], tmp_path: Path) -> None:
    address, _ = tls
    foreign = write_certificate(tmp_path / "foreign")
    with pytest.raises(UsageError, match="cannot connect"):
        connect(
            address, ca=foreign / "cert.pem", cert=foreign / "cert.pem", key=foreign / "key.pem", timeout=3
        )


def test_plain_tcp_does_not_reach_a_tls_scheduler(tls: tuple[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"uses TLS, and the address says tcp.*use tls://127.0.0.1"):
        connect(tls[0].replace("tls://", "tcp://"), timeout=3)


def test_tls_does_not_reach_a_plain_scheduler(tmp_path: Path) -> None:
    contact, ours = tmp_path / "scheduler.json", write_certificate(tmp_path / "ours")
    process = start("dask_scheduler", "--host", "127.0.0.1", "--port", 0, "--scheduler-file", contact)
    try:
        address = scheduler_address(contact).replace("tcp://", "tls://")
        with pytest.raises(UsageError, match="does not use TLS, and the address says tls"):
            connect(address, ca=ours / "cert.pem", cert=ours / "cert.pem", key=ours / "key.pem", timeout=3)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_of_a_silent_server_nothing_is_said_about_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_check, "_PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert tls_check.speaks_tls("127.0.0.1", silent.getsockname()[1]) is None
        assert tls_check.mismatch(f"tls://127.0.0.1:{silent.getsockname()[1]}") is None


@pytest.mark.parametrize(
    "url", ["tcp://10.1.2.3:8786", "tcp://example.org:8786", "tcp://127.0.0.1.evil.org:1"]
)
def test_plain_tcp_is_for_this_machine_only(url: str) -> None:
    with pytest.raises(UsageError, match=r"unencrypted.*use tls://"):
        connect(url)


@pytest.mark.parametrize(
    "url", ["", "10.1.2.3:8786", "tls://host", "http://host:1", "tcp://[::1", "tls://h:99999"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a cluster"):
        connect(url)


def test_tls_needs_certificates(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs certificates"):
        connect("tls://127.0.0.1:1")
    with pytest.raises(UsageError, match=r"there is no file .*none.pem"):
        connect("tls://127.0.0.1:1", ca=tmp_path / "none.pem")
