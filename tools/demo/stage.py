"""All parts of the demo together: started in order, ended in order, looked at as a scene."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

from tools.demo.crews import Crew
from tools.demo.deploying import Deployer, clients_of
from tools.demo.discovery import Discovery
from tools.demo.events import Events
from tools.demo.gateway import Gateway
from tools.demo.guards import GuardWatch
from tools.demo.locations import Location, Refused
from tools.demo.scene import Freshness, LocationScene, Ready, Scene, no_counts
from tools.demo.setting import LIVENESS_TIMEOUT_S, LOCATIONS, NODES, SERVICES
from tools.demo.view import View


class Cast:
    """The parts that exist once locations and gateway have started."""

    def __init__(
        self,
        locations: dict[str, Location],
        nodes: Mapping[str, int],
        gateway: Gateway,
        directory: Path,
        rng: random.Random,
        events: Events,
    ) -> None:
        self.discovery = Discovery(gateway.grpc, events)
        self.guards = GuardWatch(locations)
        self.crews = {name: Crew(location, nodes[name], rng, events) for name, location in locations.items()}
        self.deployer = Deployer(clients_of(gateway.grpc), locations, nodes, directory, events)

    async def run(self, events: Events) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.discovery.run())
            tasks.create_task(self.guards.run())
            for crew in self.crews.values():
                tasks.create_task(crew.run())
            tasks.create_task(self.deployer.run())
            count = await self.deployer.create_all()
            events.say(f"{count} instances were written through the gateway; their agents begin")


class Stage:
    """Runs with `play`, until cancelled; whatever happened, `end` stops every process."""

    def __init__(self, directory: Path, rng: random.Random, events: Events, nodes: Mapping[str, int] = NODES) -> None:
        self.events, self._nodes = events, nodes
        self.locations = {name: Location(name, directory / name) for name in LOCATIONS}
        self.gateway = Gateway(directory)
        self._directory = directory
        self._rng = rng
        self._cast: Cast | None = None

    @property
    def cast(self) -> Cast:
        """Raises Refused while the demo is starting."""
        if self._cast is None:
            raise Refused("the demo is still starting: try again in a few seconds")
        return self._cast

    async def play(self) -> None:
        """Start everything and go on. Raises an ExceptionGroup of ChildFailed, EtcdFailed and the like."""
        self.events.say("starting three etcds, six replicas and a federation gateway")
        async with asyncio.TaskGroup() as tasks:
            for location in self.locations.values():
                tasks.create_task(self._start(location))
        await self.gateway.start(self.locations.values())
        self.events.say(f"the federation gateway serves: gRPC {self.gateway.grpc}, HTTP {self.gateway.http}")
        self._cast = Cast(self.locations, self._nodes, self.gateway, self._directory, self._rng, self.events)
        await self._cast.run(self.events)

    async def end(self) -> None:
        """Stop every process, in order."""
        await self.gateway.stop()
        await asyncio.gather(*(location.end() for location in self.locations.values()))

    async def _start(self, location: Location) -> None:
        await location.start()
        self.events.say(f"{location.name} serves: {' '.join(location.addresses)}")

    def scene(self) -> Scene:
        """As it looks now."""
        cast = self._cast
        view = cast.discovery.view if cast else View()
        return Scene(
            elapsed_s=self.events.elapsed_s,
            gateway=self.gateway.grpc if self.gateway.is_up else "",
            fault=cast.discovery.fault if cast else "starting",
            took_s=cast.discovery.took_s if cast else 0.0,
            locations=tuple(self._location(location, view) for location in self.locations.values()),
            revisions={service: view.revisions(service) for service in SERVICES},
        )

    def _location(self, location: Location, view: View) -> LocationScene:
        name, cast = location.name, self._cast
        freshness, age_s = _freshness(cast.discovery, name) if cast else (Freshness.UNKNOWN, None)
        return LocationScene(
            name=name,
            stopped=location.is_stopped,
            up=location.up,
            replicas=len(location.replicas),
            freshness=freshness,
            age_s=age_s,
            ready=_counts(view, name) if cast else no_counts(),
            silent_agents=cast.crews[name].silent if cast else 0,
            agents=cast.crews[name].total if cast else 0,
            guard=cast.guards.words[name] if cast else "",
        )


def _counts(view: View, location: str) -> dict[str, Ready]:
    ready, total = view.ready(), view.total()
    return {service: Ready(ready[location, service], total[location, service]) for service in SERVICES}


def _freshness(discovery: Discovery, location: str) -> tuple[Freshness, float | None]:
    source = discovery.told.get(location)
    if source is None:
        return Freshness.UNKNOWN, None
    if source.error:
        return Freshness.SILENT, None
    age_s = source.staleness.ToMilliseconds() / 1000
    is_stale = source.stale or age_s > LIVENESS_TIMEOUT_S / 2
    return (Freshness.STALE if is_stale else Freshness.FRESH), age_s
