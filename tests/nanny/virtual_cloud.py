"""One HQ, agents and Nanny in the test's own loop, in virtual time: real parts, without sockets between them.

@in_virtual_time
async def test_...() -> None:
    async with virtual_cloud(6) as cloud: ...
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, cast

from google.protobuf.json_format import ParseDict

from control import ControlConfig
from hq.api.instance_api import InstanceApi
from hq.registry.registry import Registry
from hqclient import Client, HqApiError, Interrupted, WatchItem
from hqclient.errors import decode_status
from hqclient.reads import ReadCalls
from hqclient.reports import ReportCalls
from hqclient.watch_items import WatchProgress
from hqclient.writes import WriteCalls
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as hq_pb
from nanny.server import NannyProcess
from nanny.world.leave import ApprovalPort, NoCms
from nannypb.v1 import service_pb2 as pb
from serving.calls.incoming import RequestIds
from serving.calls.methods import Call, Method, Streaming, UnaryMethod, maybe_await
from serving.context import ServerContext
from serving.error_statuses import status_of
from serving.errors import ServiceError
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from tests.support.controllers import running
from tests.support.in_process_replica import running as running_replica
from tests.support.prometheus_stand_in import PrometheusStandIn
from tests.support.virtual_time import VirtualClock, VirtualLoop

SERVICE: Final = "web"
_RESTS: Final = (pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_PARTIALLY_PREPARED)
LOCATION: Final = "ams"
_TRUE, _FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
_READY = instance_pb2.REVISION_TARGET_READY
_REPORT_EVERY_S: Final = 18.0
_LIVENESS: Final[dict[str, Any]] = {"report_interval_s": 20.0, "liveness_timeout_s": 60.0}


class Direct:
    """Calls a table of methods as a transport would.

    Attributes:
        faults: by the name of a call, the error that it ends with, or what answers it instead.
        asked: the names of all calls.
    """

    def __init__(self, methods: list[Method], clock: VirtualClock, responses: Any) -> None:
        self._methods = {method.path.rpartition("/")[2]: method for method in methods}
        self._clock, self._responses = clock, responses
        self.faults: dict[str, ServiceError | Callable[[Any], Any]] = {}
        self.asked: list[str] = []

    async def unary(self, name: str, request: Any, timeout_s: float = 10.0) -> Any:
        """Raises HqApiError."""
        method = self._methods[name]
        assert isinstance(method, UnaryMethod)
        self.asked.append(name)
        fault = self.faults.get(name)
        if isinstance(fault, ServiceError):
            raise _api_error(fault)
        if fault is not None:
            return fault(request)
        try:
            call = Call(deadline=self._clock.now() + timeout_s, request_id=f"call-{len(self.asked)}")
            answer = await maybe_await(method.run(method.parse(request.SerializeToString()), call))
        except ServiceError as error:
            raise _api_error(error) from None
        return getattr(self._responses, f"{name}Response").FromString(answer.proto())

    async def stream(self, name: str, request: Any) -> AsyncIterator[Any]:
        """Raises HqApiError."""
        method = self._methods[name]
        assert isinstance(method, Streaming)
        try:
            async for answer in method.run(method.parse(request.SerializeToString()), Call()):
                yield getattr(self._responses, f"{name}Response").FromString(answer.proto())
        except ServiceError as error:
            raise _api_error(error) from None


def _api_error(error: ServiceError) -> HqApiError:
    status = status_of(error)
    return decode_status(status.code, status.message, status.SerializeToString())


class DirectClient(ReadCalls, WriteCalls, ReportCalls):
    """HQ's client without retries, over `Direct`."""

    def __init__(self, direct: Direct) -> None:
        self.direct = direct
        super().__init__(cast("Any", self), None, random.Random(1), 10.0)

    async def run(self, method: Any, request: Any, _safety: object, timeout_s: float) -> Any:
        """What Calls does."""
        name = type(request).DESCRIPTOR.name.removesuffix("Request")
        stub = SimpleNamespace(**{name: lambda one: self.direct.unary(name, one, timeout_s)})
        return await method(SimpleNamespace(instances=stub))(request)

    @asynccontextmanager
    async def watch(self, where: hq_pb.InstanceFilter | None = None) -> AsyncIterator[AsyncIterator[WatchItem]]:
        items = self._items(hq_pb.WatchInstancesRequest(filter=where))
        try:
            yield items
        finally:
            await items.aclose()  # type: ignore[attr-defined]

    async def _items(self, request: hq_pb.WatchInstancesRequest) -> AsyncIterator[WatchItem]:
        progress = WatchProgress()
        while True:
            request.resume_token = progress.resume_token
            try:
                async for message in self.direct.stream("WatchInstances", request):
                    for item in progress.apply_message(message):
                        yield item
            except HqApiError as error:
                for item in (*progress.on_stream_end(), Interrupted(error, 1.0)):
                    yield item
            await asyncio.sleep(1.0)

    async def close(self) -> None:
        """There is no connection."""


