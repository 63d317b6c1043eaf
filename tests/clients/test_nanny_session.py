"""What nanny makes of an installation that fails it."""

from __future__ import annotations

import grpc
import pytest

from hqcli.exits import Exit
from nannyctl.session import NannyctlSession
from tests.clients.deeds import cut, hang
from tests.clients.fake_hq import FakeReplica


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
