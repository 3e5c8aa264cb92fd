"""Nobody but the owner gets in: all routes, found by themselves, and hostile requests."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the page needs headrace[ui]")
pytest.importorskip("uvicorn", reason="the page needs headrace[ui]")

from headrace.model.errors import UsageError
from headrace.ui.gate import MAX_BODY
from headrace.ui.server import Address, make_app
from ui.serving import Page, served


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "a.json").write_text("{}")
    (folder / "a.py").write_text("raise SystemExit")
    with served(folder) as made:
        made.open()
        yield made


def routes() -> list[tuple[str, str]]:
    """Every route of the application, with values for its parameters."""
    found = []
    for route in make_app(Path()).routes:
        for method in sorted(route.methods):
            found.append((method, re.sub(r"\{\w+\}", "1", route.path)))
    return found


def test_there_are_routes():
    assert len(routes()) >= 12
    assert ("POST", "/api/plans") in routes()


@pytest.mark.parametrize(("method", "path"), [*routes(), ("GET", "/nowhere"), ("DELETE", "/api/runs/1")])
def test_every_route_needs_the_cookie_and_the_right_host_and_origin(page: Page, method: str, path: str):
    body = b"{}" if method == "POST" else None
    assert page.ask(method, path, body).status == 401
    assert page.ask(method, path, body, {"Cookie": "headrace-1=x"}).status == 401
    wrong = page.cookie[:-1] + ("a" if page.cookie[-1] != "a" else "b")
    assert page.ask(method, path, body, page.own | {"Cookie": wrong}).status == 401
    for header in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert page.ask(method, path, body, page.own | header).status == 403


def test_the_link_works_once_and_gives_a_strict_cookie(tmp_path: Path):
    with served(tmp_path) as page:
        assert page.ask("GET", "/open").status == 401
        assert page.ask("GET", "/open?token=").status == 401
        assert page.ask("GET", "/open?token=" + "x" * 43).status == 401
        answer = page.open()
        assert answer.status == 200
        parts = [part.strip() for part in answer.headers["set-cookie"].split(";")[1:]]
        assert parts == ["Path=/", "HttpOnly", "SameSite=Strict"]
        assert page.get("/api/schedulers").status == 200
        assert page.ask("GET", page.link.removeprefix(page.origin)).status == 401
        assert page.ask("GET", "/open?token=").status == 401


def test_every_answer_has_a_strict_policy_and_no_cors(page: Page):
    for answer in (page.get("/"), page.get("/api/schedulers"), page.ask("GET", "/"), page.get("/nowhere")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not [name for name in answer.headers if name.startswith("access-control")]


HOSTILE = [
    ("GET", "/assets/..%2f..%2fserver.py"),
    ("GET", "/assets/%2e%2e"),
    ("GET", "/assets/../server.py"),
    ("GET", "/assets/..%5cserver.py"),
    ("GET", "//etc/passwd"),
    ("GET", "/../../etc/passwd"),
    ("GET", "/assets/" + "a" * 4000),
    ("GET", "/assets/%00"),
    ("GET", "/api/plans/-1"),
    ("GET", "/api/plans/999999999999999999999"),
    ("GET", "/api/plans/%F0%9D%9F%99"),
    ("GET", "/api/runs/..%2F..%2Fetc%2Fpasswd"),
    ("GET", "/api/runs/'%20OR%201=1--"),
    ("GET", "/api/runs/%00"),
    ("PUT", "/api/plans"),
    ("TRACE", "/"),
    ("CONNECT", "/"),
    ("OPTIONS", "/api/plans"),
]
BODIES = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"program": 1}',
    b'{"program": "../../etc/passwd"}',
    b'{"program": "/etc/passwd"}',
    b'{"program": "a.py:x"}',
    b'{"program": "a.json", "scheduler": "evil.py:Class"}',
    b'{"program": "a.json", "platform": "../x.toml"}',
    b'{"program": "a.json", "more": 1}',
    b'{"program": "a.json", "execute": "yes"}',
    b'{"program": "a\\u0000.json"}',
    b'{"text": 1}',
    b'{"program": "a.json", "seconds": NaN}',
    b'{"program": "a.json", "seconds": 1e999}',
    b'{"program": "a.json", "seconds": -1}',
    b'{"program": "' + b"a" * 5000 + b'"}',
]


@pytest.mark.parametrize(("method", "path"), HOSTILE)
def test_hostile_paths_are_answered_and_give_nothing_away(page: Page, method: str, path: str):
    answer = page.ask(method, path, headers=page.own)
    assert 400 <= answer.status < 500
    assert b"root:" not in answer.body
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize("route", ["/api/plans", "/api/rules/check"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:30]))
def test_hostile_bodies_are_refused(page: Page, route: str, body: bytes):
    answer = page.ask("POST", route, body, page.own)
    assert answer.status == 400
    assert b"Traceback" not in answer.body


def test_bodies_are_limited_whatever_they_announce(page: Page):
    announced = page.own | {"Content-Length": str(MAX_BODY + 1)}
    assert page.ask("POST", "/api/rules/check", b"", announced).status == 413
    assert page.ask("POST", "/api/rules/check", b"", page.own | {"Content-Length": "-1"}).status in (400, 413)
    chunk = b" " * 100_000
    with socket.create_connection(("127.0.0.1", page.port), timeout=20) as connection:
        lines = [f"{name}: {value}" for name, value in page.own.items()]
        head = ["POST /api/rules/check HTTP/1.1", f"Host: 127.0.0.1:{page.port}", *lines]
        head += ["Transfer-Encoding: chunked", "", ""]
        connection.sendall("\r\n".join(head).encode())
        try:
            for _ in range(MAX_BODY // len(chunk) + 2):
                connection.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 413")
        except ConnectionError:
            pass  # refused before all was sent
    assert page.get("/api/schedulers").status == 200


def test_changes_need_an_origin_and_json(page: Page):
    headers = page.own
    del headers["Origin"]
    assert page.ask("POST", "/api/rules/check", b'{"text": ""}', headers).status == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = page.ask("POST", "/api/rules/check", b'{"text": ""}', page.own | {"Content-Type": kind})
        assert answer.status == 415
    assert page.ask("GET", "/", headers=page.own | {"Sec-Fetch-Site": "cross-site"}).status == 403


@pytest.mark.parametrize("host", ["192.168.1.4", "0.0.0.0", "::", "fe80::1", "example.org"])
def test_other_addresses_need_a_certificate(host: str):
    with pytest.raises(UsageError):
        Address(host)


def test_a_certificate_allows_one_address():
    files = {"cert": Path("c.pem"), "key": Path("k.pem")}
    assert Address("192.168.1.4", **files).origin(8) == "https://192.168.1.4:8"
    with pytest.raises(UsageError, match="one address"):
        Address("0.0.0.0", **files)
    with pytest.raises(UsageError, match="key"):
        Address(cert=Path("c.pem"))
