"""Uploaders: deploy systems that create, change and delete the same few instances, against one another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.checker.history import Write
from tests.checker.marks import mark_instance, mark_revision
from tests.rig.recording import Log
from tests.support.sample_instances import instance

SERVICES, NODES = 4, 6
EXTRA_REVISIONS = ("r2", "r3")


class Names:
    """The instances that a run is about; the service and the node of each are fixed."""

    def __init__(self, count: int) -> None:
        self.all = [f"i-{number:03}" for number in range(count)]

    def service(self, instance_id: str) -> str:
        return f"s-{int(instance_id[2:]) % SERVICES}"

    def node(self, instance_id: str) -> str:
        return f"n-{int(instance_id[2:]) % NODES}"

    def instance(self, instance_id: str, marker: str) -> model.Instance:
        """The instance to create or apply, with its first revision."""
        made = instance(instance_id, self.service(instance_id), self.node(instance_id), ("r1", "r2"))
        return mark_instance(made, marker)


class Uploader:
    """One writer. What it knows of versions comes from its own reads and writes, so it is often outdated."""

    def __init__(self, name: str, client: Client, log: Log, names: Names, rng: random.Random) -> None:
        self._name, self._client, self._log, self._names, self._rng = name, client, log, names, rng
        self._known: dict[str, int] = {}
        self._choices: dict[Callable[[str], Awaitable[object]], int] = {
            self._update_exactly: 8,
            self._update: 4,
            self.create: 3,
            self._put_revision: 2,
            self._delete_revision: 1,
            self._apply: 1,
            self.delete: 1,
        }

    async def run(self, pause_s: float) -> None:
        """Write for ever."""
        while True:
            [do] = self._rng.choices(list(self._choices), list(self._choices.values()))
            instance_id = self._rng.choice(self._names.all)
            try:
                await do(instance_id)
            except HqApiError as error:
                self._known.pop(instance_id, None)
                if error.current_version:
                    self._known[instance_id] = error.current_version
            await asyncio.sleep(self._rng.uniform(0, 2 * pause_s))

    def _marker(self) -> str:
        return f"{self._rng.getrandbits(48):012x}"

    async def create(self, instance_id: str) -> None:
        """Raises HqApiError."""
        marker = self._marker()
        made = self._names.instance(instance_id, marker)
        answer = await self._write("create", instance_id, lambda: self._client.create(made), marker)
        self._known[instance_id] = answer.instance.meta.version

    async def _update(self, instance_id: str, version: int = 0) -> None:
        marker = self._marker()
        made = mark_instance(model.Instance(meta=model.InstanceMeta(id=instance_id, version=version)), marker)
        send = partial(self._client.update, made, fields=["meta.annotations"])
        answer = await self._write("update", instance_id, send, marker, version)
        self._known[instance_id] = answer.instance.meta.version

    async def _update_exactly(self, instance_id: str) -> None:
        if instance_id not in self._known:
            read = await self._client.get(instance_id)
            self._known[instance_id] = read.instance.meta.version
        await self._update(instance_id, self._known[instance_id])

    async def _put_revision(self, instance_id: str) -> None:
        marker = self._marker()
        target = self._rng.choice((model.REVISION_TARGET_INSTALLED, model.REVISION_TARGET_READY))
        made = mark_revision(model.InstanceRevision(id=self._rng.choice(EXTRA_REVISIONS), target=target), marker)
        version = self._known.get(instance_id, 0) if self._rng.random() < 0.5 else 0
        send = partial(self._client.put_revision, instance_id, made, version=version)
        answer = await self._write("put_revision", instance_id, send, marker, version, made.id)
        self._known[instance_id] = answer.instance.meta.version

    async def _delete_revision(self, instance_id: str) -> None:
        revision_id = self._rng.choice(EXTRA_REVISIONS)
        version = self._known.get(instance_id, 0) if self._rng.random() < 0.5 else 0
        send = partial(self._client.delete_revision, instance_id, revision_id, version=version)
        answer = await self._write("delete_revision", instance_id, send, "", version, revision_id)
        self._known[instance_id] = answer.instance.meta.version

    async def delete(self, instance_id: str) -> int:
        """The version of the deletion. Raises HqApiError."""
        version = self._known.get(instance_id, 0) if self._rng.random() < 0.5 else 0
        send = partial(self._client.delete, instance_id, version=version)
        answer = await self._write("delete", instance_id, send, "", version)
        self._known.pop(instance_id, None)
        return version_of(answer)

    async def _apply(self, instance_id: str) -> None:
        """One instance: the outcome of the call is that of the item."""
        marker = self._marker()
        made = self._names.instance(instance_id, marker)

        async def send() -> pb.ApplyInstancesResponse:
            answer = await self._client.apply([made])
            if answer.result[0].HasField("error"):
                raise item_error(answer.result[0].error)
            return answer

        answer = await self._write("apply", instance_id, send, marker)
        self._known[instance_id] = answer.result[0].version

    async def _write(
        self,
        op: str,
        instance_id: str,
        send: Callable[[], Awaitable[Any]],
        marker: str,
        precondition: int = 0,
        revision_id: str = "",
    ) -> Any:
        def record(answer: Any, error: HqApiError | None) -> Write:
            current = error.current_version if error else None
            return Write(marker, precondition, version_of(answer), current, revision_id)

        return await self._log.call(self._name, op, send, instance_id, record)


def version_of(answer: Any) -> int:
    """That an answer to a write names; 0 for none."""
    if isinstance(answer, pb.DeleteInstanceResponse):
        return answer.version
    if isinstance(answer, pb.ApplyInstancesResponse):
        return answer.result[0].version
    return int(answer.instance.meta.version) if answer is not None else 0


def item_error(error: pb.ItemError) -> HqApiError:
    """The error of one item, as if the call had failed with it."""
    import grpc

    code = next(code for code in grpc.StatusCode if code.value[0] == error.code)
    current = {"current_version": str(error.current_version)} if error.current_version else {}
    return HqApiError(code, error.message, reason=error.reason, metadata=current, from_hq=True)
