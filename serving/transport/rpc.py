"""One call: let in, read, run, answered; once, whatever happens, with the errors that its protocol knows."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from functools import partial
from types import CoroutineType
from typing import Any, Final

from serving import error_statuses
from serving.calls.current import CURRENT
from serving.calls.methods import Answer, Method, UnaryMethod, maybe_await
from serving.context import ServerContext
from serving.encoding.envelopes import PREFIX_BYTES, Message
from serving.encoding.jsonio import refuse_deep
from serving.errors import ServiceError, ShuttingDown, TooLarge
from serving.limiting.admission import LARGE_BYTES
from serving.protocol_errors import SlowRequest, WrongNumberOfMessages
from serving.transport.call import ExchangeCall
from serving.transport.exchange import Exchange, Handler
from serving.transport.wire import Wire

LONG_JSON_BYTES: Final = 32 * 1024


class RpcEndpoint:
    """One method, with what each call of it needs; made once."""

    def __init__(self, method: Method, shared: ServerContext, kind: type[Rpc]) -> None:
        self.method, self.shared, self.kind = method, shared, kind
        self.guard = shared.guard(method.path, method.rule, method.reach)
        self.run = self.guard.run_of(method)
        self.admission, self.limits = shared.admission, shared.limits
        self.now, self.ids = shared.clock.now, shared.ids
        self.stats = {name: shared.traffic.stats(name, method.path) for name in ("grpc", "http")}
        self.large_bytes = min(LARGE_BYTES, shared.limits.max_response_bytes + 1)
        self.turned_away = method.turned_away if isinstance(method, UnaryMethod) else None
        self.is_stream = not isinstance(method, UnaryMethod)
        self.parse = method.parse, self._parse_json  # by whether it is JSON
        counted = self.admission
        self.count_in, self.count_out = counted.open_call, counted.close_call
        if self.is_stream and method.rule.is_open:
            self.count_in, self.count_out = counted.open_unnamed_stream, counted.close_unnamed_stream
        elif self.is_stream:
            self.count_in, self.count_out = counted.open_stream, counted.close_stream
        # Health answers under overload: balancers that take a busy replica for a dead one would make it worse.
        self.is_free = method.rule.is_open and isinstance(method, UnaryMethod)

    def _parse_json(self, payload: bytes) -> Any:
        refuse_deep(payload, self.limits.max_json_depth)
        return self.method.parse_json(payload)


class Rpc(Handler):
    """A call in its exchange: what all kinds of calls share. It is the exchange's handler."""

    _task: asyncio.Task[None] | None = None
    _message: Message | None = None  # the request; kept on where somebody is told of calls that are turned away
    _result: Any = None  # what the task waits for
    _held_bytes = 0  # bytes counted for a request that is not complete, or for a large one under way
    _started = 0.0  # when it was let in
    _has_run = False  # the method was asked
    _is_open = False  # among the calls or streams that are counted
    _is_gone = False
    _is_closed = False

    def __init__(self, endpoint: RpcEndpoint, exchange: Exchange, spoken: Wire) -> None:
        self._endpoint, self._exchange, self._wire = endpoint, exchange, spoken
        self._call = ExchangeCall(exchange, endpoint.ids)
        exchange.handler = self

    def start(self) -> None:
        """Authorize the call by its headers, before anything else is read."""
        endpoint, spoken = self._endpoint, self._wire
        try:
            if spoken.timeout_s is not None:
                self._call.set_deadline(endpoint.now() + spoken.timeout_s)
            if endpoint.guard.admit is not None:
                CURRENT.set(self._call)
                endpoint.guard.admit(self._call)
        except BaseException as error:
            self._fail(error)
            return
        length, most = self._exchange.head.named.get(b"content-length"), endpoint.limits.max_request_bytes
        if length is not None and int(length) > most + PREFIX_BYTES:  # before its sender is told to go on
            self._fail(TooLarge(f"the body is over the limit of {most} bytes"))

    def data(self, chunk: bytes, *, end: bool) -> None:
        if not end:
            self._exchange.acknowledge_bytes(len(chunk))
        if self._is_closed or self._task is not None:
            return
        CURRENT.set(self._call)  # headers of other calls may have come since ours, and set it
        try:
            self._read_chunk(chunk, end=end)
        except BaseException as error:
            self._fail(error)

    def _read_chunk(self, chunk: bytes, *, end: bool) -> None:
        message = self._message
        for one in self._wire.take(chunk, end=end):
            if message is not None:
                raise WrongNumberOfMessages("more than one message: this call takes one")
            message = self._message = one
        if not end:
            self._hold(self._held_bytes + len(chunk))
            return
        if message is None:
            raise WrongNumberOfMessages("the call ended without a request")
        if self._held_bytes:
            self._hold(0)
        if self._endpoint.turned_away is None:
            self._message = None
        self._run(*message)

    def on_request_timeout(self) -> None:
        CURRENT.set(self._call)
        if not self._is_closed and self._task is None:
            self._fail(SlowRequest(self._endpoint.limits.slow_request_s))

    def on_peer_gone(self) -> None:
        self._is_gone = True
        if self._task is not None:
            self._cancel(self._task)
        else:
            self._close("CANCELLED")

    def expire(self) -> None:
        CURRENT.set(self._call)
        if self._task is not None:
            self._cancel(self._task)
        elif not self._is_closed:
            self._fail(ShuttingDown("this replica is shutting down: use another one", 0.0))

    def _cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, _task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step does nothing, not even what stands behind `finally`.
        self._fail(asyncio.CancelledError())
        if isinstance(self._result, CoroutineType) and inspect.getcoroutinestate(self._result) == inspect.CORO_CREATED:
            self._result.close()

    def _run(self, is_compressed: bool, payload: bytes) -> None:
        """Run the call: the request is here."""

    async def _request(self, is_compressed: bool, payload: bytes) -> Any:
        """The message, parsed in a thread where that takes long."""
        endpoint, is_json = self._endpoint, self._wire.json_in
        if is_compressed:
            payload = await asyncio.to_thread(self._wire.decompress, payload)
            if len(payload) >= max(LARGE_BYTES, self._held_bytes):  # counted until the call ends, which keeps it
                self._hold(len(payload))
        if is_json and len(payload) >= LONG_JSON_BYTES:
            refuse_deep(payload, endpoint.limits.max_json_depth)
            parse = partial(endpoint.method.parse_json, payload)
            return await endpoint.shared.json_thread.run(parse, self._call.caller)
        return endpoint.parse[is_json](payload)

    def _check_size(self, payload: bytes) -> None:
        admission = self._endpoint.admission
        if len(payload) > admission.max_response_bytes:
            admission.refuse_answer(len(payload))
        if len(payload) >= LARGE_BYTES:
            admission.check_room(self._exchange.peer.host, len(payload))

    def _enter(self) -> None:
        """Count the call as under way from now on. Raises Overloaded."""
        self._endpoint.count_in(self._exchange.peer.host)
        self._is_open = True

    def _release(self) -> None:
        """Count out what was counted in."""
        if self._is_open:
            self._endpoint.count_out(self._exchange.peer.host)
        if self._held_bytes:
            self._hold(0)

    def _hold(self, size: int) -> None:
        """Count so many bytes of a request in all. Raises Overloaded."""
        held, peer = self._held_bytes, self._exchange.peer.host
        if size > held:
            self._endpoint.admission.hold_body(peer, size - held)
        elif size < held:
            self._endpoint.admission.release_body(peer, held - size)
        self._held_bytes = size

    def _close(self, code: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._message = None
        self._release()
        self._endpoint.stats[self._wire.transport].count_end(code)

    def _fail(self, error: BaseException) -> None:
        """End the call with this error, unless the client has gone."""
        if self._is_closed:
            return
        call, endpoint = self._call, self._endpoint
        if self._is_gone:
            self._close("CANCELLED")
            return
        if endpoint.is_stream and isinstance(error, asyncio.CancelledError):
            error = ShuttingDown("this replica is shutting down: reconnect to another one", 0.0)
        told = error_statuses.as_service_error(error, call)
        endpoint.admission.count(told)
        endpoint.guard.on_call_refused(call, told)
        if endpoint.turned_away is not None and not self._has_run:
            endpoint.turned_away(self._read_at_last(), call, told)
        self._close(told.code)
        self._wire.fail(call, told)

    def _read_at_last(self) -> Any | None:
        """The request of a call that was not run, if that costs little."""
        if self._message is None or self._message[0]:
            return None
        try:
            return self._endpoint.parse[self._wire.json_in](self._message[1])
        except ServiceError:
            return None


# The method keeps the deadline, since it knows whether a write was stored. This long after it, the call is cut off.
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
