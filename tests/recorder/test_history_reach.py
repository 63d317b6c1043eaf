"""What a caller with a scope is told of the past, and what it cannot hold up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from historypb.v1 import history_pb2 as pb
from recorder.archive import Archive, Moment
from recorder.day_file import DAY_MS
from recorder.gaps import Gap
from recorder.history_api import HistoryApi
from recorder.observed import Row
from recorder.record_readers import RecordReaders
from serving.calls.methods import Call
from serving.clock import SystemClock
from serving.errors import DeadlineExceeded
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ, Role
from tests.recorder.test_archive import put

DAY = 20_000 * DAY_MS


def call_of(deadline: float | None = None, name: str = "ann", **scope: Patterns) -> Call:
    """A reader's."""
    call = Call(deadline)
    call.set_access(Access(Identity(name, ProofKind.TOKEN, 0.0), READ, {Role.READER: (Scope(**scope),)}))
    return call


async def ask(archive: Any, request: Any, call: Call) -> Any:
    name = request.DESCRIPTOR.name.removesuffix("Request")
    method: Any = next(
        m
        for m in HistoryApi(archive, SystemClock(), RecordReaders(SystemClock())).methods()
        if m.path.endswith(f"/{name}")
    )
    return getattr(pb, f"{name}Response").FromString((await method.run(request, call)).proto())


async def test_locations_out_of_reach_are_not_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "record", 30, 1 << 30)
    gaps = [Gap("fra", DAY + 5, None, "fra-1 is away"), Gap("ams", DAY + 6, None, "ams-1 is away")]
    archive.write(DAY + 10, [put(DAY + 10, "web-1")], gaps, ["ams"], {})
    here, everywhere = call_of(clusters=Patterns(["ams"])), call_of()
    now, since = Timestamp(), Timestamp()
    now.FromMilliseconds(DAY + 100)
    since.FromMilliseconds(DAY)
    events = pb.ListEventsRequest()
    moment = pb.FindInstancesAtRequest(time=now)
    counts = pb.CountInstancesOverTimeRequest(service_id="web", since=since, until=now, step=Duration(seconds=1))
    for request in (events, moment, counts):
        assert "fra" not in str(await ask(archive, request, here)), request
    assert (await ask(archive, moment, here)).gap == "ams: ams-1 is away"
    assert (await ask(archive, moment, everywhere)).gap == "fra: fra-1 is away"
    assert {one.cluster for one in (await ask(archive, events, everywhere)).event} == {"ams", "fra"}


class SlowArchive:
    """Reads that do not end until told."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.reading = 0

    def at(self, *_: object) -> Moment:
        self.reading += 1
        self.go_on.wait(20)
        return Moment([], 0, "")


@pytest.mark.parametrize("leaves", [False, True], ids=["waits", "leaves"])
async def test_a_caller_leaves_threads_to_others_and_to_the_recording(leaves: bool) -> None:
    """Also a caller that leaves and comes again, while its first question is still being read."""
    archive, now = SlowArchive(), Timestamp(seconds=1)
    api = HistoryApi(archive, SystemClock(), RecordReaders(SystemClock()))  # type: ignore[arg-type]
    method: Any = next(m for m in api.methods() if m.path.endswith("/FindInstancesAt"))
    calls = list[asyncio.Task[Any]]()

    async def ask_often(name: str, most: int) -> None:
        for _ in range(50):
            calls.append(asyncio.create_task(method.run(pb.FindInstancesAtRequest(time=now), call_of(name=name))))
            async with asyncio.timeout(20):
                await asyncio.to_thread(lambda: None)
                while not archive.reading:
                    await asyncio.sleep(0)
                await asyncio.to_thread(lambda: None)
            if leaves:
                calls[-1].cancel()
                await asyncio.gather(calls[-1], return_exceptions=True)
        assert archive.reading == most

    try:
        for most, name in enumerate(("ann", "bob", "eve"), 1):
            await ask_often(name, min(most, 2))
    finally:
        archive.go_on.set()
        await asyncio.gather(*calls, return_exceptions=True)


class EndlessArchive:
    """A record without an end."""

    def gaps(self, *_: object) -> list[Gap]:
        return []

    def events(self, *_: object) -> Iterator[tuple[str, Row]]:
        number = 0
        while True:
            number += 1
            yield f"day/{number}", put(DAY, "web-1")


async def test_a_search_of_the_record_ends_with_its_callers_deadline() -> None:
    call = call_of(SystemClock().now() + 0.05, services=Patterns(["mail"]))
    with pytest.raises(DeadlineExceeded, match="name a service"):
        await ask(EndlessArchive(), pb.ListEventsRequest(), call)
