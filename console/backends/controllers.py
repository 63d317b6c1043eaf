"""CMS, Nanny and Wall-E as the console asks them. Each read answers, or says why not."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any, ClassVar, Final, TypeVar

from cmspb.v1 import cms_pb2 as cpb
from console.backends.asking import TIMEOUT_S, Trouble, try_call
from console.backends.remote import Remote
from hqclient.pages import ask_pages
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import service_pb2 as wpb

R = TypeVar("R")
# Which roles may order what; the controller itself decides when an order comes.
_OWNERS: Final = frozenset(("uploader", "admin"))
_OPERATIONS: Final = frozenset(("operator",))
_ANYWHERE: Final = frozenset(("operator", "admin"))


class _Away(Exception):
    """A page of a list could not be read."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble


class ControllerClient:
    """Calls to one controller, or to the recorder."""

    path: ClassVar[str]

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def close(self) -> None:
        """End every connection."""
        await self._remote.close()

    async def _ask(self, request: Any, response: type[R], wait_s: float | None = None) -> R | Trouble:
        """Send a read by its request message; return the answer."""
        parse = response.FromString  # type: ignore[attr-defined]
        return await self._remote.read(self.path + _name(request), request, parse, wait_s)

    async def _ask_pages(self, request: Any, response: type[R]) -> R | Trouble:
        """All pages of a list, as one."""
        try:
            found: R = await ask_pages(lambda page: self._asked(page, response), request)
        except _Away as away:
            return away.trouble
        return found

    async def _asked(self, request: Any, response: type[R]) -> R:
        found = await self._ask(request, response)
        if isinstance(found, Trouble):
            raise _Away(found)
        return found

    async def _order(self, request: Any, response: type[R], path: str = "") -> Trouble | None:
        """Send an order by its request message; None: it was carried out."""
        parse = response.FromString  # type: ignore[attr-defined]
        sent = self._remote.call((path or self.path) + _name(request), request, parse)
        found = await try_call(self._remote.name, sent)
        return found if isinstance(found, Trouble) else None


class CmsClient(ControllerClient):
    """Who may be taken down now, why not, and the orders of operators."""

    path = "/cms.v1.CmsService/"

    async def tasks(self, host: str = "", service: str = "") -> cpb.ListTasksResponse | Trouble:
        """All tasks, in the order of their creation."""
        request = cpb.ListTasksRequest(host=host, service=service)
        return await self._ask_pages(request, cpb.ListTasksResponse)

    async def why(self, task: str) -> cpb.WhyTaskResponse | Trouble:
        """Why a task waits, and what would change that."""
        return await self._ask(cpb.WhyTaskRequest(id=task), cpb.WhyTaskResponse)

    async def budgets(self, service: str = "") -> cpb.ListBudgetsResponse | Trouble:
        """How all budgets stand, defaults included."""
        return await self._ask_pages(cpb.ListBudgetsRequest(service=service), cpb.ListBudgetsResponse)

    async def windows(self) -> cpb.ListWindowsResponse | Trouble:
        """When work may begin, by name."""
        return await self._ask_pages(cpb.ListWindowsRequest(), cpb.ListWindowsResponse)

    async def change_windows(self, request: cpb.PutWindowsRequest | cpb.DeleteWindowsRequest) -> Trouble | None:
        """Set or delete windows; None: it was carried out."""
        kind = cpb.PutWindowsResponse if isinstance(request, cpb.PutWindowsRequest) else cpb.DeleteWindowsResponse
        return await self._order(request, kind)

    async def status(self) -> cpb.GetStatusResponse | Trouble:
        """Whether anything is granted now."""
        return await self._ask(cpb.GetStatusRequest(), cpb.GetStatusResponse)

    async def plan(self, hosts: list[str], action: str) -> cpb.PlanResponse | Trouble:
        """The waves in which work on hosts could be done."""
        return await self._ask(cpb.PlanRequest(host=hosts, action=action), cpb.PlanResponse, TIMEOUT_S)

    async def may_operate(self) -> bool:
        """Whether it is worth while to offer this person orders."""
        return "operator" in await self._remote.roles()

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order of an operator, `Freeze` and the like; None: it was carried out."""
        return await self._order(request, getattr(cpb, f"{name}Response"), "/cms.v1.CmsAdminService/")


class NannyClient(ControllerClient):
    """Services, their snapshots and states, and the orders people give."""

    path = "/nanny.v1.NannyService/"

    async def services(self) -> npb.ListServicesResponse | Trouble:
        """All that this person may read, without progress."""
        return await self._ask_pages(npb.ListServicesRequest(), npb.ListServicesResponse)

    async def service(self, service: str) -> npb.GetServiceResponse | Trouble:
        """Get a service, with the progress of its actions."""
        return await self._ask(npb.GetServiceRequest(service_id=service), npb.GetServiceResponse)

    async def snapshots(self, service: str) -> npb.ListSnapshotsResponse | Trouble:
        """The snapshots of a service without their content, newest first."""
        return await self._ask(npb.ListSnapshotsRequest(service_id=service), npb.ListSnapshotsResponse)

    async def snapshot(self, service: str, snapshot: str) -> npb.GetSnapshotResponse | Trouble:
        """Get a snapshot, with its content."""
        request = npb.GetSnapshotRequest(service_id=service, snapshot_id=snapshot)
        return await self._ask(request, npb.GetSnapshotResponse)

    async def instances(self, service: str, snapshot: str) -> npb.ListInstancesResponse | Trouble:
        """Instances of a snapshot, with current and target state."""
        request = npb.ListInstancesRequest(service_id=service, snapshot_id=snapshot)
        return await self._ask(request, npb.ListInstancesResponse)

    async def history(self, service: str) -> npb.ListHistoryResponse | Trouble:
        """Who did what, newest first."""
        return await self._ask(npb.ListHistoryRequest(service_id=service), npb.ListHistoryResponse)

    async def rollout(self, service: str) -> npb.GetRolloutResponse | Trouble:
        """The last roll-out: its steps, batches, and whom it judged."""
        return await self._ask(npb.GetRolloutRequest(service_id=service), npb.GetRolloutResponse)

    async def control(self) -> npb.GetControlResponse | Trouble:
        """Whether Nanny acts."""
        return await self._ask(npb.GetControlRequest(), npb.GetControlResponse)

    async def may(self, service: str) -> tuple[bool, bool]:
        """Whether this person may set targets and stop, and whether it may pause and resume."""
        roles = await self._remote.roles(service=service)
        return bool(roles & _OWNERS), bool(roles & _OPERATIONS)

    async def may_pause_some(self) -> bool:
        """Whether this person may pause and resume any service at all."""
        return bool((await self._remote.person()).somewhere & _OPERATIONS)

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order, `SetTarget` and the like; None: it is stored, and handled soon."""
        return await self._order(request, getattr(npb, f"{name}Response"))