@dataclass(frozen=True)
class Looks:
    """How a revision that is wanted READY looks to its agent."""

    ready: bool
    restarts: int = 0
    output: str = ""  # what it printed before it ended last


Program = Callable[[str, float], Looks]
"""What becomes of a revision on an instance, so many seconds after it was switched to."""


def good(_instance: str, age_s: float) -> Looks:
    return Looks(age_s >= 2.0)


def never_ready(_instance: str, _age_s: float) -> Looks:
    return Looks(ready=False)


@dataclass
class _Told:
    """What an agent holds of one revision."""

    node: str = ""
    incarnation: int = 0
    uid: int = 0
    sequence: int = 0
    since: float = 0.0
    last: bytes = b""
    last_at: float = float("-inf")


@dataclass
class Agents:
    """One for each instance; each looks once a second at what HQ wants, and does it.

    Attributes:
        programs: by the title of a snapshot, what its revision does; by default it is good.
        silent: instances whose first nodes are dead.
        cannot_prepare: pairs of instance and title that never get installed.
    """

    client: DirectClient
    clock: VirtualClock
    programs: dict[str, Program] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    cannot_prepare: set[tuple[str, str]] = field(default_factory=set)
    _told: dict[tuple[str, str], _Told] = field(default_factory=dict)

    def starts(self) -> dict[str, float]:
        """When what runs on each instance was started."""
        return {name: told.since for (name, _), told in sorted(self._told.items()) if told.since}

    async def run(self) -> None:
        while True:
            async for page in self.client.find(hq_pb.InstanceFilter(service_id=[SERVICE])):
                for instance in page.instances:
                    is_moved = instance.spec.node_name != f"node-{instance.meta.id}"
                    if is_moved or instance.meta.id not in self.silent:
                        await self._attend(instance)
            await asyncio.sleep(1.0)

    async def _attend(self, instance: instance_pb2.Instance) -> None:
        for revision in instance.spec.revision:
            title = revision.container[0].name
            status = instance_pb2.RevisionStatus(id=revision.id, spec_version=instance.meta.version)
            told = self._told.setdefault((instance.meta.id, revision.id), _Told())
            if told.node != instance.spec.node_name:
                told = self._told[instance.meta.id, revision.id] = _Told(instance.spec.node_name)
            if revision.target != _READY:
                told.since = 0.0
            elif not told.since:
                told.since = self.clock.now()
            if revision.target == instance_pb2.REVISION_TARGET_CREATED:
                status.installed.status, status.installed.reason = _FALSE, "Created"
            elif (instance.meta.id, title) in self.cannot_prepare:
                status.installed.status, status.installed.reason = _FALSE, "FetchFailed"
            else:
                status.installed.status, status.installed.reason = _TRUE, "Installed"
            self._ready(status, revision.target == _READY, title, instance.meta.id, told)
            await self._report(instance, status, told)

    def _ready(self, status: instance_pb2.RevisionStatus, wanted: bool, title: str, instance: str, told: _Told) -> None:
        status.ready.status, status.ready.reason = _FALSE, "NotWantedReady"
        if not wanted:
            return
        looks = Looks(ready=False)
        if status.installed.status == _TRUE:
            looks = self.programs.get(title, good)(instance, self.clock.now() - told.since)
        container = status.container.add(name=title, ready=looks.ready, restart_count=looks.restarts)
        if looks.output:
            container.last_termination.exit_code, container.last_termination.output = 1, looks.output
        status.ready.status = _TRUE if looks.ready else _FALSE
        status.ready.reason = "Ready" if looks.ready else "ContainerNotReady"

    async def _report(self, instance: instance_pb2.Instance, status: instance_pb2.RevisionStatus, told: _Told) -> None:
        now, said = self.clock.now(), status.SerializeToString()
        if told.last == said and now - told.last_at < _REPORT_EVERY_S and told.uid == instance.meta.uid:
            return
        node = instance.spec.node_name
        if told.uid != instance.meta.uid:
            begun = await self.client.begin_reporting(instance.meta.id, status.id, node=node)
            told.incarnation, told.uid = begun.incarnation, begun.uid
        told.sequence += 1
        told.last, told.last_at = said, now
        status.incarnation, status.sequence = told.incarnation, told.sequence
        await self.client.report(instance.meta.id, status, uid=told.uid, node=node)


