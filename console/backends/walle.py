"""Wall-E: hosts, their repairs and fuses, scenarios, and the orders people give."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeVar

from console.backends.asking import Trouble, tried
from console.backends.remote import Remote
from wallepb.v1 import service_pb2 as pb

R = TypeVar("R")
_SERVICE: Final = "/walle.v1.WalleService/"
_ANYWHERE: Final = frozenset(("operator", "admin"))


class Walle:
    """Reads and orders. Each read answers, or says why not."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def close(self) -> None:
        """End every connection."""
        await self._remote.close()

    async def _ask(self, name: str, request: Any, response: type[R]) -> R | Trouble:
        parse = response.FromString  # type: ignore[attr-defined]
        return await tried(self._remote.name, self._remote.call(_SERVICE + name, request, parse))

    async def hosts(
        self, project: str = "", rack: str = "", switch: str = "", *, troubled: bool = False
    ) -> pb.ListHostsResponse | Trouble:
        """Those that match; what is empty matches all."""
        request = pb.ListHostsRequest(project=project, rack=rack, switch=switch, troubled=troubled)
        return await self._ask("ListHosts", request, pb.ListHostsResponse)

    async def host(self, host: str) -> pb.GetHostResponse | Trouble:
        """One, what would be done about it, and what is in the way."""
        return await self._ask("GetHost", pb.GetHostRequest(host=host), pb.GetHostResponse)

    async def projects(self) -> pb.ListProjectsResponse | Trouble:
        """All, with their fuses."""
        return await self._ask("ListProjects", pb.ListProjectsRequest(), pb.ListProjectsResponse)

    async def project(self, project: str) -> pb.GetProjectResponse | Trouble:
        """One, with its fuse."""
        return await self._ask("GetProject", pb.GetProjectRequest(project=project), pb.GetProjectResponse)

    async def limits(self, project: str) -> pb.GetLimitsResponse | Trouble:
        """What was used of which limit, by whom; of all projects together where none is named."""
        return await self._ask("GetLimits", pb.GetLimitsRequest(project=project), pb.GetLimitsResponse)

    async def forecast(self, project: str, credits_: dict[str, int]) -> pb.GetForecastResponse | Trouble:
        """What switching on would do now."""
        request = pb.GetForecastRequest(project=project, automation="healing", credits=credits_)
        return await self._ask("GetForecast", request, pb.GetForecastResponse)

    async def incidents(self) -> pb.ListIncidentsResponse | Trouble:
        """Racks and switches whose hosts fail together."""
        return await self._ask("ListIncidents", pb.ListIncidentsRequest(), pb.ListIncidentsResponse)

    async def scenarios(self) -> pb.ListScenariosResponse | Trouble:
        """All."""
        return await self._ask("ListScenarios", pb.ListScenariosRequest(), pb.ListScenariosResponse)

    async def scenario(self, scenario: str) -> pb.GetScenarioResponse | Trouble:
        """One, and who blocks it."""
        return await self._ask("GetScenario", pb.GetScenarioRequest(scenario=scenario), pb.GetScenarioResponse)

    async def settings(self) -> pb.GetSettingsResponse | Trouble:
        """Which process acts, and why nothing begins."""
        return await self._ask("GetSettings", pb.GetSettingsRequest(), pb.GetSettingsResponse)

    async def may_order(self, owners: Collection[str] = ()) -> bool:
        """Whether this person may order in a project with these owners; Wall-E decides when an order comes."""
        person = await self._remote.person()
        return bool(person.somewhere & _ANYWHERE) or (person.name in owners and "uploader" in person.somewhere)

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order, `SwitchAutomation` and the like; None: it is stored, and takes effect soon."""
        found = await self._ask(name, request, getattr(pb, f"{name}Response"))
        return found if isinstance(found, Trouble) else None
