"""Hands work to somebody else's service: POST begins it, GET asks about it, both by the operation's id.

POST {url} with {"id", "host", "bmc", "inventory", "operation", "check"}: 2xx, the same id twice is one.
GET {url}/{id}: {"state": "running" | "done" | "failed", "output": "..."}, or 404: it was never begun.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import httpx

from walle.executors.port import ExecutorFailure, Progress, Seen
from walle.kinds import NAMES
from wallepb.v1.host_pb2 import Host

_TIMEOUT_S: Final = 20.0
_STATES: Final = {"running": Progress.RUNNING, "done": Progress.DONE, "failed": Progress.FAILED}


class Webhook:
    """The executor."""

    def __init__(self, name: str, url: str, token: str, http: httpx.AsyncClient) -> None:
        self.name, self._url, self._http = name, url.rstrip("/"), http
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    async def before(self, host: Host) -> str:
        return ""

    async def begin(self, host: Host) -> str:
        operation = host.operation
        body = {
            "id": operation.id,
            "host": host.name,
            "bmc": host.bmc,
            "inventory": host.inventory,
            "operation": NAMES[operation.kind],
            "check": operation.check,
        }
        response = await self._call("POST", self._url, body)
        if not response.is_success:
            raise ExecutorFailure(f"POST {self._url}: HTTP {response.status_code}")
        return operation.id

    async def look(self, host: Host, age_s: float) -> Seen:
        response = await self._call("GET", f"{self._url}/{quote(host.operation.id, safe='')}")
        if response.status_code == HTTPStatus.NOT_FOUND:
            return Seen(Progress.NOT_BEGUN)
        if not response.is_success:
            raise ExecutorFailure(f"GET {self._url}: HTTP {response.status_code}")
        try:
            answer = response.json()
            return Seen(_STATES[answer["state"]], str(answer.get("output", "")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ExecutorFailure(f"GET {self._url}: the answer has no state of running, done or failed") from error

    async def _call(self, method: str, url: str, body: object = None) -> httpx.Response:
        try:
            return await self._http.request(method, url, json=body, headers=self._headers, timeout=_TIMEOUT_S)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ExecutorFailure(f"{method} {url}: {type(error).__name__}: {error}".rstrip(": ")) from error
