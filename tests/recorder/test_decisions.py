"""Decisions of CMS, Nanny and Wall-E are recorded with their inputs, shown to those who may see them, and replayed."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from cms.replay import Repetition, repeat
from historypb.v1 import history_pb2 as pb
from historypb.v1.history_stubs import HistoryServiceStub
from nannypb.v1 import service_pb2 as npb
from recorder.archive import Archive
from recorder.decided import ReadersOf
from recorder.server import RecorderProcess
from recorder.servers import CmsSource, NannySource, ServerProcesses, ServerSource, WalleSource
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ, Role
from tests.cms.cloud import service_of
from tests.console.fake_walle import FakeWalle
from tests.console.fakes import NEW, FakeNanny, serving
from tests.rig.cms_run import CmsRun
from tests.support.gateway_process import ROOT, Program
from wallepb.v1 import host_pb2 as hpb

_PATIENCE_S = 30.0
_SECRET = "hunter2"


class Recording(HistoryServiceStub):
    """The calls of a recorder, and its address."""

    def __init__(self, address: str, channel: aio.Channel) -> None:
        super().__init__(channel)
        self.address = address


@asynccontextmanager
async def recording(directory: Path, *sources: ServerSource) -> AsyncIterator[Recording]:
    """A recorder that follows these servers."""
    shared = ServerContext(Limits(), SystemClock(), RequestIds("recorder"), None)
    archive = Archive(directory / "record", 30, 1 << 30)
    server = RecorderProcess(archive, {}, shared, Addresses("127.0.0.1:0", "127.0.0.1:0"), 0.1, sources)
    task = asyncio.create_task(server.serve())
    try:
        address = (await asyncio.wait_for(asyncio.shield(server.listening), 20)).grpc
        async with aio.insecure_channel(address) as channel:
            yield Recording(address, channel)
    finally:
        server.stop()
        await asyncio.gather(task, return_exceptions=True)


async def decisions(
    history: HistoryServiceStub, is_whole: Callable[[list[pb.Decision]], bool], **which: Any
) -> list[pb.Decision]:
    """Decisions on record, earliest first, once they are complete."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            found = list((await history.ListDecisions(pb.ListDecisionsRequest(**which))).decision)[::-1]
            if is_whole(found):
                return found
            await asyncio.sleep(0.1)


def has(event: str, subject: str = "") -> Callable[[list[pb.Decision]], bool]:
    return lambda found: any(one.event == event and one.subject == subject for one in found)


async def repetition(history: HistoryServiceStub) -> Repetition:
    """The recorded ledger, decided again."""
    return repeat([entry async for part in history.ReadLedger(pb.ReadLedgerRequest()) for entry in part.entry])


