"""Server streams in the Connect protocol over HTTP/1.1."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
from typing import Any

import pytest

from hqpb.v1 import service_pb2
from serving.limiting.admission import Admission
from tests.support.sample_instances import eventually
from tests.wire.fake_table import FAILURES, WATCH, FakeRegistry
from tests.wire.raw_http import RawAnswer, RawHttp, post

JSON = {"content_type": "application/connect+json"}
PROTO = {"content_type": "application/connect+proto"}


def envelope(payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(payload)) + payload


def messages(body: bytes) -> tuple[list[tuple[int, bytes]], dict[str, Any]]:
    """Flags and payload of each message, and the end of the stream."""
    found: list[tuple[int, bytes]] = []
    while body:
        flags, size = struct.unpack_from(">BI", body)
        payload, body = body[5 : 5 + size], body[5 + size :]
        if flags & 2:
            assert not body, "something follows the end of the stream"
            return found, json.loads(payload)
        found.append((flags, payload))
    raise AssertionError("the stream has no end")


async def watch(http: RawHttp, order: str, **headers: str) -> RawAnswer:
    body = envelope(json.dumps({"resumeToken": order}).encode())
    return await http.post(body, f"/{WATCH}", **(JSON | headers))


async def test_a_stream_in_json_ends_with_an_empty_end(http: RawHttp, admission: Admission) -> None:
    answer = await watch(http, "count:3")
    found, end = messages(answer.body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/connect+json")
    assert [json.loads(payload)["resumeToken"] for _, payload in found] == ["0", "1", "2"]
    assert end == {}
    await eventually(lambda: admission.streams == 0)


async def test_a_stream_in_protobuf_ends_with_an_empty_end(http: RawHttp) -> None:
    request = service_pb2.WatchInstancesRequest(resume_token="count:2").SerializeToString()
    answer = await http.post(envelope(request), f"/{WATCH}", **PROTO)
    found, end = messages(answer.body)
    decoded = [service_pb2.WatchInstancesResponse.FromString(payload) for _, payload in found]
    assert answer.headers["content-type"] == "application/connect+proto"
    assert [m.resume_token for m in decoded] == ["0", "1"]
    assert end == {}


async def test_an_empty_stream_is_headers_and_an_end(http: RawHttp) -> None:
    assert messages((await watch(http, "count:0")).body) == ([], {})


async def test_messages_are_compressed_one_by_one_if_asked_for(http: RawHttp) -> None:
    answer = await watch(http, "count:2", connect_accept_encoding="gzip, br")
    found, _ = messages(answer.body)
    assert answer.headers["connect-content-encoding"] == "gzip"
    assert [flags for flags, _ in found] == [1, 1]
    assert [json.loads(gzip.decompress(payload))["resumeToken"] for _, payload in found] == ["0", "1"]


async def test_a_small_message_stays_as_it_is(http: RawHttp) -> None:
    found, _ = messages((await watch(http, "fail:Retry", connect_accept_encoding="gzip")).body)
    assert [flags for flags, _ in found] == [0, 0]


async def test_a_compressed_request_is_read(http: RawHttp) -> None:
    body = envelope(gzip.compress(b'{"resumeToken":"count:1"}'), flags=1)
    answer = await http.post(body, f"/{WATCH}", connect_content_encoding="gzip", **JSON)
    assert len(messages(answer.body)[0]) == 1


async def test_an_error_is_the_end_of_the_stream(http: RawHttp) -> None:
    for name, expected in FAILURES.items():
        answer = await watch(http, f"fail:{name}")
        found, end = messages(answer.body)
        assert answer.status == 200
        assert len(found) == 2
        assert end["error"]["code"] == expected.code.lower()
        assert end["error"]["message"] == str(expected)
        assert end["error"]["details"][0]["debug"]["reason"] == expected.reason


async def test_an_unexpected_error_is_not_told(http: RawHttp) -> None:
    answer = await watch(http, "boom")
    assert messages(answer.body)[1]["error"]["code"] == "internal"
    assert b"secret" not in answer.body


@pytest.mark.long
async def test_the_deadline_ends_the_stream(http: RawHttp, registry: FakeRegistry) -> None:
    answer = await watch(http, "quiet", connect_timeout_ms="2000")
    found, end = messages(answer.body)
    assert len(found) == 1
    assert end["error"]["code"] == "deadline_exceeded"
    assert registry.ended.is_set()


async def test_messages_come_as_they_are_made(http: RawHttp, registry: FakeRegistry) -> None:
    async with http.connect() as connection:
        await connection.send(post(envelope(b'{"resumeToken":"quiet"}'), f"/{WATCH}", **JSON))
        status, headers = await connection.head()
        first = await connection.chunk()
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        assert json.loads(first[5:])["resumeToken"] == "0"
        assert not registry.ended.is_set()
        registry.release.set()
        assert await connection.chunk() == envelope(b"{}", flags=2)
        assert await connection.chunk() == b""


async def test_a_client_that_leaves_ends_its_stream(
    http: RawHttp, registry: FakeRegistry, admission: Admission
) -> None:
    async with http.connect() as connection:
        await connection.send(post(envelope(b'{"resumeToken":"quiet"}'), f"/{WATCH}", **JSON))
        await connection.head()
        await connection.chunk()
        assert admission.streams == 1
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.streams == 0)


BAD = {
    "nothing": (b"", {}, "unimplemented", "ended without a request"),
    "half an envelope": (b"\0\0\0", {}, "invalid_argument", "ends in the middle of a message"),
    "a cut message": (envelope(b'{"a":1}')[:-1], {}, "invalid_argument", "ends in the middle of a message"),
    "two messages": (envelope(b"{}") * 2, {}, "unimplemented", "more than one message"),
    "an end of stream": (envelope(b"{}", 2), {}, "invalid_argument", "flags 0x02"),
    "unknown flags": (envelope(b"{}", 0x80), {}, "invalid_argument", "flags 0x80"),
    "compressed nohow": (envelope(b"{}", 1), {}, "internal", "no header names the encoding"),
    "no gzip": (envelope(b"{}", 1), {"connect_content_encoding": "gzip"}, "invalid_argument", "gzip"),
    "brotli": (envelope(b"{}", 1), {"connect_content_encoding": "br"}, "unimplemented", "gzip, identity"),
    "a bomb": (
        envelope(gzip.compress(b" " * 5_000_000), 1),
        {"connect_content_encoding": "gzip"},
        "resource_exhausted",
        "after decompression",
    ),
    "a lie of 4 GB": (b"\0\xff\xff\xff\xff{}", {}, "resource_exhausted", "over the limit"),
    "a bad message": (envelope(b'{"nope":1}'), {}, "invalid_argument", "nope: "),
    "a bad timeout": (envelope(b"{}"), {"connect_timeout_ms": "x"}, "invalid_argument", "timeout"),
    "a body too large": (envelope(b" " * 5_000_000), {}, "resource_exhausted", "over the limit"),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_ends_the_stream_with_its_designed_error(http: RawHttp, name: str) -> None:
    body, headers, code, says = BAD[name]
    answer = await http.post(body, f"/{WATCH}", **(JSON | headers))
    found, end = messages(answer.body)
    assert (answer.status, found) == (200, [])
    assert end["error"]["code"] == code
    assert says in end["error"]["message"]
    assert messages((await watch(http, "count:1")).body)[1] == {}
