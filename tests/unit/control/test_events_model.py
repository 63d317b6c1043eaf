"""An exhaustive search over events: two that submit, one that repeats, two that handle; each step may be the last.

Every process works on a copy that it read some time ago, and stores by a compare; an answer may be lost, and whoever
misses it sends the same again. The rules themselves (inbox.py) are those of the kit. The acting word takes no part: it
keeps two from acting, but that each event takes effect once does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from control.inbox import Inbox, answer, append, was_sent

REQUESTS = {"first": "a", "second": "b", "repeating": "a"}  # by process
HANDLERS = ("one", "two")


class Stored(NamedTuple):
    """What the store holds: the inbox with its version, and what the events did."""

    inbox: bytes = b""
    version: int = 0
    effects: tuple[str, ...] = ()


class World(NamedTuple):
    """The store, the copy that each process has read, and who still waits for an answer."""

    stored: Stored
    copies: tuple[Stored | None, ...]
    waiting: frozenset[str]


class Rules(NamedTuple):
    """The rules of the inbox; a test switches one off."""

    submit_compares: bool = True
    looks_for_answers: bool = True
    removes_with_the_effect: bool = True


PROCESSES = (*REQUESTS, *HANDLERS)


def steps(world: World, rules: Rules) -> Iterator[World]:
    for at, process in enumerate(PROCESSES):
        copy = world.copies[at]
        if process in REQUESTS and process not in world.waiting:
            continue
        if copy is None:
            yield world._replace(copies=put(world.copies, at, world.stored))
            continue
        yield world._replace(copies=put(world.copies, at, None))  # killed, or told of the conflict
        if process in REQUESTS:
            yield from submitted(world, at, copy, rules)
        elif Inbox.FromString(copy.inbox).pending and copy.version == world.stored.version:
            yield handled(world, at, copy, rules)
            if not rules.removes_with_the_effect:
                event = Inbox.FromString(copy.inbox).pending[0]
                stored = world.stored._replace(effects=(*world.stored.effects, event.request_id))
                yield World(stored, put(world.copies, at, None), world.waiting)  # killed in between


def submitted(world: World, at: int, copy: Stored, rules: Rules) -> Iterator[World]:
    process = PROCESSES[at]
    inbox = Inbox.FromString(copy.inbox)
    if not rules.looks_for_answers:
        del inbox.answered[:]
    copies, done = put(world.copies, at, None), world.waiting - {process}
    if was_sent(inbox, REQUESTS[process], b""):
        yield World(world.stored, copies, done)
    elif copy.version == world.stored.version or not rules.submit_compares:
        inbox = Inbox.FromString(copy.inbox)
        append(inbox, REQUESTS[process], b"", "epoch")
        stored = Stored(inbox.SerializeToString(), world.stored.version + 1, world.stored.effects)
        yield World(stored, copies, done)
        if process != "repeating":
            yield World(stored, copies, world.waiting)  # the answer is lost


def handled(world: World, at: int, copy: Stored, rules: Rules) -> World:
    inbox = Inbox.FromString(copy.inbox)
    effects = (*world.stored.effects, inbox.pending[0].request_id)
    answer(inbox)
    stored = Stored(inbox.SerializeToString(), world.stored.version + 1, effects)
    return World(stored, put(world.copies, at, None), world.waiting)


def put(copies: tuple[Stored | None, ...], at: int, copy: Stored | None) -> tuple[Stored | None, ...]:
    return (*copies[:at], copy, *copies[at + 1 :])


def wrong(world: World) -> str:
    """What is wrong in a world; empty: nothing."""
    inbox, effects = Inbox.FromString(world.stored.inbox), world.stored.effects
    if len(set(effects)) < len(effects):
        return f"handled twice: {effects}"
    pending = [event.request_id for event in inbox.pending]
    if [event.sequence for event in inbox.pending] != [*range(len(effects) + 1, inbox.last + 1)]:
        return "a sequence is missing"
    lost = {REQUESTS[process] for process in REQUESTS.keys() - world.waiting} - {*effects, *pending}
    return f"lost: {lost}" if lost else ""


def search(rules: Rules) -> str:
    """Search everything that can happen; return the first thing that goes wrong, empty if nothing ever does."""
    start = World(Stored(), (None,) * len(PROCESSES), frozenset(REQUESTS))
    reached, fresh = {start}, [start]
    ends = 0
    while fresh:
        after = {step for world in fresh for step in steps(world, rules)} - reached
        for world in after:
            if why := wrong(world):
                return why
            ends += not world.waiting and not Inbox.FromString(world.stored.inbox).pending
        reached |= after
        fresh = list(after)
    return "" if ends else "nothing ever ends"


@pytest.mark.long
def test_no_event_is_lost_or_handled_twice_whatever_is_killed() -> None:
    assert search(Rules()) == ""


WRONG = {
    "a submission compares nothing": Rules(submit_compares=False),
    "answers are not looked at": Rules(looks_for_answers=False),
    "the event is removed in another transaction": Rules(removes_with_the_effect=False),
}


@pytest.mark.parametrize("rule", WRONG)
def test_the_search_finds_a_rule_that_is_wrong(rule: str) -> None:
    assert search(WRONG[rule]) != ""
