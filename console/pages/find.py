"""The search: straight to the one thing of a name, else everything that has the name as a part."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, hidden_troubles, troubles
from console.backends.servers import Servers
from console.site.visits import Redirect, Route, TemplatePage, Visit
from console.views.urls import url
from console.views.words import plural, short
from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import service_pb2 as wpb

T = TypeVar("T")
_SHOWN: Final = 20  # of one kind
_SERVICES_LOOKED_INTO: Final = 3
_LOOKED_AT: Final = 500  # instances of one service
_HASH_PART: Final = 4  # characters of a snapshot's id that are enough to search for it


class Hit(NamedTuple):
    """Where it is, what it is, and more about it."""

    href: str
    what: str
    where: str


class FindPages:
    """`/find`."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def routes(self) -> list[Route]:
        """Its address."""
        return [Route("GET", "/find", self.find)]

    async def find(self, visit: Visit) -> TemplatePage | Redirect:
        """Show what a name could mean; redirect if it is one thing."""
        if not (name := visit.query.get("q", "")):
            return Redirect("/")
        (hits, untold), (planned, kept) = await asyncio.gather(self._search_registry(name), self._search_walle(name))
        is_node = any(hit.what.startswith("node ") for hit in hits)  # its page leads to the host
        hits += [hit for hit in planned if not (is_node and hit.what == f"host {name}")]
        untold += kept
        if len(hits) != 1:
            parts, more = await self._search_parts(name)
            hits += [hit for hit in parts if hit.href not in {known.href for known in hits}]
            untold += more
        if len(hits) == 1:
            return Redirect(hits[0].href)
        shown = {"name": name, "hits": hits, "troubles": troubles(*untold)}
        return TemplatePage("find.html", f"Find {name}", shown)

    async def _search_registry(self, name: str) -> tuple[list[Hit], list[Trouble]]:
        """Find what has exactly this name in HQ. A role for some services is enough for those."""
        registry = self._servers.registry
        by_id, by_service, by_node = asked = await asyncio.gather(
            registry.page(pb.InstanceFilter(instance_id=[name]), _SHOWN),
            registry.counts(pb.COUNT_GROUP_SERVICE, pb.InstanceFilter(service_id=[name])),
            registry.counts(pb.COUNT_GROUP_NODE, pb.InstanceFilter(node_name=[name])),
        )
        hits = [_instance_hit(one.meta.cluster, one.meta.id) for one in _instances(by_id)]
        if any(one.total for one in good(by_service, pb.CountInstancesResponse()).groups):
            hits.append(Hit(url("services", name), f"service {name}", ""))
        if any(one.total for one in good(by_node, pb.CountInstancesResponse()).groups):
            hits.append(Hit(url("nodes", name), f"node {name}", ""))
        return hits, troubles(*asked)

    async def _search_parts(self, name: str) -> tuple[list[Hit], list[Trouble]]:
        """Everything with this part in its name, ignoring case."""
        registry, part = self._servers.registry, name.lower()
        (services, nodes), tasks, rolled = await asyncio.gather(
            asyncio.gather(registry.counts(pb.COUNT_GROUP_SERVICE), registry.counts(pb.COUNT_GROUP_NODE)),
            self._servers.cms.tasks() if self._servers.cms else _none(cpb.ListTasksResponse()),
            self._servers.nanny.services() if self._servers.nanny else _none(npb.ListServicesResponse()),
        )
        names = _keys(services)
        instances = await self._instances_of(sorted((one for one in names if one.lower() in part), key=len)[::-1], part)
        hits = [
            *_first_hits("service", [(url("services", one), one) for one in names if part in one.lower()]),
            *_first_hits("node", [(url("nodes", one), one) for one in _keys(nodes) if part in one.lower()]),
            *_first_hits("instance", instances),
            *_first_hits(
                "task",
                [
                    (url("disruptions", one.task.id), one.task.id)
                    for one in good(tasks, cpb.ListTasksResponse()).state
                    if part in one.task.id.lower()
                ],
            ),
            *_first_hits("snapshot", _snapshots(good(rolled, npb.ListServicesResponse()).service, part)),
        ]
        return hits, [*troubles(services, nodes), *hidden_troubles(tasks, rolled)]

    async def _instances_of(self, services: list[str], part: str) -> list[tuple[str, str]]:
        """Instances are found by the name of their service and what follows: `shop-1` finds shop-1 and shop-12."""
        pages = await asyncio.gather(
            *(
                self._servers.registry.page(pb.InstanceFilter(service_id=[one]), _LOOKED_AT)
                for one in services[:_SERVICES_LOOKED_INTO]
            )
        )
        return [
            (url("instances", one.meta.cluster, one.meta.id), one.meta.id)
            for page in pages
            for one in _instances(page)
            if part in one.meta.id.lower() and part != one.meta.service_id.lower()
        ]

    async def _search_walle(self, name: str) -> tuple[list[Hit], list[Trouble]]:
        """Wall-E's objects of this name: hosts, projects, work on a switch, switches and racks; and its troubles."""
        if (walle := self._servers.walle) is None:
            return [], []
        host, projects, scenarios, switch, rack = await asyncio.gather(
            walle.host(name), walle.projects(), walle.scenarios(), walle.hosts(switch=name), walle.hosts(rack=name)
        )
        hits = [] if isinstance(host, Trouble) else [Hit(url("hosts", host.host.name), f"host {name}", "in Wall-E")]
        known = good(projects, wpb.ListProjectsResponse()).projects
        hits += [Hit(url("projects", name), f"project {name}", "") for one in known if one.project.id == name]
        hits += [
            Hit(url("scenarios", one.id), f"planned work {one.id}", f"on switch {one.switch}" if one.switch else "")
            for one in good(scenarios, wpb.ListScenariosResponse()).scenarios
            if name in (one.id, one.switch, one.ticket)
        ]
        hits += [Hit(url("hosts", switch=name), f"hosts behind switch {name}", "")] if _some(switch) else []
        hits += [Hit(url("hosts", rack=name), f"hosts in rack {name}", "")] if _some(rack) else []
        return hits, hidden_troubles(host, projects, scenarios, switch, rack)


async def _none(empty: T) -> T:
    return empty


def _instances(page: pb.FindInstancesResponse | Trouble) -> Iterable[ipb.Instance]:
    return good(page, pb.FindInstancesResponse()).instances


def _keys(counted: pb.CountInstancesResponse | Trouble) -> list[str]:
    return sorted(one.key for one in good(counted, pb.CountInstancesResponse()).groups if one.key)


def _instance_hit(cluster: str, id_: str) -> Hit:
    return Hit(url("instances", cluster, id_), f"instance {id_}", f"in {cluster}")


def _snapshots(services: Iterable[npb.Service], part: str) -> list[tuple[str, str]]:
    """Snapshots whose ids begin with the text."""
    if len(part) < _HASH_PART:
        return []
    return [
        (url("services", one.id, "snapshots", state.snapshot_id), f"{short(state.snapshot_id)} of {one.id}")
        for one in services
        for state in one.snapshot
        if state.snapshot_id.lower().startswith(part)
    ]


def _first_hits(kind: str, found: list[tuple[str, str]]) -> list[Hit]:
    """The first of a kind; the last of them says how many more there are."""
    hits = [Hit(href, f"{kind} {name}", "") for href, name in found[:_SHOWN]]
    if (more := len(found) - _SHOWN) > 0:
        hits[-1] = hits[-1]._replace(where=f"and {plural(more, f'more {kind}')}: write more of the name")
    return hits


def _some(found: object) -> bool:
    return isinstance(found, wpb.ListHostsResponse) and bool(found.hosts)
