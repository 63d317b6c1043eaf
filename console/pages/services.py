"""All services, and one of them with its revisions, locations and instances."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, hidden_troubles, status_of, troubles
from console.backends.servers import Servers
from console.pages.timeline import Past, past_of
from console.site.visits import Route, TemplatePage, Visit
from console.views.disruptions import floors as floors_of
from console.views.disruptions import held_of
from console.views.disruptions import totals as totals_of
from console.views.instances import last_output, moves_of, row
from console.views.listing import listing
from console.views.locations import answers_except_silent, locations
from console.views.locations import silent as silent_in
from console.views.readiness import COLUMNS, common_reasons, floor_of, is_lacking, unseen, wanted_of, worst_first
from console.views.snapshots import squares
from console.views.urls import url
from console.views.words import seconds
from descriptions.fields import ID_RULE, is_id
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb

_ROWS: Final = 50
_MOST_BACK: Final = 40  # pages that the address of a page remembers, to go back to
_CUT: Final = "-"  # in place of those left out
_LATELY_S: Final = 3_600.0
_CHANGES: Final = 12
_READINESS: Final = {
    "": pb.READINESS_FILTER_UNSPECIFIED,
    "ready": pb.READINESS_FILTER_READY,
    "not-ready": pb.READINESS_FILTER_NOT_READY,
}


class ServicePages:
    """`/services`, `/services/{service}` and `/instances`."""

    def __init__(self, servers: Servers) -> None:
        self._registry, self._cms, self._nanny = servers.registry, servers.cms, servers.nanny
        self._recorder = servers.recorder

    def routes(self) -> list[Route]:
        """Routes of the service pages."""
        return [
            Route("GET", "/services", self.all),
            Route("GET", "/services/{service}", self.one),
            Route("GET", "/instances", self.instances),
        ]

    async def all(self, visit: Visit) -> TemplatePage:
        """List services with their ready and wanted instances, those that lack the most first or by another column."""
        counted, budgets, may = await asyncio.gather(
            self._registry.counts(pb.COUNT_GROUP_SERVICE), self._budgets(), self._may_pause()
        )
        known = good(budgets, cpb.ListBudgetsResponse())
        floors, held = floors_of(known), held_of(known)
        counts = good(counted, pb.CountInstancesResponse())
        name = visit.query.get("q", "").strip()
        wanted = name.lower()
        groups = [one for one in counts.groups if wanted in one.key.lower()]
        lacks = {one.key: is_lacking(one, floors.get(one.key), held.get(one.key, 0)) for one in groups}
        groups.sort(key=lambda one: (not lacks[one.key], *worst_first(one)))
        totals, silent = totals_of(known), silent_in(counted)
        shown = {
            "unseen": lambda one: unseen(one, totals, silent),
            "services": listing(groups, COLUMNS, ["services"], visit.query, ["q"]),
            "q": name,
            "is_new": bool(name) and all(one.key != name for one in counts.groups),
            "fault": "" if is_id(name) else ID_RULE,
            "floor_of": lambda one: floor_of(one, floors.get(one.key)),
            "wanted_of": wanted_of,
            "lacks": lacks,
            "has_nanny": self._nanny is not None,
            "may_pause": may,
            "locations": locations(counted),
            "troubles": troubles(counted, *hidden_troubles(budgets)),
        }
        return TemplatePage("services.html", "Services", shown)

    async def one(self, visit: Visit, service: str) -> TemplatePage:
        """Show a service by location and revision, what changed lately, and its instances, those not ready first."""
        where = pb.InstanceFilter(service_id=[service])
        well = pb.InstanceFilter(service_id=[service], readiness=pb.READINESS_FILTER_READY)
        ((counted, parts), revisions, (reasons, bad), fine), (moved, budgets, asked, past) = await asyncio.gather(
            asyncio.gather(
                self._registry.counts_by_location(pb.COUNT_GROUP_UNSPECIFIED, where),
                self._registry.counts(pb.COUNT_GROUP_REVISION, where),
                self._registry.unready([service], _ROWS),
                self._registry.page(well, _ROWS),
            ),
            asyncio.gather(
                self._registry.transitions(),
                self._budgets(service),
                self._roll_out(service),
                self._past(visit, service),
            ),
        )
        floors = floors_of(good(budgets, cpb.ListBudgetsResponse()))
        rolled = good(asked, npb.GetServiceResponse()).service
        known = locations(counted)
        placed = [(name, groups[0]) for name, groups in parts.items() if groups] if len(known) > 1 else []
        changes, unknown_changes = await self._changes(service, moved, visit.now_s), answers_except_silent(moved, known)
        total = good(counted, pb.CountInstancesResponse()).groups
        listed = [*good(bad, pb.FindInstancesResponse()).instances, *good(fine, pb.FindInstancesResponse()).instances]
        rows = [row(one, visit.now_s) for one in listed[:_ROWS]]
        all_of_it = total[0] if total else pb.InstanceCount()
        silent, held = silent_in(counted), held_of(good(budgets, cpb.ListBudgetsResponse())).get(service, 0)
        shown = {
            "silent": ", ".join(silent),
            "unseen": unseen(
                pb.InstanceCount(key=service, total=all_of_it.total),
                totals_of(good(budgets, cpb.ListBudgetsResponse())),
                silent,
            ),
            "service": service,
            "all": all_of_it,
            "wanted": wanted_of(all_of_it),
            "wanted_of": wanted_of,
            "floor": floor_of(all_of_it, floors.get(service)),
            "lacks": is_lacking(all_of_it, floors.get(service), held),
            "is_default_floor": service not in floors,
            "rolled": [one for one in rolled.snapshot if one.HasField("action")],
            "is_nannys": bool(rolled.id or hidden_troubles(asked)),  # unless Nanny says that it is not hers
            "squares": squares,
            "revisions": None if isinstance(revisions, Trouble) else revisions.groups,
            "placed": placed,
            "rows": rows,
            "why": common_reasons(
                [one for one in rows if one.state != "good"],
                good(reasons, pb.CountInstancesResponse()).groups,
                wanted_of(all_of_it) - all_of_it.ready,
            ),
            "changes": changes,
            "output": next(filter(None, map(last_output, good(bad, pb.FindInstancesResponse()).instances)), None),
            "past": past,
            "is_all_heard": not troubles(*unknown_changes),
            "locations": known,
            "troubles": troubles(
                counted, revisions, reasons, bad, fine, *hidden_troubles(budgets, asked, *unknown_changes)
            ),
        }
        return TemplatePage(
            "service.html", service, shown, status_of(all_of_it.total or silent or (past and past.is_known), counted)
        )

    async def _budgets(self, service: str = "") -> cpb.ListBudgetsResponse | Trouble:
        """Budgets of the CMS, for the floors; none without a CMS: the default budget applies then."""
        return await self._cms.budgets(service) if self._cms is not None else cpb.ListBudgetsResponse()

    async def _may_pause(self) -> bool:
        return self._nanny is not None and await self._nanny.may_pause_some()

    async def _roll_out(self, service: str) -> npb.GetServiceResponse | Trouble:
        """The roll-out that Nanny reports; empty: there is no Nanny."""
        return await self._nanny.service(service) if self._nanny is not None else npb.GetServiceResponse()

    async def _past(self, visit: Visit, service: str) -> Past | None:
        """Return the recorder's history of a service, with the orders that Nanny knows."""
        orders: npb.ListHistoryResponse | Trouble = npb.ListHistoryResponse()
        if self._nanny is not None and self._recorder is not None:
            orders = await self._nanny.history(service)
        entries = good(orders, npb.ListHistoryResponse()).entry
        return await past_of(self._recorder, visit, service, ("services", service), orders=entries)

    async def _changes(
        self, service: str, moved: list[tuple[str, admin_pb2.ListTransitionsResponse | Trouble]], now_s: float
    ) -> list[tuple[str, admin_pb2.Transition]]:
        """Expiries and recoveries of the last hour, newest first."""
        moves = [(name, move) for name, move in moves_of(moved) if seconds(move.time) > now_s - _LATELY_S]
        ids = list(dict.fromkeys(move.instance_id for _, move in moves))[:500]
        if not ids:
            return []
        own = await self._registry.page(pb.InstanceFilter(instance_id=ids, service_id=[service]), 500)
        mine = {(one.meta.id) for one in good(own, pb.FindInstancesResponse()).instances}
        return [(name, move) for name, move in moves if move.instance_id in mine][:_CHANGES]

    async def instances(self, visit: Visit) -> TemplatePage:
        """All instances that pass the filters of the address, page by page."""
        query = visit.query
        given = {name: query[name] for name in ("service", "node", "cluster", "revision") if query.get(name)}
        where = pb.InstanceFilter(
            service_id=[given["service"]] if "service" in given else [],
            node_name=[given["node"]] if "node" in given else [],
            cluster=[given["cluster"]] if "cluster" in given else [],
            revision_id=[given["revision"]] if "revision" in given else [],
            readiness=_READINESS.get(query.get("readiness", ""), pb.READINESS_FILTER_UNSPECIFIED),
        )
        here, readiness = query.get("page", ""), query.get("readiness", "")
        found = await self._registry.page(where, _ROWS, here)
        page = good(found, pb.FindInstancesResponse())
        way = [one for one in query.get("back", "").split(",") if one]  # tokens of the pages before, without the first
        ahead = [*way, *([here] if here else [])]
        if len(ahead) > _MOST_BACK:
            ahead = [_CUT, *ahead[-_MOST_BACK:]]

        def at(token: str, back: Sequence[str]) -> str:
            return url("instances", **given, readiness=readiness, page=token, back=",".join(back))

        shown = {
            "rows": [row(one, visit.now_s) for one in page.instances],
            "given": given,
            "readiness": readiness if readiness in _READINESS else "",
            "next": at(page.next_page_token, ahead) if page.next_page_token else "",
            "previous": at(way[-1] if way else "", way[:-1]) if here and way[-1:] != [_CUT] else "",
            "first": at("", ()) if here else "",
            "locations": locations(found),
            "troubles": troubles(found),
        }
        return TemplatePage("instances.html", "Instances", shown)
