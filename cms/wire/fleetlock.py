"""FleetLock: machines that update themselves ask for their reboot, and say when they are back.

A lock is a task of the ledger, `fleetlock-NODE`; it belongs to the node, whoever speaks for it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from cms.checks import check_hosts
from cms.leave import TaskService
from cms.ledger.states import State
from cms.permits import FLEETLOCK, CmsAccessChecks
from cms.wire.answers import json_bytes
from cmspb.storage.v1 import ledger_pb2
from serving.calls.methods import Call
from serving.encoding.jsonio import refuse_deep
from serving.errors import InvalidRequest, NotFound, ServiceError, invalid
from serving.rights.access import Access
from serving.rights.reach import Of, checked_reach
from serving.rights.rules import LOCK
from serving.rights.stored import encode_access
from serving.standard.site import SiteAnswer, SiteRequest

CALLS: Final = ("pre-reboot", "steady-state")
_path = re.compile(rf"(?:/fleetlock/([^/]+))?/v1/({'|'.join(CALLS)})/?").fullmatch
_HEADER: Final = b"fleet-lock-protocol"
_JSON: Final = (b"content-type", b"application/json; charset=utf-8")
_is_group = re.compile(r"[A-Za-z0-9.-]{1,100}").fullmatch
_is_machine_id = re.compile(r"[0-9a-f]{32}").fullmatch


class LockPath(NamedTuple):
    """One of the two calls, and the node that the path names; empty: none."""

    call: str
    node: str


class NodeLock(NamedTuple):
    """A machine's request: its node's name, and the group that it names."""

    id: str
    group: str


class FleetLock:
    """The two calls. `reach`: a caller locks and unlocks nodes within its own scope."""

    def __init__(self, leave: TaskService, reaches: CmsAccessChecks) -> None:
        self._leave, self._reaches = leave, reaches
        self.reach = checked_reach(Of.NODE, _check_node)

    async def lock(self, wanted: NodeLock, call: Call) -> SiteAnswer:
        """200: the machine may reboot, and this is final. 409: it waits, and asks again."""
        if _is_machine_id(wanted.id) and not self._leave.desk.book.picture.instances_on(wanted.id):
            words = (
                f"{wanted.id} is a machine's number, not a node that HQ knows: send to /fleetlock/NODE/v1/pre-reboot"
            )
            raise invalid("client_params.id", words)
        task = ledger_pb2.Task(
            id=_task_of(wanted),
            type="automated",
            issuer=FLEETLOCK,
            action="reboot",
            host=[wanted.id],
            fleet_group=wanted.group,
            owner=_owner_of(wanted),
            access=encode_access(call.access),
        )
        call.note_write(wanted.id)
        record, why = await self._leave.create(task)
        message = self._reaches.visible_why(why, call.access, record).message
        if record.state == State.REJECTED:  # so the machine's next request is decided anew
            with suppress(NotFound):
                await self._leave.end(task.id, task.owner)
        if record.state == State.GRANTED:
            return SiteAnswer(200, [_JSON], json_bytes({"message": message}))
        # The machine must ask again before its wait is dropped, also if it waits for a window of tomorrow.
        most_s = int(self._leave.desk.book.rules.unasked_s / 2)
        headers = [_JSON, (b"retry-after", b"%d" % max(min(why.retry_after_s, most_s), 1))]
        return SiteAnswer(409, headers, json_bytes({"kind": "failed_lock", "value": message}))

    async def unlock(self, wanted: NodeLock, call: Call) -> SiteAnswer:
        """The node is back, or does not want to reboot any more. Unlocking a node that is not locked succeeds."""
        call.note_write(wanted.id)
        with suppress(NotFound):
            await self._leave.end(_task_of(wanted), _owner_of(wanted))
        return SiteAnswer(200, [_JSON], json_bytes({"message": f"{wanted.id} is not locked"}))


def lock_path(path: str) -> LockPath | None:
    """Which call a path is; None: none of the protocol's.

    The node may be named by the path, for clients that cannot choose their id: Zincati's is a number.
    """
    found = _path(path)
    return LockPath(found[2], unquote(found[1] or "")) if found else None


def parse_lock(request: SiteRequest, at: LockPath, max_depth: int) -> NodeLock:
    """Raises InvalidRequest, naming the field."""
    if request.headers.get(_HEADER) != b"true":
        raise invalid("fleet-lock-protocol", "send the header `fleet-lock-protocol: true`")
    refuse_deep(request.body, max_depth)
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise invalid("", f"the body is not valid JSON: {str(error)[:200]}") from error
    said = body.get("client_params") if isinstance(body, dict) else None
    if not isinstance(said, dict):
        raise invalid("client_params", "the body must be a JSON object with an object client_params")
    node, group = said.get("id"), said.get("group")
    if not isinstance(node, str):
        raise invalid("client_params.id", "must be a string: the node's name as HQ knows it")
    if at.node:
        check_hosts([at.node], "the node in the path")
    else:
        check_hosts([node], "client_params.id")
    if not (isinstance(group, str) and _is_group(group)):
        raise invalid("client_params.group", "use 1 to 100 letters, digits and .-")
    return NodeLock(at.node or node, group)


def refusal_words(error: ServiceError) -> dict[str, Any]:
    """An error as the protocol has it."""
    value = str(error)
    if isinstance(error, InvalidRequest):
        value = "; ".join(f"{one.field}: {one.description}" for one in error.violations[:5])
    return {"kind": error.reason, "value": value}


def _check_node(wanted: NodeLock, access: Access) -> None:
    access.check_node(wanted.id, LOCK.roles, "client_params.id")


def _task_of(wanted: NodeLock) -> str:
    """Nobody else's tasks have such ids: who took a node's would keep it from rebooting."""
    return f"{FLEETLOCK}-{wanted.id}"


def _owner_of(wanted: NodeLock) -> str:
    return f"node/{wanted.id}"
