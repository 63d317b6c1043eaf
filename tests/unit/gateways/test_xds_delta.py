"""Incremental xDS over a picture: differences are sent, removals named, and unknown resources left alone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from gateways.picture.addresses import Addressing
from gateways.xds.delta import DeltaSubscriptions
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.resources import Resources
from gateways.xds.stream import MOST_NAMES, XdsCounts
from gateways.xds.subscriptions import Subscriptions
from serving.errors import InvalidRequest
from tests.support.pictures import PictureBuilder, known, picture_of
from tests.unit.gateways.test_xds import BOTH, CDS, EDS, LDS, MESSAGES, RDS, THREE, Client, envoy_node
from xdspb.v1 import xds_pb2 as pb


class DeltaClient:
    """A client of one stream after another, which keeps what it was sent.

    Attributes:
        world: resources by type and name; versions: of each.
    """

    def __init__(self, pictured: PictureBuilder, **options: Any) -> None:
        self.world: dict[ResourceType, dict[str, Any]] = {kind: {} for kind in ResourceType}
        self.versions: dict[ResourceType, dict[str, str]] = {kind: {} for kind in ResourceType}
        self.counts, self.options = XdsCounts(), options
        self.connect(pictured)

    def connect(self, pictured: PictureBuilder) -> None:
        """Open a new stream to the gateway of this picture."""
        self.pictured, self.greeted = pictured, set[ResourceType]()
        resources = Resources(pictured.picture, Addressing(pictured.picture.hosts))
        self.stream = DeltaSubscriptions(resources, self.counts, **self.options)
        pictured.picture.listen(self._on_services_changed)

    def _on_services_changed(self, services: Collection[str]) -> None:
        self.stream.on_services_changed(services)

    def wants(self, kind: ResourceType, *more: str, less: Sequence[str] = (), **others: Any) -> list[str]:
        """Subscribe to `more`, unsubscribe from `less`; return what comes, as `due` does."""
        versions = {} if kind in self.greeted else self.versions[kind]
        self.greeted.add(kind)
        for name in less:
            self.world[kind].pop(name, None)
            self.versions[kind].pop(name, None)
        self.ask(kind, subscribe=more, unsubscribe=less, versions=versions, **others)
        return self.due()

    def ask(
        self,
        kind: ResourceType,
        *,
        subscribe: Sequence[str] = (),
        unsubscribe: Sequence[str] = (),
        versions: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Send a request."""
        request = pb.DeltaDiscoveryRequest(
            type_url=kind.value,
            resource_names_subscribe=subscribe,
            resource_names_unsubscribe=unsubscribe,
            initial_resource_versions=versions,
            **more,
        )
        self.stream.request(request, self.pictured.picture.coverage.locations)

    def due(self) -> list[str]:
        """Take and acknowledge what is due; return names in order of arrival, with `-` before those removed."""
        names = []
        for body in self.stream.due():
            response = pb.DeltaDiscoveryResponse.FromString(body)
            kind = ResourceType(response.type_url)
            for resource in response.resources:
                assert resource.resource.type_url == kind.value
                self.world[kind][resource.name] = MESSAGES[kind].FromString(resource.resource.value)
                self.versions[kind][resource.name] = resource.version
            for name in response.removed_resources:
                self.world[kind].pop(name, None)
                self.versions[kind].pop(name, None)
            names += [resource.name for resource in response.resources]
            names += [f"-{name}" for name in response.removed_resources]
            self.ask(kind, response_nonce=response.nonce)
        return names

    def addresses(self, name: str) -> list[str]:
        return [
            endpoint.endpoint.address.socket_address.address
            for locality in self.world[EDS][name].endpoints
            for endpoint in locality.lb_endpoints
        ]


def client(*instances: Any, heard: Sequence[str] = BOTH, unheard: Sequence[str] = (), **options: Any) -> DeltaClient:
    return DeltaClient(picture_of(*instances, heard=heard, unheard=unheard), **options)


def test_a_name_is_sent_once_and_again_when_it_changes() -> None:
    one = client(*THREE)
    for kind in (LDS, RDS, CDS, EDS):
        assert one.wants(kind, "web") == ["web"]
    assert one.addresses("web") == ["10.0.0.1", "10.0.0.3"]
    one.pictured.put(known("web-2", host="10.0.0.2", is_ready=False))
    assert one.due() == []
    one.pictured.put(known("web-2", host="10.0.0.2"))
    assert (one.due(), one.addresses("web")) == (["web"], ["10.0.0.1", "10.0.0.2", "10.0.0.3"])


def test_only_the_names_that_changed_are_sent() -> None:
    one = client(*THREE, known("db-1", "db"))
    assert one.wants(EDS, "web", "db") == ["db", "web"]
    one.pictured.put(known("db-2", "db", host="10.0.0.9"))
    assert one.due() == ["db"]
    assert one.wants(EDS, "cart", less=["db"]) == ["cart"]
    one.pictured.put(known("db-3", "db", host="10.0.0.8"))
    assert one.due() == []


