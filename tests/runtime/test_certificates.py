"""Local clusters with TLS are closed to others, and certificates for clusters of one's own."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headrace.model.errors import UsageError
from headrace.runtime.certificates import Authority, local_material, write_certificates
from headrace.runtime.cluster import Cluster, open_local

NOBODY = 65534

STRANGER = """
import asyncio, os, sys, warnings
from pathlib import Path
from distributed import Security
from distributed.comm import connect

async def try_to_connect(address, **arguments):
    try:
        comm = await asyncio.wait_for(connect(address, timeout="2s", **arguments), 5)
        await asyncio.wait_for(comm.write({"op": "identity", "reply": True}), 5)
        return repr(await asyncio.wait_for(comm.read(), 5))
    except BaseException as error:
        return "refused"

async def main(addresses, files):
    os.setgid(%(nobody)d); os.setuid(%(nobody)d)
    foreign = Security.temporary().get_connection_args("client")
    for address in addresses:
        print(await try_to_connect(address.replace("tls://", "tcp://")))
        print(await try_to_connect(address, **foreign))
    for file in files:
        try:
            print("read", len(Path(file).read_bytes()))
        except OSError:
            print("refused")

split = sys.argv.index("--")
asyncio.run(main(sys.argv[1:split], sys.argv[split + 1:]))
"""


@pytest.fixture(scope="module")
def tls_cluster() -> Iterator[Cluster]:
    """What local clusters are where there are no Unix sockets."""
    with open_local(1, transport="tls") as opened:
        yield opened


def addresses(cluster: Cluster) -> list[str]:
    """The addresses of the scheduler and of all workers."""
    info = cluster.client.scheduler_info(n_workers=-1)
    return [info["address"], *info["workers"]]


def secret_of(cluster: Cluster) -> str:
    """The key of the cluster, as PEM text."""
    return str(cluster.client.security.tls_worker_key)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_cannot_connect_or_read(tls_cluster: Cluster) -> None:
    folder = tls_cluster._workers.folder  # type: ignore[union-attr]
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    assert files
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            STRANGER % {"nobody": NOBODY},
            *addresses(tls_cluster),
            "--",
            *files,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == 2 * 2 + len(files)
    assert set(answers) == {"refused"}


def test_without_the_certificate_nobody_connects(tls_cluster: Cluster) -> None:
    """Also not this user: neither unencrypted, nor without or with another certificate."""
    other = Authority("other").issue("client")
    for address in addresses(tls_cluster):
        parts = urlsplit(address)
        assert (parts.scheme, parts.hostname) == ("tls", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        assert not answers(parts.port, context)
        load(context, other.certificate + other.key)
        assert not answers(parts.port, context)
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        own.check_hostname, own.verify_mode = False, ssl.CERT_NONE
        load(own, tls_cluster.client.security.tls_client_cert + secret_of(tls_cluster))
        assert answers(parts.port, own)


def load(context: ssl.SSLContext, pem: str) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


def answers(port: int | None, context: ssl.SSLContext) -> bool:
    """Whether the server sends its first message, which it does after the handshake."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
            context.wrap_socket(plain) as stream,
        ):
            return len(stream.recv(1)) == 1
    except (ssl.SSLError, ConnectionError):
        return False


def test_the_key_is_nowhere_to_be_seen(tls_cluster: Cluster) -> None:
    key = secret_of(tls_cluster).splitlines()[1].encode()
    for pid in tls_cluster.pids.values():
        assert key not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert key not in Path(f"/proc/{pid}/environ").read_bytes()
    folder = tls_cluster._workers.folder  # type: ignore[union-attr]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not any(key in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_two_clusters_have_different_keys() -> None:
    first, second = local_material(), local_material()
    assert first["tls_client_key"] != second["tls_client_key"]
    assert first["tls_ca_file"] != second["tls_ca_file"]


def test_files_are_private_and_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "tls"
    files = write_certificates(folder, days=30, name="lab")
    assert {file.name for file in files} == {
        f"{role}{key}.pem" for role in ("ca", "scheduler", "worker", "client") for key in ("", "-key")
    }
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    before = {file: file.read_bytes() for file in files}
    with pytest.raises(UsageError, match="exists"):
        write_certificates(folder)
    assert {file: file.read_bytes() for file in files} == before


@pytest.mark.parametrize(("days", "name"), [(0, "lab"), (10**6, "lab"), (1, "x" * 100)])
def test_bad_wishes(tmp_path: Path, days: int, name: str) -> None:
    with pytest.raises(UsageError):
        write_certificates(tmp_path / "tls", days=days, name=name)
    assert not (tmp_path / "tls").exists()


def test_a_client_certificate_cannot_listen(tmp_path: Path) -> None:
    write_certificates(tmp_path)

    def context(purpose: ssl.Purpose, role: str) -> ssl.SSLContext:
        made = ssl.create_default_context(purpose, cafile=str(tmp_path / "ca.pem"))
        made.check_hostname, made.verify_mode = False, ssl.CERT_REQUIRED
        made.load_cert_chain(tmp_path / f"{role}.pem", tmp_path / f"{role}-key.pem")
        return made

    for server, client, works in [
        ("scheduler", "client", True),
        ("scheduler", "worker", True),
        ("worker", "worker", True),
        ("client", "worker", False),
    ]:
        listening = context(ssl.Purpose.CLIENT_AUTH, server)
        connecting = context(ssl.Purpose.SERVER_AUTH, client)
        assert handshake(listening, connecting) == works


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether two sides accept each other, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
        if not sides:
            return True
    return False
