"""Bad input over HTTP: each has a designed answer, none is our fault (5xx but 505), and the server goes on."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field, replace

import pytest

from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, Limits
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, WATCH
from tests.wire.raw_http import RawAnswer, RawHttp, post, still_answers

MAX_BODY = 64 * KIB


@pytest.fixture
def limits() -> Limits:
    return replace(Limits(), max_request_bytes=MAX_BODY, max_header_bytes=8 * KIB)


@dataclass(frozen=True)
class Bad:
    body: bytes
    status: int
    code: str
    says: str
    headers: dict[str, str] = field(default_factory=dict)
    path: str = f"/{GET}"


PROTO = {"content_type": "application/proto"}
GZIP = {"content_encoding": "gzip"}
BAD = {
    "nothing": Bad(b"", 400, "invalid_argument", "send at least {}"),
    "not JSON": Bad(b'{"id":', 400, "invalid_argument", "not JSON: Expecting value"),
    "trailing garbage": Bad(b'{"id":"a"} x', 400, "invalid_argument", "not JSON: Extra data"),
    "single quotes": Bad(b"{'id':'a'}", 400, "invalid_argument", "not JSON"),
    "a list": Bad(b"[]", 400, "invalid_argument", "the body is an array, not a JSON object"),
    "null": Bad(b"null", 400, "invalid_argument", "the body is null"),
    "a number": Bad(b"17", 400, "invalid_argument", "the body is a number"),
    "an unknown field": Bad(b'{"idd":"a"}', 400, "invalid_argument", "idd: hq.v1.GetInstanceRequest has no such field"),
    "an unknown field inside": Bad(
        b'{"read":{"minVersoin":"1"}}',
        400,
        "invalid_argument",
        "read.minVersoin: hq.v1.ReadOptions has no such field",
    ),
    "an extension": Bad(b'{"[a.b]":1}', 400, "invalid_argument", "[a.b]: "),
    "a number for a string": Bad(b'{"id":17}', 400, "invalid_argument", "id: expected a string, not a number"),
    "a string for an object": Bad(b'{"read":""}', 400, "invalid_argument", "read: expected a JSON object"),
    "an object for a string": Bad(b'{"id":{}}', 400, "invalid_argument", "id: "),
    "a list for an object": Bad(b'{"read":[]}', 400, "invalid_argument", "read: expected a JSON object"),
    "a fraction for an integer": Bad(b'{"read":{"minVersion":1.5}}', 400, "invalid_argument", "read.min_version: "),
    "a negative for an unsigned": Bad(b'{"read":{"minVersion":-1}}', 400, "invalid_argument", "read.min_version: "),
    "an integer too large": Bad(b'{"read":{"minVersion":1e30}}', 400, "invalid_argument", "read.min_version: "),
    "an integer of 5,000 digits": Bad(
        b'{"read":{"minVersion":' + b"9" * 5000 + b"}}", 400, "invalid_argument", "digits"
    ),
    "an unknown enum value": Bad(
        b'{"read":{"consistency":"VERY"}}',
        400,
        "invalid_argument",
        "read.consistency: 'VERY' is not one of READ_CONSISTENCY_UNSPECIFIED, READ_CONSISTENCY_STRONG",
    ),
    "NaN": Bad(b'{"read":{"minVersion":NaN}}', 400, "invalid_argument", "NaN is not JSON"),
    "Infinity": Bad(b'{"read":{"minVersion":-Infinity}}', 400, "invalid_argument", "-Infinity is not JSON"),
    "a key twice": Bad(b'{"id":"a","id":"b"}', 400, "invalid_argument", 'the key "id" occurs twice'),
    "a field by two names": Bad(b'{"fieldMask":"id","field_mask":"id"}', 400, "invalid_argument", "twice"),
    "a lone surrogate": Bad(b'{"id":"\\ud800"}', 400, "invalid_argument", ""),
    "a lone surrogate as enum value": Bad(
        b'{"read":{"consistency":"\\ud800"}}', 400, "invalid_argument", "read.consistency: "
    ),
    "a lone surrogate as name": Bad(b'{"\\ud800":1}', 400, "invalid_argument", ""),
    "not UTF-8": Bad(b'{"id":"\xff\xfe"}', 400, "invalid_argument", "not UTF-8: invalid start byte at byte 7"),
    "UTF-16": Bad('{"id":"a"}'.encode("utf-16"), 400, "invalid_argument", "not UTF-8"),
    "a byte order mark": Bad(b'\xef\xbb\xbf{"id":"a"}', 400, "invalid_argument", "BOM"),
    "nested 10,000 deep": Bad(b"[" * 10_000, 400, "invalid_argument", "deeper than 64 levels"),
    "nested 10,000 deep in a field": Bad(
        b'{"id":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, 400, "invalid_argument", "deeper than 64 levels"
    ),
    "nested 60 deep": Bad(b'{"read":' * 60 + b"1" + b"}" * 60, 400, "invalid_argument", ""),
    "a bad field mask": Bad(
        b'{"fieldMask":17}', 400, "invalid_argument", "field_mask: expected a list of field names in lowerCamelCase"
    ),
    "a field mask in the proto's names": Bad(
        b'{"fieldMask":"meta.service_id"}',
        400,
        "invalid_argument",
        "field_mask: 'meta.service_id' is not a list of field names",
    ),
    "truncated protobuf": Bad(b"\x0a\x05ab", 400, "invalid_argument", "not a valid binary hq.v1.Get", PROTO),
    "random protobuf": Bad(b"\xff" * 40, 400, "invalid_argument", "not a valid binary", PROTO),
    "protobuf with a string that is not UTF-8": Bad(
        b"\x0a\x01\xff", 400, "invalid_argument", "not a valid binary", PROTO
    ),
    "protobuf nested 10,000 deep": Bad(b"\x1b" * 10_000, 400, "invalid_argument", "not a valid binary", PROTO),
    "JSON called protobuf": Bad(b'{"id":"a"}', 400, "invalid_argument", "not a valid binary", PROTO),
    "no content type": Bad(b"{}", 415, "unknown", "", {"content_type": ""}),
    "a form": Bad(b"{}", 415, "unknown", "", {"content_type": "application/x-www-form-urlencoded"}),
    "Latin-1": Bad(b"{}", 415, "unknown", "", {"content_type": "application/json; charset=latin1"}),
    "a stream's type": Bad(b"{}", 415, "unknown", "", {"content_type": "application/connect+json"}),
    "no gzip": Bad(b"{}", 400, "invalid_argument", "not valid gzip", GZIP),
    "gzip cut short": Bad(gzip.compress(b"{}")[:-4], 400, "invalid_argument", "truncated", GZIP),
    "gzip with a wrong checksum": Bad(
        gzip.compress(b"{}")[:-5] + b"\0" * 5, 400, "invalid_argument", "not valid gzip", GZIP
    ),
    "gzip and garbage": Bad(gzip.compress(b"{}") + b"x", 400, "invalid_argument", "gzip", GZIP),
    "a gzip bomb": Bad(gzip.compress(b" " * 5_000_000), 413, "resource_exhausted", "after decompression", GZIP),
    "deflate": Bad(
        zlib.compress(b"{}"),
        415,
        "unimplemented",
        "not one of gzip, identity",
        {"content_encoding": "deflate"},
    ),
    "a body too large": Bad(b" " * (MAX_BODY + 1), 413, "resource_exhausted", "over the limit of 65536 bytes"),
    "a timeout in words": Bad(b"{}", 400, "invalid_argument", "timeout", {"connect_timeout_ms": "soon"}),
    "a negative timeout": Bad(b"{}", 400, "invalid_argument", "timeout", {"connect_timeout_ms": "-1"}),
    "an endless timeout": Bad(b"{}", 400, "invalid_argument", "ten digits", {"connect_timeout_ms": "9" * 11}),
    "another version": Bad(b"{}", 400, "invalid_argument", "must be 1", {"connect_protocol_version": "2"}),
    "an unknown method": Bad(b"{}", 404, "unimplemented", "there is no", path="/hq.v1.InstanceService/Nope"),
    "an unknown service": Bad(b"{}", 404, "unimplemented", "there is no", path="/x.Y/GetInstance"),
    "a path in disguise": Bad(b"{}", 404, "unimplemented", "there is no", path="/../" + GET),
}


def explain(answer: RawAnswer) -> str:
    return f"{answer.status} {answer.body[:300]!r}"


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_gets_its_designed_error(http: RawHttp, name: str) -> None:
    bad = BAD[name]
    answer = await http.post(bad.body, bad.path, **bad.headers)
    assert answer.status == bad.status, explain(answer)
    assert answer.json()["code"] == bad.code, explain(answer)
    assert bad.says in answer.json()["message"], explain(answer)
    assert await still_answers(http)


@pytest.mark.parametrize("kind", ["application/grpc", "application/grpc+proto", "application/grpc+json; charset=x"])
@pytest.mark.parametrize("path", [f"/{GET}", f"/{WATCH}", "/no.such/Call"])
async def test_grpc_over_http_1_is_told_that_it_needs_http_2_and_what_to_do(
    http: RawHttp, kind: str, path: str
) -> None:
    answer = await http.post(b"\0\0\0\0\0", path, content_type=kind)
    assert (answer.status, answer.headers["content-type"]) == (505, "text/plain; charset=utf-8")
    assert answer.body.startswith(b"gRPC needs HTTP/2, and this request came over HTTP/1.1: connect over HTTP/2")
    # For gRPC's clients, where a proxy speaks HTTP/2 with them and HTTP/1.1 with us.
    assert answer.headers["grpc-status"] == "12"
    assert answer.headers["grpc-message"].startswith("gRPC needs HTTP/2")


async def test_an_unknown_form_of_grpc_is_refused_with_the_known_ones(http: RawHttp) -> None:
    answer = await http.post(b"{}", content_type="application/grpc+xml")
    assert answer.status == 415
    assert b"is not one of application/grpc, application/grpc-web, application/json" in answer.body


async def test_a_wrong_content_type_is_refused_with_the_right_ones(http: RawHttp) -> None:
    unary = await http.post(b"{}", content_type="text/plain")
    assert unary.headers["accept-post"] == "application/json, application/proto, application/x-protobuf"
    stream = await http.post(b"{}", f"/{WATCH}")
    assert stream.status == 415
    assert stream.headers["accept-post"] == "application/connect+json, application/connect+proto"


async def test_a_wrong_encoding_is_refused_with_the_right_ones(http: RawHttp) -> None:
    answer = await http.post(b"{}", content_encoding="br")
    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, identity")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_a_call_is_possible_with_post_only(http: RawHttp, method: str) -> None:
    answer = await http.get(f"/{GET}?message=%7B%7D&encoding=json", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_a_body_too_large_is_refused_before_it_is_sent(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(post(b"", content_length=str(10**9), expect="100-continue"))
        assert (await connection.answer()).status == 413


async def test_a_body_too_large_in_chunks_is_refused(http: RawHttp, admission: Admission) -> None:
    head = post(b"", transfer_encoding="chunked").replace(b"content-length: 0\r\n", b"")
    async with http.connect() as connection:
        await connection.send(head)
        for _ in range(20):
            await connection.send(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
        assert (await connection.answer()).status == 413
    await eventually(lambda: admission.bodies_bytes == 0)


async def test_a_connection_survives_a_body_that_was_refused(http: RawHttp) -> None:
    async with http.connect() as connection:
        await connection.send(post(b" " * (MAX_BODY * 2)))
        assert (await connection.answer()).status == 413
        await connection.send(post(b'{"id":"web-1"}'))
        assert (await connection.answer()).status == 200
