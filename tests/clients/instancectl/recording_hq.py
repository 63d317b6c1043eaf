"""An HQ that answers as it is told and keeps what it was sent, over a real socket; and a host agent before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from prometheus_client import CollectorRegistry

from hqclient.credential_files import CredentialFiles
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from instancectl.hostagent.agent import HostAgent
from instancectl.settings import Speaker
from serving.calls.incoming import RequestIds
from serving.calls.methods import Answer, Call, Method, Streaming, UnaryMethod
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.rights.rules import OPEN
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.wire.fake_table import FakeHealth

NODE = "node-1"
_SERVICE = "hq.v1.InstanceService"


class Raw:
    """An answer in bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def proto(self) -> bytes:
        return self._body

    def json(self) -> bytes:
        raise NotImplementedError


class RecordingHq:
    """Requests as they came, by call; `answers` says what each call says to them (or raises).

    Attributes:
        left_s: how long the callers said that they would wait.
        request_ids: by which they called.
        streams: the watches under way: what is put into one is sent.
    """

    def __init__(self) -> None:
        self.asked: dict[str, list[bytes]] = {}
        self.left_s: list[float] = []
        self.request_ids: list[str] = []
        self.answers: dict[str, Callable[[bytes], bytes | Awaitable[bytes]]] = {
            "ReportStatuses": taken,
            "BeginReportings": begun,
        }
        self.streams: list[asyncio.Queue[pb.WatchInstancesResponse]] = []
        self.watched: list[pb.WatchInstancesRequest] = []

    def methods(self) -> list[Method]:
        unary = [self._unary(name) for name in ("ReportStatuses", "BeginReportings", "GetRevision", "GetInstance")]
        return [*unary, Streaming(f"{_SERVICE}/WatchInstances", bytes, bytes, self._watch, OPEN)]

    def _unary(self, name: str) -> UnaryMethod:
        async def run(request: bytes, call: Call) -> Answer:
            self.asked.setdefault(name, []).append(request)
            self.request_ids.append(call.request_id)
            if call.deadline is not None:
                self.left_s.append(call.deadline - SystemClock().now())
            answer = self.answers[name](request)
            return Raw(answer if isinstance(answer, bytes) else await answer)

        return UnaryMethod(f"{_SERVICE}/{name}", bytes, bytes, run, OPEN)

    async def _watch(self, request: bytes, call: Call) -> AsyncIterator[Answer]:
        self.watched.append(pb.WatchInstancesRequest.FromString(request))
        queue: asyncio.Queue[pb.WatchInstancesResponse] = asyncio.Queue()
        self.streams.append(queue)
        while True:
            yield Raw((await queue.get()).SerializeToString())


def taken(request: bytes) -> bytes:
    """Every report is taken."""
    count = len(pb.ReportStatusesRequest.FromString(request).report)
    answer = pb.ReportStatusesResponse(result=[pb.ReportResult()] * count)
    answer.next_report_in.FromSeconds(100)
    return answer.SerializeToString()


def begun(request: bytes) -> bytes:
    """Everybody is the reporter; the incarnation is the place in the call."""
    items = pb.BeginReportingsRequest.FromString(request).begin
    results = [pb.BeginResult(answer=pb.BeginReportingResponse(incarnation=n, uid=1)) for n, _ in enumerate(items, 1)]
    return pb.BeginReportingsResponse(result=results).SerializeToString()


def report(name: str, sequence: int = 1, node: str = NODE) -> pb.ReportStatusRequest:
    revision = model.RevisionStatus(id="r1", incarnation=1, sequence=sequence)
    return pb.ReportStatusRequest(instance_id=name, uid=1, node=node, revision=revision)


def instance(name: str, version: int = 1) -> model.Instance:
    return model.Instance(
        meta=model.InstanceMeta(id=name, uid=1, version=version), spec=model.InstanceSpec(node_name=NODE)
    )


@asynccontextmanager
async def served(hq: RecordingHq) -> AsyncIterator[str]:
    """Its address."""
    shared = ServerContext(Limits(), SystemClock(), RequestIds("hq"))
    server = Server(hq.methods(), FakeHealth(), shared, CollectorRegistry(), {})
    port = await server.listen("127.0.0.1:0")
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


@asynccontextmanager
async def carried(
    addresses: Sequence[str], socket: Path, speakers: Sequence[Speaker] = ()
) -> AsyncIterator[service_stubs.InstanceServiceStub]:
    """Calls at a host agent, as gRPC's own client makes them."""
    ending = asyncio.Event()
    agent = HostAgent(NODE, addresses, CredentialFiles(), socket, speakers)
    running = asyncio.create_task(agent.run(ending))
    try:
        await eventually(lambda: socket.exists() or running.done())
        async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
            yield service_stubs.InstanceServiceStub(channel)
    finally:
        ending.set()
        await running