async def replay(*words: str) -> tuple[int, str]:
    """Exit code and all output of `cms replay`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cms.main", "replay", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("", "proto", "clients"))},
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def check_replay_command(directory: Path, recorder: str) -> None:
    """What it says of two tasks of which one waited for the other."""
    code, out = await replay("--recorder", recorder)
    assert (code, out.partition(", ")[2]) == (0, "2 grants: all as recorded\n")
    (directory / "none.yaml").write_text("[{name: web, service: web, maxUnavailable: '0'}]")
    code, out = await replay("--recorder", recorder, "--budgets", str(directory / "none.yaml"))
    assert code == 0
    assert "2 tasks; 2 come otherwise" in out
    assert re.search(r"t2 +reboot .* never\n", out)
    (directory / "wrong.yaml").write_text("[{name: web, floor: 3}]")
    code, out = await replay("--recorder", recorder, "--budgets", str(directory / "wrong.yaml"))
    assert code == 2
    assert "[0].floor: unknown field; there are name, " in out


@pytest.mark.long
async def test_decisions_of_the_cms_are_recorded_with_their_inputs_and_replayed(tmp_path: Path) -> None:
    async with service_of(4) as (_, cms):
        address = cms.server.listening.result().grpc
        async with recording(tmp_path, CmsSource(ServerProcesses(["127.0.0.1:9", address]))) as history:
            await decisions(history, lambda found: any(one.HasField("gap_until") for one in found), server="cms")
            await cms.ask("t1", "h0", comment=_SECRET)
            await cms.becomes("t1", "ok")
            await cms.ask("t2", "h1")
            await decisions(history, has("asked", "t2"))
            await cms.call_connect("Freeze", {"reason": "year end", "by": "ann"}, "CmsAdminService")
            await decisions(history, has("stopped granting"))
            await cms.call("DELETE", "/t1")
            await decisions(history, has("ended", "t1"))
            await cms.call_connect("Unfreeze", {"reason": "over", "by": "ann"}, "CmsAdminService")
            await decisions(history, has("granted", "t2"))
            found = await decisions(history, bool, node="h0", subject="t1")
            found = [one for one in found if one.event]
            assert [one.event for one in found] == ["asked", "granted", "ended"]
            granted = found[1]
            assert list(granted.based_on) == ["budget default:web: 4 of 4 available, floor 3, needs 1"]
            assert (list(granted.service_id), granted.by) == (["web"], "wall-e")
            paged = await history.ListDecisions(pb.ListDecisionsRequest(server="cms", page_size=2))
            assert len(paged.decision) == 2
            assert paged.next_page_token
            await check_replay_command(tmp_path, history.address)
            made = await repetition(history)
            assert not made.differing
            assert made.grants == 2
    kept = b"".join(path.read_bytes() for path in (tmp_path / "record").iterdir())
    assert _SECRET.encode() not in kept


@pytest.mark.long
async def test_orders_to_nanny_and_repairs_of_walle_are_recorded_once(tmp_path: Path) -> None:
    nanny, walle = FakeNanny(), FakeWalle()
    async with serving(nanny.methods()) as of_nanny, serving(walle.methods()) as of_walle:
        sources = NannySource(ServerProcesses([of_nanny]), 0.1), WalleSource(ServerProcesses([of_walle]), 0.1)
        async with recording(tmp_path, *sources) as history:
            for server in ("nanny", "walle"):
                await decisions(history, lambda found: any(one.HasField("gap_until") for one in found), server=server)
            entry = npb.HistoryEntry(author="ann", what="target PREPARED", snapshot_id=NEW, comment="OPS-8")
            entry.time.FromMilliseconds(int(time.time() * 1_000) + 5)
            nanny.history.insert(0, entry)
            nanny.web.version += 1
            switched = walle.project.fuse.switching.add(automation="healing", off=True, by="bob", reason="storm")
            switched.time.FromMilliseconds(int(time.time() * 1_000) + 5)
            over = walle.hosts[3].host.history.add(
                kind=hpb.OPERATION_KIND_REBOOT, outcome=hpb.OUTCOME_DONE, by="automation", check="ssh"
            )
            over.output = over.message = _SECRET
            over.ended.FromMilliseconds(int(time.time() * 1_000) + 5)
            found = await decisions(history, lambda found: sum(bool(one.event) for one in found) == 3)
            told = {(one.server, one.subject, one.event, one.by, one.message) for one in found if one.event}
            assert told == {
                ("nanny", "web", "target PREPARED", "ann", f"snapshot {NEW[:12]}; OPS-8"),
                ("walle", "search", "healing switched off", "bob", "storm"),
                ("walle", "host-03", "reboot done", "automation", "check ssh"),
            }
    kept = b"".join(path.read_bytes() for path in (tmp_path / "record").iterdir())
    assert _SECRET.encode() not in kept


@pytest.mark.parametrize(
    ("readers", "services", "nodes", "may"),
    [
        (ReadersOf(), None, None, True),
        (ReadersOf(), ["web"], None, False),
        (ReadersOf(is_open=True), ["web"], None, True),
        (ReadersOf(owners=("ann",), nodes=("n1",)), ["web"], None, True),
        (ReadersOf(owners=("bob",), nodes=("n1",)), ["web"], None, False),
        (ReadersOf(nodes=("n1",)), None, ["n1"], True),
        (ReadersOf(nodes=("n1", "n2")), None, ["n1"], False),
        (ReadersOf(instances=(("web", "n1", "ams"),)), ["web"], ["n*"], True),
        (ReadersOf(instances=(("web", "n1", "ams"), ("mail", "n1", "ams"))), ["web"], None, False),
        (ReadersOf(services=("web",)), ["web"], None, True),
        (ReadersOf(services=("mail",)), ["web"], None, False),
    ],
)
def test_the_past_is_for_who_may_read_the_present(
    readers: ReadersOf, services: list[str] | None, nodes: list[str] | None, may: bool
) -> None:
    scope = Scope(Patterns(services) if services else None, Patterns(nodes) if nodes else None)
    access = Access(Identity("ann", ProofKind.TOKEN, 0.0), READ, {Role.READER: (scope,)})
    assert ReadersOf.parse(readers.text()) == readers
    assert readers.may_read(access) is may


class RecordedRun(CmsRun):
    """A run of real processes under faults with a recorder beside them."""

    async def _start(self, stack: AsyncExitStack) -> None:
        await super()._start(stack)
        of_cms = ",".join(seat.process.grpc for seat in self._seats)
        flags = ("--location", f"ams={self._hq.grpc}", "--cms", of_cms, "--dir", str(self.directory / "record"))
        where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        recorder = Program("recorder.main", ("serve", *where, *flags), self.directory / "recorder.log")
        await recorder.start()
        stack.push_async_callback(recorder.terminate)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_decisions_recorded_under_faults_are_replayed(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, seed=3)
    await run.run(20.0)
    archive = Archive(tmp_path / "record", 30, 1 << 30)
    chunks = archive.ledger_chunks(0, int(time.time() * 1_000) + 1)
    made = repeat(entry for chunk in chunks for entry in chunk.entries())
    assert not made.differing, made.differing[0]
    assert made.grants >= 2
