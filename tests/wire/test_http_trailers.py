"""Trailers behind a body: no headers, and never much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, Limits
from tests.wire.fake_table import GET, FakeRegistry
from tests.wire.raw_http import RawHttp, still_answers

HEAD = (
    f"POST /{GET} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode()
)
BODY = b'd\r\n{"id":"web-1"\r\n1\r\n}\r\n0\r\n'


@pytest.fixture
def limits() -> Limits:
    return replace(Limits(), max_request_bytes=64 * KIB, max_header_bytes=8 * KIB)


async def test_trailers_behind_a_body_are_no_headers(http: RawHttp, registry: FakeRegistry) -> None:
    async with http.connect() as connection:
        await connection.send(HEAD + BODY + b"authorization: Bearer x\r\nx-request-id: smuggled\r\n\r\n")
        answer = await connection.answer()
    assert answer.status == 200
    assert "x-request-id" not in answer.headers
    assert registry.calls[0].all_headers("authorization") == ()


@pytest.mark.long
@pytest.mark.parametrize("part", [b"a: b\r\n" * 1_000, b"x" * 6_000], ids=["lines", "one line"])
async def test_endless_trailers_behind_a_body_are_refused(http: RawHttp, admission: Admission, part: bytes) -> None:
    sent_bytes = 0
    async with http.connect() as connection:
        await connection.send(HEAD + BODY + b"x: ")
        try:
            while sent_bytes < (1 << 28):
                await connection.send(part)
                sent_bytes += len(part)
            answered = 0
        except ConnectionError:
            answered = 1
    assert answered
    assert sent_bytes < 32 << 20  # what the system's own buffers take, on both sides
    assert admission.refused["max_request_bytes"] == 1
    assert await still_answers(http)
