"""The past on a page; empty where there is no recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from console.backends.asking import Trouble, good, troubles
from console.backends.history import HistoryClient
from console.site.visits import Visit
from console.views.instances import Moments
from console.views.timeline import MOST_EVENTS, ReadinessChart, TimeRange, order_marks, past_moments, readiness_chart
from historypb.v1 import history_pb2 as pb
from nannypb.v1 import service_pb2 as npb


@dataclass(frozen=True, slots=True)
class Past:
    """`chart` None: the recorder did not answer, and `troubles` say why.

    Attributes:
        more: there are older events.
        is_known: something of it is on record.
    """

    chart: ReadinessChart | None
    events: Sequence[Moments]
    links: Sequence[tuple[str, str, bool]]
    troubles: Sequence[Trouble]
    more: bool
    is_known: bool


async def past_of(
    recorder: HistoryClient | None,
    visit: Visit,
    service: str,
    address: Sequence[str],
    *,
    instance: str = "",
    cluster: str = "",
    orders: Sequence[npb.HistoryEntry] = (),
) -> Past | None:
    """The past of a service, or of one instance of it, over `?span=`; None: there is no recorder."""
    if recorder is None:
        return None
    range_ = TimeRange.ending(visit.query.get("span", ""), visit.now_s)
    counted, listed = await asyncio.gather(
        recorder.counts(
            service, instance, cluster, range_.since_s, min(range_.until_s, int(visit.now_s)), range_.step_s
        )
        if service
        else _nothing(),
        recorder.events(service, instance, cluster, range_.since_s, MOST_EVENTS),
    )
    events = good(listed, pb.ListEventsResponse())
    return Past(
        None
        if not service or isinstance(counted, Trouble)
        else readiness_chart(range_, counted.count, order_marks(range_, orders)),
        past_moments(events.event, is_of_one=bool(instance)),
        range_.links(*address),
        troubles(counted, listed),
        bool(events.next_page_token),
        any(one.kind != pb.EVENT_KIND_GAP for one in events.event),
    )


async def _nothing() -> pb.CountInstancesOverTimeResponse:
    return pb.CountInstancesOverTimeResponse()
