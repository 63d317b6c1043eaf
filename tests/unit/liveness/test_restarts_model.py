"""Silence across restarts, as a small model of one replica at a time and one agent, searched in both directions.

Nobody expires who was heard within a timeout of HQ's presence, or who had no uninterrupted chance to report since a
start; and who is dead goes within a timeout, and for each restart or gap a report interval and a retry, of HQ's
presence. Each rule can be left out, and then the search finds a history that breaks one of the two.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum, auto

import pytest

TIMEOUT, INTERVAL, RETRY, HOLD = 12, 3, 1, 12  # of a unit of time
GRACE = INTERVAL + RETRY
HISTORIES, STEPS = 3_000, 250


class Rule(Enum):
    RECORD_AFTER_ONE_INTERVAL = auto()  # and not after two, which short lives never reach
    CLOCK_OF_PRESENCE = auto()  # and not of the wall
    CHANCE_AFTER_A_START = auto()
    A_GAP_BEGINS_IT_ANEW = auto()
    RESUME_THE_GUARD = auto()
    REPLAY_BEGINS_BEFORE_THE_RECORD = auto()
    OF_THIS_EPOCH = auto()
    REPLAYED_REPORTS_COUNT = auto()
    REPORTS_COUNT_FROM_WHAT_WAS_KNOWN = auto()  # when the record was made, not from where it was stored
    REPLAYED_ORDERS_COUNT = auto()
    CHECKPOINT_HOLDS_AGES = auto()
    CHECKPOINT_IS_REPLAYED = auto()


@dataclass
class Record:
    """What the store, or a file, keeps of the silence. `heard` is on the clock of presence, `wall` on the wall's."""

    at: int
    stored: int
    epoch: int
    heard: int
    wall: int


@dataclass
class Story:
    """How a history goes: the lengths of lives, the chances of what may happen."""

    lives: tuple[int, int]
    downs: tuple[int, int]
    reports: float
    gaps: float
    orderly: float
    strangers: float
    epochs: float
    suspensions: float
    is_mass: bool
    dies_at: int


@dataclass
class World:
    """What is true, and what the store has."""

    version: int = 1
    epoch: int = 1
    now: int = 0
    silence: int = 0  # of presence, since the last report in the store, end of planned work, or new epoch
    reports: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    presence: int = 0  # the stored clock
    hold_left: int = HOLD
    record: Record | None = None
    checkpoint: Record | None = None
    dead_for: int = 0  # of presence
    allowance: int = 0


class Life:
    """One replica from start to stop."""

    def __init__(self, world: World, rules: set[Rule], story: Story, began_at: int, *, is_another: bool) -> None:
        """`is_another`: a replica that has not written the checkpoint there is."""
        self.world, self.rules, self.story = world, rules, story
        self.known, self.window, self.unheard_by = world.version, 0, 0
        self.presence, self.pending = world.presence, 0
        self.hold_left = world.hold_left if Rule.RESUME_THE_GUARD in rules else HOLD
        recorded = [self._recorded(world.record, began_at), 0 if is_another else self._kept(began_at)]
        most = TIMEOUT - GRACE if Rule.CHANCE_AFTER_A_START in rules else TIMEOUT
        self.silence = min(max(recorded), most)
        self.is_carried = self.silence > 0

    def _recorded(self, record: Record | None, began_at: int) -> int:
        """How much silence a record in the store is good for."""
        rules, world = self.rules, self.world
        if record is None or (Rule.OF_THIS_EPOCH in rules and record.epoch != world.epoch):
            return 0
        if Rule.REPLAY_BEGINS_BEFORE_THE_RECORD in rules and began_at > record.at:
            return 0
        known = record.at if Rule.REPORTS_COUNT_FROM_WHAT_WAS_KNOWN in rules else record.stored
        if Rule.REPLAYED_REPORTS_COUNT in rules and self._is_replayed(world.reports, known, began_at):
            return 0
        if Rule.REPLAYED_ORDERS_COUNT in rules and self._is_replayed(world.orders, known, began_at):
            return 0
        is_presence = Rule.CLOCK_OF_PRESENCE in rules
        return max(0, world.presence - record.heard if is_presence else world.now - record.wall)

    def _kept(self, began_at: int) -> int:
        """And one in a checkpoint, which is where the replay begins, if the store proves it."""
        kept, self.world.checkpoint = self.world.checkpoint, None
        if kept is None or kept.epoch != self.world.epoch or began_at > kept.at:
            return 0
        news = [*self.world.reports, *self.world.orders]
        if Rule.CHECKPOINT_IS_REPLAYED in self.rules and self._is_replayed(news, kept.at, kept.at):
            return 0
        return kept.heard if Rule.CHECKPOINT_HOLDS_AGES in self.rules else self.world.now - kept.wall

    def _is_replayed(self, versions: list[int], known: int, began_at: int) -> bool:
        return any(version > max(known, began_at) for version in versions)

    def step(self, rng: random.Random, *, is_dead: bool) -> bool:
        """A unit of presence; return whether the agent's revision expires in it."""
        world = self.world
        if self.pending:
            self._hear()
        self.silence, self.window, self.presence = self.silence + 1, self.window + 1, self.presence + 1
        world.silence += 1
        world.dead_for += is_dead
        if not is_dead and rng.random() < self.story.reports:
            world.version, world.silence = world.version + 1, 0
            world.reports.append(world.version)
            self.pending = world.version
            if rng.random() < 0.5:
                self._hear()
        if rng.random() < self.story.suspensions:
            self._suspend()
        if rng.random() < 0.8:
            self._record()
        return self._is_due()

    def gap(self, units: int) -> None:
        """Present no more, and back again: everything since is replayed."""
        self.world.now += units
        window, self.window = self.window, 0
        if Rule.A_GAP_BEGINS_IT_ANEW not in self.rules:
            self.unheard_by = max(self.unheard_by, GRACE - window)

    def stop(self) -> None:
        """Orderly: the checkpoint holds everything known."""
        if not self.pending:
            world = self.world
            age = self.silence if self.silence > GRACE else 0
            world.checkpoint = Record(world.version, world.version, world.epoch, age, world.now - age)

    def _hear(self) -> None:
        self.known, self.pending = self.world.version, 0
        self.silence, self.is_carried = 0, False

    def _suspend(self) -> None:
        """Planned work, ordered and over."""
        world = self.world
        world.version, world.silence = world.version + 1, 0
        world.orders.append(world.version)
        world.allowance += TIMEOUT
        self._hear()

    def _record(self) -> None:
        world = self.world
        after = GRACE if Rule.RECORD_AFTER_ONE_INTERVAL in self.rules else 2 * INTERVAL + RETRY
        heard = self.presence - self.silence
        world.presence, world.hold_left, world.version = self.presence, self.hold_left, world.version + 1
        made = Record(self.known, world.version, world.epoch, heard, world.now - self.silence)
        world.record = made if self.silence > after else None
        self.known = self.known if self.pending else world.version

    def _is_due(self) -> bool:
        if self.silence < TIMEOUT or self.pending:
            return False
        if self.is_carried and Rule.CHANCE_AFTER_A_START in self.rules:
            chance = GRACE if Rule.A_GAP_BEGINS_IT_ANEW in self.rules else self.unheard_by
            if self.window < chance:
                return False
        if self.story.is_mass and self.hold_left > 0:
            self.hold_left -= 1
            return False
        return True


