"""Service discovery as the demo plays it: one watch, and a small question twice a second, both through the gateway."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterable

import grpc

from hqclient.client import Client, HqApiError
from hqclient.links import insecure_channel
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_stubs import InstanceServiceStub
from tools.demo.events import Events
from tools.demo.view import Turn, View

_ASK_EVERY_S = 0.5
_ASK_FOR_S = 2.0
_AGAIN_S = 0.5
_SAY_EVERY_S = 1.0


class Discovery:
    """Runs until cancelled.

    Attributes:
        view: the instances as the watch told them.
        told: by location, what the last answer said of its freshness; empty before the first.
        took_s: how long that answer took.
        fault: why there was no answer at all; empty: there was.
    """

    def __init__(self, address: str, events: Events) -> None:
        self.view = View()
        self.told: dict[str, pb.Source] = {}
        self.took_s = 0.0
        self.fault = "no answer yet"
        self._address, self._events = address, events
        self._turns: Counter[Turn] = Counter()
        self._token = ""

    async def run(self) -> None:
        """Ask and watch."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask())
            tasks.create_task(self._watch())
            tasks.create_task(self._say_turns_often())

    # --- how fresh ----------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        async with Client([self._address]) as client:
            while True:
                began = time.monotonic()
                try:
                    answer = await client.count(timeout_s=_ASK_FOR_S)
                except HqApiError as error:
                    self.fault = error.message
                else:
                    self.fault = ""
                    self.took_s = time.monotonic() - began
                    self._tell(answer.sources)
                await asyncio.sleep(_ASK_EVERY_S)

    def _tell(self, sources: Iterable[pb.Source]) -> None:
        for source in sources:
            before = self.told.get(source.cluster)
            self.told[source.cluster] = source
            if before is not None and bool(before.error) != bool(source.error):
                self._events.say(f"{source.cluster}: {source.error or 'answers again'}")

    # --- what there is ------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        async with insecure_channel(self._address) as channel:
            while True:
                request = pb.WatchInstancesRequest(resume_token=self._token)
                try:
                    async for message in InstanceServiceStub(channel).WatchInstances(request, wait_for_ready=True):
                        self._take(message)
                except grpc.aio.AioRpcError as error:
                    self._interrupted(error)
                await asyncio.sleep(_AGAIN_S)

    def _interrupted(self, error: grpc.aio.AioRpcError) -> None:
        self._events.say(f"watch: {error.details()}")
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            self._token = ""
            self.view.doubt(())

    def _take(self, message: pb.WatchInstancesResponse) -> None:
        locations = [source.cluster for source in message.sources]
        if message.kind == pb.WATCH_KIND_RESYNC:
            self._events.say(f"watch: {' '.join(locations) or 'all'} from the beginning: {message.reason}")
            self.view.doubt(locations)
        self._turns.update(turn for event in message.events if (turn := self._change(event)))
        if message.kind == pb.WATCH_KIND_SYNCED:
            self.view.settle(locations)
        self._token = message.resume_token or self._token

    def _change(self, event: pb.WatchEvent) -> Turn | None:
        match event.WhichOneof("change"):
            case "put":
                return self.view.put(event.put)
            case "delete":
                self.view.delete(event.delete)
            case "left":
                self.view.delete(event.left)
        return None

    async def _say_turns_often(self) -> None:
        while True:
            await asyncio.sleep(_SAY_EVERY_S)
            self._say_turns()

    def _say_turns(self) -> None:
        """What comes together is said together."""
        turns, self._turns = sorted(self._turns.items()), Counter()
        for (ready, reason), group in itertools.groupby(turns, lambda item: item[0][:2]):
            counts = {turn.location: count for turn, count in group}
            what = "became ready" if ready else f"became not ready ({reason})"
            where = ", ".join(f"{location} {count}" for location, count in counts.items())
            self._events.say(f"{sum(counts.values())} {what}: {where}")
