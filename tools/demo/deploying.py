"""The deploy system of the demo: the command `nanny`, which uploads a revision and rolls it out batch by batch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hqclient.calls import MetadataSource
from hqclient.client import Client
from tools.demo.children import POLL_S, Child
from tools.demo.events import Events
from tools.demo.locations import Location, Refused
from tools.demo.setting import FIRST_REVISION, LOCATIONS, SERVICES, START_S, instances_of

CLUSTER_HEADER = "x-hq-cluster"
_CALL_S = 3.0
_PACE = ("--max-unavailable", "25%", "--min-ready-time", "0s", "--timeout-ready", "10s")


def clients_of(gateway: str) -> dict[str, Client]:
    """Clients of a gateway, each for the writes to one location."""
    return {name: Client([gateway], timeout_s=_CALL_S, metadata=_header(name)) for name in LOCATIONS}


class Deployer:
    """Knows which revisions each service has had: the last is wanted READY, the one before is kept for a roll-back."""

    def __init__(
        self,
        clients: Mapping[str, Client],
        locations: Mapping[str, Location],
        nodes: Mapping[str, int],
        directory: Path,
        events: Events,
    ) -> None:
        """`nodes`: how many there are in each location."""
        self._clients, self._locations, self._nodes, self._events = clients, locations, nodes, events
        self._directory = directory
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
        before, wanted = self._history[service][-1], f"r{self._newest[service]}"
        self._history[service] = [before, wanted]
        described = self._describe(service, before, wanted)
        commands = (("upload", "-f", str(described)), ("activate", wanted, "--service", service, *_PACE))
        return self._begin(service, f"deploy {wanted} of {service}", commands)

    def roll_back(self, service: str) -> str:
        """Begin to return to the revision before; say what begins. Raises Refused."""
        if len(self._history[service]) < 2:
            raise Refused(f"{service} has no revision before {self._history[service][0]}: deploy {service}")
        self._history[service].pop()
        wanted = self._history[service][-1]
        words = f"roll {service} back to {wanted}"
        return self._begin(service, words, [("rollback", "--service", service, "--to", wanted, *_PACE)])

    def _describe(self, service: str, ready: str, added: str) -> Path:
        """A description: one more revision; what runs stays, others go."""
        instances = [
            {"id": one.meta.id, "installation": name}
            for name in LOCATIONS
            for one in instances_of(name, self._nodes[name])
            if one.meta.service_id == service
        ]
        content = {
            "service": service,
            "instances": instances,
            "revisions": [{"id": added}],
            "ready": ready,
            "drop": "others",
        }
        path = self._directory / f"{service}.yaml"
        path.write_text(json.dumps(content))
        return path

    def _begin(self, service: str, words: str, commands: Sequence[Sequence[str]]) -> str:
        """One rollout of a service at a time: the newest order holds."""
        if before := self._rollouts.get(service):
            before.cancel()
        self._rollouts[service] = asyncio.create_task(self._roll(service, words, commands))
        return f"{words}: `{' '.join(('nanny', *commands[-1][:2]))} ...` goes from location to location"

    async def _roll(self, service: str, words: str, commands: Sequence[Sequence[str]]) -> None:
        last: list[str] = []
        for command in commands:
            last = await self._nanny(service, command)
        for line in last:
            self._events.say(f"{words}: {line}")

    async def _nanny(self, service: str, command: Sequence[str]) -> list[str]:
        """Run it to the end; what it says of each location, and why it stopped."""
        installations = [
            f"--installation={name}={','.join(location.addresses)}" for name, location in self._locations.items()
        ]
        log = self._directory / f"nanny-{service}.log"
        child = Child("nanny", "nannyctl.main", [*command, *installations], log)
        await child.start()
        try:
            while child.is_running:
                await asyncio.sleep(POLL_S)
        finally:
            await child.stop()
        lines = child.output().splitlines()
        return [
            line for line in lines if line.startswith(tuple(f"{name}: " for name in LOCATIONS)) or "stopped" in line
        ][-len(LOCATIONS) - 1 :]


def _header(location: str) -> MetadataSource:
    return lambda: [(CLUSTER_HEADER, location)]
