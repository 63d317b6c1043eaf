"""The messages of the CMS API, v1.0 to v1.4, as JSON. What breaks the schema is a failure, never guessed at."""

from __future__ import annotations

from typing import Any, Final

from walle.approval.port import Answer, CmsFailure, Request
from wallepb.v1.host_pb2 import VERDICT_IN_PROCESS, VERDICT_OK, VERDICT_REJECTED, Verdict

_STATUSES: Final[dict[str, Verdict]] = {
    "ok": VERDICT_OK,
    "in-process": VERDICT_IN_PROCESS,
    "rejected": VERDICT_REJECTED,
}


def body_of(request: Request) -> dict[str, Any]:
    """A task as it is posted. CMS's ignore the fields that they do not know."""
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


def answer_of(task_id: str, answer: Any) -> Answer:
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
    provisional = isinstance(details, dict) and details.get("provisional") is True
    return Answer(_STATUSES[status], message or "", provisional)


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
    """What an error says; empty: nothing that can be read."""
    message = answer.get("message") if isinstance(answer, dict) else ""
    return message[:300] if isinstance(message, str) else ""


def _check_hosts(task: dict[str, Any]) -> None:
    hosts = task.get("hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise CmsFailure("the answer breaks the schema: hosts is not a list of names")


def _object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise CmsFailure(f"the answer breaks the schema: {str(answer)[:100]!r} is not an object")
    return answer
