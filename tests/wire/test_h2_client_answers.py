"""The client against answers that are none, or are broken off: each call ends with the status of gRPC's tables."""

from __future__ import annotations

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]

from serving.h2 import frames
from serving.h2.frames import END_STREAM, ErrorCode
from tests.wire.raw_h2_server import OK, OK_HEAD, RawPeer, Script, failure, raw_server

Fields = list[tuple[str, str]]


def saying(fields: Fields, body: bytes = b"", trailers: Fields | None = None) -> Script:
    """A server that gives this answer."""

    async def script(peer: RawPeer) -> None:
        peer.greet()
        stream = await peer.request()
        peer.headers(stream, fields, 0 if body or trailers is not None else END_STREAM)
        if body or trailers is not None:
            peer.data(stream, body, 0 if trailers is not None else END_STREAM)
        if trailers is not None:
            peer.headers(stream, trailers, END_STREAM)
        await peer.rest()

    return script


HTML = [("content-type", "text/html")]
MESSAGE = b"\0\0\0\0\1x"


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        (saying([(":status", "503"), *HTML], b"sorry"), codes.UNAVAILABLE, "HTTP status 503, text/html"),
        (saying([(":status", "404"), *HTML]), codes.UNIMPLEMENTED, "404"),
        (saying([(":status", "403"), *HTML]), codes.PERMISSION_DENIED, "403"),
        (saying([(":status", "401"), *HTML]), codes.UNAUTHENTICATED, "401"),
        (saying([(":status", "200"), *HTML], b"<p>"), codes.UNKNOWN, "text/html"),
        (saying([(":status", "502"), ("content-type", "application/grpc")]), codes.UNAVAILABLE, "502"),
        (saying(OK_HEAD, MESSAGE), codes.UNKNOWN, "without a status"),
        (saying(OK_HEAD, MESSAGE, []), codes.UNKNOWN, "without a status"),
        (saying(OK_HEAD, MESSAGE, [("grpc-status", "five")]), codes.UNKNOWN, ""),
        (saying(OK_HEAD, MESSAGE, [("grpc-status", "77")]), codes.UNKNOWN, ""),
        (saying(OK_HEAD, MESSAGE, [("grpc-status", "5"), ("grpc-message", "a%20b%zz%C3%A4")]), codes.NOT_FOUND, "ä"),
        (saying(OK_HEAD, b"", OK), codes.INTERNAL, "without a response"),
        (saying(OK_HEAD, MESSAGE * 2, OK), codes.INTERNAL, "more than one response"),
        (saying(OK_HEAD, MESSAGE[:-1], OK), codes.INTERNAL, "in the middle of a message"),
        (saying(OK_HEAD, b"\1" + MESSAGE[1:], OK), codes.INTERNAL, "compressed"),
        (saying(OK_HEAD, b"\0\xff\xff\xff\xff", OK), codes.RESOURCE_EXHAUSTED, "limit"),
        (saying([(":status", "100")], MESSAGE, OK), codes.INTERNAL, "reset"),
        (saying([("content-type", "application/grpc")], MESSAGE, OK), codes.INTERNAL, "reset"),
        (saying([*OK_HEAD, ("big", "x" * 40_000)], MESSAGE, OK), codes.RESOURCE_EXHAUSTED, "ENHANCE_YOUR_CALM"),
    ],
)
async def test_an_answer_that_breaks_the_protocol_ends_with_its_status(script: Script, code: int, text: str) -> None:
    async with raw_server(script) as address:
        error = await failure(address)
    assert (error.code, error.is_unprocessed) == (code, False), error
    assert text in error.message


@pytest.mark.parametrize(
    ("code", "status", "is_unprocessed"),
    [
        (ErrorCode.REFUSED_STREAM, codes.UNAVAILABLE, True),
        (ErrorCode.CANCEL, codes.CANCELLED, False),
        (ErrorCode.ENHANCE_YOUR_CALM, codes.RESOURCE_EXHAUSTED, False),
        (ErrorCode.INADEQUATE_SECURITY, codes.PERMISSION_DENIED, False),
        (ErrorCode.INTERNAL_ERROR, codes.INTERNAL, False),
        (999, codes.INTERNAL, False),
    ],
)
async def test_a_reset_says_why_and_whether_the_call_was_processed(
    code: int, status: int, is_unprocessed: bool
) -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet()
        peer.write(frames.reset(await peer.request(), code))
        await peer.rest()

    async with raw_server(script) as address:
        error = await failure(address)
    assert (error.code, error.is_unprocessed) == (status, is_unprocessed)
