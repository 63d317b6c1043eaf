"""xDS over a picture: what clients are sent, when, and what they refuse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateways.picture.addresses import Addressing, LeftOut
from gateways.picture.hosts import HostResolver
from gateways.xds.ads import SINGLE_PATHS, Ads
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.resources import Resources
from gateways.xds.stream import LISTEN, MOST_NAMES, XdsCounts
from gateways.xds.subscriptions import Subscriptions
from gateways.xds.targets import XdsTarget, read_target
from serving.calls.methods import Call, Duplex
from serving.encoding.jsonio import MOST_ITEMS
from serving.errors import InvalidRequest
from tests.support.pictures import PictureBuilder, known, picture_of
from xdspb.v1 import xds_pb2 as pb

CDS, EDS, LDS, RDS = ResourceType.CLUSTER, ResourceType.ENDPOINTS, ResourceType.LISTENER, ResourceType.ROUTES
MESSAGES: dict[ResourceType, Any] = {
    CDS: pb.Cluster,
    EDS: pb.ClusterLoadAssignment,
    LDS: pb.Listener,
    RDS: pb.RouteConfiguration,
}


class Client:
    """A client of one stream, which acknowledges every answer unless told otherwise."""

    def __init__(self, pictured: PictureBuilder, **options: Any) -> None:
        self.pictured, self.counts = pictured, XdsCounts()
        self.addressing = Addressing(pictured.picture.hosts)
        self.resources = Resources(pictured.picture, self.addressing)
        self.stream = Subscriptions(self.resources, self.counts, **options)
        self.told = 0  # how often an answer became due
        pictured.picture.listen(self._changed)
        self.nonces: dict[ResourceType, str] = {}
        self.names: dict[ResourceType, Sequence[str]] = {}

    def _changed(self, services: Collection[str]) -> None:
        self.told += self.stream.on_services_changed(services)

    def wants(self, kind: ResourceType, *names: str, **more: Any) -> dict[ResourceType, list[Any]]:
        """Subscribe to these names; return the answers that are due, by type."""
        self.names[kind] = names
        nonce = self.nonces.get(kind, "")
        request = pb.DiscoveryRequest(type_url=kind.value, resource_names=names, response_nonce=nonce, **more)
        self.stream.request(request, self.pictured.picture.coverage.locations)
        return self.due()

    def due(self) -> dict[ResourceType, list[Any]]:
        """Take the answers that are due, and acknowledge each at once."""
        found: dict[ResourceType, list[Any]] = {}
        for body in self.stream.due():
            response = pb.DiscoveryResponse.FromString(body)
            kind = ResourceType(response.type_url)
            self.nonces[kind] = response.nonce
            assert {resource.type_url for resource in response.resources} <= {kind.value}
            found[kind] = [MESSAGES[kind].FromString(resource.value) for resource in response.resources]
            self.stream.request(
                pb.DiscoveryRequest(
                    type_url=kind.value,
                    resource_names=self.names.get(kind, ()),
                    response_nonce=response.nonce,
                    version_info=response.version_info,
                )
            )
        return found

    def wants_all(self, name: str, place: str = "") -> dict[ResourceType, list[Any]]:
        """Subscribe like a client: listener, routes, cluster, endpoints."""
        node = pb.Node(id="judge", locality=pb.Locality(zone=place))
        found = self.wants(LDS, name, node=node)
        for kind in (RDS, CDS, EDS):
            found.update(self.wants(kind, name))
        return found


def endpoints(found: dict[ResourceType, list[Any]]) -> list[tuple[int, str, int, list[str]]]:
    """Priority, zone, weight and addresses of each locality."""
    [assignment] = found[EDS]
    return [
        (
            one.priority,
            one.locality.zone,
            one.load_balancing_weight.value,
            [
                f"{e.endpoint.address.socket_address.address}:{e.endpoint.address.socket_address.port_value}"
                for e in one.lb_endpoints
            ],
        )
        for one in assignment.endpoints
    ]


THREE = (
    known("web-1", host="10.0.0.1", labels={"tier": "front"}),
    known("web-2", host="10.0.0.2", is_ready=False),
    known("web-3", host="10.0.0.3", cluster="west"),
)
BOTH = ("east", "west")


def client(*instances: Any, heard: Sequence[str] = BOTH, unheard: Sequence[str] = (), **options: Any) -> Client:
    return Client(picture_of(*instances, heard=heard, unheard=unheard), **options)


def test_a_target_is_four_resources_and_the_ready_endpoints() -> None:
    found = client(*THREE).wants_all("web")
    assert [message.name for kind in (LDS, RDS, CDS) for message in found[kind]] == ["web"] * 3
    assert endpoints(found) == [(0, "east", 100, ["10.0.0.1:80"]), (0, "west", 100, ["10.0.0.3:80"])]


def test_the_clients_own_place_comes_first_and_priorities_have_no_gap() -> None:
    one = client(*THREE)
    found = one.wants_all("web", place="west")
    assert [(priority, zone) for priority, zone, *_ in endpoints(found)] == [(1, "east"), (0, "west")]
    one.pictured.put(known("web-3", host="10.0.0.3", cluster="west", is_ready=False))
    assert endpoints(one.due()) == [(0, "east", 100, ["10.0.0.1:80"])]


def test_a_client_without_a_known_place_gets_that_of_the_gateway() -> None:
    found = client(*THREE, place="east").wants_all("web", place="moon")
    assert [(priority, zone) for priority, zone, *_ in endpoints(found)] == [(0, "east"), (1, "west")]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("web", XdsTarget("web")),
        ("web/grpc", XdsTarget("web", "grpc")),
        ("web/grpc;zone=a;tier=b", XdsTarget("web", "grpc", (("zone", "a"), ("tier", "b")))),
        ("web;zone=a%3Bb", None),
        ("web%2Fgrpc", XdsTarget("web", "grpc")),
        ("", None),
        ("web/a/b", None),
        ("web;zone", None),
    ],
)
def test_a_name_is_a_service_a_port_and_labels(name: str, target: XdsTarget | None) -> None:
    assert read_target(name) == target


def test_a_target_by_label_has_only_instances_with_the_label() -> None:
    assert endpoints(client(*THREE).wants_all("web/http;tier=front")) == [(0, "east", 100, ["10.0.0.1:80"])]


# --- traps of clients that were measured --------------------------------------------------------------------------


def test_every_locality_has_a_weight() -> None:
    found = endpoints(client(*(known(f"web-{i}", host=f"10.0.0.{i}") for i in range(5))).wants_all("web"))
    assert [weight for _, _, weight, _ in found] == [500]


def test_an_address_comes_once_however_many_instances_have_it() -> None:
    one = client(known("web-1"), known("web-2"))
    assert endpoints(one.wants_all("web")) == [(0, "east", 100, ["10.0.0.1:80"])]
    assert one.addressing.left_out[LeftOut.DUPLICATE] == 1


def test_the_empty_prefix_of_a_route_is_there() -> None:
    [routes] = client(*THREE).wants_all("web")[RDS]
    match = routes.virtual_hosts[0].routes[0].match
    assert match.HasField("prefix")
    assert match.SerializeToString() == b"\x0a\x00"


def test_a_cluster_says_nothing_that_a_client_might_not_support() -> None:
    [cluster] = client(*THREE).wants_all("web")[CDS]
    assert [field.name for field, _ in cluster.ListFields()] == ["name", "type", "eds_cluster_config"]


def test_an_unknown_service_is_at_once_a_target_without_endpoints() -> None:
    one = client(*THREE)
    found = one.wants_all("nobody")
    assert [message.name for kind in (LDS, RDS, CDS) for message in found[kind]] == ["nobody"] * 3
    assert endpoints(found) == []
    one.pictured.put(known("nobody-1", "nobody"))
    assert endpoints(one.due()) == [(0, "east", 100, ["10.0.0.1:80"])]


def test_a_malformed_name_does_not_exist() -> None:
    assert client(*THREE).wants(LDS, "web;odd") == {LDS: []}


# --- the protocol -------------------------------------------------------------------------------------------------


def test_a_change_sends_the_endpoints_and_nothing_else() -> None:
    one = client(*THREE)
    one.wants_all("web")
    one.pictured.put(known("web-2", host="10.0.0.2"))
    assert [*one.due()] == [EDS]
    assert one.due() == {}


def test_an_unrelated_change_sends_nothing() -> None:
    one = client(*THREE)
    one.wants_all("web")
    one.pictured.put(known("db-1", "db"))
    one.pictured.put(known("web-2", host="10.0.0.9", is_ready=False))
    assert (one.told, one.due()) == (0, {})


def test_streams_with_equal_answers_share_the_bytes_of_each() -> None:
    one = client(*THREE)
    others = [Subscriptions(one.resources, one.counts) for _ in range(2)]
    for other in others:
        other.request(pb.DiscoveryRequest(type_url=EDS.value, resource_names=["web"]))
    (first,), (same,) = ([*other.due()] for other in others)
    assert first is same
    one.pictured.put(known("web-2", host="10.0.0.2"))
    assert [other.on_services_changed(["web"]) for other in others] == [True, True]
    (changed,), (same,) = ([*other.due()] for other in others)
    assert changed is same
    nonces = [pb.DiscoveryResponse.FromString(body).nonce for body in (first, changed)]
    assert nonces[0] != nonces[1]


def test_a_new_name_is_answered_and_the_old_ones_are_not_sent_again() -> None:
    one = client(*THREE, known("db-1", "db"))
    one.wants_all("web")
    assert [message.cluster_name for message in one.wants(EDS, "web", "db")[EDS]] == ["db"]
    assert [message.name for message in one.wants(CDS, "web", "db")[CDS]] == ["db", "web"]
    assert one.wants(EDS, "web") == {}
    assert [message.cluster_name for message in one.wants(EDS, "web", "db")[EDS]] == ["db"]


def test_a_first_request_without_names_gets_everything() -> None:
    one = client(*THREE, known("db-1", "db"))
    assert [message.name for message in one.wants(CDS)[CDS]] == ["db", "web"]
    one.pictured.put(known("new-1", "new"))
    assert [message.name for message in one.due()[CDS]] == ["db", "new", "web"]


def test_a_request_with_an_old_nonce_is_ignored() -> None:
    one = client(*THREE)
    one.wants_all("web")
    one.stream.request(pb.DiscoveryRequest(type_url=EDS.value, resource_names=["db"], response_nonce="999"))
    one.pictured.put(known("web-2", host="10.0.0.2"))
    assert [message.cluster_name for message in one.due()[EDS]] == ["web"]


def test_a_refusal_is_logged_counted_and_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    one = client(*THREE)
    one.wants_all("web")
    accepted = one.stream.accepted_version(EDS)
    one.pictured.put(known("web-2", host="10.0.0.2"))
    [body] = one.stream.due()
    nonce = pb.DiscoveryResponse.FromString(body).nonce
    refusal = pb.DiscoveryRequest(
        type_url=EDS.value, resource_names=["web"], response_nonce=nonce, version_info=accepted
    )
    refusal.error_detail.message = "web: duplicate address"
    with caplog.at_level(logging.ERROR):
        one.stream.request(refusal)
    assert "judge rejects (NACK) endpoints of web and keeps the last version: web: duplicate address" in caplog.text
    assert (one.counts.nacks, one.stream.accepted_version(EDS)) == ({"endpoints": 1}, accepted)
    assert list(one.stream.due()) == []


def test_names_of_one_stream_are_bounded() -> None:
    with pytest.raises(InvalidRequest, match="resource_names"):
        client().wants(EDS, *(f"web-{i}" for i in range(MOST_NAMES + 1)))


def test_a_client_of_very_many_services_is_served() -> None:
    """A stream counts its names itself: the parser of a request has no lower limit."""
    names = [f"s{number}" for number in range(MOST_ITEMS + 1)]
    pictured = PictureBuilder()
    resources = Resources(pictured.picture, Addressing(pictured.picture.hosts))
    requests = {
        False: pb.DiscoveryRequest(resource_names=names),
        True: pb.DeltaDiscoveryRequest(
            resource_names_subscribe=names,
            resource_names_unsubscribe=names,
            initial_resource_versions=dict.fromkeys(names, "1"),
        ),
    }
    for method in Ads(pictured.picture, resources).methods():
        request = requests["/Delta" in method.path]
        assert method.parse(request.SerializeToString()) == request


def test_resolved_names_are_cached_for_as_many_as_one_stream_may_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.xds.resources._MOST_TARGETS", 2)
    one = client(*THREE)
    kept = [one.resources.target(name) for name in ("a", "b", "c", "d")]
    assert one.resources.target("a") is kept[0]


def test_a_request_for_an_unknown_type_is_ignored() -> None:
    one = client(*THREE)
    one.stream.request(pb.DiscoveryRequest(type_url="type.googleapis.com/envoy.config.Other"))
    assert one.due() == {}


def test_a_service_does_not_exist_for_a_client_that_may_not_read_it() -> None:
    one = client(*THREE, known("db-1", "db"), may_read=lambda service: service == "web")
    assert [message.name for message in one.wants(LDS, "web", "db")[LDS]] == ["web"]
    assert [message.cluster_name for message in one.wants(EDS, "web", "db")[EDS]] == ["web"]


# --- an Envoy that takes all from HQ ------------------------------------------------------------------------------


def envoy_node(listen: str = "127.0.0.1:8080") -> pb.Node:
    made = pb.Node(id="edge-1")
    made.metadata[LISTEN] = listen
    return made


def test_an_envoy_that_says_where_it_listens_has_one_listener_and_routes_to_every_service() -> None:
    grpc = replace(known("rpc-1", "rpc"), ports={"grpc": 9, "http": 80})
    one = client(*THREE, grpc, known("h2-1", "h2", labels={"app-protocol": "h2c"}))
    [listener] = one.wants(LDS, node=envoy_node())[LDS]
    assert (listener.address.socket_address.address, listener.address.socket_address.port_value) == ("127.0.0.1", 8080)
    [routes] = one.wants(RDS, listener.name)[RDS]
    clusters = {host.name: host.routes[0].route.cluster for host in routes.virtual_hosts}
    assert clusters == {"web": "web", "rpc": "rpc/grpc", "h2": "h2;app-protocol=h2c"}
    assert [*routes.virtual_hosts[2].domains] == ["web", "web.service.*"]
    known_clusters = {cluster.name for cluster in one.wants(CDS)[CDS]}
    assert known_clusters == {"web", "rpc", "h2", *clusters.values()}
    one.pictured.put(known("db-1", "db"))
    found = one.due()
    assert {host.name for host in found[RDS][0].virtual_hosts} == {"web", "rpc", "h2", "db"}
    assert LDS not in found


@pytest.mark.parametrize(
    ("name", "is_http2"),
    [
        ("web", False),
        ("web/http", False),
        ("web/grpc", True),
        ("web/h2", True),
        ("web;app-protocol=h2c", True),
        ("web;app-protocol=http", False),
        ("web/http;app-protocol=grpc;zone=a", True),
    ],
)
def test_a_cluster_is_http2_if_its_name_says_so_even_if_its_service_is_unknown(name: str, is_http2: bool) -> None:
    one = Client(PictureBuilder())
    one.pictured.condition.is_known = False
    one.pictured.look()
    [cluster] = one.wants(CDS, name)[CDS]
    options = cluster.typed_extension_protocol_options
    assert [*options] == (["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"] if is_http2 else [])
    for option in options.values():
        made = pb.HttpProtocolOptions.FromString(option.value)
        assert made.explicit_http_config.HasField("http2_protocol_options")


@pytest.mark.parametrize("listen", ["", "8080", "localhost:80", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x"])
def test_an_envoy_without_a_valid_listen_address_has_no_listener(listen: str) -> None:
    one = client(*THREE)
    assert one.wants(LDS, node=envoy_node(listen)) == {LDS: []}
    assert RDS not in one.wants(RDS, "/all")


def test_a_wildcard_client_loses_the_last_service_even_between_an_answer_and_its_ack() -> None:
    one = client(*THREE)
    assert [message.name for message in one.wants(CDS)[CDS]] == ["web"]
    one.pictured.drop(*(instance.key for instance in THREE))
    assert one.wants(CDS) == {CDS: []}


def test_an_envoy_has_routes_to_what_it_may_read_and_never_two_of_one_domain() -> None:
    one = client(*THREE, known("W-1", "Web"), known("s-1", "secret"), may_read=lambda service: service != "secret")
    one.wants(LDS, node=envoy_node())
    [routes] = one.wants(RDS, "/all")[RDS]
    assert [host.name for host in routes.virtual_hosts] == ["Web"]


def test_without_wildcard_clients_services_that_come_and_go_do_not_pile_up() -> None:
    one = client(*THREE)
    for number in range(3_000):
        one.pictured.put(known(f"s-{number}", f"s{number}"))
        one.pictured.drop(("east", f"s-{number}"))
    assert len(one.resources._listing._changed) < 1_100


def test_names_that_were_asked_for_once_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.xds.resources._MOST_KEPT", 20)
    one = client(*THREE)
    for number in range(50):
        assert one.wants(EDS, f"nobody-{number}", f"web;tier={number}")[EDS]
        if number % 7 == 0:
            one.pictured.put(known("web-9", host=f"10.0.1.{number}"))
        kept = one.resources
        assert max(sum(map(len, kept._endpoints.values())), len(kept._settled)) <= 20
        assert sum(map(len, kept._endpoints.values())) == kept._kept_endpoints


def test_a_route_stays_while_a_location_was_never_heard() -> None:
    one = client(*THREE[:2], known("db-1", "db"), heard=["east"], unheard=["west"])
    one.wants(LDS, node=envoy_node())
    one.wants(RDS, "/all")
    one.pictured.drop(("east", "db-1"))
    assert RDS not in one.due()
    one.pictured.condition.heard, one.pictured.condition.unheard = frozenset(BOTH), frozenset[str]()
    one.pictured.look()
    assert [host.name for host in one.due()[RDS][0].virtual_hosts] == ["web"]


# --- never worse --------------------------------------------------------------------------------------------------


def test_if_hq_is_away_at_the_start_endpoints_are_neither_sent_nor_denied() -> None:
    one = Client(PictureBuilder())
    one.pictured.condition.is_known = False
    one.pictured.look()
    found = one.wants_all("web")
    assert [message.name for kind in (LDS, RDS, CDS) for message in found[kind]] == ["web"] * 3
    assert EDS not in found
    one.pictured.condition.is_known = True
    one.pictured.put(known("web-1"))
    assert endpoints(one.due()) == [(0, "east", 100, ["10.0.0.1:80"])]


def test_once_hq_is_back_a_service_that_it_lacks_is_denied() -> None:
    one = Client(PictureBuilder())
    one.pictured.condition.is_known = False
    one.pictured.look()
    one.wants_all("web")
    one.pictured.condition.is_known = True
    one.pictured.look()
    assert endpoints(one.due()) == []


def test_a_wildcard_subscription_gets_nothing_before_the_list_is_known() -> None:
    one = Client(PictureBuilder())
    one.pictured.condition.is_known = False
    one.pictured.look()
    assert one.wants(CDS) == {}
    one.pictured.condition.is_known = True
    one.pictured.put(known("web-1"))
    assert [message.name for message in one.due()[CDS]] == ["web"]


@pytest.mark.parametrize(("version", "at_first"), [("", ["web"]), ("7", [])])
def test_clusters_are_kept_while_another_location_was_never_heard(version: str, at_first: list[str]) -> None:
    one = client(*THREE[:2], heard=["east"], unheard=["west"])
    assert [message.name for message in one.wants(CDS, version_info=version).get(CDS, ())] == at_first
    one.pictured.drop(("east", "web-1"), ("east", "web-2"))
    assert one.due() == {}
    one.pictured.condition.heard, one.pictured.condition.unheard = frozenset(BOTH), frozenset[str]()
    one.pictured.put(known("db-1", "db", cluster="west"))
    assert [message.name for message in one.due()[CDS]] == ["db"]


def test_hq_away_later_sends_nothing() -> None:
    one = client(*THREE)
    one.wants_all("web")
    one.pictured.condition.stale, one.pictured.condition.age_s = True, 300.0
    one.pictured.look()
    assert one.due() == {}


def test_a_location_that_was_never_heard_may_have_the_service() -> None:
    one = client(*THREE, heard=["east"], unheard=["west"])
    assert [message.name for message in one.wants(LDS, "db")[LDS]] == ["db"]
    assert one.wants(EDS, "db") == {}


def test_a_service_without_ready_or_any_instances_has_no_endpoints() -> None:
    one = client(known("web-1"))
    one.wants_all("web")
    one.pictured.put(known("web-1", is_ready=False))
    assert endpoints(one.due()) == []
    one.pictured.drop(("east", "web-1"))
    assert one.due() == {}
    one.pictured.put(known("web-1"))
    assert endpoints(one.due()) == [(0, "east", 100, ["10.0.0.1:80"])]


async def test_endpoints_wait_for_hosts_to_be_resolved_and_survive_a_later_failure() -> None:
    answers = {"node-1": ["10.0.0.1"]}

    async def resolve(name: str) -> list[str]:
        await asyncio.sleep(0)
        if name not in answers:
            raise OSError(name)
        return answers[name]

    async with HostResolver(resolve) as hosts:
        pictured = PictureBuilder(hosts)
        pictured.put(known("web-1", host="node-1"), known("web-2", host="node-2"))
        one = Client(pictured)
        assert EDS not in one.wants_all("web")
        while hosts.addresses("node-2") is None or hosts.addresses("node-1") is None:
            await asyncio.sleep(0)
        while EDS not in (due := one.due()):
            await asyncio.sleep(0)
        assert endpoints(due) == [(0, "east", 100, ["10.0.0.1:80"])]
        pictured.put(known("web-1", host="node-9"))
        await asyncio.sleep(0.01)
        assert EDS not in one.due()


def test_ten_thousand_endpoints_are_one_answer() -> None:
    one = client(*(known(f"web-{i}", host=f"10.0.{i >> 8}.{i & 255}") for i in range(10_000)))
    [(_, _, weight, addresses)] = endpoints(one.wants_all("web"))
    assert (weight, len(addresses)) == (1_000_000, 10_000)


# --- the call -----------------------------------------------------------------------------------------------------


async def test_a_stream_sends_what_is_due_and_ends_with_its_client() -> None:
    pictured = picture_of(*THREE, heard=BOTH)
    ads = Ads(pictured.picture, Resources(pictured.picture, Addressing(pictured.picture.hosts)))
    requests: asyncio.Queue[pb.DiscoveryRequest | None] = asyncio.Queue()

    async def incoming() -> AsyncIterator[pb.DiscoveryRequest]:
        while (request := await requests.get()) is not None:
            yield request

    answers = ads.run(incoming(), Call())
    requests.put_nowait(pb.DiscoveryRequest(type_url=EDS.value, resource_names=["web"]))
    first = pb.DiscoveryResponse.FromString((await anext(answers)).proto())
    assert (first.nonce, ads.counts.streams) == ("1", 1)
    for number in range(5):  # nobody reads meanwhile: they are one answer
        pictured.put(known("web-2", host=f"10.0.1.{number}"))
    second = pb.DiscoveryResponse.FromString((await anext(answers)).proto())
    assert b"10.0.1.4" in second.resources[0].value
    requests.put_nowait(None)
    with pytest.raises(StopAsyncIteration):
        await anext(answers)
    assert ads.counts.streams == 0


async def test_a_change_concerns_the_streams_of_its_service_and_those_that_want_all() -> None:
    pictured = picture_of(*THREE, heard=BOTH)
    ads = Ads(pictured.picture, Resources(pictured.picture, Addressing(pictured.picture.hosts)))

    async def asks(*requests: pb.DiscoveryRequest) -> AsyncIterator[pb.DiscoveryRequest]:
        for request in requests:
            yield request
        await asyncio.Event().wait()

    web = ads.run(asks(pb.DiscoveryRequest(type_url=EDS.value, resource_names=["web"])), Call())
    every = ads.run(asks(pb.DiscoveryRequest(type_url=CDS.value)), Call())
    await anext(web)
    await anext(every)
    waiting = [asyncio.ensure_future(anext(stream)) for stream in (web, every)]
    pictured.put(known("db-1", "db"))
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert done == {waiting[1]}
    pictured.put(known("web-2", host="10.0.0.2"))
    await waiting[0]
    for stream in (web, every):
        await stream.aclose()  # type: ignore[attr-defined]
    assert (ads.counts.streams, ads._concerned) == (0, {})


def single_stream(kind: ResourceType, *requests: pb.DiscoveryRequest) -> AsyncIterator[Any]:
    pictured = picture_of(*THREE, heard=BOTH)
    ads = Ads(pictured.picture, Resources(pictured.picture, Addressing(pictured.picture.hosts)))

    async def incoming() -> AsyncIterator[pb.DiscoveryRequest]:
        for request in requests:
            yield request
        await asyncio.Event().wait()

    path = next(path for path, served in SINGLE_PATHS.items() if served is kind)
    [method] = [method for method in ads.methods() if method.path == path]
    assert isinstance(method, Duplex)
    return method.run(incoming(), Call())


@pytest.mark.parametrize("type_url", ["", EDS.value])
async def test_a_stream_of_one_type_serves_it_whether_a_request_names_it_or_not(type_url: str) -> None:
    answers = single_stream(EDS, pb.DiscoveryRequest(type_url=type_url, resource_names=["web"]))
    answer = pb.DiscoveryResponse.FromString((await anext(answers)).proto())
    assert answer.type_url == EDS.value
    assert b"10.0.0.1" in answer.resources[0].value
    await answers.aclose()  # type: ignore[attr-defined]


async def test_a_stream_of_one_type_refuses_another_one_by_name() -> None:
    answers = single_stream(CDS, pb.DiscoveryRequest(type_url=EDS.value, resource_names=["web"]))
    with pytest.raises(InvalidRequest, match=r"type_url: .*ClusterLoadAssignment.*use ADS"):
        await anext(answers)
