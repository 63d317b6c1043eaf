"""grpc.testing.TestService on our table of methods, as gRPC's interop clients expect it.

What cannot be promised here: whether one message came compressed. The table hides that from a method, so the probes of
client_compressed_* (which want an error for a message that did not) are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from serving.calls.methods import Answer, Call, Duplex, Method, Streaming, UnaryMethod
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.rights.rules import OPEN
from tests.judges import protos
from tests.judges.statuses import failure

FILE: Final = "testing.proto"
SERVICE: Final = "grpc.testing.TestService"
INITIAL: Final = "x-grpc-test-echo-initial"
TRAILING: Final = "x-grpc-test-echo-trailing-bin"


def learn() -> bytes:
    """Make the messages known; their FileDescriptorSet."""
    files = protos.compiled(Path(__file__).parent, FILE)
    protos.learn(files)
    return files


def message(name: str) -> Any:
    """A class of grpc.testing."""
    return protos.message(f"grpc.testing.{name}")


def table() -> list[Method]:
    """All methods but UnimplementedCall."""
    learn()
    return [
        UnaryMethod(*_call("EmptyCall", "Empty"), _empty, OPEN),
        UnaryMethod(*_call("UnaryCall", "SimpleRequest"), _unary, OPEN),
        UnaryMethod(*_call("CacheableUnaryCall", "SimpleRequest"), _unary, OPEN, safe=True),
        Streaming(*_call("StreamingOutputCall", "StreamingOutputCallRequest"), _output, OPEN),
        Duplex(*_call("StreamingInputCall", "StreamingInputCallRequest"), _input, OPEN, one_answer=True),
        Duplex(*_call("FullDuplexCall", "StreamingOutputCallRequest"), _full, OPEN, one_answer=False),
        Duplex(*_call("HalfDuplexCall", "StreamingOutputCallRequest"), _half, OPEN, one_answer=False),
    ]


def _call(name: str, request: str) -> tuple[str, Any, Any]:
    return f"{SERVICE}/{name}", parse_proto(message(request)), parse_json(message(request))


def _echo_metadata(call: Call) -> None:
    for name, value in call.fields():
        if name == INITIAL.encode():
            call.answer_header(INITIAL, value.decode())
        elif name == TRAILING.encode():
            call.answer_trailer(TRAILING, value.decode())


def _echo_status(request: Any) -> None:
    if request.response_status.code:
        raise failure(request.response_status.code, request.response_status.message)


def _payload(size: int) -> Any:
    return message("Payload")(body=bytes(size))


async def _empty(_request: Any, call: Call) -> Answer:
    _echo_metadata(call)
    return MessageAnswer(message("Empty")())


async def _unary(request: Any, call: Call) -> Answer:
    _echo_metadata(call)
    _echo_status(request)
    answer = message("SimpleResponse")(payload=_payload(request.response_size))
    if request.fill_server_id:
        answer.server_id = "judged"
    return MessageAnswer(answer)


async def _output(request: Any, call: Call) -> AsyncIterator[Answer]:
    _echo_metadata(call)
    async for answer in _answers(request):
        yield answer


async def _input(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    _echo_metadata(call)
    size = 0
    async for request in requests:
        size += len(request.payload.body)
    yield MessageAnswer(message("StreamingInputCallResponse")(aggregated_payload_size=size))


async def _full(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    """Answers each request at once."""
    _echo_metadata(call)
    async for request in requests:
        async for answer in _answers(request):
            yield answer


async def _half(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    """Answers when all requests are there."""
    _echo_metadata(call)
    for request in [request async for request in requests]:
        async for answer in _answers(request):
            yield answer


async def _answers(request: Any) -> AsyncIterator[Answer]:
    _echo_status(request)
    for wanted in request.response_parameters:
        if wanted.interval_us:
            await asyncio.sleep(wanted.interval_us / 1e6)
        yield MessageAnswer(message("StreamingOutputCallResponse")(payload=_payload(wanted.size)))
