"""Disruptions (CMS): tasks with verdict and reason, budgets with what is left, and a plan for work on hosts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

from cmspb.v1 import cms_pb2 as pb
from console.backends.asking import good, missing, status_of, troubles
from console.backends.servers import Servers
from console.pages import orders
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views import disruptions as views
from console.views.listing import listing
from console.views.urls import url

_MISSING: Final = missing("CMS", "--cms")
_MOST_HOSTS: Final = 2_000
_FILTERS: Final = ("host", "service")
_ACTIONS: Final = ("reboot", "power-off", "redeploy", "profile", "change-disk", "repair-link", "temporary-unreachable")


class DisruptionPages:
    """`/disruptions` and what is below."""

    def __init__(self, servers: Servers) -> None:
        self._cms = servers.cms

    def routes(self) -> list[Route]:
        """Routes of the disruption pages."""
        return [
            Route("GET", "/disruptions", self.all),
            Route("GET", "/disruptions/{task}", self.one),
            Route("GET", "/plan", self.plan),
            Route("POST", "/cms/{order}", self.order),
            Route("POST", "/disruptions/{task}/{order}", self.task_order),
        ]

    async def all(self, visit: Visit) -> TemplatePage:
        """Show the work under way, what waits, and how the budgets stand."""
        if self._cms is None:
            return TemplatePage("missing.html", "Disruptions", {"troubles": [_MISSING]})
        host, service = visit.query.get("host", ""), visit.query.get("service", "")
        listed, budgets, status, may = await asyncio.gather(
            self._cms.tasks(host, service), self._cms.budgets(service), self._cms.status(), self._cms.may_operate()
        )
        tasks = views.task_rows(good(listed, pb.ListTasksResponse()).state)
        rows = views.budget_rows(good(budgets, pb.ListBudgetsResponse()))
        shown = {
            "tasks": listing(tasks, views.TASK_COLUMNS, ["disruptions"], visit.query, _FILTERS, "task_"),
            "budgets": listing(rows, views.BUDGET_COLUMNS, ["disruptions"], visit.query, _FILTERS, "budget_"),
            "status": good(status, pb.GetStatusResponse()),
            "host": host,
            "service": service,
            "may_operate": may,
            "actions": _ACTIONS,
            "troubles": troubles(listed, budgets, status),
        }
        return TemplatePage("disruptions.html", "Disruptions", shown)

    async def one(self, visit: Visit, task: str) -> TemplatePage:
        """Show why a task waits, who is in the way, and what would change that."""
        if self._cms is None:
            return TemplatePage("missing.html", task, {"troubles": [_MISSING]})
        why, may = await asyncio.gather(self._cms.why(task), self._cms.may_operate())
        found = good(why, pb.WhyTaskResponse())
        is_there = bool(found.state.task.id)
        shown = {
            "id": task,
            "row": views.task_row(found.state) if is_there else None,
            "why": found,
            "lacking": views.lacking_by_reason,
            "may_operate": may,
            "troubles": troubles(why),
        }
        return TemplatePage("task.html", task, shown, status_of(is_there, why))

    async def plan(self, visit: Visit) -> TemplatePage:
        """The waves in which hosts could be worked on, as things stand. Stores nothing."""
        if self._cms is None:
            return TemplatePage("missing.html", "Plan", {"troubles": [_MISSING]})
        hosts = list(dict.fromkeys(re.split(r"[\s,]+", visit.query.get("hosts", "").strip())))[:_MOST_HOSTS]
        hosts = [one for one in hosts if one]
        action = visit.query.get("action", "reboot")
        planned = await self._cms.plan(hosts, action) if hosts else pb.PlanResponse()
        shown = {
            "hosts": hosts,
            "action": action,
            "actions": _ACTIONS,
            "plan": good(planned, pb.PlanResponse()),
            "troubles": troubles(planned),
        }
        return TemplatePage("plan.html", "Plan", shown)

    async def order(self, visit: Visit, order: str) -> Redirect:
        """Freeze, unfreeze, or open after a new epoch."""
        known: dict[str, tuple[str, Callable[..., Any], str]] = {
            "freeze": ("Freeze", pb.FreezeRequest, "Nothing is granted until the freeze is lifted."),
            "unfreeze": ("Unfreeze", pb.UnfreezeRequest, "Grants go on."),
            "open": ("Open", pb.OpenRequest, "The epoch is open: the CMS grants again."),
        }
        if order not in known:
            raise BadPageRequest(404, "order: choose freeze, unfreeze or open")
        name, kind, said = known[order]
        return await self._order("/disruptions", name, kind(reason=orders.reason(visit), by=orders.author(visit)), said)

    async def task_order(self, visit: Visit, task: str, order: str) -> Redirect:
        """Extend a hold, or end it for its issuer."""
        to, reason, by = url("disruptions", task), orders.reason(visit), orders.author(visit)
        if order == "end":
            request: Any = pb.EndTaskRequest(id=task, reason=reason, by=by)
            return await self._order("/disruptions", "EndTask", request, f"{task} has ended.")
        if order != "extend":
            raise BadPageRequest(404, "order: choose extend or end")
        hours = orders.hours(visit)
        request = pb.ExtendTaskRequest(id=task, seconds=3_600 * hours, reason=reason, by=by)
        return await self._order(to, "ExtendTask", request, f"{task} may last for {hours} h from now.")

    async def _order(self, to: str, name: str, request: Any, said: str) -> Redirect:
        failed = _MISSING if self._cms is None else await self._cms.order(name, request)
        return orders.result_redirect(to, failed, said)
