"""What stands before every route: who may ask, from where, and how much.

The server reads files and executes programs of its user, so a web site that the user visits must not reach it. Host is
checked against DNS rebinding, Origin against requests that other sites send, and every request needs a cookie, which is
given once for the secret of a link. All of this comes before the routes, so that none can be forgotten.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

MAX_BODY = 4_000_000
"""Most bytes of a request: rules and drawn programs; data is read from files."""
OPEN = "/open"
"""The path of the link that gives the cookie."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Gate:
    """An ASGI application that lets the owner's requests through to another.

    Parameters
    ----------
    origin
        The address of the page, such as `http://127.0.0.1:8642`: its host is the only one that is answered.
    """

    def __init__(self, app: App, origin: str) -> None:
        self._app = app
        self.origin = origin
        self.host = origin.partition("://")[2]
        self._link = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        port = self.host.rpartition(":")[2]
        self._cookie = f"headrace-{port}"  # cookies do not tell ports apart

    @property
    def link(self) -> str:
        """The address that opens the page, once."""
        return f"{self.origin}{OPEN}?token={self._link}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = _plain(scope["headers"])
        status = self._refusal(scope, headers)
        if status is not None:
            await _answer(send, status)
        elif scope["path"] == OPEN and not self._knows(headers):
            await self._open(scope, send)
        elif scope["path"] == OPEN:
            await _answer(send, HTTPStatus.SEE_OTHER, [(b"location", b"/")])
        else:
            await self._app(scope, _limited(receive), _protected(send))

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> HTTPStatus | None:
        """Why a request is not let through; None if it is."""
        if headers.get("host") != [self.host]:
            return HTTPStatus.FORBIDDEN
        if any(origin != self.origin for origin in headers.get("origin", [])):
            return HTTPStatus.FORBIDDEN
        site = headers.get("sec-fetch-site", ["none"])
        if scope["path"] != OPEN and any(value not in ("none", "same-origin") for value in site):
            return HTTPStatus.FORBIDDEN
        if scope["path"] != OPEN and not self._knows(headers):
            return HTTPStatus.UNAUTHORIZED
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and "origin" not in headers:
            return HTTPStatus.FORBIDDEN
        if changes and headers.get("content-type", [""])[0].partition(";")[0] != "application/json":
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        if any(not value.isascii() or not value.isdigit() for value in headers.get("content-length", [])):
            return HTTPStatus.BAD_REQUEST
        if any(len(value) > 15 or int(value) > MAX_BODY for value in headers.get("content-length", [])):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None

    def _knows(self, headers: dict[str, list[str]]) -> bool:
        for line in headers.get("cookie", []):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self._cookie and secrets.compare_digest(value.encode(), self._session.encode()):
                    return True
        return False

    async def _open(self, scope: Scope, send: Send) -> None:
        """Exchange the secret of the link for the cookie; a link works once."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        right = secrets.compare_digest(given[0].encode(), self._link.encode())
        if scope["method"] != "GET" or not self._link or not right:
            await _answer(send, HTTPStatus.UNAUTHORIZED)
            return
        self._link = ""
        secure = "; Secure" if self.origin.startswith("https:") else ""
        cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict{secure}"
        # Not a redirect: a Strict cookie is not sent along if another program has opened the link.
        page = (
            b'<!doctype html><meta http-equiv="refresh" content="0; url=/"><link rel="icon" href="data:,">'
            b"<title>Headrace</title>"
        )
        more = [(b"set-cookie", cookie.encode()), (b"content-type", b"text/html; charset=utf-8")]
        await _answer(send, HTTPStatus.OK, more, page)


def _plain(headers: Headers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _answer(send: Send, status: HTTPStatus, more: Headers | None = None, body: bytes = b"") -> None:
    content = body or f"{status.value} {status.phrase}\n".encode()
    headers = [*_HEADERS, *(more or [(b"content-type", b"text/plain; charset=utf-8")])]
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _limited(receive: Receive) -> Receive:
    """Ends a request whose body grows beyond the limit, whatever length it announced."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if seen > MAX_BODY else message

    return counted


def _protected(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in _HEADERS}
            message["headers"] = [
                *((name, value) for name, value in message.get("headers", []) if name.lower() not in own),
                *_HEADERS,
            ]
        await send(message)

    return with_headers
