"""How long ago instances were heard, in bulk. Nothing is decoded."""

from __future__ import annotations

from hq.liveness.deadlines import RevisionKey
from hq.liveness.orders import Orders
from hq.liveness.queues import Queues
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.memory.fanout import Fanout
from hq.memory.query import Query
from hq.registry.continuation import PageToken, encode
from hq.registry.reads import page_start, with_turns
from hq.registry.source import Freshness
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.limiting.turns import Turns

_PAGE = 50_000


class Silences:
    """The call ListSilences."""

    def __init__(
        self,
        cache: Cache,
        fanout: Fanout,
        deadlines: Queues[RevisionKey],
        clock: Clock,
        freshness: Freshness,
        report_interval_s: float,
        orders: Orders,
    ) -> None:
        self._cache, self._fanout, self._deadlines, self._clock = cache, fanout, deadlines, clock
        self._freshness, self._report_interval_s, self._turns = freshness, report_interval_s, Turns()
        self._orders = orders

    async def list(
        self, query: Query, page_size: int, token: str, read: service_pb2.ReadOptions, deadline: float | None
    ) -> service_pb2.ListSilencesResponse:
        """A page. Raises InvalidRequest (another filter's token), EpochChanged, and what `wait_until_fresh` raises."""
        await self._freshness.wait_until_fresh(read, deadline)
        source = self._freshness.source()
        after = page_start(self._cache, query, token) if token else ""
        answer = service_pb2.ListSilencesResponse(sources=[source.message()], changed_version=self._fanout.changed)
        answer.report_interval.FromMilliseconds(round(self._report_interval_s * 1000))
        most = min(page_size or _PAGE, _PAGE)
        async for portion in with_turns(self._turns, self._cache.matching(query, after)):
            for entry in portion:
                if len(answer.silences) == most:
                    last = answer.silences[-1].instance_id
                    answer.next_page_token = encode(PageToken(source.epoch, query.digest, last))
                    return answer
                answer.silences.append(self._silence(entry))
        return answer

    def _silence(self, entry: Entry) -> service_pb2.InstanceSilence:
        """Return the silence of the ready revision that was heard from last."""
        deadlines, now = self._deadlines, self._clock.now()
        told = service_pb2.InstanceSilence(instance_id=entry.traits.id, uid=entry.traits.uid)
        keys = (RevisionKey(entry.traits.id, mark.id) for mark in entry.marks if mark.ready)
        known = [unheard_s for key in keys if (unheard_s := deadlines.of(key).unheard_s(key, now)) is not None]
        if known:
            told.silent_ms = int(min(known) * 1000) + 1
        if deadlines.others:
            own = [mark.liveness[0] for mark in entry.marks if mark.ready and mark.liveness is not None]
            told.report_interval_ms = max(own, default=0)
        told.node_suspended = self._orders.suspension(entry.traits.node) is not None
        return told
