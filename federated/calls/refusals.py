"""The calls of agents, which a gateway refuses with the address of the right location."""

from __future__ import annotations

from typing import NoReturn

from federated.calls.owners import OwnerSearch
from federated.errors import AskLocation
from federated.locations.locations import Locations
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import ServiceError


class FederatedRefusals:
    """Says where to go."""

    def __init__(self, locations: Locations, search: OwnerSearch) -> None:
        self._locations, self._search = locations, search

    async def get_revision(self, message: pb.GetRevisionRequest, call: Call) -> NoReturn:
        """Secret descriptors do not leave their location. Raises AskLocation."""
        await self._refuse("GetRevision", message.instance_id, call)

    async def begin_reporting(self, message: pb.BeginReportingRequest, call: Call) -> NoReturn:
        """Raises AskLocation."""
        await self._refuse("BeginReporting", message.instance_id, call)

    async def begin_many(self, message: pb.BeginReportingsRequest, call: Call) -> NoReturn:
        """Raises AskLocation, with the location of the first item's instance."""
        first = message.begin[0].instance_id if message.begin else ""
        await self._refuse("BeginReportings", first, call)

    async def report(self, message: pb.ReportStatusRequest, call: Call) -> NoReturn:
        """Raises AskLocation."""
        await self._refuse("ReportStatus", message.instance_id, call)

    async def report_many(self, message: pb.ReportStatusesRequest, call: Call) -> NoReturn:
        """Raises AskLocation, with the location of the first report's instance."""
        first = message.report[0].instance_id if message.report else ""
        await self._refuse("ReportStatuses", first, call)

    async def silences(self, message: pb.ListSilencesRequest, call: Call) -> NoReturn:
        """Each location has its own clock and page tokens. Raises AskLocation, with all of them."""
        raise AskLocation("ListSilences", self._locations.addresses(self._locations.by_name))

    async def admin(self, name: str) -> NoReturn:
        """Operators' calls concern a single installation, too. Raises AskLocation, with all of them."""
        raise AskLocation(name, self._locations.addresses(self._locations.by_name))

    async def _refuse(self, name: str, instance_id: str, call: Call) -> NoReturn:
        places = list(self._locations.by_name)
        if instance_id:
            try:
                owners = await self._search.owners({instance_id: "instance_id"}, call.deadline, call)
                places = list(owners.by_id.get(instance_id, places))
            except ServiceError:
                pass  # a fault in the id is not reported here
        raise AskLocation(name, self._locations.addresses(places))
