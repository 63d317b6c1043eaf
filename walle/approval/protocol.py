"""The interface of a CMS, v1.0 to v1.4: its calls, their messages as JSON, and an event for each.

Violations of the schema are failures: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from walle.tables import NAMES
from walle.texts import truncate_text
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    OperationKind,
    Verdict,
)

TIMEOUT_S: Final = 10.0  # the protocol requires an answer within this time
DEFAULT: Final = "default"
VERSIONS: Final = ("v1.0", "v1.1", "v1.2", "v1.3", "v1.4")

# Kinds that CMSs know from this version on; the others are known to all.
_SINCE: Final[Mapping[OperationKind, str]] = {
    OPERATION_KIND_PREPARE: "v1.1",
    OPERATION_KIND_DEACTIVATE: "v1.1",
    OPERATION_KIND_TEMPORARY_UNREACHABLE: "v1.4",
}


class CmsFailure(Exception):
    """No answer, or one that breaks the schema. Whether the CMS acted on the request is unknown."""


class UnknownTask(CmsFailure):
    """The CMS has no such task."""


@dataclass(frozen=True, slots=True)
class Request:
    """A task to request. `is_running`: its work has begun, but the CMS lost the task and is told again."""

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
class CmsAnswer:
    """The answer of a CMS.

    Attributes:
        provisional: it wants to be asked once more just before the work (`confirm`).
        opens_in_s: in how many seconds its calendar lets the work begin; 0: the calendar is not in the way.
    """

    verdict: Verdict
    message: str = ""
    provisional: bool = False
    opens_in_s: int = 0


class CmsPort(Protocol):
    """All methods raise CmsFailure.

    Attributes:
        name: unique in the project: `default` or the URL.
    """

    name: str
    version: str

    async def dry_run(self, request: Request) -> CmsAnswer:
        """Ask how the CMS would answer; nothing is stored."""

    async def create(self, request: Request) -> CmsAnswer:
        """Store the task. Idempotent: sent twice, it is one task."""

    async def poll(self, task_id: str) -> CmsAnswer:
        """Raises UnknownTask."""

    async def confirm(self, task_id: str) -> CmsAnswer:
        """Make a provisional ok final; anything but OK takes it back. Raises UnknownTask."""

    async def delete(self, task_id: str) -> None:
        """Give a task back. A missing task counts as deleted."""

    async def tasks(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts of all tasks there, by id; not only ours."""


def is_told(version: str, kind: OperationKind) -> bool:
    """Whether a CMS of this version is asked about such an operation. A DNS fix does not disrupt the host."""
    return kind != OPERATION_KIND_DNS_FIX and VERSIONS.index(version) >= VERSIONS.index(_SINCE.get(kind, "v1.0"))


def action_name(kind: OperationKind) -> str:
    return NAMES[kind]


_LONGEST_S: Final = 366 * 86_400
_STATUSES: Final[dict[str, Verdict]] = {
    "ok": VERDICT_OK,
    "in-process": VERDICT_IN_PROCESS,
    "rejected": VERDICT_REJECTED,
}


def body_of(request: Request) -> dict[str, Any]:
    """A task as it is posted. CMSs ignore the fields that they do not know."""
    body: dict[str, Any] = {
        "id": request.id,
        "type": "manual" if request.is_manual else "automated",
        "issuer": request.issuer,
        "action": request.action,
        "hosts": list(request.hosts),
        "confirm": True,
    }
    given = {"comment": request.comment, "failure": request.failure, "host_group_id": request.group_id}
    body |= {name: value for name, value in given.items() if value}
    return body | ({"already_running": True} if request.is_running else {})


def answer_of(task_id: str, answer: Any) -> CmsAnswer:
    """Raises CmsFailure: it is not an answer about this task."""
    task = _object(answer)
    if task.get("id") != task_id:
        raise CmsFailure(f"the answer breaks the schema: id is {task.get('id')!r}, {task_id!r} was asked about")
    status, message, details = task.get("status"), task.get("message", ""), task.get("details") or {}
    if not isinstance(status, str) or status not in _STATUSES:
        raise CmsFailure(f"the answer breaks the schema: status is {status!r}, not ok, in-process or rejected")
    if not isinstance(message, str | None):
        raise CmsFailure(f"the answer breaks the schema: message is {message!r}")
    _check_hosts(task)
    if not isinstance(details, dict):
        details = {}
    opens_in_s = details.get("opens_in_s")
    if not (isinstance(opens_in_s, int) and 0 < opens_in_s < _LONGEST_S):
        opens_in_s = 0
    provisional = details.get("provisional") is True
    return CmsAnswer(_STATUSES[status], truncate_text(message or ""), provisional, opens_in_s)


def tasks_of(answer: Any) -> dict[str, tuple[str, ...]]:
    """The hosts of each task of a list, by its id. Raises CmsFailure."""
    result = _object(answer).get("result")
    if not isinstance(result, list):
        raise CmsFailure("the answer breaks the schema: result is not a list")
    found: dict[str, tuple[str, ...]] = {}
    for task in map(_object, result):
        task_id = task.get("id")
        if not isinstance(task_id, str) or not task_id:
            raise CmsFailure("the answer breaks the schema: a task without an id")
        _check_hosts(task)
        found[task_id] = tuple(task["hosts"])
    return found


def message_of(answer: Any) -> str:
    """Return the message of an error; empty: it has none that can be read."""
    message = answer.get("message") if isinstance(answer, dict) else ""
    return truncate_text(message) if isinstance(message, str) else ""


def _check_hosts(task: dict[str, Any]) -> None:
    hosts = task.get("hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise CmsFailure("the answer breaks the schema: hosts is not a list of names")


def _object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise CmsFailure(f"the answer breaks the schema: {str(answer)[:100]!r} is not an object")
    return answer


SERVICE: Final = "wall-e-cms-request"
PREFIX: Final = "wall-e.cms."


@dataclass(frozen=True, slots=True)
class CmsEvent:
    """One call of a CMS.

    Attributes:
        host: the CMS's name, derived from its URL.
        is_ok: it answered in time and according to the schema.
        description: the failure, or what it answered.
    """

    host: str
    tags: tuple[str, ...]
    is_ok: bool
    description: str
    service: str = SERVICE


class CmsEventSink(Protocol):
    """Where events go."""

    def send(self, event: CmsEvent, project: str) -> None:
        """Must not fail, and must not wait."""


def cms_name(url: str) -> str:
    """`http://cms.example.net/project/web` is `cms.example.net-project-web`."""
    parts = urlsplit(url)
    whole = f"{parts.netloc}{parts.path}".rstrip("/") if parts.netloc else url
    return re.sub(r"[^A-Za-z0-9._-]", "-", whole)


def event_of(action: str, project: str, url: str, version: str, *, failure: str = "", answer: str = "") -> CmsEvent:
    """`action` as `get_tasks`; `failure` empty: it succeeded."""
    name = cms_name(url)
    tags = (action, project, name, f"version.{version}")
    return CmsEvent(PREFIX + name, tuple(PREFIX + tag for tag in tags), not failure, failure or answer)
