"""An ssh server on this machine with its own keys and port, for tests of workers that are started over ssh."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

HEADRACE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class SshServer:
    """The server's port and files."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    def hosts_file(self, *hosts: str, top: str = "") -> Path:
        """A hosts file with these entries; `config` says which keys to use."""
        text = f'config = "{self.folder}/config"\npython = "{self.folder}/python"\n{top}\n'
        path = self.folder / "hosts.toml"
        path.write_text(text + "\n".join(f"[[host]]\n{host}\n" for host in hosts))
        return path


def start_server(folder: Path) -> SshServer:
    """Start sshd as this user; the test is skipped where there is none."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("there is no OpenSSH server (make ssh)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd drops its privileges there
    for name in ("server", "user", "stranger"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True, timeout=30
        )
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    port = free_port()
    key = " ".join((folder / "server.pub").read_text().split()[:2])
    (folder / "known").write_text(f"[127.0.0.1]:{port} {key}\n[localhost]:{port} {key}\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/server\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\n"
    )
    (folder / "config").write_text(
        f"Host *\n  User {getpass.getuser()}\n  HostName 127.0.0.1\n  Port {port}\n"
        f"  IdentityFile {folder}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile /dev/null\n"
    )
    write_python(folder / "python", f'PYTHONPATH="{HEADRACE}" exec "{sys.executable}" "$@"')
    log = (folder / "log").open("wb")
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    log.close()
    _wait(port, process, folder / "log")
    return SshServer(port, folder, process)


def write_python(path: Path, command: str) -> Path:
    """A script that stands for the Python of another machine."""
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())
