"""Two processes that decide at the same moment never allow more than the limit: a search over all interleavings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.walle.fuses import Panel
from walle.fuses.admission import AutomaticAction, Fuses, admit
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import Fuse

HOSTS = ("h1", "h2", "h3", "h4")
LIMIT = 2


class Reading(NamedTuple):
    """What one process has read and wants to store."""

    host: str
    versions: tuple[int, int]
    project: bytes
    everywhere: bytes
    allowed: bool


class State(NamedTuple):
    """The store with both fuses, who was allowed, and what each process has in hand."""

    project: bytes
    everywhere: bytes
    versions: tuple[int, int]
    allowed: frozenset[str]
    hands: tuple[Reading | None, ...]


def read(panel: Panel, state: State, host: str) -> Reading:
    fuses = Fuses(Fuse.FromString(state.project), panel.limits, Fuse.FromString(state.everywhere), panel.global_limits)
    action = AutomaticAction(host, "UNREACHABLE", OPERATION_KIND_REBOOT, HOST_STATE_ASSIGNED)
    done = admit(fuses, action, panel.now)
    project, everywhere = (f.SerializeToString(deterministic=True) for f in (done.project, done.everywhere))
    return Reading(host, state.versions, project, everywhere, done.is_allowed)


def store(state: State, process: int, *, compared: bool) -> State:
    """One transaction, which with `compared` is refused if what was read has changed since."""
    hand = state.hands[process]
    assert hand is not None
    hands = tuple(None if i == process else h for i, h in enumerate(state.hands))
    if compared and hand.versions != state.versions:
        return state._replace(hands=hands)
    versions = (state.versions[0] + 1, state.versions[1] + 1)
    allowed = state.allowed | ({hand.host} if hand.allowed else set())
    return State(hand.project, hand.everywhere, versions, allowed, hands)


def following(panel: Panel, state: State, *, compared: bool) -> Iterator[State]:
    for process, hand in enumerate(state.hands):
        if hand is not None:
            yield store(state, process, compared=compared)
            continue
        for host in HOSTS:
            if host not in state.allowed:
                hands = tuple(read(panel, state, host) if i == process else h for i, h in enumerate(state.hands))
                yield state._replace(hands=hands)


def most_allowed(panel: Panel, *, compared: bool) -> int:
    """The most hosts that any interleaving allows."""
    first = State(b"", b"", (0, 0), frozenset(), (None, None))
    seen, todo = {first}, [first]
    while todo:
        for state in following(panel, todo.pop(), compared=compared):
            # Versions only matter relative to what is in hand.
            if state not in seen and state.versions[0] < 8:
                seen.add(state)
                todo.append(state)
    return max(len(state.allowed) for state in seen)


def test_two_processes_never_allow_more_than_the_projects_limit() -> None:
    assert most_allowed(Panel(limits={"UNREACHABLE": [f"1d:{LIMIT}"]}), compared=True) == LIMIT


def test_two_processes_never_allow_more_than_the_global_limit() -> None:
    panel = Panel(global_limits={"max_rebooted_hosts": [f"1d:{LIMIT}"]})
    assert most_allowed(panel, compared=True) == LIMIT


@pytest.mark.long
def test_the_search_finds_the_bug_if_transactions_do_not_compare() -> None:
    assert most_allowed(Panel(limits={"UNREACHABLE": [f"1d:{LIMIT}"]}), compared=False) > LIMIT
