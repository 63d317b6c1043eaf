"""activate over real supervisors: a reader that asks again and again never finds fewer ready than the floor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.instancectl.conftest import NewCtl, new_ctl
from tests.clients.instancectl.supervised import NODE, instance, revision
from tests.clients.nanny.uploads import nanny
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

__all__ = ["new_ctl"]
pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
TRUE = model.CONDITION_STATUS_TRUE


async def ready_now(client: Client) -> list[str]:
    """The revision of each instance that is ready with what it should be."""
    return [
        wanted.id
        async for page in client.find(pb.InstanceFilter(service_id=["svc"]))
        for one in page.instances
        for wanted in one.spec.revision
        if wanted.target == model.REVISION_TARGET_READY
        if any(status.id == wanted.id and status.ready.status == TRUE for status in one.status.revision)
    ]


@asynccontextmanager
async def lowest(client: Client) -> AsyncIterator[list[int]]:
    """How many were ready, asked every 50 ms."""
    found: list[int] = []

    async def read() -> None:
        while True:
            found.append(len(await ready_now(client)))
            await asyncio.sleep(0.05)

    reader = asyncio.create_task(read())
    yield found
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)


@pytest.mark.long
async def test_a_switch_goes_one_by_one_and_a_revision_that_exits_at_once_stops_it_and_is_rolled_back(
    replica: ReplicaProcess, client: Client, new_ctl: NewCtl
) -> None:
    for number in range(3):
        revisions = (revision("r1"), revision("r2", ready=False), revision("bad", "exit 1", ready=False))
        await client.create(instance(*revisions, instance_id=f"i-{number}"))
        await new_ctl(f"ctl-{number}", "--instance", f"i-{number}", "--node", NODE, "--server", replica.grpc).start()

    async def all_run() -> bool:
        return await ready_now(client) == ["r1"] * 3

    await eventually(all_run)
    async with lowest(client) as counts:
        done = await nanny("activate", "r2", "--service", "svc", "--min-ready-time", "1s", server=replica.grpc)
        assert (done.code, await ready_now(client)) == (0, ["r2"] * 3), done.err
        done = await nanny(
            # It counts as ready while it runs, and the report of its end waits a second: 2 s are too few.
            *("activate", "bad", "--service", "svc", "--min-ready-time", "30s", "--timeout-ready", "5s"),
            server=replica.grpc,
        )
        assert done.code == 8
        assert "not ready: did not become ready within 5 s" in done.err
        assert "run the same command again. To go back: nanny rollback --service svc --from bad --to r2" in done.err
        done = await nanny(
            *("rollback", "--service", "svc", "--from", "bad", "--to", "r2", "--min-ready-time", "0s"),
            server=replica.grpc,
        )
        assert done.code == 0
        await eventually(lambda: counts and counts[-1] == 3)
    assert min(counts) == 2
