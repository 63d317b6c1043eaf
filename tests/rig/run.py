"""One run: start everything, strike the faults of a seed, heal, and hand the history to the checker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqclient.reads import STRONG
from hqpb.v1 import service_pb2 as pb
from store.embedded import EtcdBinary
from tests.checker.history import Cut, Final
from tests.checker.marks import item_of
from tests.checker.story import Limits
from tests.rig.faults import Faults
from tests.rig.installation import Installation
from tests.rig.load import Amounts, Load
from tests.rig.nemesis import Nemesis
from tests.rig.places import Places
from tests.rig.recording import Log, now_ns
from tests.rig.schedule import Kind, Order, schedule
from tests.rig.trust import PLAIN, Trust
from tests.rig.truth_faults import TruthFaults
from tests.rig.witness_process import WitnessProcess
from tests.support import etcd_backup
from tests.support.faulty_proxy import Proxy

RESTORED = Kind("etcd restored from a snapshot", 0.1, 1.0, 4.0, alone=True, at_least_once=True)
_EVERYTHING = pb.FindInstancesRequest(read=STRONG)
LIVENESS_TIMEOUT_S, REPORT_INTERVAL_S = 30, 3
RELY_ON = Limits(
    liveness_timeout_s=LIVENESS_TIMEOUT_S,
    transit_s=6.0,  # the rig holds ways and slows them; on a machine with other work everything is late
    ghost_s=75.0 + 60.0,  # keys are counted once a minute, and compared; a replica may be paused for another one
    gone_s=LIVENESS_TIMEOUT_S + 15.0,  # sweeps are spread, and the machine may have other work
    # Silence outlives restarts: each forgives an interval and a retry.
    forgiven_s=REPORT_INTERVAL_S + 3.0,
)
_HEAL_S = 90.0
_PROGRESS_S = 10.0


class Inconclusive(Exception):
    """The rig could not do its work, so nothing is known about HQ; says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is made from. `flags` are for every replica, `places` for those who do not live on the loopback."""

    binary: EtcdBinary
    directory: Path
    seed: int
    duration_s: float
    gap_s: float = 2.0
    amounts: Amounts = field(default_factory=Amounts)
    quota_bytes: int = 40 << 20
    flags: tuple[str, ...] = (
        "--compact-every=20s",
        f"--liveness-timeout={LIVENESS_TIMEOUT_S}s",
        f"--report-interval={REPORT_INTERVAL_S}s",
    )
    at_least_once: bool = True
    places: Places | None = None
    trust: Trust = PLAIN


class Run:
    """Faults, load and witness over one installation.

    Attributes:
        log, nemesis: what was done, for the report.
        cuts, finals: what belongs into the history beside what the witnesses and the log wrote.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._s, self._say = settings, say
        s = settings
        self.hq = Installation(s.directory, s.binary, s.quota_bytes, s.flags, s.places, trust=s.trust)
        self.log = Log(settings.directory / "calls.jsonl.gz")
        self._witnesses: list[WitnessProcess] = []
        self.cuts: list[Cut] = []
        self._faults = Faults(self.hq, lambda: self._witnesses[-1].seen)
        self._faults.kinds[RESTORED] = self._restored
        self._faults.kinds |= TruthFaults(self.hq, self.log, lambda: self._witnesses[-1].seen, s.binary).kinds
        self.nemesis = Nemesis(self._faults, self.log, say)
        self.finals: list[Final] = []

    @property
    def raws(self) -> list[Path]:
        """What the witnesses wrote, one file per life of the store."""
        return [witness.out for witness in self._witnesses]

    def orders(self) -> list[Order]:
        """What will be struck."""
        s = self._s
        kinds = [kind for kind in self._faults.kinds if s.at_least_once or not kind.at_least_once]
        return schedule(s.seed, s.duration_s, s.gap_s, kinds)

    async def run(self) -> None:
        """Do it all; the history is complete afterwards. Raises Inconclusive."""
        try:
            await self.hq.cluster.start()
            await self._witness(0)  # before anybody writes: it has to see everything from the beginning
            await self.hq.start()
            load = Load(self.hq, self.log, self._s.amounts, self._s.seed)
            await load.start()
            try:
                await self._under_load(load)
            finally:
                await load.stop()
            await self._finish()
        finally:
            self.log.close()
            for witness in self._witnesses:
                await witness.kill()
            await self.hq.close()

    async def _under_load(self, load: Load) -> None:
        telling = asyncio.create_task(self._tell())
        striking = asyncio.create_task(self.nemesis.run(self.orders()))
        failing = asyncio.create_task(load.failed())
        try:
            await asyncio.wait((striking, failing, telling), return_when=asyncio.FIRST_COMPLETED)
            for task in (failing, telling, striking):
                if task.done():
                    task.result()
            await self._healed()
            await asyncio.sleep(2.0)  # a little load over a healthy installation
        finally:
            for task in (telling, striking, failing):
                task.cancel()
            await asyncio.gather(telling, striking, failing, return_exceptions=True)

    async def _tell(self) -> None:
        """Print progress. Raises Inconclusive if the witness is gone, NotRecovered if a replica ended by itself."""
        while True:
            for _ in range(round(_PROGRESS_S)):
                await asyncio.sleep(1.0)
                if not self._witnesses[-1].is_running and not self._between:
                    raise Inconclusive("the witness lost sight of etcd's history; see its message above")
                for seat in self.hq.seats:
                    if seat.is_up and seat.replica is not None and not seat.replica.is_running:
                        raise NotRecovered(f"a replica ended by itself:\n{seat.replica.log_text()[-3000:]}")
            struck = sum(self.nemesis.struck.values())
            self._say(f"... {struck} faults, {self.log.operations} operations, revision {self._witnesses[-1].seen}")

    # --- witness and restore ----------------------------------------------------------------------------------------

    _between = False

    async def _witness(self, seen: int) -> None:
        number = len(self._witnesses)
        out = self._s.directory / f"raw-{number}.jsonl.gz"
        witness = WitnessProcess(out, number, self.hq.cluster.endpoints, seen)
        self._witnesses.append(witness)
        await witness.start()

    async def _witness_ended(self) -> None:
        try:
            code = await self._witnesses[-1].end()
        except TimeoutError:
            raise Inconclusive("the witness did not see the end of etcd's history in time") from None
        if code:
            raise Inconclusive(f"the witness ended with {code}")

    @asynccontextmanager
    async def _restored(self, order: Order) -> AsyncIterator[None]:
        """A snapshot, some more load, and the snapshot put back under running replicas with calls under way.

        Each of them has seen more than the snapshot holds. One that had not could not tell the two histories apart, and
        would go on in the old epoch until another one has begun a new one (docs/reliability.md).
        """
        for seat in self.hq.seats:
            if not seat.is_up:
                await seat.start(until_ready=False)
        snapshot = self._s.directory / f"snapshot-{len(self._witnesses)}"
        await self.hq.cluster.save(snapshot)
        revision = await asyncio.to_thread(etcd_backup.revision_of, snapshot)
        await asyncio.sleep(order.lasts_s)
        for seat in self.hq.seats:
            await self._wait_until("a replica is past the snapshot", partial(self._epoch, seat.gateway.endpoint))
        old = {await self._epoch(seat.gateway.endpoint) for seat in self.hq.seats} - {""}
        for gate in self._ways_to_the_store():
            gate.cut()
        # What is on its way has arrived or is lost: now the witness can see the end of this life of the store.
        await asyncio.sleep(1.0)
        self._between = True
        await self._witness_ended()
        self.cuts.append(Cut(revision, now_ns()))
        await self.hq.cluster.restore(snapshot)
        await self._witness(revision)
        self._between = False
        self.log.newest = 0
        for gate in self._ways_to_the_store():
            gate.heal()
        await self._wait_until("every replica is in the new epoch", partial(self._moved_on, old))
        self.log.newest = 0
        yield

    def _ways_to_the_store(self) -> list[Proxy]:
        return [gate for seat in self.hq.seats for gate in seat.store]

    async def _moved_on(self, old: set[str]) -> bool:
        epochs = {await self._epoch(seat.gateway.endpoint) for seat in self.hq.seats}
        return len(epochs) == 1 and not epochs & (old | {""})

    async def _epoch(self, address: str) -> str:
        """The epoch of a fresh answer; empty if there is none."""
        async with Client([address], timeout_s=2.0, credentials=self.hq.trust.credentials) as client:
            try:
                source = (await client.count(read=STRONG)).sources[0]
            except HqApiError:
                return ""
            return "" if source.stale else source.epoch

    # --- the end ----------------------------------------------------------------------------------------------------

    async def _healed(self) -> None:
        """Everything runs and is fresh again, without help."""
        for index, process in enumerate(self.hq.cluster.members):
            if not process.is_running:
                await self.hq.cluster.restart(index, until_it_serves=False)
        for seat in self.hq.seats:
            if not seat.is_up:
                await seat.start(until_ready=False)
            await self._wait_until("a replica is fresh", partial(self._epoch, seat.gateway.endpoint))

    async def _finish(self) -> None:
        for seat in self.hq.seats:
            self.finals.append(await self._final(seat.gateway.endpoint))
        await self._witness_ended()

    async def _final(self, address: str) -> Final:
        """What a replica holds, all of it, fresh."""
        async with Client([address], timeout_s=20.0, credentials=self.hq.trust.credentials) as client:
            answer = await client.call(lambda hq: hq.instances.FindInstances, _EVERYTHING)
        assert not answer.next_page_token
        source = answer.sources[0]
        items = {instance.meta.id: item_of(instance) for instance in answer.instances}
        return Final(source.replica, source.version, source.epoch, items)

    async def _wait_until(self, what: str, holds: Callable[[], object], timeout_s: float = _HEAL_S) -> None:
        """Raises NotRecovered: HQ has to recover by itself."""
        try:
            async with asyncio.timeout(timeout_s):
                while not await holds():  # type: ignore[misc]
                    await asyncio.sleep(0.3)
        except TimeoutError:
            raise NotRecovered(f"not within {timeout_s:.0f} s: {what}") from None


class NotRecovered(Exception):
    """HQ did not survive, or not recover when everything was healed: a violation by itself."""
