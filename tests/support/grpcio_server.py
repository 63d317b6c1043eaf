"""Calls served by grpc.aio: those of a table of methods, or of an object that has their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from serving import error_statuses
from serving.calls.methods import Call, Duplex, Method, Streaming, UnaryMethod, maybe_await

Context = aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class _GrpcioCall(Call):
    metadata: Sequence[tuple[str, str | bytes]] = ()

    def all_headers(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self.metadata if key == name and isinstance(value, str))


class GrpcioServer:
    """Serves unary calls and streams of answers, without limits."""

    def __init__(self, methods: Sequence[Method]) -> None:
        self._server = aio.server()
        services: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
        for method in methods:
            service, _, name = method.path.partition("/")
            services.setdefault(service, {})[name] = _handler(method)
        self._server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(*entry) for entry in services.items())
        )

    async def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen on host:port; return the port."""
        add = self._server.add_insecure_port
        port = add(address) if credentials is None else self._server.add_secure_port(address, credentials)
        await self._server.start()
        return port

    async def stop(self, grace_s: float) -> None:
        """Take no new calls, give those under way `grace_s`."""
        await self._server.stop(grace_s)


def add_service(server: aio.Server, service: ServiceDescriptor, served: object) -> None:
    """Serve what the object has under the names of the service's calls; the others are UNIMPLEMENTED."""
    handlers: dict[str, Any] = {}
    for method in service.methods:
        run = getattr(served, method.name, None)
        if run is not None:
            ask, answer = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
            made = (
                grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
            )
            handlers[method.name] = made(run, ask.FromString, answer.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))


def _handler(method: Method) -> grpc.RpcMethodHandler[Any, Any]:
    assert not isinstance(method, Duplex)
    if isinstance(method, UnaryMethod):
        return grpc.unary_unary_rpc_method_handler(cast("Any", _unary(method)))
    return grpc.unary_stream_rpc_method_handler(cast("Any", _stream(method)))


def _unary(method: UnaryMethod) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def handle(request: bytes, context: Context) -> bytes:
        call = _call(context)
        try:
            return (await maybe_await(method.run(method.parse(request), call))).proto()
        except Exception as error:
            await _abort(context, call, error)

    return handle


def _stream(method: Streaming) -> Callable[[bytes, Context], Awaitable[None]]:
    async def handle(request: bytes, context: Context) -> None:
        call = _call(context)
        try:
            async for answer in method.run(method.parse(request), call):
                await context.write(answer.proto())
        except Exception as error:
            await _abort(context, call, error)

    return handle


def _call(context: Context) -> _GrpcioCall:
    left_s: float | None = cast("Any", context).time_remaining()
    metadata = tuple(context.invocation_metadata() or ())
    named = dict(cast("Any", metadata))
    deadline = None if left_s is None else asyncio.get_running_loop().time() + left_s
    return _GrpcioCall(deadline, context.peer(), named.get("x-request-id", ""), metadata=metadata)


async def _abort(context: Context, call: Call, error: Exception) -> NoReturn:
    told = error_statuses.as_service_error(error, call)
    status = error_statuses.status_of(told)
    await context.abort(error_statuses.grpc_code(told), status.message, error_statuses.grpc_trailers(told, status))
    raise AssertionError("unreachable: abort raises")
