"""A service's snapshots (Nanny): what is wanted of each, how far it is, and the orders that change it."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from console.backends.asking import Trouble, good, missing, status_of, troubles
from console.backends.controllers import NannyClient, request_id
from console.backends.servers import Servers
from console.pages.orders import authorship, result_redirect
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views import snapshots as views
from console.views.listing import listing
from console.views.rollouts import rollout_picture
from console.views.urls import url
from hqpb.v1 import service_pb2 as hpb
from nannypb.v1 import service_pb2 as pb

_MISSING: Final = missing("Nanny", "--nanny")
_MOST_SHOWN: Final = 200_000  # bytes of a description
_ORDERS: Final = {
    "pause": ("PauseActions", pb.PauseActionsRequest, "Actions are paused: events are handled, nothing begins."),
    "resume": ("ResumeActions", pb.ResumeActionsRequest, "Actions go on."),
    "promote": ("PromoteRollout", pb.PromoteRolloutRequest, "The roll-out goes on with its next step."),
    "abort": ("AbortRollout", pb.AbortRolloutRequest, "The roll-out is being ended: it counts as failed."),
    "delete": ("DeleteService", pb.DeleteServiceRequest, "The service is deleted, with its snapshots and history."),
    "stop": ("StopService", pb.StopServiceRequest, "The service is being switched off."),
}


class SnapshotPages:
    """`/services/{service}/snapshots` and what is below."""

    def __init__(self, servers: Servers) -> None:
        self._nanny, self._registry = servers.nanny, servers.registry

    def routes(self) -> list[Route]:
        """Routes of the snapshot pages."""
        here = "/services/{service}/snapshots"
        return [
            Route("GET", here, self.all),
            Route("GET", here + "/{snapshot}", self.one),
            Route("POST", "/services/{service}/target", self.target),
            Route("POST", here + "/{snapshot}/target", self.instance_target),
            Route("POST", "/services/{service}/actions/{order}", self.order),
            Route("POST", "/services/{service}/attributes/head", self.head),
        ]

    async def all(self, visit: Visit, service: str) -> TemplatePage:
        """The list, the state of the whole service, and its history."""
        if self._nanny is None:
            return TemplatePage("missing.html", service, {"service": service, "troubles": [_MISSING]})
        asked, known, history, rolled, may, (_, revisions) = await asyncio.gather(
            self._nanny.service(service),
            self._nanny.snapshots(service),
            self._nanny.history(service),
            self._nanny.rollout(service),
            self._nanny.may(service),
            self._registry.counts_by_location(
                hpb.COUNT_GROUP_REVISION, hpb.InstanceFilter(service_id=[service], readiness=hpb.READINESS_FILTER_READY)
            ),
        )
        found = good(asked, pb.GetServiceResponse()).service
        entries = good(history, pb.ListHistoryResponse()).entry
        back = views.way_back(found, entries)
        made = good(known, pb.ListSnapshotsResponse()).snapshot
        run, sizes = good(rolled, pb.GetRolloutResponse()).rollout, {one.id: one.instances for one in made}
        rows, older = views.snapshot_rows(found, made, back, entries)
        active = views.active_of(found)
        shown = {
            "service": service,
            "found": found if found.id else None,
            "level": views.service_state(found),
            "rows": rows,
            "older": older,
            "history": None if isinstance(history, Trouble) else entries[:30],
            "told": views.step_text,
            "active": views.snapshot_label(active, made) if active else "",
            "back": views.snapshot_label(back, made) if back else "",
            "runs": views.what_runs(revisions, made),
            "is_alone": len(rows) + len(older) == 1,
            "may_change": may[0],
            "may_pause": may[1],
            "targets": views.TARGETS,
            "squares": views.squares,
            "picture": rollout_picture(run, found, sizes.get(run.snapshot_id, 0)),
            "short": views.short,
            "makes_head": found.info.set_snapshot_as_current_upon_activation,
            "is_offline": found.state == pb.SERVICE_STATE_OFFLINE,
            "troubles": troubles(asked, known, history, rolled),
        }
        return TemplatePage("snapshots.html", f"Snapshots of {service}", shown, status_of(found.id, asked))

    async def one(self, visit: Visit, service: str, snapshot: str) -> TemplatePage:
        """Show a snapshot's instances with current and target state, and what activating it would change."""
        if self._nanny is None:
            return TemplatePage("missing.html", service, {"service": service, "troubles": [_MISSING]})
        asked, listed, own, history, may = await asyncio.gather(
            self._nanny.service(service),
            self._nanny.instances(service, snapshot),
            self._nanny.snapshot(service, snapshot),
            self._nanny.history(service),
            self._nanny.may(service),
        )
        found = good(asked, pb.GetServiceResponse()).service
        made = good(own, pb.GetSnapshotResponse()).snapshot
        answer = good(listed, pb.ListInstancesResponse())
        state = next((one for one in found.snapshot if one.snapshot_id == made.id), None)
        shown = {
            "service": service,
            "snapshot": made.id or snapshot,
            "made": made,
            "failed": views.failure_of(made.id, state, good(history, pb.ListHistoryResponse()).entry),
            "content": made.content[:_MOST_SHOWN].decode("utf-8", "replace"),
            "is_cut": len(made.content) > _MOST_SHOWN,
            "state": state,
            "current_of": views.current_of,
            "target_of": views.target_of,
            "instances": listing(
                answer.instance, views.INSTANCE_COLUMNS, ["services", service, "snapshots", snapshot], visit.query
            ),
            "away": sorted(answer.missing.items()),
            "changes": await self._changes(self._nanny, service, found, made),
            "may_change": may[0],
            "targets": views.TARGETS[:3],
            "targets_of_some": [(value, name) for value, name, _ in views.TARGETS[:3]],
            "short": views.short,
            "troubles": troubles(asked, listed, own, history),
        }
        return TemplatePage("snapshot.html", f"{views.short(snapshot)} of {service}", shown, status_of(made.id, own))

    async def _changes(
        self, nanny: NannyClient, service: str, found: pb.Service, made: pb.Snapshot
    ) -> list[tuple[str, str]] | None:
        """The difference to the active snapshot; None: none is active, or it is this one."""
        active = next((one.snapshot_id for one in found.snapshot if one.target == pb.TARGET_ACTIVE), "")
        if not active or active == made.id or not made.id:
            return None
        other = await nanny.snapshot(service, active)
        return None if isinstance(other, Trouble) else await asyncio.to_thread(views.difference, other.snapshot, made)

    async def target(self, visit: Visit, service: str) -> Redirect:
        """Set the target of a snapshot."""
        request = pb.SetTargetRequest(
            service_id=service,
            snapshot_id=visit.form.get("snapshot", ""),
            target=_target(visit, pb.TARGET_DESTROYED),
            fill_pods_configuration=visit.form.get("fill") == "on",
            by=authorship(visit),
            request_id=request_id(visit.form.get("request_id", "")),
        )
        if not request.snapshot_id:
            raise BadPageRequest(400, "snapshot: is missing")
        word = views.target_of(request.target)
        return await self._order(
            url("services", service, "snapshots"),
            "SetTarget",
            request,
            f"Ordered: {views.short(request.snapshot_id)} becomes {word}. It is handled in order.",
        )

    async def instance_target(self, visit: Visit, service: str, snapshot: str) -> Redirect:
        """Set the target of one instance alone."""
        request = pb.SetInstanceTargetRequest(
            service_id=service,
            snapshot_id=snapshot,
            location=visit.form.get("location", ""),
            instance_id=visit.form.get("instance", ""),
            target=_target(visit, pb.TARGET_CREATED),
            by=authorship(visit),
            request_id=request_id(visit.form.get("request_id", "")),
        )
        if not request.instance_id:
            raise BadPageRequest(400, "instance: is missing")
        word = views.target_of(request.target)
        said = f"Ordered for {request.instance_id} alone: {word}. The next roll-out overrides it."
        return await self._order(url("services", service, "snapshots", snapshot), "SetInstanceTarget", request, said)

    async def order(self, visit: Visit, service: str, order: str) -> Redirect:
        """Pause, resume, stop or delete the service; promote or abort the roll-out and the step that the form names."""
        if order not in _ORDERS:
            raise BadPageRequest(404, f"order: choose one of {', '.join(_ORDERS)}")
        name, kind, said = _ORDERS[order]
        request = kind(
            service_id=service, by=authorship(visit), request_id=request_id(visit.form.get("request_id", ""))
        )
        if isinstance(request, (pb.PromoteRolloutRequest, pb.AbortRolloutRequest)):
            request.order_id, request.step_number = visit.form.get("order_id", ""), _step_number(visit)
        here = url("services", service, "snapshots")
        answer = await self._order(here, name, request, said)
        return Redirect("/services", done=answer.done) if order == "delete" and answer.done else answer

    async def head(self, visit: Visit, service: str) -> Redirect:
        """Set whether activating a snapshot makes it HEAD."""
        version = visit.form.get("info_version", "")
        if visit.form.get("set") not in ("on", "off") or not re.fullmatch(r"\d{1,18}", version):
            raise BadPageRequest(400, "set: choose on or off, and send the info_version that the page has")
        is_on = visit.form["set"] == "on"
        request = pb.UpdateServiceRequest(
            service_id=service,
            info=pb.InfoAttributes(set_snapshot_as_current_upon_activation=is_on),
            by=authorship(visit),
            request_id=request_id(visit.form.get("request_id", "")),
            info_version=int(version),
        )
        request.update_mask.paths.append("set_snapshot_as_current_upon_activation")
        said = f"Activating a snapshot {'makes it HEAD' if is_on else 'does not make it HEAD'} from now on."
        return await self._order(url("services", service, "snapshots"), "UpdateService", request, said)

    async def _order(self, to: str, name: str, request: object, said: str) -> Redirect:
        if self._nanny is None:
            return result_redirect(to, _MISSING, said)
        failed = await self._nanny.order(name, request)
        return result_redirect(to, failed, said)


def _step_number(visit: Visit) -> int:
    """Raises BadPageRequest."""
    if not re.fullmatch(r"\d{1,4}", given := visit.form.get("step", "")):
        raise BadPageRequest(400, "step: send the number of the step that the page has")
    return int(given)


def _target(visit: Visit, lowest: pb.Target) -> pb.Target:
    """Raises BadPageRequest."""
    names = pb.Target.keys()[lowest:]
    asked = f"TARGET_{visit.form.get('target', '')}"
    if asked not in names:
        allowed = ", ".join(name.removeprefix("TARGET_") for name in names)
        raise BadPageRequest(400, f"target: choose one of {allowed}")
    return pb.Target.Value(asked)  # type: ignore[return-value,unused-ignore]
