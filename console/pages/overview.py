"""The first page: what is wrong, the worst first; then the totals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, troubles
from console.backends.registry import MOST_MOVES
from console.backends.servers import Servers
from console.site.visits import Route, TemplatePage, Visit
from console.views import problems as views
from console.views import readiness
from console.views.disruptions import cms_problems, held_of, totals
from console.views.disruptions import floors as floors_of
from console.views.instances import LastOutput, are_cut, is_crashing, last_output, moves_of, row
from console.views.locations import answers_except_silent, location_problems, locations, silent
from console.views.repairs import dead_problem, fuses_out, walle_problems
from console.views.repairs import incidents as incidents_of
from console.views.rollouts import failed_services, nanny_problems
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import service_pb2 as wpb

_MOST: Final = 10  # causes at once; the others are folded
_MOST_LISTED: Final = 200
_EXPLAINED: Final = 8  # services whose instances are asked for their reasons
_SAMPLE: Final = 25
_MOST_NAMED: Final = 200  # services in one filter


class Overview:
    """`/`."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._controllers = servers, ControllerProblems(servers)

    def routes(self) -> list[Route]:
        """Its address."""
        return [Route("GET", "/", self.first)]

    async def first(self, visit: Visit) -> TemplatePage:
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
        below = readiness.lacking(counts.groups, floors, held_of(budgets))
        (reasons, outputs, places), scattered = await asyncio.gather(
            self._reasons([one for one in below if one.key][:_EXPLAINED], visit.now_s),
            self._scattered_problems([one for one in counts.groups if one not in below], visit.now_s),
        )
        asked = troubles(
            counted, *(one for answers in (guards, planned, moved) for one in answers_except_silent(answers, known))
        )
        found = views.sorted_problems(
            views.fold_causes(
                [
                    *views.trouble_problems(asked),
                    *others,
                    *scattered,
                    *location_problems(counts.sources, visit.now_s),
                    *views.guard_problems(guards, visit.now_s),
                    *readiness.service_problems(
                        below, floors, reasons, totals(budgets), silent(counted), outputs, places
                    ),
                    *views.expiry_problem(
                        [move for _, move in moves_of(moved)], visit.now_s, is_cut=are_cut(moved, MOST_MOVES)
                    ),
                    *views.planned_problems(planned, visit.now_s),
                ]
            )
        )
        shown = {
            "problems": found[:_MOST],
            "others": found[_MOST:_MOST_LISTED],
            "more": max(0, len(found) - _MOST_LISTED),
            "acute": sum(one.level == "bad" for one in found),
            "totals": None if isinstance(counted, Trouble) else readiness.totals(counts.groups),
            "is_denied": isinstance(counted, Trouble) and counted.kind == "denied",
            "locations": known,
        }
        return TemplatePage("overview.html", "Problems", shown)

    async def _reasons(
        self, below: Sequence[pb.InstanceCount], now_s: float
    ) -> tuple[dict[str, str], dict[str, LastOutput | None], dict[str, frozenset[str]]]:
        """By service: why instances are not ready (counted over all, in the words of some), the output of one, nodes.

        The nodes are given only for services of which every instance that is not ready was looked at.
        """
        asked = (self._servers.registry.unready([one.key], _SAMPLE) for one in below)
        found, outputs, places = {}, {}, {}
        for one, (by_reason, page) in zip(below, await asyncio.gather(*asked), strict=True):
            instances = good(page, pb.FindInstancesResponse()).instances
            rows = [row(instance, now_s) for instance in instances]
            outputs[one.key] = next(filter(None, map(last_output, instances)), None)
            counts = good(by_reason, pb.CountInstancesResponse()).groups
            wanted = [each for each in rows if each.wanted]
            if len(wanted) >= readiness.wanted_of(one) - one.ready and all(each.node for each in wanted):
                places[one.key] = frozenset(each.node for each in wanted)
            found[one.key] = readiness.common_reasons(rows, counts, readiness.wanted_of(one) - one.ready)
        return found, outputs, places

    async def _scattered_problems(self, groups: Sequence[pb.InstanceCount], now_s: float) -> list[views.Problem]:
        """Return the problems of single instances in services that are well otherwise."""
        few = [one for one in groups if one.ready < readiness.wanted_of(one)]
        names = [one.key for one in few if one.key]
        if not names:
            return []
        by_reason, page = await self._servers.registry.unready(names[:_MOST_NAMED], _SAMPLE)
        instances = good(page, pb.FindInstancesResponse()).instances
        counts = good(by_reason, pb.CountInstancesResponse()).groups if len(names) <= _MOST_NAMED else []
        away = sum(readiness.wanted_of(one) - one.ready for one in few)
        reasons = readiness.common_reasons([row(one, now_s) for one in instances], counts, away)
        return readiness.scattered_problem(
            few,
            reasons,
            next(filter(None, map(last_output, instances)), None),
            is_crashing=any(map(is_crashing, instances)),
        )


class ControllerProblems:
    """What is wrong at the controllers; all are asked at once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def problems(self, now_s: float) -> tuple[cpb.ListBudgetsResponse, list[views.Problem]]:
        """The CMS's budgets, and all problems."""
        rolled, (budgets, held), repairs = await asyncio.gather(
            self.roll_outs(), self.disruptions(now_s), self.repairs(now_s)
        )
        return budgets, [*repairs, *rolled, *held]

    async def roll_outs(self) -> list[views.Problem]:
        """Return what is wrong with roll-outs; nothing if there is no Nanny."""
        nanny = self._servers.nanny
        if nanny is None:
            return []
        listed, control = await asyncio.gather(nanny.services(), nanny.control())
        found = views.trouble_problems(troubles(listed, control))
        known = good(listed, npb.ListServicesResponse()).service
        failed = failed_services(known)[:_EXPLAINED]
        answers = await asyncio.gather(*map(nanny.rollout, failed))
        found += views.trouble_problems(troubles(*answers))
        ran = {one: good(answer, npb.GetRolloutResponse()).rollout for one, answer in zip(failed, answers, strict=True)}
        return [*found, *nanny_problems(known, None if isinstance(control, Trouble) else control.control, ran)]

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
        """Return what is wrong with repairs; nothing if there is no Wall-E."""
        walle = self._servers.walle
        if walle is None:
            return []
        projects, incidents, scenarios, settings, hosts = asked = await asyncio.gather(
            walle.projects(),
            walle.incidents(),
            walle.scenarios(only_open=True),
            walle.settings(),
            walle.hosts(troubled=True),
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
