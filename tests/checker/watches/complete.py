"""COMPLETE: at every token the client knows exactly what was true, and has been told of each change on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from tests.checker.history import Seen, Watched
from tests.checker.past import TrueEvent
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Truth(Protocol):
    """What was true of the instances that pass one filter. A state is anything that can be compared."""

    def matching(self, version: int) -> Mapping[str, object]:
        """All of them, by id."""
        ...

    def at(self, instance_id: str, version: int) -> object:
        """One of them; None if it was not there or did not pass."""
        ...

    def events(self, after: int, upto: int) -> Iterable[TrueEvent]:
        """What there was to say."""
        ...


class Complete(WatchWord):
    """Compares each event with what was true at its version, and the events between two tokens with what there was.

    So what a client knows is right by induction, and a watch costs what the changes cost; only snapshots and collapsed
    batches are compared whole.
    """

    promise = Promise(
        "COMPLETE",
        "between two tokens every change that passes the filter was told, once, as it was, and nothing else",
        "hq/memory/fanout.py (publish, encode), hq/registry/watches.py (_snapshot), store/follow.py",
    )

    def __init__(self, truth_of: Callable[[str], Truth | None], shown: Callable[[Seen], object]) -> None:
        """`truth_of`: of an epoch; None: it never was. `shown`: the state that an event of kind put shows."""
        self._truth_of, self._shown = truth_of, shown
        self._forget()

    def _forget(self) -> None:
        self._at: int | None = None  # everything up to here was told; None: nothing was yet
        self._snapshot: dict[str, object] = {}
        self._events: list[TrueEvent] = []
        self._collapsed = False

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind in ("OPENED", "RESYNC"):
            self._forget()
            self._at = message.resumed_from if message.kind == "OPENED" else None
            return
        truth = self._truth_of(message.epoch)
        if truth is None:
            yield f"a message of epoch {message.epoch}, which never was"
            return
        for event in message.events:
            yield from self._take(truth, message, event)
        self._collapsed = self._collapsed or message.collapsed
        if message.token:
            yield from self._check(truth, message.version)

    def _take(self, truth: Truth, message: Watched, event: Seen) -> Iterator[str]:
        if message.kind == "SNAPSHOT":
            self._snapshot[event.id] = self._shown(event)
            return
        self._events.append(TrueEvent(event.version, event.id, event.kind))
        if event.kind == "put" and self._shown(event) != (was := truth.at(event.id, event.version)):
            yield f"version {event.version} shows {event.id} as {self._shown(event)}, and it was {was}"

    def _check(self, truth: Truth, version: int) -> Iterator[str]:
        if self._at is None:
            true = truth.matching(version)
            ids = true.keys() | self._snapshot.keys()
            differing = sorted(i for i in ids if true.get(i) != self._snapshot.get(i))
            if differing:
                yield f"the snapshot at version {version} and the truth differ in {differing[:5]}"
        elif self._collapsed:
            yield from self._check_collapsed(truth, self._at, version)
        else:
            yield from self._check_events(truth, self._at, version)
        self._forget()
        self._at = version

    def _check_events(self, truth: Truth, after: int, upto: int) -> Iterator[str]:
        true, told = Counter(truth.events(after, upto)), Counter(self._events)
        if missing := sorted((true - told).elements()):
            yield f"between versions {after} and {upto} nothing was said of {missing[:5]}"
        if invented := sorted((told - true).elements()):
            yield f"between versions {after} and {upto} this was said, and was not so: {invented[:5]}"

    def _check_collapsed(self, truth: Truth, after: int, upto: int) -> Iterator[str]:
        """A difference says where everything stands in the end, and nothing of the way."""
        before, now = truth.matching(after), truth.matching(upto)
        told = {event.id for event in self._events}
        differing = {i for i in before.keys() | now.keys() if before.get(i) != now.get(i)}
        if untold := sorted(differing - told):
            yield f"the difference between versions {after} and {upto} says nothing of {untold[:5]}"
