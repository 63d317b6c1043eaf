"""What nanny makes of an installation that fails it."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from hqcli.exits import Exit
from hqpb.v1 import instance_pb2 as model
from nannyctl.session import NannyctlSession
from tests.clients.deeds import cut, hang
from tests.clients.fake_hq import FakeReplica, instance
from tests.clients.nanny.uploads import start
from tests.clients.process import ended


@pytest.mark.long
async def test_an_installation_that_is_late_is_away_and_no_agent_is_blamed(replicas: list[FakeReplica]) -> None:
    slow = replicas[0]
    slow.order("CountInstances", hang)
    session = NannyctlSession({}, {}, (), timeout_s=3.0)
    [asked] = await session.each({"default": (slow.address,)}, lambda _, client: client.count())
    next_step = "See `hqctl status`, or raise --timeout"
    assert asked.exit is Exit.UNAVAILABLE
    assert asked.error == f"{slow.address} did not respond in time. {next_step}"


async def test_something_that_is_no_hq_is_told_with_a_next_step(replicas: list[FakeReplica]) -> None:
    other = replicas[0]
    other.order("CountInstances", cut(grpc.StatusCode.UNIMPLEMENTED))
    session = NannyctlSession({}, {}, (), timeout_s=3.0)
    [asked] = await session.each({"default": (other.address,)}, lambda _, client: client.count())
    next_step = f"Is {other.address} the gRPC address of an HQ? --installation or HQ_SERVER names others"
    assert asked.error == f"Socket closed. {next_step}"


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True])
async def test_an_hq_that_is_lost_while_somebody_waits_is_away_and_no_agent_is_blamed(
    replicas: list[FakeReplica], hangs: bool
) -> None:
    lost = replicas[0]
    waited_for = instance("web-1")
    waited_for.spec.revision.add(id="r9", target=model.REVISION_TARGET_READY)
    lost.stored.put(waited_for)
    waiting = await start("status", "--service", "web", "--wait", "2s", "--timeout", "2", server=lost.address)
    async with asyncio.timeout(30):
        while not lost.calls["WatchInstances"]:
            await asyncio.sleep(0.02)
    if hangs:
        lost.order("FindInstances", hang)
    else:
        await lost.stop()
    done = await ended(waiting)
    assert done.code == Exit.UNAVAILABLE, done.out
    assert lost.address in done.err
