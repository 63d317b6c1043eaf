"""The requests of one HTTP/1.1 connection: bytes in, events out. What two parsers could read differently is refused."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from serving.head import AmbiguousHead, Head, join_repeated

HEAD, BODY, FAULT = range(3)

Event = tuple[int, Any, bool]
"""Kind, what it carries, and whether the request ends with it: Begun (HEAD), bytes (BODY), Fault (FAULT, the last)."""

_MOST_WAITING: Final = 100  # requests that came before the one ahead of them was answered
_KEPT, _KEPT_BYTES = 4, 1_024  # heads that a connection remembers, and the longest of them
_END: Final = b"\r\n\r\n"


class Begun(NamedTuple):
    """A request whose headers are complete. `keep_alive`: the connection may go on behind it."""

    head: Head
    keep_alive: bool
    is_old: bool  # HTTP/1.0: answers are not chunked
    expects_continue: bool


class Http1Fault(Exception):
    """Why nothing more is read. `limit`: the one that was hit; empty: the bytes are malformed."""

    def __init__(self, text: str, limit: str = "") -> None:
        super().__init__(text)
        self.limit = limit


class Http1Machine:
    """Reads requests, one after the other. Nothing raises but on_..., to the parser; a FAULT is the last event.

    Clients say the same head over and over: it is remembered by all of its bytes with what the parser made of it.
    """

    def __init__(self, max_header_bytes: int) -> None:
        self._max_header_bytes = max_header_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._events: list[Event] = []
        self._raw_bytes = self._in_this = 0  # of the head; requests that began in the bytes that are being read
        self._known: dict[bytes, tuple[Begun, int]] = {}  # by head: what was made of it, and the body's length
        self._begin()
        self.is_reading_head = False  # some of a request's head has come, and not all
        self.is_reading_body = False
        self._is_over = False

    def receive(self, data: bytes) -> list[Event]:
        """Return the events in these bytes."""
        if self._is_over:
            return []
        if self.is_reading_head or self.is_reading_body or self._was_last:
            return self._parse(data)
        end = data.find(_END) + len(_END)
        known = self._known.get(data[:end])
        if known is not None and len(data) - end == known[1]:
            return [(HEAD, known[0], False), (BODY, data[end:], True)]
        events = self._parse(data)
        if len(events) == 2 and events[1][0] == BODY and end <= _KEPT_BYTES:
            self._remember(data[:end], events[0][1], len(data) - end)
        return events

    def _remember(self, said: bytes, begun: Begun, size: int) -> None:
        """Remember the head of a request that came all at once, with a body of `size` bytes."""
        announced = int(begun.head.named.get(b"content-length", b"0"))
        if begun.keep_alive and not begun.expects_continue and announced == size:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[said] = begun, size

    def _parse(self, data: bytes) -> list[Event]:
        self._in_this = 0
        self._raw_bytes += len(data)
        try:
            self._parser.feed_data(data)
            if not self.is_reading_body and self._raw_bytes > self._max_header_bytes and self.is_reading_head:
                self._fault(Http1Fault("", "max_header_bytes"))
        except httptools.HttpParserUpgrade:
            self._is_over = True  # the parser stops there: the answer is the last on this connection
        except httptools.HttpParserCallbackError as error:  # the callback's own error is its context
            cause = error.__context__
            if isinstance(cause, AmbiguousHead):
                cause = Http1Fault(str(cause))
            self._fault(cause if isinstance(cause, Http1Fault) else Http1Fault("cannot parse the request"))
        except httptools.HttpParserError as error:
            if not (self._was_last and not self.is_reading_body):
                self._fault(Http1Fault(str(error)))
            self._is_over = True
        events, self._events = self._events, []
        return events

    def _fault(self, fault: Http1Fault) -> None:
        self._is_over = True
        self._events.append((FAULT, fault, True))

    def _begin(self) -> None:
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._was_last = False
        self._is_trailing = False

    def on_message_begin(self) -> None:
        self._in_this += 1
        if self._in_this > _MOST_WAITING:
            raise Http1Fault("too many pipelined requests")
        self._begin()
        self.is_reading_head = True

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._check_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_trailing:
            return  # trailers: a proxy has looked only at the headers before the body
        self._fields.append((name.lower(), value))
        self._check_head(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self.is_reading_head = False
        named = dict(self._fields)
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        has_upgrade = parser.should_upgrade()
        authority = self._check(method, version, named, has_upgrade)
        self._was_last = has_upgrade or not parser.should_keep_alive()
        head = Head(method, self._target, authority, self._fields, named)
        if len(named) != len(self._fields):
            join_repeated(head)
        expects = version != "1.0" and named.get(b"expect", b"").lower() == b"100-continue"
        begun = Begun(head, not self._was_last, version == "1.0", expects)
        self.is_reading_body = True
        self._events.append((HEAD, begun, False))

    def on_body(self, part: bytes) -> None:
        self._events.append((BODY, part, False))

    def on_chunk_header(self) -> None:
        self._is_trailing = True

    def on_message_complete(self) -> None:
        self.is_reading_body = False
        self._raw_bytes = 0
        kind, last, _ = self._events[-1] if self._events else (HEAD, b"", False)
        if kind == BODY:
            self._events[-1] = BODY, last, True
        else:
            self._events.append((BODY, b"", True))

    def _check_head(self, more: int) -> None:
        self._head_bytes += more
        if self._head_bytes > self._max_header_bytes:
            raise Http1Fault("", "max_header_bytes")

    def _check(self, method: bytes, version: str, named: dict[bytes, bytes], has_upgrade: bool) -> bytes:
        """The authority. Raises Http1Fault."""
        if version not in ("1.0", "1.1"):
            raise Http1Fault("not HTTP/1.0 or HTTP/1.1")
        names = [name for name, _ in self._fields]
        if names.count(b"host") > 1 or (b"host" not in named and version != "1.0"):
            raise Http1Fault("send exactly one Host header")
        coding = named.get(b"transfer-encoding")
        has_body = coding is not None or named.get(b"content-length", b"0") != b"0"
        if coding is not None and (coding.lower() != b"chunked" or names.count(b"transfer-encoding") > 1):
            raise Http1Fault("transfer-encoding must be chunked")
        if coding is not None and version == "1.0":
            raise Http1Fault("transfer-encoding is not allowed in HTTP/1.0")
        if has_upgrade and has_body:
            raise Http1Fault("protocol upgrades are not supported: send no Upgrade header")
        if method == b"CONNECT":
            raise Http1Fault("CONNECT is not supported")
        return self._check_target(method, named.get(b"host", b""))

    def _check_target(self, method: bytes, host: bytes) -> bytes:
        target = self._target
        if target[:1] == b"/" or (target == b"*" and method == b"OPTIONS"):
            return host
        found = urlsplit(target)
        if found.scheme not in (b"http", b"https") or not found.netloc or (host and found.netloc != host):
            raise Http1Fault("the request target is not a path")
        self._target = (found.path or b"/") + (b"?" + found.query if found.query else b"")
        return found.netloc