@dataclass
class VirtualCloud:
    """All of it. Times are virtual."""

    names: list[str]
    clock: VirtualClock
    registry: Registry
    hq: DirectClient
    agents: Agents
    server: NannyProcess
    nanny: Direct
    prometheus: PrometheusStandIn
    _nannies: AsyncExitStack
    _begin: Callable[[], Awaitable[NannyProcess]]
    revisions: dict[str, str] = field(default_factory=dict)

    async def create(self, **rollout: Any) -> None:
        """The service; `rollout` is its policy as in JSON."""
        while not self.server.controller.is_acting:
            await asyncio.sleep(0.1)
        info = ParseDict({"rollout": {"minReadyS": 3, "progressDeadlineS": 60, **rollout}}, pb.InfoAttributes())
        await self.nanny.unary("CreateService", pb.CreateServiceRequest(service_id=SERVICE, info=info))

    async def restart(self) -> None:
        """Another process of Nanny in the place of this one."""
        await self._nannies.aclose()
        self.server = await self._begin()
        self.nanny = Direct(self.server.methods, self.clock, pb)

    async def add(
        self,
        title: str,
        program: Program = good,
        names: list[str] | None = None,
        weight: int | None = None,
        nodes: Mapping[str, str] = MappingProxyType({}),
        **labels: str,
    ) -> str:
        """A snapshot; the id of it. `names`: of its instances; by default all. `nodes`: other ones than of before."""
        self.agents.programs[title] = program
        named = self.names if names is None else names
        instances = [{"id": name, "node": nodes.get(name, f"node-{name}"), "labels": labels} for name in named]
        revision = {"id": title, "container": [{"name": title, "command": ["true"]}]}
        value: dict[str, Any] = {"service": SERVICE, "instances": instances, "revisions": [revision]}
        if weight is not None:
            value["weight"] = weight
        content = json.dumps(value).encode()
        request = pb.CreateSnapshotRequest(service_id=SERVICE, content=content)
        made = (await self.nanny.unary("CreateSnapshot", request)).snapshot
        self.revisions[made.id] = made.revision_id
        return str(made.id)

    async def target(self, snapshot: str, target: pb.Target = pb.TARGET_ACTIVE, request_id: str = "") -> pb.Service:
        request = pb.SetTargetRequest(
            service_id=SERVICE,
            snapshot_id=snapshot,
            target=target,
            request_id=request_id,
            by=pb.Authorship(author="ann"),
        )
        answer = (await self.nanny.unary("SetTarget", request)).service
        assert isinstance(answer, pb.Service)
        return answer

    async def service(self) -> pb.Service:
        found = (await self.nanny.unary("GetService", pb.GetServiceRequest(service_id=SERVICE))).service
        assert isinstance(found, pb.Service)
        return found

    async def state(self, snapshot: str) -> pb.SnapshotState:
        found = (one for one in (await self.service()).snapshot if one.snapshot_id == snapshot)
        return next(found, pb.SnapshotState())

    async def until(self, snapshot: str, *currents: pb.CurrentState, timeout_s: float = 3_600.0) -> pb.SnapshotState:
        """Its state, once it is one of these."""
        ends = self.clock.now() + timeout_s
        while (state := await self.state(snapshot)).current not in currents:
            assert self.clock.now() < ends, f"{await self.service()}"
            await asyncio.sleep(1.0)
        return state

    async def activate(self, snapshot: str, timeout_s: float = 3_600.0) -> float:
        """Order it, and return after how many seconds it is ACTIVE; a failure fails the test."""
        began = self.clock.now()
        await self.target(snapshot)
        state = await self.until(snapshot, *_RESTS, timeout_s=timeout_s)
        assert state.current == pb.CURRENT_STATE_ACTIVE, state.message
        return self.clock.now() - began

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, seconds: float) -> None:
        """Time passes while nobody does anything."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.jump(seconds)

    async def instances(self) -> Mapping[str, instance_pb2.Instance]:
        """Instances as HQ shows them."""
        where = hq_pb.InstanceFilter(service_id=[SERVICE])
        return {one.meta.id: one async for page in self.hq.find(where) for one in page.instances}

    async def shown_state(self, snapshot: str, instance: str) -> str:
        """What people read of an instance."""
        request = pb.ListInstancesRequest(service_id=SERVICE, snapshot_id=snapshot)
        rows = (await self.nanny.unary("ListInstances", request)).instance
        return str(next(row.state_name for row in rows if row.id == instance))

    async def runs(self, snapshot: str) -> set[str]:
        """Instances that HQ wants to run it."""
        return {
            name
            for name, one in (await self.instances()).items()
            if any(
                revision.id == self.revisions[snapshot] and revision.target == _READY for revision in one.spec.revision
            )
        }

    async def kill_node(self, name: str) -> None:
        """Its agent says nothing more; return when HQ has noticed."""
        self.agents.silent.add(name)
        while (await self.instances())[name].status.ready.status == _TRUE:
            await asyncio.sleep(10.0)


@asynccontextmanager
async def virtual_cloud(size: int, leave: ApprovalPort | None = None) -> AsyncIterator[VirtualCloud]:
    """It runs, without a service; without a CMS, unless `leave` stands for one."""
    clock, prometheus = VirtualClock(), PrometheusStandIn()
    async with AsyncExitStack() as stack:
        registry = await stack.enter_async_context(running_replica(clock=clock, **_LIVENESS))
        methods = InstanceApi(registry, 1 << 20).methods()
        hq = DirectClient(Direct(methods, clock, hq_pb))
        nannies, store = await stack.enter_async_context(AsyncExitStack()), MemoryStore()

        async def begin() -> NannyProcess:
            server = NannyProcess(
                ControlConfig("/nanny/v1/", "nanny-1", 10.0),
                store,
                random.Random(1),
                ServerContext(Limits(), clock, RequestIds("nanny-1"), None),
                Addresses("127.0.0.1:0", "127.0.0.1:0"),
                {LOCATION: cast("Client", hq)},
                leave or NoCms(),
                prometheus.port(),
            )
            nannies.push_async_callback(server.pictures.close)
            await nannies.enter_async_context(running(server.controller))
            await asyncio.wait_for(server.controller.loaded.wait(), 60.0)
            return server

        agents = Agents(hq, clock)
        attending = asyncio.create_task(agents.run(), name="agents")
        try:
            server = await begin()
            names = [f"web-{number}" for number in range(size)]
            nanny = Direct(server.methods, clock, pb)
            yield VirtualCloud(names, clock, registry, hq, agents, server, nanny, prometheus, nannies, begin)
            assert not attending.done(), attending.exception()
        finally:
            await nannies.aclose()
            attending.cancel()
            await asyncio.gather(attending, return_exceptions=True)
