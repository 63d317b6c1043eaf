"""One HTTP/2 connection, either side of it: bytes in, events out; what is to be written lies in `outgoing`.

Whatever a peer sends, nothing but events comes of it. A fault of the connection is the last of them (FAILED), with a
GOAWAY to be written; a fault of one stream resets that stream. Frames that carry nothing cost credit, which bytes and
answers earn and time gives back: a peer that floods with them is cut off with ENHANCE_YOUR_CALM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from serving.h2 import frames
from serving.h2.frames import ConnectionFault, ErrorCode, StreamFault
from serving.h2.hpack import LOOSE, PSEUDO, REGULAR, Field
from serving.h2.hpack import REFUSED as FORBIDDEN
from serving.h2.huffman import HpackError
from serving.h2.outgoing import Http2Stream
from serving.h2.state import BY_US, DATA, HEADERS, REFUSED, TRAILERS, Event, Http2Control
from serving.head import AmbiguousHead, Head, join_repeated

_DIGITS: Final = 15  # of a content-length: more is no length of anything


class Http2Machine(Http2Control):
    def receive(self, data: bytes) -> None:
        """Take more bytes from the peer; `events` says what they mean."""
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0

    def events(self, most: int = 64) -> list[Event]:
        """Return the events in the bytes, up to `most` new streams; call again while `is_behind`."""
        self.is_behind = False
        if self.failed:
            return []
        self._turn += 1
        self._opened = 0
        try:
            if self._is_greeted or self._preface():
                self._frames(most)
            if self._credit < self.settings.credit and self.outgoing.earned:
                self.earn(0)
            self.is_behind = self._opened > 0 and len(self._buffer) - self._at >= frames.HEADER_BYTES
        except ConnectionFault as fault:
            self._fail(fault)
        events, self._events = self._events, []
        return events

    def _preface(self) -> bool:
        wanted, got = frames.PREFACE, self._buffer[: len(frames.PREFACE)]
        if not wanted.startswith(got):
            raise ConnectionFault("the HTTP/2 connection preface is missing")
        if got == wanted:
            self._is_greeted, self._at = True, len(wanted)
        return self._is_greeted

    def _frames(self, most: int) -> None:
        buffer, at, end, largest = self._buffer, self._at, len(self._buffer), self.settings.max_frame_bytes
        unpack, handlers = frames.FRAME.unpack_from, _HANDLERS
        while end - at >= frames.HEADER_BYTES and not self.failed:
            high, low, kind, flags, stream_id = unpack(buffer, at)
            stop = at + frames.HEADER_BYTES + (high << 8 | low)
            if high << 8 | low > largest:
                raise ConnectionFault(f"a frame is over the {largest} bytes allowed", ErrorCode.FRAME_SIZE_ERROR)
            if stop > end:
                break
            payload = buffer[at + frames.HEADER_BYTES : stop]
            self._at = at = stop
            if not self._is_between:
                self._check_order(kind, flags, stream_id)
            try:
                handlers[kind](self, flags, stream_id & frames.MAX_STREAM_ID, payload)
            except StreamFault as fault:
                self._pay(1)
                self._reset(stream_id & frames.MAX_STREAM_ID, fault.code)
            if self._opened >= most:
                break

    def _check_order(self, kind: int, flags: int, stream_id: int) -> None:
        """Check that this frame may come now, in the rare cases: at the beginning, and within a list of headers."""
        if self._block is not None and (kind != frames.CONTINUATION or stream_id != self._block[0]):
            raise ConnectionFault("a CONTINUATION frame is missing")
        if not self.has_settings:
            if kind != frames.SETTINGS or flags & frames.ACK:
                raise ConnectionFault("the first frame is not SETTINGS")
            self.has_settings = True
            self.peer_max_streams = frames.MAX_STREAM_ID  # unless they say less
        self._is_between = self._block is None

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & (frames.PADDED | frames.WITH_PRIORITY):
            payload = self._strip_padding_and_priority(flags, stream_id, payload)
        if not stream_id & 1 or (self.is_client and stream_id >= self._next_id):
            raise ConnectionFault(f"stream {stream_id} is not for requests")
        if flags & frames.END_HEADERS:
            self._on_block(stream_id, payload, end=bool(flags & frames.END_STREAM))
        else:
            self._block = stream_id, flags, bytearray(payload)
            self._is_between = False

    def _strip_padding_and_priority(self, flags: int, stream_id: int, payload: bytes) -> bytes:
        """The payload without padding and priority."""
        payload = frames.strip_padding(flags, payload)
        if not flags & frames.WITH_PRIORITY:
            return payload
        if len(payload) < 5:
            raise ConnectionFault("a priority must have five bytes", ErrorCode.FRAME_SIZE_ERROR)
        self._check_priority(stream_id, payload)
        return payload[5:]

    def _on_continuation(self, flags: int, _stream_id: int, payload: bytes) -> None:
        if self._block is None:
            raise ConnectionFault("unexpected CONTINUATION frame")
        self._pay(1)
        stream_id, first_flags, block = self._block
        block += payload
        if len(block) > 2 * self.settings.max_header_bytes:
            raise ConnectionFault("the header block is far over the limit", ErrorCode.ENHANCE_YOUR_CALM)
        if flags & frames.END_HEADERS:
            self._block, self._is_between = None, True
            self._on_block(stream_id, bytes(block), end=bool(first_flags & frames.END_STREAM))

    def _on_block(self, stream_id: int, block: bytes, *, end: bool) -> None:
        # Decoded even if it is refused then: our table must stay the one that the peer knows.
        most = self.settings.max_header_bytes
        try:
            fields, size = self._decoder.decode(block, most)
        except HpackError as error:
            raise ConnectionFault(str(error), ErrorCode.COMPRESSION_ERROR) from None
        stream = self.streams.get(stream_id)
        if stream is None and stream_id > self.last_id and not self.is_client:
            self._on_request(stream_id, None if size > most else fields, end=end)
        elif stream is None:
            self._on_closed(stream_id)
        elif stream.is_received:
            raise StreamFault("the stream has ended", ErrorCode.STREAM_CLOSED)
        elif size > most:
            raise StreamFault("the headers are over the limit", ErrorCode.ENHANCE_YOUR_CALM)
        elif self.is_client and not stream.has_head:
            self._on_answer(stream, fields, end=end)
        else:
            self._on_trailers(stream, fields, end=end)

    def _on_trailers(self, stream: Http2Stream, fields: list[Field], *, end: bool) -> None:
        if not end:
            raise StreamFault("trailers must end the stream")
        self._check_length(stream, 0, end=True)
        self._event(TRAILERS, stream, _read_trailers(fields), end=True)

    def _on_request(self, stream_id: int, fields: list[Field] | None, *, end: bool) -> None:
        """`fields` None: there are too many."""
        self.last_id = stream_id
        self._opened += 1
        if stream_id > self._refuse_above:
            self._note_gone(stream_id, by=BY_US)
            return
        if len(self.streams) >= self.settings.max_streams:
            raise StreamFault("too many concurrent streams", ErrorCode.REFUSED_STREAM)
        stream = Http2Stream(stream_id, self.outgoing.initial_window, self.settings.window_bytes, self._turn)
        kind: int = REFUSED
        what: Head | AmbiguousHead | None = None
        if fields is not None:
            try:
                kind, what = HEADERS, _read_request(fields)
                if b"content-length" in what.named:
                    stream.expected = _content_length(what)
                    self._check_length(stream, 0, end=end)
            except AmbiguousHead as error:
                what = error
        stream.is_received = end
        self.streams[stream_id] = stream
        self._events.append((kind, stream, what, end))

    def _on_answer(self, stream: Http2Stream, fields: list[Field], *, end: bool) -> None:
        head = _read_response(fields)
        if 100 <= head.status < 200:
            self._pay(1)
            if end:
                raise StreamFault("an interim response must not end the stream")
            return
        stream.has_head = True
        if b"content-length" in head.named and not end:
            stream.expected = _content_length(head)
        self._event(HEADERS, stream, head, end=end)

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._window -= size
        self._unread += size
        if self._unread > self._half_window:
            self._open_window()
        data = frames.strip_padding(flags, payload) if flags & frames.PADDED else payload
        stream = self.streams.get(stream_id)
        if stream is None or stream.is_received or (self.is_client and not stream.has_head):
            self._on_stray(stream, stream_id)
            return
        stream.credit -= size
        end = bool(flags & frames.END_STREAM)
        if stream.credit < 0:
            raise StreamFault("the stream's flow-control window is exceeded", ErrorCode.FLOW_CONTROL_ERROR)
        if stream.expected >= 0:
            self._check_length(stream, len(data), end=end)
        if size > len(data):
            self.acknowledge_bytes(stream, size - len(data))
        if not data and not end:
            self._pay(1)
        self._event(DATA, stream, data, end=end)

    def _on_stray(self, stream: Http2Stream | None, stream_id: int) -> None:
        if stream is not None:
            raise StreamFault("DATA on a stream that is closed, or has no headers yet", ErrorCode.STREAM_CLOSED)
        if not stream_id:
            raise ConnectionFault("DATA on stream 0")
        self._on_closed(stream_id)

    def _open_window(self) -> None:
        """Reopen the connection's window once half of it is used: what is buffered is bounded per stream."""
        if self._window < 0:
            raise ConnectionFault("the connection's flow-control window is exceeded", ErrorCode.FLOW_CONTROL_ERROR)
        self.outgoing.control(frames.window_update(0, self._unread))
        self._window += self._unread
        self._unread = 0


