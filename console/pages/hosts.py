"""Hosts (Wall-E): racks as a picture, one host with its checks and its operation in steps, and what people order."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from console.backends.asking import Trouble, good, hidden_troubles, missing, status_of, troubles
from console.backends.controllers import WalleClient
from console.backends.servers import Servers
from console.pages import orders
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views import hosts as views
from console.views.listing import listing
from console.views.repairs import incidents as incidents_of
from console.views.urls import url
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import service_pb2 as pb

MISSING: Final = missing("Wall-E", "--walle")
_MOST_RACKS: Final = 60
_RANKS: Final = {"bad": 0, "warn": 1}
_STATES: Final = {
    "ASSIGNED": "in use: Wall-E repairs it",
    "MAINTENANCE": "in maintenance: Wall-E leaves it alone",
    "PROBATION": "on trial: Wall-E repairs it without counting that against limits",
}


class HostPages:
    """`/hosts` and what is below."""

    def __init__(self, servers: Servers) -> None:
        self._walle = servers.walle

    def routes(self) -> list[Route]:
        """Routes of the host pages."""
        return [
            Route("GET", "/hosts", self.all),
            Route("GET", "/hosts/{host}", self.one),
            Route("POST", "/hosts/{host}/{order}", self.order),
        ]

    async def all(self, visit: Visit) -> TemplatePage:
        """Racks as a picture, those with trouble first; then the hosts with trouble."""
        if self._walle is None:
            return TemplatePage("missing.html", "Hosts", {"troubles": [MISSING]})
        given = {name: visit.query.get(name, "") for name in ("project", "rack", "switch")}
        listed, incidents, settings, planned = await asyncio.gather(
            self._walle.hosts(given["project"], given["rack"], given["switch"]),
            self._walle.incidents(),
            self._walle.settings(),
            self._walle.scenarios(only_open=True),
        )
        scenarios = {one.id: one for one in good(planned, pb.ListScenariosResponse()).scenarios}
        rows = [views.host_row(one, scenarios) for one in good(listed, pb.ListHostsResponse()).hosts]
        troubled = [row for row in rows if row.level not in ("good", "unknown")]
        troubled.sort(key=lambda row: (_RANKS.get(row.level, 2), row.name))
        racks = views.racks(rows)
        is_all = bool(visit.query.get("all")) or not troubled
        listed_rows = sorted(rows, key=lambda row: row.name) if is_all else troubled
        shown = {
            "given": given,
            "racks": racks[:_MOST_RACKS],
            "total_racks": len(racks),
            "total": len(rows),
            "hosts": listing(listed_rows, views.HOST_COLUMNS, ["hosts"], visit.query, (*given, "all")),
            "is_all": is_all,
            "troubled": len(troubled),
            "incidents": incidents_of(
                good(incidents, pb.ListIncidentsResponse()).incidents, good(listed, pb.ListHostsResponse()).hosts
            ),
            "settings": good(settings, pb.GetSettingsResponse()),
            "troubles": troubles(listed, incidents, settings, planned),
        }
        return TemplatePage("hosts.html", "Hosts", shown)

    async def one(self, visit: Visit, host: str) -> TemplatePage:
        """Show a host's checks, its operation in steps, and its history."""
        if self._walle is None:
            return TemplatePage("missing.html", host, {"troubles": [MISSING]})
        found = await self._walle.host(host)
        answer = good(found, pb.GetHostResponse())
        is_there = bool(answer.host.name)
        planned = await self._walle.scenario(answer.host.scenario) if answer.host.scenario else pb.GetScenarioResponse()
        scenario = good(planned, pb.GetScenarioResponse()).scenario
        project = good(await self._walle.project(answer.host.project), pb.GetProjectResponse()) if is_there else None
        shown = {
            "row": views.host_row(answer, {scenario.id: scenario}) if is_there else None,
            "steps": views.STEPS,
            "kind_of": views.kind_of,
            "stage_of": views.stage_of,
            "outcome_of": views.outcome_of,
            "verdict_of": views.verdict_of,
            "kinds": _kind_words(),
            "states": _STATES,
            "may_order": project is not None and await self._walle.may_order(project.project.owners),
            "troubles": troubles(found),
        }
        return TemplatePage("host.html", host, shown, status_of(is_there, found))

    async def order(self, visit: Visit, host: str, order: str) -> Redirect:
        """Set a host's state, take a dead host back, begin an operation, or cancel one."""
        reason = orders.reason(visit)
        known: dict[str, tuple[str, Any, str]] = {
            "state": (
                "SetHostState",
                lambda: pb.SetHostStateRequest(host=host, state=_state(visit), reason=reason),
                f"{host} is {_STATES.get(visit.form.get('state', ''), '')} from now on.",
            ),
            "ready": (
                "SetHostState",
                lambda: pb.SetHostStateRequest(host=host, status=hpb.HOST_STATUS_READY, reason=reason),
                f"{host} is taken back: Wall-E looks after it again, and begins with the first step of its scheme.",
            ),
            "operation": (
                "StartOperation",
                lambda: pb.StartOperationRequest(host=host, kind=_kind(visit), reason=reason),
                f"{visit.form.get('kind', '')} of {host}: approval is asked for.",
            ),
            "cancel": (
                "CancelOperation",
                lambda: pb.CancelOperationRequest(host=host, reason=reason),
                f"The operation on {host} is being cancelled.",
            ),
        }
        if order not in known:
            raise BadPageRequest(404, "order: choose state, ready, operation or cancel")
        name, made, said = known[order]
        request = made()
        failed = MISSING if self._walle is None else await self._walle.order(name, request)
        return orders.result_redirect(url("hosts", host), failed, said)


async def host_of(walle: WalleClient | None, node: str) -> views.HostRow | Trouble | None:
    """The host that a node is; None: Wall-E does not know it, or there is no Wall-E."""
    found = await walle.host(node) if walle is not None and node else None
    if isinstance(found, Trouble):
        return next(iter(hidden_troubles(found)), None)
    return views.host_row(found) if found is not None else None


def _kind_words() -> list[str]:
    names = hpb.OperationKind.keys()[1:-1]
    return [name.removeprefix("OPERATION_KIND_").lower().replace("_", "-") for name in names]


def _kind(visit: Visit) -> hpb.OperationKind:
    """Raises BadPageRequest."""
    word = visit.form.get("kind", "")
    if word not in _kind_words():
        raise BadPageRequest(400, f"kind: choose one of {', '.join(_kind_words())}")
    name = f"OPERATION_KIND_{word.upper().replace('-', '_')}"
    return hpb.OperationKind.Value(name)  # type: ignore[return-value,unused-ignore]


def _state(visit: Visit) -> hpb.HostState:
    """Raises BadPageRequest."""
    if (word := visit.form.get("state", "")) not in _STATES:
        raise BadPageRequest(400, f"state: choose one of {', '.join(_STATES)}")
    return hpb.HostState.Value(f"HOST_STATE_{word}")  # type: ignore[return-value,unused-ignore]
