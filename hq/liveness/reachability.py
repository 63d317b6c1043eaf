"""Whether reports can reach this replica, and when they could not. Pure, except for the functions it is given.

Reports get in while the store takes them, the agents' listener lets them in, and the cache is proven fresh at short
intervals. Whether the store or the way to it was gone, the process paused or the machine suspended: afterwards two
proofs are far apart. So a gap is noticed even if it falls between two looks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

_PROBE_HOLDS_S: Final = 10.0


class SelfProbe:
    """Whether agents' reports can come in to one replica.

    Attributes:
        is_shut: reports cannot come in, and that excuses silence.
        is_spent: they could not for longer than may excuse silence, which is judged again, at a bounded rate.
        probed_at: when a probe last came in through the agents' listener, on the injected clock; None: nobody probes.
        used_s: for how long it has excused silence, which it may for one timeout.
        why: as a message, while it is shut or spent.
    """

    def __init__(self, timeout_s: float, heartbeats_fail: Callable[[], str]) -> None:
        """`heartbeats_fail`: why the last batch of heartbeats was not stored; empty: it was."""
        self._heartbeats_fail = heartbeats_fail
        self._timeout_s = timeout_s
        self._holds_s = min(_PROBE_HOLDS_S, timeout_s * 0.7)
        self.used_s = 0.0
        self._looked_at: float | None = None
        self._open_since: float | None = None
        self.probed_at: float | None = None
        self.is_shut = self.is_spent = False
        self.why = ""

    def look(self, now: float, *, is_counted: bool = True) -> None:
        """Call at every sweep. `is_counted` False: the time since the last look is excused for another reason."""
        unprobed = self.probed_at is not None and now - self.probed_at > self._holds_s
        self.why = self._heartbeats_fail() or (
            "no probe reached this replica through the agents' listener" if unprobed else ""
        )
        if not self.why:
            self._open_since = now if self._open_since is None else self._open_since
            if now - self._open_since >= self._timeout_s:
                self.used_s = 0.0
        else:
            self._open_since = None
            self.used_s += now - self._looked_at if is_counted and self._looked_at is not None else 0.0
        self._looked_at = now
        self.is_spent = bool(self.why) and self.used_s >= self._timeout_s
        self.is_shut = bool(self.why) and not self.is_spent


log = logging.getLogger(__name__)


class SilenceClock(Protocol):
    """The clock that measures silence."""

    def away(self, since: float) -> None:
        """Stop silence from growing, since HQ cannot hear, until `gap` says that it can again."""

    def gap(self, began: float, now: float, because: str) -> None:
        """Postpone deadlines: HQ was away from `began` until now, and everything since was replayed."""


class Reachability:
    """Looks at every sweep, and tells the deadlines of each gap.

    Attributes:
        door: whether what agents report can come in.
        gaps: how many there were; for metrics.
    """

    def __init__(
        self,
        deadlines: SilenceClock,
        door: SelfProbe,
        proven_at: Callable[[], float | None],
        is_deaf: Callable[[], bool],
        *,
        fresh_s: float,
    ) -> None:
        """`proven_at` is when the cache was last proven fresh, on the injected clock; None: not since it was loaded.

        A proof holds for `fresh_s`. `is_deaf` tells whether reports cannot be stored although the cache is fresh.
        """
        self._deadlines, self.door = deadlines, door
        self._proven_at, self._is_deaf = proven_at, is_deaf
        self._fresh_s = fresh_s
        self._last_proof: float | None = None
        self._away_since: float | None = None
        self.gaps = 0

    @property
    def is_present(self) -> bool:
        """Whether reports could come in at the last look."""
        return self._last_proof is not None and self._away_since is None

    def look(self, now: float) -> bool:
        """Whether silence can be judged now."""
        before, self._last_proof = self._last_proof, self._proven_at()
        is_fresh = self._last_proof is not None and now - self._last_proof <= self._fresh_s
        # A pause or a store that is away excuses silence by itself, and uses up nothing of what the door may excuse.
        self.door.look(now, is_counted=is_fresh)
        if self._last_proof is None:
            self._away_since = None  # the full timeout of a new start covers everything before
            return False
        if self._away_since is None and before is not None and self._last_proof - before > self._fresh_s:
            self._away_since = before
        if not is_fresh or self._is_deaf() or self.door.is_shut:
            self._go_away(self._last_proof)
            return False
        if self._away_since is not None:
            self._come_back(self._away_since, now)
        return True

    def _go_away(self, since: float) -> None:
        if self._away_since is None:
            self._away_since = since
            if self.door.is_shut:
                log.warning("%s: nothing expires until this is over, for one timeout at most", self.door.why)
            else:
                log.warning("this replica has lost touch with its store: nothing expires until it is back")
        self._deadlines.away(self._away_since)

    def _come_back(self, began: float, now: float) -> None:
        self.gaps += 1
        self._away_since = None
        self._deadlines.gap(began, now, f"HQ could not receive reports for {now - began:.0f} s")
        log.warning("no reports could be received for %.1f s: deadlines are extended by as much", now - began)
