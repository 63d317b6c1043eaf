"""One stream of a connection: what may be sent on it, what waits, and which sides are open."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

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
        self.expected = -1  # of the body by its content-length, less what came; -1: not said
        self.is_received = self.is_sent = False  # END_STREAM came, or went
        self.has_head = False  # of a client's stream: the final headers of the answer came
        self.owner: Any = None  # what a driver hangs on it; None again when a server is through: else it were a circle
