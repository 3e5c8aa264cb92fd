"""Workers that are started over ssh: with a real server, real keys and real workers on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import headrace as hr
from headrace.formats.hosts_toml import read_hosts
from headrace.model.errors import BadFile, UsageError, WorkerStartFailed
from headrace.runtime.certificates import write_certificates
from headrace.runtime.ssh_cluster import open_ssh

from .ssh_server import HEADRACE, SshServer, free_port, start_server, write_python


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    found = start_server(tmp_path_factory.mktemp("ssh"))
    yield found
    found.process.terminate()
    found.process.wait()


def squares() -> hr.Program:
    program = hr.Program("squares")
    parts = [
        program.task(lambda i=i: (i * i, os.getpid()), outputs=[f"s{i}"], work="50 ms") for i in range(6)
    ]
    program.output(program.task(lambda *all: list(all), inputs=parts, outputs=["all"]))
    return program


def worker_processes(folder: Path) -> list[int]:
    """Processes whose folder for temporary files is below this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR", "").startswith(str(folder)):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def test_a_program_runs_on_hosts_that_are_reached_by_ssh(server: SshServer, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    file = server.hosts_file(
        'name = "big"\nthreads = 1\nworkers = 2',
        'name = "small"\naddress = "localhost"\nthreads = 1',
        top=f'folder = "{scratch}"',
    )
    done = hr.run(squares(), on=f"ssh://{file}", record=tmp_path / "record", output=tmp_path)
    assert done.failure is None
    values = done.results["all"]
    assert [value for value, _ in values] == [i * i for i in range(6)]
    assert os.getpid() not in {pid for _, pid in values}
    assert [host.name for host in done.platform.hosts] == ["big-1", "big-2", "small"]
    assert worker_processes(scratch) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_certificates_from_a_folder_and_only_tls(server: SshServer, tmp_path: Path) -> None:
    write_certificates(tmp_path / "tls")
    file = server.hosts_file('name = "a"\nthreads = 1', top=f'certificates = "{tmp_path}/tls"')
    with open_ssh(file) as cluster:
        addresses = [cluster.client.scheduler.address, *cluster.client.scheduler_info()["workers"]]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        # The authority is that of the folder: its certificates are accepted, and no others.
        from distributed import Client, Security

        def client(folder: Path) -> Client:
            security = Security(
                require_encryption=True,
                tls_ca_file=str(folder / "ca.pem"),
                tls_client_cert=str(folder / "client.pem"),
                tls_client_key=str(folder / "client-key.pem"),
            )
            return Client(addresses[0], security=security, timeout=5, set_as_default=False)

        with client(tmp_path / "tls") as accepted:
            assert accepted.submit(lambda: 7).result() == 7
        write_certificates(tmp_path / "other")
        with pytest.raises(OSError):
            client(tmp_path / "other")


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(server: SshServer) -> None:
    file = server.hosts_file('name = "a"\nthreads = 1')
    with open_ssh(file) as cluster:
        first = next(iter(cluster.client.run(os.getpid).values()))
        os.kill(first, signal.SIGKILL)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = list(cluster.client.run(os.getpid, on_error="ignore").values())
            if found and found != [first]:
                return
            time.sleep(0.1)
        raise AssertionError("it was not started again")


