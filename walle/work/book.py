"""The records that Wall-E keeps, and how decisions read and write them: one transaction at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from control.errors import Refused
from control.records import Kind
from walle.fuses.admission import FuseAdmission, Fuses
from walle.fuses.fuse import GLOBAL
from walle.fuses.limits import Limits
from walle.healing.decision import SETTLE_MS
from walle.healing.incidents import Incidents
from walle.texts import describe_absence
from wallepb.v1.host_pb2 import Host, Machine
from wallepb.v1.project_pb2 import (
    DefaultCmsTasks,
    Fuse,
    InstallationWord,
    LedgerTime,
    NoticeRecord,
    Project,
    Restored,
    Scenario,
    ScenarioHosts,
    Severity,
)

M = TypeVar("M", bound=Message)


HOST: Final = Kind("host", Host)
MACHINE: Final = Kind("machine", Machine)
PROJECT: Final = Kind("project", Project)
FUSE: Final = Kind("fuse", Fuse)
SCENARIO: Final = Kind("scenario", Scenario)
SCENARIO_HOSTS: Final = Kind("scenariohosts", ScenarioHosts)
DEFAULT_TASKS: Final = Kind("defaultcms", DefaultCmsTasks)
LEDGER_TIME: Final = Kind("ledgertime", LedgerTime)
RESTORED: Final = Kind("restored", Restored)
NOTICE: Final = Kind("notice", NoticeRecord)
WORD: Final = Kind("word", InstallationWord)


class WalleTransaction(Protocol):
    """One transaction: reads see what it has put already; all of it is stored, or nothing."""

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        """A copy."""

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        """The record must have been read before."""

    def delete(self, kind: Kind[M], record_id: str, /) -> None:
        """The record must have been read before."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification to people.

    Attributes:
        project: its owners are notified; empty: the administrators.
        cause: what tells it from other notices of the project and host; empty: its text.
    """

    severity: Severity
    project: str
    text: str
    host: str = ""
    cause: str = ""


@dataclass(slots=True)
class World:
    """Knowledge of decisions in addition to the records.

    Attributes:
        installation: our name in the ids of tasks, with the word of the store: `default.5f0c1a2b`.
        new_id: a fresh id of an operation.
        epoch: the epoch of a store that was restored or replaced; empty: it is the first.
        check_reach: raises Refused unless what an order (by its field in `Order`) is about is still within the reach of
            its author, whose stored access follows.
        is_reached: whether an author, by its stored access, may order work on a host, or could if the machine were one.
        hosts_ahead: of a host that is to be repaired: those of its project that broke earlier and wait for the same
            limit. Limits and credits are used up in this order.
        why_stopped: who stopped everything, and why (`walle kill`); empty: nobody did.
        look_near: update `incidents` from the hosts as they are now, for the places of one of them.
    """

    installation: str
    global_limits: Limits
    new_id: Callable[[], str]
    incidents: Incidents = field(default_factory=Incidents)
    settle_ms: int = SETTLE_MS
    epoch: Callable[[], str] = lambda: ""
    check_reach: Callable[[WalleTransaction, str, Message, str], None] = lambda *_: None
    is_reached: Callable[[str, str], bool] = lambda access, name: True
    why_stopped: Callable[[], str] = lambda: ""
    look_near: Callable[[Host], object] = lambda host: None
    hosts_ahead: Callable[[Host], Sequence[str]] = lambda host: ()


def stored_record(book: WalleTransaction, kind: Kind[M], name: str) -> M:
    """A copy of a record that an order names. Raises Refused: there is none."""
    found = book.get(kind, name)
    if found is None:
        raise Refused(describe_absence(kind.name, name), "NOT_FOUND")
    return found


def fuses_of(book: WalleTransaction, project: Project, world: World) -> Fuses:
    """Both fuses; a project without one has everything switched on."""
    mine = book.get(FUSE, project.id) or Fuse(id=project.id)
    everyones = book.get(FUSE, GLOBAL) or Fuse(id=GLOBAL)
    return Fuses(mine, project.limits, everyones, world.global_limits)


def put_fuses(book: WalleTransaction, before: Fuses, admission: FuseAdmission) -> None:
    """Store the fuses that a decision changed."""
    if admission.project is not before.project:
        book.put(FUSE, before.project.id, admission.project)
    if admission.everywhere is not before.everywhere:
        book.put(FUSE, GLOBAL, admission.everywhere)
