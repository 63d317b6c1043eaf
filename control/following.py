"""How every process of a controller follows and stores: the parts of `store`, put together over one memory."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from pathlib import Path

from control.change import Changes
from control.memory import Memory
from serving.clock import Clock
from serving.errors import ServiceError
from serving.storage.errors import to_service_error
from store.commit import Committer
from store.compaction import Compactor
from store.epoch import Epoch
from store.fence import Fence, FenceTimes
from store.follow import StoreFollower
from store.keys import COMPACTION, FENCE, Keys, word_of
from store.port import Batch, Record, Store
from store.proof import Proof
from store.session import WriterSession

log = logging.getLogger(__name__)

_RETRY_S = 0.05
_GONE_AFTER_S = 60.0  # without a fence, which every process puts every few seconds


@dataclass(frozen=True, slots=True)
class ControlConfig:
    """The settings of the kit.

    Attributes:
        prefix: of all keys of this controller; ends in a slash.
        process: name of this process, never used by another process.
        term_s: a silent acting process is replaced after this time; effects begin within half of it.
        compact_every_s: how often the store's history is compacted; 0: somebody else does.
        stop_file: while it exists, this process begins no effects; None: no such file.
        open_command: what operators type to open a new epoch, for messages.
    """

    prefix: str
    process: str
    term_s: float = 10.0
    compact_every_s: float = 0.0
    stop_file: Path | None = None
    open_command: str = ""


class Following:
    """Memory in step with the store, and proof of it.

    Attributes:
        loaded: set when everything was read and a fence proved it; cleared when everything is reread.
    """

    def __init__(self, config: ControlConfig, store: Store, clock: Clock, rng: random.Random) -> None:
        process = config.process
        self._names = names = Keys(config.prefix)
        self.memory = memory = Memory(names)
        self.epoch = epoch = Epoch(store, names, rng)
        self._follower = StoreFollower(store, names, memory, epoch, rng)
        times = FenceTimes(idle_s=min(3.0, config.term_s / 4))
        self.fence = Fence(store, names, process, epoch, self._follower, clock, rng, times, to_service_error)
        self._clock, self._fences = clock, dict[bytes, float]()
        self.proof = Proof(
            store, names, process, epoch, self._follower, memory, self.fence, clock, rng, self._running_processes
        )
        session = WriterSession(store, names, process, epoch, rng, memory.wait_for_version)
        self._committer = Committer(store, names, process, epoch, session, clock, rng, errors=to_service_error)
        self._compactor = Compactor(store, names, process, epoch, clock, rng, config.compact_every_s)
        self.changes = Changes(memory, names, self._committer, clock)
        memory.before, memory.after = [self._committer.observe], [self._on_batch]
        memory.forget = [self._committer.forget, self._forget]
        self.loaded = asyncio.Event()
        self._unloaded = asyncio.Event()
        self._unloaded.set()

    async def run(self) -> None:
        """Follow for ever. A part that dies ends it with its error."""
        self.memory.seal()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run(), name="follower")
            tasks.create_task(self.fence.run(), name="fence")
            tasks.create_task(self.proof.run(), name="proof")
            tasks.create_task(self._committer.run(), name="committer")
            tasks.create_task(self._compactor.run(), name="compactor")
            tasks.create_task(self._load_each_time(), name="loading")

    async def _load_each_time(self) -> None:
        while True:
            await self._unloaded.wait()
            if self.memory.restoring:
                await asyncio.sleep(_RETRY_S)
                continue
            try:
                await self.fence.wait_for_fence()
            except ServiceError as error:
                log.info("not loaded yet: %s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            if self._follower.applied and not self.memory.restoring:
                self._unloaded.clear()
                self.loaded.set()
                log.info("loaded version %d", self.memory.version)

    def _on_batch(self, batch: Batch) -> None:
        if self.memory.restoring:
            self.loaded.clear()
            self._unloaded.set()
        for change in batch.changes:
            if change.value is None:
                continue
            kind, _ = self._names.name(change.key)
            if kind == FENCE:
                self._fences[change.key] = self._clock.now()
                self.fence.on_fence_key(change.key, word_of(change.value), change.revision)
            elif kind == COMPACTION:
                self._compactor.on_compaction_mark(Record(change.key, change.value, change.created, change.revision))

    def _running_processes(self) -> int:
        """How many processes follow this store, by their fences."""
        now = self._clock.now()
        self._fences = {key: at for key, at in self._fences.items() if now - at <= _GONE_AFTER_S}
        return max(1, len(self._fences))

    def _forget(self) -> None:
        self.loaded.clear()
        self._unloaded.set()
        self._fences.clear()
        self.fence.forget()
