"""Instances of all locations as scrape targets.

All locations or none: Prometheus drops targets that an answer lacks. A silent location's last good answer is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from federated.calls.lists import Lists, compile_find
from hqapi.prometheus_sd import ScrapeTarget, TargetQuery
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call

_TRUE = instance_pb2.CONDITION_STATUS_TRUE


class FederatedScrapeTargets:
    """Finds the targets."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    async def find(self, asked: TargetQuery, call: Call) -> AsyncIterator[Sequence[ScrapeTarget]]:
        """Raises LocationsSilent; InvalidRequest for an invalid name of a service."""
        request = pb.FindInstancesRequest()
        request.filter.service_id.extend(asked.services)
        if asked.only_ready:
            request.filter.readiness = pb.READINESS_FILTER_READY
        request.read.require_all_locations = request.read.allow_last_good = True
        while True:
            find = compile_find(request)
            answer = await self._lists.page(find, self._lists.ask(find, call))
            page = pb.FindInstancesResponse.FromString(answer.proto())
            yield [_target(instance) for instance in page.instances]
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


def _target(instance: instance_pb2.Instance) -> ScrapeTarget:
    meta, spec, status = instance.meta, instance.spec, instance.status
    return ScrapeTarget(
        meta.id,
        meta.service_id,
        meta.cluster,
        spec.node_name,
        sorted(meta.labels.items()),
        [revision.id for revision in status.revision if revision.ready.status == _TRUE],
        spec.allocation.host or spec.node_name,
        {port.name: port.number for port in spec.allocation.port},
    )
