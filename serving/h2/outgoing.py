"""Streams, and frames on their way out: what windows and room allow goes, the rest waits, and all take turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Final

from serving.h2 import frames
from serving.h2.frames import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, head

NOT_ENDING: Final = b"-"  # no header block begins so


class Http2Stream:
    """State of one stream; the machine and its outgoing side change it, a driver reads it."""

    __slots__ = (
        *("credit", "ending", "expected", "id", "is_received", "is_sent", "opened_in", "owner"),
        *("has_head", "queue", "queued", "sent", "unread", "window"),
    )

    def __init__(self, stream_id: int, window: int, credit: int, opened_in: int = 0) -> None:
        self.id, self.window, self.credit = stream_id, window, credit  # bytes of DATA we may send, and the peer may
        self.opened_in = opened_in  # the turn, to tell a rapid reset
        self.queue: deque[bytes | memoryview] | None = None  # what waits to be sent
        self.queued = self.sent = 0  # bytes that wait; that became frames
        self.unread = 0  # bytes that came and were not reported as consumed
        self.ending: bytes = NOT_ENDING  # the block of trailers that comes behind the queue; empty: END_STREAM alone
        self.expected = -1  # bytes of the body still to come, by its content-length; -1: not said
        self.is_received = self.is_sent = False  # END_STREAM came, or went
        self.has_head = False  # of a client's stream: the final headers of the answer came
        self.owner: Any = None  # the driver's object; a server sets it to None at the end, against a cycle


_TURN_BYTES: Final = 65_536
_SHORT_BYTES: Final = 256
_EARNED: Final = 4  # frames that a peer may send for each of ours: it acknowledges, pings, and opens windows
_EARNED_BYTES: Final = 4_096  # and one more for each of so many bytes


class Outgoing:
    """The sending half of a connection. Nothing here raises: that a frame may be sent was decided before."""

    def __init__(self) -> None:
        self.frames: list[bytes | memoryview] = []
        self.size = 0
        self.window = 65_535  # bytes of DATA that the peer lets us send on all streams together
        self.initial_window = 65_535  # and on a new one
        self.max_frame = 16_384
        self.most_header_bytes = 0  # of one list of headers, as the peer said it; 0: it did not
        self.room = 0  # bytes of DATA that may become frames: as many as the driver's transport takes now
        self.waiting = 0  # bytes that wait in streams
        self.earned = 0  # frames that the peer may send for what it was sent
        self._ready: OrderedDict[Http2Stream, None] = OrderedDict()
        self.must_shrink = False  # the peer's table is smaller than what we might use; we use none, but must say so
        self.ended: list[Http2Stream] = []  # their last frame was made
        self.drained: list[Http2Stream] = []  # nothing waits in them any more

    @property
    def is_ready(self) -> bool:
        """Whether something waits that windows allow."""
        return bool(self._ready) and self.window > 0

    def take(self) -> list[bytes | memoryview]:
        taken, self.frames, self.size = self.frames, [], 0
        return taken

    def control(self, frame: bytes) -> None:
        """Send a frame that no window holds back."""
        self.frames.append(frame)
        self.size += len(frame)

    def headers(self, stream: Http2Stream, block: bytes, *, end: bool) -> None:
        """Send a list of headers, as a block of `hpack.encode`; it must be the first or the last of the stream."""
        self.control(self._header_frames(stream.id, block, END_STREAM if end else 0))
        self.earned += _EARNED
        if end:
            self._mark_sent(stream)

    def data(self, stream: Http2Stream, chunk: bytes, *, end: bool = False) -> None:
        """Send more of the body."""
        size = len(chunk)
        if not stream.queued and (not size or (size <= self.room and size <= stream.window and size <= self.window)):
            if size or end:
                self._emit(stream, chunk, size, END_STREAM if end else 0)
            if end:
                self._mark_sent(stream)
            return
        if size:
            if stream.queue is None:
                stream.queue = deque()
            stream.queue.append(chunk)
            stream.queued += size
            self.waiting += size
        if end:
            stream.ending = b""
        self._ready[stream] = None

    def trailers(self, stream: Http2Stream, block: bytes) -> None:
        """End the stream with trailers, behind whatever waits."""
        if stream.queued:
            stream.ending = block
        else:
            self.headers(stream, block, end=True)

    def answer(self, stream: Http2Stream, block: bytes, chunk: bytes, trailers: bytes, lead: bytes = b"") -> None:
        """Send all of an answer with trailers at once; `lead` is the beginning of the body, before `chunk`."""
        size = len(chunk) + len(lead)
        fits = size <= self.room and size <= stream.window and size <= self.window
        if not fits or len(block) + len(trailers) >= _SHORT_BYTES or self.must_shrink:
            self.headers(stream, block, end=False)
            self.data(stream, lead)
            self.data(stream, chunk)
            self.trailers(stream, trailers)
            return
        # Almost all answers to a single question come here; most are one piece, of three frames.
        pack, number, most = frames.FRAME.pack, stream.id, self.max_frame
        first = pack(0, len(block), HEADERS, END_HEADERS, number) + block
        last = pack(0, len(trailers), HEADERS, END_HEADERS | END_STREAM, number) + trailers
        if size <= most:
            whole = b"".join((first, pack(size >> 8, size & 0xFF, DATA, 0, number), lead, chunk, last))
            self.frames.append(whole)
            self.size += len(whole)
        else:
            full, view, at = head(most, DATA, 0, number), memoryview(chunk), most - len(lead)
            self.frames += (first + full + lead, view[:at])
            while len(chunk) - at > most:
                self.frames += (full, view[at : at + most])
                at += most
            self.frames += (head(len(chunk) - at, DATA, 0, number), view[at:], last)
            self.size += len(first) + len(last) + size + frames.HEADER_BYTES * -(-size // most)
        self.room -= size
        self.window -= size
        self.earned += 3 * _EARNED + size // _EARNED_BYTES
        stream.is_sent = True
        self.ended.append(stream)

    def forget(self, stream: Http2Stream) -> None:
        """Drop a stream that is gone, with all that waits in it."""
        if stream.queue:
            self.waiting -= stream.queued
            stream.queue, stream.queued = None, 0
            self._ready.pop(stream, None)
            self.drained.append(stream)
        stream.ending = NOT_ENDING

    def widen_window(self, stream: Http2Stream | None, more: int) -> bool:
        """Open a window further, of one stream or of all together. False: it is too large now."""
        if stream is None:
            self.window += more
            return self.window <= frames.MAX_WINDOW
        stream.window += more
        if stream.queued and stream.window > 0:
            self._ready[stream] = None
        return stream.window <= frames.MAX_WINDOW

    def resize(self, initial_window: int, streams: list[Http2Stream]) -> bool:
        """Set the window of all streams, and of those to come, as the peer says. False: one is too large now."""
        more, self.initial_window = initial_window - self.initial_window, initial_window
        return all(self.widen_window(stream, more) for stream in streams)

    def pump(self) -> None:
        """Make frames of what waits, as far as windows and room allow, a portion of each stream in turn."""
        ready = self._ready
        while ready and self.room > 0 and self.window > 0:
            stream, _ = ready.popitem(last=False)
            if stream.queue is not None and not stream.is_sent:
                turn = _TURN_BYTES - stream.sent % _TURN_BYTES  # what is left of it
                self._portion(stream, min(stream.window, self.window, self.room, turn))

    def _portion(self, stream: Http2Stream, left: int) -> None:
        queue = stream.queue
        assert queue is not None
        while queue and left > 0:
            chunk = queue[0]
            if len(chunk) > left:
                view = memoryview(chunk)
                chunk, queue[0] = view[:left], view[left:]
            else:
                queue.popleft()
            size = len(chunk)
            stream.queued -= size
            self.waiting -= size
            left -= size
            self._emit(stream, chunk, size, END_STREAM if not queue and stream.ending == b"" else 0)
        if queue:
            if stream.window > 0:
                self._ready[stream] = None
                if stream.sent % _TURN_BYTES:  # its turn was cut short: it is the next
                    self._ready.move_to_end(stream, last=False)
            return
        self.drained.append(stream)
        if stream.ending == b"":
            self._mark_sent(stream)
        elif stream.ending != NOT_ENDING:
            self.headers(stream, stream.ending, end=True)

    def _emit(self, stream: Http2Stream, chunk: bytes | memoryview, size: int, flags: int) -> None:
        most, number, at = self.max_frame, stream.id, 0
        self.room -= size
        self.window -= size
        stream.window -= size
        stream.sent += size
        self.earned += _EARNED + size // _EARNED_BYTES
        if size > most:
            chunk, full = memoryview(chunk), head(most, DATA, 0, number)
            while size - at > most:
                self.frames += (full, chunk[at : at + most])
                at += most
            chunk = chunk[at:]
        self.frames += (head(size - at, DATA, flags, number), chunk)
        self.size += size + frames.HEADER_BYTES * (at // most + 1)

    def _mark_sent(self, stream: Http2Stream) -> None:
        stream.is_sent = True
        self.ended.append(stream)

    def _header_frames(self, stream_id: int, block: bytes, flags: int) -> bytes:
        if self.must_shrink:
            block, self.must_shrink = b"\x20" + block, False
        kind, most, made = HEADERS, self.max_frame, b""
        while len(block) > most:
            made += frames.frame(kind, flags, stream_id, block[:most])
            kind, flags, block = CONTINUATION, 0, block[most:]
        return made + head(len(block), kind, flags | END_HEADERS, stream_id) + block
