"""The ledger's clock: it goes on from the last value that any process stored, and never follows a wall clock."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.timestamp_pb2 import Timestamp

from control import Controller
from serving.clock import Clock
from walle.fuses.fuse import Moment
from walle.work.book import LEDGER_TIME
from wallepb.v1.project_pb2 import LedgerTime

STORED_EVERY_S = 30.0
_ONE = "time"


class LedgerClock:
    """Milliseconds that only processes of this installation move on.

    While none runs it stands still: windows get longer then, never shorter.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller, self._clock = controller, controller.clock
        self._stored: Mapping[str, LedgerTime] = controller.records(LEDGER_TIME)
        self._base_ms, self._base_s = 0, self._clock.now()
        controller.reconcile("ledgertime", self._store, lambda: [_ONE])

    def now(self) -> Moment:
        ms = self._base_ms + int((self._clock.now() - self._base_s) * 1000)
        stored = self._stored.get(_ONE)
        if stored is not None and stored.at_ms > ms:
            self._base_ms, self._base_s, ms = stored.at_ms, self._clock.now(), stored.at_ms
        return Moment(ms, wall(self._clock))

    async def _store(self, key: str) -> float:
        change = self._controller.change()
        change.get(LEDGER_TIME, key)
        change.put(LEDGER_TIME, key, LedgerTime(at_ms=self.now().ms))
        await change.commit()
        return STORED_EVERY_S


def wall(clock: Clock) -> Timestamp:
    stamp = Timestamp()
    stamp.FromMilliseconds(clock.wall_ms())
    return stamp
