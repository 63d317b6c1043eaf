"""The kit of one process of a controller, put together: what it follows, stores, handles and reconciles."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable

from control.acting import LeaderElection
from control.change import Change
from control.effects import ALL, FREEZE, OPENING, EffectIntent, EmergencyStop, Switches
from control.errors import MayNotBegin
from control.events import E, EventParts, Events, Handler
from control.following import ControlConfig, Following
from control.memory import STILL_LOADING
from control.order_rights import BY_STORED_GRANTS, OrderRights
from control.reconcile import Reconciler, Run
from control.records import Kind, M, Records
from controlpb.v1 import control_pb2
from serving.clock import Clock
from serving.errors import NotLoaded
from store.port import Store

log = logging.getLogger(__name__)


class Controller:
    """Declare records, events and reconcilers first, then `run`.

    Attributes:
        loaded: set when everything was read and a fence proved it; reads may be served. Cleared on a new epoch.
        stop: the emergency stop of this process.
        why_unrecorded: why nothing can be recorded, so that nothing may begin; empty: it can.
        rights: checks the rights of whoever gave an order, where the order takes effect.
    """

    def __init__(
        self,
        config: ControlConfig,
        store: Store,
        clock: Clock,
        rng: random.Random,
        why_unrecorded: Callable[[], str] = lambda: "",
        rights: OrderRights = BY_STORED_GRANTS,
    ) -> None:
        self.config, self.clock = config, clock
        self._rng, self.rights = rng, rights
        self._following = following = Following(config, store, clock, rng)
        self.loaded, self._epoch, self._fence = following.loaded, following.epoch, following.fence
        self._memory, self._changes = memory, changes = following.memory, following.changes
        self._acting = LeaderElection(
            config.process, changes, following.fence.wait_for_fence, clock, rng, config.term_s
        )
        changes.doubted = self._acting.doubt
        memory.forget.append(self._acting.forget)
        self._freezes, self._openings = memory.table(FREEZE), memory.table(OPENING)
        self._openings.listen(lambda _: self._trigger_all())
        self.stop, self.why_unrecorded = EmergencyStop(config.stop_file), why_unrecorded
        self._switches = Switches(
            self.stop, self._why_frozen, self._why_closed, self._acting.why_no_effect, why_unrecorded
        )
        self._event_parts = EventParts(
            self._changes, self.change, lambda: self._epoch.current, self._may_handle, self._why_waiting, rng
        )
        self._reconcilers: list[tuple[Reconciler, bool]] = []
        self._runs_ended = 0  # an intent of an ended run must begin no effect beside the next run

    # --- declaring --------------------------------------------------------------------------------------------------

    def records(self, kind: Kind[M]) -> Records[M]:
        """All records of a kind, to read."""
        return self._memory.table(kind)

    def events(self, name: str, message: type[E], handle: Handler[E]) -> Events[E]:
        """The events of a kind of subjects. `handle` is described at `Events`."""
        events = Events(name, message, handle, self._event_parts)
        pump = self.reconcile(
            events.kind.name, events.run, lambda: list(events.subjects()), workers=64, while_closed=True
        )
        self._memory.table(events.kind).listen(pump.trigger)
        return events

    def reconcile(
        self,
        name: str,
        run: Run,
        keys: Callable[[], Iterable[str]],
        *,
        workers: int = 8,
        while_closed: bool = False,
    ) -> Reconciler:
        """Run a function over keys while this process acts; see `Reconciler`.

        Args:
            name: lower-case word, unique among the reconcilers.
            while_closed: run also before the epoch was opened.
        """
        failures = _FailureRecords(self, Kind(f"failures.{name}", control_pb2.Failure))
        made = Reconciler(name, run, keys, failures, self.clock, self._rng, workers)
        self._reconcilers.append((made, while_closed))
        return made

    def failures(self, name: str) -> Records[control_pb2.Failure]:
        """Why the keys of a reconciler fail, by key; healthy keys are not included."""
        return self._memory.table(Kind(f"failures.{name}", control_pb2.Failure))

    # --- reading ----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        return self._epoch.current

    @property
    def version(self) -> int:
        """The store's version that memory shows."""
        return self._memory.version

    @property
    def is_acting(self) -> bool:
        return self._acting.holds()

    @property
    def acting_process(self) -> str:
        """Name of the process that acts; empty: none does."""
        return self._acting.process

    @property
    def is_open(self) -> bool:
        """False: the store was restored or replaced, and the new epoch has not been opened yet."""
        return not self._why_closed()

    @property
    def restored_epoch(self) -> str:
        """The epoch of a store that was restored or replaced; empty: this is the first epoch."""
        return "" if self._epoch.is_first else self._epoch.current

    @property
    def frozen(self) -> control_pb2.Freeze | None:
        """Who froze, and why; None: nobody did."""
        return self._freezes.get(ALL)

    def why_nothing_begins(self) -> str:
        """Why no effect may begin at this process now; empty: it may."""
        return self._switches.why_not(new=True)

    def staleness_s(self) -> float | None:
        """For how long at most memory may have missed changes; None: it was never proven fresh."""
        return self._fence.staleness_s()

    @property
    def repairs(self) -> int:
        """How many records in memory differed from the store and were mended, since this process started."""
        return self._following.proof.mended

    def compared_ago_s(self) -> float:
        """How long ago the last comparison of all records with the store ended; infinity: not yet."""
        at = self._following.proof.compared_at
        return float("inf") if at is None else self.clock.now() - at

    def why_not_loaded(self) -> str:
        """Why reads cannot be served; empty: they can."""
        return "" if self.loaded.is_set() else self._memory.why_incomplete() or STILL_LOADING

    def check_loaded(self) -> None:
        """Raises NotLoaded until reads can be served."""
        if why := self.why_not_loaded():
            raise NotLoaded(why, 0.5)

    async def proven(self) -> None:
        """Return when memory has everything that was acknowledged before this call. Raises StoreUnavailable."""
        await self._fence.wait_for_fence()
        self.check_loaded()

    # --- changing ---------------------------------------------------------------------------------------------------

    def change(self) -> Change:
        """A change by the acting process. Raises NotActing, NotLoaded."""
        self.check_loaded()
        return Change(self._changes, lambda: self._epoch.current, self._acting)

    def creation(self) -> Change:
        """A change at any process that only creates records: contents named by their hash. Raises NotLoaded."""
        self.check_loaded()
        return Change(self._changes, lambda: self._epoch.current, None)

    async def intend(self, change: Change, timeout_s: float = 5.0, *, new: bool = True) -> EffectIntent:
        """Store a change, after which effects may begin for half a term; call `check` of the result before each.

        Args:
            new: False for the next step of work in progress, which a freeze lets finish.

        Raises:
            MayNotBegin: frozen, stopped, not opened, not acting; nothing was stored.
        """
        if why := self._switches.why_not(new=new):
            raise MayNotBegin(why)
        change.compare(FREEZE, ALL)  # the freeze must not change meanwhile
        change.compare(OPENING, ALL)
        valid_s, sent_at, ended = self.config.term_s / 2, self.clock.now(), self._runs_ended
        version = await change.commit(min(timeout_s, valid_s))
        return EffectIntent(self._switches, self.clock, sent_at, valid_s, version, lambda: self._runs_ended != ended)

    async def freeze(self, by: str, reason: str) -> None:
        """Begin nothing new, at any process, until `unfreeze`. Works at any process, also without a leader."""
        await self._switch(FREEZE, control_pb2.Freeze(by=by, reason=reason, since_unix_ms=self.clock.wall_ms()))
        log.warning("frozen by %r: %s", by, reason)

    async def unfreeze(self, by: str, reason: str) -> None:
        await self._switch(FREEZE, None)
        log.warning("no longer frozen, by %r: %s", by, reason)

    async def open(self, by: str, reason: str) -> None:
        """Confirm that the contents of this epoch were reviewed, so that processes act on them."""
        opening = control_pb2.Opening(
            epoch=self._epoch.current, by=by, reason=reason, since_unix_ms=self.clock.wall_ms()
        )
        await self._switch(OPENING, opening)
        log.warning("epoch %s opened by %r: %s", opening.epoch, by, reason)

    async def _switch(self, kind: Kind[M], message: M | None) -> None:
        self.check_loaded()
        await self._changes.switch(kind, ALL, message)

    # --- running ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow, act and reconcile for ever. A part that dies ends it with its error."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._following.run(), name="following")
            tasks.create_task(self._act_each_time(), name="acting")

    async def _act_each_time(self) -> None:
        await self.loaded.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._acting.run(), name="acting word")
            for reconciler, while_closed in self._reconcilers:
                tasks.create_task(self._serve(reconciler, while_closed=while_closed), name=reconciler.name)

    async def _serve(self, reconciler: Reconciler, *, while_closed: bool) -> None:
        """Serve a reconciler whenever this process acts, and the epoch is open."""
        while True:
            if not self._acting.holds() or not (while_closed or self.is_open) or not self.loaded.is_set():
                await self._moment()
                continue
            serving = asyncio.create_task(reconciler.serve(), name=f"{reconciler.name} serving")
            try:
                while self._acting.holds() and (while_closed or self.is_open) and self.loaded.is_set():
                    await self._moment()
                    if serving.done():
                        serving.result()
            finally:
                self._runs_ended += 1
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    async def _moment(self) -> None:
        """Wait until leadership may have changed, at most a tenth of a term."""
        try:
            async with asyncio.timeout(self.config.term_s / 10):
                await self._acting.changed.wait()
        except TimeoutError:
            pass

    async def leave(self) -> None:
        """Call before the end, while `run` still runs: another process can act at once, not after a term."""
        await self._acting.leave()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _trigger_all(self) -> None:
        for reconciler, _ in self._reconcilers:
            reconciler.trigger_all()

    def _why_frozen(self) -> str:
        freeze = self._freezes.get(ALL)
        return f"frozen by {freeze.by}: {freeze.reason}" if freeze else ""

    def _why_closed(self) -> str:
        opening = self._openings.get(ALL)
        if self._epoch.is_first or (opening is not None and opening.epoch == self._epoch.current):
            return ""
        command = self.config.open_command
        opens = f"runs `{command}`" if command else "opens the epoch"
        return (
            f"the store was restored or replaced (epoch {self._epoch.current}): nothing begins until an operator has "
            f"checked it and {opens}"
        )

    def _may_handle(self, epoch: str) -> bool:
        return epoch == self._epoch.current or self.is_open

    def _why_waiting(self) -> str:
        if not self.acting_process:
            return "no process is the leader"
        return self._why_closed() or f"the leader is {self.acting_process}"


class _FailureRecords:
    """The failures of one reconciler, as records."""

    def __init__(self, controller: Controller, kind: Kind[control_pb2.Failure]) -> None:
        self._controller, self._kind = controller, kind
        self._records = controller.records(kind)

    async def show(self, key: str, error: str) -> None:
        change = self._controller.change()
        failure = change.get(self._kind, key) or control_pb2.Failure()
        if failure.error != error[:2_000]:
            failure.error, failure.since_unix_ms = error[:2_000], self._controller.clock.wall_ms()
            change.put(self._kind, key, failure)
            await change.commit()

    async def clear(self, key: str) -> None:
        if key in self._records:
            change = self._controller.change()
            change.compare(self._kind, key)
            change.delete(self._kind, key)
            await change.commit()
