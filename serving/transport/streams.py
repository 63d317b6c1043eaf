"""Calls with a stream of answers, or of requests, too: one message in flight at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from serving.calls.answer_streams import ClosingStream, StreamTimeout
from serving.calls.current import CURRENT
from serving.calls.methods import Answer, Push, maybe_await
from serving.encoding.envelopes import Message
from serving.transport.rpc import Rpc

_BACKLOG_BYTES: Final = 64 * 1024  # of requests that were not taken yet: beyond it the sender waits


class StreamRpc(Rpc):
    def _run(self, is_compressed: bool, payload: bytes) -> None:
        self._admit(len(payload))
        self._task = asyncio.get_running_loop().create_task(self._stream((is_compressed, payload)))

    def _admit(self, size: int) -> None:
        self._enter()
        self._endpoint.admission.check_rate(self._call.caller)
        self._hold(size)

    async def _stream(self, message: Message) -> None:
        try:
            answers = self._endpoint.run(await self._request(*message), self._call)
            # Callers may wait for the headers, and the first message may be long in coming.
            asyncio.get_running_loop().call_soon(self._begin)
            await self._pump(answers)
        except BaseException as error:
            self._fail(error)

    async def _pump(self, answers: AsyncIterator[Answer]) -> None:
        endpoint, spoken, exchange = self._endpoint, self._wire, self._exchange
        limit = StreamTimeout(spoken.timeout_s, endpoint.limits.max_stream_age_s)
        async with limit, endpoint.guard.lease(self._call), ClosingStream(answers):
            async for answer in answers:
                payload = await maybe_await(answer.json()) if spoken.json_out else answer.proto()
                if len(payload) >= endpoint.large_bytes:
                    self._check_size(payload)
                if not exchange.sent_any:
                    self._begin()
                spoken.message(payload)
                del answer, payload  # while it waits it is held once, in the stream's queue
                if exchange.is_waiting:
                    await exchange.wait_until_drained()
        self._begin()
        self._close("OK")
        spoken.end(self._call)

    def pusher(self) -> Push:
        return self._wire.push

    def _begin(self) -> None:
        if not self._exchange.sent_any and not self._is_closed:
            if request_id := self._call.echoed_request_id:
                self._call.answer_header("x-request-id", request_id)
            self._wire.begin(self._call)


class DuplexRpc(StreamRpc):
    """Many messages, many answers, at the same time; or one answer at the end."""

    def start(self) -> None:
        self._backlog: asyncio.Queue[Message | None] = asyncio.Queue()  # None: there are no more
        self._backlog_bytes = self._unread_bytes = 0
        super().start()
        if not self._is_closed:
            CURRENT.set(self._call)
            self._task = asyncio.get_running_loop().create_task(self._duplex())

    def data(self, chunk: bytes, *, end: bool) -> None:
        self._unread_bytes += len(chunk)
        if self._is_closed:
            self._give_back()
            return
        try:
            for message in self._wire.take(chunk, end=end):
                self._backlog.put_nowait(message)
                self._backlog_bytes += len(message[1])
        except BaseException as error:
            self._fail(error)
            if self._task is not None:
                self._task.cancel()
        if self._backlog_bytes <= _BACKLOG_BYTES:
            self._give_back()
        if end:
            self._backlog.put_nowait(None)

    def on_request_timeout(self) -> None:
        """Do nothing: requests may come for as long as the stream lives."""

    def _give_back(self) -> None:
        self._exchange.acknowledge_bytes(self._unread_bytes)
        self._unread_bytes = 0

    async def _duplex(self) -> None:
        try:
            self._admit(0)
            await self._pump(self._endpoint.run(self, self._call))
        except BaseException as error:
            self._fail(error)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        """The next request."""
        message = await self._backlog.get()
        if message is None:
            self._backlog.put_nowait(None)  # for whoever asks again
            raise StopAsyncIteration
        self._backlog_bytes -= len(message[1])
        if self._backlog_bytes <= _BACKLOG_BYTES:
            self._give_back()
        return await self._request(*message)
