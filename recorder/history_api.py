"""history.v1.HistoryService: what may be read of the past, and what is answered."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from google.protobuf import timestamp_pb2

from historypb.v1 import history_pb2 as pb
from recorder.archive import Archive
from recorder.day_file import Selection
from recorder.gaps import Gap
from recorder.observed import Row
from recorder.record_readers import RecordReaders
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.clock import Clock
from serving.durations import milliseconds
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.access import Access
from serving.rights.reach import Of, narrowed_reach
from serving.rights.rules import READ

SERVICE: Final = ServiceTable("history.v1.HistoryService")
_SEEN: Final = narrowed_reach(Of.INSTANCE)
_EVENTS: Final = 100
_PAGE: Final = 1_000
_STEPS: Final = 1_000


class HistoryApi:
    """The service. A caller is shown of the past only what it may read of the present."""

    def __init__(self, archive: Archive, clock: Clock, readers: RecordReaders) -> None:
        self._archive, self._clock, self._readers = archive, clock, readers

    def methods(self) -> list[Method]:
        """All calls; each only reads."""
        return [
            SERVICE.unary(pb.ListEventsRequest, self._list_events, READ, _SEEN),
            SERVICE.unary(pb.FindInstancesAtRequest, self._find_at, READ, _SEEN),
            SERVICE.unary(pb.CountInstancesOverTimeRequest, self._count, READ, _SEEN),
        ]

    async def _list_events(self, request: pb.ListEventsRequest, call: Call) -> Answer:
        since_ms, until_ms = span_of(request, self._clock)
        size = page_size(request.page_size, _EVENTS)
        which, until = _selection(request), self._readers.until(call)

        def read() -> pb.ListEventsResponse:
            answer, last = pb.ListEventsResponse(), ""
            found = self._gaps(since_ms, until_ms, which.cluster, call.access)
            gaps = [(gap_token(gap), gap.since_ms, gap_event(gap, since_ms)) for gap in found]
            changes = (
                (token, row.at_ms, row_event(row))
                for token, row in self._readers.in_time(self._archive.events(which, since_ms, until_ms), until)
                if call.access.covers(row.service, row.node, cluster=row.cluster)
            )
            is_after = not request.page_token
            for token, _, event in heapq.merge(changes, gaps, key=lambda item: -item[1]):
                if is_after and len(answer.event) == size:
                    answer.next_page_token = last
                    break
                if is_after:
                    answer.event.append(event)
                    last = token
                is_after = is_after or token == request.page_token
            if not is_after:
                raise invalid("page_token", "is of no event on record: begin with the first page")
            return answer

        return MessageAnswer(await self._readers.run(read, call))

    async def _find_at(self, request: pb.FindInstancesAtRequest, call: Call) -> Answer:
        if not request.HasField("time"):
            raise invalid("time", "say when")
        time_ms = milliseconds("time", request.time)
        size = page_size(request.page_size, _PAGE)

        def read() -> pb.FindInstancesAtResponse:
            moment = self._archive.at(time_ms, _selection(request), _sees(call.access))
            seen = [
                one
                for one in moment.instances
                if call.access.covers(one.meta.service_id, one.spec.node_name, cluster=one.meta.cluster)
                and f"{one.meta.cluster}/{one.meta.id}" > request.page_token
            ]
            page = seen[:size]
            last = f"{page[-1].meta.cluster}/{page[-1].meta.id}" if len(page) < len(seen) else ""
            answer = pb.FindInstancesAtResponse(instance=page, next_page_token=last, gap=moment.gap)
            answer.age.FromMilliseconds(moment.age_ms)
            return answer

        return MessageAnswer(await self._readers.run(read, call))

    async def _count(self, request: pb.CountInstancesOverTimeRequest, call: Call) -> Answer:
        if not request.service_id:
            raise invalid("service_id", "name a service")
        since_ms, until_ms = span_of(request, self._clock)
        step_ms = milliseconds("step", request.step) or 60_000
        if step_ms < 1_000 or (until_ms - since_ms) // step_ms >= _STEPS:
            raise invalid("step", f"at least a second, and at most {_STEPS} steps from since to until")
        if not call.access.covers_service(request.service_id):
            return MessageAnswer(pb.CountInstancesOverTimeResponse())
        times = range(since_ms, until_ms + 1, step_ms)

        def read() -> pb.CountInstancesOverTimeResponse:
            which = Selection(request.service_id, request.instance_id, cluster=request.cluster)
            counts = self._archive.counts(which, times)
            gaps = self._gaps(since_ms, until_ms, request.cluster, call.access)
            answer = pb.CountInstancesOverTimeResponse()
            before_ms = since_ms
            for time_ms, (instances, ready, least_ready) in zip(times, counts, strict=True):
                in_gap = any(g.since_ms <= time_ms and (g.until_ms is None or before_ms < g.until_ms) for g in gaps)
                answer.count.add(
                    time=timestamp(time_ms), instances=instances, ready=ready, in_gap=in_gap, least_ready=least_ready
                )
                before_ms = time_ms
            return answer

        return MessageAnswer(await self._readers.run(read, call))

    def _gaps(self, since_ms: int, until_ms: int, cluster: str, access: Access) -> list[Gap]:
        """Gaps of locations within the caller's reach; others are not mentioned."""
        sees = _sees(access)
        return [gap for gap in self._archive.gaps(since_ms, until_ms, cluster) if sees(gap.cluster)]


def span_of(request: Any, clock: Clock) -> tuple[int, int]:
    """The span [since, until) of a request, in milliseconds. Raises InvalidRequest."""
    since_ms = milliseconds("since", request.since) if request.HasField("since") else 0
    until_ms = milliseconds("until", request.until) if request.HasField("until") else clock.wall_ms() + 1
    if since_ms >= until_ms:
        raise invalid("since", "is not before until")
    return since_ms, until_ms


def row_event(row: Row) -> pb.Event:
    """A change as the API shows it."""
    return pb.Event(
        time=timestamp(row.at_ms),
        kind=row.kind,  # type: ignore[arg-type]
        cluster=row.cluster,
        instance_id=row.instance,
        service_id=row.service,
        node=row.node,
        version=row.version,
        reason=row.reason,
        message=row.message,
    )


def gap_event(gap: Gap, since_ms: int) -> pb.Event:
    """A gap as the API shows it, not beginning before `since_ms`."""
    event = pb.Event(
        time=timestamp(max(gap.since_ms, since_ms)),
        kind=pb.EVENT_KIND_GAP,
        cluster=gap.cluster,
        reason="Gap",
        message=gap.reason,
    )
    if gap.until_ms is not None:
        event.until.CopyFrom(timestamp(gap.until_ms))
    return event


def _sees(access: Access) -> Callable[[str], bool]:
    """Whether a caller may know of a location."""
    return lambda cluster: not access.is_checked or bool(access.within(cluster).grants)


def _selection(request: Any) -> Selection:
    return Selection(request.service_id, request.instance_id, request.node, request.cluster)


def page_size(asked: int, default: int) -> int:
    """How many go on a page. Raises InvalidRequest."""
    if asked < 0:
        raise invalid("page_size", "is negative")
    return min(asked or default, _PAGE)


def gap_token(gap: Gap) -> str:
    """Where a page goes on after a gap."""
    return f"gap/{gap.cluster}/{gap.since_ms}"


def timestamp(ms: int) -> timestamp_pb2.Timestamp:
    """A time of the API."""
    stamp = timestamp_pb2.Timestamp()
    stamp.FromMilliseconds(ms)
    return stamp