def story_of(rng: random.Random) -> Story:
    lives = rng.choice([(2, 6), (GRACE + 2, GRACE + 3), (5, 11), (9, 11), (10, 40)])
    rare = rng.random() < 0.5
    return Story(
        lives=lives,
        downs=rng.choice([(0, 1), (1, 30)]),
        reports=rng.choice([0.05, 0.15, 0.4]),
        gaps=rng.choice([0.0, 0.0, 0.1, 0.3]),
        orderly=rng.choice([0.0, 0.0, 0.5, 1.0]),
        strangers=rng.choice([0.0, 0.0, 0.3]),
        epochs=0.0 if rare else 0.1,
        suspensions=0.0 if rare else 0.1,
        is_mass=rng.random() < 0.3,
        dies_at=rng.choice([0, 20, 60, STEPS]),
    )


def start(world: World, rules: set[Rule], story: Story, rng: random.Random) -> Life:
    """HQ promises nothing across a start that cannot replay because a stranger compacted."""
    is_stranger = rng.random() < story.strangers
    world.allowance += GRACE + 1 + TIMEOUT * is_stranger
    began_at = world.version if is_stranger else max(0, world.version - 30)
    return Life(world, rules, story, began_at, is_another=rng.random() < 0.5)


def stop(world: World, life: Life, rng: random.Random) -> None:
    story = life.story
    if rng.random() < story.orderly:
        life.stop()
    world.now += rng.randint(*story.downs)
    if rng.random() < story.epochs:
        world.epoch, world.silence, world.reports, world.orders = world.epoch + 1, 0, [], []
        world.allowance += TIMEOUT


def ending(world: World, life: Life, rng: random.Random) -> str | None:
    """A unit of presence, perhaps a gap; how the history ends with it: "" as it should, None: it goes on."""
    story = life.story
    world.now += 1
    if life.step(rng, is_dead=world.now > story.dies_at):
        if world.silence < TIMEOUT:
            return f"expired after {world.silence} of presence without a report"
        if life.is_carried and life.window < GRACE:
            return f"expired after {life.window} of uninterrupted presence since the start"
        return ""
    if world.dead_for > TIMEOUT + HOLD * story.is_mass + world.allowance + 1:
        return f"dead for {world.dead_for} of presence, and {world.allowance} of it is excused"
    if rng.random() < story.gaps:
        life.gap(rng.randint(1, 5))
        world.allowance += GRACE + 1
    return None


def violation(seed: int, rules: set[Rule]) -> str:
    """What one random history breaks; empty: nothing. It ends with the expiry."""
    rng = random.Random(seed)
    story, world = story_of(rng), World()
    while world.now < STEPS:
        life = start(world, rules, story, rng)
        for _ in range(rng.randint(*story.lives)):
            if (end := ending(world, life, rng)) is not None:
                return end
        stop(world, life, rng)
    return ""


def found(rules: set[Rule]) -> str | None:
    return next((f"history {seed}: {broken}" for seed in range(HISTORIES) if (broken := violation(seed, rules))), None)


@pytest.mark.long
def test_no_history_expires_somebody_too_early_or_keeps_the_dead() -> None:
    assert found(set(Rule)) is None


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name.lower())
def test_without_any_one_of_the_rules_some_history_does(rule: Rule) -> None:
    assert found(set(Rule) - {rule}) is not None
