"""Addresses in a spec: none of this machine or its link, no redirects to other hosts, no unbounded downloads."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.fetch import Sources, fetch
from instancectl.content.http_source import is_special

HERE = Sources(fetch_from=[ipaddress.ip_network("127.0.0.1")])


class Web(HTTPServer):
    """Answers 200 with `body`, or redirects where `to` says; notes the requests in `asked`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.to: dict[str, str] = {}
        self.body, self.asked = b"content", list[str]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        to = self.server.to.get(self.path)
        self.send_response(302 if to else 200)
        if to:
            self.send_header("Location", to)
        self.end_headers()
        if not to:
            self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _serving(web: Web) -> Iterator[Web]:
    with web:
        serving = threading.Thread(target=web.serve_forever, args=(0.02,))
        serving.start()
        yield web
        web.shutdown()
        serving.join()


@pytest.fixture
def web() -> Iterator[Web]:
    yield from _serving(Web())


@pytest.fixture
def other() -> Iterator[Web]:
    yield from _serving(Web())


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    def fetch_it(url: str, sources: Sources = HERE) -> bytes:
        fetch(url, tmp_path / "content", "file x", Cancel(), sources)
        return (tmp_path / "content").read_bytes()

    return fetch_it


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"])
def test_nothing_is_fetched_from_this_machine_however_its_address_is_written(
    web: Web, fetched: Callable[..., bytes], host: str
) -> None:
    with pytest.raises(PrepareFailed, match=r"started with --fetch-from ADDRESS|cannot fetch"):
        fetched(f"http://{host}:{web.server_port}/metadata", Sources())
    assert web.asked == []


def test_addresses_that_the_operator_names_are_fetched(web: Web, fetched: Callable[..., bytes]) -> None:
    assert fetched(f"{web.url}/file") == b"content"
    assert fetched(f"http://localhost:{web.server_port}/file") == b"content"


def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    web: Web, fetched: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebinding name server answers a second query with this machine's address."""
    answers, real = iter(["192.0.2.1", "127.0.0.1"]), socket.getaddrinfo
    connected: list[Any] = []

    def resolve(host: str, *rest: Any, **more: Any) -> Any:
        return real(next(answers) if host == "rebinding.example" else host, *rest, **more)

    def connect(address: Any, *_: Any) -> socket.socket:
        connected.append(address)
        raise OSError("unreachable")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr("instancectl.content.fetch._TRIES", 1)
    with pytest.raises(PrepareFailed, match="unreachable"):
        fetched(f"http://rebinding.example:{web.server_port}/file", Sources())
    assert connected == [("192.0.2.1", web.server_port)]


@pytest.mark.long
def test_redirects_are_followed_at_the_same_host_only(web: Web, other: Web, fetched: Callable[..., bytes]) -> None:
    web.to = {"/moved": "/file", "/away": f"{other.url}/secret?token=canary", "/round": "/round"}
    assert fetched(f"{web.url}/moved") == b"content"
    with pytest.raises(PrepareFailed, match="redirects to another host, port or scheme") as refused:
        fetched(f"{web.url}/away")
    assert "canary" not in refused.value.message
    assert other.asked == []
    for elsewhere in ("ftp://127.0.0.1/x", "file:///etc/hostname", "http://localhost/x", "//127.0.0.2/x"):
        web.to = {"/away": elsewhere}
        with pytest.raises(PrepareFailed):
            fetched(f"{web.url}/away")
    web.to = {"/round": "/round"}
    web.asked.clear()
    with pytest.raises(PrepareFailed):
        fetched(f"{web.url}/round")
    assert len(web.asked) < 20


def test_a_file_larger_than_the_limit_is_not_fetched_to_its_end(web: Web, fetched: Callable[..., bytes]) -> None:
    web.body = b"x" * (3 << 20)
    with pytest.raises(PrepareFailed, match=r"has more than 1048576 bytes \(--fetch-bytes\)"):
        fetched(f"{web.url}/file", Sources(fetch_from=HERE.fetch_from, max_bytes=1 << 20))
    assert len(web.asked) == 1, "it is not tried again"


@pytest.mark.parametrize(
    ("address", "expected"),
    [("169.254.169.254", True), ("fe80::1%eth0", True), ("::1", True), ("0.0.0.0", True), ("10.1.1.1", False)],
)
def test_which_addresses_are_special(address: str, expected: bool) -> None:
    assert is_special(address) is expected
