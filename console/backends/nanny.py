"""Nanny: services, their snapshots and states, and the orders people give."""

from __future__ import annotations

import secrets
from typing import Any, Final, TypeVar

from console.backends.asking import Trouble, tried
from console.backends.remote import Remote
from nannypb.v1 import service_pb2 as pb

R = TypeVar("R")
_SERVICE: Final = "/nanny.v1.NannyService/"
# Which roles may order what; Nanny itself decides when an order comes.
_OWNERS: Final = frozenset(("uploader", "admin"))
_OPERATIONS: Final = frozenset(("operator",))


class Nanny:
    """Reads and orders. Each read answers, or says why not."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def close(self) -> None:
        """End every connection."""
        await self._remote.close()

    async def _ask(self, name: str, request: Any, response: type[R]) -> R | Trouble:
        parse = response.FromString  # type: ignore[attr-defined]
        return await tried(self._remote.name, self._remote.call(_SERVICE + name, request, parse))

    async def services(self) -> pb.ListServicesResponse | Trouble:
        """All that this person may read, without progress."""
        return await self._ask("ListServices", pb.ListServicesRequest(), pb.ListServicesResponse)

    async def service(self, service: str) -> pb.GetServiceResponse | Trouble:
        """One, with the progress of its actions."""
        return await self._ask("GetService", pb.GetServiceRequest(service_id=service), pb.GetServiceResponse)

    async def snapshots(self, service: str) -> pb.ListSnapshotsResponse | Trouble:
        """Without their content, newest first."""
        return await self._ask("ListSnapshots", pb.ListSnapshotsRequest(service_id=service), pb.ListSnapshotsResponse)

    async def snapshot(self, service: str, snapshot: str) -> pb.GetSnapshotResponse | Trouble:
        """One, with its content."""
        request = pb.GetSnapshotRequest(service_id=service, snapshot_id=snapshot)
        return await self._ask("GetSnapshot", request, pb.GetSnapshotResponse)

    async def instances(self, service: str, snapshot: str) -> pb.ListInstancesResponse | Trouble:
        """Those of a snapshot, with current and target."""
        request = pb.ListInstancesRequest(service_id=service, snapshot_id=snapshot)
        return await self._ask("ListInstances", request, pb.ListInstancesResponse)

    async def history(self, service: str) -> pb.ListHistoryResponse | Trouble:
        """Who did what, newest first."""
        return await self._ask("ListHistory", pb.ListHistoryRequest(service_id=service), pb.ListHistoryResponse)

    async def control(self) -> pb.GetControlResponse | Trouble:
        """Whether Nanny acts."""
        return await self._ask("GetControl", pb.GetControlRequest(), pb.GetControlResponse)

    async def may(self, service: str) -> tuple[bool, bool]:
        """Whether this person may set targets and stop, and whether it may pause and resume."""
        roles = await self._remote.roles(service=service)
        return bool(roles & _OWNERS), bool(roles & _OPERATIONS)

    async def order(self, name: str, request: Any) -> Trouble | None:
        """An order, `SetTarget` and the like; None: it is stored, and handled soon."""
        answers = {
            "SetTarget": pb.SetTargetResponse,
            "SetInstanceTarget": pb.SetInstanceTargetResponse,
            "PauseActions": pb.PauseActionsResponse,
            "ResumeActions": pb.ResumeActionsResponse,
            "StopService": pb.StopServiceResponse,
        }
        found: Any = await self._ask(name, request, answers[name])
        return found if isinstance(found, Trouble) else None


def request_id(sent: str) -> str:
    """The id of a form, so that one sent twice is one order."""
    return sent[:100] or secrets.token_hex(8)
