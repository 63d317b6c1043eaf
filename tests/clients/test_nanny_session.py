"""What nanny makes of an installation that fails it."""

from __future__ import annotations

from clients.nanny.exits import Exit
from clients.nanny.session import Session
from tests.clients.deeds import hang
from tests.clients.fake_hq import FakeReplica


async def test_an_installation_that_is_late_is_away_and_no_agent_is_blamed(replicas: list[FakeReplica]) -> None:
    slow = replicas[0]
    slow.order("CountInstances", hang)
    session = Session({}, {}, (), timeout_s=0.3)
    [asked] = await session.each({"default": (slow.address,)}, lambda _, client: client.count())
    assert (asked.exit, asked.error) == (Exit.UNAVAILABLE, f"{slow.address} did not answer in time")
