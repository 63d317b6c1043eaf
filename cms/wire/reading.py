"""Requests of the wire API, read strictly. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote_to_bytes

from cmspb.storage.v1 import ledger_pb2
from serving.encoding.jsonio import refuse_deep
from serving.errors import InvalidRequest, NotFound, Violation, invalid

_PATH: Final = re.compile(r"/v1\.([0-4])/tasks(?:/([^/]*)(/confirm)?)?/?")
_TEXTS: Final = {
    "id": "id",
    "type": "type",
    "issuer": "issuer",
    "action": "action",
    "comment": "comment",
    "failure": "failure",
    "host_group_id": "group_id",
}
_FLAGS: Final = ("confirm", "already_running")


class TaskPath(NamedTuple):
    """A parsed path. `task_id` empty: the list."""

    minor: int
    task_id: str
    is_confirm: bool


def target(path: str) -> TaskPath:
    """Raises NotFound: there is no such path."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise NotFound(
            f"there is no {path[:200]!r}: the API is /v1.0/tasks to /v1.4/tasks, and FleetLock's /v1/pre-reboot and "
            "/v1/steady-state, also below /fleetlock/NODE"
        )
    try:
        task_id = unquote_to_bytes(found[2] or "").decode()
    except UnicodeDecodeError as error:
        raise invalid("id", "is not UTF-8") from error
    return TaskPath(int(found[1]), task_id, bool(found[3]))


def is_dry_run(query: bytes) -> bool:
    """Whether the query says `dry_run=true`. Raises InvalidRequest."""
    try:
        values = parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=100).get("dry_run", ["false"])
    except ValueError as error:
        raise invalid("dry_run", f"cannot parse the query: {error}") from error
    value = values[-1].lower()
    if value not in ("true", "false", "1", "0"):
        raise invalid("dry_run", f"{value[:40]!r} is neither true nor false")
    return value in ("true", "1")


def parse_task(body: bytes, max_depth: int) -> ledger_pb2.Task:
    """The task as it was asked for, not checked yet. Unknown fields are ignored. Raises InvalidRequest."""
    refuse_deep(body, max_depth)
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid("", f"the body is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(said, dict):
        raise invalid("", "the body must be a JSON object")
    task = ledger_pb2.Task(is_wire=True)
    faults = [fault for name, field in _TEXTS.items() for fault in _take_text(task, said, name, field)]
    for name in _FLAGS:
        value = said.get(name)
        if not isinstance(value, bool | None):
            faults.append(Violation(name, "must be true or false"))
        else:
            setattr(task, name, bool(value))
    faults += _take_hosts(task, said.get("hosts"))
    faults += _take_extra(task, said.get("extra"))
    if faults:
        raise InvalidRequest(*faults)
    return task


def _take_text(task: ledger_pb2.Task, said: Mapping[str, Any], name: str, field: str) -> list[Violation]:
    value = said.get(name)
    if value is None:
        return []
    if not isinstance(value, str):
        return [Violation(name, "must be a string")]
    if not _is_unicode(value):
        return [Violation(name, "is not valid text: it contains half a surrogate pair")]
    setattr(task, field, value)
    return []


def _take_hosts(task: ledger_pb2.Task, value: object) -> list[Violation]:
    if not isinstance(value, list) or not all(isinstance(host, str) and _is_unicode(host) for host in value):
        return [Violation("hosts", "must be a list of strings with at least one host")]
    task.host.extend(dict.fromkeys(value))
    return []


def _take_extra(task: ledger_pb2.Task, value: object) -> list[Violation]:
    if value is None:
        return []
    if not isinstance(value, dict):
        return [Violation("extra", "must be an object")]
    try:  # Python reads NaN and 1e999, which are not JSON: a list that shows them would not be JSON, either
        task.extra = json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
    except ValueError:
        return [Violation("extra", "has a number that is not finite")]
    return []


def _is_unicode(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)
