"""HTTP by hand: requests whose heads are spoiled as well, and answers read down to their framing."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import ssl
import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import MethodDescriptor

from tests.fuzz import requests, words

_TYPES: Final = ("application/json", "application/proto", "application/x-protobuf")
_STREAM_TYPES: Final = ("application/connect+json", "application/connect+proto")
_PAGES: Final = ("/livez", "/readyz", "/readyz?fresh=10s", "/metrics", "/sd/prometheus?service=svc&port=http")
_ODD_HEADERS: Final = (
    ("connect-timeout-ms", ("0", "1", "50", "-1", "9999999999", "99999999999", "soon", "")),
    ("connect-protocol-version", ("1", "2", "")),
    ("accept", ("application/proto", "application/json;q=0", "*/*;q=x", ";;;,,,", "text/html")),
    ("accept-encoding", ("gzip", "gzip;q=0", "br, gzip;q=nan", "*")),
    ("content-encoding", ("gzip", "identity", "br", "gzip, gzip", "")),
    ("connect-content-encoding", ("gzip", "identity", "zstd")),
    ("connect-accept-encoding", ("gzip", "x")),
    ("x-request-id", ("mine", "a" * 200, "\xff\xfe", "a b", "")),
    ("x-hq-cluster", ("default", "other", "../x", "\xe9")),
    ("authorization", ("Bearer x.y.z", "Bearer", "Basic eDp5", "Bearer " + "a" * 9_000)),
    ("expect", ("100-continue", "200-ok")),
    ("connection", ("close", "keep-alive, upgrade", "upgrade")),
    ("upgrade", ("h2c", "websocket")),
    ("transfer-encoding", ("chunked", "identity", "gzip, chunked", "xchunked")),
    ("content-length", ("0", "5", "+5", "-1", "99999999999999999999", "5, 5")),
    ("host", ("x", "", "a\tb", "[::1]:80")),
    ("cookie", ("a" * 9_000,)),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Status 0: the server hung up without one."""

    status: int
    body: bytes = b""

    @property
    def code(self) -> str:
        """Connect's word for an error, also at the end of a stream; empty: there is none."""
        return str(self._error().get("code", ""))

    @property
    def reason(self) -> str:
        """Reason in the error's ErrorInfo."""
        details = self._error().get("details", ())
        return next((d["debug"]["reason"] for d in details if d["type"].endswith("ErrorInfo")), "")

    def _error(self) -> dict[str, Any]:
        try:
            told = json.loads(self.body if self.status != 200 else self.body[self.body.rfind(b'{"error"') :])
            return dict(told["error"] if self.status == 200 else told)
        except (ValueError, KeyError, TypeError):
            return {}


class Attack(NamedTuple):
    """The bytes of one request, and what they were before they were spoiled; no method: a page."""

    data: bytes
    method: MethodDescriptor | None
    is_spoiled: bool
    names_version: bool

    def authorized(self, values: tuple[bytes, ...]) -> Attack:
        """With these headers, if it has a first line to put them after."""
        line, separator, rest = self.data.partition(b"\r\n")
        headers = b"".join(b"authorization: " + value + separator for value in values)
        return self._replace(data=line + separator + headers + rest) if separator else self

    @property
    def has_deadline(self) -> bool:
        """Whether something in it says how long its sender waits."""
        return b"connect-timeout-ms" in self.data.lower()

    @property
    def is_open(self) -> bool:
        """A page that anybody may read."""
        return self.method is None and any(path in self.data[:40] for path in (b"/livez", b"/readyz"))


