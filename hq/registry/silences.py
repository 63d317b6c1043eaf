"""How long ago instances were heard, in bulk. Nothing is decoded."""

from __future__ import annotations

from hq.liveness.deadlines import RevisionKey
from hq.memory.entry import Entry
from hq.memory.query import Query
from hq.registry.continuation import PageToken, encode
from hq.registry.reads import page_start, with_turns
from hq.registry.source import Freshness
from hq.replica import Replica
from hqpb.v1 import service_pb2

_PAGE = 50_000


class Silences:
    """The call ListSilences."""

    def __init__(self, replica: Replica, freshness: Freshness) -> None:
        self._replica, self._freshness = replica, freshness

    async def list(
        self, query: Query, page_size: int, token: str, read: service_pb2.ReadOptions, deadline: float | None
    ) -> service_pb2.ListSilencesResponse:
        """One page. Raises InvalidRequest for a token of another filter, EpochChanged, and what `demanded` raises."""
        await self._freshness.demanded(read, deadline)
        r, source = self._replica, self._freshness.source()
        after = page_start(r, query, token) if token else ""
        answer = service_pb2.ListSilencesResponse(sources=[source.message()], changed_version=r.fanout.changed)
        answer.report_interval.FromMilliseconds(round(r.config.report_interval_s * 1000))
        most = min(page_size or _PAGE, _PAGE)
        async for portion in with_turns(r.cache.matching(query, after)):
            for entry in portion:
                if len(answer.silences) == most:
                    last = answer.silences[-1].instance_id
                    answer.next_page_token = encode(PageToken(source.epoch, query.digest, last))
                    return answer
                answer.silences.append(self._silence(entry))
        return answer

    def _silence(self, entry: Entry) -> service_pb2.InstanceSilence:
        """Of the ready revision that was heard last."""
        deadlines, now = self._replica.liveness.tracker.deadlines, self._replica.clock.now()
        told = service_pb2.InstanceSilence(instance_id=entry.traits.id, uid=entry.traits.uid)
        keys = (RevisionKey(entry.traits.id, mark.id) for mark in entry.marks if mark.ready)
        known = [unheard_s for key in keys if (unheard_s := deadlines.unheard_s(key, now)) is not None]
        if known:
            told.silent_ms = int(min(known) * 1000) + 1
        return told
