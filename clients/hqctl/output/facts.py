"""What hqctl status found out, and how it says what is wrong. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing an operator should know.

    Attributes:
        what: what is wrong, since when and why, in a sentence.
        next: what to do about it.
        severe: it needs somebody; otherwise it explains something.
    """

    what: str
    next: str
    severe: bool = True


@dataclass(frozen=True, slots=True)
class Reached:
    """One address that was asked: what it answered, or why it did not."""

    address: str
    sources: tuple[pb.Source, ...] = ()
    error: str = ""


@dataclass(slots=True)
class Facts:
    """What could be found out; what could not is empty.

    Attributes:
        counts: by service.
        refused: why AdminService did not answer: a front has none.
    """

    reached: list[Reached] = field(default_factory=list)
    counts: Sequence[pb.InstanceCount] = ()
    replicas: Sequence[admin_pb2.ReplicaInfo] = ()
    members: Sequence[admin_pb2.StoreMember] = ()
    store_bytes: int = 0
    max_store_bytes: int = 0
    guard: pb.GuardState | None = None
    records: Sequence[admin_pb2.QuarantinedRecord] = ()
    suspensions: Sequence[admin_pb2.Suspension] = ()
    expiries: Sequence[admin_pb2.Transition] = ()
    refused: str = ""

    @property
    def total(self) -> int:
        """Instances."""
        return sum(group.total for group in self.counts)

    @property
    def ready(self) -> int:
        """Those that are ready."""
        return sum(group.ready for group in self.counts)

    def sources(self) -> list[pb.Source]:
        """What each replica (or location) said of itself."""
        return [source for one in self.reached for source in one.sources]