def attack(rng: random.Random, known: requests.Known) -> Attack:
    """One request."""
    kind = rng.random()
    if kind < 0.08:
        page = _page(rng)
        return Attack(page, None, is_spoiled=True, names_version=b"fresh=" in page)
    method = rng.choice(requests.METHODS)
    content_type = rng.choice(_STREAM_TYPES if method.server_streaming else _TYPES)
    body = _body(rng, method, content_type, known)
    names_version = requests.names_version(method, body[5:] if method.server_streaming else body)
    headers = {"host": "localhost", "content-type": content_type, "content-length": str(len(body))}
    if method.server_streaming:
        headers["connect-timeout-ms"] = rng.choice(("50", "300"))
    if rng.random() < 0.15 and not method.server_streaming:
        headers["content-encoding"] = "gzip"
        body = gzip.compress(body, 1)
        headers["content-length"] = str(len(body))
    odd = rng.random() < 0.3
    if odd:
        for name, values in rng.sample(_ODD_HEADERS, rng.randrange(1, 4)):
            if name not in headers or name == "content-length":  # streams keep their deadline: they have no other end
                headers[name] = rng.choice(values)
    path = requests.path_of(method) if rng.random() < 0.95 else _odd_path(rng, method)
    verb = "POST" if rng.random() < 0.97 else rng.choice(("GET", "PUT", "post", "", "P\x00ST"))
    raw = _head(verb, path, headers) + body
    spoils = rng.random() < 0.1
    is_spoiled = odd or spoils or verb != "POST" or path != requests.path_of(method)
    return Attack(_spoiled_head(rng, raw) if spoils else raw, method, is_spoiled, names_version)


async def exchange(host: str, port: int, data: bytes, timeout_s: float, tls: ssl.SSLContext | None = None) -> Answer:
    """Send it, say that this is all, and read one answer. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 24, ssl=tls)
        try:
            writer.write(data)
            return await _answer(reader, bodyless=data.startswith(b"HEAD "))
        except (ConnectionError, asyncio.IncompleteReadError):
            return Answer(0)
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader, *, bodyless: bool) -> Answer:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(head.split(" ", 2)[1])
        if status != 100:
            break
    headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    if headers.get("transfer-encoding") == "chunked":
        return Answer(status, await _chunks(reader))
    body = b"" if bodyless else await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(status, gzip.decompress(body) if headers.get("content-encoding") == "gzip" and body else body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    return body


def _body(rng: random.Random, method: MethodDescriptor, content_type: str, known: requests.Known) -> bytes:
    made = requests.message(rng, method, known)
    if content_type.endswith("json"):
        body = requests.as_json(rng, made)
    else:
        body = made.SerializeToString(deterministic=True)
        body = requests.spoiled(rng, body) if rng.random() < 0.5 else body
    if not method.server_streaming:
        return body
    flags, size = (
        (0, len(body)) if rng.random() < 0.8 else (rng.randrange(256), rng.choice((0, len(body) + 1, 1 << 31)))
    )
    return struct.pack(">BI", flags, size) + body


def _page(rng: random.Random) -> bytes:
    path = rng.choice(_PAGES)
    if rng.random() < 0.5:
        path += rng.choice(
            ("?", "&", "#", "%00", "?fresh=", "?fresh=-1s", "?service=%ff&port=" + "a" * 300, "?a" * 200)
        )
    return _head(rng.choice(("GET", "HEAD", "POST")), path, {"host": "localhost"})


def _odd_path(rng: random.Random, method: MethodDescriptor) -> str:
    path = requests.path_of(method)
    odd = rng.choice(("/", "//", "/./", "/../", "%2f", "%00", "?x=", "#", ";", " ", "\x00", "\xe9", "*", "a" * 3_000))
    place = rng.randrange(len(path) + 1)
    return path[:place] + odd + path[place:]


def _head(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _spoiled_head(rng: random.Random, raw: bytes) -> bytes:
    head, separator, body = raw.partition(b"\r\n\r\n")
    kind = rng.randrange(5)
    if kind == 0:
        return requests.spoiled(rng, head) + separator + body
    if kind == 1:
        return head.replace(b"\r\n", b"\n", 1) + separator + body
    if kind == 2:
        return (
            head + b"\r\n" + rng.choice((b"x" * 40_000, b": y", b"x:\x00", b" folded", b"x\xff: y")) + separator + body
        )
    if kind == 3:
        return raw[: rng.randrange(1, len(raw))]
    return raw + rng.choice((raw, b"GET /livez HTTP/1.1\r\n\r\n", words.text(rng).encode()))