class WalleClient(ControllerClient):
    """Hosts, their repairs and fuses, scenarios, and the orders people give."""

    path = "/walle.v1.WalleService/"

    async def hosts(
        self, project: str = "", rack: str = "", switch: str = "", *, troubled: bool = False
    ) -> wpb.ListHostsResponse | Trouble:
        """Hosts that match; an empty filter matches all."""
        request = wpb.ListHostsRequest(project=project, rack=rack, switch=switch, troubled=troubled)
        return await self._ask_pages(request, wpb.ListHostsResponse)

    async def host(self, host: str) -> wpb.GetHostResponse | Trouble:
        """Get a host, with its next repair and what blocks it."""
        return await self._ask(wpb.GetHostRequest(host=host), wpb.GetHostResponse)

    async def projects(self) -> wpb.ListProjectsResponse | Trouble:
        """All, with their fuses."""
        return await self._ask_pages(wpb.ListProjectsRequest(), wpb.ListProjectsResponse)

    async def project(self, project: str) -> wpb.GetProjectResponse | Trouble:
        """Get a project, with its fuse."""
        return await self._ask(wpb.GetProjectRequest(project=project), wpb.GetProjectResponse)

    async def limits(self, project: str) -> wpb.GetLimitsResponse | Trouble:
        """Return how much of each limit was used, and by whom; of all projects together where none is named."""
        return await self._ask(wpb.GetLimitsRequest(project=project), wpb.GetLimitsResponse)

    async def forecast(self, project: str, credits_: dict[str, int]) -> wpb.GetForecastResponse | Trouble:
        """Return the effect that switching on would have now."""
        request = wpb.GetForecastRequest(project=project, automation="healing", credits=credits_)
        return await self._ask(request, wpb.GetForecastResponse)

    async def incidents(self) -> wpb.ListIncidentsResponse | Trouble:
        """Racks and switches whose hosts fail together."""
        return await self._ask_pages(wpb.ListIncidentsRequest(), wpb.ListIncidentsResponse)

    async def scenarios(self, *, only_open: bool = False) -> wpb.ListScenariosResponse | Trouble:
        """All, or those that are not over."""
        return await self._ask_pages(wpb.ListScenariosRequest(open=only_open), wpb.ListScenariosResponse)

    async def scenario(self, scenario: str) -> wpb.GetScenarioResponse | Trouble:
        """Get planned work, and who blocks it."""
        return await self._ask(wpb.GetScenarioRequest(scenario=scenario), wpb.GetScenarioResponse)

    async def settings(self) -> wpb.GetSettingsResponse | Trouble:
        """Which process acts, and why nothing begins."""
        return await self._ask(wpb.GetSettingsRequest(), wpb.GetSettingsResponse)

    async def may_order(self, owners: Collection[str] = ()) -> bool:
        """Whether this person may order in a project with these owners; Wall-E decides when an order comes."""
        person = await self._remote.person()
        return bool(person.somewhere & _ANYWHERE) or (person.name in owners and "uploader" in person.somewhere)

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order, `SwitchAutomation` and the like; None: it is stored, and takes effect soon."""
        return await self._order(request, getattr(wpb, f"{name}Response"))


def _name(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")


def request_id(sent: str) -> str:
    """The id of a form, so that one sent twice is one order."""
    return sent[:100] or secrets.token_hex(8)
