"""A CMS over HTTP: v1.0 to v1.4 of the protocol, 10 s per call, an event for each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx

from walle.approval.protocol import (
    TIMEOUT_S,
    Answer,
    CmsFailure,
    Events,
    Request,
    UnknownTask,
    answer_of,
    body_of,
    event_of,
    message_of,
    tasks_of,
)

_MAX_ANSWER_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: Any


class HttpCms:
    """One CMS of one project, as configured. All methods raise CmsFailure; whether the CMS acted is then unknown."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        events: Events,
        project: str,
        url: str,
        version: str,
        token: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.name, self.version = url, version
        self._http, self._events, self._project, self._timeout_s = http, events, project, timeout_s
        self._tasks = f"{url.rstrip('/')}/{version}/tasks"
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    async def dry_run(self, request: Request) -> Answer:
        reply = await self._send("dry_run", "POST", self._tasks, body_of(request), {"dry_run": "true"})
        return self._read("dry_run", request.id, reply)

    async def create(self, request: Request) -> Answer:
        reply = await self._send("add_task", "POST", self._tasks, body_of(request))
        return self._read("add_task", request.id, reply)

    async def poll(self, task_id: str) -> Answer:
        reply = await self._send("get_task", "GET", self._of(task_id))
        return self._read("get_task", task_id, reply)

    async def confirm(self, task_id: str) -> Answer:
        """200 makes it final; 409 takes it back and says why."""
        reply = await self._send("confirm_task", "POST", f"{self._of(task_id)}/confirm", {})
        accepted = reply.status == HTTPStatus.CONFLICT
        return self._read("confirm_task", task_id, _Reply(HTTPStatus.OK, reply.body) if accepted else reply)

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
            listed = tasks_of(reply.body)
        except CmsFailure as error:
            raise self._failure("get_tasks", str(error)) from error
        self._went_well("get_tasks", f"{len(listed)} tasks")
        return listed

    def _of(self, task_id: str) -> str:
        return f"{self._tasks}/{quote(task_id, safe='')}"

    def _read(self, action: str, task_id: str, reply: _Reply) -> Answer:
        if reply.status == HTTPStatus.NOT_FOUND and action in ("get_task", "confirm_task"):
            self._went_well(action, "unknown task")
            raise UnknownTask(f"task {task_id} does not exist")
        if reply.status not in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
            raise self._failure(action, _refusal(reply))
        try:
            answer = answer_of(task_id, reply.body)
        except CmsFailure as error:
            raise self._failure(action, str(error)) from error
        self._went_well(action, answer.message)
        return answer

    async def _send(
        self, action: str, method: str, url: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> _Reply:
        """The whole call takes 10 s at most, however slowly its bytes arrive."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(method, url, body, query)
        except TimeoutError:
            raise self._failure(action, f"no answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise self._failure(action, f"{type(error).__name__}: {error}".rstrip(": ")) from error

    async def _exchange(self, method: str, url: str, body: object, query: Mapping[str, str] | None) -> _Reply:
        request = self._http.build_request(method, url, json=body, params=query, headers=self._headers)
        response = await self._http.send(request, stream=True)
        try:
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > _MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer is larger than {_MAX_ANSWER_BYTES} bytes")
        finally:
            await response.aclose()
        return _Reply(response.status_code, _parsed(bytes(content)))

    def _went_well(self, action: str, answer: str) -> None:
        self._events.send(event_of(action, self._project, self.name, self.version, answer=answer), self._project)

    def _failure(self, action: str, text: str) -> CmsFailure:
        event = event_of(action, self._project, self.name, self.version, failure=text)
        self._events.send(event, self._project)
        return CmsFailure(text)


def _parsed(content: bytes) -> Any:
    """None: no content, or not JSON; callers that need a body check for that."""
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return None


def _refusal(reply: _Reply) -> str:
    return f"HTTP {reply.status}: {message_of(reply.body) or 'no message'}"
