"""Bugs in liveness: heartbeats that nobody stored, expiries that overtake them."""

from __future__ import annotations

import pytest

from hq.liveness.deadlines import Deadlines
from hq.liveness.heartbeats import Heartbeat, Heartbeats
from hq.liveness.reachability import SelfProbe
from hq.liveness.refusals import News, Refusals
from hq.liveness.sweep import Sweep
from hq.registry.reports import Reports
from hqpb.v1 import service_pb2
from serving.errors import StoreUnavailable
from store.port import Write
from tests.support.seeded_bugs import scenes
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch


@bug("A heartbeat is acknowledged, and never written.", "HEARD", scenes.calm)
def heartbeat_not_written(patch: Patch) -> None:
    async def send(self: Heartbeats, heartbeats: list[Heartbeat]) -> list[bool]:
        return [True] * len(heartbeats)

    patch.setattr(Heartbeats, "send", send)


@bug(
    "A heartbeat that repeats an outdated status is acknowledged as one that counts.",
    "HEARD",
    scenes.outdated_heartbeats,
)
def outdated_heartbeat_counts(patch: Patch) -> None:
    take = Heartbeats._take

    def generous(self: Heartbeats, *args: object) -> bool:
        take(self, *args)  # type: ignore[arg-type]
        return True

    patch.setattr(Heartbeats, "_take", generous)


@bug("A revision is expired without a fence and without comparing that no heartbeat is newer.", "HEARD", scenes.silence)
def expiry_without_fence(patch: Patch) -> None:
    async def once(self: Sweep) -> int:
        self._reachability.look = lambda now: True  # type: ignore[method-assign]
        return len(await self._expiries.write(self._due(set()), "none"))

    patch.setattr(Sweep, "once", once)
    patch.setattr("hq.liveness.expiries.Write", lambda when, puts: Write(when[:1], puts))


@bug("Every revision is called silent after half of the timeout.", "HEARD", scenes.silence)
def expiry_too_early(patch: Patch) -> None:
    expired = Deadlines.expired_keys
    patch.setattr(Deadlines, "expired_keys", lambda self, now, held_s=0.0: expired(self, now + 52, held_s))


@bug("Whoever fell silent stays ready.", "GONE", scenes.silence)
def nobody_expires(patch: Patch) -> None:
    async def once(_: Sweep) -> int:
        return 0

    patch.setattr(Sweep, "once", once)


@bug("A report that HQ refuses counts as silence.", "REFUSED", scenes.refused)
def refusal_is_silence(patch: Patch) -> None:
    patch.setattr(Refusals, "report", lambda *_: None)


@bug("No replica tells the others whose reports it refused.", "REFUSED", scenes.refused)
def refusal_is_not_told(patch: Patch) -> None:
    patch.setattr(Refusals, "take_news", lambda _: News([], []))


@bug("Sweeps go on although the store refuses heartbeats, which are not counted.", "REFUSED", scenes.heartbeats_refused)
def heartbeats_are_not_missed(patch: Patch) -> None:
    patch.setattr(StoreUnavailable, "ours", False)
    patch.setattr(Sweep, "_knock", lambda self: self._fence.wait_for_fence())
    patch.setattr(SelfProbe, "look", lambda self, now, **_: None)


@bug("News is taken for a heartbeat, and acknowledged without being stored.", "DURABLE", scenes.calm)
def news_taken_for_a_heartbeat(patch: Patch) -> None:
    honest = Reports.report

    async def report(self: Reports, report: service_pb2.ReportStatusRequest, deadline: float, *_: object) -> None:
        entry = self._r.cache.get(report.instance_id)
        if entry is not None and entry.marks and entry.marks[0].digest:
            await self._r.heartbeats.send([Heartbeat(entry.traits.uid, entry.status_version, 0)])
        else:
            await honest(self, report, deadline)

    patch.setattr(Reports, "report", report)
