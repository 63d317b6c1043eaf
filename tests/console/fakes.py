"""Stand-ins for controllers, over the real transport with real rights: they answer what a test put into them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from console.server import ConsoleHealth
from hqapi.rules import UPLOAD
from nannypb.v1 import service_pb2 as npb
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound, invalid
from serving.limiting.limits import Limits
from serving.listeners import Addresses, Transports
from serving.rights.reach import SHOWN
from serving.rights.rules import OPERATE, READ
from tests.console.scene import HOSTILE

_FAILED = npb.TARGET_ACTIVE, npb.ORDER_OUTCOME_ROLLED_BACK, f"3 failed, 2 allowed {HOSTILE}"
NEW, OLD, BAD = "c0ffee" * 10, "0ddba11" * 9, "badbad" * 10


@asynccontextmanager
async def serving(methods: Sequence[Method], security: Security | None = None) -> AsyncIterator[str]:
    """The address of a server with these calls."""
    shared = ServerContext(Limits(), SystemClock(), RequestIds("fake"), security)
    addresses = Addresses("127.0.0.1:0", "127.0.0.1:0")
    transports = Transports(methods, ConsoleHealth(), shared, CollectorRegistry(), addresses, 0.1)

    async def work() -> None:
        await asyncio.Event().wait()

    running = asyncio.create_task(transports.serve(work(), lambda: None))
    try:
        yield (await asyncio.wait_for(asyncio.shield(transports.listening), 20)).grpc
    finally:
        transports.stop()
        await asyncio.gather(running, return_exceptions=True)


class FakeNanny:
    """One service `web` with three snapshots: HEAD without states, the active one, and one that broke.

    Attributes:
        orders: what came, in order, as (call, request).
        refused: an instance for which it takes no target.
    """

    def __init__(self) -> None:
        self.orders: list[tuple[str, Any]] = []
        self.refused = ""
        now = int(time.time())
        self.web = web = npb.Service(id="web", state=npb.SERVICE_STATE_ONLINE, head=NEW)
        web.info.description, web.info.rollout.max_unavailable = HOSTILE, "10%"
        active = web.snapshot.add(
            snapshot_id=OLD,
            current=npb.CURRENT_STATE_ACTIVE,
            target=npb.TARGET_ACTIVE,
            target_set=_by("ann", now - 9_000),
        )
        active.target_set.ticket = "OPS-7"
        active.current_since.seconds = now - 8_000
        broken = web.snapshot.add(
            snapshot_id=BAD,
            current=npb.CURRENT_STATE_PREPARED,
            target=npb.TARGET_PREPARED,
            target_set=_by("bob", now - 5_000),
        )
        broken.current_since.seconds = now - 4_000
        broken.order.target, broken.order.outcome, broken.order.message = _FAILED
        self.snapshots = [
            npb.Snapshot(id=NEW, service_id="web", created=_by("cid", now - 100, "raise the memory"), instances=4),
            npb.Snapshot(id=BAD, service_id="web", created=_by("bob", now - 6_000, HOSTILE), instances=4),
            npb.Snapshot(id=OLD, service_id="web"),  # old ones lack author, date and comment
        ]
        self.snapshots[0].head = True
        self.snapshots[0].content, self.snapshots[2].content = b"memory: 2\ncpu: 1\n", b"memory: 1\ncpu: 1\n"
        self.rows = [
            npb.InstanceRow(
                id="web-0",
                location="test",
                node_name="node-0",
                target=npb.TARGET_PREPARED,
                state="PREPARED",
                state_name="Prepared",
            ),
            npb.InstanceRow(
                id="web-1",
                location="test",
                node_name="node-1",
                target=npb.TARGET_ACTIVE,
                state="HOOK_SEMI_FAILED",
                state_name="Activating",
                message=HOSTILE,
            ),
            npb.InstanceRow(id="web-2", location="test", state="UNKNOWN", state_name="Unknown"),
        ]
        self.history = [npb.HistoryEntry(author="ann", what="target ACTIVE", snapshot_id=OLD, comment=HOSTILE)]
        self.history.insert(0, npb.HistoryEntry(what="ACTIVATING -> ACTIVE (done)", snapshot_id=OLD))
        for one in self.history:
            one.time.seconds = now - 9_000
        self.rollout = npb.Rollout()
        self.control = npb.ControlState(process="nanny-1", acting="nanny-1", open=True)

    def methods(self) -> list[Method]:
        """What it serves."""
        table = ServiceTable("nanny.v1.NannyService")
        reads: dict[Any, Any] = {
            npb.GetServiceRequest: lambda r: npb.GetServiceResponse(service=self._known(r.service_id)),
            npb.ListServicesRequest: self._page,
            npb.ListSnapshotsRequest: lambda r: npb.ListSnapshotsResponse(snapshot=self._made(r.service_id)),
            npb.GetSnapshotRequest: lambda r: npb.GetSnapshotResponse(snapshot=self._snapshot(r)),
            npb.ListInstancesRequest: lambda r: npb.ListInstancesResponse(
                snapshot_id=r.snapshot_id, instance=self.rows
            ),
            npb.ListHistoryRequest: lambda r: npb.ListHistoryResponse(entry=self.history),
            npb.GetRolloutRequest: lambda r: npb.GetRolloutResponse(rollout=self.rollout),
            npb.GetControlRequest: lambda r: npb.GetControlResponse(control=self.control),
        }
        orders = {
            npb.SetTargetRequest: (npb.SetTargetResponse, UPLOAD),
            npb.SetInstanceTargetRequest: (npb.SetInstanceTargetResponse, UPLOAD),
            npb.StopServiceRequest: (npb.StopServiceResponse, UPLOAD),
            npb.UpdateServiceRequest: (npb.UpdateServiceResponse, UPLOAD),
            npb.DeleteServiceRequest: (npb.DeleteServiceResponse, UPLOAD),
            npb.CreateSnapshotRequest: (npb.CreateSnapshotResponse, UPLOAD),
            npb.CreateServiceRequest: (npb.CreateServiceResponse, UPLOAD),
            npb.PauseActionsRequest: (npb.PauseActionsResponse, OPERATE),
            npb.ResumeActionsRequest: (npb.ResumeActionsResponse, OPERATE),
            npb.PromoteRolloutRequest: (npb.PromoteRolloutResponse, UPLOAD),
            npb.AbortRolloutRequest: (npb.AbortRolloutResponse, UPLOAD),
        }
        return [
            *(table.unary(kind, _reading(run), READ, SHOWN) for kind, run in reads.items()),
            *(table.unary(kind, self._ordering(answer), rule, SHOWN) for kind, (answer, rule) in orders.items()),
        ]

    def roll_out(self, done: int, failed: int = 0, message: str = "") -> None:
        """The new snapshot is so far."""
        self.web.state = npb.SERVICE_STATE_UPDATING
        self.web.snapshot[0].current, self.web.snapshot[0].target = (
            npb.CURRENT_STATE_DEACTIVATE_PENDING,
            npb.TARGET_PREPARED,
        )
        while len(self.web.snapshot) < 3:
            self.web.snapshot.add(snapshot_id=NEW)
        new = self.web.snapshot[2]
        new.current, new.target, new.message = npb.CURRENT_STATE_ACTIVATING, npb.TARGET_ACTIVE, message
        new.action.CopyFrom(npb.ActionProgress(action="activate", number=3, batches_done=done // 2, message=message))
        new.action.location.add(location="test", total=20, done=done, under_way=2, failed=failed, left=1)
        self._take_steps(new)

    def _take_steps(self, new: npb.SnapshotState) -> None:
        """It stands at the third of five steps and waits for a person; one instance is held against it."""
        steps = [
            npb.RolloutStep(instances="1", weight="5%"),
            npb.RolloutStep(hold_s=600),
            npb.RolloutStep(promote=True),
            npb.RolloutStep(instances="50%"),
            npb.RolloutStep(check="errors"),
        ]
        new.action.step.extend(steps)
        new.action.step_number = 3
        policy = self.web.info.rollout
        policy.ClearField("check")
        policy.check.add(name="errors", query="sum(rate(errors[5m]))", below=0.01, duration_s=120)
        now = int(time.time())
        run = self.rollout = npb.Rollout(snapshot_id=NEW, current=new.current, ordered=_by("ann", now - 900, HOSTILE))
        run.order.id, run.order.target, run.order.outcome = "order-7", npb.TARGET_ACTIVE, npb.ORDER_OUTCOME_OPEN
        run.begin_time.seconds, run.message = now - 880, "waits for a person"
        run.batch.add(number=1, instances=1, instance=["web-0 (test)"], cms_task="reboot-1").ask_time.seconds = (
            now - 880
        )
        for number, step in enumerate(steps[:3]):
            one = run.step.add(step=step)
            one.begin_time.seconds = now - 880 + 200 * number
            if number < 2:
                one.end_time.seconds = now - 680 + 200 * number
        judged = run.judged.add(id="web-1", location="test", verdict="fell", message=HOSTILE, output=HOSTILE)
        judged.time.seconds = now - 300

    def _page(self, request: npb.ListServicesRequest) -> npb.ListServicesResponse:
        """`web` is on the second page."""
        if request.page_token:
            return npb.ListServicesResponse(service=[self.web])
        return npb.ListServicesResponse(service=[npb.Service(id="idle")], next_page_token="idle")

    def _known(self, service: str) -> npb.Service:
        if service != "web":
            raise NotFound(f"service {service}: there is none")
        return self.web

    def _made(self, service: str) -> list[npb.Snapshot]:
        self._known(service)
        return self.snapshots

    def _snapshot(self, request: npb.GetSnapshotRequest) -> npb.Snapshot:
        for one in self._made(request.service_id):
            if one.id.startswith(request.snapshot_id):
                return one
        raise NotFound(f"snapshot {request.snapshot_id}: there is none")

    def _ordering(self, answer: type[Any]) -> Any:
        def run(request: Any, call: Call) -> Answer:
            self.orders.append((type(request).__name__.removesuffix("Request"), request))
            self._handle(request)
            has_service = "service" in answer.DESCRIPTOR.fields_by_name
            return MessageAnswer(answer(service=self.web) if has_service else answer())

        return run

    def _handle(self, request: Any) -> None:
        if isinstance(request, npb.CreateSnapshotRequest) and b"bad" in request.content:
            raise invalid("content", "line 1: is no description")
        if isinstance(request, npb.SetInstanceTargetRequest) and request.instance_id == self.refused:
            raise invalid("instance_id", "is gone")
        if isinstance(request, npb.PauseActionsRequest) and request.service_id == "web":
            self.web.paused.CopyFrom(request.by)
            self.web.paused.time.seconds = int(time.time())
        if isinstance(request, npb.ResumeActionsRequest):
            self.web.ClearField("paused")
        if isinstance(request, npb.SetTargetRequest) and request.target == npb.TARGET_ACTIVE:
            self.roll_out(4)


def _reading(run: Any) -> Any:
    def answer(request: Any, call: Call) -> Answer:
        return MessageAnswer(run(request))

    return answer


def _by(author: str, at_s: int, comment: str = "") -> npb.Authorship:
    made = npb.Authorship(author=author, comment=comment)
    made.time.seconds = at_s
    return made
