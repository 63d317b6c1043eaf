"""A small HQ in this process: replicas on real sockets over one shared state, whose misdeeds are ordered."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from hqpb.v1 import admin_pb2, instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.clients.deeds import Context, Deed, refuse
from tests.support.grpcio_server import add_service
from tests.support.reserved_port import KeptPort

Script = Callable[[pb.WatchInstancesRequest], AsyncIterator[pb.WatchInstancesResponse]]
Code = grpc.StatusCode


class Stored:
    """What all replicas of one installation share."""

    def __init__(self) -> None:
        self.instances: dict[str, instance_pb2.Instance] = {}
        self.request_ids: dict[str, str] = {}
        self.version = 10
        self.epoch = "e1"
        self.guard = pb.GuardState(verdict="nothing to hold", expected=3)
        self.suspensions: dict[str, admin_pb2.Suspension] = {}

    def put(self, instance: instance_pb2.Instance) -> instance_pb2.Instance:
        self.version += 1
        kept = instance_pb2.Instance()
        kept.CopyFrom(instance)
        kept.meta.version = self.version
        kept.meta.uid = kept.meta.uid or self.version
        kept.meta.cluster = "test"
        self.instances[kept.meta.id] = kept
        return kept


class FakeReplica:
    """One replica. `orders[method]` are deeds done one by one instead of the next answers."""

    def __init__(self, stored: Stored, name: str = "fake-1") -> None:
        self.stored = stored
        self.name = name
        self.calls: Counter[str] = Counter()
        self.requests: dict[str, list[Any]] = defaultdict(list)
        self.orders: dict[str, deque[Deed]] = defaultdict(deque)
        self.watches: deque[Script] = deque()
        self.address = ""
        self.page_size = 2
        self._port = KeptPort()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        for file, name in ((pb, "InstanceService"), (admin_pb2, "AdminService")):
            add_service(self._server, file.DESCRIPTOR.services_by_name[name], self)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{self._port.number}')}"
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def restart(self) -> None:
        await self.start()

    def order(self, method: str, *deeds: Deed) -> None:
        self.orders[method].extend(deeds)

    def source(self) -> pb.Source:
        stored = self.stored
        return pb.Source(cluster="test", replica=self.name, epoch=stored.epoch, version=stored.version)

    async def _arrived(self, method: str, request: Any, context: Context) -> None:
        self.calls[method] += 1
        self.requests[method].append(request)
        if self.orders[method]:
            await self.orders[method].popleft()(context)

    # --- InstanceService: what the tests use of it ----------------------------------------------------------

    async def CreateInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        known = request.request_id and self.stored.request_ids.get(request.request_id)
        if not known and request.instance.meta.id not in self.stored.instances:
            self.stored.request_ids[request.request_id] = request.instance.meta.id
            self.stored.put(request.instance)
        elif not known:
            await refuse(Code.ALREADY_EXISTS, "ALREADY_EXISTS")(context)
        await self._arrived("CreateInstance", request, context)  # deeds come after the write
        return pb.CreateInstanceResponse(instance=self.stored.instances[request.instance.meta.id])

    async def UpdateInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("UpdateInstance", request, context)
        return pb.UpdateInstanceResponse(instance=self.stored.put(request.instance))

    async def DeleteInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("DeleteInstance", request, context)
        found = self.stored.instances.get(request.id)
        if found is None:
            await refuse(Code.NOT_FOUND, "NOT_FOUND", f"there is no instance {request.id}")(context)
        elif request.version not in (0, found.meta.version):
            current = {"current_version": str(found.meta.version)}
            await refuse(Code.ABORTED, "VERSION_CONFLICT", "read it again", metadata=current)(context)
        self.stored.instances.pop(request.id)
        self.stored.version += 1
        return pb.DeleteInstanceResponse(version=self.stored.version)

    async def ApplyInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("ApplyInstances", request, context)
        return pb.ApplyInstancesResponse(result=[self._apply(item) for item in request.instance])

    def _apply(self, item: instance_pb2.Instance) -> pb.ApplyResult:
        result = pb.ApplyResult(id=item.meta.id)
        if " " in item.meta.id or not item.meta.id:
            result.error.CopyFrom(
                pb.ItemError(code=3, reason="INVALID_REQUEST", message="malformed id", field="meta.id")
            )
            return result
        known = item.meta.id in self.stored.instances
        result.outcome = pb.APPLY_OUTCOME_UPDATED if known else pb.APPLY_OUTCOME_CREATED
        result.version = self.stored.put(item).meta.version
        return result

    async def GetInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("GetInstance", request, context)
        await self._check_epoch(request.read, context)
        found = self.stored.instances.get(request.id)
        if found is None:
            await refuse(Code.NOT_FOUND, "NOT_FOUND", f"there is no instance {request.id}")(context)
        return pb.GetInstanceResponse(instance=found, sources=[self.source()])

    async def FindInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("FindInstances", request, context)
        found = [self.stored.instances[i] for i in sorted(self.stored.instances) if i > request.page_token]
        page, rest = found[: self.page_size], found[self.page_size :]
        token = page[-1].meta.id if rest else ""
        return pb.FindInstancesResponse(instances=page, next_page_token=token, sources=[self.source()])

    async def CountInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("CountInstances", request, context)
        groups = [pb.InstanceCount(key="web", total=3, ready=2)]
        return pb.CountInstancesResponse(groups=groups, sources=[self.source()])

    async def BeginReporting(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("BeginReporting", request, context)
        answer = pb.BeginReportingResponse(incarnation=77, uid=5)
        answer.report_interval.FromSeconds(180)
        answer.liveness_timeout.FromSeconds(600)
        return answer

    async def ReportStatus(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("ReportStatus", request, context)
        answer = pb.ReportStatusResponse()
        answer.next_report_in.FromSeconds(170)
        return answer

    async def WatchInstances(self, request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: N802
        await self._arrived("WatchInstances", request, context)
        script = self.watches.popleft() if self.watches else nothing_more
        async for message in script(request):
            yield message

    # --- AdminService ---------------------------------------------------------------------------------------

    async def GetGuard(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("GetGuard", request, context)
        return admin_pb2.GetGuardResponse(guard=self.stored.guard, source=self.source())

    async def GetEpoch(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("GetEpoch", request, context)
        return admin_pb2.GetEpochResponse(state=admin_pb2.EpochState(epoch="e1"))

    async def ConfirmEpoch(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("ConfirmEpoch", request, context)
        state = admin_pb2.EpochState(epoch=request.epoch, by=request.by, reason=request.reason)
        return admin_pb2.ConfirmEpochResponse(state=state)

    async def SuspendNode(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("SuspendNode", request, context)
        suspension = admin_pb2.Suspension(node_name=request.node_name, reason=request.reason, by=request.by)
        return admin_pb2.SuspendNodeResponse(suspension=suspension)

    async def _check_epoch(self, read: pb.ReadOptions, context: Context) -> None:
        if read.epoch and read.epoch != self.stored.epoch:
            current = {"current_epoch": self.stored.epoch}
            await refuse(Code.FAILED_PRECONDITION, "EPOCH_CHANGED", metadata=current)(context)


def fake_replica(stored: Stored, name: str = "fake-1") -> FakeReplica:
    """A replica, not started. Calls that no test needs stay unimplemented."""
    return FakeReplica(stored, name)


# --- watches ------------------------------------------------------------------------------------------------


async def nothing_more(request: pb.WatchInstancesRequest) -> AsyncIterator[pb.WatchInstancesResponse]:
    """A stream that stays silent."""
    await asyncio.Event().wait()
    yield pb.WatchInstancesResponse()


def say(*messages: pb.WatchInstancesResponse, then: str = "silence") -> Script:
    """A stream of these messages; `then` it is silent, ends cleanly (`end`) or breaks (`cut`)."""

    async def script(request: pb.WatchInstancesRequest) -> AsyncIterator[pb.WatchInstancesResponse]:
        for message in messages:
            yield message
        if then == "silence":
            await asyncio.Event().wait()
        if then == "cut":
            raise ConnectionError("the test cuts this stream")

    return script


def instance(instance_id: str, *, service: str = "web", node: str = "node-1") -> instance_pb2.Instance:
    meta = instance_pb2.InstanceMeta(id=instance_id, service_id=service)
    return instance_pb2.Instance(meta=meta, spec=instance_pb2.InstanceSpec(node_name=node))
