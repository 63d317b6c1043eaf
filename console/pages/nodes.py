"""Nodes, one node with its instances and planned work, and the guard of each location."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from console.backends.asking import Trouble, good, status_of, troubles
from console.backends.servers import Servers
from console.pages import orders
from console.pages.hosts import host_of
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views.instances import COLUMNS, row
from console.views.listing import listing
from console.views.locations import answers_except_silent, locations, silent
from console.views.readiness import COLUMNS as COUNTED
from console.views.readiness import wanted_of, worst_first
from console.views.urls import url
from console.views.words import plural
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

_ROWS: Final = 200


class NodePages:
    """`/nodes`, `/nodes/{node}` and the orders of planned work and of the guard."""

    def __init__(self, servers: Servers) -> None:
        self._registry, self._walle = servers.registry, servers.walle

    def routes(self) -> list[Route]:
        """Routes of the node pages."""
        return [
            Route("GET", "/nodes", self.all),
            Route("GET", "/nodes/{node}", self.one),
            Route("POST", "/nodes/{node}/suspend", self.suspend),
            Route("POST", "/nodes/{node}/resume", self.resume),
            Route("POST", "/guard/{cluster}/{way}", self.guard),
        ]

    async def all(self, visit: Visit) -> TemplatePage:
        """List nodes, those that lack ready instances first or by another column, and the guards."""
        counted, planned, guards = await asyncio.gather(
            self._registry.counts(pb.COUNT_GROUP_NODE), self._registry.suspensions(), self._registry.guards()
        )
        wanted = visit.query.get("q", "").lower()
        groups = [one for one in good(counted, pb.CountInstancesResponse()).groups if wanted in one.key.lower()]
        groups.sort(key=worst_first)
        shown = {
            "nodes": listing(groups, COUNTED, ["nodes"], visit.query, ["q"]),
            "wanted_of": wanted_of,
            "q": wanted,
            "planned": _suspensions_by_node(planned),
            "guards": [(name, None if isinstance(g, Trouble) else g.guard, g) for name, g in guards],
            "may_operate": await self._registry.may_operate(),
            "locations": locations(counted),
            "troubles": troubles(counted, *answers_except_silent(planned, locations(counted))),
        }
        return TemplatePage("nodes.html", "Nodes", shown)

    async def one(self, visit: Visit, node: str) -> TemplatePage:
        """Show a node's instances, those that are not ready first."""
        counted, found, planned, host = await asyncio.gather(
            self._registry.counts(pb.COUNT_GROUP_UNSPECIFIED, pb.InstanceFilter(node_name=[node])),
            self._registry.page(pb.InstanceFilter(node_name=[node]), _ROWS),
            self._registry.suspensions(),
            host_of(self._walle, node),
        )
        rows = [row(one, visit.now_s) for one in good(found, pb.FindInstancesResponse()).instances]
        rows.sort(key=lambda one: (one.state in ("good", "note"), one.id))
        groups = good(counted, pb.CountInstancesResponse()).groups
        shown = {
            "node": node,
            "all": groups[0] if groups else pb.InstanceCount(),
            "wanted": wanted_of(groups[0]) if groups else 0,
            "instances": listing(rows, COLUMNS, ["nodes", node], visit.query),
            "is_cut": len(rows) == _ROWS,
            "clusters": sorted({one.cluster for one in rows}),
            "planned": _suspensions_by_node(planned).get(node),
            "may_operate": await self._registry.may_operate(node),
            "locations": locations(counted),
            "host": None if isinstance(host, Trouble) else host,
            "troubles": troubles(counted, found, host, *answers_except_silent(planned, locations(counted))),
        }
        is_there = rows or shown["host"] or silent(counted)
        return TemplatePage("node.html", node, shown, status_of(is_there, found))

    async def suspend(self, visit: Visit, node: str) -> Redirect:
        """Begin planned work: nothing on this node expires for some hours."""
        hours, reason, by = orders.hours(visit), orders.reason(visit), orders.author(visit)
        failed = await self._registry.order(
            visit.form.get("cluster", ""),
            lambda hq: hq.admin.suspend_node(node, duration_s=hours * 3_600.0, by=by, reason=reason),
        )
        return orders.result_redirect(
            url("nodes", node), failed, f"Nothing on {node} expires for {plural(hours, 'hour')}."
        )

    async def resume(self, visit: Visit, node: str) -> Redirect:
        """End planned work early."""
        failed = await self._registry.order(visit.form.get("cluster", ""), lambda hq: hq.admin.resume_node(node))
        return orders.result_redirect(url("nodes", node), failed, f"Planned work on {node} has ended.")

    async def guard(self, visit: Visit, cluster: str, way: str) -> Redirect:
        """Release the guard, or force it, for an hour."""
        if way not in ("release", "force"):
            raise BadPageRequest(404, "order: choose release or force")
        reason, by = orders.reason(visit), orders.author(visit)
        failed = await self._registry.order(
            cluster,
            lambda hq: (hq.admin.release_guard if way == "release" else hq.admin.force_guard)(
                by=by, reason=reason, duration_s=3_600.0
            ),
        )
        return orders.result_redirect("/nodes#guard", failed, f"The guard of {cluster} is {way}d for an hour.")


def _suspensions_by_node(
    found: Iterable[tuple[str, admin_pb2.ListSuspensionsResponse | Trouble]],
) -> dict[str, tuple[str, admin_pb2.Suspension]]:
    """Planned work by node, with its location."""
    return {
        one.node_name: (name, one)
        for name, answer in found
        if not isinstance(answer, Trouble)
        for one in answer.suspensions
    }
