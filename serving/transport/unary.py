"""A call with one message and one answer: at once where memory has it, else in a task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from serving.calls.methods import Answer, maybe_await
from serving.limiting.admission import LARGE_BYTES
from serving.transport.rpc import LONG_JSON_BYTES, Rpc

# A deadline is the method's to keep: it knows whether a write was stored. Later than this we cut it off.
_DEADLINE_GRACE_S: Final = 0.25


class UnaryRpc(Rpc):
    def _run(self, is_compressed: bool, payload: bytes) -> None:
        endpoint, spoken = self._endpoint, self._wire
        if not endpoint.is_free:
            endpoint.admission.check_call(self._exchange.peer.host)
            if endpoint.admission.peer_rate is not None:
                endpoint.admission.check_rate(self._call.caller)
        if len(payload) >= LARGE_BYTES:
            self._hold(len(payload))
        self._started = endpoint.now()
        if is_compressed or (spoken.json_in and len(payload) >= LONG_JSON_BYTES):
            self._wait_for(self._read_and_run(is_compressed, payload))
            return
        request = endpoint.parse[spoken.json_in](payload)
        self._has_run = True
        result = endpoint.run(request, self._call)
        if not hasattr(type(result), "__await__"):  # as Awaitable has it, but for a tenth of the time
            result = result.json() if spoken.json_out else result.proto()
        if type(result) is bytes:
            self._answer(result)
        else:
            self._wait_for(result)

    def _wait_for(self, result: Awaitable[Answer | bytes]) -> None:
        """Go on in a task; from now on the call is counted as under way."""
        if not self._endpoint.is_free:
            self._enter()
        self._result = result
        self._task = asyncio.get_running_loop().create_task(self._await_result(result))

    async def _read_and_run(self, is_compressed: bool, payload: bytes) -> Answer:
        request = await self._request(is_compressed, payload)
        self._has_run = True
        answer: Answer = await maybe_await(self._endpoint.run(request, self._call))
        return answer

    async def _await_result(self, result: Awaitable[Answer | bytes]) -> None:
        timeout_s = self._wire.timeout_s
        try:
            async with asyncio.timeout(None if timeout_s is None else timeout_s + _DEADLINE_GRACE_S):
                payload = await self._payload(result)
            self._answer(payload)
        except BaseException as error:
            self._fail(error)

    async def _payload(self, result: Awaitable[Answer | bytes]) -> bytes:
        answer = await result
        if isinstance(answer, bytes):
            return answer
        return await maybe_await(answer.json()) if self._wire.json_out else answer.proto()

    def _answer(self, payload: bytes) -> None:
        endpoint, spoken = self._endpoint, self._wire
        if len(payload) >= endpoint.large_bytes:
            self._check_size(payload)
        seconds = endpoint.now() - self._started
        self._is_closed = True
        if self._is_open or self._held_bytes:
            self._release()
        if not self._is_gone:
            endpoint.stats[spoken.transport].answered(seconds)
            spoken.unary_answer(self._call, payload)
