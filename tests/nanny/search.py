"""Every state that a service with a few snapshots can reach, by every order and every outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from nanny.automaton.service import Service, SnapshotState
from nanny.automaton.states import ACTIONS, Current, Event, Target
from nanny.automaton.step import Step, instance_refusal, refusal
from nanny.automaton.table import TABLE, State, Table

OUTCOMES = (Event.DONE, Event.FAILED, Event.CANCELLED)
ARRIVED = {Target.CREATED: Current.CREATED, Target.PREPARED: Current.PREPARED, Target.ACTIVE: Current.ACTIVE}


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that may happen."""

    what: str
    snapshot: str = ""
    target: Target | None = None
    after: Service = field(default_factory=Service)


class Search:
    """Walks breadth first from the empty service; `states` and `edges` are what was reached.

    States that differ only in numbers, or in which snapshot is which, are one. `flags`: with the fill flag and with
    orders for single instances, which multiply the states: for two snapshots.
    """

    def __init__(self, snapshots: Sequence[str] = ("a", "b", "c"), table: Table = TABLE, *, flags: bool = False) -> None:
        self.snapshots = snapshots
        self._flags = flags
        self.edges: set[tuple[State, Event]] = set()
        self.shown: set[Current] = set()
        self._step = Step(table, self._passed)
        self.states: list[Service] = []
        self._orders: dict[tuple[object, ...], list[Move]] = {}

    def _passed(self, _snapshot: str, before: State, event: Event, after: State) -> None:
        self.edges.add((before, event))
        self.shown |= {state for state in (before, after) if state is not None}

    def run(self) -> Search:
        for rolls_back in (False, True):
            self._from(Service(rolls_back=rolls_back))
        return self

    def _from(self, start: Service) -> None:
        seen = {_key(start)}
        waiting = deque([start])
        while waiting:
            service = waiting.popleft()
            self.states.append(service)
            for move in self.moves(service):
                key = _key(move.after)
                if key not in seen:
                    seen.add(key)
                    waiting.append(move.after)

    def moves(self, service: Service) -> Iterator[Move]:
        yield from self.orders(service)
        yield from self.outcomes(service, OUTCOMES)

    def orders(self, service: Service) -> Iterator[Move]:
        for snapshot in self._known(service):
            for target in Target:
                if not refusal(service, snapshot, target):
                    after = self._step.ordered(service, snapshot, target)
                    yield Move(f"{target} {snapshot}", snapshot, target, after)
            if self._flags and not refusal(service, snapshot, Target.CREATED):
                after = self._step.ordered(service, snapshot, Target.CREATED, fill=True)
                yield Move(f"CREATED {snapshot} filled", snapshot, Target.CREATED, after)
            if self._flags and not instance_refusal(service, snapshot):
                yield Move(f"instance of {snapshot}", after=self._step.instance_ordered(service, snapshot))
        if service.is_live():
            yield Move("stop", after=self._step.stopped(service))

    def outcomes(self, service: Service, outcomes: Sequence[Event]) -> Iterator[Move]:
        for running in service.running():
            for outcome in outcomes:
                after = self._step.ended(service, running.snapshot, running.number, outcome)
                yield Move(f"{outcome} {running.snapshot}", after=after)

    def _known(self, service: Service) -> list[str]:
        """Those with a tuple, and one that has none: another one would be no different."""
        absent = [one for one in self.snapshots if one not in service.tuples][:1]
        return [*service.tuples, *absent]

    def ends(self, service: Service) -> frozenset[_Hashable]:
        """Where it may come to rest when every action succeeds, in whatever order they end. Raises on a circle."""
        return self._ends(_Hashable.of(service))

    @lru_cache(maxsize=None)  # noqa: B019: lives as long as the search
    def _ends(self, service: _Hashable) -> frozenset[_Hashable]:
        nexts = [move.after for move in self.outcomes(service, (Event.DONE,))]
        if not nexts:
            return frozenset({service})
        return frozenset(end for after in nexts for end in self.ends(_plain(after)))


class _Hashable(Service):
    """A service that can be remembered."""

    @classmethod
    def of(cls, service: Service) -> _Hashable:
        names = service.__dataclass_fields__
        return cls(**{name: getattr(service, name) for name in names})

    def __hash__(self) -> int:
        return hash(_exact(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Service) and _exact(self) == _exact(other)


def _exact(service: Service) -> tuple[object, ...]:
    return (
        tuple(sorted(service.tuples.items(), key=lambda item: item[0])),
        service.last_active,
        service.rolling_back,
        service.rolls_back,
        service.paused,
    )


def _plain(service: Service) -> Service:
    """Without numbers that only grow."""
    return replace(service, numbered=0, tuples={one: _numberless(state) for one, state in service.tuples.items()})


def _numberless(state: SnapshotState) -> SnapshotState:
    return replace(state, overrides=min(state.overrides, 1), action=1 if state.current in ACTIONS else 0)


def _key(service: Service) -> tuple[object, ...]:
    """Equal for services that differ only in the names of their snapshots."""
    marked = sorted((*_fields(state), one == service.last_active) for one, state in service.tuples.items())
    absent = bool(service.last_active) and service.last_active not in service.tuples
    return (*marked, absent, service.rolling_back, service.rolls_back)


def _fields(state: SnapshotState) -> tuple[object, ...]:
    return state.current, state.target, state.fill, bool(state.overrides)


def rows(table: Mapping[tuple[State, Event], State] = TABLE) -> set[tuple[State, Event]]:
    return set(table)
