"""A server of the page in a thread, and requests as a browser or an attacker sends them."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.ui.feed import Feed
from headrace.ui.server import Address, guarded, make_server


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Page:
    """A page that is being served."""

    port: int
    link: str
    feed: Feed
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A request with these headers only; `Host` is that of the page unless given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    @property
    def own(self) -> dict[str, str]:
        """The headers of the page's own requests."""
        return {"Cookie": self.cookie, "Origin": self.origin, "Content-Type": "application/json"}

    def get(self, path: str) -> Answer:
        return self.ask("GET", path, headers={"Cookie": self.cookie})

    def post(self, path: str, values: Any) -> Answer:
        return self.ask("POST", path, json.dumps(values).encode(), self.own)

    def open(self) -> Answer:
        """Follow the link, and keep its cookie."""
        answer = self.ask("GET", self.link.removeprefix(self.origin))
        found = re.match(r"[^;]+", answer.headers.get("set-cookie", ""))
        self.cookie = found[0] if found else ""
        return answer


@contextmanager
def served(root: Path, feed: Feed | None = None) -> Iterator[Page]:
    """Serve the page of a folder, on a free port, until the end of the block."""
    address = Address()
    feed = feed or Feed()
    with address.listen() as listening:
        port = listening.getsockname()[1]
        gate = guarded(root, address.origin(port), feed)
        server = make_server(gate, address)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Page(port, gate.link, feed)
        finally:
            server.should_exit = True
            thread.join(20)
        assert not thread.is_alive()
