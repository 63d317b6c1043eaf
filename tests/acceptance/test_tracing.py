"""`--otlp`: spans of a gateway and of the replica behind it arrive at a collector, as one trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")

import gzip

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hqpb.v1 import service_pb2 as pb
from tests.federated.federated_process import FederatedProcess, write_config
from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas
from tests.support.sample_instances import eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
Spans = list[tuple[str, Span]]


@contextmanager
def collector() -> Iterator[tuple[str, Spans]]:
    """Where it listens, and what it was sent: the service's name and the span."""
    spans: Spans = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                names = {a.key: a.value.string_value for a in resource.resource.attributes}
                for scope in resource.scope_spans:
                    spans.extend((names["service.name"], span) for span in scope.spans)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.long
async def test_a_call_over_a_gateway_is_one_trace(replicas: Replicas, etcd: SharedEtcd, tmp_path: Path) -> None:
    with collector() as (endpoint, spans):
        replica = await replicas.start([etcd.endpoint], etcd.prefix, "--cluster", "east", "--otlp", endpoint)
        write_config(tmp_path / "gateway.yaml", {"east": [replica.grpc]})
        gateway = FederatedProcess(tmp_path / "gateway.yaml", tmp_path / "gateway.log", ("--otlp", endpoint))
        try:
            await gateway.start()
            async with gateway.stub() as stub:
                call = stub.CreateInstance(
                    pb.CreateInstanceRequest(instance=instance("a-1")),
                    metadata=(("traceparent", f"00-{TRACE}-{PARENT}-01"), ("x-request-id", "deploy-1")),
                )
                await call
            assert await gateway.terminate() == 0  # sends what is left
        finally:
            await gateway.kill()
        assert await replica.terminate() == 0

        def created() -> dict[str, Span]:
            return {name: span for name, span in spans if span.name.endswith("CreateInstance")}

        await eventually(lambda: len(created()) == 2, what="both spans at the collector")
        of_gateway, of_replica = created()["hq-federated"], created()["hq"]
        assert of_gateway.trace_id.hex() == of_replica.trace_id.hex() == TRACE
        assert of_gateway.parent_span_id.hex() == PARENT
        assert of_replica.parent_span_id == of_gateway.span_id
