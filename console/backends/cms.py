"""The CMS: who may be taken down now, why not, and the orders of operators."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from cmspb.v1 import cms_pb2 as pb
from console.backends.asking import Trouble, tried
from console.backends.remote import Remote

R = TypeVar("R")
_SERVICE: Final = "/cms.v1.CmsService/"
_ADMIN: Final = "/cms.v1.CmsAdminService/"


class Cms:
    """Reads and orders. Each read answers, or says why not."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def close(self) -> None:
        """End every connection."""
        await self._remote.close()

    async def _ask(self, path: str, request: Any, response: type[R]) -> R | Trouble:
        parse = response.FromString  # type: ignore[attr-defined]
        return await tried(self._remote.name, self._remote.call(path, request, parse))

    async def tasks(self, host: str = "", service: str = "") -> pb.ListTasksResponse | Trouble:
        """All tasks, in the order of their creation."""
        request = pb.ListTasksRequest(host=host, service=service)
        return await self._ask(_SERVICE + "ListTasks", request, pb.ListTasksResponse)

    async def why(self, task: str) -> pb.WhyTaskResponse | Trouble:
        """Why a task waits, and what would change that."""
        return await self._ask(_SERVICE + "WhyTask", pb.WhyTaskRequest(id=task), pb.WhyTaskResponse)

    async def budgets(self, service: str = "") -> pb.ListBudgetsResponse | Trouble:
        """How all budgets stand, defaults included."""
        return await self._ask(_SERVICE + "ListBudgets", pb.ListBudgetsRequest(service=service), pb.ListBudgetsResponse)

    async def status(self) -> pb.GetStatusResponse | Trouble:
        """Whether anything is granted now."""
        return await self._ask(_SERVICE + "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)

    async def plan(self, hosts: list[str], action: str) -> pb.PlanResponse | Trouble:
        """The waves in which work on hosts could be done."""
        return await self._ask(_SERVICE + "Plan", pb.PlanRequest(host=hosts, action=action), pb.PlanResponse)

    async def may_operate(self) -> bool:
        """Whether it is worth while to offer this person orders."""
        return "operator" in await self._remote.roles()

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order of an operator, `Freeze` and the like; None: it was carried out."""
        answer = getattr(pb, f"{name}Response")
        found = await self._ask(_ADMIN + name, request, answer)
        return found if isinstance(found, Trouble) else None
