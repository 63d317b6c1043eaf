"""How a supervisor goes about its work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manner:
    """What its flags say.

    Attributes:
        starts: False: prepare and remove, but leave alone what runs, and start nothing (`--once`).
        stops_when_fenced: another reporter has the instance: stop its processes, for they run elsewhere.
    """

    starts: bool = True
    stops_when_fenced: bool = True
