"""An answer pushed into a stream that waits for its next one is sent at once, or refused, never out of order."""

from __future__ import annotations

import asyncio
import json

import pytest

from hqpb.v1 import service_pb2
from tests.support.sample_instances import eventually
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.grpc_client import Client
from tests.wire.raw_http import RawHttp
from tests.wire.test_http_stream import JSON, PROTO, envelope, messages


def answer(name: str, size: int = 0) -> bytes:
    return service_pb2.WatchInstancesResponse(resume_token=name, reason="x" * size).SerializeToString()


async def waiting(registry: FakeRegistry) -> None:
    """Its one answer is sent, and it waits."""
    await eventually(lambda: registry.sent == 1, what="the first answer")
    await asyncio.sleep(0)


async def test_over_grpc_a_pushed_answer_comes_behind_the_messages_sent_before(
    grpc_client: Client, registry: FakeRegistry
) -> None:
    stream = grpc_client.watch("quiet")
    assert (await anext(stream)).resume_token == "0"
    assert [registry.calls[0].pusher()(answer(name)) for name in ("a", "b")] == [True, True]
    assert [(await anext(stream)).resume_token for _ in range(2)] == ["a", "b"]
    registry.release.set()
    assert [one async for one in stream] == []


@pytest.mark.parametrize(("form", "is_pushed"), [(PROTO, True), (JSON, False)], ids=["protobuf", "json"])
async def test_over_connect_only_protobuf_is_pushed(
    http: RawHttp, registry: FakeRegistry, form: dict[str, str], is_pushed: bool
) -> None:
    body = b'{"resumeToken":"quiet"}' if form is JSON else b"\x12\x05quiet"
    asked = asyncio.create_task(http.post(envelope(body), f"/{WATCH}", **form))
    await waiting(registry)
    assert registry.calls[0].pusher()(answer("a")) == is_pushed
    registry.release.set()
    found, end = messages((await asked).body)
    assert len(found) == 1 + is_pushed
    assert end == {}
    assert (json.loads(found[0][1])["resumeToken"] == "0") if form is JSON else found[1][1].endswith(b"a")


async def test_a_reader_that_lags_is_pushed_nothing_more(grpc_client: Client, registry: FakeRegistry) -> None:
    stream = grpc_client.open_watch("quiet")
    await waiting(registry)
    push, taken = registry.calls[0].pusher(), 0
    while taken < 100 and push(answer(str(taken), 64_000)):
        taken += 1
        await asyncio.sleep(0)
    assert 0 < taken < 100
    names = [service_pb2.WatchInstancesResponse.FromString(await stream.read()).resume_token for _ in range(taken + 1)]
    assert names == ["0", *map(str, range(taken))]
    await eventually(lambda: push(answer("again")), what="it has read everything")
    stream.cancel()
    await asyncio.wait_for(registry.ended.wait(), 30)
    assert not push(answer("too late"))
