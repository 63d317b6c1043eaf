"""How long ago a report really came: what was learned late counts from when it may have come. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

_KEPT: Final = 50
_EVER: Final = float("-inf")


class _Late(NamedTuple):
    """What was learned from `began` to `ended`, or only at `ended`, may have come as early as `came`."""

    began: float
    ended: float
    came: float


class Unheard:
    """Times at which this replica learned of reports late, or took something for a report that was none."""

    def __init__(self) -> None:
        self._late: list[_Late] = []

    def restart(self, now: float) -> None:
        """Nothing that was learned until now says when a report came."""
        self._late = [_Late(_EVER, now, _EVER)]

    def assume(self, now: float) -> None:
        """What was learned at this moment was no report."""
        self._add(_Late(now, now, _EVER))

    def gap(self, began: float, ended: float) -> None:
        """What was learned in between may have come as early as its beginning."""
        self._add(_Late(began, ended, began))

    def unheard_s(self, heard: float, now: float) -> float | None:
        """For how long nothing came, at most; None: that is not known."""
        since = min((late.came for late in self._late if late.began <= heard <= late.ended), default=heard)
        return None if since == _EVER else now - min(since, heard)

    def _add(self, late: _Late) -> None:
        if len(self._late) >= _KEPT:  # the oldest become one, of which nothing is known
            self._late[:2] = [_Late(_EVER, self._late[1].ended, _EVER)]
        self._late.append(late)
