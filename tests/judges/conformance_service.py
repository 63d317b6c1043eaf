"""connectrpc.conformance.v1.ConformanceService on our table of methods: it does what each request says.

The service's promises are in its own service.proto; the notes here say only what is ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from serving.calls.methods import Answer, Call, Duplex, Method, Streaming, UnaryMethod
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.errors import ServiceError
from serving.rights.rules import OPEN
from tests.judges import protos
from tests.judges.statuses import failure

PACKAGE: Final = "connectrpc.conformance.v1"
_FILES: Final = ("service.proto", "server_compat.proto", "config.proto")


def learn(root: Path) -> None:
    """Make the messages known, from the `proto` folder of the judge's own module."""
    protos.learn(protos.compiled(root, *(f"connectrpc/conformance/v1/{name}" for name in _FILES)))


def message(name: str) -> Any:
    """A class of the judge's package."""
    return protos.message(f"{PACKAGE}.{name}")


def table() -> list[Method]:
    """All methods but Unimplemented."""
    return [
        UnaryMethod(*_call("Unary"), _one("UnaryResponse"), OPEN),
        UnaryMethod(*_call("IdempotentUnary"), _one("IdempotentUnaryResponse"), OPEN, safe=True),
        Streaming(*_call("ServerStream"), _server_stream, OPEN),
        Duplex(*_call("ClientStream"), _client_stream, OPEN, one_answer=True),
        Duplex(*_call("BidiStream"), _bidi_stream, OPEN, one_answer=False),
    ]


def _call(name: str) -> tuple[str, Any, Any]:
    request = message(f"{name}Request")
    return f"{PACKAGE}.ConformanceService/{name}", parse_proto(request), parse_json(request)


# --- what a call was, and what it is told to answer ------------------------------------------------------------


def _seen(call: Call, requests: Sequence[Any]) -> Any:
    """The caller's headers, its timeout and its requests."""
    headers: dict[str, list[str]] = {}
    for name, value in call.fields():
        headers.setdefault(name.decode(), []).append(value.decode("latin-1"))
    info = message("ConformancePayload.RequestInfo")(requests=map(protos.as_any, requests))
    for told, values in headers.items():
        info.request_headers.add(name=told, value=values)
    if call.deadline is not None:
        info.timeout_ms = max(0, int((call.deadline - time.monotonic()) * 1_000))
    return info


def _promise(call: Call, wanted: Any) -> None:
    """The headers and trailers, whatever the answer will be."""
    for header in wanted.response_headers:
        for value in header.value:
            call.answer_header(header.name.lower(), value)
    for trailer in wanted.response_trailers:
        for value in trailer.value:
            call.answer_trailer(trailer.name.lower(), value)


def _error(wanted: Any, *seen: Any) -> ServiceError:
    return failure(wanted.code, wanted.message, [*wanted.details, *map(protos.as_any, seen)])


async def _delay(wanted: Any) -> None:
    if wanted.response_delay_ms:
        await asyncio.sleep(wanted.response_delay_ms / 1_000)


async def _single(call: Call, wanted: Any, requests: Sequence[Any]) -> Any:
    """The payload of the only answer. Raises what the requests ask for."""
    seen = _seen(call, requests)
    _promise(call, wanted)
    await _delay(wanted)
    if wanted.HasField("error"):
        raise _error(wanted.error, seen)
    return message("ConformancePayload")(data=wanted.response_data, request_info=seen)


# --- the methods -----------------------------------------------------------------------------------------------


def _one(answer: str) -> Any:
    async def run(request: Any, call: Call) -> Answer:
        payload = await _single(call, request.response_definition, [request])
        return MessageAnswer(message(answer)(payload=payload))

    return run


async def _client_stream(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    told = [request async for request in requests]
    wanted = told[0].response_definition if told else message("UnaryResponseDefinition")()
    yield MessageAnswer(message("ClientStreamResponse")(payload=await _single(call, wanted, told)))


async def _server_stream(request: Any, call: Call) -> AsyncIterator[Answer]:
    async for answer in _stream("ServerStreamResponse", call, request.response_definition, [request]):
        yield answer


async def _bidi_stream(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    first = await anext(requests, None)
    if first is None:
        return
    answers = _full_duplex if first.full_duplex else _half_duplex
    async for answer in answers(first, requests, call):
        yield answer


async def _half_duplex(first: Any, requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    told = [first, *[request async for request in requests]]
    async for answer in _stream("BidiStreamResponse", call, first.response_definition, told):
        yield answer


async def _stream(kind: str, call: Call, wanted: Any, told: Sequence[Any]) -> AsyncIterator[Answer]:
    """All answers; only the first of them says what was seen, and an error without answers does."""
    seen = _seen(call, told)
    _promise(call, wanted)
    for number, data in enumerate(wanted.response_data):
        await _delay(wanted)
        yield _answer(kind, data, None if number else seen)
    if wanted.HasField("error"):
        raise _error(wanted.error, *([] if wanted.response_data else [seen]))


async def _full_duplex(first: Any, requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Answer]:
    """One answer for each request; those that are left over when the requests end follow at once."""
    wanted, request = first.response_definition, first
    seen = _seen(call, [first])
    _promise(call, wanted)
    for data in wanted.response_data:
        await _delay(wanted)
        yield _answer("BidiStreamResponse", data, seen)
        request = await anext(requests, None) if request is not None else None
        seen = _echo(request) if request is not None else None
    if wanted.HasField("error"):
        raise _error(wanted.error, *([] if wanted.response_data else [seen]))


def _echo(request: Any) -> Any:
    return message("ConformancePayload.RequestInfo")(requests=[protos.as_any(request)])


def _answer(kind: str, data: bytes, seen: Any) -> Answer:
    return MessageAnswer(message(kind)(payload=message("ConformancePayload")(data=data, request_info=seen)))
