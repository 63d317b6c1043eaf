"""After any history, a client that follows a gateway ends with what the gateway knows."""

from __future__ import annotations

import asyncio
import json
from itertools import cycle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateways.consul.questions import ConsulError, read_question
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.targets import read_target
from tests.support.pictures import PictureBuilder, known, picture_of
from tests.unit.gateways.test_consul import Asking
from tests.unit.gateways.test_xds import CDS, EDS, Client, endpoints
from tests.unit.gateways.test_xds_delta import DeltaClient
from xdspb.v1 import xds_pb2 as pb

SERVICES = ("web", "db", "cart")
PUTS = st.tuples(
    st.just("put"), st.sampled_from(SERVICES), st.integers(0, 3), st.booleans(), st.sampled_from(["a", "b"])
)
DROPS = st.tuples(st.just("drop"), st.sampled_from(SERVICES), st.integers(0, 3), st.none(), st.none())
CHANGES = st.one_of(PUTS, DROPS)


def change(pictured: PictureBuilder, step: tuple[Any, ...]) -> None:
    what, service, number, is_ready, host = step
    key = ("east", f"{service}-{number}")
    if what == "put":
        address = f"10.0.{'ab'.index(host)}.{number}"
        pictured.put(known(key[1], service, is_ready=is_ready, host=address))
    elif key in pictured.picture.instances(service):
        pictured.drop(key)


def ready(pictured: PictureBuilder, service: str) -> list[str]:
    return [f"{one.host}:80" for one in pictured.picture.ready(service)]


WANTS = st.tuples(st.just("wants"), st.sets(st.sampled_from(SERVICES)))


@given(st.lists(st.one_of(CHANGES, WANTS), max_size=25))
def test_an_xds_client_ends_with_the_endpoints_that_there_are(steps: list[tuple[Any, ...]]) -> None:
    one, has, wanted = Client(picture_of()), dict[str, Any](), set[str]()
    for step in steps:
        if step[0] == "wants":
            wanted = step[1]
            found = one.wants(ResourceType.ENDPOINTS, *sorted(wanted))
        else:
            change(one.pictured, step)
            found = one.due()
        for assignment in found.get(ResourceType.ENDPOINTS, ()):
            has[assignment.cluster_name] = assignment
        has = {name: kept for name, kept in has.items() if name in wanted}
    # A request without any name is the first one's way to want everything; of endpoints it wants nothing.
    assert has.keys() == wanted
    for name, assignment in has.items():
        shown = [
            address for *_, addresses in endpoints({ResourceType.ENDPOINTS: [assignment]}) for address in addresses
        ]
        assert shown == ready(one.pictured, name)


COVERAGE = st.tuples(st.just("coverage"), st.sampled_from(["none", "east", "all"]))
RESTART = st.tuples(st.just("restart"), st.booleans())


@given(st.lists(st.one_of(CHANGES, WANTS, COVERAGE, RESTART), max_size=25))
def test_both_variants_of_xds_end_with_the_same_resources(steps: list[tuple[Any, ...]]) -> None:
    """Both clients want all clusters, and endpoints by name; gateways restart with or without what they knew."""
    pictured = picture_of()
    delta, whole, wanted = DeltaClient(pictured), WholeClient(pictured), set[str]()
    for step in [("wants", set()), *steps, ("coverage", "all")]:
        if step[0] == "coverage":
            is_complete = step[1] == "all"
            pictured.condition.is_known = step[1] != "none" or pictured.condition.is_known
            pictured.condition.unheard = frozenset() if is_complete else frozenset({"west"})
            pictured.look()
        elif step[0] == "restart":
            instances = [one for name in SERVICES for one in pictured.picture.instances(name).values()]
            pictured = PictureBuilder()
            pictured.condition.is_known = False
            pictured.look()
            before = [(dict(one.world[kind]), one) for one in (delta, whole) for kind in (EDS, CDS)]
            delta.connect(pictured)
            whole.connect(pictured)
            delta.wants(CDS)
            delta.wants(EDS, *wanted)
            whole.wants(wanted)
            assert before == [(dict(one.world[kind]), one) for one in (delta, whole) for kind in (EDS, CDS)]
            pictured.condition.is_known, pictured.condition.unheard = True, frozenset({"west"} if step[1] else ())
            pictured.put(*instances)
        elif step[0] == "wants":
            delta.wants(CDS) if CDS not in delta.greeted else None
            delta.wants(EDS, *step[1] - wanted, less=sorted(wanted - step[1]))
            wanted = step[1]
            whole.wants(wanted)
        else:
            change(pictured, step)
        delta.due()
        whole.due()
    assert delta.world[CDS] == whole.world[CDS]
    assert {*whole.world[CDS]} == {*pictured.picture.services}
    assert delta.world[EDS] == whole.world[EDS]
    assert delta.world[EDS].keys() == wanted


