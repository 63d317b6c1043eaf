"""What happened to the endpoints of one service."""

from __future__ import annotations

from dataclasses import dataclass

from hqclient.discovery.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class EndpointChanges:
    """One step from one list to the next.

    Attributes:
        service: whose.
        added: were not there before; of the first call for a subscriber: everything that is there.
        removed: are not there any more, as they were last.
        changed: (before, after) of those whose address, revision, labels or uid differ.
        resync: why continuity was lost before this step; empty: it was not.
        collapsed: steps in between may be left out: HQ or the subscriber was too slow for each, or a resync.
    """

    service: str
    added: tuple[Endpoint, ...] = ()
    removed: tuple[Endpoint, ...] = ()
    changed: tuple[tuple[Endpoint, Endpoint], ...] = ()
    resync: str = ""
    collapsed: bool = False

    def __bool__(self) -> bool:
        """Something differs, or may have differed in between."""
        return bool(self.added or self.removed or self.changed or self.resync or self.collapsed)
