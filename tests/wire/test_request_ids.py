"""One id follows a call: from its caller into error details, log lines and answers."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc import aio

from serving.calls.methods import Call
from serving.context import ServerContext
from serving.telemetry.logs import CallFields
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.grpc_client import Client, details_of
from tests.wire.raw_http import RawHttp

Info = error_details_pb2.RequestInfo


def told(answer: dict[str, Any]) -> str:
    """The id in Connect's error details."""
    (detail,) = (d for d in answer["details"] if d["type"] == "google.rpc.RequestInfo")
    padded = detail["value"] + "=" * (-len(detail["value"]) % 4)
    request_id: str = Info.FromString(base64.b64decode(padded)).request_id
    return request_id


async def test_an_error_over_grpc_names_the_call_in_details_and_trailers(grpc_client: Client) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("fail:NotFound", metadata=(("x-request-id", "abc-1"),))
    info = details_of(raised.value)["RequestInfo"]
    assert isinstance(info, Info)
    assert info.request_id == "abc-1"
    assert dict(raised.value.trailing_metadata())["x-request-id"] == "abc-1"


async def test_a_call_without_an_id_gets_one_when_it_fails(grpc_client: Client, http: RawHttp) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await grpc_client.get("fail:NotFound")
    over_grpc = dict(raised.value.trailing_metadata())["x-request-id"]
    failed = await http.post(b'{"id":"fail:NotFound"}')
    assert over_grpc.startswith("test-")
    assert failed.headers["x-request-id"].startswith("test-")
    assert told(failed.json()) == failed.headers["x-request-id"] != over_grpc


async def test_an_error_over_http_names_the_call_in_details_and_header(http: RawHttp) -> None:
    failed = await http.post(b'{"id":"fail:Retry"}', x_request_id="abc-2")
    assert (told(failed.json()), failed.headers["x-request-id"]) == ("abc-2", "abc-2")
    page = await http.get("/nowhere", x_request_id="abc-3")
    assert (told(page.json()), page.headers["x-request-id"]) == ("abc-3", "abc-3")


async def test_a_stream_that_is_refused_for_its_content_type_names_the_call_and_is_counted(
    http: RawHttp, shared: ServerContext
) -> None:
    refused = await http.post(b"{}", f"/{WATCH}")
    assert refused.status == 415
    assert told(refused.json()) == refused.headers["x-request-id"]
    assert shared.traffic.calls()["http", WATCH, "UNKNOWN"] == 1


async def test_an_answer_carries_the_id_that_its_caller_sent(grpc_client: Client, http: RawHttp) -> None:
    call = grpc_client._get(b"\x0a\x05web-1", metadata=aio.Metadata(("x-request-id", "abc-4")))
    await call
    assert dict(await call.trailing_metadata())["x-request-id"] == "abc-4"
    assert (await http.post(b'{"id":"web-1"}', x_request_id="abc-4")).headers["x-request-id"] == "abc-4"


async def test_an_answer_over_grpc_carries_a_made_up_id_if_the_method_asked_for_it(grpc_client: Client) -> None:
    call = grpc_client._get(b"\x0a\x0arequest-id")
    await call
    assert dict(await call.trailing_metadata())["x-request-id"].startswith("test-")


async def test_a_stream_carries_the_id_from_its_beginning(grpc_client: Client) -> None:
    call = grpc_client._watch(b"", metadata=aio.Metadata(("x-request-id", "abc-8")))
    assert dict(await call.initial_metadata())["x-request-id"] == "abc-8"
    call.cancel()


async def test_an_id_that_no_log_should_hold_is_replaced(grpc_client: Client, http: RawHttp) -> None:
    long = "x" * 129
    call = grpc_client._get(b"\x0a\x05web-1", metadata=aio.Metadata(("x-request-id", long)))
    await call
    assert dict(await call.trailing_metadata())["x-request-id"].startswith("test-")
    assert (await http.post(b'{"id":"web-1"}', x_request_id=long)).headers["x-request-id"].startswith("test-")


async def test_lines_that_are_logged_within_a_call_have_its_id(
    grpc_client: Client, http: RawHttp, registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    async def logging_too(self: FakeRegistry, text: str, call: Call) -> Any:
        record = logging.LogRecord("test", logging.INFO, "", 0, "", None, None)
        CallFields().filter(record)
        seen.append((record.request_id, record.trace_id))  # type: ignore[attr-defined]
        return await obey(self, text, call)

    obey = FakeRegistry._obey
    monkeypatch.setattr(FakeRegistry, "_obey", logging_too)
    trace = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    await grpc_client.get("web-1", metadata=(("x-request-id", "abc-5"), trace))
    await http.post(b'{"id":"web-1"}', x_request_id="abc-6", traceparent=trace[1])
    await http.post(b'{"id":"web-1"}', x_request_id="abc-7")
    assert seen == [("abc-5", trace[1][3:35]), ("abc-6", trace[1][3:35]), ("abc-7", "")]
