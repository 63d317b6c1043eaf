"""gRPC's interoperability cases as grpcio puts them, after gRPC's description of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from tests.judges.interop_service import INITIAL, SERVICE, TRAILING, message
from tests.judges.verdict import Verdict

_REQUEST: Final = 271_828
_ANSWER: Final = 314_159
_REQUESTS: Final = (27_182, 8, 1_828, 45_904)
_ANSWERS: Final = (31_415, 9, 2_653, 58_979)
_SPECIAL: Final = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
_INITIAL: Final = "test_initial_metadata_value"
_TRAILING: Final = b"\xab\xab\xab"
_METADATA: Final = ((INITIAL, _INITIAL), (TRAILING, _TRAILING))
_NAMES: Final = (
    *("empty_unary", "large_unary", "client_compressed_unary_noprobe", "server_compressed_unary"),
    *("client_streaming", "client_compressed_streaming_noprobe"),
    *("server_streaming", "server_compressed_streaming", "ping_pong", "half_duplex", "empty_stream"),
    *("custom_metadata_unary", "custom_metadata_stream", "status_code_and_message", "special_status_message"),
    *("unimplemented_method", "unimplemented_service"),
    *("cancel_after_begin", "cancel_after_first_response", "timeout_on_sleeping_server", "many_at_once"),
)


def version() -> str:
    """Version of the judge."""
    return f"grpcio {grpc.__version__}"


def _written(request: Any) -> bytes:
    encoded: bytes = request.SerializeToString()
    return encoded


def _payload(size: int) -> Any:
    return message("Payload")(body=bytes(size))


def _simple(**fields: Any) -> Any:
    return message("SimpleRequest")(response_size=_ANSWER, payload=_payload(_REQUEST), **fields)


def _output(sizes: Sequence[int], **fields: Any) -> Any:
    return message("StreamingOutputCallRequest")(
        response_parameters=[message("ResponseParameters")(size=size) for size in sizes], **fields
    )


async def _stream(requests: Sequence[Any]) -> AsyncIterator[Any]:
    for request in requests:
        yield request


class Cases:
    """One channel, and a method for each case."""

    def __init__(self, port: int, ca: Path | None) -> None:
        options = (("grpc.max_receive_message_length", -1),)
        if ca is None:
            self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options)
        else:
            trusted = grpc.ssl_channel_credentials(ca.read_bytes())
            self._channel = grpc.aio.secure_channel(f"localhost:{port}", trusted, options)

    async def judge(self, verdict: Verdict, prefix: str) -> None:
        """All cases, one after the other."""
        async with self._channel:
            for name in _NAMES:
                await verdict.case(prefix + name, getattr(self, f"_{name}")())

    def _call(self, kind: str, name: str, answer: str, service: str = SERVICE) -> Any:
        path, read = f"/{service}/{name}", message(answer).FromString
        return getattr(self._channel, kind)(path, request_serializer=_written, response_deserializer=read)

    @property
    def _unary(self) -> Any:
        return self._call("unary_unary", "UnaryCall", "SimpleResponse")

    @property
    def _full(self) -> Any:
        return self._call("stream_stream", "FullDuplexCall", "StreamingOutputCallResponse")

    async def _empty_unary(self) -> None:
        call = self._call("unary_unary", "EmptyCall", "Empty")
        assert await call(message("Empty")()) == message("Empty")()

    async def _large_unary(self) -> None:
        assert (await self._unary(_simple())).payload.body == bytes(_ANSWER)

    async def _client_compressed_unary_noprobe(self) -> None:
        for compression in (grpc.Compression.Gzip, grpc.Compression.NoCompression):
            answer = await self._unary(_simple(), compression=compression)
            assert answer.payload.body == bytes(_ANSWER)

    async def _server_compressed_unary(self) -> None:
        for wanted in (True, False):
            answer = await self._unary(_simple(response_compressed=message("BoolValue")(value=wanted)))
            assert answer.payload.body == bytes(_ANSWER)

    async def _client_streaming(self, compression: grpc.Compression | None = None) -> None:
        call = self._call("stream_unary", "StreamingInputCall", "StreamingInputCallResponse")
        requests = [message("StreamingInputCallRequest")(payload=_payload(size)) for size in _REQUESTS]
        answer = await call(_stream(requests), compression=compression)
        assert answer.aggregated_payload_size == sum(_REQUESTS), answer

    async def _client_compressed_streaming_noprobe(self) -> None:
        await self._client_streaming(grpc.Compression.Gzip)

    async def _server_streaming(self, **fields: Any) -> None:
        call = self._call("unary_stream", "StreamingOutputCall", "StreamingOutputCallResponse")
        sizes = [len(answer.payload.body) async for answer in call(_output(_ANSWERS, **fields))]
        assert sizes == [*_ANSWERS], sizes

    async def _server_compressed_streaming(self) -> None:
        yes = message("BoolValue")(value=True)
        call = self._call("unary_stream", "StreamingOutputCall", "StreamingOutputCallResponse")
        request = message("StreamingOutputCallRequest")()
        for size in _ANSWERS:
            request.response_parameters.add(size=size, compressed=yes)
        assert [len(answer.payload.body) async for answer in call(request)] == [*_ANSWERS]

    async def _ping_pong(self) -> None:
        call = self._full()
        for asked, size in zip(_REQUESTS, _ANSWERS, strict=True):
            await call.write(_output([size], payload=_payload(asked)))
            assert len((await call.read()).payload.body) == size
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK

    async def _half_duplex(self) -> None:
        call = self._call("stream_stream", "HalfDuplexCall", "StreamingOutputCallResponse")
        answers = call(_stream([_output([size]) for size in _ANSWERS]))
        assert [len(answer.payload.body) async for answer in answers] == [*_ANSWERS]

    async def _empty_stream(self) -> None:
        assert [answer async for answer in self._full(_stream([]))] == []

    async def _custom_metadata_unary(self) -> None:
        call = self._unary(_simple(), metadata=_METADATA)
        await call
        self._has_metadata(await call.initial_metadata(), await call.trailing_metadata())

    async def _custom_metadata_stream(self) -> None:
        call = self._full(_stream([_output([_ANSWER])]), metadata=_METADATA)
        assert [len(answer.payload.body) async for answer in call] == [_ANSWER]
        self._has_metadata(await call.initial_metadata(), await call.trailing_metadata())

    @staticmethod
    def _has_metadata(initial: Any, trailing: Any) -> None:
        assert dict(initial)[INITIAL] == _INITIAL, initial
        assert dict(trailing)[TRAILING] == _TRAILING, trailing

    async def _status_code_and_message(self) -> None:
        status = message("EchoStatus")(code=2, message="test status message")
        await self._ends(self._unary(_simple(response_status=status)), 2, "test status message")
        stream = self._full(_stream([_output([], response_status=status)]))
        await self._ends(stream.read(), 2, "test status message", stream)

    async def _special_status_message(self) -> None:
        status = message("EchoStatus")(code=2, message=_SPECIAL)
        await self._ends(self._unary(_simple(response_status=status)), 2, _SPECIAL)

    async def _unimplemented_method(self) -> None:
        await self._ends(self._call("unary_unary", "UnimplementedCall", "Empty")(message("Empty")()), 12)

    async def _unimplemented_service(self) -> None:
        call = self._call("unary_unary", "UnimplementedCall", "Empty", "grpc.testing.UnimplementedService")
        await self._ends(call(message("Empty")()), 12)

    async def _cancel_after_begin(self) -> None:
        call = self._call("stream_unary", "StreamingInputCall", "StreamingInputCallResponse")()
        await call.wait_for_connection()
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED

    async def _cancel_after_first_response(self) -> None:
        call = self._full()
        await call.write(_output([_ANSWERS[0]], payload=_payload(_REQUESTS[0])))
        assert len((await call.read()).payload.body) == _ANSWERS[0]
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED

    async def _timeout_on_sleeping_server(self) -> None:
        request = message("StreamingOutputCallRequest")()
        request.response_parameters.add(size=1, interval_us=5_000_000)
        await self._ends(self._full(_stream([request]), timeout=0.2).read(), 4)

    async def _many_at_once(self) -> None:
        """500 calls and 50 streams on one connection."""
        unary = [self._unary(message("SimpleRequest")(response_size=n)) for n in range(500)]
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(self._server_streaming())
            answers = await asyncio.gather(*unary)
        assert [len(answer.payload.body) for answer in answers] == [*range(500)]

    @staticmethod
    async def _ends(going: Any, code: int, words: str | None = None, call: Any = None) -> None:
        try:
            answer = await going
        except grpc.aio.AioRpcError as error:
            told, said = error.code(), error.details()
        else:
            assert call is not None, f"an answer instead of an error: {answer}"
            told, said = await call.code(), await call.details()
        assert told.value[0] == code, f"{told}: {said}"
        assert words is None or said == words, f"{said!r} instead of {words!r}"
