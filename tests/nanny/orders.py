"""One service at the hands of a test: orders and outcomes through the handler, over records in a dictionary."""

from __future__ import annotations

from typing import Any

from control import Kind, Refused
from nanny.automaton.service import ManagedService
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import Action, Current, SnapshotEvent, Target
from nanny.records import kinds
from nanny.records.handler import handle
from nanny.records.services import CURRENT, TARGET, TARGET_NUMBER, service_of, tuple_of
from nannypb.v1 import records_pb2 as records
from nannypb.v1 import service_pb2 as pb

SERVICE = "web"


class Dictionary:
    """A change that takes effect at once."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Any] = {}

    def get(self, kind: Kind[Any], record_id: str) -> Any:
        found = self.kept.get((kind.name, record_id))
        if found is None:
            return None
        copy = type(found)()
        copy.CopyFrom(found)
        return copy

    def put(self, kind: Kind[Any], record_id: str, message: Any) -> None:
        self.kept[kind.name, record_id] = message

    def delete(self, kind: Kind[Any], record_id: str) -> None:
        self.kept.pop((kind.name, record_id), None)


class Ordered:
    """The service `web`; snapshots are named by letters."""

    def __init__(self, **info: Any) -> None:
        self.change = Dictionary()
        self.clock_ms = 1_000
        self._orders = 0
        self.send(created=pb.InfoAttributes(**info))

    def copy(self) -> Ordered:
        """The same service again, without its history: what happens to one is nothing to the other."""
        other = Ordered.__new__(Ordered)
        other.change, other.clock_ms, other._orders = Dictionary(), self.clock_ms, self._orders
        kept = self.change.kept.items()
        other.change.kept = {key: message for key, message in kept if key[0] != kinds.HISTORY.name}
        return other

    def send(self, author: str = "ann", comment: str = "", ticket: str = "", **event: Any) -> None:
        """Raises Refused."""
        made = records.ServiceEvent(**event)
        made.by.author, made.by.comment, made.by.ticket = author, comment, ticket
        self.clock_ms += 1_000
        made.by.time.FromMilliseconds(self.clock_ms)
        handle(self.change, SERVICE, made)  # type: ignore[arg-type]

    def add(self, *snapshots: str) -> Ordered:
        for snapshot in snapshots:
            self.send(snapshot=records.SnapshotRecord(snapshot=pb.Snapshot(id=snapshot, service_id=SERVICE)))
        return self

    def target(
        self, snapshot: str, target: Target, *, fill: bool = False, roll_back: bool = False, **by: str
    ) -> Ordered:
        """Orders are named o1, o2, ..."""
        self._orders += 1
        order = records.TargetOrder(snapshot_id=snapshot, fill=fill, order_id=f"o{self._orders}", roll_back=roll_back)
        order.target = TARGET_NUMBER[target]  # type: ignore[assignment]
        self.send(target=order, **by)
        return self

    def outcome(self, snapshot: str) -> tuple[str, str, str]:
        """What became of the last order for a snapshot: the outcome, the snapshot that is active instead, and why."""
        order = tuple_of(self.record, snapshot).order  # type: ignore[union-attr]
        name = pb.OrderOutcome.Name(order.outcome).removeprefix("ORDER_OUTCOME_")
        return name, order.instead_snapshot_id, order.message

    def activate(self, snapshot: str) -> Ordered:
        return self.target(snapshot, Target.ACTIVE)

    def instance(self, snapshot: str, name: str, target: Target) -> Ordered:
        key = records.InstanceKey(location="sas", id=name)
        number = TARGET_NUMBER[target]
        self.send(instance=records.InstanceOrder(snapshot_id=snapshot, instance=key, target=number))  # type: ignore[arg-type]
        return self

    def stop(self) -> Ordered:
        self.send(stopped=True)
        return self

    def pause(self, *, paused: bool = True) -> Ordered:
        self.send(paused=paused, comment="looking")
        return self

    def ended(self, snapshot: str, outcome: SnapshotEvent, message: str = "") -> Ordered:
        """The action of a snapshot ends."""
        numbers = {
            SnapshotEvent.DONE: records.OUTCOME_DONE,
            SnapshotEvent.FAILED: records.OUTCOME_FAILED,
            SnapshotEvent.CANCELLED: records.OUTCOME_CANCELLED,
        }
        number = tuple_of(self.record, snapshot).action  # type: ignore[union-attr]
        end = records.ActionEnd(snapshot_id=snapshot, number=number, outcome=numbers[outcome], message=message)
        self.send(author="", ended=end)
        return self

    def until(self, snapshot: str, state: Current) -> Ordered:
        """Actions of a snapshot succeed until it is in a state."""
        for _ in range(10):
            if self.current(snapshot) is state:
                return self
            self.ended(snapshot, SnapshotEvent.DONE)
        raise AssertionError(f"{snapshot} is {self.current(snapshot)}, not {state}")

    def settle(self) -> Ordered:
        """All actions succeed."""
        for _ in range(30):
            running = list(self.service.running())
            if not running:
                return self
            self.ended(running[0].snapshot, SnapshotEvent.DONE)
        raise AssertionError("it does not settle")

    @property
    def record(self) -> records.ServiceRecord:
        found = self.change.kept[kinds.SERVICE.name, SERVICE]
        assert isinstance(found, records.ServiceRecord)
        return found

    @property
    def service(self) -> ManagedService:
        return service_of(self.record)

    @property
    def state(self) -> ServiceState:
        return service_state(self.service)

    @property
    def running(self) -> list[tuple[str, Action]]:
        return [(one.snapshot, one.action) for one in self.service.running()]

    def current(self, snapshot: str) -> Current | None:
        found = tuple_of(self.record, snapshot)
        return CURRENT[found.current] if found is not None else None

    def wanted(self, snapshot: str) -> Target | None:
        found = tuple_of(self.record, snapshot)
        return TARGET[found.target] if found is not None else None

    def history(self) -> list[str]:
        stored = self.change.kept[kinds.HISTORY.name, SERVICE]
        return [f"{one.author or 'nanny'}: {one.snapshot_id} {one.what}" for one in stored.entry]


def refused(attempt: Any) -> str:
    """What an order is refused with; it must be."""
    try:
        attempt()
    except Refused as error:
        return str(error)
    raise AssertionError("it was not refused")
