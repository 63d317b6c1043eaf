"""Everything that happened, newest first, filtered by the address."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from console.backends.asking import troubles
from console.backends.servers import Servers
from console.site.visits import Route, TemplatePage, Visit
from console.views.instances import are_cut, moves_of
from console.views.listing import Column, listing
from console.views.words import seconds

_READ: Final = 1_000
_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {  # of a location's name and its transition
        "time": Column(lambda pair: seconds(pair[1].time), most_first=True),
        "what": Column(lambda pair: pair[1].ready),
        "instance": Column(lambda pair: pair[1].instance_id),
        "location": Column(lambda pair: pair[0]),
        "node": Column(lambda pair: pair[1].node_name),
    }
)


class EventPages:
    """`/events`."""

    def __init__(self, servers: Servers) -> None:
        self._registry = servers.registry

    def routes(self) -> list[Route]:
        """Its address."""
        return [Route("GET", "/events", self.all)]

    async def all(self, visit: Visit) -> TemplatePage:
        """Expiries and recoveries of all locations."""
        found = await self._registry.transitions(most=_READ)
        kind, text = visit.query.get("kind", ""), visit.query.get("q", "").lower()
        moves = [
            (name, move)
            for name, move in moves_of(found)
            if (not kind or move.ready == (kind == "recovered"))
            and (not text or text in f"{move.instance_id} {move.node_name} {move.revision_id}".lower())
        ]
        shown = {
            "moves": listing(moves, _COLUMNS, ["events"], visit.query, ["q", "kind"]),
            "is_cut": are_cut(found, _READ),
            "kind": kind if kind in ("expired", "recovered") else "",
            "q": visit.query.get("q", ""),
            "troubles": troubles(*(answer for _, answer in found)),
        }
        return TemplatePage("events.html", "Events", shown)
