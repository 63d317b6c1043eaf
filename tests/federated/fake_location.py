"""An installation in this process: replicas on real sockets over one shared state, whose misdeeds are ordered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from hqapi.requests import CLUSTER_HEADER
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.deeds import refuse
from tests.support.grpcio_server import add_service
from tests.support.reserved_port import KeptPort

Context = grpc.aio.ServicerContext[Any, Any]
Code = grpc.StatusCode


class FakeLocation:
    """What the replicas share: instances, and the history that watches resume from."""

    def __init__(self, name: str, replicas: int = 1) -> None:
        self.name = name
        self.instances: dict[str, model.Instance] = {}
        self.version = 100
        self.epoch = f"epoch-of-{name}"
        self.history: list[pb.WatchEvent] = []
        self.oldest_token = 0  # tokens before this one are answered with RESYNC
        self.changed = asyncio.Event()
        self.bookmarks_s: float | None = None  # how often a quiet watch says that it is there; None: never
        self.replicas = [FakeReplica(self, f"{name}-{n}") for n in range(replicas)]

    @property
    def addresses(self) -> list[str]:
        return [replica.address for replica in self.replicas]

    async def start(self) -> None:
        for replica in self.replicas:
            await replica.start()

    async def stop(self) -> None:
        for replica in self.replicas:
            await replica.stop()

    async def changes(self, changed: asyncio.Event) -> bool:
        """Wait for it; False: it is time for a bookmark."""
        try:
            await asyncio.wait_for(changed.wait(), self.bookmarks_s)
        except TimeoutError:
            return False
        return True

    def put(self, instance_id: str, service: str = "svc") -> model.Instance:
        """Create or change an instance."""
        self.version += 1
        meta = model.InstanceMeta(id=instance_id, service_id=service, cluster=self.name, version=self.version)
        self.instances[instance_id] = model.Instance(meta=meta)
        self._happened(pb.WatchEvent(version=self.version, put=self.instances[instance_id]))
        return self.instances[instance_id]

    def remove(self, instance_id: str) -> None:
        self.version += 1
        del self.instances[instance_id]
        ref = pb.InstanceRef(id=instance_id, cluster=self.name)
        self._happened(pb.WatchEvent(version=self.version, delete=ref))

    def _happened(self, event: pb.WatchEvent) -> None:
        self.history.append(event)
        self.changed.set()
        self.changed = asyncio.Event()


class FakeReplica:
    """One replica.

    Attributes:
        delay_s: every answer comes so late.
        store_delay_s: answers for which memory is not enough come so late, too.
        largest_page: how many instances one answer holds at most.
        cut_snapshot: the next watch ends in the middle of its snapshot.
        hang_after_resync: a watch goes on after a RESYNC only when this is taken back.
        create: happens to each creation first.
        denies: lists are refused.
    """

    def __init__(self, location: FakeLocation, name: str) -> None:
        self.location, self.name = location, name
        self.delay_s = self.store_delay_s = 0.0
        self.largest_page = 1_000
        self.cut_snapshot = self.hang_after_resync = self.denies = False
        self.create: Callable[[Any, Context], Awaitable[None]] | None = None
        self.calls: Counter[str] = Counter()
        self.reads: list[pb.ReadOptions] = []
        self.address = ""
        self._port = KeptPort()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        add_service(self._server, pb.DESCRIPTOR.services_by_name["InstanceService"], self)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{self._port.number}')}"
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def restart(self) -> None:
        await self.start()

    def source(self) -> pb.Source:
        location = self.location
        source = pb.Source(cluster=location.name, replica=self.name, epoch=location.epoch, version=location.version)
        source.staleness.FromMilliseconds(5)
        return source

    async def _arrived(self, method: str) -> None:
        self.calls[method] += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)

    # --- reads --------------------------------------------------------------------------------------------------------

    async def FindInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("FindInstances")
        self.reads.append(request.read)
        if self.denies:
            await refuse(Code.PERMISSION_DENIED, "PERMISSION_DENIED", "not yours")(context)
        if request.read.consistency:
            await asyncio.sleep(self.store_delay_s)
        found = [i for i in self._passing(request.filter) if i.meta.id > request.page_token]
        size = min(request.page_size or self.largest_page, self.largest_page)
        token = found[size - 1].meta.id if len(found) > size else ""
        shown = [_masked(one, request.field_mask) for one in found[:size]]
        return pb.FindInstancesResponse(instances=shown, next_page_token=token, sources=[self.source()])

    async def GetInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("GetInstance")
        self.reads.append(request.read)
        found = await self._existing(request.id, context)
        return pb.GetInstanceResponse(instance=found, sources=[self.source()])

    async def ExplainInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("ExplainInstance")
        found = await self._existing(request.id, context)
        return pb.ExplainInstanceResponse(meta=found.meta, summary="so it is", sources=[self.source()])

    async def CountInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._arrived("CountInstances")
        if request.read.consistency:
            await asyncio.sleep(self.store_delay_s)
        counts = Counter(i.meta.service_id if request.group_by else "" for i in self._passing(request.filter))
        groups = [pb.InstanceCount(key=key, total=total) for key, total in sorted(counts.items())]
        return pb.CountInstancesResponse(groups=groups, sources=[self.source()])

    def _passing(self, where: pb.InstanceFilter) -> list[model.Instance]:
        found = self.location.instances
        return [found[i] for i in sorted(found) if not where.instance_id or i in where.instance_id]

    async def _existing(self, instance_id: str, context: Context) -> model.Instance:
        if instance_id not in self.location.instances:
            await asyncio.sleep(self.store_delay_s)
            await refuse(Code.NOT_FOUND, "NOT_FOUND", f"there is no instance {instance_id}")(context)
        return self.location.instances[instance_id]

    # --- writes -------------------------------------------------------------------------------------------------------

    async def _ordered(self, method: str, context: Context) -> None:
        await self._arrived(method)
        requested = dict(context.invocation_metadata() or ()).get(CLUSTER_HEADER, "")
        if requested not in ("", self.location.name):
            await refuse(
                Code.INVALID_ARGUMENT, "INVALID_REQUEST", f"this replica belongs to cluster {self.location.name}"
            )(context)

    async def CreateInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._ordered("CreateInstance", context)
        if self.create is not None:
            await self.create(request, context)
        if request.instance.meta.cluster:
            await refuse(Code.INVALID_ARGUMENT, "INVALID_REQUEST", "meta.cluster is HQ's to set")(context)
        return pb.CreateInstanceResponse(instance=self.location.put(request.instance.meta.id))

    async def DeleteInstance(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._ordered("DeleteInstance", context)
        found = await self._existing(request.id, context)
        if request.version not in (0, found.meta.version):
            current = {"current_version": str(found.meta.version)}
            await refuse(Code.ABORTED, "VERSION_CONFLICT", "read it again", metadata=current)(context)
        self.location.remove(request.id)
        return pb.DeleteInstanceResponse(version=self.location.version)

    async def ApplyInstances(self, request: Any, context: Context) -> Any:  # noqa: N802
        await self._ordered("ApplyInstances", context)
        return pb.ApplyInstancesResponse(result=[self._apply(n, item) for n, item in enumerate(request.instance)])

    def _apply(self, number: int, item: model.Instance) -> pb.ApplyResult:
        if "bad" in item.meta.id:
            field = f"instance[{number}].spec"
            return pb.ApplyResult(id=item.meta.id, error=pb.ItemError(code=3, field=field, message=f"{field}: bad"))
        outcome = pb.APPLY_OUTCOME_UPDATED if item.meta.id in self.location.instances else pb.APPLY_OUTCOME_CREATED
        return pb.ApplyResult(id=item.meta.id, outcome=outcome, version=self.location.put(item.meta.id).meta.version)

    # --- watches ------------------------------------------------------------------------------------------------------

    async def WatchInstances(self, request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: N802
        await self._arrived("WatchInstances")
        location = self.location
        if request.resume_token and int(request.resume_token) < location.oldest_token:
            yield self._message(pb.WATCH_KIND_RESYNC, reason="the token is too old")
            await self._begin_anew(request)
        version = int(request.resume_token or location.version)
        if not request.resume_token:
            for instance in list(location.instances.values()):
                yield self._message(pb.WATCH_KIND_SNAPSHOT, [pb.WatchEvent(version=version, put=instance)])
                if self._cuts():
                    return
        yield self._message(pb.WATCH_KIND_SYNCED, token=version)
        while True:
            changed = location.changed
            for event in [e for e in location.history if e.version > version]:
                version = event.version
                yield self._message(pb.WATCH_KIND_EVENTS, [event], token=version)
            if not await location.changes(changed):
                yield self._message(pb.WATCH_KIND_BOOKMARK, token=version)

    async def _begin_anew(self, request: Any) -> None:
        request.resume_token = ""
        while self.hang_after_resync:
            await asyncio.sleep(0.05)

    def _cuts(self) -> bool:
        cut, self.cut_snapshot = self.cut_snapshot, False
        return cut

    def _message(
        self, kind: Any, events: Any = (), token: int | str = "", reason: str = ""
    ) -> pb.WatchInstancesResponse:
        return pb.WatchInstancesResponse(
            kind=kind, events=events, resume_token=str(token), sources=[self.source()], reason=reason
        )


def _masked(instance: model.Instance, mask: FieldMask) -> model.Instance:
    if not mask.paths:
        return instance
    shown = model.Instance()
    mask.MergeMessage(instance, shown)
    return shown
