"""Pages of decisions: in order, and none reads more of the record than it shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from historypb.v1 import history_pb2 as pb
from recorder.archive import Archive
from recorder.decided import DecisionRow, ReadersOf
from recorder.decisions_api import DecisionsApi
from recorder.gaps import Gap, server_name
from recorder.record_readers import RecordReaders
from serving.calls.methods import Call
from serving.clock import SystemClock


class CountingArchive(Archive):
    """Attributes:
    read: how many decisions it was asked for.
    """

    read = 0

    def decisions(self, since_ms: int, until_ms: int) -> Iterator[tuple[str, DecisionRow]]:
        for found in super().decisions(since_ms, until_ms):
            self.read += 1
            yield found


async def test_a_page_reads_no_more_than_it_shows(tmp_path: Path) -> None:
    archive, clock = CountingArchive(tmp_path, 30, 1 << 30), SystemClock()
    rows = [DecisionRow(1_000 + n, "nanny", "web", f"{n}", "", "", readers=ReadersOf(is_open=True)) for n in range(500)]
    gaps = [Gap(server_name("nanny"), 1_100, 1_110, "away")]
    archive.write(2_000, [], gaps, [], {}, rows)
    listing, request = DecisionsApi(archive, clock, RecordReaders(clock)), pb.ListDecisionsRequest(page_size=100)
    pages = list[list[str]]()
    while not pages or request.page_token:
        answer = pb.ListDecisionsResponse.FromString((await listing._list(request, Call())).proto())
        pages.append([one.event or "gap" for one in answer.decision])
        request.page_token = answer.next_page_token
        assert archive.read <= 100 * len(pages) + 1
        archive.read = 0
    expected = [*map(str, range(499, 99, -1)), "gap", *map(str, range(99, -1, -1))]
    assert [one for page in pages for one in page] == expected
