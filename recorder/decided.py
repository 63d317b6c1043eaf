"""Decisions of and orders to the CMS, Nanny and Wall-E, as rows of the record. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from cmspb.v1 import record_pb2
from serving.rights.access import Access
from wallepb.v1 import host_pb2

CMS: Final = "cms"
_EVENTS: Final = {
    ("", "waiting"): "asked",
    ("", "granted"): "declared as running",
    ("waiting", "granted"): "granted",
    ("waiting", "provisional"): "granted until confirmed",
    ("waiting", "rejected"): "rejected",
    ("provisional", "granted"): "confirmed",
    ("provisional", "waiting"): "taken back",
    ("provisional", "lapsed"): "lapsed: nobody asked for it any more",
    ("lapsed", "waiting"): "asked again",
}


@dataclass(frozen=True, slots=True)
class ReadersOf:
    """Who may read a row: whoever may read the like of the present.

    Attributes:
        is_open: everybody who may call.
        owners: names of identities that may.
        nodes, instances, services: whoever reaches all of these may; instances by service, node and location.
    """

    is_open: bool = False
    owners: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    instances: tuple[tuple[str, str, str], ...] = ()
    services: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ReadersOf:
        """Parse what `text` returned."""
        found: dict[str, Any] = json.loads(text)
        places = tuple((one[0], one[1], one[2]) for one in found["instances"])
        return cls(found["is_open"], tuple(found["owners"]), tuple(found["nodes"]), places, tuple(found["services"]))

    def text(self) -> str:
        """The text as it is stored."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def may_read(self, access: Access) -> bool:
        """Whether a caller may read the row; one that names nothing is only for those who may read everything."""
        if self.is_open or access.is_unlimited or (access.name and access.name in self.owners):
            return True
        return bool(self.nodes or self.instances or self.services) and (
            all(access.covers_node(node) for node in self.nodes)
            and all(access.covers(service, node, cluster=location) for service, node, location in self.instances)
            and all(access.covers_service(service) for service in self.services)
        )


class DecisionRow(NamedTuple):
    """One decision or order. `based_on`: what it was decided on, a line each."""

    at_ms: int
    server: str
    subject: str
    event: str
    by: str
    message: str
    based_on: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    readers: ReadersOf = ReadersOf()


class ObservedLedger:
    """The tasks of a CMS, whose ledger is followed: each step of a task makes a row, with what it was decided on."""

    def __init__(self) -> None:
        self._tasks: dict[str, record_pb2.LedgerTask] = {}
        self._changes: dict[str, record_pb2.LedgerChange] = {}
        self._facts: dict[str, tuple[str, ...]] = {}
        self._listed: set[str] | None = None  # from a start until the next decision: the tasks that it lists
        self._is_first = True
        self._closed = ""

    def apply(self, entry: record_pb2.LedgerEntry, now_ms: int) -> Iterator[DecisionRow]:
        """The rows that an entry makes."""
        kind = entry.WhichOneof("entry")
        if kind == "start":
            self._listed = set()
        elif kind == "task":
            yield from self._put(entry.task, now_ms)
        elif kind == "task_gone":
            yield from self._drop(entry.task_gone, now_ms)
        elif kind == "decision":
            yield from self._end_listing(now_ms)
            yield from self._decide(entry.decision, now_ms)

    def _end_listing(self, now_ms: int) -> Iterator[DecisionRow]:
        """End the tasks that the start did not list: they ended while nothing was heard."""
        listed, self._listed = self._listed, None
        if listed is not None:
            self._is_first = False
            for gone in sorted(self._tasks.keys() - listed):
                yield from self._drop(gone, now_ms)

    def _decide(self, decision: record_pb2.LedgerDecision, now_ms: int) -> Iterator[DecisionRow]:
        if decision.closed != self._closed:
            self._closed = decision.closed
            event = "stopped granting" if decision.closed else "grants again"
            yield DecisionRow(now_ms, CMS, "", event, "", decision.closed, readers=ReadersOf(is_open=True))
        facts: dict[tuple[str, str], tuple[str, ...]] = {}  # by unit: those of a group come with its first task only
        for change in decision.change:
            found = facts.setdefault(self._unit_of(change.task_id), tuple(map(_fact_line, change.budget)))
            self._facts[change.task_id], self._changes[change.task_id] = found, change

    def _unit_of(self, task_id: str) -> tuple[str, str]:
        """Return the unit that a task is decided with: its owner's tasks of the same group, or itself."""
        task = self._tasks.get(task_id)
        return (task.owner, task.group_id) if task is not None and task.group_id else ("", task_id)

    def _put(self, task: record_pb2.LedgerTask, now_ms: int) -> Iterator[DecisionRow]:
        before = self._tasks.get(task.id)
        self._tasks[task.id] = task
        if self._listed is not None:
            self._listed.add(task.id)
            if self._is_first:
                return  # it was asked for before anything was recorded
        if before is None or before.state != task.state:
            event = _EVENTS.get((before.state if before is not None else "", task.state), task.state)
            yield self._row(task, event, now_ms)
        elif before.need != task.need:
            yield self._row(task, f"made {task.need}", now_ms)
        elif before.overdue_s < task.overdue_s:
            yield self._row(task, "may last longer", now_ms)

    def _drop(self, task_id: str, now_ms: int) -> Iterator[DecisionRow]:
        task = self._tasks.pop(task_id, None)
        if task is not None:
            self._facts.pop(task_id, None)
            yield self._row(task, "ended" if task.state == "granted" else f"given up while {task.state}", now_ms)
            self._changes.pop(task_id, None)

    def _row(self, task: record_pb2.LedgerTask, event: str, now_ms: int) -> DecisionRow:
        change = self._changes.get(task.id, record_pb2.LedgerChange())
        touched = change.touched
        # If not all touched instances are known, no reach covers them: the row is for the owner, and who may read all.
        is_known = not change.touches_more
        places = tuple((one.service, one.host, one.location) for one in touched) if is_known else ()
        nodes = tuple(task.host)
        return DecisionRow(
            now_ms,
            CMS,
            task.id,
            event,
            task.owner or task.issuer,
            _words(task),
            self._facts.pop(task.id, ()),
            tuple(sorted({one.service for one in touched})),
            nodes or tuple(sorted({one.host for one in touched})),
            ReadersOf(owners=(task.owner,), nodes=nodes, instances=() if nodes else places),
        )


