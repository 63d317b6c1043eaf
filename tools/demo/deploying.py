"""The deploy system of the demo: it writes what shall run, through the gateway, a few instances at a time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from hqclient.calls import MetadataSource
from hqclient.client import Client, HqApiError
from tools.demo.events import Events
from tools.demo.locations import Refused
from tools.demo.setting import FIRST_REVISION, LOCATIONS, SERVICES, START_S, instances_of, revision
from tools.demo.view import View

CLUSTER_HEADER = "x-hq-cluster"
_WAVES = 5
_WAVE_S = 6.0
_LOOK_S = 0.1
_AGAIN_S = 2.0
_CALL_S = 3.0


class Written(NamedTuple):
    """An instance whose spec was written."""

    location: str
    instance_id: str


def clients_of(gateway: str) -> dict[str, Client]:
    """Clients of a gateway, each for the writes to one location."""
    return {name: Client([gateway], timeout_s=_CALL_S, metadata=_header(name)) for name in LOCATIONS}


class Deployer:
    """Knows which revisions each service has had: the last is wanted READY, the one before is kept for a roll-back."""

    def __init__(self, clients: Mapping[str, Client], nodes: Mapping[str, int], view: View, events: Events) -> None:
        """`nodes`: how many there are in each location."""
        self._clients, self._nodes, self._view, self._events = clients, nodes, view, events
        self._history = {service: [FIRST_REVISION] for service in SERVICES}
        self._newest = dict.fromkeys(SERVICES, 1)
        self._rollouts: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until cancelled; rollouts and clients end with it."""
        try:
            await asyncio.Event().wait()
        finally:
            for task in self._rollouts.values():
                task.cancel()
            await asyncio.gather(*self._rollouts.values(), return_exceptions=True)
            await asyncio.gather(*(client.close() for client in self._clients.values()))

    async def create_all(self) -> int:
        """Write all instances of all locations. Raises HqApiError."""
        answers = await asyncio.gather(
            *(self._clients[name].apply(instances_of(name, self._nodes[name]), timeout_s=START_S) for name in LOCATIONS)
        )
        failed = [result.error.message for answer in answers for result in answer.result if result.HasField("error")]
        if failed:
            raise Refused(f"{len(failed)} instances were refused: {failed[0]}")
        return sum(len(answer.result) for answer in answers)

    def deploy(self, service: str) -> str:
        """Begin to roll a new revision over all instances of a service; say what begins."""
        self._newest[service] += 1
        wanted = f"r{self._newest[service]}"
        self._history[service] = [self._history[service][-1], wanted]
        return self._begin(service, wanted, f"deploy {wanted} of {service}")

    def roll_back(self, service: str) -> str:
        """Begin to return to the revision before; say what begins. Raises Refused."""
        if len(self._history[service]) < 2:
            raise Refused(f"{service} has no revision before {self._history[service][0]}: deploy {service}")
        self._history[service].pop()
        wanted = self._history[service][-1]
        return self._begin(service, wanted, f"roll {service} back to {wanted}")

    def _begin(self, service: str, wanted: str, words: str) -> str:
        """One rollout of a service at a time: the newest order holds."""
        if before := self._rollouts.get(service):
            before.cancel()
        instances = [
            Written(name, one.meta.id)
            for name in LOCATIONS
            for one in instances_of(name, self._nodes[name])
            if one.meta.service_id == service
        ]
        self._rollouts[service] = asyncio.create_task(self._roll(instances, wanted, words))
        return f"{words}: {len(instances)} instances in {_WAVES} waves"

    async def _roll(self, instances: list[Written], wanted: str, words: str) -> None:
        began, left = time.monotonic(), list[Written]()
        for number in range(_WAVES):
            self._events.say(f"{words}: wave {number + 1} of {_WAVES}")
            wave = instances[number::_WAVES]
            faults = await self._write(wave, wanted)
            left += faults
            for location, count in Counter(one.location for one in faults).items():
                self._events.say(f"{words}: {count} of {location} have to wait, it does not take them")
            await self._until_ready([one for one in wave if one not in faults], wanted)
        ready, took_s = self._ready(instances, wanted), time.monotonic() - began
        self._events.say(f"{words}: {ready} of {len(instances)} ready after {took_s:.0f} s")
        await self._catch_up(left, wanted, words)

    async def _catch_up(self, left: Collection[Written], wanted: str, words: str) -> None:
        """Write what could not be written, as soon as it can be."""
        if not left:
            return
        count = len(left)
        while left:
            await asyncio.sleep(_AGAIN_S)
            left = await self._write(left, wanted)
        self._events.say(f"{words}: the {count} that had to wait are written, too")

    async def _write(self, wave: Collection[Written], wanted: str) -> dict[Written, str]:
        """Write them at the same time; those that failed, and why."""
        outcomes = await asyncio.gather(*(self._put(one, wanted) for one in wave))
        return {one: fault for one, fault in zip(wave, outcomes, strict=True) if fault}

    async def _put(self, one: Written, wanted: str) -> str:
        """Why it failed; empty: it did not."""
        try:
            await self._clients[one.location].put_revision(one.instance_id, revision(wanted))
        except HqApiError as error:
            return error.message
        return ""

    async def _until_ready(self, wave: list[Written], wanted: str) -> None:
        """Wait until discovery sees them all, but not for ever: an agent may be silent."""
        ends = time.monotonic() + _WAVE_S
        while self._ready(wave, wanted) < len(wave) and time.monotonic() < ends:
            await asyncio.sleep(_LOOK_S)

    def _ready(self, wave: list[Written], wanted: str) -> int:
        return sum(self._view.ready_in(one.location, [one.instance_id], wanted) for one in wave)


def _header(location: str) -> MetadataSource:
    return lambda: [(CLUSTER_HEADER, location)]
