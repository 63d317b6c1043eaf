"""When planned work may begin: windows and freezes, listed, made and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from cmspb.v1 import cms_pb2 as pb
from console.backends.asking import Trouble, good, missing, troubles
from console.backends.controllers import CmsClient
from console.backends.servers import Servers
from console.pages import orders
from console.site.visits import BadPageRequest, Redirect, Route, TemplatePage, Visit
from console.views.listing import Column, listing
from hqkinds.cms import WINDOWS

_MISSING: Final = missing("CMS", "--cms")
_SUNDAY: Final = 6


class WindowPages:
    """The page of windows, and its orders; the CMS says what is wrong with a field."""

    def __init__(self, servers: Servers) -> None:
        self._cms = servers.cms

    def routes(self) -> list[Route]:
        """Routes of the windows and of their orders."""
        return [Route("GET", "/windows", self.windows), Route("POST", "/windows/{order}", self.order)]

    async def windows(self, visit: Visit) -> TemplatePage:
        """When planned work and roll-outs may begin, and when what is closed opens."""
        if self._cms is None:
            return TemplatePage("missing.html", "Windows", {"troubles": [_MISSING]})
        listed, may = await asyncio.gather(self._cms.windows(), self._cms.may_operate())
        heads = WINDOWS.heads(wide=True)
        rows = WINDOWS.rows(WINDOWS.items(good(listed, pb.ListWindowsResponse())), wide=True)
        columns = {head.lower(): Column(itemgetter(at)) for at, head in enumerate(heads)}
        today = datetime.now(UTC).date()
        shown = {
            "heads": heads,
            "windows": listing(rows, columns, ["windows"], visit.query),
            "may_operate": may,
            "begin": today,
            "end": today + timedelta(days=_SUNDAY - today.weekday()),
            "troubles": troubles(listed),
        }
        return TemplatePage("windows.html", "Windows", shown)

    async def order(self, visit: Visit, order: str) -> Redirect:
        """Make windows or a freeze, or delete them."""
        form = visit.form
        if order == "freeze":
            windows = _freeze_of(form, orders.reason(visit))
            request: Any = pb.PutWindowsRequest(windows=windows)
            said = f"{windows.name}: planned work does not begin before it ends."
        elif order == "put":
            request = pb.PutWindowsRequest(windows=_windows_of(form))
            said = f"{form.get('name', '')}: planned work begins in these windows only."
        elif order == "delete":
            request = pb.DeleteWindowsRequest(name=form.get("name", ""))
            said = f"{form.get('name', '')} is deleted."
        else:
            raise BadPageRequest(404, "order: choose freeze, put or delete")
        failed: Trouble | None = _MISSING
        if self._cms is not None:
            failed = await _same_freeze(self._cms, request.windows.name) if order == "freeze" else None
            failed = failed or await self._cms.change_windows(request)
        return orders.result_redirect("/windows", failed, said)


def _freeze_of(form: Mapping[str, str], reason: str) -> pb.Windows:
    begin, service = form.get("begin", ""), form.get("service", "")
    made = pb.Windows(name="-".join(filter(None, ("freeze", service, begin))), service=service)
    made.zone = form.get("zone", "")
    made.freeze.add(begin=begin, end=form.get("end", ""), reason=reason, repairs=form.get("repairs") == "on")
    return made


async def _same_freeze(cms: CmsClient, name: str) -> Trouble | None:
    """Why a freeze is not made: its name, which people do not choose, is taken; so nobody means to replace that one."""
    listed = await cms.windows()
    if isinstance(listed, Trouble):
        return listed
    if all(one.windows.name != name for one in listed.state):
        return None
    return Trouble("CMS", "failed", f"{name} already exists: delete it first, or choose another first day")


def _windows_of(form: Mapping[str, str]) -> pb.Windows:
    hours = pb.Hours(days=form.get("days", ""), begin=form.get("begin", ""), end=form.get("end", ""))
    made = pb.Windows(
        name=form.get("name", ""), zone=form.get("zone", ""), margin=form.get("margin", ""), hours=[hours]
    )
    made.service, made.project = form.get("service", ""), form.get("project", "")
    return made
