"""The wanted state from HQ, when HQ refuses the watch at first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import grpc

from hqclient.client import Client, HqApiError
from hqclient.watch_items import SnapshotPart
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from instancectl.clock import MachineClock
from instancectl.route import HqRoute
from instancectl.wanted.hq_source import HqSource
from instancectl.wanted.source import DesiredUpdate


class _Unhurried(MachineClock):
    """A clock whose sleeps return at once."""

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(0)


class _Hq:
    """Refuses the first watch; the second one shows a newer version than `get_revision` did."""

    def __init__(self) -> None:
        self.version, self.watches = 1, 0

    async def get_revision(self, *_: Any, **__: Any) -> pb.GetRevisionResponse:
        return pb.GetRevisionResponse(uid=1, version=self.version)

    @asynccontextmanager
    async def watch(self, _: pb.InstanceFilter) -> AsyncGenerator[AsyncIterator[SnapshotPart], None]:
        self.watches += 1
        if self.watches == 1:
            raise HqApiError(grpc.StatusCode.PERMISSION_DENIED, "not yet")
        yield self._shown()

    async def _shown(self) -> AsyncIterator[SnapshotPart]:
        self.version = 2
        yield SnapshotPart((model.Instance(meta=model.InstanceMeta(id="i-1", uid=1, version=2)),))
        await asyncio.Event().wait()


async def test_a_refused_watch_is_opened_later_and_then_shows_changes_promptly() -> None:
    source = HqSource(
        HqRoute(None, cast("Client", _Hq()), random.Random(1)), "i-1", "node-1", None, _Unhurried(), random.Random(1)
    )
    versions = []
    async with asyncio.timeout(10), aclosing(source.updates()) as updates:
        async for update in updates:
            assert isinstance(update, DesiredUpdate)
            versions.append(update.desired.version)
            if versions[-1] == 2:
                break
    assert versions == [1, 2]
