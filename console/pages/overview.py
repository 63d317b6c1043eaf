"""The first page: what is wrong, the worst first; then the totals. And the search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, troubles
from console.backends.servers import Servers
from console.site.visits import Page, Redirect, Route, Visit
from console.views import problems as views
from console.views.disruptions import cms_problems, totals
from console.views.disruptions import floors as floors_of
from console.views.instances import moves_of, row
from console.views.locations import Location, location_problems, locations, silent
from console.views.repairs import dead_problem, fuses_out, walle_problems
from console.views.repairs import incidents as incidents_of
from console.views.snapshots import nanny_problems
from console.views.urls import url
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import service_pb2 as wpb

T = TypeVar("T")

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
        (counted, guards, planned, moved), (budgets, others) = await asyncio.gather(
            asyncio.gather(
                registry.counts(pb.COUNT_GROUP_SERVICE),
                registry.guards(),
                registry.suspensions(),
                registry.transitions(),
            ),
            self._controllers.problems(visit.now_s),
        )
        counts = good(counted, pb.CountInstancesResponse())
        known, floors = locations(counted), floors_of(budgets)
        below = views.lacking(counts.groups, floors)
        reasons = await self._reasons([one.key for one in below if one.key][:_EXPLAINED], visit.now_s)
        found = views.sorted_problems(
            [
                *views.trouble_problems(troubles(counted, *_heard(guards, known))),
                *location_problems(counts.sources, visit.now_s),
                *views.guard_problems(guards, visit.now_s),
                *views.service_problems(below, floors, reasons, totals(budgets), silent(counted)),
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
            "locations": known,
        }
        return Page("overview.html", "Problems", shown)

    async def _reasons(self, services: list[str], now_s: float) -> dict[str, str]:
        """The reasons that not-ready instances of these services report."""
        pages = await asyncio.gather(*(self._servers.registry.lacking(one, _SAMPLE) for one in services))
        found = [good(page, pb.FindInstancesResponse()).instances for page in pages]
        return {
            service: views.common_reasons(row(one, now_s) for one in instances)
            for service, instances in zip(services, found, strict=True)
        }

    async def find(self, visit: Visit) -> Page | Redirect:
        """What a name could mean: straight there if it is one thing."""
        name = visit.query.get("q", "")
        if not name:
            return Redirect("/")
        registry = self._servers.registry
        (by_id, by_service, by_node), planned = await asyncio.gather(
            asyncio.gather(
                registry.page(pb.InstanceFilter(instance_id=[name]), 20),
                registry.counts(pb.COUNT_GROUP_SERVICE, pb.InstanceFilter(service_id=[name])),
                registry.counts(pb.COUNT_GROUP_NODE, pb.InstanceFilter(node_name=[name])),
            ),
            self._planned(name),
        )
        hits = [
            (url("instances", one.meta.cluster, one.meta.id), f"instance {one.meta.id}", f"in {one.meta.cluster}")
            for one in good(by_id, pb.FindInstancesResponse()).instances
        ]
        if any(one.total for one in good(by_service, pb.CountInstancesResponse()).groups):
            hits.append((url("services", name), f"service {name}", ""))
        if any(one.total for one in good(by_node, pb.CountInstancesResponse()).groups):
            hits.append((url("nodes", name), f"node {name}", ""))
        is_node = any(what.startswith("node ") for _, what, _ in hits)  # its page leads to the host
        hits += [one for one in planned if not (is_node and one[1] == f"host {name}")]
        if len(hits) == 1:
            return Redirect(hits[0][0])
        shown = {"name": name, "hits": hits, "troubles": troubles(by_id, by_service, by_node)}
        return Page("find.html", f"Find {name}", shown)

    async def _planned(self, name: str) -> list[tuple[str, str, str]]:
        """Wall-E's objects of this name: hosts, projects, work on a switch, switches and racks."""
        walle = self._servers.walle
        if walle is None:
            return []
        host, projects, scenarios, switch, rack = await asyncio.gather(
            walle.host(name), walle.projects(), walle.scenarios(), walle.hosts(switch=name), walle.hosts(rack=name)
        )
        hits = [] if isinstance(host, Trouble) else [(url("hosts", host.host.name), f"host {name}", "in Wall-E")]
        known = good(projects, wpb.ListProjectsResponse()).projects
        hits += [(url("projects", name), f"project {name}", "") for one in known if one.project.id == name]
        hits += [
            (url("scenarios", one.id), f"planned work {one.id}", f"on switch {one.switch}" if one.switch else "")
            for one in good(scenarios, wpb.ListScenariosResponse()).scenarios
            if name in (one.id, one.switch, one.ticket)
        ]
        hits += [(url("hosts", switch=name), f"hosts behind switch {name}", "")] if _some(switch) else []
        hits += [(url("hosts", rack=name), f"hosts in rack {name}", "")] if _some(rack) else []
        return hits


