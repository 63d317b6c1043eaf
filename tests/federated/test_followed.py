"""Lists that are asked for often are answered from memory, and are the same as if the locations had been asked."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.request
from collections.abc import Sequence

import jwt
import pytest
from google.protobuf import json_format

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors, ids
from tests.federated.conftest import RunningGateway, StartPair
from tests.federated.fake_location import FakeLocation
from tests.federated.federated_process import write_config
from tests.support.sample_instances import eventually
from tests.support.token_issuer import AUDIENCE, bearer

TOKEN = (bearer(jwt.encode({"sub": "mine", "aud": AUDIENCE}, "k" * 32)),)


async def followed(gateway: RunningGateway, request: pb.FindInstancesRequest | None = None) -> None:
    """Ask until memory answers."""
    before = gateway.gateway.followed.answers

    async def is_followed() -> bool:
        await gateway.stub.FindInstances(request or pb.FindInstancesRequest())
        return gateway.gateway.followed.answers > before

    await eventually(is_followed)


def asked(*locations: FakeLocation) -> int:
    return sum(replica.calls["FindInstances"] for location in locations for replica in location.replicas)


def bare(answer: pb.FindInstancesResponse) -> pb.FindInstancesResponse:
    """Without what every answer says of its own moment."""
    for source in answer.sources:
        for field in ("staleness", "replica", "version"):
            source.ClearField(field)
    return answer


async def by_asking(gateway: RunningGateway, *, page_size: int = 0) -> pb.FindInstancesResponse:
    """The same list, from the locations: what requires an answer of all of a demanded freshness is never remembered."""
    request = pb.FindInstancesRequest(page_size=page_size)
    request.read.consistency = pb.READ_CONSISTENCY_STRONG
    return bare(await gateway.stub.FindInstances(request))


async def test_a_list_that_is_asked_for_often_is_answered_from_memory_and_is_up_to_date(
    start_pair: StartPair,
) -> None:
    east, west, gateway = await start_pair(east="a c", west="b")
    await followed(gateway)
    before = asked(east, west)
    for _ in range(20):
        answer = await gateway.stub.FindInstances(pb.FindInstancesRequest())
        assert ids(answer) == [("a", "east"), ("b", "west"), ("c", "east")]
        assert sorted(source.cluster for source in answer.sources) == ["east", "west"]
    assert asked(east, west) == before
    west.put("aa")
    east.remove("c")

    async def is_shown() -> bool:
        found = ids(await gateway.stub.FindInstances(pb.FindInstancesRequest()))
        return found == [("a", "east"), ("aa", "west"), ("b", "west")]

    await eventually(is_shown)
    assert asked(east, west) == before


@pytest.mark.long
async def test_on_random_histories_memory_and_the_locations_say_the_same(start_pair: StartPair) -> None:
    rng = random.Random(7)
    east, west, gateway = await start_pair(east="a b c", west="c d")
    east.bookmarks_s = west.bookmarks_s = 1.0
    await followed(gateway)
    for step in range(60):
        if step in (20, 35):
            await configure(gateway, (east,) if step == 20 else (east, west))
        location = rng.choice((east, west))
        name = rng.choice("abcdefgh")
        if name in location.instances and rng.random() < 0.4:
            location.remove(name)
        else:
            location.put(name, f"svc-{rng.randrange(9)}")
        if rng.random() < 0.1 and not 20 <= step < 35:  # then nobody would be left
            location.oldest_token = location.version
            await location.replicas[0].stop()
            await location.replicas[0].restart()
        wanted = await eventually(lambda: same(gateway))
        found = await asyncio.to_thread(over_http, gateway.addresses.http)
        assert bare(found) == wanted
        await rng.choice((with_a_token, in_pages, masked))(gateway, wanted)
    assert gateway.gateway.followed.answers > 60


async def configure(gateway: RunningGateway, locations: Sequence[FakeLocation]) -> None:
    """The configuration names these, and the gateway has seen it."""
    write_config(gateway.config, {one.name: one.addresses for one in locations}, "4s")
    names = {one.name for one in locations}
    await eventually(lambda: gateway.gateway.locations.by_name.keys() == names)


async def with_a_token(gateway: RunningGateway, wanted: pb.FindInstancesResponse) -> None:
    answers = gateway.gateway.followed.answers
    assert bare(await gateway.stub.FindInstances(pb.FindInstancesRequest(), metadata=TOKEN)) == wanted
    assert gateway.gateway.followed.answers == answers


async def in_pages(gateway: RunningGateway, wanted: pb.FindInstancesResponse) -> None:
    found, token = list[model.Instance](), ""
    while True:
        page = await gateway.stub.FindInstances(pb.FindInstancesRequest(page_size=3, page_token=token))
        found += page.instances
        if not (token := page.next_page_token):
            break
    assert found == list(wanted.instances)


async def masked(gateway: RunningGateway, wanted: pb.FindInstancesResponse) -> None:
    answer = await gateway.stub.FindInstances(pb.FindInstancesRequest(field_mask={"paths": ["meta.service_id"]}))
    shown = [(one.meta.id, one.meta.cluster, one.meta.service_id) for one in wanted.instances]
    assert [(one.meta.id, one.meta.cluster, one.meta.service_id) for one in answer.instances] == shown
    assert not any(one.meta.version for one in answer.instances)


def over_http(address: str) -> pb.FindInstancesResponse:
    """The list as JSON."""
    url = f"http://{address}/hq.v1.InstanceService/FindInstances"
    request = urllib.request.Request(url, b"{}", {"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return json_format.ParseDict(json.loads(answer.read()), pb.FindInstancesResponse())


async def same(gateway: RunningGateway) -> pb.FindInstancesResponse | None:
    """What memory answers, once it is what the locations answer."""
    before = gateway.gateway.followed.answers
    found = bare(await gateway.stub.FindInstances(pb.FindInstancesRequest()))
    is_remembered = gateway.gateway.followed.answers > before
    return found if is_remembered and found == await by_asking(gateway) else None


async def test_while_a_location_is_away_its_last_instances_are_shown_only_to_callers_that_allow_it(
    start_pair: StartPair,
) -> None:
    _east, west, gateway = await start_pair(east="a", west="b", timeout="1s")
    await followed(gateway)
    west.put("bb")

    async def is_shown() -> bool:
        return len((await gateway.stub.FindInstances(pb.FindInstancesRequest())).instances) == 3

    await eventually(is_shown)
    await west.stop()

    async def is_told() -> bool:
        answer = await gateway.stub.FindInstances(pb.FindInstancesRequest())
        return bool(errors(answer.sources)["west"]) and ids(answer) == [("a", "east")]

    await eventually(is_told)
    request = pb.FindInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    answer = await gateway.stub.FindInstances(request)
    assert ids(answer) == [("a", "east"), ("b", "west"), ("bb", "west")]
    assert {source.cluster: source.stale for source in answer.sources} == {"east": False, "west": True}


@pytest.mark.parametrize(
    "request_",
    [
        pb.FindInstancesRequest(read=pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)),
        pb.FindInstancesRequest(filter=pb.InstanceFilter(cluster=["east"])),
        pb.FindInstancesRequest(field_mask={"paths": ["meta"]}),
        pb.FindInstancesRequest(page_size=1),
    ],
    ids=["strong", "one location", "masked", "paged"],
)
async def test_a_request_that_memory_cannot_answer_exactly_is_sent_to_the_locations(
    start_pair: StartPair, request_: pb.FindInstancesRequest
) -> None:
    east, _west, gateway = await start_pair(east="a", west="b")
    for _ in range(20):
        await gateway.stub.FindInstances(request_)
    assert gateway.gateway.followed.answers == 0
    assert asked(east) >= 20


async def test_a_caller_with_a_token_gets_what_the_locations_give_to_this_token(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a", west="b")
    await followed(gateway)
    answers = gateway.gateway.followed.answers
    for replica in (*east.replicas, *west.replicas):
        replica.denies = True
    with pytest.raises(Exception, match="not yours"):
        await gateway.stub.FindInstances(pb.FindInstancesRequest(), metadata=TOKEN)
    assert gateway.gateway.followed.answers == answers
