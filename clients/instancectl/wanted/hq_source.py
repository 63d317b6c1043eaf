"""The wanted state from HQ: GetRevision whenever a watch says that something changed, and periodically without one."""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from hqclient.client import HqApiError
from hqclient.watch_items import Changes, SnapshotPart, WatchItem
from hqpb.v1 import service_pb2 as pb
from instancectl.clock import InstancectlClock
from instancectl.route import HqRoute
from instancectl.wanted.desired import Desired
from instancectl.wanted.source import DesiredUpdate, Gone, SourceTrouble, Update

LOOK_S = 180.0
ASK_S = 3.0  # after this, start from the last good copy
_MAX_BACKOFF_S = 30.0
_CATCH_UP_S = 0.3
_REFUSED_S = 10.0


class Meaning(enum.Enum):
    """The meaning of an answer."""

    GO_ON = "the known instance, or the first one seen"
    RECREATED = "deleted and created again under the same id: another instance"
    GONE = "deleted"
    MOVED = "it is on another node now"
    WAIT = "not there yet"
    DOUBT = "HQ does not know it, but it is not the HQ history that knew it"


@dataclass(frozen=True, slots=True)
class InstanceIdentity:
    """The uid of an instance, and the history of HQ's store that it belongs to."""

    uid: int
    epoch: str


def judge_presence(known: InstanceIdentity | None, found: InstanceIdentity) -> Meaning:
    """What it means that HQ has the instance, on this node."""
    if known is None or not known.uid or known.uid == found.uid:
        return Meaning.GO_ON
    # A restored or replaced store gives re-created instances new uids: for us they are the same.
    return Meaning.RECREATED if known.epoch == found.epoch else Meaning.GO_ON


def judge_absence(known: InstanceIdentity | None, epoch: str, *, elsewhere: bool) -> Meaning:
    """What it means that HQ has no such instance, or (`elsewhere`) has it on another node. `epoch`: the answer's."""
    if known is None:
        return Meaning.WAIT
    if known.epoch != epoch:
        return Meaning.DOUBT
    return Meaning.MOVED if elsewhere else Meaning.GONE


class AbsencePolicy(Protocol):
    """Decides when the absence of an instance counts."""

    def admit(self, instance_id: str) -> str:
        """Why an absence does not count yet; empty: it counts now."""
        ...

    def note_presence(self, instance_id: str) -> None:
        """Note that HQ knows the instance."""
        ...


class HqSource:
    """One instance on one node.

    Args:
        known: the last good copy, so that an absence can be judged; None: never heard of it.
        absences: None: an absence counts at once.
    """

    def __init__(
        self,
        route: HqRoute,
        instance_id: str,
        node: str,
        known: Desired | None,
        clock: InstancectlClock,
        rng: random.Random,
        absences: AbsencePolicy | None = None,
    ) -> None:
        self._route = route
        self._absences = absences
        self._instance_id = instance_id
        self._node = node
        self._known = known
        self._clock = clock
        self._rng = rng
        self._changed = asyncio.Event()
        self._hinted = (0, 0)  # uid and version that the watch has shown

    def look_again(self) -> None:
        self._changed.set()

    async def updates(self) -> AsyncGenerator[Update, None]:
        failing_since: float | None = None
        async with self._watching():
            while True:
                self._changed.clear()
                began = self._clock.now()
                update = await self._ask()
                yield update
                if isinstance(update, SourceTrouble):
                    failing_since = began if failing_since is None else failing_since
                    failing_s = max(0.05, self._clock.now() - failing_since)
                    await self._clock.sleep(min(_MAX_BACKOFF_S, failing_s) * self._rng.uniform(0.5, 1.0))
                    continue
                failing_since = None
                await self._until_changed()

    async def _until_changed(self) -> None:
        # The replica that answered may be behind the one that is watched.
        wait_s = _CATCH_UP_S if self._is_behind() else LOOK_S * self._rng.uniform(0.8, 1.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()

    def _is_behind(self) -> bool:
        known, (uid, version) = self._known, self._hinted
        return known is not None and uid == known.uid and version > known.version

    async def _ask(self) -> Update:
        try:
            answer = await self._route.client.get_revision(self._instance_id, node=self._node, timeout_s=ASK_S)
        except HqApiError as error:
            if error.reason in ("NOT_FOUND", "WRONG_NODE"):
                return self._absent(error)
            return SourceTrouble(f"HQ is unreachable (check --server or --host-agent): {error}; trying again")
        return self._present(answer)

    def _present(self, answer: pb.GetRevisionResponse) -> Update:
        found = Desired(
            self._instance_id,
            self._node,
            tuple(answer.revision),
            answer.allocation,
            answer.uid,
            answer.version,
            answer.source.epoch,
            answer.service_id,
        )
        meaning = judge_presence(self._identity, InstanceIdentity(found.uid, found.epoch))
        self._known = found
        if self._absences is not None:
            self._absences.note_presence(self._instance_id)
        return DesiredUpdate(found, afresh=meaning is Meaning.RECREATED)

    def _absent(self, said: HqApiError) -> Update:
        """Judge an absence. HQ decided it after a fence; but this HQ may never have known the instance."""
        epoch = said.metadata.get("epoch", "")
        meaning = judge_absence(self._identity, epoch, elsewhere=said.reason == "WRONG_NODE")
        match meaning:
            case Meaning.MOVED:
                return Gone(moved=True, message=str(said))
            case Meaning.GONE:
                wait = self._absences.admit(self._instance_id) if self._absences is not None else ""
                return SourceTrouble(wait) if wait else Gone(moved=False, message=str(said))
            case Meaning.DOUBT:
                return SourceTrouble(
                    f"{said}; but HQ's store was replaced since (new epoch), so everything keeps running"
                )
            case _:
                return SourceTrouble(f"{said}; waiting for it")

    @property
    def _identity(self) -> InstanceIdentity | None:
        return InstanceIdentity(self._known.uid, self._known.epoch) if self._known and self._known.uid else None

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch(), name="watch HQ")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})  # unlike `await task`, it does not take our own cancellation for the task's

    async def _watch(self) -> None:
        where = pb.InstanceFilter(instance_id=[self._instance_id])
        while True:
            with suppress(HqApiError):  # without a watch (no rights yet) changes are only noticed later
                async with self._route.watched.watch(where) as items:
                    async for item in items:
                        self._on_item(item)
            await self._clock.sleep(_REFUSED_S * self._rng.uniform(0.5, 1.0))

    def _on_item(self, item: WatchItem) -> None:
        """Reports change the instance too; only a new uid or spec version matters."""
        if isinstance(item, Changes):
            puts = [event.put for event in item.events if event.HasField("put")]
            if len(puts) < len(item.events):
                self._changed.set()
        elif isinstance(item, SnapshotPart):
            puts = list(item.instances)
        else:
            return
        for instance in puts:
            self._hinted = (instance.meta.uid, instance.meta.version)
            if self._known is None or self._hinted != (self._known.uid, self._known.version):
                self._changed.set()
