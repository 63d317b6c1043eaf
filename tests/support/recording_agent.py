"""An agent that writes down what it reported and was told (recording.py)."""

from __future__ import annotations

from collections.abc import Callable

from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import ServiceError
from tests.checker import marks
from tests.checker.history import Write
from tests.support.recording import Diary
from tests.support.recording_client import Client


class Agent(Client):
    """Reports one revision."""

    def __init__(self, diary: Diary, registry: Callable[[], Registry], instance_id: str, node: str = "node-1") -> None:
        super().__init__(diary, f"agent-{instance_id}", registry)
        self.instance_id, self.node, self.revision_id = instance_id, node, "r1"
        self._incarnation = self._uid = self._sequence = 0
        self._told = ""
        self._ready = True

    async def begin(self) -> None:
        """Written down nowhere: it changes no marker."""
        registry = self.registry()
        begun = await registry.reports.begin(self.instance_id, self.revision_id, self.node, self._deadline(registry))
        self._incarnation, self._uid = begun.incarnation, begun.uid

    async def try_to_begin(self) -> str:
        """The reason of the refusal; empty: it has begun."""
        try:
            await self.begin()
        except ServiceError as error:
            return error.reason
        return ""

    @property
    def has_reported(self) -> bool:
        return bool(self._told)

    @property
    def is_ready(self) -> bool:
        """What was told last."""
        return self._ready

    async def report(self, *, ready: bool = True) -> bool:
        """News. Whether it was taken."""
        self._told, self._ready = self._marker(), ready
        return await self._send("report")

    async def heartbeat(self) -> bool:
        """The same again."""
        return await self._send("heartbeat")

    async def _send(self, op: str) -> bool:
        self._sequence += 1
        status = model.RevisionStatus(id=self.revision_id, incarnation=self._incarnation, sequence=self._sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE if self._ready else model.CONDITION_STATUS_FALSE
        marks.mark_report(status, self._told)
        request = pb.ReportStatusRequest(instance_id=self.instance_id, uid=self._uid, node=self.node, revision=status)
        taken = []

        async def send(registry: Registry) -> None:
            await registry.reports.report(request, self._deadline(registry))
            taken.append(True)

        write = Write(self._told, revision_id=self.revision_id)
        await self.call(op, self.instance_id, send, write=write)
        return bool(taken)