class WholeClient:
    """A state-of-the-world client that keeps what it was sent over one stream after another."""

    def __init__(self, pictured: PictureBuilder) -> None:
        self.world: dict[ResourceType, dict[str, Any]] = {EDS: {}, CDS: {}}
        self._names, self._has_asked = set[str](), False
        self.connect(pictured)

    def connect(self, pictured: PictureBuilder) -> None:
        self._client = Client(pictured)

    def wants(self, names: set[str]) -> None:
        self._names = names
        self.world[EDS] = {name: one for name, one in self.world[EDS].items() if name in names}
        version = {"version_info": "1"} if self._has_asked else {}
        if CDS not in self._client.names:
            self._take(self._client.wants(CDS, **version))
        self._take(self._client.wants(EDS, *sorted(names)))
        self._has_asked = True

    def due(self) -> None:
        self._take(self._client.due())

    def _take(self, found: dict[ResourceType, list[Any]]) -> None:
        if CDS in found:
            self.world[CDS] = {one.name: one for one in found[CDS]}
        self.world[EDS].update({one.cluster_name: one for one in found.get(EDS, ()) if one.cluster_name in self._names})


@given(st.lists(CHANGES, max_size=15), st.integers(1, 3))
def test_a_blocking_query_continues_at_any_gateway_without_a_gap(steps: list[tuple[Any, ...]], count: int) -> None:
    async def follow() -> None:
        gateways = [Asking(picture_of()) for _ in range(count)]
        shown: list[str] = []

        async def client() -> None:
            index = 0
            for ask in cycle(gateways):
                await asyncio.sleep(0)  # where one gateway knows of a change and another one does not yet, none waits
                said = await ask(f"health/service/web?passing&index={index}&wait=10m")
                index = int(dict(said.headers)[b"x-consul-index"])
                shown[:] = [f"{e['Service']['Address']}:{e['Service']['Port']}" for e in json.loads(said.body)]

        following = asyncio.create_task(client())
        for step in steps:
            for ask in gateways:
                change(ask.pictured, step)
                for _ in range(step[2]):  # a client that is sometimes slower than the changes, or than one gateway
                    await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert shown == ready(gateways[0].pictured, "web")
        assert sum(ask.indexes.waiting for ask in gateways) == 1
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert sum(ask.indexes.waiting for ask in gateways) == 0

    asyncio.run(follow())


def _status(method: str, path: str, query: bytes) -> int:
    try:
        read_question(method, path, query)
    except ConsulError as refused:
        return refused.status
    return 200


@given(st.sampled_from(["GET", "PUT", "HEAD", "X"]), st.text(max_size=60), st.binary(max_size=80))
def test_any_request_is_answered_or_refused_with_a_known_status(method: str, path: str, query: bytes) -> None:
    for prefix in ("", "/v1/", "/v1/health/service/", "/v1/catalog/node/"):
        assert _status(method, prefix + path, query) in (200, 400, 404, 405, 501)


@given(st.text(max_size=80))
def test_any_name_is_read_as_a_target_with_a_service_or_as_none(name: str) -> None:
    target = read_target(name)
    assert target is None or target.service


@given(st.binary(max_size=200))
def test_any_request_of_a_stream_is_taken_or_cannot_be_read(body: bytes) -> None:
    try:
        request = pb.DiscoveryRequest.FromString(body)
    except Exception:  # what protobuf raises; the transport answers it
        return
    one = Client(picture_of())
    one.stream.request(request)
    list(one.stream.due())
