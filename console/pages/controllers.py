"""What is wrong according to Nanny, the CMS and Wall-E, for the first page; nothing of those that are not there."""

from __future__ import annotations

import asyncio

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import Trouble, good, troubles
from console.backends.servers import Servers
from console.views import problems as views
from console.views.disruptions import cms_problems
from console.views.disruptions import floors as floors_of
from console.views.hosts import fuses_out, walle_problems
from console.views.snapshots import nanny_problems
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import service_pb2 as wpb


class Controllers:
    """Asks them all at once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def problems(self, now_s: float) -> tuple[dict[str, int], list[views.Problem]]:
        """The floors of services by the CMS's budgets, and all problems."""
        rolled, (floors, held), repairs = await asyncio.gather(
            self.roll_outs(), self.disruptions(now_s), self.repairs(now_s)
        )
        return floors, [*rolled, *held, *repairs]

    async def roll_outs(self) -> list[views.Problem]:
        """Nothing where there is no Nanny."""
        nanny = self._servers.nanny
        if nanny is None:
            return []
        listed, control = await asyncio.gather(nanny.services(), nanny.control())
        found = views.trouble_problems(troubles(listed, control))
        known = good(listed, npb.ListServicesResponse()).service
        return [*found, *nanny_problems(known, None if isinstance(control, Trouble) else control.control)]

    async def disruptions(self, now_s: float) -> tuple[dict[str, int], list[views.Problem]]:
        """The floors of services, and what is wrong; nothing where there is no CMS."""
        cms = self._servers.cms
        if cms is None:
            return {}, []
        budgets, tasks, status = await asyncio.gather(cms.budgets(), cms.tasks(), cms.status())
        found = views.trouble_problems(troubles(budgets, tasks, status))
        known = good(tasks, cpb.ListTasksResponse()).state
        found += cms_problems(known, None if isinstance(status, Trouble) else status, now_s)
        return floors_of(good(budgets, cpb.ListBudgetsResponse())), found

    async def repairs(self, now_s: float) -> list[views.Problem]:
        """Nothing where there is no Wall-E."""
        walle = self._servers.walle
        if walle is None:
            return []
        projects, incidents, scenarios, settings = asked = await asyncio.gather(
            walle.projects(), walle.incidents(), walle.scenarios(), walle.settings()
        )
        known = None if isinstance(settings, Trouble) else settings
        out = fuses_out(good(projects, wpb.ListProjectsResponse()).projects, known.fuse if known else None)
        failing = good(incidents, wpb.ListIncidentsResponse()).incidents
        planned = good(scenarios, wpb.ListScenariosResponse()).scenarios
        return [*views.trouble_problems(troubles(*asked)), *walle_problems(out, failing, planned, known, now_s)]
