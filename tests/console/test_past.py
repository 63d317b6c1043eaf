"""What the pages say of the past: a picture and a table from a recorder, and what it does not know."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from console.views.timeline import TimeRange, readiness_chart
from historypb.v1 import history_pb2 as pb
from hqpb.v1 import instance_pb2 as ipb
from recorder.archive import Archive
from recorder.gaps import Gap
from recorder.observed import Row
from recorder.server import RecorderProcess
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from tests.console.chromium import chromium, needs_chromium, screen
from tests.console.fakes import FakeNanny, serving
from tests.console.scene import HOSTILE, Cloud, cloud, instance


@asynccontextmanager
async def recorder_of(directory: Path, rows: Sequence[Row], gaps: Sequence[Gap] = ()) -> AsyncIterator[str]:
    """The address of a recorder that has these rows."""
    shared = ServerContext(Limits(), SystemClock(), RequestIds("recorder"), None)
    archive = Archive(directory / "record", 30, 1 << 30)
    archive.write(shared.clock.wall_ms(), rows, gaps, ("test",), {})
    server = RecorderProcess(archive, {}, shared, Addresses("127.0.0.1:0", "127.0.0.1:0"), grace_s=0.1)
    task = asyncio.create_task(server.serve())
    try:
        yield (await asyncio.wait_for(asyncio.shield(server.listening), 20)).grpc
    finally:
        server.stop()
        await asyncio.gather(task, return_exceptions=True)


def recorded(ago_s: float, id_: str, kind: int, *, ready: bool, message: str = "") -> Row:
    made = instance(id_, "web", "node-0")
    made.meta.cluster = "test"
    made.status.ready.status = ipb.CONDITION_STATUS_TRUE if ready else ipb.CONDITION_STATUS_FALSE
    at_ms = int((time.time() - ago_s) * 1_000)
    reason = "" if ready else "Crashed"
    return Row(at_ms, kind, "test", id_, "web", "node-0", 5, ready, reason, message, made.SerializeToString())


ROWS = (
    (3_000, "web-0", pb.EVENT_KIND_CREATED, True, ""),
    (3_000, "web-1", pb.EVENT_KIND_CREATED, True, ""),
    (2_000, "web-1", pb.EVENT_KIND_NOT_READY, False, HOSTILE),
    (1_990, "web-1", pb.EVENT_KIND_READY, True, ""),
)


@asynccontextmanager
async def recorded_cloud(directory: Path, *gaps: Gap) -> AsyncIterator[Cloud]:
    rows = [recorded(ago_s, id_, kind, ready=ready, message=text) for ago_s, id_, kind, ready, text in ROWS]
    nanny = FakeNanny()
    nanny.history[1].time.seconds = int(time.time()) - 1_000
    async with (
        recorder_of(directory, rows, gaps) as address,
        serving(nanny.methods()) as of_nanny,
        cloud(
            recorder=address,
            nanny=of_nanny,
        ) as made,
    ):
        yield made


async def test_a_service_shows_what_happened_before_as_picture_and_table(tmp_path: Path) -> None:
    async with recorded_cloud(tmp_path) as at:
        page = (await at.browser.get("/services/web?span=6h")).text
        assert re.search(r'<svg [^>]*aria-label="2 of 2 instances ready at the end; fewest: 1, at ', page)
        assert '<polygon class="up"' in page
        assert "web-1 not ready" in page
        assert "crashed" in page
        assert HOSTILE not in page
        assert page.count('class="order"') == 1  # what was ordered, with who
        assert "ann: target ACTIVE" in page
        assert 'href="/services/web?span=24h"' in page
        assert "Nothing of it is on record" not in page


async def test_an_instance_shows_its_own_past(tmp_path: Path) -> None:
    async with recorded_cloud(tmp_path) as at:
        page = (await at.browser.get("/instances/test/web-1")).text
        assert "fewest: 0, at " in page
        assert "1 of 1 instance ready at the end" in page
        other = (await at.browser.get("/instances/test/web-0")).text
        assert "fewest" not in other


async def test_a_gap_is_shown_as_a_gap(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1_000)
    gap = Gap("test", now_ms - 1_500_000, now_ms - 1_200_000, "HQ could not be followed: away")
    async with recorded_cloud(tmp_path, gap) as at:
        page = (await at.browser.get("/services/web?span=1h")).text
        assert 'class="unheard"' in page
        assert "something was not heard" in page
        assert "HQ could not be followed: away" in page
        assert (await at.browser.get("/services/none")).status_code == 404  # a gap is not of this service


async def test_a_page_says_that_the_recorder_is_away_and_shows_everything_else() -> None:
    async with cloud(recorder="127.0.0.1:9") as at:
        page = await at.browser.get("/services/web")
        assert page.status_code == 200
        assert "The recorder does not answer" in page.text
        assert "<b>4</b> of 4" in page.text


async def test_without_a_recorder_the_page_says_how_to_start_one() -> None:
    async with cloud() as at:
        assert "hq-recorder serve --dir DIR" in (await at.browser.get("/services/web")).text


def test_the_picture_stands_still_between_two_steps() -> None:
    first, second = TimeRange.ending("6h", 1_000_000_001), TimeRange.ending("6h", 1_000_000_001 + 30)
    assert first == second
    assert TimeRange.ending("nonsense", 1_000_000_001) == first
    assert first.x(first.since_s) == 0
    assert first.x(first.until_s) == 960


@pytest.mark.parametrize("counts", [(), ((0, 0),), ((3, 3),), ((3, 3), (0, 3), (3, 4))])
def test_any_counts_make_a_picture(counts: Sequence[tuple[int, int]]) -> None:
    range_ = TimeRange.ending("1h", 1_000_000_001)
    listed = [pb.Count(ready=ready, least_ready=ready, instances=all_) for ready, all_ in counts]
    for number, one in enumerate(listed):
        one.time.seconds = range_.since_s + number * range_.step_s
    chart = readiness_chart(range_, listed)
    assert len(chart.rows) == len(counts)
    for corner in chart.ready.split():
        x, y = map(float, corner.split(","))
        assert 0 <= x <= 960
        assert 0 <= y <= 120


def test_a_recovery_in_the_last_moment_is_drawn_as_a_step_and_not_as_a_slope() -> None:
    range_ = TimeRange.ending("1h", 1_000_000_001)
    listed = [pb.Count(ready=ready, least_ready=ready, instances=3) for ready in (0, 0, 3)]
    for number, one in enumerate(listed):
        one.time.seconds = range_.since_s + number * range_.step_s
    *_, before, top, end = readiness_chart(range_, listed).ready.split()
    assert (before.split(",")[0], before.split(",")[1]) == (top.split(",")[0], "120")
    assert (end.split(",")[0], end.split(",")[1]) == (top.split(",")[0], "120")


@needs_chromium
@pytest.mark.long
async def test_axe_finds_nothing_of_any_severity_on_pages_with_a_past_nor_on_the_editor(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1_000)
    gap = Gap("test", now_ms - 1_500_000, now_ms - 1_200_000, "HQ could not be followed: away")
    async with recorded_cloud(tmp_path, gap) as at, chromium() as browser, screen(browser, at.base, 375) as shown:
        for path in ("/services/web", "/instances/test/web-1", "/services/web/edit"):
            await shown.open(path)
            assert await shown.barriers() == [], path
            assert not await shown.is_too_wide(), path
        assert shown.faults == []
