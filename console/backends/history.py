"""The recorder as the console asks it: what was known of instances, and when."""

from __future__ import annotations

from console.backends.asking import Trouble
from console.backends.controllers import ControllerClient
from historypb.v1 import history_pb2 as pb


class HistoryClient(ControllerClient):
    """The past of services and instances. Times are Unix times."""

    path = "/history.v1.HistoryService/"

    async def events(
        self, service: str, instance: str, cluster: str, since_s: int, most: int
    ) -> pb.ListEventsResponse | Trouble:
        """Return the events, newest first. Empty names narrow nothing."""
        request = pb.ListEventsRequest(service_id=service, instance_id=instance, cluster=cluster, page_size=most)
        request.since.seconds = since_s
        return await self._ask(request, pb.ListEventsResponse)

    async def counts(
        self, service: str, instance: str, cluster: str, since_s: int, until_s: int, step_s: int
    ) -> pb.CountInstancesOverTimeResponse | Trouble:
        """Counts of instances, and of ready ones, at equal steps of time."""
        request = pb.CountInstancesOverTimeRequest(service_id=service, instance_id=instance, cluster=cluster)
        request.since.seconds, request.until.seconds, request.step.seconds = since_s, until_s, step_s
        return await self._ask(request, pb.CountInstancesOverTimeResponse)
