"""One stream of a connection: what may be sent on it, what waits, and which sides are open."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

NOT_ENDING: Final = b"-"  # no header block begins so


class Stream:
    """State of one stream; the machine and its outgoing side change it, a driver reads it.

    Attributes:
        window: bytes of DATA that the peer lets us send.
        queue, queued: what waits to be sent, and its bytes; sent: bytes that became frames.
        ending: the block of trailers that comes behind the queue; empty: END_STREAM alone.
        credit: bytes of DATA that the peer may still send.
        unread: bytes that came and were not reported as consumed.
        expected: of the body by its content-length, less what came; -1: not said.
        owner: whatever the driver hangs on it; None again when a server is through with it, else it would be a circle.
    """

    __slots__ = (
        *("credit", "ending", "expected", "id", "is_received", "is_sent", "opened_in", "owner"),
        *("has_head", "queue", "queued", "sent", "unread", "window"),
    )

    def __init__(self, stream_id: int, window: int, credit: int, opened_in: int = 0) -> None:
        self.id, self.window, self.credit = stream_id, window, credit
        self.opened_in = opened_in  # the turn, to tell a rapid reset
        self.queue: deque[bytes | memoryview] | None = None
        self.queued = self.unread = self.sent = 0
        self.ending: bytes = NOT_ENDING
        self.expected = -1
        self.is_received = self.is_sent = False  # END_STREAM came, or went
        self.has_head = False  # of a client's stream: the final headers of the answer came
        self.owner: Any = None
