"""Frames on their way out: what windows and room allow goes, the rest waits in its stream, and all take turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from serving.h2 import frames
from serving.h2.frames import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, head
from serving.h2.stream import NOT_ENDING, Stream

_TURN_BYTES: Final = 65_536
_JOINED_BYTES: Final = 4_096  # a body is not copied for the sake of the bytes before it, unless it is smaller
_LEAD_BYTES: Final = 5
_SHORT_BYTES: Final = 256
_EARNED: Final = 4  # frames that a peer may send for each of ours: it acknowledges, pings, and opens windows
_EARNED_BYTES: Final = 4_096  # and one more for each of so many bytes


class Outgoing:
    """The sending half of a connection. Nothing here raises: whether it may be said was decided before.

    Attributes:
        room: bytes of DATA that may become frames until the driver says more: its transport takes no more now.
        waiting: bytes that wait in streams.
        window: bytes of DATA that the peer lets us send on all streams together.
        most_header_bytes: of one list of headers, as the peer said it; 0: it did not.
        earned: frames that the peer may send for what it was sent.
        ended: streams whose last frame was made; drained: those in which nothing waits any more.
    """

    __slots__ = (
        *("_initial_window", "_ready", "_shrink", "drained", "earned", "ended", "frames", "max_frame"),
        *("most_header_bytes", "room", "size", "waiting", "window"),
    )

    def __init__(self) -> None:
        self.frames: list[bytes | memoryview] = []
        self.size = 0
        self.window = self._initial_window = 65_535
        self.max_frame = 16_384
        self.most_header_bytes = 0
        self.room = self.waiting = self.earned = 0
        self._ready: OrderedDict[Stream, None] = OrderedDict()
        self._shrink = b""
        self.ended: list[Stream] = []
        self.drained: list[Stream] = []

    @property
    def initial_window(self) -> int:
        """Of streams that are opened now."""
        return self._initial_window

    @property
    def is_ready(self) -> bool:
        """Something waits that windows allow."""
        return bool(self._ready) and self.window > 0

    def take(self) -> list[bytes | memoryview]:
        """What is to be written now."""
        taken, self.frames, self.size = self.frames, [], 0
        return taken

    def control(self, frame: bytes) -> None:
        """A frame that no window holds back."""
        self.frames.append(frame)
        self.size += len(frame)

    # --- what streams say ---

    def headers(self, stream: Stream, block: bytes, *, end: bool) -> None:
        """A list of headers, as a block of `hpack.encode`; they must be the first or the last of the stream."""
        self.control(self._header_frames(stream.id, block, END_STREAM if end else 0))
        self.earned += _EARNED
        if end:
            self._ended(stream)

    def data(self, stream: Stream, chunk: bytes, *, end: bool = False) -> None:
        """More of the body."""
        size = len(chunk)
        fits = size <= self.room and size <= stream.window and size <= self.window
        if not stream.queued and (fits or not size):
            if size or end:
                self._emit(stream, chunk, size, END_STREAM if end else 0)
            if end:
                self._ended(stream)
            return
        if size:
            self._queue(stream, chunk)
        if end:
            stream.ending = b""
        self._schedule(stream)

    def trailers(self, stream: Stream, block: bytes) -> None:
        """The end of the stream, behind whatever waits."""
        if stream.queued:
            stream.ending = block
        else:
            self.headers(stream, block, end=True)

    def answer(self, stream: Stream, block: bytes, chunk: bytes, trailers: bytes, lead: bytes = b"") -> None:
        """All of an answer with trailers at once; `lead` is the beginning of the body, before `chunk`."""
        size = len(chunk) + len(lead)
        if size > self.room or size > stream.window or size > self.window or self._shrink:
            self.headers(stream, block, end=False)
            if len(chunk) < _JOINED_BYTES:
                self.data(stream, lead + chunk)
            else:
                self._queue(stream, lead)
                self._queue(stream, chunk)
                self._schedule(stream)
            self.trailers(stream, trailers)
            return
        if size <= self.max_frame and len(block) + len(trailers) < _SHORT_BYTES:
            self._small_answer(stream, block, lead, chunk, size, trailers)
        else:
            self.control(self._header_frames(stream.id, block, 0))
            self._emit(stream, chunk, len(chunk), 0, lead)
            self.control(self._header_frames(stream.id, trailers, END_STREAM))
        self.earned += 2 * _EARNED
        stream.is_sent = True
        self.ended.append(stream)

    def _small_answer(
        self, stream: Stream, block: bytes, lead: bytes, chunk: bytes, size: int, trailers: bytes
    ) -> None:
        """In one piece, of three frames: almost all answers to a single question are."""
        pack, number = frames.FRAME.pack, stream.id
        data = pack(size >> 8, size & 0xFF, DATA, 0, number)
        last = pack(0, len(trailers), HEADERS, END_HEADERS | END_STREAM, number)
        first = pack(0, len(block), HEADERS, END_HEADERS, number)
        whole = b"".join((first, block, data, lead, chunk, last, trailers))
        self.frames.append(whole)
        self.size += len(whole)
        self.room -= size
        self.window -= size
        self.earned += _EARNED + size // _EARNED_BYTES

    def forget(self, stream: Stream) -> None:
        """The stream is gone, with all that waits in it."""
        if stream.queue:
            self.waiting -= stream.queued
            stream.queue, stream.queued = None, 0
            self._ready.pop(stream, None)
            self.drained.append(stream)
        stream.ending = NOT_ENDING

    # --- what the peer says ---

    def opened(self, stream: Stream | None, more: int) -> bool:
        """A window was opened further, of one stream or of all together. False: it would be too large."""
        if stream is None:
            self.window += more
            return self.window <= frames.MAX_WINDOW
        stream.window += more
        if stream.queued and stream.window > 0:
            self._schedule(stream)
        return stream.window <= frames.MAX_WINDOW

    def resize(self, initial_window: int, streams: list[Stream]) -> bool:
        """The peer has set the window of all streams, and of those to come. False: one would be too large."""
        more, self._initial_window = initial_window - self._initial_window, initial_window
        return all(self.opened(stream, more) for stream in streams)

    def shrink_table(self) -> None:
        """The peer wants a smaller table: we use none, but must say so where it is smaller than what we might use."""
        self._shrink = b"\x20"

    # --- turns ---

    def pump(self) -> None:
        """Make frames of what waits, as far as windows and room allow, a portion of each stream in turn."""
        ready = self._ready
        while ready and self.room > 0 and self.window > 0:
            stream, _ = ready.popitem(last=False)
            if stream.queue is not None and not stream.is_sent:
                self._portion(stream, min(stream.window, self.window, self.room, _TURN_BYTES))

    def _portion(self, stream: Stream, left: int) -> None:
        was_cut = left == self.room < _TURN_BYTES
        queue = stream.queue
        assert queue is not None
        lead: bytes | memoryview = b""
        while queue and left > 0:
            chunk = queue[0]
            if len(queue) > 1 and len(chunk) <= _LEAD_BYTES and len(chunk) < left:
                lead = queue.popleft()  # goes in one frame with what comes behind it
                left -= len(lead)
                chunk = queue[0]
            if len(chunk) > left:
                view = memoryview(chunk)
                chunk, queue[0] = view[:left], view[left:]
            else:
                queue.popleft()
            size = len(chunk)
            stream.queued -= size + len(lead)
            self.waiting -= size + len(lead)
            left -= size
            self._emit(stream, chunk, size, END_STREAM if not queue and stream.ending == b"" else 0, bytes(lead))
            lead = b""
        if queue:
            if stream.window > 0:
                self._schedule(stream, is_next=was_cut)
            return
        self.drained.append(stream)
        if stream.ending == b"":
            self._ended(stream)
        elif stream.ending != NOT_ENDING:
            self.headers(stream, stream.ending, end=True)

    def _emit(self, stream: Stream, chunk: bytes | memoryview, size: int, flags: int, lead: bytes = b"") -> None:
        before, most, number = len(lead), self.max_frame, stream.id
        total = size + before
        self.room -= total
        self.window -= total
        stream.window -= total
        stream.sent += total
        self.earned += _EARNED + total // _EARNED_BYTES
        if total <= most:
            self.frames += (head(total, DATA, flags, number) + lead, chunk)
            self.size += total + frames.HEADER_BYTES
            return
        view, full, at = memoryview(chunk), head(most, DATA, 0, number), most - before
        self.frames += (full + lead, view[:at])
        while size - at > most:
            self.frames += (full, view[at : at + most])
            at += most
        self.frames += (head(size - at, DATA, flags, number), view[at:])
        self.size += total + frames.HEADER_BYTES * ((total - 1) // most + 1)

    def _queue(self, stream: Stream, chunk: bytes) -> None:
        if stream.queue is None:
            stream.queue = deque()
        stream.queue.append(chunk)
        stream.queued += len(chunk)
        self.waiting += len(chunk)

    def _schedule(self, stream: Stream, *, is_next: bool = False) -> None:
        self._ready[stream] = None
        if is_next:  # its turn was cut short
            self._ready.move_to_end(stream, last=False)

    def _ended(self, stream: Stream) -> None:
        stream.is_sent = True
        self.ended.append(stream)

    def _header_frames(self, stream_id: int, block: bytes, flags: int) -> bytes:
        if self._shrink:
            block, self._shrink = self._shrink + block, b""
        most = self.max_frame
        if len(block) <= most:
            return head(len(block), HEADERS, flags | END_HEADERS, stream_id) + block
        parts = [block[start : start + most] for start in range(0, len(block), most)]
        made = [frames.frame(HEADERS, flags, stream_id, parts[0])]
        made += [frames.frame(CONTINUATION, 0, stream_id, part) for part in parts[1:-1]]
        made.append(frames.frame(CONTINUATION, END_HEADERS, stream_id, parts[-1]))
        return b"".join(made)
