"""Projects (Wall-E): fuses with their ledger, and what switching on would do; scenarios of planned work."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, hidden_troubles, status_of, troubles
from console.backends.controllers import WalleClient
from console.backends.servers import Servers
from console.pages import orders
from console.pages.hosts import MISSING
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views import hosts as views
from console.views.disruptions import in_the_way
from console.views.listing import listing
from console.views.squares import squares_of
from console.views.urls import url
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb

_CREDITS: Final = re.compile(r"([\w.:-]{1,100})=(\d{1,6})")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # Wall-E's rule
_MAINTENANCE: Final = "-maintenance"
_MARKS: Final = 50
_MOST_HOSTS: Final = 500  # in the table of approvals
_STEERING: Final[Mapping[int, tuple[str, ...]]] = {
    ppb.SCENARIO_STAGE_WORKING: ("pause",),
    ppb.SCENARIO_STAGE_PAUSED: ("continue", "retry"),
}
_STEERED: Final = {
    "pause": "Nothing more begins; what is in work ends.",
    "continue": "The next wave begins; hosts that failed go back to automation.",
    "retry": "The hosts that failed are worked on again, then it goes on.",
}
_AUTOMATIONS: Final = ("healing", "dns")


class ProjectPages:
    """`/projects`, `/scenarios` and what is below."""

    def __init__(self, servers: Servers) -> None:
        self._walle, self._cms = servers.walle, servers.cms

    def routes(self) -> list[Route]:
        """Routes of the project pages."""
        return [
            Route("GET", "/projects", self.all),
            Route("GET", "/projects/{project}", self.one),
            Route("POST", "/projects/{project}/automation", self.switch),
            Route("GET", "/scenarios", self.scenarios),
            Route("GET", "/scenarios/{scenario}", self.scenario),
            Route("POST", "/scenarios", self.add_scenario),
            Route("POST", "/scenarios/{scenario}/end", self.end_scenario),
            Route("POST", "/scenarios/{scenario}/agree", self.agree),
            Route("POST", "/scenarios/{scenario}/steer", self.steer),
        ]

    async def all(self, visit: Visit) -> TemplatePage:
        """Each project with its two fuses."""
        if self._walle is None:
            return TemplatePage("missing.html", "Projects", {"troubles": [MISSING]})
        listed, settings = await asyncio.gather(self._walle.projects(), self._walle.settings())
        shown = {
            "projects": listing(
                good(listed, pb.ListProjectsResponse()).projects, views.PROJECT_COLUMNS, ["projects"], visit.query
            ),
            "settings": good(settings, pb.GetSettingsResponse()),
            "troubles": troubles(listed, settings),
        }
        return TemplatePage("projects.html", "Projects", shown)

    async def one(self, visit: Visit, project: str) -> TemplatePage:
        """Show a project's fuses, what used the limits, and the forecast."""
        if self._walle is None:
            return TemplatePage("missing.html", project, {"troubles": [MISSING]})
        credits_ = _credits(visit.query)
        found, limits, forecast = await asyncio.gather(
            self._walle.project(project), self._walle.limits(project), self._walle.forecast(project, credits_)
        )
        answer = good(found, pb.GetProjectResponse())
        is_there = bool(answer.project.id)
        fuse = answer.fuse
        shown = {
            "project": project,
            "answer": answer if is_there else None,
            "fuses": [("healing", fuse.healing), ("dns", fuse.dns)],
            "repairs": views.limit_words(answer.project.max_repairs_per_host, "3 within 1 d"),
            "incidents": views.incident_words(answer.project.incidents),
            "usage": None if isinstance(limits, Trouble) else limits.usage,
            "marks": list(reversed(fuse.mark))[:_MARKS],
            "forecast": None if isinstance(forecast, Trouble) else forecast,
            "credits": " ".join(f"{name}={count}" for name, count in credits_.items()),
            "may_order": is_there and await self._walle.may_order(answer.project.owners),
            "troubles": troubles(found, limits, forecast),
        }
        return TemplatePage("project.html", project, shown, status_of(is_there, found))

    async def switch(self, visit: Visit, project: str) -> Redirect:
        """Turn healing or DNS on, with credits or without, or off."""
        automation, on = visit.form.get("automation", ""), visit.form.get("on") == "yes"
        if automation not in _AUTOMATIONS:
            raise BadPageRequest(400, "automation: choose healing or dns")
        request = pb.SwitchAutomationRequest(project=project, automation=automation, on=on, reason=orders.reason(visit))
        if credits_ := _credits(visit.form):
            request.credits.update(credits_)
            request.credit_time.CopyFrom(Duration(seconds=3_600 * orders.hours(visit)))
        said = f"{automation} of {project} is switched {'on' if on else 'off'}."
        return await self._order(url("projects", project), "SwitchAutomation", request, said)

    async def scenarios(self, visit: Visit) -> TemplatePage:
        """Planned work, what is under way first."""
        if self._walle is None:
            return TemplatePage("missing.html", "Planned work", {"troubles": [MISSING]})
        found = await self._walle.scenarios()
        may = await self._walle.may_order()
        # Only for the dialog, which live updates do not include.
        known = await self._walle.hosts() if may and visit.jar is not None else pb.ListHostsResponse()
        over = (ppb.SCENARIO_STAGE_FINISHED, ppb.SCENARIO_STAGE_CANCELLED, ppb.SCENARIO_STAGE_REFUSED)
        listed = sorted(good(found, pb.ListScenariosResponse()).scenarios, key=lambda one: one.stage in over)
        shown = {
            "scenarios": listing(listed, views.SCENARIO_COLUMNS, ["scenarios"], visit.query),
            "scenario_state": views.scenario_state,
            "may_order": may,
            "switches": views.switches(good(known, pb.ListHostsResponse()).hosts),
            "switch": visit.query.get("switch", ""),
            "troubles": troubles(found),
        }
        return TemplatePage("scenarios.html", "Planned work", shown)

    async def scenario(self, visit: Visit, scenario: str) -> TemplatePage:
        """Show how far planned work is, who blocks it and why, and each host's approval."""
        if self._walle is None:
            return TemplatePage("missing.html", scenario, {"troubles": [MISSING]})
        found = await self._walle.scenario(scenario)
        answer = good(found, pb.GetScenarioResponse())
        is_there = bool(answer.scenario.id)
        blockers = views.blockers(answer.scenario)
        asked = next((one.task for one in blockers if one.task), "")
        why = await self._cms.why(asked) if self._cms is not None and asked else None
        shown = {
            "id": scenario,
            "one": answer.scenario if is_there else None,
            "blockers": blockers,
            "asked": asked,
            "way": in_the_way(why) if isinstance(why, cpb.WhyTaskResponse) else None,
            "gives_up_s": views.gives_up_s(answer.scenario),
            "by_hand": await self._projects_to_confirm(self._walle, answer.scenario),
            "state": views.scenario_state(answer.scenario),
            "domains": views.wave_domains(answer.scenario),
            "rules": views.wave_rules(answer.scenario),
            "squares": squares_of,
            "steering": _STEERING.get(answer.scenario.stage, ()),
            "hosts": sorted(answer.scenario.host, key=lambda one: one.name)[:_MOST_HOSTS],
            "verdict_of": views.verdict_of,
            "is_over": ppb.SCENARIO_STAGE_RETURNING <= answer.scenario.stage <= ppb.SCENARIO_STAGE_CANCELLED,
            "is_working": answer.scenario.stage == ppb.SCENARIO_STAGE_WORKING and bool(answer.scenario.switch),
            "may_order": await self._walle.may_order(),
            "troubles": troubles(found, *hidden_troubles(why)),
        }
        return TemplatePage("scenario.html", scenario, shown, status_of(is_there, found))

    async def _projects_to_confirm(self, walle: WalleClient, scenario: ppb.Scenario) -> list[str]:
        """Projects whose owners have yet to agree in place of a CMS."""
        waiting = {host.name for host in scenario.host if host.by_hand}
        if not waiting:
            return []
        listed = good(await walle.hosts(switch=scenario.switch), pb.ListHostsResponse()).hosts
        return sorted({one.host.project for one in listed if one.host.name in waiting})

    async def agree(self, visit: Visit, scenario: str) -> Redirect:
        """An owner agrees for the hosts of a project whose CMSs cannot be asked, or refuses."""
        project, refused = visit.form.get("project", ""), visit.form.get("refuse") == "on"
        if not project:
            raise BadPageRequest(400, "project: is missing")
        request = pb.AgreeScenarioRequest(
            scenario=scenario, project=project, refused=refused, reason=orders.reason(visit)
        )
        said = f"{'Refused' if refused else 'Agreed'} for {project}."
        return await self._order(url("scenarios", scenario), "AgreeScenario", request, said)

    async def steer(self, visit: Visit, scenario: str) -> Redirect:
        """Pause work in waves, go on, or try again what failed."""
        word = visit.form.get("steering", "")
        if f"STEERING_{word.upper()}" not in pb.Steering.keys()[1:]:
            raise BadPageRequest(400, "steering: choose pause, continue or retry")
        request = pb.SteerScenarioRequest(scenario=scenario, reason=orders.reason(visit))
        request.steering = pb.Steering.Value(f"STEERING_{word.upper()}")  # type: ignore[assignment,unused-ignore]
        return await self._order(url("scenarios", scenario), "SteerScenario", request, _STEERED[word])

    async def add_scenario(self, visit: Visit) -> Redirect:
        """Ask for maintenance of a switch."""
        form = visit.form
        if not form.get("switch"):
            raise BadPageRequest(400, "switch: the switch is missing")
        name = form.get("scenario") or _proposed_name(form["switch"])
        if not _NAME.fullmatch(name):
            raise BadPageRequest(400, f"Name: {name[:63]!r} does not fit; write 1 to 63 letters, digits, dots, dashes")
        if self._walle is not None and (wrong := await self._unknown_switch(self._walle, form["switch"])):
            raise BadPageRequest(400, f"switch: {wrong}")
        request = pb.AddScenarioRequest(
            scenario=name,
            kind=ppb.SCENARIO_KIND_SWITCH_MAINTENANCE,
            switch=form["switch"],
            dc=form.get("dc", ""),
            ticket=form.get("ticket", ""),
            reason=orders.reason(visit),
        )
        return await self._order(url("scenarios", name), "AddScenario", request, "Approval has been requested.")

    async def _unknown_switch(self, walle: WalleClient, switch: str) -> str:
        """The message for a switch without hosts; empty: it has some, or Wall-E is left to report it."""
        found = await walle.hosts(switch=switch)
        if isinstance(found, Trouble) or found.hosts:
            return ""
        known = views.switches(good(await walle.hosts(), pb.ListHostsResponse()).hosts)
        close = difflib.get_close_matches(switch, known, 1)
        return f"no host is behind a switch {switch}" + (f"; did you mean {close[0]}?" if close else "")

    async def end_scenario(self, visit: Visit, scenario: str) -> Redirect:
        """End planned work: it is done, or given up."""
        done = visit.form.get("done") == "yes"
        request = pb.EndScenarioRequest(scenario=scenario, done=done, reason=orders.reason(visit))
        said = "The hosts are being given back." if done else "It is being cancelled: the hosts are given back."
        return await self._order(url("scenarios", scenario), "EndScenario", request, said)

    async def _order(self, to: str, name: str, request: Any, said: str) -> Redirect:
        return orders.result_redirect(
            to, MISSING if self._walle is None else await self._walle.order(name, request), said
        )


def _proposed_name(switch: str) -> str:
    """A name for work on a switch."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", switch)[: 63 - len(_MAINTENANCE)] + _MAINTENANCE


def _credits(given: Mapping[str, str]) -> dict[str, int]:
    """`ssh=100 dns-fixes=5`. Raises BadPageRequest."""
    found = {}
    for part in given.get("credits", "").replace(",", " ").split():
        if (match := _CREDITS.fullmatch(part)) is None:
            raise BadPageRequest(400, f"credits: {part!r} is not a check and a number, as in ssh=100")
        found[match[1]] = int(match[2])
    return found
