"""The client against real sockets: fail-over, retries, deadlines."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from hqclient.client import STRONG, Client, ClientSettings, HqApiError
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.clients.conftest import SETTINGS
from tests.clients.deeds import cut, hang, refuse
from tests.clients.fake_hq import FakeReplica, instance

Code = grpc.StatusCode
Replicas = list[FakeReplica]


async def eventually(condition: object) -> None:
    """Return when `condition()` holds; fail after half a minute."""
    assert callable(condition)
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_an_instance_created_can_be_read(client: Client) -> None:
    created = await client.create(instance("web-1"))
    answer = await client.get("web-1", fields=["meta"], read=STRONG)
    assert answer.instance.meta.version == created.instance.meta.version
    assert answer.sources[0].cluster == "test"


async def test_the_pages_of_a_find_are_read_to_the_end(client: Client, replicas: Replicas) -> None:
    await client.apply([instance(f"web-{n}") for n in range(5)])
    pages = [page async for page in client.find(pb.InstanceFilter(service_id=["web"]))]
    assert [len(page.instances) for page in pages] == [2, 2, 1]


async def test_a_read_goes_to_another_replica_when_one_dies(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    await replicas[0].stop()
    answer = await client.get("web-1")
    assert answer.sources[0].replica == replicas[1].name


async def test_a_write_goes_to_another_replica_when_one_refuses_connections(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    await replicas[0].stop()
    # Sent over a connection that is ending, its outcome would be unknown.
    await eventually(lambda: not client._pool._links[replicas[0].address]._is_ready())
    await client.delete("web-1")
    assert replicas[1].calls["DeleteInstance"] == 1


async def test_a_replica_that_came_back_is_preferred_again(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    await replicas[0].stop()
    await client.get("web-1")
    await replicas[0].restart()
    await eventually(lambda: not client._pool.replicas.all[0].is_set_aside)
    answer = await client.get("web-1")
    assert answer.sources[0].replica == replicas[0].name


async def test_a_read_is_repeated_after_a_cut(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    replicas[0].order("GetInstance", cut())
    assert (await client.get("web-1")).instance.meta.id == "web-1"


async def test_a_delete_that_was_cut_is_not_repeated(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    replicas[0].order("DeleteInstance", cut())
    with pytest.raises(HqApiError) as caught:
        await client.delete("web-1")
    assert caught.value.outcome_unknown
    assert [r.calls["DeleteInstance"] for r in replicas] == [1, 0]


async def test_a_delete_that_hq_surely_did_not_store_is_repeated_elsewhere(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    replicas[0].order("DeleteInstance", refuse(Code.UNAVAILABLE, "STORE_UNAVAILABLE", retry_delay_s=2.0))
    await client.delete("web-1")
    assert [r.calls["DeleteInstance"] for r in replicas] == [1, 1]


async def test_a_creation_that_was_stored_but_cut_is_repeated_under_the_same_request_id(
    client: Client, replicas: Replicas
) -> None:
    replicas[0].order("CreateInstance", cut())
    created = await client.create(instance("web-1"))
    assert created.instance.meta.id == "web-1"
    words = {request.request_id for r in replicas for request in r.requests["CreateInstance"]}
    assert len(words) == 1
    assert words != {""}


async def test_a_report_that_was_cut_is_repeated(client: Client, replicas: Replicas) -> None:
    replicas[0].order("ReportStatus", cut())
    await client.report("web-1", instance_pb2.RevisionStatus(id="v1"), uid=5, node="node-1")
    assert sum(r.calls["ReportStatus"] for r in replicas) == 2


async def test_becoming_the_reporter_is_not_repeated_after_a_cut(client: Client, replicas: Replicas) -> None:
    replicas[0].order("BeginReporting", cut())
    with pytest.raises(HqApiError, match="Socket closed"):
        await client.begin_reporting("web-1", "v1", node="node-1")


async def test_a_shortage_is_waited_out_as_long_as_hq_asks(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    replicas[0].order("DeleteInstance", refuse(Code.RESOURCE_EXHAUSTED, "STORE_FULL", retry_delay_s=0.2))
    began = time.monotonic()
    await client.delete("web-1")
    assert time.monotonic() - began >= 0.2


@pytest.mark.long
async def test_a_hung_replica_costs_a_read_only_part_of_its_time(client: Client, replicas: Replicas) -> None:
    await client.create(instance("web-1"))
    replicas[0].order("GetInstance", hang)
    answer = await client.get("web-1", timeout_s=8.0)
    assert answer.sources[0].replica == replicas[1].name


async def test_the_deadline_holds_over_all_tries(client: Client, replicas: Replicas) -> None:
    for replica in replicas:
        await replica.stop()
    began = time.monotonic()
    with pytest.raises(HqApiError) as caught:
        await client.get("web-1", timeout_s=0.5)
    assert time.monotonic() - began < 15.0, "without a deadline of its own it is the client's half a minute"
    assert caught.value.code is Code.UNAVAILABLE
    assert not caught.value.outcome_unknown


async def test_a_creation_whose_first_try_may_be_stored_is_never_called_undone(
    client: Client, replicas: Replicas
) -> None:
    replicas[0].order("CreateInstance", cut())
    replicas[1].order("CreateInstance", refuse(Code.PERMISSION_DENIED, "NOT_ALLOWED"))
    with pytest.raises(HqApiError) as caught:
        await client.create(instance("web-1"))
    assert caught.value.reason == "NOT_ALLOWED"
    assert caught.value.outcome_unknown
    assert not caught.value.nothing_stored


async def test_a_creation_is_called_repeated_only_if_an_earlier_try_may_be_stored(
    client: Client, replicas: Replicas
) -> None:
    said = []

    async def listen(context: Any) -> None:
        said.append(dict(context.invocation_metadata()).get("x-hq-repeated"))

    replicas[0].order("CreateInstance", cut(), refuse(Code.UNAVAILABLE, "STORE_UNAVAILABLE"))
    replicas[1].order("CreateInstance", listen, listen)
    for name in ("web-1", "web-2"):
        await client.create(instance(name))
    assert said == ["1", None]


async def test_an_error_that_stands_is_raised_at_once_with_its_details(client: Client, replicas: Replicas) -> None:
    created = await client.create(instance("web-1"))
    with pytest.raises(HqApiError) as caught:
        await client.delete("web-1", version=3)
    assert (caught.value.code, caught.value.reason) == (Code.ABORTED, "VERSION_CONFLICT")
    assert caught.value.current_version == created.instance.meta.version
    assert caught.value.endpoint == replicas[0].address


async def test_a_client_reads_its_own_writes_in_their_epoch(replicas: Replicas) -> None:
    addresses = [r.address for r in replicas]
    async with Client(addresses, read_your_writes=True, settings=SETTINGS) as client:
        await client.create(instance("web-1"))
        await client.get("web-1")
        second = await client.create(instance("web-2"))
        await client.get("web-2")
        asked = [q.read for r in replicas for q in r.requests["GetInstance"]][-1]
        assert (asked.min_version, asked.epoch) == (second.instance.meta.version, "e1")


async def test_own_writes_of_a_past_epoch_are_forgotten_and_the_read_succeeds(replicas: Replicas) -> None:
    async with Client([replicas[0].address], read_your_writes=True, settings=SETTINGS) as client:
        await client.create(instance("web-1"))
        await client.get("web-1")
        replicas[0].stored.epoch = "e2"
        assert (await client.get("web-1")).sources[0].epoch == "e2"
        assert not replicas[0].requests["GetInstance"][-1].HasField("read")


async def test_metadata_is_asked_for_anew_for_each_request(replicas: Replicas) -> None:
    tokens = iter(["one", "two"])
    seen = []

    async def note(context: grpc.aio.ServicerContext[object, object]) -> None:
        seen.append(dict(context.invocation_metadata() or ())["token"])

    replicas[0].order("CountInstances", note, note)
    async with Client([replicas[0].address], metadata=lambda: [("token", next(tokens))]) as client:
        await client.count()
        await client.count(by=pb.COUNT_GROUP_SERVICE)
    assert seen == ["one", "two"]


async def test_closing_a_client_ends_its_calls_with_an_error(client: Client, replicas: Replicas) -> None:
    replicas[0].order("DeleteInstance", hang)
    call = asyncio.create_task(client.delete("web-1"))
    await eventually(lambda: replicas[0].calls["DeleteInstance"])
    await client.close()
    with pytest.raises((HqApiError, RuntimeError)):
        await call


async def test_a_caller_who_is_cancelled_stays_cancelled(client: Client, replicas: Replicas) -> None:
    replicas[0].order("GetInstance", hang)
    call = asyncio.create_task(client.get("web-1"))
    await eventually(lambda: replicas[0].calls["GetInstance"])
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert replicas[1].calls["GetInstance"] == 0


async def test_a_closed_client_says_so(client: Client) -> None:
    await client.close()
    with pytest.raises(RuntimeError, match="closed"):
        await client.get("web-1")


@pytest.fixture
def frozen() -> Iterator[str]:
    """The address of somebody whose kernel takes connections and who never says a word, like a stopped process."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@pytest.mark.parametrize("seed", range(4))
async def test_a_frozen_replica_holds_up_no_call_until_its_deadline(replicas: Replicas, frozen: str, seed: int) -> None:
    replicas[0].stored.put(instance("web-1"))
    patient = ClientSettings(connect_timeout_s=600.0)
    addresses = [frozen, replicas[0].address]
    async with asyncio.timeout(60):
        for ask in ("get", "find", "count"):
            async with Client(addresses, timeout_s=600.0, settings=patient, rng=random.Random(seed)) as client:
                if ask == "get":
                    await client.get("web-1")
                elif ask == "find":
                    assert [page async for page in client.find()]
                else:
                    await client.count()


async def test_where_all_replicas_are_slow_to_connect_they_are_waited_for(
    replicas: Replicas,
) -> None:
    settings = ClientSettings(retry=SETTINGS.retry, connect_timeout_s=0.5, first_connect_s=0.0)
    async with Client([r.address for r in replicas], timeout_s=30.0, settings=settings) as client:
        replicas[0].stored.put(instance("web-1"))
        assert (await client.get("web-1")).instance.meta.id == "web-1"
