"""The gRPC transport: bytes in, bytes out, from the table of methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NoReturn, cast

import grpc
from google.protobuf import descriptor_pool
from grpc import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc  # type: ignore[import-untyped]

from serving import error_statuses
from serving.auth.call_guard import Guard
from serving.calls.answer_streams import ClosingStream
from serving.calls.incoming import GrpcCall
from serving.calls.methods import Answer, Duplex, Method, Streaming, Unary, settled
from serving.context import ServerContext
from serving.grpc.limits import Arrivals, count_until_taken, options_of
from serving.grpc.reflection import BoundedReflection
from serving.limiting.admission import LARGE_BYTES, Admission
from serving.standard.health import SERVICE as HEALTH_SERVICE
from serving.standard.health import Health, HealthCalls
from serving.telemetry.traffic import CallStats

Context = aio.ServicerContext[Any, Any]
# We read the request ourselves (`Arrivals`), so to gRPC all of these take a stream of them.
UnaryHandler = Callable[[object, Context], Awaitable[bytes]]
StreamHandler = Callable[[object, Context], Awaitable[None]]


class GrpcServer:
    """Serves a table of methods with health and reflection.

    Must be made inside the running event loop that is to serve.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        health: Health,
        shared: ServerContext,
        *,
        reuse_port: bool = False,
    ) -> None:
        self._shared = shared
        logging.getLogger("grpc._cython.cygrpc").addFilter(_is_news)  # adding it again does nothing
        self._server = aio.server(options=options_of(shared.limits, reuse_port=reuse_port))
        self._arrivals = Arrivals(shared.limits.slow_request_s)
        services = sorted({m.path.partition("/")[0] for m in methods})
        self._health = HealthCalls(health, services)
        self._server.add_generic_rpc_handlers(tuple(self._handlers([*methods, *self._health.methods()])))
        described = _described([*services, HEALTH_SERVICE, reflection.SERVICE_NAME])
        reflecting = BoundedReflection(described, shared.admission, shared.limits.slow_request_s)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflecting, self._server)

    def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """A further address, before `start`: host:port, with TLS if there are credentials; return the port.

        Raises:
            OSError: the address cannot be bound.
        """
        return self._listen(address, credentials)

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen on host:port, with TLS if there are credentials; return the port, which matters for port 0.

        Raises:
            OSError: the address cannot be bound.
        """
        port = self._listen(address, credentials)
        await self._server.start()
        self._health.start()
        return port

    async def stop(self, grace_s: float) -> None:
        """Say NOT_SERVING, take no new calls, give those under way `grace_s`, then break them off."""
        await self._health.stop()
        await self._server.stop(grace_s)

    def _listen(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address} for gRPC: {error}") from error

    def _handlers(self, methods: Sequence[Method]) -> list[grpc.GenericRpcHandler]:
        services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for method in methods:
            if isinstance(method, Duplex):
                continue
            service, _, name = method.path.partition("/")
            services.setdefault(service, {})[name] = self._handler(method)
        return [grpc.method_handlers_generic_handler(*entry) for entry in services.items()]

    def _handler(self, method: Unary | Streaming) -> grpc.RpcMethodHandler[Any, Any]:
        if isinstance(method, Unary):
            return grpc.stream_unary_rpc_method_handler(cast("Any", self._unary(method)))
        return grpc.stream_stream_rpc_method_handler(cast("Any", self._stream(method)))

    def _unary(self, method: Unary) -> UnaryHandler:
        # Everything is a local of the closure: this runs several thousand times a second.
        shared, parse = self._shared, method.parse
        guard = shared.guard(method.path, method.rule)
        admit, run = guard.admit, guard.recorded(method)
        admission, clock, ids, now = shared.admission, shared.clock, shared.ids, shared.clock.now
        stats = shared.traffic.stats("grpc", method.path)
        max_bytes = admission.max_response_bytes
        limits = (admission.open_call, admission.close_call, admission.check_rate)
        open_call, close_call, check_rate = (_free, _free, _free) if method.rule.is_open else limits
        arrivals = self._arrivals

        async def handle(_: object, context: Context) -> bytes:
            call = GrpcCall(context, clock, ids)
            try:
                caller = peer = call.host
                open_call(peer)
                try:
                    if admit is not None:
                        admit(call)
                        caller = call.caller
                    check_rate(caller)
                    request = await arrivals.request(context)
                    started = now()
                    if len(request) < LARGE_BYTES:
                        body = (await settled(run(parse(request), call))).proto()
                    else:
                        with admission.holding(peer, len(request)):
                            body = (await settled(run(parse(request), call))).proto()
                finally:
                    close_call(peer)
                if len(body) > max_bytes:
                    admission.refuse_answer(len(body))
                if len(body) >= LARGE_BYTES:
                    count_until_taken(admission, peer, len(body))
                stats.answered(now() - started)  # no sooner: a limit may refuse what is ready
                if request_id := call.told_request_id:
                    context.set_trailing_metadata((("x-request-id", request_id),))
            except BaseException as error:
                request = body = b""  # `_let_go` says why
                await _abort(context, call, error, stats, admission, guard)
            return body

        return handle

    def _stream(self, method: Streaming) -> StreamHandler:
        admission, clock, ids = self._shared.admission, self._shared.clock, self._shared.ids
        stats = self._shared.traffic.stats("grpc", method.path)
        guard = self._shared.guard(method.path, method.rule)
        arrivals = self._arrivals

        async def send(context: Context, answers: AsyncIterator[Answer]) -> None:
            async for answer in answers:
                body = answer.proto()
                if len(body) > admission.max_response_bytes:
                    admission.refuse_answer(len(body))
                await context.write(body)  # waits while the reader is slow

        async def handle(_: object, context: Context) -> None:
            call = GrpcCall(context, clock, ids)
            try:
                peer = call.host
                admission.open_stream(peer)
                try:
                    if guard.admit is not None:
                        guard.admit(call)
                    admission.check_rate(call.caller)
                    request = await arrivals.request(context)
                    size_bytes, parsed, request = len(request), method.parse(request), b""
                    request_id = call.told_request_id
                    # Before the lease, whose end breaks off what is being written: gRPC would take headers that went
                    # with a first message broken off for not sent, send them once more with the error, and fail.
                    await context.send_initial_metadata((("x-request-id", request_id),) if request_id else ())
                    with admission.holding(peer, size_bytes):
                        async with guard.lease(call), ClosingStream(method.run(parsed, call)) as answers:
                            await send(context, answers)
                finally:
                    admission.close_stream(peer)
                stats.ended("OK")
            except BaseException as error:
                request, parsed = b"", None  # `_let_go` says why
                await _abort(context, call, error, stats, admission, guard)

        return handle


def _free(_: str) -> None:
    """Health checks are answered under overload: balancers that think a busy replica dead would make it worse."""


async def _abort(
    context: Context, call: GrpcCall, error: BaseException, stats: CallStats, admission: Admission, guard: Guard
) -> NoReturn:
    """End the call with the error, or with the cancellation if the call itself was cancelled."""
    task = asyncio.current_task()
    broken_off = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    if broken_off or isinstance(error, aio.InternalError):  # the latter: gRPC cannot write any more
        stats.ended("CANCELLED")
        raise asyncio.CancelledError from error
    told = error_statuses.as_service_error(error, call)
    admission.count(told)
    guard.refused(call, told)
    stats.ended(told.code)
    status = error_statuses.status_of(told)
    _let_go(error)
    try:
        await context.abort(error_statuses.grpc_code(told), status.message, error_statuses.grpc_trailers(told, status))
    except aio.InternalError:  # the caller is gone; gRPC would write a traceback for each
        raise asyncio.CancelledError from error
    raise AssertionError("unreachable: abort raises") from error


def _let_go(error: BaseException) -> None:
    """Drop the tracebacks of an error and its causes, since they hold the request.

    gRPC keeps the exception by which it ends a call in a cycle with that call, until garbage is collected; and this
    error is in the context of that exception.
    """
    behind: BaseException | None = error
    while behind is not None:
        behind.__traceback__, behind = None, behind.__context__


def _is_news(record: logging.LogRecord) -> bool:
    """gRPC logs a traceback for each caller that leaves while it is answered; anybody could fill the log like that."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, aio.InternalError)


def _described(services: Sequence[str]) -> list[str]:
    """Those that reflection can describe: their generated code was imported."""
    pool = descriptor_pool.Default()

    def known(service: str) -> bool:
        try:
            pool.FindServiceByName(service)
        except KeyError:
            return False
        return True

    return [service for service in services if known(service)]