def _words(task: record_pb2.LedgerTask) -> str:
    """The task in words, with its issuer: that is only a name that the owner gives, nobody's identity."""
    named = f"as {task.issuer}" if task.owner and task.issuer not in ("", task.owner) else ""
    return " ".join(filter(None, (task.action, f"({task.need})", named)))


def _fact_line(fact: record_pb2.BudgetFact) -> str:
    return f"budget {fact.name}: {fact.available} of {fact.total} available, floor {fact.floor}, needs {fact.needs}"


def nanny_rows(service: str, entries: Iterable[Any]) -> list[DecisionRow]:
    """Rows of entries of a service's history at Nanny."""
    rows = []
    for entry in entries:
        what = f"snapshot {entry.snapshot_id[:12]}" if entry.snapshot_id else ""
        message = "; ".join(filter(None, (what, entry.comment)))
        author = entry.author or "nanny"
        readers, at_ms = ReadersOf(services=(service,)), entry.time.ToMilliseconds()
        rows.append(DecisionRow(at_ms, "nanny", service, entry.what, author, message, (), (service,), (), readers))
    return rows


def switching_rows(project: Any, switchings: Iterable[Any]) -> list[DecisionRow]:
    """Rows of the switchings of a fuse of Wall-E; `project` None: the fuse of all projects."""
    name, owners = (project.id, tuple(project.owners)) if project is not None else ("", ())
    return [
        DecisionRow(
            one.time.ToMilliseconds(),
            "walle",
            name,
            f"{one.automation} switched {'off' if one.off else 'on'}",
            one.by,
            one.reason,
            readers=ReadersOf(owners=owners),
        )
        for one in switchings
    ]


def repair_rows(host: str, owners: Iterable[str], finished: Iterable[Any]) -> list[DecisionRow]:
    """Rows of the ended operations of a host, without what executors and CMSs said."""
    return [
        DecisionRow(
            one.ended.ToMilliseconds(),
            "walle",
            host,
            f"{_word(host_pb2.OperationKind.Name(one.kind))} {_word(host_pb2.Outcome.Name(one.outcome))}",
            one.by,
            f"check {one.check}" if one.check else "",
            nodes=(host,),
            readers=ReadersOf(owners=tuple(owners), nodes=(host,)),
        )
        for one in finished
    ]


def _word(name: str) -> str:
    """`OPERATION_KIND_REPAIR_LINK` as people say it."""
    return name.removeprefix("OPERATION_KIND_").removeprefix("OUTCOME_").lower().replace("_", " ")
