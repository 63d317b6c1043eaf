"""Whether reports can come in here at all: through the agents' listener, and into the store and back. Pure.

While they cannot, the silence of agents is this replica's own. But whoever can shut the door must not keep anybody's
silence from being judged: it counts for one timeout in all, had back only after as long with the door open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_PROBE_HOLDS_S: Final = 10.0


class Door:
    """The door of one replica.

    Attributes:
        is_shut: reports cannot come in, and that excuses silence.
        is_spent: they cannot, for longer than it may excuse: silence is judged again, at a bounded rate.
        probed_at: when a probe came in through the agents' listener last, on the injected clock; None: nobody probes.
        why: in words, while it is shut or spent.
    """

    def __init__(self, timeout_s: float, beats_fail: Callable[[], str]) -> None:
        """`beats_fail`: why the last batch of heartbeats was not stored; empty: it was."""
        self._beats_fail = beats_fail
        self._timeout_s = timeout_s
        self._holds_s = min(_PROBE_HOLDS_S, timeout_s * 0.7)
        self._used_s = 0.0
        self._looked_at: float | None = None
        self._open_since: float | None = None
        self.probed_at: float | None = None
        self.is_shut = self.is_spent = False
        self.why = ""

    def look(self, now: float, *, is_counted: bool = True) -> None:
        """To be called at every sweep. Not counted: the time since the last look is excused for another reason."""
        unprobed = self.probed_at is not None and now - self.probed_at > self._holds_s
        self.why = self._beats_fail() or (
            "no probe reached this replica through the agents' listener" if unprobed else ""
        )
        if not self.why:
            self._open_since = now if self._open_since is None else self._open_since
            if now - self._open_since >= self._timeout_s:
                self._used_s = 0.0
        else:
            self._open_since = None
            self._used_s += now - self._looked_at if is_counted and self._looked_at is not None else 0.0
        self._looked_at = now
        self.is_spent = bool(self.why) and self._used_s >= self._timeout_s
        self.is_shut = bool(self.why) and not self.is_spent