def _read_request(fields: list[Field]) -> Head:
    """Raises StreamFault, AmbiguousHead."""
    pseudo: dict[bytes, bytes] = {}
    named: dict[bytes, bytes] = {}
    for name, value, kind, _ in fields:
        if not kind:  # REGULAR
            named[name] = value
        elif kind == LOOSE:
            return _read_request(
                [(n, v.strip(b" \t"), REGULAR, s) if k == LOOSE else (n, v, k, s) for n, v, k, s in fields]
            )
        elif kind == FORBIDDEN or named or name in pseudo:
            raise StreamFault("a header that requests may not have, a duplicate, or a pseudo-header after the others")
        else:
            pseudo[name] = value
    method, target = pseudo.get(b":method"), pseudo.get(b":path")
    authority, host = pseudo.get(b":authority", b""), named.get(b"host")
    if not method or not target or b":scheme" not in pseudo or len(pseudo) > 3 + (b":authority" in pseudo):
        raise StreamFault("a request needs :method, :scheme and :path, and no other pseudo-header but :authority")
    if method == b"CONNECT" or (target[0] != 0x2F and (target, method) != (b"*", b"OPTIONS")):
        raise StreamFault("a request needs a path; CONNECT is not supported")
    head = Head(method, target, authority or host or b"", fields, named)
    if len(named) + len(pseudo) != len(fields) or (host is not None and host != head.authority):
        _disambiguate(head)
    return head


