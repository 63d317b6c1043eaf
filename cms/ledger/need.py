"""The order of need: what goes first where not everything can be granted."""

from __future__ import annotations

from enum import IntEnum


class Need(IntEnum):
    """The most needed first."""

    REPAIR = 0
    URGENT = 1
    ROLLOUT = 2
    PLANNED = 3
