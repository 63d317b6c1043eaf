"""`hq-recorder` over a real HQ: what it says of the past, what a stop leaves, and who may read it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from historypb.v1 import history_pb2 as pb
from historypb.v1.history_stubs import HistoryServiceStub
from hqcli.exits import Exit
from tests.support.gateway_process import ROOT, Program, Registry
from tests.support.sample_instances import eventually

_PATIENCE_S = 30.0


@asynccontextmanager
async def recorder_process(
    directory: Path, hq: Registry, number: int = 1, *, is_killed: bool = False
) -> AsyncIterator[Program]:
    """A recorder of the location `ams`. `is_killed`: at the end, by SIGKILL."""
    flags = ("--location", f"ams={hq.grpc}", "--dir", str(directory / "record"))
    recorder = Program(
        "recorder.main",
        ("serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags),
        directory / f"recorder-{number}.log",
    )
    try:
        await recorder.start()
        yield recorder
    finally:
        await (recorder.kill() if is_killed else recorder.terminate())


@asynccontextmanager
async def recording(
    directory: Path, hq: Registry, number: int = 1, *, is_killed: bool = False
) -> AsyncIterator[HistoryServiceStub]:
    """The calls of one."""
    async with (
        recorder_process(directory, hq, number, is_killed=is_killed) as recorder,
        aio.insecure_channel(recorder.grpc) as channel,
    ):
        yield HistoryServiceStub(channel)


@pytest.fixture
async def hq(tmp_path: Path) -> AsyncIterator[Registry]:
    registry = Registry(tmp_path, cluster="ams")
    try:
        await registry.start()
        yield registry
    finally:
        await registry.kill()


async def events(history: HistoryServiceStub, wanted: int, **which: Any) -> list[pb.Event]:
    """Events without gaps, earliest first, once there are so many."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            answer = await history.ListEvents(pb.ListEventsRequest(**which))
            found = [event for event in answer.event if event.kind != pb.EVENT_KIND_GAP]
            if len(found) >= wanted:
                return found[::-1]
            await asyncio.sleep(0.1)


async def follow(history: HistoryServiceStub, hq: Registry) -> None:
    """Return when everything from now on is an event of its own: what a recorder finds at its start is one."""
    await hq.put("first", "another")
    await events(history, 1, instance_id="first")


async def until_last(history: HistoryServiceStub, kinds: set[pb.EventKind]) -> list[pb.EventKind]:
    """All kinds of events of web, once the last is one of these. What happens at once may be one event."""
    wanted = 1
    while (found := [one.kind for one in await events(history, wanted, service_id="web")])[-1] not in kinds:
        wanted = len(found) + 1
    return found


async def at(history: HistoryServiceStub, seconds: float, **which: Any) -> pb.FindInstancesAtResponse:
    """What was known then."""
    when = Timestamp()
    when.FromNanoseconds(int(seconds * 1e9))
    return await history.FindInstancesAt(pb.FindInstancesAtRequest(time=when, **which))


async def test_history_has_what_happened_and_the_registry_as_of_a_time(tmp_path: Path, hq: Registry) -> None:
    async with recording(tmp_path, hq) as history:
        await hq.put("web-1")
        await until_last(history, {pb.EVENT_KIND_CREATED, pb.EVENT_KIND_READY})
        both_known = time.time()
        await asyncio.sleep(0.01)
        await hq.report("web-1", is_ready=False)
        await until_last(history, {pb.EVENT_KIND_NOT_READY})
        await hq.delete("web-1")
        kinds = await until_last(history, {pb.EVENT_KIND_DELETED})
        assert kinds[0] == pb.EVENT_KIND_CREATED
        assert kinds[-2:] == [pb.EVENT_KIND_NOT_READY, pb.EVENT_KIND_DELETED]
        then = await at(history, both_known)
        assert [one.meta.id for one in then.instance] == ["web-1"]
        assert not (await at(history, time.time())).instance
        assert not (await at(history, both_known, service_id="other")).instance


