"""What the frames of an answer mean to a client, without a connection."""

from __future__ import annotations

import asyncio

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from serving.head import Head
from serving.transport.client_call import CallFailed, ClientCall, timeout_text
from serving.transport.grpc import timeout_s

OK = [(b"grpc-status", b"0")]


def head(status: int = 200, kind: bytes = b"application/grpc") -> Head:
    fields = [(b"content-type", kind)]
    return Head(b"", b"", b"", fields, dict(fields), status)


def framed(*messages: bytes) -> bytes:
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


def a_call(limit: int = 1_000) -> ClientCall:
    return ClientCall(b"", b"?", None, limit)


@given(st.floats(0, 1e12))
def test_a_deadline_is_encoded_as_exactly_as_eight_digits_allow(left_s: float) -> None:
    told = timeout_s(timeout_text(left_s))
    assert told >= min(left_s, 99_999_999) * (1 - 1e-9)
    assert told <= left_s * 1.0001 + 1e-6


@given(st.lists(st.binary(max_size=50), max_size=20), st.data())
def test_messages_are_the_same_however_they_are_cut(messages: list[bytes], data: st.DataObject) -> None:
    whole = framed(*messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))

    async def read() -> list[bytes]:
        call = ClientCall(b"", b"?", None, 1_000)
        call.head(head(), end=False)
        freed = 0
        for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            freed += call.data(whole[start:stop], end=False)
        call.trailers(OK)
        found = []
        try:
            while True:
                found.append(await anext(call))
                freed += call.free(0)
        except StopAsyncIteration:
            assert freed == len(whole)
            return found

    assert asyncio.run(read()) == messages


async def test_windows_open_only_for_messages_that_were_taken() -> None:
    call = ClientCall(b"", b"?", None, 1_000)
    assert call.data(framed(b"a", b"b"), end=False) == 0
    assert call.data(framed(b"c")[:3], end=False) == 0
    assert [await anext(call), call.free(0)] == [b"a", 0]
    assert [await anext(call), call.free(0)] == [b"b", 15]
    assert call.data(framed(b"c")[3:5], end=False) == 2


async def test_an_answer_is_one_message_and_status_0() -> None:
    call = a_call()
    call.head(head(), end=False)
    call.data(framed(b"x"), end=False)
    assert not call.is_over
    call.trailers(OK)
    assert await anext(call) == b"x"
    with pytest.raises(StopAsyncIteration):
        await anext(call)


@pytest.mark.parametrize("kind", [b"application/grpc+proto", b"application/grpc;charset=utf-8"])
async def test_content_types_of_grpc_are_known(kind: bytes) -> None:
    call = a_call()
    call.head(head(kind=kind), end=False)
    assert not call.is_over


@pytest.mark.parametrize("kind", [b"", b"text/plain", b"application/grpc-web", b"application/grpcx"])
async def test_other_content_types_are_an_error(kind: bytes) -> None:
    call = a_call()
    call.head(head(kind=kind), end=False)
    with pytest.raises(CallFailed) as raised:
        await anext(call)
    assert raised.value.code == codes.UNKNOWN


async def test_a_large_message_is_refused_before_it_has_arrived() -> None:
    call = a_call(limit=100)
    call.data(framed(b"x" * 101)[:5], end=False)
    with pytest.raises(CallFailed, match="limit of 100") as raised:
        await anext(call)
    assert raised.value.code == codes.RESOURCE_EXHAUSTED


async def test_an_ended_call_does_not_change() -> None:
    call = a_call()
    call.end(CallFailed(codes.UNAVAILABLE, "first"))
    call.end(CallFailed(codes.INTERNAL, "second"))
    call.trailers(OK)
    with pytest.raises(CallFailed, match="first"):
        await anext(call)


async def test_a_cancellation_at_the_deadline_counts_as_deadline_exceeded() -> None:
    for is_late, code in ((True, codes.DEADLINE_EXCEEDED), (False, codes.CANCELLED)):
        call = a_call()
        call.reset(8, is_late=is_late)
        with pytest.raises(CallFailed) as raised:
            await anext(call)
        assert raised.value.code == code


@pytest.mark.parametrize(("value", "found"), [(b"AQI", b"\1\2"), (b"AQI=", b"\1\2"), (b"!", b""), (b"AQ,AQ", b"")])
def test_binary_trailers_are_decoded(value: bytes, found: bytes) -> None:
    assert CallFailed(2, "", [(b"a-bin", value)]).binary("a-bin") == found
    assert CallFailed(2, "").binary("a-bin") == b""