def _heard(guards: Iterable[tuple[str, T]], known: Iterable[Location]) -> list[T]:
    """Without silent locations, which are reported already."""
    silent = {one.name for one in known if one.state == "silent"}
    return [answer for name, answer in guards if name not in silent]


def _some(found: object) -> bool:
    return isinstance(found, wpb.ListHostsResponse) and bool(found.hosts)


class Controllers:
    """Asks them all at once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def problems(self, now_s: float) -> tuple[cpb.ListBudgetsResponse, list[views.Problem]]:
        """The CMS's budgets, and all problems."""
        rolled, (budgets, held), repairs = await asyncio.gather(
            self.roll_outs(), self.disruptions(now_s), self.repairs(now_s)
        )
        return budgets, [*rolled, *held, *repairs]

    async def roll_outs(self) -> list[views.Problem]:
        """Nothing where there is no Nanny."""
        nanny = self._servers.nanny
        if nanny is None:
            return []
        listed, control = await asyncio.gather(nanny.services(), nanny.control())
        found = views.trouble_problems(troubles(listed, control))
        known = good(listed, npb.ListServicesResponse()).service
        return [*found, *nanny_problems(known, None if isinstance(control, Trouble) else control.control)]

    async def disruptions(self, now_s: float) -> tuple[cpb.ListBudgetsResponse, list[views.Problem]]:
        """The budgets, and what is wrong; nothing where there is no CMS."""
        cms = self._servers.cms
        if cms is None:
            return cpb.ListBudgetsResponse(), []
        budgets, tasks, status = await asyncio.gather(cms.budgets(), cms.tasks(), cms.status())
        found = views.trouble_problems(troubles(budgets, tasks, status))
        known = good(tasks, cpb.ListTasksResponse()).state
        found += cms_problems(known, None if isinstance(status, Trouble) else status, now_s)
        return good(budgets, cpb.ListBudgetsResponse()), found

    async def repairs(self, now_s: float) -> list[views.Problem]:
        """Nothing where there is no Wall-E."""
        walle = self._servers.walle
        if walle is None:
            return []
        projects, incidents, scenarios, settings, hosts = asked = await asyncio.gather(
            walle.projects(), walle.incidents(), walle.scenarios(), walle.settings(), walle.hosts(troubled=True)
        )
        known = None if isinstance(settings, Trouble) else settings
        out = fuses_out(good(projects, wpb.ListProjectsResponse()).projects, known.fuse if known else None)
        troubled = good(hosts, wpb.ListHostsResponse()).hosts
        failing = incidents_of(good(incidents, wpb.ListIncidentsResponse()).incidents, troubled)
        planned = good(scenarios, wpb.ListScenariosResponse()).scenarios
        return [
            *views.trouble_problems(troubles(*asked)),
            *dead_problem(troubled),
            *walle_problems(out, failing, planned, known, now_s),
        ]
