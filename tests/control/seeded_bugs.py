"""Bugs of the kit that tests put in, and the judge must find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from control.acting import HolderSilence, LeaderElection, Sight
from control.change import Change
from control.effects import EffectIntent
from control.events import Events
from control.inbox import Inbox, append, was_sent

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]


def word_not_compared(patch: Patch) -> None:
    """Changes do not compare the acting word."""
    made = Change.__init__

    def init(self: Change, *arguments: Any) -> None:
        made(self, *arguments)
        self._guards = ()

    patch.setattr(Change, "__init__", init)
    patch.setattr(LeaderElection, "holds", lambda self: bool(self._word))


def event_removed_later(patch: Patch) -> None:
    """The event leaves the inbox in a transaction of its own."""

    async def run(self: Events[Any], subject: str) -> None:
        change = self._parts.change()
        inbox = change.get(self.kind, subject)
        if inbox is None or not self._handle_some(change, subject, inbox, 16):
            return
        await change.commit()
        later = self._parts.change()
        later.get(self.kind, subject)
        later.put(self.kind, subject, inbox)
        await later.commit()

    patch.setattr(Events, "run", run)


def request_ids_not_looked_at(patch: Patch) -> None:
    """An order that is sent again is another one."""

    def is_pending(inbox: Inbox, request_id: str, content: bytes) -> bool:
        without = Inbox(pending=inbox.pending)
        return was_sent(without, request_id, content)

    patch.setattr("control.events.was_sent", is_pending)


def event_written_over(patch: Patch) -> None:
    """A full inbox lets the newest event take the place of the oldest."""

    def replace(inbox: Inbox, *arguments: Any) -> None:
        if inbox.pending:
            inbox.pending.pop(0)
        append(inbox, *arguments)

    patch.setattr("control.events.append", replace)


def successor_in_a_hurry(patch: Patch) -> None:
    """The word is taken after a tenth of a term."""

    def is_over(self: HolderSilence, sight: Sight) -> bool:
        return not sight.word or (sight == self._sight and self._looked - self._since >= self._term_s / 10)

    patch.setattr(HolderSilence, "is_over", is_over)


def effects_not_checked(patch: Patch) -> None:
    """Effects begin whenever they come to it."""
    patch.setattr(EffectIntent, "check", lambda self, new=True: None)


BUGS: Iterable[Bug] = (
    word_not_compared,
    event_removed_later,
    request_ids_not_looked_at,
    event_written_over,
    successor_in_a_hurry,
    effects_not_checked,
)