@pytest.mark.parametrize("first", [[], ["*"]], ids=["without a name", "with a star"])
def test_a_wildcard_subscription_gets_new_and_removed_services(first: list[str]) -> None:
    one = client(*THREE)
    assert one.wants(CDS, *first) == ["web"]
    one.pictured.put(known("db-1", "db"))
    assert one.due() == ["db"]
    one.pictured.drop(("east", "db-1"))
    assert one.due() == ["-db"]
    assert one.wants(CDS, less=["*"]) == []
    one.pictured.put(known("cart-1", "cart"))
    assert one.due() == []


def test_a_wildcard_subscription_to_nothing_gets_an_empty_answer() -> None:
    one = client()
    one.ask(CDS)
    [body] = one.stream.due()
    assert list(pb.DeltaDiscoveryResponse.FromString(body).resources) == []


def test_unsubscribing_from_an_unknown_name_sends_nothing() -> None:
    one = client(*THREE)
    one.wants(CDS, "*")
    assert one.wants(CDS, less=["nobody"]) == []


def test_a_name_unsubscribed_under_a_wildcard_is_sent_again() -> None:
    one = client(*THREE)
    one.wants(CDS, "*", "web", "web/http")
    assert one.wants(CDS, less=["web", "web/http"]) == ["web", "-web/http"]


def test_a_name_asked_for_again_is_sent_again() -> None:
    one = client(*THREE)
    assert one.wants(EDS, "web") == ["web"]
    assert one.wants(EDS, "web") == ["web"]


def test_a_reconnect_to_another_gateway_sends_only_differences() -> None:
    one = client(*THREE, known("db-1", "db"), known("old-1", "old"))
    one.wants(CDS)
    one.wants(EDS, "web", "db")
    one.connect(picture_of(*THREE, known("db-1", "db", host="10.0.0.7"), heard=BOTH))
    assert one.wants(CDS) == ["-old"]
    assert one.wants(EDS, "web", "db") == ["db"]


@pytest.mark.parametrize("name", ["web;odd", "", "secret", "web" + ";a=b" * 21])
def test_a_name_that_a_client_may_not_see_is_removed_at_once_and_only_once(name: str) -> None:
    one = client(*THREE, known("s-1", "secret"), may_read=lambda service: service != "secret")
    assert one.wants(LDS, name) == [f"-{name}"]
    one.pictured.put(known("s-2", "secret"))
    assert one.due() == []
    assert one.wants(CDS) == ["web"]


def test_a_refusal_is_counted_and_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    one = client(*THREE)
    one.ask(EDS, subscribe=["web"])
    [body] = one.stream.due()
    nonce = pb.DeltaDiscoveryResponse.FromString(body).nonce
    with caplog.at_level(logging.ERROR):
        one.ask(EDS, response_nonce=nonce, error_detail=pb.Status(message="web: duplicate address"))
    assert "rejects (NACK) endpoints of web and keeps the last version: web: duplicate address" in caplog.text
    assert (one.counts.nacks, one.due()) == ({"endpoints": 1}, [])
    one.pictured.put(known("web-1", host="10.0.0.9"))
    assert one.due() == ["web"]


def test_incremental_streams_with_equal_answers_share_the_bytes() -> None:
    one = client(*THREE)
    others = [DeltaSubscriptions(one.stream._resources, one.counts) for _ in range(2)]
    for other in others:
        other.request(pb.DeltaDiscoveryRequest(type_url=EDS.value, resource_names_subscribe=["web"]))
    (first,), (same,) = ([*other.due()] for other in others)
    assert first is same


@pytest.mark.parametrize("field", ["resource_names_subscribe", "initial_resource_versions"])
def test_the_limit_of_names_of_one_stream_grows_with_the_services(field: str) -> None:
    names = [f"web-{number}" for number in range(MOST_NAMES + 3)]
    given: dict[str, Any] = {"subscribe": names} if "subscribe" in field else {"versions": dict.fromkeys(names, "1")}
    with pytest.raises(InvalidRequest, match=field):
        client(*THREE).ask(EDS, **given)
    client(*THREE, known("db-1", "db")).ask(EDS, **given)


@pytest.mark.parametrize(
    ("form", "request_"),
    [
        (Subscriptions, pb.DiscoveryRequest(resource_names=["web" + ";a=b" * 500])),
        (DeltaSubscriptions, pb.DeltaDiscoveryRequest(resource_names_subscribe=["web" + ";a=b" * 500])),
        (DeltaSubscriptions, pb.DeltaDiscoveryRequest(initial_resource_versions={"web": "1" * 2_000})),
    ],
)
def test_a_name_longer_than_any_service_can_have_is_refused(form: Any, request_: Any) -> None:
    """A stream could keep a thousand names of megabytes, and each condition is compared with each instance."""
    stream = form(client(*THREE).stream._resources, XdsCounts())
    request_.type_url = EDS.value
    with pytest.raises(InvalidRequest, match=r"a name of 200\d characters, of 1000 allowed"):
        stream.request(request_)


