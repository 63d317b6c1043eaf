"""A CMS over HTTP: v1.0 to v1.4 of the protocol, 10 s per call, an event for each."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from control.outgoing import HttpReply, OutgoingCallFailed
from walle.approval.protocol import (
    TIMEOUT_S,
    CmsAnswer,
    CmsEventSink,
    CmsFailure,
    Request,
    UnknownTask,
    answer_of,
    body_of,
    event_of,
    message_of,
    tasks_of,
)
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import AllowedEndpoint
from walle.texts import truncate_text

_ACCEPTED: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


class HttpCms:
    """One CMS of one project, as configured. All methods raise CmsFailure; whether the CMS acted is then unknown."""

    def __init__(
        self,
        calls: OutgoingCalls,
        events: CmsEventSink,
        project: str,
        url: str,
        version: str,
        endpoint: AllowedEndpoint,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`endpoint`: the entry of the configuration that covers the URL."""
        self.name, self.version = url, version
        self._calls, self._events, self._project, self._timeout_s = calls, events, project, timeout_s
        self._tasks, self._endpoint = f"{url.rstrip('/')}/{version}/tasks", endpoint

    async def dry_run(self, request: Request) -> CmsAnswer:
        reply = await self._send("dry_run", "POST", self._tasks, body_of(request), {"dry_run": "true"})
        return self._read_answer("dry_run", request.id, reply)

    async def create(self, request: Request) -> CmsAnswer:
        reply = await self._send("add_task", "POST", self._tasks, body_of(request))
        return self._read_answer("add_task", request.id, reply)

    async def poll(self, task_id: str) -> CmsAnswer:
        reply = await self._send("get_task", "GET", self._of(task_id))
        return self._read_answer("get_task", task_id, reply)

    async def confirm(self, task_id: str) -> CmsAnswer:
        """200 makes it final; 409 takes it back and says why."""
        reply = await self._send("confirm_task", "POST", f"{self._of(task_id)}/confirm", {})
        accepted = reply.status == HTTPStatus.CONFLICT
        return self._read_answer(
            "confirm_task", task_id, HttpReply(HTTPStatus.OK, reply.content) if accepted else reply
        )

    async def delete(self, task_id: str) -> None:
        reply = await self._send("delete_task", "DELETE", self._of(task_id))
        if reply.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND):
            raise self._failure("delete_task", _refusal(reply))
        self._went_well("delete_task", "deleted")

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        reply = await self._send("get_tasks", "GET", self._tasks)
        if reply.status != HTTPStatus.OK:
            raise self._failure("get_tasks", _refusal(reply))
        try:
            listed = tasks_of(reply.json())
        except CmsFailure as error:
            raise self._failure("get_tasks", str(error)) from error
        self._went_well("get_tasks", f"{len(listed)} tasks")
        return listed

    def _of(self, task_id: str) -> str:
        return f"{self._tasks}/{quote(task_id, safe='')}"

    def _read_answer(self, action: str, task_id: str, reply: HttpReply) -> CmsAnswer:
        if reply.status == HTTPStatus.NOT_FOUND and action in ("get_task", "confirm_task"):
            self._went_well(action, "unknown task")
            raise UnknownTask(f"task {task_id} does not exist")
        if reply.status not in _ACCEPTED:
            raise self._failure(action, _refusal(reply))
        try:
            answer = answer_of(task_id, reply.json())
        except CmsFailure as error:
            raise self._failure(action, str(error)) from error
        self._went_well(action, answer.message)
        return answer

    async def _send(
        self, action: str, method: str, url: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> HttpReply:
        where = self._endpoint
        try:
            return await self._calls.send(
                method,
                url,
                body=body,
                query=query,
                headers=where.headers(),
                tls=where.tls,
                timeout_s=self._timeout_s,
            )
        except OutgoingCallFailed as error:
            raise self._failure(action, str(error)) from error

    def _went_well(self, action: str, answer: str) -> None:
        self._events.send(event_of(action, self._project, self.name, self.version, answer=answer), self._project)

    def _failure(self, action: str, text: str) -> CmsFailure:
        text = truncate_text(text)  # it quotes what the CMS answered
        event = event_of(action, self._project, self.name, self.version, failure=text)
        self._events.send(event, self._project)
        return CmsFailure(text)


def _refusal(reply: HttpReply) -> str:
    return f"HTTP {reply.status}: {message_of(reply.json()) or 'no message'}"
