"""An order for many rows of a list: first what it would do to each, then the order to one after the other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from console.backends.asking import Trouble, good, missing, troubles
from console.backends.controllers import NannyClient, request_id
from console.backends.registry import RegistryClient
from console.backends.servers import Servers
from console.pages import orders
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views.effects import Effect, instance_effects, node_effects, service_effects
from console.views.locations import answers_except_silent, locations
from console.views.snapshots import TARGETS, failure_of, short
from console.views.urls import url
from console.views.words import plural
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb

_MOST: Final = 100  # rows: as many as a list has on a page
_NAMED: Final = 3  # of those that were not done
_OWN: Final = ("order", "service", "snapshot")  # what the address of a plan says beside the rows
Give = Callable[[Effect], Awaitable[Trouble | None]]


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """What would be done, and how.

    Attributes:
        title: the order as a sentence; `noun`: what its rows are.
        back: address and name of the list; `asks`: the fields of the form beside those of the plan's own address.
        note: what holds for all of them.
        give: carries it out for one row.
    """

    title: str
    noun: str
    back: tuple[str, str]
    asks: Sequence[str]
    note: str
    effects: Sequence[Effect]
    troubles: Sequence[Trouble]
    give: Give
    links: Sequence[tuple[str, str]] = field(default_factory=tuple)

    @property
    def of(self) -> list[Effect]:
        """The rows that the order is for."""
        return [one for one in self.effects if not one.otherwise]

    @property
    def mark(self) -> str:
        """A mark of what was shown: nobody agreed to other effects of the order. Counts may change."""
        shown = [(one.key, one.place, one.then) for one in self.of]
        return hashlib.blake2b(repr((self.title, self.asks, shown)).encode(), digest_size=12).hexdigest()


class ManyPages:
    """`/many/{kind}`: the plan, and the order."""

    def __init__(self, servers: Servers) -> None:
        self._registry, self._nanny, self._has_cms = servers.registry, servers.nanny, servers.cms is not None
        self._plans: Mapping[str, Callable[[Visit, Mapping[str, str]], Awaitable[OrderPlan]]] = {
            "nodes": self._of_nodes,
            "services": self._of_services,
            "instances": self._of_instances,
        }

    def routes(self) -> list[Route]:
        """Its addresses."""
        return [Route("GET", "/many/{kind}", self.plan), Route("POST", "/many/{kind}", self.give)]

    async def plan(self, visit: Visit, kind: str) -> TemplatePage:
        """What the order would do to each row that was marked."""
        made = await self._plan(visit, kind, visit.query)
        own = {name: visit.query[name] for name in _OWN if name in visit.query}
        shown = {"plan": made, "action": url("many", kind), "own": own, "troubles": made.troubles}
        return TemplatePage("many.html", made.title, shown)

    async def give(self, visit: Visit, kind: str) -> Redirect:
        """Give the order to one row after the other; rows for which it failed are shown as a plan again."""
        made = await self._plan(visit, kind, visit.form)
        own = {name: visit.form.get(name, "") for name in _OWN}
        if visit.form.get("shown", made.mark) != made.mark:
            failed = "Nothing was done: meanwhile this has changed. What is below is how it stands now."
            return Redirect(_address(kind, own, visit.chosen), failed=failed)
        if not made.of:
            why = made.troubles[0].text if made.troubles else "choose rows that the order changes"
            return Redirect(made.back[0], failed=f"Nothing was done: {why}.")
        left, said, is_away = list[Effect](), list[str](), False
        for one in made.of:
            trouble = None if is_away else await made.give(one)
            if is_away or trouble is not None:
                left.append(one)
            if trouble is not None:
                said.append(f"{one.name}: {trouble.text}")
                is_away = trouble.kind == "away"  # the others would wait as long
        done = len(made.of) - len(left)
        if not left:
            return Redirect(made.back[0], done=f"{made.title}: done for {plural(done, made.noun)}.")
        told = f"Done for {done} of {plural(len(made.of), made.noun)}; not for" if done else "Nothing was done:"
        others = f"; and {plural(len(left) - _NAMED, 'more')}" if len(said) > _NAMED else ""
        if is_away and len(left) > len(said):
            others = f"; {plural(len(left) - len(said), 'other was', 'others were')} not tried"
        to = _address(kind, own, [one.key for one in left])
        return Redirect(to, failed=f"{told} {'; '.join(said[:_NAMED])}{others}.")

    async def _plan(self, visit: Visit, kind: str, given: Mapping[str, str]) -> OrderPlan:
        """Raises BadPageRequest."""
        if kind not in self._plans:
            raise BadPageRequest(404, f"there are no orders for many {kind}")
        if len(visit.chosen) > _MOST:
            raise BadPageRequest(400, f"chosen: {len(visit.chosen)} rows; one order is for at most {_MOST}")
        return await self._plans[kind](visit, given)

    async def _of_nodes(self, visit: Visit, given: Mapping[str, str]) -> OrderPlan:
        order, registry = _choice(given, ("suspend", "resume")), self._registry
        is_begun = order == "suspend"
        counts, planned, asked = await _nodes_by_location(registry, visit.chosen)
        hours = orders.hours(visit) if is_begun and visit.form else 0
        reason, by = orders.reason(visit) if is_begun and visit.form else "", orders.author(visit)

        async def give(one: Effect) -> Trouble | None:
            return await registry.order(
                one.place,
                lambda hq: (
                    hq.admin.suspend_node(one.name, duration_s=hours * 3_600.0, by=by, reason=reason)
                    if is_begun
                    else hq.admin.resume_node(one.name)
                ),
            )

        names = " ".join(visit.chosen)
        return OrderPlan(
            "Begin planned work" if is_begun else "End planned work",
            "node",
            ("/nodes", "Nodes"),
            ("hours", "reason") if is_begun else (),
            "Until the time is over, HQ expires nothing on these nodes for being silent. It takes nothing down."
            if is_begun
            else "Agents on these nodes that are silent by then expire after the usual time.",
            node_effects(visit.chosen, counts, planned, is_begun=is_begun, is_known=not asked),
            asked,
            give,
            [(url("plan", hosts=names), "Which of them may be taken down together")] if self._has_cms and names else [],
        )

    async def _of_services(self, visit: Visit, given: Mapping[str, str]) -> OrderPlan:
        is_paused = _choice(given, ("pause", "resume")) == "pause"
        nanny, form_id, by = self._asked_nanny(), request_id(visit.form.get("request_id", "")), orders.authorship(visit)
        listed = await nanny.services()
        name, kind = (
            ("PauseActions", npb.PauseActionsRequest) if is_paused else ("ResumeActions", npb.ResumeActionsRequest)
        )

        async def give(one: Effect) -> Trouble | None:
            return await nanny.order(name, kind(service_id=one.name, by=by, request_id=_id_of(form_id, one)))

        return OrderPlan(
            "Pause actions" if is_paused else "Resume actions",
            "service",
            ("/services", "Services"),
            ("comment!", "ticket") if is_paused else ("comment", "ticket"),
            "Orders are still taken and handled; no action begins, and one under way touches no further instance."
            if is_paused
            else "Work that was ordered in the meantime begins.",
            service_effects(visit.chosen, None if isinstance(listed, Trouble) else listed.service, is_paused=is_paused),
            troubles(listed),
            give,
        )

    async def _of_instances(self, visit: Visit, given: Mapping[str, str]) -> OrderPlan:
        word = _choice(given, [name for name, _, _ in TARGETS[:3]])
        target: npb.Target = npb.Target.Value(f"TARGET_{word}")  # type: ignore[assignment,unused-ignore]
        service, snapshot = given.get("service", ""), given.get("snapshot", "")
        nanny, form_id, by = self._asked_nanny(), request_id(visit.form.get("request_id", "")), orders.authorship(visit)
        listed, asked = await asyncio.gather(nanny.instances(service, snapshot), nanny.service(service))
        found = good(asked, npb.GetServiceResponse()).service
        state = next((one for one in found.snapshot if one.snapshot_id == snapshot), None)
        rows = good(listed, npb.ListInstancesResponse()).instance
        failure = failure_of(snapshot, state, ()) if target == npb.TARGET_ACTIVE else None
        failed = f"The last roll-out of this snapshot failed: {failure.why}. " if failure is not None else ""
        marked = set(visit.chosen)
        serving = sum(one.serving and f"{one.location}/{one.id}" in marked for one in rows)

        async def give(one: Effect) -> Trouble | None:
            request = npb.SetInstanceTargetRequest(
                service_id=service,
                snapshot_id=snapshot,
                location=one.place,
                instance_id=one.name,
                target=target,
                by=by,
                request_id=_id_of(form_id, one),
            )
            return await nanny.order("SetInstanceTarget", request)

        return OrderPlan(
            f"{short(snapshot)} of {service}: {word} for some instances",
            "instance",
            (url("services", service, "snapshots", snapshot), f"Snapshot {short(snapshot)} of {service}"),
            ("comment", "ticket", *(("again",) if failure is not None else ())),
            f"{plural(serving, 'of them serves', 'of them serve')} now. {failed}"
            "The snapshot's own state does not change, and the next roll-out or roll-back overrides this.",
            instance_effects(visit.chosen, None if isinstance(listed, Trouble) else rows, target, state),
            troubles(listed, asked),
            give,
        )

    def _asked_nanny(self) -> NannyClient:
        """Raises BadPageRequest: there is none."""
        if self._nanny is None:
            raise BadPageRequest(404, missing("Nanny", "--nanny").text)
        return self._nanny


async def _nodes_by_location(
    registry: RegistryClient, chosen: Sequence[str]
) -> tuple[Mapping[str, Sequence[pb.InstanceCount]], dict[tuple[str, str], admin_pb2.Suspension], list[Trouble]]:
    """Counts by location, planned work by location and node, and who did not answer."""
    if not chosen:
        return {}, {}, []
    (counted, counts), suspended = await asyncio.gather(
        registry.counts_by_location(pb.COUNT_GROUP_NODE, pb.InstanceFilter(node_name=chosen)), registry.suspensions()
    )
    known, only = locations(counted), next(iter(counts)) if len(counts) == len(suspended) == 1 else ""
    planned: dict[tuple[str, str], admin_pb2.Suspension] = {}
    for name, answer in suspended:
        for one in () if isinstance(answer, Trouble) else answer.suspensions:
            planned[only or name, one.node_name] = one
    silent = [Trouble(one.name, "away", one.text) for one in known if one.state == "silent"]
    return counts, planned, troubles(counted, *silent, *answers_except_silent(suspended, known))


def _address(kind: str, own: Mapping[str, str], chosen: Sequence[str]) -> str:
    """The address of a plan."""
    return url("many", kind, **own) + "".join(f"&chosen={quote(key, safe='')}" for key in dict.fromkeys(chosen))


def _choice(given: Mapping[str, str], known: Sequence[str]) -> str:
    """Raises BadPageRequest."""
    if (order := given.get("order", "")) not in known:
        raise BadPageRequest(400, f"order: choose one of {', '.join(known)}")
    return order


def _id_of(form_id: str, one: Effect) -> str:
    """The request id of one row's order, the same if the form is sent twice."""
    return f"{form_id[:60]}-{hashlib.blake2b(one.key.encode(), digest_size=8).hexdigest()}"
