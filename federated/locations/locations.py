"""All locations of a gateway, kept in step with its file; unchanged ones are not disturbed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from federated.clock import FederatedClock
from federated.errors import NoAnswer, raise_refusal
from federated.locations.channel import Dialer
from federated.locations.config import ConfigFile, LocationConfig
from federated.locations.location import Location
from hqclient.errors import HqApiError

T = TypeVar("T")

_REREAD_S: Final = 1.0


@dataclass(slots=True)
class LocationAnswers(Generic[T]):
    """The results of asking several locations, by name."""

    said: dict[str, T] = field(default_factory=dict)
    refused: dict[str, HqApiError] = field(default_factory=dict)
    silent: dict[str, NoAnswer] = field(default_factory=dict)


def checked_answers(answers: LocationAnswers[T]) -> LocationAnswers[T]:
    """The same answers. Raises ServiceError if a location rejects the request."""
    raise_refusal(answers.refused)
    return answers


class Locations:
    """The locations by name, probed and re-read while `run` runs.

    Attributes:
        by_name: those in force.
        started: set when each of them was probed once.
        closing: set when the gateway shuts down.
    """

    def __init__(
        self, file: ConfigFile, clock: FederatedClock, rng: random.Random, dialer: Dialer, last_good_bytes: int
    ) -> None:
        self.file = file
        self._clock = clock
        self._rng, self._dialer, self._last_good_bytes = rng, dialer, last_good_bytes
        self._silence = asyncio.Event()
        self.by_name = {name: self._make(config) for name, config in file.current.locations.items()}
        self.started, self.closing = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()
        self._probing: dict[str, asyncio.Task[None]] = {}

    def get(self, name: str) -> Location | None:
        """The location of this name; None: there is none any more."""
        return self.by_name.get(name)

    def addresses(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Addresses of their replicas."""
        return {name: self.by_name[name].config.replicas for name in names if name in self.by_name}

    async def ask(
        self, names: Iterable[str], question: Callable[[Location], Coroutine[Any, Any, T]]
    ) -> LocationAnswers[T]:
        """Put a question to several locations at once, and sort the answers."""
        answers: LocationAnswers[T] = LocationAnswers()
        asked: dict[str, asyncio.Task[T]] = {}
        for name in names:
            location = self.by_name.get(name)
            if location is None:
                answers.silent[name] = NoAnswer("it was just removed from the gateway's configuration")
            else:
                asked[name] = asyncio.create_task(question(location))
        try:
            for name, task in asked.items():
                try:
                    answers.said[name] = await task
                except NoAnswer as silence:
                    answers.silent[name] = silence
                except HqApiError as refusal:
                    answers.refused[name] = refusal
        finally:
            for task in asked.values():
                task.cancel()
        return answers

    async def wait_for_silence(self) -> None:
        """Return when one of them falls silent."""
        await self._silence.wait()

    async def wait_for_change(self) -> None:
        """Return when locations came, went or changed, or the gateway shuts down."""
        await self._changed.wait()

    async def run(self) -> None:
        """Probe and re-read until cancelled."""
        async with asyncio.TaskGroup() as group:
            await asyncio.gather(*(location.probes.probe() for location in self.by_name.values()))
            self.started.set()
            for location in self.by_name.values():
                self._keep_probing(group, location)
            while True:
                await self._clock.sleep(_REREAD_S)
                if self.file.reread():
                    self._apply(group)

    def close(self) -> None:
        """Begin to shut down: watches end."""
        self.closing.set()
        self._changed.set()

    async def end(self) -> None:
        """End every call."""
        await asyncio.gather(*(location.close() for location in self.by_name.values()))

    def _make(self, config: LocationConfig) -> Location:
        location = Location(config, self._clock, self._rng, self._dialer, self._last_good_bytes)
        location.health.on_silence = self._on_silence
        return location

    def _on_silence(self) -> None:
        silence, self._silence = self._silence, asyncio.Event()
        silence.set()

    def _apply(self, group: asyncio.TaskGroup) -> None:
        wanted = self.file.current.locations
        gone = [one for one in self.by_name.values() if wanted.get(one.name) != one.config]
        kept = {one.name: one for one in self.by_name.values() if wanted.get(one.name) == one.config}
        made = {name: self._make(config) for name, config in wanted.items() if name not in kept}
        self.by_name = dict(sorted({**kept, **made}.items()))
        for location in gone:
            self._probing.pop(location.name).cancel()
            group.create_task(location.leave(), name=f"leave {location.name}")
        for location in made.values():
            self._keep_probing(group, location)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _keep_probing(self, group: asyncio.TaskGroup, location: Location) -> None:
        task = group.create_task(location.probes.keep_probing(), name=f"probe {location.name}")
        self._probing[location.name] = task
