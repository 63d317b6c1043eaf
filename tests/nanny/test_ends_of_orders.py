"""Every way in which an order can end, by enumeration: the API's outcome and the exit code of `--wait` are the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from control import Refused
from hqcli.exits import Exit
from nanny.automaton.states import SnapshotEvent, Target
from nanny.records.services import TARGET, tuple_of
from nannyctl.commands.waiting import TargetReached
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceRecord, StepOrder, TupleRecord
from tests.nanny.orders import SERVICE, Ordered
from tests.nanny.search import is_at_rest

OPEN: Final = "open"
GONE: Final = "gone"
"""The snapshot has no state any more, so the API shows no order."""
REPLACED: Final = "replaced"
"""The API shows a later order for the same snapshot in its place."""
_CODES: Final = {
    "reached": Exit.OK,
    "gone": Exit.OK,
    "failed": Exit.REFUSED,
    "rolled back": Exit.ROLLED_BACK,
    "superseded": Exit.SUPERSEDED,
    "replaced": Exit.SUPERSEDED,
    "cancelled": Exit.CANCELLED,
}
_LOWER: Final = "CREATED PREPARED DESTROYED"
WAYS: Final = (
    # what happened, to whose snapshot, what the order was for, and what the API shows of it afterwards
    ("ordered", "its own", f"ACTIVE {_LOWER}", "replaced"),
    ("ordered", "another", "ACTIVE", "superseded, failed"),  # failed: it was being rolled back
    ("stop", "all", "ACTIVE", "cancelled, failed"),
    ("done", "its own", "ACTIVE CREATED PREPARED", "reached"),
    ("done", "its own", "DESTROYED", "gone"),
    ("done", "another", "ACTIVE", "rolled back"),
    ("done", "another", "PREPARED", "failed"),  # with a third one that failed: it serves on
    ("failed", "its own", f"ACTIVE {_LOWER}", "failed"),
    ("failed", "another", "ACTIVE", "failed"),
    ("failed", "another", _LOWER, "failed, superseded"),  # it was to be switched off, and is rolled back to
    ("cancelled", "its own", f"ACTIVE {_LOWER}", "failed"),
    ("cancelled", "another", f"ACTIVE {_LOWER}", "failed"),
    ("abort", "its own", "ACTIVE", "failed"),
    ("abort", "another", "ACTIVE", "failed"),
    ("abort", "another", _LOWER, "failed, superseded"),
)


class WayToEnd(NamedTuple):
    """What happened to the service, to which snapshot, what the order was for, and what the API shows afterwards."""

    event: str
    whose: str
    target: str
    end: str


class Enumeration:
    """Walks over the records of a service, by every order for these targets and every outcome of an action.

    Attributes:
        ways: in which orders ended, with the exit codes of who waited for them.
        stuck: orders that are open although nothing is under way.
        changed: what changed after it had ended.
    """

    def __init__(self, names: Sequence[str], targets: Sequence[Target], *, rolls_back: bool) -> None:
        self._names, self._targets = names, targets
        self.ways: dict[WayToEnd, set[Exit]] = {}
        self.stuck: list[str] = []
        self.changed: list[str] = []
        self.services = 0
        first = Ordered(rollout=pb.RolloutPolicy(roll_back=rolls_back)).add(*names)
        self._from(first)

    def _from(self, first: Ordered) -> None:
        seen, waiting = {_key(first.record)}, deque([first])
        while waiting:
            web = waiting.popleft()
            self.services += 1
            for what, after in self._events(web):
                self._look(web.record, what, after)
                if (key := _key(after.record)) not in seen:
                    seen.add(key)
                    waiting.append(after)

    def _look(self, before: ServiceRecord, what: str, web: Ordered) -> None:
        for one in before.snapshot:
            if one.order.id:
                self._look_at(one, what, web)
        for one in web.record.snapshot:
            if one.order.outcome == pb.ORDER_OUTCOME_OPEN and is_at_rest(web.service):
                self.stuck.append(f"{what}: {_words(web.record)}")

    def _look_at(self, before: TupleRecord, what: str, web: Ordered) -> None:
        now = tuple_of(web.record, before.snapshot_id)
        if before.order.outcome != pb.ORDER_OUTCOME_OPEN:
            if now is not None and now.order.id == before.order.id and now.order != before.order:
                self.changed.append(f"{what}: {before.order} became {now.order}")
            return
        shown = GONE if now is None else REPLACED if now.order.id != before.order.id else _outcome(now)
        goal = TargetReached(before.order.id, before.snapshot_id, before.order.target)
        result = goal.verdict(_service(web.record))
        if shown == OPEN:
            assert result is None, f"{what}: waiting ends with {result}, but {_words(web.record)}"
            return
        assert result is not None, f"{what}: waiting does not end, but {_words(web.record)}"
        event, _, name = what.partition(" ")
        whose = "its own" if name == before.snapshot_id else "another" if name in self._names else "all"
        way = WayToEnd(event, whose, TARGET[before.order.target], shown)
        self.ways.setdefault(way, set()).add(result.code)
        assert result.code is Exit.OK or result.message

    def _events(self, web: Ordered) -> Iterator[tuple[str, Ordered]]:
        """Whatever may happen next, with the service afterwards."""
        made: list[tuple[str, Callable[[Ordered], object]]] = []
        for name in self._names:
            made += [
                (f"ordered {name}", partial(Ordered.target, snapshot=name, target=target)) for target in self._targets
            ]
            if (known := tuple_of(web.record, name)) is not None:
                made.append((f"abort {name}", partial(Ordered.send, aborted=StepOrder(order_id=known.order.id))))
        for running in web.service.running():
            made += [
                (f"{outcome} {running.snapshot}", partial(Ordered.ended, snapshot=running.snapshot, outcome=outcome))
                for outcome in (SnapshotEvent.DONE, SnapshotEvent.FAILED, SnapshotEvent.CANCELLED)
            ]
        made.append(("stop all", Ordered.stop))
        for what, happen in made:
            after = web.copy()
            try:
                happen(after)
            except Refused:
                continue
            yield what, after


def _service(record: ServiceRecord) -> pb.Service:
    """The service as the API shows it."""
    shown = pb.Service(id=SERVICE)
    for one in record.snapshot:
        shown.snapshot.add(snapshot_id=one.snapshot_id, current=one.current, target=one.target, order=one.order)
    return shown


def _outcome(one: TupleRecord) -> str:
    return pb.OrderOutcome.Name(one.order.outcome).removeprefix("ORDER_OUTCOME_").lower().replace("_", " ")


def _words(record: ServiceRecord) -> str:
    return ", ".join(
        f"{one.snapshot_id}: {pb.CurrentState.Name(one.current)} for {pb.Target.Name(one.target)}, {_outcome(one)}"
        for one in record.snapshot
    )


def _key(record: ServiceRecord) -> tuple[Any, ...]:
    """Equal for records that differ only in numbers, in names of snapshots, and in how orders ended."""
    fields = {one.snapshot_id: (one.current, one.target, _open(one)) for one in record.snapshot}
    marked = sorted(
        (*fields[one.snapshot_id], one.snapshot_id == record.last_active, fields.get(_instead(one), ()))
        for one in record.snapshot
    )
    return (*marked, record.last_active in fields, record.rolling_back)


def _open(one: TupleRecord) -> int:
    return one.order.target if one.order.outcome == pb.ORDER_OUTCOME_OPEN else -1


def _instead(one: TupleRecord) -> str:
    return one.order.instead_snapshot_id if _open(one) != -1 else ""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_outcome_and_the_exit_code_agree_for_every_way_in_which_an_order_ends() -> None:
    few, all_targets = (Target.PREPARED, Target.ACTIVE), tuple(Target)
    found: dict[WayToEnd, set[Exit]] = {}
    for names, targets, rolls_back in (("ab", all_targets, False), ("ab", all_targets, True), ("abc", few, True)):
        walk = Enumeration(tuple(names), targets, rolls_back=rolls_back)
        print(f"{walk.services} services, {len(walk.ways)} ways")
        assert not walk.stuck, walk.stuck[:3]
        assert not walk.changed, walk.changed[:3]
        for way, codes in walk.ways.items():
            found.setdefault(way, set()).update(codes)
    wanted = {
        WayToEnd(event, whose, target, end): {_CODES[end]}
        for event, whose, targets, ends in WAYS
        for target in targets.split()
        for end in ends.split(", ")
    }
    assert found == wanted
