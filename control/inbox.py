"""The inbox of a subject: its pending events, in order, and the last answers. Pure.

It is one record, so one compare of its version gives all events of a subject their order, wherever they arrive. It
does not rely on the store's revision, which a restore resets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, TypeVar

from control.errors import RequestConflict
from control.records import MAX_RECORD_BYTES
from controlpb.v1 import control_pb2
from serving.errors import Overloaded, TooLarge

MAX_PENDING: Final = 64
MAX_EVENT_BYTES: Final = 256 << 10
# Pending events, their authors and the answers to those just handled must fit into one record together: a larger inbox
# could not be stored, so nothing of its subject would be handled any more.
MAX_PENDING_BYTES: Final = 400 << 10
ANSWERS_KEPT: Final = 32
_LONGEST_WORDS: Final = 500  # characters of a refusal, which may repeat what was sent

Inbox = control_pb2.Inbox
T = TypeVar("T", control_pb2.Event, control_pb2.Answer)


def find(items: Iterable[T], request_id: str) -> T | None:
    """The event or answer of a request."""
    return next((item for item in items if item.request_id == request_id), None)


def was_sent(inbox: Inbox, request_id: str, content: bytes) -> bool:
    """Whether the event is pending, or among the last answers. Raises RequestConflict."""
    pending, answer = find(inbox.pending, request_id), find(inbox.answered, request_id)
    if pending is None and answer is None:
        return False
    if (pending is not None and pending.content != content) or (answer and answer.digest != _digest(content)):
        raise RequestConflict(f"request id {request_id} was used for a different request: use a new one")
    return True


def append(inbox: Inbox, request_id: str, content: bytes, epoch: str, by: str = "", unix_ms: int = 0) -> None:
    """Append an event. Raises TooLarge, Overloaded."""
    if len(content) > MAX_EVENT_BYTES:
        raise TooLarge(f"the event has {len(content)} bytes; the limit is {MAX_EVENT_BYTES}")
    size = sum(len(event.content) for event in inbox.pending) + len(content)
    if len(inbox.pending) >= MAX_PENDING or size > MAX_PENDING_BYTES:
        raise Overloaded(f"{len(inbox.pending)} events of this subject wait to be handled; retry later")
    inbox.last += 1
    inbox.pending.add(sequence=inbox.last, request_id=request_id, content=content, epoch=epoch, by=by, unix_ms=unix_ms)


def answer(inbox: Inbox, refused: str = "", code: str = "") -> None:
    """Remove the oldest event, and remember its outcome; older ones are forgotten where the record has no room."""
    event = inbox.pending.pop(0)
    inbox.answered.add(
        sequence=event.sequence,
        request_id=event.request_id,
        digest=_digest(event.content),
        refused=refused[:_LONGEST_WORDS],
        code=code if refused else "",
    )
    del inbox.answered[:-ANSWERS_KEPT]
    while len(inbox.answered) > 1 and inbox.ByteSize() > MAX_RECORD_BYTES:
        del inbox.answered[0]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:16]
