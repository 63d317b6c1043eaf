"""The wire API as a site: routing, authorization, and how errors are reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from cms.checks import check_task
from cms.leave import NotConfirmed, TaskService
from cms.ledger.actions import actions_since
from cms.permits import OWN_TASK, owner_of
from cms.wire.answers import error_body, json_bytes, listed_task, verdict
from cms.wire.fleetlock import CALLS as LOCK_CALLS
from cms.wire.fleetlock import FleetLock, NodeLock, lock_path, parse_lock, refusal_words
from cms.wire.reading import TaskPath, is_dry_run, parse_task, target
from serving import error_statuses
from serving.calls.methods import Call, UnaryMethod
from serving.context import ServerContext
from serving.errors import PermissionDenied, ServiceError
from serving.protocol_errors import MethodNotAllowed
from serving.rights.reach import ONESELF, Of, Reach, stored_reach
from serving.rights.rules import LEAVE, LOCK, POLL, READ, Rule
from serving.rights.stored import encode_access
from serving.standard.site import SiteAnswer, SiteRequest, is_of_another_site

_JSON: Final = (b"content-type", b"application/json; charset=utf-8")
_CONFLICTS: Final = ("FAILED_PRECONDITION", "ABORTED")
_LATER: Final = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED")
_RETRY_S: Final = 5
R = TypeVar("R", "_TaskRequest", NodeLock)


@dataclass(frozen=True, slots=True)
class _TaskRequest:
    """A request whose path was understood; `id` is what the audit log calls it."""

    at: TaskPath
    site: SiteRequest

    @property
    def id(self) -> str:
        return self.at.task_id


class WireApi:
    """Answers `/v1.N/tasks…`, and FleetLock's two paths. Also the site's `max_body_bytes`."""

    max_body_bytes = 4 << 20

    def __init__(self, leave: TaskService, shared: ServerContext) -> None:
        self._leave, self._shared, self._clock = leave, shared, leave.desk.clock
        self._reaches = leave.desk.reaches()
        self._calls = {
            ("list", "GET"): self._call("List", self._list, READ, ONESELF),
            ("list", "POST"): self._call("Create", self._create, LEAVE, stored_reach(Of.TASK)),
            ("task", "GET"): self._call("Get", self._get, POLL, OWN_TASK),
            ("task", "DELETE"): self._call("Delete", self._delete, LEAVE, OWN_TASK),
            ("confirm", "POST"): self._call("Confirm", self._confirm, LEAVE, OWN_TASK),
        }
        locks = FleetLock(leave, self._reaches)
        calls = (
            self._call("PreReboot", locks.lock, LOCK, locks.reach),
            self._call("SteadyState", locks.unlock, LOCK, locks.reach),
        )
        self._locks = dict(zip(LOCK_CALLS, calls, strict=True))
        self.answers: dict[str, int] = {}

    async def __call__(self, request: SiteRequest) -> SiteAnswer:
        try:
            answer = await self._answer(request)
        except ServiceError as error:
            answer = self._refusal(error, request)
        except BaseException as error:
            answer = self._refusal(error_statuses.as_service_error(error, request.call), request)
        code = str(answer.status)
        self.answers[code] = self.answers.get(code, 0) + 1
        return answer

    async def _answer(self, request: SiteRequest) -> SiteAnswer:
        if is_of_another_site(request.method, request.authority, request.headers):
            raise PermissionDenied("a page of another site sent this: nothing was done")
        lock = lock_path(request.path)
        if lock is not None:
            if request.method != "POST":
                raise MethodNotAllowed(request.method, "POST")
            max_depth = self._shared.limits.max_json_depth
            return await self._locks[lock.call](lambda: parse_lock(request, lock, max_depth), request.call)
        at = target(request.path)
        kind = "confirm" if at.is_confirm else "task" if at.task_id else "list"
        method = "GET" if request.method == "HEAD" else request.method
        call = self._calls.get((kind, method))
        if call is None:
            raise MethodNotAllowed(request.method, ", ".join(m for k, m in self._calls if k == kind))
        return await call(lambda: _TaskRequest(at, request), request.call)

    def _call(
        self, name: str, run: Callable[[R, Call], Awaitable[SiteAnswer]], rule: Rule, reach: Reach
    ) -> Callable[[Callable[[], R], Call], Awaitable[SiteAnswer]]:
        """A call behind the gate, with its line in the audit log; it is read only once its caller may send it."""
        path = f"cms.wire/{name}"
        guard = self._shared.guard(path, rule, reach)
        recorded: Any = guard.run_of(UnaryMethod(path, bytes, bytes, run, rule, reach, lambda request: request.id))  # type: ignore[arg-type]

        async def answer(read: Callable[[], R], call: Call) -> SiteAnswer:
            try:
                if guard.admit is not None:
                    guard.admit(call)
                result: SiteAnswer = await recorded(read(), call)
            except ServiceError as error:
                guard.on_call_refused(call, error)
                raise
            return result

        return answer

    # --- calls --------------------------------------------------------------------------------------------------------

    async def _create(self, request: _TaskRequest, call: Call) -> SiteAnswer:
        wanted = parse_task(request.site.body, self._shared.limits.max_json_depth)
        is_dry = is_dry_run(request.site.query_string)
        wanted.owner, wanted.access = owner_of(call), encode_access(call.access)
        check_task(wanted, actions_since(request.at.minor))
        if call.access.is_checked:
            self._reaches.check_task(wanted, call.access)
        if not is_dry:
            call.note_write(wanted.id)
        record, why = await (self._leave.dry_run(wanted) if is_dry else self._leave.create(wanted))
        return _json(200, verdict(record, self._reaches.visible_why(why, call.access, record), self._clock))

    async def _list(self, request: _TaskRequest, call: Call) -> SiteAnswer:
        self._leave.desk.controller.check_loaded()
        records = self._leave.all(owner_of(call), only_wire=True)
        shown = [
            listed_task(
                record, self._reaches.visible_why(self._leave.why(record, briefly=True), call.access, record).message
            )
            for record in records
        ]
        return _json(200, {"result": shown})

    async def _get(self, request: _TaskRequest, call: Call) -> SiteAnswer:
        record, why = await self._leave.look(request.at.task_id, owner_of(call))
        return _json(200, verdict(record, self._reaches.visible_why(why, call.access, record), self._clock))

    async def _confirm(self, request: _TaskRequest, call: Call) -> SiteAnswer:
        try:
            record, why = await self._leave.confirm(request.at.task_id, owner_of(call))
        except NotConfirmed as error:
            return _json(
                409,
                verdict(
                    error.record,
                    self._reaches.visible_why(error.why, call.access, error.record),
                    self._clock,
                    "in-process",
                ),
            )
        return _json(200, verdict(record, self._reaches.visible_why(why, call.access, record), self._clock))

    async def _delete(self, request: _TaskRequest, call: Call) -> SiteAnswer:
        await self._leave.end(request.at.task_id, owner_of(call), is_wire=True)
        return SiteAnswer(204, [])

    # --- errors -------------------------------------------------------------------------------------------------------

    def _refusal(self, error: ServiceError, request: SiteRequest) -> SiteAnswer:
        self._shared.admission.count(error)
        status = error_statuses.http_status(error)
        headers = [_JSON]
        if error.code in _CONFLICTS:
            status = 409
        elif error.code in _LATER and status != 413:
            status = 503
            headers.append((b"retry-after", b"%d" % (error_statuses.retry_after_s(error) or _RETRY_S)))
        if isinstance(error, MethodNotAllowed):
            headers.append((b"allow", error.allowed.encode()))
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        body = error_body(error) if lock_path(request.path) is None else json_bytes(refusal_words(error))
        return SiteAnswer(status, headers, body)


def _json(status: int, value: object) -> SiteAnswer:
    return SiteAnswer(status, [_JSON], json_bytes(value))
