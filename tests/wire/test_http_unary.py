"""Calls with one answer over HTTP, as curl would send them."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json

import pytest

from hqpb.v1 import service_pb2
from serving.errors import InvalidRequest
from serving.head import Head
from serving.limiting.admission import Admission
from serving.transport.connect import _read_query
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, FakeRegistry
from tests.wire.raw_http import RawHttp, post


def _proto(text: str) -> bytes:
    return service_pb2.GetInstanceRequest(id=text).SerializeToString()


def _id_of(body: bytes) -> str:
    return service_pb2.GetInstanceResponse.FromString(body).instance.meta.id


async def test_json_is_answered_with_json(http: RawHttp) -> None:
    answer = await http.post(b'{"id": "web-1"}')
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == b'{"instance":{"meta":{"id":"web-1"}}}'


@pytest.mark.parametrize("query", ["?", "?connect=v1&nonce=7"])
async def test_the_query_of_a_post_is_ignored(http: RawHttp, query: str) -> None:
    answer = await http.post(b'{"id": "web-1"}', f"/{GET}{query}")
    assert (answer.status, answer.body) == (200, b'{"instance":{"meta":{"id":"web-1"}}}')


@pytest.mark.parametrize("encoding", [b"", b"&encoding=xml"])
def test_a_get_call_must_say_how_its_message_is_encoded(encoding: bytes) -> None:
    head = Head(b"GET", b"/service/Method?message=%7B%7D" + encoding, b"", [], {})
    with pytest.raises(InvalidRequest, match=r"^encoding: .*write encoding=json or encoding=proto"):
        _read_query(head)


async def test_a_standard_library_client_gets_an_answer(http_port: int) -> None:
    def ask() -> tuple[int, object]:
        connection = http.client.HTTPConnection("127.0.0.1", http_port, timeout=10)
        try:
            connection.request("POST", f"/{GET}", '{"id":"web-1"}', {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.load(response)
        finally:
            connection.close()

    assert await asyncio.to_thread(ask) == (200, {"instance": {"meta": {"id": "web-1"}}})


@pytest.mark.parametrize("content_type", ["application/proto", "application/x-protobuf"])
async def test_protobuf_is_answered_in_kind(http: RawHttp, content_type: str) -> None:
    answer = await http.post(_proto("web-1"), content_type=content_type)
    assert (answer.status, answer.headers["content-type"]) == (200, content_type)
    assert _id_of(answer.body) == "web-1"


async def test_accept_decides_what_the_answer_is_in(http: RawHttp) -> None:
    as_json = await http.post(_proto("web-1"), content_type="application/proto", accept="application/json")
    assert as_json.json() == {"instance": {"meta": {"id": "web-1"}}}
    as_proto = await http.post(b'{"id":"web-1"}', accept="text/html, application/proto;q=0.5, */*;q=0.1")
    assert as_proto.headers["content-type"] == "application/proto"
    assert _id_of(as_proto.body) == "web-1"
    in_kind = await http.post(b'{"id":"web-1"}', accept="*/*")
    assert in_kind.headers["content-type"] == "application/json"


async def test_a_charset_of_utf_8_is_fine(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"web-1"}', content_type='Application/JSON; charset="UTF-8"')
    assert answer.status == 200


async def test_a_large_answer_is_compressed_if_asked_for(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"big:300000"}', accept_encoding="br, gzip;q=0.8")
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) < 10_000
    assert len(answer.json()["instance"]["meta"]["annotations"]["padding"]) == 300_000


async def test_a_small_answer_is_not_compressed(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"web-1"}', accept_encoding="gzip")
    assert "content-encoding" not in answer.headers


async def test_an_encoding_of_quality_zero_is_not_used(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"big:5000"}', accept_encoding="gzip; q=0")
    assert "content-encoding" not in answer.headers


async def test_a_compressed_request_is_read(http: RawHttp) -> None:
    for body in (gzip.compress(b'{"id":"web-1"}'), gzip.compress(b'{"id":"w') + gzip.compress(b'eb-1"}')):
        answer = await http.post(body, content_encoding="gzip")
        assert answer.json() == {"instance": {"meta": {"id": "web-1"}}}


async def test_an_empty_body_is_not_decompressed(http: RawHttp) -> None:
    answer = await http.post(b"", content_type="application/proto", content_encoding="gzip")
    assert answer.status == 200


async def test_the_caller_gets_its_request_id_back(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"request-id"}', x_request_id="abc-1")
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.json()["instance"]["meta"]["id"] == "abc-1"
    failed = await http.post(b'{"id":"fail:NotFound"}', x_request_id="abc-2")
    assert failed.headers["x-request-id"] == "abc-2"


async def test_a_request_id_that_could_forge_a_log_line_is_replaced(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"request-id"}', x_request_id="a b\tc")
    assert answer.headers["x-request-id"].startswith("test-")


async def test_a_request_without_an_id_gets_one_only_inside(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"request-id"}')
    assert answer.json()["instance"]["meta"]["id"].startswith("test-")
    assert "x-request-id" not in answer.headers


async def test_the_method_knows_its_peer(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"peer"}')
    assert answer.json()["instance"]["meta"]["id"].startswith("127.0.0.1:")


async def test_many_requests_share_a_connection(http: RawHttp) -> None:
    async with http.connect() as connection:
        for number in range(3):
            await connection.send(post(b'{"id":"web-%d"}' % number))
            assert (await connection.answer()).status == 200


async def test_pipelined_requests_are_answered_in_order(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(b"".join(post(b'{"id":"web-%d"}' % n) for n in range(5)))
        names = [(await connection.answer()).json()["instance"]["meta"]["id"] for _ in range(5)]
    assert names == [f"web-{n}" for n in range(5)]


async def test_a_body_may_come_in_chunks(http: RawHttp) -> None:
    head = post(b"", transfer_encoding="chunked").replace(b"content-length: 0\r\n", b"")
    async with http.connect() as connection:
        await connection.send(head + b"7\r\n" + b'{"id":"' + b"\r\n")
        await connection.send(b'7\r\nweb-1"}\r\n0\r\n\r\n')
        assert (await connection.answer()).json() == {"instance": {"meta": {"id": "web-1"}}}


async def test_a_client_that_waits_to_be_told_to_continue_is_told(http: RawHttp) -> None:
    body = b'{"id":"web-1"}'
    async with http.connect() as connection:
        await connection.send(post(b"", content_length=str(len(body)), expect="100-continue"))
        assert (await connection.head())[0] == 100
        await connection.send(body)
        assert (await connection.answer()).status == 200


async def test_http_1_0_is_answered_and_closed(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(post(b'{"id":"web-1"}').replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert (await connection.answer()).status == 200
        assert await connection.hung_up()


async def test_the_timeout_is_the_deadline_of_the_method(http: RawHttp) -> None:
    answers = [await http.post(b'{"id":"deadline"}', **h) for h in ({}, {"connect_timeout_ms": "60000"})]
    assert [a.json()["instance"]["meta"]["id"] for a in answers] == ["none", "some"]


@pytest.mark.long
async def test_a_method_that_forgets_its_deadline_is_cut_off(http: RawHttp, registry: FakeRegistry) -> None:
    answer = await http.post(b'{"id":"wait"}', connect_timeout_ms="2000")
    assert (answer.status, answer.json()["code"]) == (504, "deadline_exceeded")
    assert registry.ended.is_set()


async def test_a_client_that_leaves_cancels_its_call(
    http: RawHttp, registry: FakeRegistry, admission: Admission
) -> None:
    async with http.connect() as connection:
        await connection.send(post(b'{"id":"wait"}'))
        await registry.started.wait()
    await asyncio.wait_for(registry.ended.wait(), 30)
    await eventually(lambda: admission.calls == 0)