@pytest.mark.long
@pytest.mark.parametrize("is_killed", [False, True])
async def test_changes_during_a_stop_are_dated_when_found_after_a_gap(
    tmp_path: Path, hq: Registry, *, is_killed: bool
) -> None:
    await hq.put("web-1")
    async with recording(tmp_path, hq, is_killed=is_killed) as history:
        await events(history, 1)
    await asyncio.sleep(0.01)
    stopped = time.time()
    await hq.delete("web-1")
    await hq.put("web-2")
    began_again = time.time()
    async with recording(tmp_path, hq, 2) as history:
        found = {event.instance_id: event for event in (await events(history, 3))[-2:]}
        assert {id_: event.kind for id_, event in found.items()} == {
            "web-1": pb.EVENT_KIND_DELETED,
            "web-2": pb.EVENT_KIND_CREATED,
        }
        assert all(event.time.ToNanoseconds() / 1e9 > began_again and not event.version for event in found.values())
        then = await at(history, stopped)
        assert [one.meta.id for one in then.instance] == ["web-1"]  # as far as it is known
        assert "was not running" in then.gap
        everything = (await history.ListEvents(pb.ListEventsRequest())).event
        gaps = [event for event in everything if event.kind == pb.EVENT_KIND_GAP]
        assert any("was not running" in gap.message for gap in gaps)


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of 2 MiB. Skips the test where nobody may mount one."""
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(directory)], check=False)
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to mount")
async def test_a_file_system_that_is_full_ends_recording_and_says_so_and_nothing_else(
    tmp_path: Path, hq: Registry
) -> None:
    with small_disk(tmp_path / "record") as disk:
        async with recorder_process(tmp_path, hq) as recorder, aio.insecure_channel(recorder.grpc) as channel:
            history = HistoryServiceStub(channel)
            await hq.put("web-1")
            await events(history, 1, instance_id="web-1")

            async def is_full() -> bool:
                return "\nhq_recorder_stopped 1" in (await recorder.get("/metrics"))[1]

            with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while filler.write(b"x" * 4_096):
                    pass
            await hq.put("web-2")
            await eventually(is_full, _PATIENCE_S)
            assert [one.instance_id for one in await events(history, 1, service_id="web")][:1] == ["web-1"]
            (disk / "filler").unlink()
            await events(history, 1, instance_id="web-2")
            assert not await is_full()
            everything = (await history.ListEvents(pb.ListEventsRequest())).event
            gaps = [event.message for event in everything if event.kind == pb.EVENT_KIND_GAP]
            assert any("full" in message or "nothing could be written" in message for message in gaps), gaps


@pytest.mark.long
async def test_pages_show_each_event_once_and_an_unknown_page_token_is_refused(tmp_path: Path, hq: Registry) -> None:
    async with recording(tmp_path, hq) as history:
        await follow(history, hq)
        for number in range(3):
            await hq.put(f"web-{number}")
        await events(history, 6, service_id="web")
        until = Timestamp()
        until.GetCurrentTime()
        whole = (await history.ListEvents(pb.ListEventsRequest(service_id="web", until=until))).event
        paged: list[pb.Event] = []
        request = pb.ListEventsRequest(service_id="web", until=until, page_size=2)
        while True:
            answer = await history.ListEvents(request)
            paged.extend(answer.event)
            if not answer.next_page_token:
                break
            request.page_token = answer.next_page_token
        assert paged == list(whole)
        with pytest.raises(aio.AioRpcError, match="page_token: is of no event on record"):
            await history.ListEvents(pb.ListEventsRequest(page_token="xyz"))


@pytest.mark.long
async def test_a_time_out_of_range_is_refused_by_the_name_of_its_field(tmp_path: Path, hq: Registry) -> None:
    before, beyond = Timestamp(seconds=4_102_444_800, nanos=-1), Timestamp(seconds=1 << 40)
    async with recording(tmp_path, hq) as history:
        for wrong in (before, beyond):
            with pytest.raises(aio.AioRpcError, match="time: "):
                await history.FindInstancesAt(pb.FindInstancesAtRequest(time=wrong))
            with pytest.raises(aio.AioRpcError, match="since: "):
                await history.ListEvents(pb.ListEventsRequest(since=wrong))
            with pytest.raises(aio.AioRpcError, match="until: "):
                await history.ListEvents(pb.ListEventsRequest(until=wrong))
        span = Duration(seconds=1, nanos=-1)
        with pytest.raises(aio.AioRpcError, match="step: "):
            await history.CountInstancesOverTime(pb.CountInstancesOverTimeRequest(service_id="web", step=span))


@pytest.mark.long
async def test_counts_over_time_follow_readiness(tmp_path: Path, hq: Registry) -> None:
    async with recording(tmp_path, hq) as history:
        began = int(time.time())
        await hq.put("web-1")
        await hq.put("web-2", is_ready=False)
        request = pb.CountInstancesOverTimeRequest(service_id="web")
        request.since.FromSeconds(began)
        request.until.FromSeconds(began + 3_600)
        request.step.FromSeconds(3_600)

        async def follow() -> bool:
            first, last = (await history.CountInstancesOverTime(request)).count
            return (first.instances, last.instances, last.ready) == (0, 2, 1)

        await eventually(follow)


async def hqctl(*words: str) -> tuple[int, str, str]:
    """Exit code, output and complaints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hqctl.main", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("", "proto", "clients"))},
        cwd=ROOT,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.long
async def test_people_ask_by_hqctl(tmp_path: Path, hq: Registry) -> None:
    async with recorder_process(tmp_path, hq) as recorder:
        async with aio.insecure_channel(recorder.grpc) as channel:
            await follow(history := HistoryServiceStub(channel), hq)
            await hq.put("web-1")
            await events(history, 2, instance_id="web-1")
        code, out, _ = await hqctl("history", "events", "web", "--since", "5m", "--recorder", recorder.grpc)
        assert code == 0
        assert re.search(r"created +web-1 +web +node-web-1", out), out
        code, out, _ = await hqctl("history", "find", "web", "--at", "0s", "--recorder", recorder.grpc, "-o", "json")
        assert [one["meta"]["id"] for one in json.loads(out)["instance"]] == ["web-1"]
        code, out, _ = await hqctl("find", "web", "--at", "0s", "--recorder", recorder.grpc)
        assert re.search(r"^web-1 +web +node-web-1 ", out, re.MULTILINE), out
        code, out, err = await hqctl("get", "web-1", "web-9", "--at=0s", "--recorder", recorder.grpc)
        assert code == Exit.NOT_FOUND
        assert re.search(r"^web-1 +web +node-web-1 ", out, re.MULTILINE), out
        assert "instance web-9 was not known at 2" in err
    code, _, err = await hqctl("history", "events", "--recorder", recorder.grpc, "--timeout", "2s")
    assert code == Exit.UNAVAILABLE
    assert "the recorder at" in err
    code, _, err = await hqctl("history", "find", "--at", "yesterday")
    assert code == Exit.USAGE
    assert "03:10" in err
