"""Small scenes for tests: instances to create, agents that report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb

READY = model.REVISION_TARGET_READY
INSTALLED = model.REVISION_TARGET_INSTALLED


def instance(
    instance_id: str,
    service: str = "svc",
    node: str = "node-1",
    revisions: tuple[str, ...] = ("r1",),
    text: str = "",
    times: tuple[float, float] | None = None,
) -> model.Instance:
    """An instance whose first revision is wanted READY, the others INSTALLED.

    `times`: report interval and timeout of its own, in seconds; None: the installation's.
    """
    made = model.Instance()
    made.meta.id, made.meta.service_id = instance_id, service
    made.spec.node_name = node
    for i, revision in enumerate(revisions):
        made.spec.revision.add(id=revision, target=INSTALLED if i else READY)
    if text:
        made.meta.annotations["text"] = text
    if times:
        made.spec.liveness.report_interval.FromTimedelta(timedelta(seconds=times[0]))
        made.spec.liveness.timeout.FromTimedelta(timedelta(seconds=times[1]))
    return made


class Agent:
    """Reports one revision over a stub of InstanceService."""

    def __init__(self, stub: Any, instance_id: str, revision: str = "r1", node: str = "node-1") -> None:
        self.stub, self.instance_id, self.revision, self.node = stub, instance_id, revision, node
        self.incarnation = self.uid = self.sequence = 0

    async def begin(self) -> None:
        request = pb.BeginReportingRequest(instance_id=self.instance_id, revision_id=self.revision, node=self.node)
        answer = await self.stub.BeginReporting(request)
        self.incarnation, self.uid, self.sequence = answer.incarnation, answer.uid, 0

    def request(self, *, ready: bool = True, message: str = "") -> pb.ReportStatusRequest:
        """The next report."""
        self.sequence += 1
        status = model.RevisionStatus(id=self.revision, incarnation=self.incarnation, sequence=self.sequence)
        status.installed.status = model.CONDITION_STATUS_TRUE
        status.ready.status = model.CONDITION_STATUS_TRUE if ready else model.CONDITION_STATUS_FALSE
        status.ready.message = message
        return pb.ReportStatusRequest(instance_id=self.instance_id, uid=self.uid, node=self.node, revision=status)

    async def report(self, *, ready: bool = True, message: str = "") -> None:
        await self.stub.ReportStatus(self.request(ready=ready, message=message))


async def eventually(holds: Callable[[], Any], timeout_s: float = 30.0, what: str = "") -> Any:
    """Ask again and again (sync or async) until the answer is true; return it. Fails with what was waited for."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + timeout_s
    while True:
        answer = holds()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert loop.time() < ends, f"not within {timeout_s} s: {what or holds}"
        await asyncio.sleep(0.05)