def _disambiguate(head: Head) -> None:
    """Join repeated names. Raises AmbiguousHead: two readers could differ, or the host is not the authority."""
    join_repeated(head)
    if head.named.get(b"host", head.authority) != head.authority:
        raise AmbiguousHead("the headers host and :authority differ", head)


def _read_response(fields: list[Field]) -> Head:
    """Raises StreamFault."""
    if not fields or fields[0][0] != b":status":
        raise StreamFault("a response must begin with :status")
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit():
        raise StreamFault("the status is not a number of three digits")
    regular = _read_trailers(fields[1:])
    head = Head(b"", b"", b"", regular, dict(regular), int(status))
    if len(head.named) != len(regular):
        try:
            join_repeated(head)
        except AmbiguousHead as error:
            raise StreamFault(str(error)) from None
    return head


def _read_trailers(fields: list[Field]) -> list[tuple[bytes, bytes]]:
    """Raises StreamFault."""
    if any(kind in (PSEUDO, FORBIDDEN) for _, _, kind, _ in fields):
        raise StreamFault("a header is not allowed here")
    return [(name, value) for name, value, _, _ in fields]


def _content_length(head: Head) -> int:
    """Content-Length of a head that has one. Raises StreamFault: it is not a length."""
    value = head.named[b"content-length"]
    if not value.isdigit() or len(value) > _DIGITS:
        raise StreamFault("content-length is not a length")
    return int(value)


_M = Http2Machine
_HANDLERS: Final[tuple[Callable[[Http2Machine, int, int, bytes], None], ...]] = (
    *(_M._on_data, _M._on_headers, _M._on_priority, _M._on_reset, _M._on_settings),  # noqa: SLF001
    *(_M._on_push, _M._on_ping, _M._on_goaway, _M._on_window, _M._on_continuation),  # noqa: SLF001
    *(_M._on_unknown,) * 246,  # noqa: SLF001
)
