"""How instancectl handles hostile addresses and archives."""

from __future__ import annotations

import ipaddress
import random
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.directories import inside
from instancectl.content.fetch import Sources, fetch
from instancectl.content.unpacking import unpack

HERE = Sources(fetch_from=[ipaddress.ip_network("127.0.0.1")])
_ELSEWHERE = "gopher://user:canary@elsewhere/?token=canary"


class _Redirects(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302, "canary")
        self.send_header("Location", _ELSEWHERE)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def redirecting() -> Iterator[str]:
    """The address of a server that redirects every request."""
    with HTTPServer(("127.0.0.1", 0), _Redirects) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/file"
        server.shutdown()
        serving.join()


def why_not(url: str, tmp_path: Path) -> str:
    with pytest.raises(PrepareFailed) as caught:
        fetch(url, tmp_path / "content", "file x", Cancel(), HERE)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:canary@host/file",
        "http://127.0.0.1:1/a file?token=canary",
        "http://files..example/a?token=canary",
        f"http://{'x' * 64}/a?token=canary",
        "http://files\u200b.example/a?token=canary",
    ],
)
def test_a_malformed_address_is_shown_without_its_credentials(url: str, tmp_path: Path) -> None:
    assert why_not(url, tmp_path).endswith("not a valid URL")


def test_the_target_of_a_redirect_is_not_shown(redirecting: str, tmp_path: Path) -> None:
    assert why_not(redirecting, tmp_path).endswith(f"cannot fetch {redirecting}: the server responded 302 Found")


def test_a_link_that_leads_back_to_itself_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "conf").symlink_to("conf")
    with pytest.raises((PrepareFailed, OSError), match=r"is a loop of symbolic links|symbolic links"):
        inside(tmp_path, "conf/app.yaml", "file conf/app.yaml")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("spoil", ["data", "method"])
def test_a_zip_that_is_damaged_or_of_an_unknown_method_is_named(tmp_path: Path, method: int, spoil: str) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", method) as packed:
        packed.writestr("a", random.Random(1).randbytes(1000))
    content = bytearray(archive.read_bytes())
    if spoil == "data":
        content[200:300] = b"\0" * 100
    else:
        entry = content.rindex(b"PK\1\2")
        content[8:10] = content[entry + 10 : entry + 12] = b"\x62\0"  # PPMd
    archive.write_bytes(content)
    with pytest.raises(PrepareFailed, match="package x: cannot be unpacked"):
        unpack(archive, tmp_path / "out", "package x", Cancel())
