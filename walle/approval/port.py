"""What a CMS is to the rest of Wall-E: one of v1.0 to v1.4 over HTTP, or the default one inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from walle.kinds import NAMES
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    OperationKind,
    Verdict,
)

TIMEOUT_S: Final = 10.0  # the protocol's promise: a CMS answers within it
DEFAULT: Final = "default"
VERSIONS: Final = ("v1.0", "v1.1", "v1.2", "v1.3", "v1.4")

# Kinds that a CMS learns of from this version on; the others all know.
_SINCE: Final[Mapping[OperationKind, str]] = {
    OPERATION_KIND_PREPARE: "v1.1",
    OPERATION_KIND_DEACTIVATE: "v1.1",
    OPERATION_KIND_TEMPORARY_UNREACHABLE: "v1.4",
}


class CmsFailure(Exception):
    """No answer, or one that breaks the schema. What the CMS did with the request is not known."""


class UnknownTask(CmsFailure):
    """The CMS has no such task."""


@dataclass(frozen=True, slots=True)
class Request:
    """A task to ask for. `is_running`: its work has begun, the CMS lost it and is told again."""

    id: str
    hosts: tuple[str, ...]
    action: str
    issuer: str
    is_manual: bool = False
    comment: str = ""
    failure: str = ""
    group_id: str = ""
    is_running: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a CMS says. `provisional`: it wants to be asked once more just before the work (`confirm`)."""

    verdict: Verdict
    message: str = ""
    provisional: bool = False


class Cms(Protocol):
    """All methods raise CmsFailure.

    Attributes:
        name: unique in the project: `default` or the URL.
    """

    name: str
    version: str

    async def dry_run(self, request: Request) -> Answer:
        """What the answer would be; nothing is stored."""

    async def create(self, request: Request) -> Answer:
        """Store the task. Sent twice, it is one task."""

    async def poll(self, task_id: str) -> Answer:
        """Raises UnknownTask."""

    async def confirm(self, task_id: str) -> Answer:
        """Make a provisional ok final; anything but OK takes it back. Raises UnknownTask."""

    async def delete(self, task_id: str) -> None:
        """Give it back. One that is not there is deleted."""

    async def tasks(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts of all tasks there, by id; not only of ours."""


def is_told(version: str, kind: OperationKind) -> bool:
    """Whether a CMS of this version is asked about such an operation. A DNS fix takes no host away."""
    return kind != OPERATION_KIND_DNS_FIX and VERSIONS.index(version) >= VERSIONS.index(_SINCE.get(kind, "v1.0"))


def action_name(kind: OperationKind) -> str:
    return NAMES[kind]
