"""Traces for OpenTelemetry: a span for each call, below the caller's; nothing at all where nobody asked for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import click
import grpc
import pytest
from grpc import aio

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from serving.calls import current
from serving.calls.methods import Call
from serving.context import ServerContext, process_metrics
from serving.flags import tracing_to
from serving.telemetry.tracing import Tracing
from serving.transport.server import Server
from tests.wire.fake_table import GET, WATCH, FakeHealth, FakeRegistry
from tests.wire.grpc_client import Client
from tests.wire.raw_http import RawHttp

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    return Tracing(SimpleSpanProcessor(exporter), "hq", "replica-1")


@pytest.fixture
async def client(
    tracing: Tracing, registry: FakeRegistry, health: FakeHealth, shared: ServerContext
) -> AsyncIterator[Client]:
    server = Server(tracing.traced_methods(registry.methods()), health, shared, CollectorRegistry(), {})
    port = await server.listen("127.0.0.1:0")
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Client(channel)
    await server.stop(0.0)


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


async def test_a_call_is_a_span_below_its_callers(client: Client, exporter: InMemorySpanExporter) -> None:
    await client.get("web-1", metadata=(("traceparent", TRACEPARENT), ("x-request-id", "abc-1")))
    span = only(exporter)
    assert span.context is not None
    assert span.parent is not None
    assert (span.name, f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (GET, TRACE, PARENT)
    assert dict(span.attributes or {}) == {
        "rpc.service": "hq.v1.InstanceService",
        "rpc.method": "GetInstance",
        "hq.request_id": "abc-1",
    }
    assert span.resource.attributes["service.name"] == "hq"


async def test_a_call_without_a_trace_begins_one(client: Client, exporter: InMemorySpanExporter) -> None:
    await client.get("web-1")
    assert only(exporter).parent is None


async def test_a_failed_call_is_a_failed_span_with_its_reason(client: Client, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await client.get("fail:VersionConflict")
    span = only(exporter)
    assert (span.status.status_code.name, span.status.description) == ("ERROR", "ABORTED")
    assert (span.attributes or {})["hq.reason"] == "VERSION_CONFLICT"


async def test_a_stream_is_one_span(client: Client, exporter: InMemorySpanExporter) -> None:
    assert len([message async for message in client.watch("count:3")]) == 3
    assert only(exporter).name == WATCH


async def test_a_call_over_http_is_a_span_below_its_callers(
    tracing: Tracing,
    registry: FakeRegistry,
    health: FakeHealth,
    shared: ServerContext,
    exporter: InMemorySpanExporter,
) -> None:
    server = Server(tracing.traced_methods(registry.methods()), health, shared, process_metrics(shared), {})
    http = RawHttp(await server.listen("127.0.0.1:0"))
    await http.post(b'{"id":"web-1"}', traceparent=TRACEPARENT)
    await server.stop(0.0)
    span = only(exporter)
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT


async def test_outgoing_calls_carry_the_current_span(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    told: list[str] = []

    class Watched(FakeRegistry):
        async def _obey(self, text: str, call: Call) -> object:  # type: ignore[override]
            told.append(dict(current.forwarded_metadata())["traceparent"])
            return None

    class Traced(Call):
        def header(self, name: str) -> str:
            return {"traceparent": TRACEPARENT}.get(name, "")

    token = current.CURRENT.set(Traced(request_id="abc-1"))
    get = tracing.traced_methods(Watched().methods())[0]
    await get.run(get.parse(b"\x0a\x05web-1"), Traced(request_id="abc-1"))  # type: ignore[misc]
    current.CURRENT.reset(token)
    span = only(exporter)
    assert span.context is not None
    assert told == [f"00-{TRACE}-{span.context.span_id:016x}-01"]


@pytest.mark.long
def test_opentelemetry_is_not_imported_where_nobody_asked_for_traces() -> None:
    assert tracing_to("", "hq", "replica-1") is None
    code = "import hq.main, federated.main, sys; sys.exit(any(m.startswith('opentelemetry') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == 0


def test_an_endpoint_without_a_scheme_is_refused_in_words() -> None:
    with pytest.raises(click.UsageError, match=r"write the collector's URL, e\.g\. http://127\.0\.0\.1:4318"):
        tracing_to("127.0.0.1:4318", "hq", "replica-1")
