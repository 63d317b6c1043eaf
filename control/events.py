"""Events: orders and results are stored first, then handled in order, once.

All pending events of one subject are in one record, its inbox (inbox.py). One transaction stores what
an event changes and removes it from the inbox: it takes effect once. Any process accepts events; the acting one
handles them. An event that cannot be read stops its subject, which the reconciler's failure shows, until a version that
understands it acts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from control.change import Change, Changes
from control.errors import (
    EventRefused,
    NotHandledYet,
    RecordChanged,
    Refused,
    UnreadableEvent,
)
from control.inbox import answer, append, find, was_sent
from control.records import Kind, Records, check_id
from controlpb.v1 import control_pb2
from serving.errors import InvalidRequest, TooLarge, invalid
from store.port import Compare, Write

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Message)
Handler = Callable[[Change, str, E], None]

MAX_REQUEST_ID: Final = 128
FORGOTTEN_AFTER_S: Final = 3600.0  # after that, a repeated request counts as a new one
_AT_ONCE = 16  # events of one subject handled in one transaction


class Events(Generic[E]):
    """The events of all subjects of one kind.

    `handle(change, subject, event)` is a pure function of what it reads through the change: it is called again when the
    transaction fails, and only what it puts counts. It raises Refused to change nothing and say why, UnreadableEvent
    for what it does not understand.
    """

    def __init__(self, name: str, message: type[E], handle: Handler[E], parts: EventParts) -> None:
        self.name, self._message, self._handle, self._parts = name, message, handle, parts
        self.kind = Kind(f"events.{name}", control_pb2.Inbox)
        self._inboxes: Records[control_pb2.Inbox] = parts.changes.memory.table(self.kind)
        self._inboxes.listen(self._wake_waiters)
        self._idle: dict[str, tuple[int, float]] = {}  # version of an inbox without pending events, and since when
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = defaultdict(list)

    # --- at any process ---------------------------------------------------------------------------------------------

    async def submit(
        self, subject: str, event: E, *, request_id: str = "", by: str = "", timeout_s: float = 5.0
    ) -> None:
        """Store an event and return when it has taken effect and memory shows that.

        Args:
            request_id: a repeat with the same id and content is the same event, with one outcome. Remembered for
                the last 32 events of the subject, for an hour at least.
            by: the author, for people.

        Raises:
            EventRefused: it was handled, and changed nothing.
            RequestConflict: the id was used with another content.
            NotHandledYet: it is stored and will be handled, but was not within the timeout.
            InvalidRequest, TooLarge, Overloaded, StoreUnavailable, StoreFull, DeadlineExceeded: nothing was stored.
            OutcomeUnknown: send it again with the same request id.
        """
        deadline = self._parts.changes.clock.now() + timeout_s
        request_id = request_id or f"{self._parts.rng.getrandbits(128):032x}"
        await self.store(subject, event, request_id=request_id, by=by, timeout_s=timeout_s)
        try:
            async with asyncio.timeout(max(0.0, deadline - self._parts.changes.clock.now())):
                await self._until_handled(subject, request_id)
        except TimeoutError:
            raise NotHandledYet(
                f"{self.name} {subject}: the request is stored but not yet carried out; {self._parts.why_waiting()}; "
                "look again before you repeat it"
            ) from None
        outcome = find(self._inboxes.get(subject, control_pb2.Inbox()).answered, request_id)
        if outcome is not None and outcome.refused:
            raise EventRefused(outcome.refused, outcome.code)  # type: ignore[arg-type]

    async def store(self, subject: str, event: E, *, request_id: str, by: str = "", timeout_s: float = 5.0) -> None:
        """Like `submit`, but return as soon as the event is stored: the records show its outcome."""
        check_id(self.name, subject)
        if not request_id.isprintable() or not 0 < len(request_id) <= MAX_REQUEST_ID:
            raise invalid("request_id", f"write 1 to {MAX_REQUEST_ID} printable characters")
        content = event.SerializeToString(deterministic=True)
        deadline = self._parts.changes.clock.now() + timeout_s
        while True:
            inbox = self._inbox(subject)
            if was_sent(inbox, request_id, content):
                return
            append(inbox, request_id, content, self._parts.epoch(), by, self._parts.changes.clock.wall_ms())
            # Another event may arrive or be handled in between.
            with suppress(RecordChanged):
                await self._put_inbox(subject, inbox, deadline - self._parts.changes.clock.now())
                return

    def subjects(self) -> Iterator[str]:
        """All subjects with an inbox."""
        return self._inboxes.ids()

    def pending(self, subject: str) -> list[control_pb2.Event]:
        """Events that are not handled yet, oldest first. Raises Unreadable."""
        return list(self._inboxes.get(subject, control_pb2.Inbox()).pending)

    # --- at the acting process --------------------------------------------------------------------------------------

    async def run(self, subject: str) -> float | None:
        """Handle what is pending of a subject: the run of a reconciler."""
        await self._handle_pending(subject)
        return await self._forget_if_idle(subject)

    async def _forget_if_idle(self, subject: str) -> float | None:
        """Delete an inbox that was idle for long; return when to look again."""
        stored, now = self._inboxes.stored_record(subject), self._parts.changes.clock.now()
        if stored is None or stored.message.pending:
            self._idle.pop(subject, None)
            return None
        version, since = self._idle.get(subject, (0, now))
        if version != stored.version or now - since < FORGOTTEN_AFTER_S:
            self._idle[subject] = (stored.version, now if version != stored.version else since)
            return FORGOTTEN_AFTER_S
        change = self._parts.change()
        change.get(self.kind, subject)
        change.delete(self.kind, subject)
        await change.commit()
        return None

    async def _handle_pending(self, subject: str) -> None:
        at_once = _AT_ONCE
        while (stored := self._inboxes.stored_record(subject)) is not None and stored.message.pending:
            change = self._parts.change()
            inbox = change.get(self.kind, subject)
            assert inbox is not None
            if not (handled := self._handle_some(change, subject, inbox, at_once)):
                return  # from an earlier epoch: it waits until the new one is opened
            change.put(self.kind, subject, inbox)
            try:
                await change.commit()
            except TooLarge as error:  # several events together; one that is too large alone is refused
                await self._refuse_first(subject, error, handled)
                at_once = 1
                continue
            at_once = _AT_ONCE
            log.debug("%d events of %s %s were handled", handled, self.name, subject)

    async def _refuse_first(self, subject: str, error: TooLarge, handled: int) -> None:
        """Refuse the first event: if the store will never take it, it must not block those behind it."""
        if handled > 1:
            return
        change = self._parts.change()
        inbox = change.get(self.kind, subject)
        assert inbox is not None
        answer(inbox, str(error), error.code)
        change.put(self.kind, subject, inbox)
        await change.commit()

    def _handle_some(self, change: Change, subject: str, inbox: control_pb2.Inbox, at_once: int) -> int:
        handled = 0
        while inbox.pending and handled < at_once and self._parts.may_handle(inbox.pending[0].epoch):
            try:
                self._handle_one(change, subject, inbox)
            except Exception:
                if not handled:
                    raise
                break  # store the events before it; the next run starts with it
            handled += 1
        return handled

    def _handle_one(self, change: Change, subject: str, inbox: control_pb2.Inbox) -> None:
        event, undo = inbox.pending[0], change.savepoint()
        refused = Refused("")
        try:
            self._handle(change, subject, self._message.FromString(event.content))
        except Refused as error:
            undo()
            refused = error
        except (TooLarge, InvalidRequest) as error:  # a repeat would fail alike, and stop all events behind it
            undo()
            refused = Refused(str(error), error.code)
        except (DecodeError, UnreadableEvent) as error:
            undo()
            where = f"event {event.sequence} of {self.name} {subject} cannot be read"
            raise UnreadableEvent(f"{where}: {error}: upgrade this process") from error
        except Exception:
            undo()
            raise
        answer(inbox, str(refused), refused.code)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _inbox(self, subject: str) -> control_pb2.Inbox:
        copy = control_pb2.Inbox()
        copy.CopyFrom(self._inboxes.get(subject, copy))
        return copy

    async def _put_inbox(self, subject: str, inbox: control_pb2.Inbox, timeout_s: float) -> None:
        key = self._parts.changes.names.of(self.kind.name, subject)
        when = Compare(key, "modified", self._inboxes.version(subject))
        value = inbox.SerializeToString(deterministic=True)
        await self._parts.changes.store(key.decode(), Write((when,), ((key, value),)), (), timeout_s)

    async def _until_handled(self, subject: str, request_id: str) -> None:
        while find(self.pending(subject), request_id) is not None:
            moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[subject].append(moved)
            await moved

    def _wake_waiters(self, subject: str) -> None:
        for future in self._waiting.pop(subject, ()):
            if not future.done():
                future.set_result(None)


@dataclass(frozen=True, slots=True)
class EventParts:
    """Parts that all kinds of events share at one process.

    Attributes:
        may_handle: whether events of an epoch are handled now.
        why_waiting: why events may not be handled.
    """

    changes: Changes
    change: Callable[[], Change]
    epoch: Callable[[], str]
    may_handle: Callable[[str], bool]
    why_waiting: Callable[[], str]
    rng: random.Random
