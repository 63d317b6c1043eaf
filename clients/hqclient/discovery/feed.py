"""One watch for a set of services: keeps the roster, notifies the listeners, and saves the list to a file."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc

from hqclient.client import Client
from hqclient.clock import ClientClock
from hqclient.discovery.doubts import BELIEVE_AFTER_S
from hqclient.discovery.endpoint import known_instance, ready_instance
from hqclient.discovery.roster import Delta, Origin, Roster
from hqclient.discovery.saved import SavedState, Unusable, file_name, load, save
from hqclient.errors import HqApiError
from hqclient.watch_items import Interrupted, Resync
from hqpb.v1 import service_pb2

_log = logging.getLogger(__name__)


class FeedSubject(NamedTuple):
    """The instances that a feed follows.

    Attributes:
        services: empty: all.
        ready_only: False: instances that are not ready, too.
    """

    services: frozenset[str]
    ready_only: bool = True

    def __str__(self) -> str:
        return ", ".join(sorted(self.services)) or "all services"


class Listener(Protocol):
    """Who follows a feed."""

    def step(self, delta: Delta) -> None:
        """Take a step of the roster, which concerns this listener."""
        ...


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """How a feed behaves.

    Attributes:
        save_after_s: a change is in the file after at most this time.
        save_every_s: without changes, the file's timestamp is renewed at this interval.
        believe_after_s: instances missing since HQ's store was replaced are kept for at most this time, unless HQ
            confirms earlier that they are gone.
        refused_s: about how long to wait after HQ refused the watch (a token that expired, for example).
    """

    save_after_s: float = 1.0
    save_every_s: float = 60.0
    refused_s: float = 5.0
    believe_after_s: float = BELIEVE_AFTER_S


class Feed:
    """Start it, follow it, close it. No error or silence of HQ ends it.

    Attributes:
        error: why there is no stream at the moment; None: there is one.
    """

    def __init__(
        self,
        client: Client,
        subject: FeedSubject,
        directory: Path | None,
        settings: FeedSettings,
        clock: ClientClock,
        wall: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self.roster = Roster(settings.believe_after_s, ready_instance if subject.ready_only else known_instance)
        self._doubt = ""
        self.error: HqApiError | None = None
        self._client, self._subject, self._settings = client, subject, settings
        self._clock, self._wall, self._rng = clock, wall, rng
        self._path = directory / file_name(subject.services, ready_only=subject.ready_only) if directory else None
        self._listeners: list[Listener] = []  # of all steps
        self._listeners_of: dict[str, list[Listener]] = {}  # of the steps of one service
        self._by_service: dict[str, Delta] | None = None  # the list as it stands; None: not put in order yet
        self._token = ""
        self._moved = asyncio.Event()
        self._dirty = asyncio.Event()
        self._saved_at = self._heard_at = clock.now()
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Feed({self._subject}, {self.roster!r})"

    def start(self) -> None:
        """Load the file, then watch."""
        self._restore()
        self._tasks = [asyncio.create_task(self._watch(), name=f"watch {self._subject}")]
        if self._path:
            self._tasks.append(asyncio.create_task(self._keep_saving(), name=f"save {self._path.name}"))

    async def close(self) -> None:
        """End the watch; the file holds the list as it was last."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        # A list that is no newer than the file must not replace what another process wrote meanwhile.
        if self._dirty.is_set() or self.roster.origin is Origin.LIVE:
            await self._save()

    def attach(self, listener: Listener, service: str = "") -> Delta:
        """Notify a listener of every step from now on, or of one service's. Returns the list as it stands.

        A feed may follow thousands of services: a listener is not called for the steps of others.
        """
        self._listeners_at(service).append(listener)
        if not service:
            return _all_added(self.roster)
        if self._by_service is None:
            self._by_service = _all_added(self.roster).by_service()
        return self._by_service.get(service, Delta({}))

    def detach(self, listener: Listener, service: str = "") -> None:
        """Stop notifying a listener."""
        self._listeners_at(service).remove(listener)

    def age_s(self) -> float:
        """The list was complete so many seconds ago; infinite: unknown, or there is none."""
        return self.roster.age_s(self._clock.now())

    def silent_s(self) -> float:
        """Seconds since HQ last sent anything, even a bookmark."""
        return self._clock.now() - self._heard_at

    async def wait_for_change(self) -> None:
        """Return after the next step, or when the watch began, ended or was refused."""
        await self._moved.wait()

    async def _watch(self) -> None:
        while True:
            try:
                await self._follow()
            except HqApiError as error:
                self._on_watch_refused(error)
            except Exception as error:
                # The caller's metadata callback may fail, too. The state of the list is uncertain, so start over.
                _log.exception("the watch of %s failed; starting over", self._subject)
                self._token = ""
                self._on_watch_refused(HqApiError(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}"))
            await self._clock.sleep(self._settings.refused_s * self._rng.uniform(0.5, 1.5))

    async def _follow(self) -> None:
        where = service_pb2.InstanceFilter(service_id=sorted(self._subject.services))
        if self._subject.ready_only:
            where.readiness = service_pb2.READINESS_FILTER_READY
        async with self._client.watch(where, resume_token=self._token) as items:
            async for item in items:
                self._heard_at = self._clock.now()
                deltas = self.roster.apply(item, self._heard_at)
                self._token = items.resume_token if self.roster.is_resumable else ""
                self.error = item.error if isinstance(item, Interrupted) else None
                self._tell(deltas)

    def _on_watch_refused(self, error: HqApiError) -> None:
        _log.warning("HQ refuses the watch of %s: %s; retrying", self._subject, error)
        self.error = error
        self.roster.apply(Interrupted(error, 0.0), self._clock.now())
        if error.code is grpc.StatusCode.INVALID_ARGUMENT:
            # HQ may be unable to read the resume token: it may come from another HQ or another version.
            self._token = ""
        if not self._token:
            self.roster.apply(Resync(error.message), self._clock.now())
        self._tell([])

    def _tell(self, deltas: list[Delta]) -> None:
        if (doubt := self.roster.doubt()) != self._doubt:
            self._doubt = doubt
            _log.warning("%s", f"keeping addresses: {doubt}" if doubt else "HQ's store is trusted again")
        for delta in deltas:
            self._by_service = None
            self._tell_listeners(delta)
        # Without news from HQ this list is no newer than the file, which another process may have written meanwhile.
        is_due = self._clock.now() - self._saved_at >= self._settings.save_every_s
        if deltas or (is_due and self.roster.origin is Origin.LIVE):
            self._dirty.set()
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _tell_listeners(self, delta: Delta) -> None:
        """Notify the listeners that a step concerns: those of all services if steps before it may be missing."""
        for listener in tuple(self._listeners):
            listener.step(delta)
        if not self._listeners_of:
            return
        parts = delta.by_service()
        nothing = replace(delta, changes={})
        for service in tuple(self._listeners_of) if delta.resync or delta.collapsed else parts:
            for listener in tuple(self._listeners_of.get(service, ())):
                listener.step(parts.get(service, nothing))

    def _listeners_at(self, service: str) -> list[Listener]:
        return self._listeners_of.setdefault(service, []) if service else self._listeners

    def _restore(self) -> None:
        if self._path is None:
            return
        try:
            saved = load(self._path, self._subject.services)
        except Unusable as error:
            _log.warning("%s; starting without it", error)
            return
        if saved is not None:
            age_s = saved.age_s(self._wall())
            if math.isinf(age_s):
                _log.warning("%s has a date in the future or none: the age of its list is unknown", self._path)
            self._token = saved.resume_token
            self.roster.restore(
                saved.instances, as_of=self._clock.now() - age_s, resumable=bool(self._token), epochs=saved.epochs
            )

    async def _keep_saving(self) -> None:
        while True:
            await self._dirty.wait()
            await self._clock.sleep(self._settings.save_after_s)
            self._dirty.clear()
            await self._save()

    async def _save(self) -> None:
        if self._path is None or not self.roster.is_known:
            return
        self._saved_at = self._clock.now()
        as_of = max(0.0, self._wall() - self.age_s())  # 0: the age is unknown
        state = SavedState(
            tuple(sorted(self._subject.services)),
            as_of,
            self._token,
            tuple(self.roster.instances.values()),
            self.roster.epochs,
        )
        # Shielded: a cancelled write would continue in its thread and could finish after a later one.
        self._writing = asyncio.create_task(asyncio.to_thread(save, self._path, state), name=f"write {self._path.name}")
        try:
            await asyncio.shield(self._writing)
        except OSError as error:
            _log.warning(
                "%s cannot be written: %s; a restart while HQ is away would use older addresses", self._path, error
            )


def _all_added(roster: Roster) -> Delta:
    return Delta({key: (None, instance) for key, instance in roster.instances.items()})
