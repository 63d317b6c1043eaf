"""An exhaustive search over two processes, one that acts and one that would: pauses, late transactions, late fences.

Time goes in ticks, four to a term. In each tick either process runs or is paused; what was sent takes place at any
later tick or, where a condition does not hold, never. What is searched for: an effect of the first process when the
second may act already. The effect comes up to half a term after the look that allowed it, for the process may be paused
in between. The rules themselves (Silence, Tenure) are those of the kit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from control.acting import HolderSilence, Sight, Tenure

TERM, HALF = 4, 2
LONG_AGO = -9  # ticks; what is older makes no difference


class World(NamedTuple):
    """Everything at a tick, which is 0: times are negative. LONG_AGO: never, or none is under way.

    Attributes:
        taken: the second process has the word.
        refresh: which refresh of the first one is stored.
        sent_at: of the refresh that the first one knows to be stored.
        flight, is_stored: when the refresh under way was sent, and whether it took place.
        intent_at: when a transaction with an intent was sent that succeeded.
        armed_at: when the first process looked last and found that the effect may begin.
        known, since, looked: what the second process knows: a refresh, unchanged since when, the last look.
        asked_at, asked_of: the second one's fence under way, and which refresh was stored then.
        taking: the second one's takeover under way: the refresh that it compares; -1: none is.
    """

    taken: bool = False
    refresh: int = 0
    sent_at: int = 0
    flight: int = LONG_AGO
    is_stored: bool = False
    intent_at: int = LONG_AGO
    armed_at: int = LONG_AGO
    known: int = -1
    since: int = LONG_AGO
    looked: int = LONG_AGO
    asked_at: int = LONG_AGO
    asked_of: int = -1
    taking: int = -1

    def a_tick_later(self) -> World:
        """The same world with all times one tick older; values that lead to the same future become equal."""
        refreshes = sorted({self.refresh, self.known, self.asked_of, self.taking, -1})
        number = {refresh: i - 1 for i, refresh in enumerate(refreshes)}
        looked = _older(self.looked, 2 * TERM)
        asked_at = _older(self.asked_at, TERM)
        return self._replace(
            refresh=number[self.refresh],
            sent_at=_older(self.sent_at, TERM),
            flight=max(self.flight - 1, -TERM) if self.flight != LONG_AGO else LONG_AGO,
            intent_at=_older(self.intent_at, HALF),
            armed_at=_older(self.armed_at, HALF),
            known=number[self.known] if looked != LONG_AGO else -1,
            since=max(self.since - 1, looked - TERM, LONG_AGO),
            looked=looked,
            asked_at=asked_at,
            asked_of=number[self.asked_of] if asked_at != LONG_AGO else -1,
            taking=number[self.taking],
        )


def _older(at: int, matters_for: int) -> int:
    return at - 1 if at - 1 >= -matters_for else LONG_AGO


class Rules(NamedTuple):
    """The kit's rules; a test replaces one by a wrong one.

    Attributes:
        may_begin: whether an effect may begin, by the times at which the known refresh and the intent were sent.
        known_since: the time from which a refresh counts, by the time at which it was sent.
        compares_refresh: a takeover takes place only if the refresh is the one that was seen.
    """

    may_begin: Callable[[int, int], bool] = lambda sent_at, intent_at: tenure(sent_at).is_sure(0) and -intent_at < HALF
    known_since: Callable[[int], int] = lambda sent_at: sent_at
    compares_refresh: bool = True


def tenure(sent_at: int) -> Tenure:
    made = Tenure(TERM)
    made.extend_term(sent_at)
    return made


def the_first(world: World, rules: Rules) -> Iterator[World]:
    """What the process that acts may do in a tick."""
    yield world  # paused
    if world.is_stored:
        world = world._replace(sent_at=rules.known_since(world.flight), flight=LONG_AGO, is_stored=False)
    if world.flight == LONG_AGO and not world.taken:
        world = world._replace(flight=0)
    for intending in (world, world._replace(intent_at=0)) if not world.taken else (world,):
        yield intending
        if rules.may_begin(intending.sent_at, intending.intent_at):
            yield intending._replace(armed_at=0)


def the_store(world: World, rules: Rules) -> Iterator[World]:
    """Let what was sent take place, or not yet."""
    yield world
    if world.flight != LONG_AGO and not world.is_stored:
        stored = world._replace(refresh=world.refresh + 1, is_stored=True)
        yield world._replace(flight=LONG_AGO) if world.taken else stored
    if world.taking != -1:
        is_unchanged = world.taking == world.refresh or not rules.compares_refresh
        yield world._replace(taken=world.taken or is_unchanged, taking=-1)


def the_second(world: World) -> Iterator[World]:
    """What the process that would act may do in a tick."""
    yield world  # paused
    if world.taken or world.taking != -1:
        return
    if world.asked_at == LONG_AGO:
        world = world._replace(asked_at=0, asked_of=world.refresh)
        yield world
    for seen in {world.asked_of, world.refresh}:
        silence = HolderSilence(TERM)
        silence._sight, silence._since, silence._looked = Sight(1, world.known), world.since, world.looked
        silence.record_sight(Sight(1, seen), world.asked_at, 0)
        after = world._replace(known=seen, since=int(silence._since), looked=int(silence._looked), asked_at=LONG_AGO)
        yield after._replace(taking=seen) if silence.is_over(Sight(1, seen)) else after


def harm(rules: Rules) -> World | None:
    """Search every sequence of ticks; return a world in which both processes act, None if there is none."""
    fresh, reached = {World()}, set[World]()
    while fresh:
        reached |= fresh
        after = {
            stored_too
            for world in fresh
            for first in the_first(world, rules)
            for stored in the_store(first, rules)
            for second in the_second(stored)
            for stored_too in the_store(second, rules)
        }
        if harmed := next((world for world in after if world.taken and -world.armed_at < HALF), None):
            return harmed
        fresh = {world.a_tick_later() for world in after} - reached
    return None


@pytest.mark.long
def test_no_effect_comes_once_another_process_acts() -> None:
    assert harm(Rules()) is None


WRONG = {
    "effects may always begin": Rules(may_begin=lambda sent_at, intent_at: True),
    "the age of the intent alone allows an effect": Rules(may_begin=lambda sent_at, intent_at: -intent_at < HALF),
    "an effect may begin as long as the word is held": Rules(
        may_begin=lambda sent_at, intent_at: tenure(sent_at).holds(0) and -intent_at < HALF
    ),
    "a refresh counts from its answer": Rules(known_since=lambda sent_at: 0),
    "a takeover does not compare the refresh": Rules(compares_refresh=False),
}


@pytest.mark.long
@pytest.mark.parametrize("rule", WRONG)
def test_the_search_finds_a_rule_that_is_wrong(rule: str) -> None:
    assert harm(WRONG[rule]) is not None
