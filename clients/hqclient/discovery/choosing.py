"""Which endpoint a caller gets, and how many uses of each are under way. Decisions only, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hqclient.discovery.ejection import Ejections, Identity
from hqclient.discovery.endpoint import Endpoint
from hqclient.discovery.listing import Listing
from hqclient.discovery.picking import Picker, Rank, nearest


class Chooser:
    """Picks from a listing: those that fail passed over, of the rest the nearest, of those by the picker."""

    def __init__(self, listing: Listing, picker: Picker, prefer: Rank | None, ejections: Ejections) -> None:
        self.ejections = ejections
        self._listing, self._picker, self._prefer = listing, picker, prefer
        self._uses: Counter[Identity] = Counter()
        self._seen: tuple[int, frozenset[Identity]] = (-1, frozenset())
        self._candidates: Sequence[Endpoint] = ()

    def pick(self) -> Endpoint | None:
        """One endpoint; None: there is none at all."""
        candidates = self._nearest()
        return self._picker.pick(candidates, self.uses) if candidates else None

    def uses(self, endpoint: Endpoint) -> int:
        """How many uses of it are under way."""
        return self._uses.get(endpoint.identity, 0)

    def began(self, endpoint: Endpoint) -> None:
        """One more use."""
        self._uses[endpoint.identity] += 1

    def ended(self, endpoint: Endpoint) -> None:
        """One use fewer."""
        self._uses[endpoint.identity] -= 1
        if self._uses[endpoint.identity] <= 0:
            del self._uses[endpoint.identity]

    def _nearest(self) -> Sequence[Endpoint]:
        """What to pick from, computed anew only when something changed."""
        endpoints = self._listing.endpoints
        excluded = self.ejections.excluded(endpoints)
        if self._seen != (self._listing.generation, excluded):
            self._seen = self._listing.generation, excluded
            left = [e for e in endpoints if e.identity not in excluded] if excluded else endpoints
            self._candidates = nearest(left, self._prefer) if self._prefer else left
        return self._candidates


class Use:
    """One use of an endpoint, counted until `done`."""

    def __init__(self, chooser: Chooser, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._chooser = chooser
        self._is_done = False
        chooser.began(endpoint)

    def done(self, *, failed: bool | None = None) -> None:
        """It is over. `failed`: the endpoint could not be reached; None: says nothing of the endpoint."""
        if self._is_done:
            return
        self._is_done = True
        self._chooser.ended(self.endpoint)
        if failed:
            self._chooser.ejections.failed(self.endpoint)
        elif failed is False:
            self._chooser.ejections.succeeded(self.endpoint)