def test_a_stream_keeps_nothing_of_names_it_unsubscribed_from() -> None:
    one = client(*(known(f"s{number}-1", f"s{number}") for number in range(50)))
    one.ask(EDS, subscribe=["web"], versions={f"old-{number}": "1" for number in range(500)})
    for number in range(50):
        one.wants(EDS, f"s{number}", "x")
        one.wants(EDS, less=[f"s{number}", "x"])
        one.wants(CDS, f"s{number}")
        one.wants(CDS, less=[f"s{number}"])
    kept = one.stream._wanted
    assert [(len(kept[kind].names), len(kept[kind].has), len(kept[kind].due)) for kind in (CDS, EDS)] == [
        (0, 0, 0),
        (1, 1, 0),
    ]


def test_an_envoy_has_a_listener_and_routes_that_follow_the_services() -> None:
    one = client(*THREE)
    one.stream.request(pb.DeltaDiscoveryRequest(type_url=LDS.value, node=envoy_node()))
    assert (one.due(), one.wants(RDS, "/all")) == (["/all"], ["/all"])
    one.pictured.put(known("web-9"))
    assert one.due() == []
    one.pictured.put(known("db-1", "db"))
    assert one.due() == ["/all"]
    partial = picture_of(*THREE[:2], heard=["east"], unheard=["west"])  # which may have db
    one.connect(partial)
    one.stream.request(pb.DeltaDiscoveryRequest(type_url=LDS.value, node=envoy_node()))
    one.due()
    assert one.wants(RDS, "/all") == []
    partial.condition.heard, partial.condition.unheard = frozenset(BOTH), frozenset()
    partial.look()
    assert one.due() == ["/all"]


@pytest.mark.parametrize("form", [Client, DeltaClient])
def test_a_change_of_an_instance_does_not_make_an_envoys_stream_scan_all_services(
    form: type[Client | DeltaClient],
) -> None:
    looked: list[str] = []
    one = form(picture_of(*THREE, heard=BOTH), may_read=lambda service: not looked.append(service))  # type: ignore[func-returns-value]
    one.wants(LDS, node=envoy_node())
    assert one.wants(CDS)
    assert one.wants(RDS, "/all")
    one.pictured.put(known("web-8"))
    one.due()
    looked.clear()
    one.pictured.put(known("web-9"), known("web-1", host="10.0.0.9"))
    assert (not one.due(), looked) == (True, [])
    one.pictured.put(known("web-1", labels={"app-protocol": "h2c"}))
    assert one.due()
    assert "web" in looked


def test_a_wildcard_resubscription_with_a_stale_version_is_sent_once() -> None:
    one = client(*THREE, known("db-1", "db"))
    one.wants(CDS)
    one.versions[CDS]["web"] = "stale"
    one.connect(one.pictured)
    assert one.wants(CDS) == ["web"]
    one.versions[CDS]["web"] = "stale"
    starting = PictureBuilder()
    starting.condition.is_known = False
    starting.look()
    one.connect(starting)
    assert one.wants(CDS) == []
    starting.condition.is_known, starting.condition.heard = True, frozenset(BOTH)
    starting.put(*THREE, known("db-1", "db"))
    assert one.due() == ["web"]
    starting.put(known("cart-1", "cart"))
    assert one.due() == ["cart"]


# --- never worse --------------------------------------------------------------------------------------------------


def test_a_gateway_that_has_not_loaded_yet_removes_nothing_from_its_clients() -> None:
    one = client(*THREE, known("db-1", "db"))
    one.wants(CDS)
    one.wants(EDS, "web", "db")
    starting = PictureBuilder()
    starting.condition.is_known = False
    starting.look()
    one.connect(starting)
    assert (one.wants(CDS), one.wants(EDS, "web", "db")) == ([], [])
    assert {*one.world[CDS]} == {*one.world[EDS]} == {"web", "db"}
    starting.condition.is_known, starting.condition.heard = True, frozenset(BOTH)
    starting.put(*THREE)
    assert one.due() == ["-db", "db"]  # no cluster any more; and its endpoints are none
    assert (one.addresses("web"), one.addresses("db")) == (["10.0.0.1", "10.0.0.3"], [])


def test_a_location_that_was_never_heard_may_have_the_service_that_a_client_has() -> None:
    one = client(*THREE, known("db-1", "db", cluster="west"))
    one.wants(CDS)
    one.wants(EDS, "db")
    partial = picture_of(*THREE[:2], heard=["east"], unheard=["west"])
    one.connect(partial)
    assert (one.wants(CDS), one.wants(EDS, "db")) == ([], [])
    partial.condition.heard, partial.condition.unheard = frozenset(BOTH), frozenset()
    partial.look()
    assert one.due() == ["-db", "db"]
    assert one.addresses("db") == []


def test_hq_away_later_sends_nothing() -> None:
    one = client(*THREE)
    one.wants(CDS)
    one.wants(EDS, "web")
    one.pictured.condition.stale, one.pictured.condition.age_s = True, 300.0
    one.pictured.look()
    assert one.due() == []
