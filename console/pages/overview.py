"""The first page: what is wrong, the worst first; then the totals. And the search."""

from __future__ import annotations

import asyncio
from typing import Final

from console.backends.asking import good, troubles
from console.backends.servers import Servers
from console.pages.controllers import Controllers
from console.site.visits import Page, Redirect, Route, Visit
from console.views import problems as views
from console.views.instances import moves_of, row
from console.views.locations import location_problems, locations
from console.views.urls import url
from hqpb.v1 import service_pb2 as pb

_MOST: Final = 40
_EXPLAINED: Final = 8  # services whose instances are asked for their reasons
_SAMPLE: Final = 25


class Overview:
    """`/` and `/find`."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._controllers = servers, Controllers(servers)

    def routes(self) -> list[Route]:
        """Its addresses."""
        return [Route("GET", "/", self.first), Route("GET", "/find", self.find)]

    async def first(self, visit: Visit) -> Page:
        """Problems first."""
        registry = self._servers.registry
        (counted, guards, planned, moved), (floors, others) = await asyncio.gather(
            asyncio.gather(
                registry.counts(pb.COUNT_GROUP_SERVICE),
                registry.guards(),
                registry.suspensions(),
                registry.transitions(),
            ),
            self._controllers.problems(visit.now_s),
        )
        counts = good(counted, pb.CountInstancesResponse())
        below = views.lacking(counts.groups, floors)
        reasons = await self._reasons([one.key for one in below if one.key][:_EXPLAINED])
        found = views.sorted_problems(
            [
                *views.trouble_problems(troubles(counted, *(answer for _, answer in guards))),
                *location_problems(counts.sources),
                *views.guard_problems(guards, visit.now_s),
                *views.service_problems(below, floors, reasons),
                *views.expiry_problem([move for _, move in moves_of(moved)], visit.now_s),
                *views.planned_problems(planned, visit.now_s),
                *others,
            ]
        )
        shown = {
            "problems": found[:_MOST],
            "more": max(0, len(found) - _MOST),
            "acute": sum(one.level == "bad" for one in found),
            "totals": {
                "instances": sum(one.total for one in counts.groups),
                "ready": sum(one.ready for one in counts.groups),
                "unknown": sum(one.unknown for one in counts.groups),
                "services": len(counts.groups),
                "full": sum(one.ready == one.total for one in counts.groups),
            },
            "locations": locations(counted),
        }
        return Page("overview.html", "Problems", shown)

    async def _reasons(self, services: list[str]) -> dict[str, str]:
        """What instances of these say that are not ready."""
        pages = await asyncio.gather(*(self._servers.registry.lacking(one, _SAMPLE) for one in services))
        found = [good(page, pb.FindInstancesResponse()).instances for page in pages]
        return {
            service: views.common_reasons(map(row, instances))
            for service, instances in zip(services, found, strict=True)
        }

    async def find(self, visit: Visit) -> Page | Redirect:
        """What a name could mean: straight there if it is one thing."""
        name = visit.query.get("q", "")
        if not name:
            return Redirect("/")
        registry = self._servers.registry
        by_id, by_service, by_node = await asyncio.gather(
            registry.page(pb.InstanceFilter(instance_id=[name]), 20),
            registry.counts(pb.COUNT_GROUP_SERVICE, pb.InstanceFilter(service_id=[name])),
            registry.counts(pb.COUNT_GROUP_NODE, pb.InstanceFilter(node_name=[name])),
        )
        hits = [
            (url("instances", one.meta.cluster, one.meta.id), f"instance {one.meta.id}", f"in {one.meta.cluster}")
            for one in good(by_id, pb.FindInstancesResponse()).instances
        ]
        if any(one.total for one in good(by_service, pb.CountInstancesResponse()).groups):
            hits.append((url("services", name), f"service {name}", ""))
        if any(one.total for one in good(by_node, pb.CountInstancesResponse()).groups):
            hits.append((url("nodes", name), f"node {name}", ""))
        if len(hits) == 1:
            return Redirect(hits[0][0])
        shown = {"name": name, "hits": hits, "troubles": troubles(by_id, by_service, by_node)}
        return Page("find.html", f"Find {name}", shown)
