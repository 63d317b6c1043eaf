"""Instances as scrape targets: from memory; the spec is decoded for the allocation, the rest is known undecoded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from hq.epoch_trust import EpochTrust
from hq.loading import Loading
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.memory.query import Query
from hq.registry.reads import with_turns
from hq.validation import check_id, require
from hqapi.prometheus_sd import ScrapeTarget, TargetQuery
from hqpb.v1 import service_pb2
from serving.calls.methods import Call
from serving.limiting.turns import Turns


class ScrapeTargets:
    """Finds the targets."""

    def __init__(self, cache: Cache, loading: Loading, trust: EpochTrust) -> None:
        self._cache, self._loading, self._trust, self._turns = cache, loading, trust, Turns()

    async def find(self, asked: TargetQuery, _call: Call) -> AsyncIterator[Sequence[ScrapeTarget]]:
        """Raises NotLoaded, EpochDoubted; InvalidRequest for what cannot be the name of a service."""
        require(*(check_id(service, "service") for service in asked.services))
        wanted = service_pb2.InstanceFilter(service_id=asked.services)
        if asked.only_ready:
            wanted.readiness = service_pb2.READINESS_FILTER_READY
        self._loading.check()
        self._trust.check()  # on an error Prometheus goes on with the targets that it had
        async for portion in with_turns(self._turns, self._cache.matching(Query(wanted))):
            yield [_target(entry) for entry in portion]


def _target(entry: Entry) -> ScrapeTarget:
    traits = entry.traits
    allocation = entry.spec().allocation if traits.allocated else None
    return ScrapeTarget(
        traits.id,
        traits.service,
        traits.cluster,
        traits.node,
        traits.labels,
        [mark.id for mark in entry.marks if mark.ready],
        (allocation.host if allocation else "") or traits.node,
        {port.name: port.number for port in allocation.port} if allocation else {},
    )