@pytest.mark.slow
def test_workers_end_when_the_client_is_killed(server: SshServer, tmp_path: Path) -> None:
    file = server.hosts_file('name = "a"\nthreads = 1', top=f'folder = "{tmp_path}"')
    code = (
        "import time\nfrom headrace.runtime.ssh_cluster import open_ssh\n"
        f"cluster = open_ssh({str(file)!r})\nprint('open', flush=True)\ntime.sleep(600)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(HEADRACE)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        assert len(worker_processes(tmp_path)) == 1
        process.kill()
    end = time.monotonic() + 20
    while worker_processes(tmp_path) and time.monotonic() < end:
        time.sleep(0.1)
    assert worker_processes(tmp_path) == []


def refused(server: SshServer, host: str, top: str = "") -> str:
    with pytest.raises(WorkerStartFailed) as caught:
        open_ssh(server.hosts_file(host, top=top)).close()
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_host_that_does_not_answer(server: SshServer) -> None:
    text = refused(server, f'name = "a"\nport = {free_port()}')
    assert "host 'a' (a): ssh cannot connect: ssh: connect to host 127.0.0.1" in text
    assert "Connection refused" in text


def test_an_unknown_host(server: SshServer) -> None:
    file = server.folder / "plain"
    file.write_text((server.folder / "config").read_text().replace("  HostName 127.0.0.1\n", ""))
    text = refused(server, f'name = "nowhere.invalid"\nconfig = "{file}"')
    assert "ssh cannot connect: ssh: Could not resolve hostname nowhere.invalid" in text


def test_a_key_that_is_not_accepted(server: SshServer) -> None:
    file = server.folder / "strange"
    file.write_text((server.folder / "config").read_text().replace("/user\n", "/stranger\n"))
    text = refused(server, f'name = "a"\nconfig = "{file}"')
    assert "ssh is not allowed to log in" in text
    assert "Permission denied (publickey)" in text
    assert "set `identity`" in text


def test_a_host_whose_key_is_not_known(server: SshServer) -> None:
    file = server.folder / "unknown"
    file.write_text((server.folder / "config").read_text().replace("/known\n", "/empty\n"))
    assert "ssh does not know the key of this host" in refused(server, f'name = "a"\nconfig = "{file}"')


def test_headrace_missing_there(server: SshServer) -> None:
    bare = write_python(server.folder / "bare", f'exec "{sys.executable}" -I -S "$@"')
    text = refused(server, f'name = "a"\npython = "{bare}"')
    assert f"headrace is not installed there for {bare}" in text
    assert "install the same version there" in text


def test_no_python_there(server: SshServer) -> None:
    assert "there is no '/no/python' there" in refused(server, 'name = "a"\npython = "/no/python"')


def test_another_version_there(server: SshServer, tmp_path: Path) -> None:
    script = "import headrace; headrace.__version__ = '0.0.1'; from headrace.runtime.ssh_worker import main; main()"
    other = write_python(tmp_path / "old", f'PYTHONPATH="{HEADRACE}" exec "{sys.executable}" -c "{script}"')
    text = refused(server, f'name = "a"\npython = "{other}"')
    assert f"headrace 0.0.1 is installed there, and {hr.__version__} here" in text


def test_workers_that_cannot_reach_the_scheduler(server: SshServer) -> None:
    # The host sees another network: there, nothing listens at the address of the scheduler.
    script = (
        "import socket\n"
        "def refuse(*given, **named): raise ConnectionRefusedError(111, 'Connection refused')\n"
        "socket.create_connection = refuse\n"
        "from headrace.runtime.ssh_worker import main\nmain()"
    )
    (server.folder / "blocked.py").write_text(script)
    blocked = write_python(
        server.folder / "blocked",
        f'PYTHONPATH="{HEADRACE}" exec "{sys.executable}" "{server.folder}/blocked.py"',
    )
    text = refused(server, f'name = "a"\npython = "{blocked}"')
    assert "workers there cannot reach this machine at tls://127.0.0.1:" in text
    assert "set `listen` and `listen_port`" in text


def test_an_address_that_is_not_ours(server: SshServer) -> None:
    file = server.hosts_file('name = "a"', top='listen = "192.0.2.1"')
    with pytest.raises(UsageError, match=r"cannot listen at tls://192\.0\.2\.1"):
        open_ssh(file)


def test_a_port_that_is_taken(server: SshServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        file = server.hosts_file('name = "a"', top=f"listen_port = {taken.getsockname()[1]}")
        with pytest.raises(UsageError, match="cannot listen"):
            open_ssh(file)


def test_what_shells_print_is_skipped(server: SshServer) -> None:
    noisy = write_python(server.folder / "noisy", f'echo "Welcome!"; exec "{server.folder}/python" "$@"')
    with open_ssh(server.hosts_file(f'name = "a"\npython = "{noisy}"\nthreads = 1')) as cluster:
        assert [host.name for host in cluster.platform.hosts] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has 0 hosts"),
        ("[[host]]\n", "name is missing"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "a"\n', "two workers are called 'a'"),
        ('[[host]]\nname = "a"\nworkers = 2\n[[host]]\nname = "a-2"\n', "two workers are called 'a-2'"),
        ('[[host]]\nname = "a"\naddress = "-oProxyCommand=touch x"\n', "address is"),
        ('[[host]]\nname = "-oProxyCommand"\n', "address is"),
        ('[[host]]\nname = "a"\nadress = "b"\n', "unknown key 'adress' (try: address)"),
        ('[[host]]\nname = "a"\nport = 70000\n', "port is 70000"),
        ('[[host]]\nname = "a"\nmemory = "8 apples"\n', "memory"),
        ('[[host]]\nname = "a"\nport = true\n', "port is True"),
        ("[[host]]\nname = 5\n", "name is 5"),
        ('[[host]]\nname = "a\\u0000"\n', "without control characters"),
        ('python = "p\\n"\n[[host]]\nname = "a"\n', "without control characters"),
        ("host = 3\n", "host is 3"),
        ('listen_port = -1\n[[host]]\nname = "a"\n', "listen_port is -1"),
    ],
)
def test_hosts_files_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(text)
    with pytest.raises(BadFile) as caught:
        read_hosts(file)
    assert message in str(caught.value)


def test_values_at_the_top_hold_for_all_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(
        'python = "/opt/p"\nport = 2022\nmemory = "2 GB"\nidentity = "id"\n'
        '[[host]]\nname = "a"\n[[host]]\nname = "b"\naddress = "me@b.org"\nport = 22\n'
    )
    a, b = read_hosts(file).hosts
    assert (a.address, a.python, a.port, a.memory, a.identity) == (
        "a", "/opt/p", 2022, 2_000_000_000, tmp_path / "id"
    )  # fmt: skip
    assert (b.address, b.port) == ("me@b.org", 22)


def test_options_that_do_not_go_with_ssh(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="workers and speeds apply only to local runs"):
        hr.run(squares(), on="ssh://hosts.toml", workers=2, record=tmp_path)
    with pytest.raises(UsageError, match="certificates of ssh:// workers are not options"):
        hr.run(squares(), on="ssh://hosts.toml", tls={"ca": "x"}, record=tmp_path)
    with pytest.raises(BadFile, match=r"hosts\.toml"):
        hr.run(squares(), on=f"ssh://{tmp_path}/hosts.toml", record=tmp_path)
