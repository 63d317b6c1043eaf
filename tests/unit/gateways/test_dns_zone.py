"""What the zone says, as dnspython reads it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import islice

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.dns import wire
from gateways.dns.names import NameKind, parse_name
from gateways.dns.responder import MOST_ADDRESSES, Responder
from gateways.dns.spread import Spread
from gateways.dns.zone import Zone, ZoneSettings
from gateways.picture.addresses import Addressing
from gateways.picture.hosts import HostResolver
from gateways.picture.knowledge import Knowledge
from hqclient.discovery import KnownInstance
from tests.support.pictures import PictureBuilder, known, picture_of

ZONE = (b"hq", b"internal")
WEB = "web.service.hq.internal."


class Asking:
    """Asks a responder, and reads its answers by dnspython."""

    def __init__(self, pictured: PictureBuilder, ttl_s: int = 1, udp_bytes: int | None = 1232) -> None:
        self.pictured, self.udp_bytes = pictured, udp_bytes or 4096
        zone = Zone(ZoneSettings(ZONE, ttl_s, "127.0.0.1"), pictured.picture, Addressing(pictured.picture.hosts), 7)
        self.responder = Responder(zone, random.Random(3), udp_bytes)
        pictured.picture.listen(self.responder.on_services_changed)

    def __call__(
        self, name: str, kind: str = "A", *, tcp: bool = False, payload: int = 1232, client: str = "10.1.1.1"
    ) -> dns.message.Message:
        asked = dns.message.make_query(name, kind, use_edns=0 if payload else False, payload=payload or None)
        answer = self.responder.answer_tcp if tcp else self.responder.answer_udp
        said = answer(asked.to_wire(), client)
        assert said is not None
        assert tcp or len(said) <= min(payload or 512, self.udp_bytes)
        message = dns.message.from_wire(said)
        assert asked.is_response(message)
        return message

    def code(self, name: str, kind: str = "A") -> str:
        return dns.rcode.to_text(self(name, kind).rcode())

    def texts(
        self, name: str, kind: str = "A", *, tcp: bool = False, payload: int = 1232, client: str = "10.1.1.1"
    ) -> list[str]:
        said = self(name, kind, tcp=tcp, payload=payload, client=client)
        return sorted(str(item) for rrset in said.answer for item in rrset)


def asking(*instances: KnownInstance, **coverage: list[str]) -> Asking:
    return Asking(picture_of(*instances, **coverage))


THREE = (
    known("web-1", host="10.0.0.1", revision="r42", labels={"tier": "front"}),
    known("web-2", host="10.0.0.2", cluster="west", labels={"tier": "back"}),
    known("web-3", host="fe80::1"),
    known("web-4", host="10.0.0.4", is_ready=False),
)


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        (WEB, "A", ["10.0.0.1", "10.0.0.2"]),
        (WEB, "AAAA", ["fe80::1"]),
        ("WEB.Service.HQ.internal.", "A", ["10.0.0.1", "10.0.0.2"]),
        ("web.service.east.dc.hq.internal.", "A", ["10.0.0.1"]),
        ("r42.rev.web.service.hq.internal.", "A", ["10.0.0.1"]),
        ("back.tier.label.web.service.hq.internal.", "A", ["10.0.0.2"]),
        ("back.tier.label.r42.rev.web.service.hq.internal.", "A", []),
        (
            "_http._tcp.web.service.west.dc.hq.internal.",
            "SRV",
            ["1 65535 80 web-2.inst.web.service.west.dc.hq.internal."],
        ),
        ("web-2.inst.web.service.west.dc.hq.internal.", "A", ["10.0.0.2"]),
        ("web-2.inst.web.service.hq.internal.", "A", ["10.0.0.2"]),
        ("web-2.inst.web.service.east.dc.hq.internal.", "A", []),
        ("web-3.inst.web.service.east.dc.hq.internal.", "AAAA", ["fe80::1"]),
        ("web-4.inst.web.service.east.dc.hq.internal.", "A", []),
        ("hq.internal.", "NS", ["ns.hq.internal."]),
        ("ns.hq.internal.", "A", ["127.0.0.1"]),
        (WEB, "ANY", ['"RFC8482" ""']),
    ],
)
def test_a_name_has_the_records_of_what_it_selects(name: str, kind: str, found: list[str]) -> None:
    assert asking(*THREE, heard=["east", "west"]).texts(name, kind) == found


def test_srv_records_come_with_the_addresses_of_their_targets() -> None:
    said = asking(*THREE)("_http._tcp.web.service.hq.internal.", "SRV")
    assert sorted(str(rrset.name) for rrset in said.additional) == [
        "web-1.inst.web.service.east.dc.hq.internal.",
        "web-2.inst.web.service.west.dc.hq.internal.",
        "web-3.inst.web.service.east.dc.hq.internal.",
    ]


def targets_of(said: dns.message.Message) -> list[str]:
    return [str(item.target) for rrset in said.answer for item in rrset]


def test_instances_on_one_host_have_separate_targets_with_one_address() -> None:
    ask = asking(*(known(f"web-{i}", host="10.0.0.1", port=8000 + i) for i in range(10)))
    said = ask(f"_http._tcp.{WEB}", "SRV")
    targets = targets_of(said)
    assert len({*targets}) == 10
    assert {str(rrset.name): str(rrset[0]) for rrset in said.additional} == dict.fromkeys(targets, "10.0.0.1")
    assert [ask.texts(target) for target in targets] == [["10.0.0.1"]] * 10


def test_instances_of_one_id_in_two_locations_have_separate_targets() -> None:
    ask = asking(known("web-1", host="10.0.0.1"), known("web-1", host="10.0.0.2", cluster="west"))
    assert [ask.texts(target) for target in targets_of(ask(f"_http._tcp.{WEB}", "SRV"))] == [["10.0.0.1"], ["10.0.0.2"]]


@pytest.mark.parametrize(
    ("id_", "cluster"),
    [("Web-1", "east"), ("web.1", "east"), ("w" * 63, "east"), ("x-" + "0" * 20, "east"), ("a", "EU")],
)
def test_an_id_that_is_no_label_has_a_digest_as_its_lasting_target(id_: str, cluster: str) -> None:
    ask = asking(known(id_, host="10.0.0.1", cluster=cluster), known("web-2", host="10.0.0.2"))
    targets = targets_of(ask(f"_http._tcp.{WEB}", "SRV"))
    [odd] = [target for target in targets if target.startswith("x-")]
    assert ask.texts(odd) == ["10.0.0.1"]
    ask.pictured.put(known(id_, host="10.0.0.9", cluster=cluster))
    assert odd in targets_of(ask(f"_http._tcp.{WEB}", "SRV"))
    assert ask.texts(odd) == ["10.0.0.9"]


async def test_a_host_with_two_addresses_is_one_target_with_both() -> None:
    async def two(_: str) -> list[str]:
        return ["10.0.0.1", "10.0.0.2"]

    async with HostResolver(two) as hosts:
        ask = Asking(PictureBuilder(hosts))
        ask.pictured.put(known("web-1", host="node-1"))
        while ask.code(WEB) == "SERVFAIL":
            await asyncio.sleep(0)
        said = ask(f"_http._tcp.{WEB}", "SRV")
        [target] = targets_of(said)
        assert (ask.texts(target), len(said.additional[0])) == (["10.0.0.1", "10.0.0.2"], 2)


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("service.hq.internal.", "A", "NOERROR"),
        ("dc.hq.internal.", "A", "NOERROR"),
        ("east.dc.hq.internal.", "A", "NOERROR"),
        ("service.east.dc.hq.internal.", "A", "NOERROR"),
        ("_tcp.web.service.hq.internal.", "A", "NOERROR"),
        ("rev.web.service.hq.internal.", "A", "NOERROR"),
        ("tier.label.web.service.hq.internal.", "A", "NOERROR"),
        ("inst.web.service.hq.internal.", "A", "NOERROR"),
        ("web-9.inst.web.service.hq.internal.", "A", "NOERROR"),
        (WEB, "MX", "NOERROR"),
        ("r9.rev.web.service.hq.internal.", "A", "NOERROR"),
        ("db.service.hq.internal.", "A", "NXDOMAIN"),
        ("_tcp.db.service.hq.internal.", "A", "NXDOMAIN"),
        ("south.dc.hq.internal.", "A", "NXDOMAIN"),
        ("web.hq.internal.", "A", "NXDOMAIN"),
        ("a.b.web.service.hq.internal.", "A", "NXDOMAIN"),
        ("web-1.inst.db.service.hq.internal.", "A", "NXDOMAIN"),
    ],
)
def test_a_name_without_records_is_answered_with_the_soa(name: str, kind: str, code: str) -> None:
    said = asking(*THREE, heard=["east", "west"])(name, kind)
    assert (dns.rcode.to_text(said.rcode()), said.answer) == (code, [])
    [soa] = said.authority
    assert (str(soa.name), soa.ttl, soa[0].minimum) == ("hq.internal.", 1, 1)


def test_all_records_and_denials_have_the_configured_ttl_and_ages_have_none() -> None:
    ask = Asking(picture_of(*THREE), ttl_s=7)
    for name, kind in ((WEB, "A"), (f"_http._tcp.{WEB}", "SRV"), ("hq.internal.", "NS"), (f"db.{WEB}", "A")):
        said = ask(name, kind)
        assert {rrset.ttl for rrset in (*said.answer, *said.authority, *said.additional)} == {7}
    assert ask(f"_why.{WEB}", "TXT").answer[0].ttl == 0


@pytest.mark.parametrize(("name", "kind"), [("example.com.", "A"), ("hq.internal.", "AXFR"), ("internal.", "SOA")])
def test_names_outside_the_zone_and_transfers_are_refused(name: str, kind: str) -> None:
    assert asking(*THREE).code(name, kind) == "REFUSED"


def test_no_name_is_denied_while_an_unheard_location_may_have_it() -> None:
    ask = asking(*THREE, heard=["east"], unheard=["west"])
    codes = [ask.code(f"{name}.hq.internal.") for name in ("db.service", "db.service.east.dc", "db.service.west.dc")]
    assert codes == ["SERVFAIL", "NXDOMAIN", "SERVFAIL"]


def test_if_hq_is_away_at_the_start_a_query_fails_until_it_is_back() -> None:
    ask = Asking(PictureBuilder())
    ask.pictured.condition.is_known = False
    ask.pictured.look()
    assert ask.code(WEB) == "SERVFAIL"
    ask.pictured.condition.is_known = True
    ask.pictured.put(known("web-1"))
    assert ask.texts(WEB) == ["10.0.0.1"]


def test_if_hq_is_away_later_the_last_answer_stays_and_why_says_its_age() -> None:
    ask = asking(*THREE)
    ask.pictured.condition.age_s, ask.pictured.condition.stale = 300.0, True
    ask.pictured.condition.away = frozenset({"west"})
    assert ask.texts(WEB) == ["10.0.0.1", "10.0.0.2"]
    why = ask.texts("_why.web.service.hq.internal.", "TXT")
    assert why == ['"age: 300.0 s, live, stale"', '"missing locations: west"', '"ready: 3 of 4 instances"']


def test_a_service_without_ready_instances_has_no_data_and_a_deleted_one_no_name() -> None:
    ask = asking(known("web-1"))
    assert ask.texts(WEB) == ["10.0.0.1"]
    ask.pictured.put(known("web-1", is_ready=False))
    assert (ask.code(WEB), ask.texts(WEB)) == ("NOERROR", [])
    ask.pictured.drop(("east", "web-1"))
    assert ask.code(WEB) == "NXDOMAIN"


async def test_a_host_whose_name_has_no_address_is_a_failure_and_no_empty_answer() -> None:
    async def nowhere(name: str) -> list[str]:
        raise OSError(name)

    async with HostResolver(nowhere) as hosts:
        ask = Asking(PictureBuilder(hosts))
        ask.pictured.put(known("web-1", host="node-1"))
        assert ask.code(WEB) == "SERVFAIL"


def many(count: int) -> list[KnownInstance]:
    return [known(f"web-{i}", host=f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}") for i in range(count)]


@pytest.mark.long
def test_each_client_gets_the_same_sixteen_of_many_addresses_at_every_gateway() -> None:
    ask, other = asking(*many(10_000)), asking(*many(10_000))
    by_client = {client: ask.texts(WEB, client=client) for client in (f"10.2.0.{i}" for i in range(50))}
    assert {len(found) for found in by_client.values()} == {MOST_ADDRESSES}
    assert len({found for one in by_client.values() for found in one}) > 20 * MOST_ADDRESSES
    for client, found in by_client.items():
        assert [one.texts(WEB, client=client) for one in (ask, other)] == [found, found]
    assert len({str(ask(WEB).answer[0][0]) for _ in range(200)}) > 4, "they come in one order"
    assert not ask(WEB).flags & dns.flags.TC


@pytest.mark.parametrize(("name", "kind"), [(WEB, "A"), (f"_http._tcp.{WEB}", "SRV")])
def test_a_client_keeps_its_part_of_many_addresses_until_the_service_changes(name: str, kind: str) -> None:
    ask, clients = asking(*many(200)), [f"10.2.0.{i}" for i in range(5)]
    shown = {client: {*ask.texts(name, kind, client=client)} for client in clients}
    size = {client: len(found) for client, found in shown.items()}
    for step in range(10):
        ask.pictured.put(known(f"new-{step}", host=f"10.9.0.{step}"))
        for client, before in shown.items():
            after = shown[client] = {*ask.texts(name, kind, client=client)}
            assert len(before - after) <= 1
            assert all(f"10.9.0.{step}" in one or f"new-{step}." in one for one in after - before)
    for step in range(10):
        gone = f"10.9.0.{step}", f"new-{step}."
        ask.pictured.drop(("east", f"new-{step}"))
        for client, before in shown.items():
            after = shown[client] = {*ask.texts(name, kind, client=client)}
            assert all(gone[0] in one or gone[1] in one for one in before - after)
            assert len(after - before) <= 1
    assert {client: len(found) for client, found in shown.items()} == size


@pytest.mark.parametrize("count", [20, 100, 5_000])
def test_each_record_is_given_to_about_as_many_clients(count: int) -> None:
    spread, counts = Spread([b"record %d" % number for number in range(count)]), Counter[int]()
    clients = 200 * count // MOST_ADDRESSES
    for number in range(clients):
        counts.update(islice(spread.order(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"), MOST_ADDRESSES))
    assert len(counts) == count
    assert max(counts.values()) < 400


def test_the_records_of_a_short_answer_come_in_every_order() -> None:
    ask = asking(*many(3))
    orders = {tuple(str(item) for item in ask(WEB).answer[0]) for _ in range(200)}
    assert len(orders) == 6


@pytest.mark.parametrize("payload", [0, 512, 600, 1232, 4096])
def test_no_answer_is_longer_than_its_asker_takes(payload: int) -> None:
    ask = asking(*many(500))
    name = ".".join(["x" * 50] * 3)
    for asked in (WEB, f"{name}.rev.web.service.hq.internal.", f"{name}.hq.internal."):
        for kind in ("A", "AAAA", "SRV", "TXT", "ANY"):
            ask(asked, kind, payload=payload)


@pytest.mark.parametrize(("payload", "least"), [(0, 5), (1232, 16), (4096, 60), (8192, 60)])
def test_srv_over_udp_has_as_many_records_as_fit_and_is_whole_over_tcp(payload: int, least: int) -> None:
    ask = Asking(picture_of(*many(400)), udp_bytes=4096)
    name = "_http._tcp.web.service.hq.internal."
    said = ask(name, "SRV", payload=payload)
    assert said.flags & dns.flags.TC
    assert least <= len(targets_of(said)) < 400
    record_bytes = 80
    assert len(said.to_wire()) > min(payload or 512, 4096) - record_bytes
    assert len(ask.texts(name, "SRV", tcp=True)) == 400
    assert len(ask.texts(WEB, "A", tcp=True)) == 400


HERE, FAR = "10.1.1.1", "8.8.8.8"


@pytest.mark.parametrize(
    ("client", "most"),
    [
        ("127.0.0.1", 4096),
        (HERE, 4096),
        ("::1", 4096),
        ("fd00::1", 4096),
        ("fe80::1%eth0", 4096),
        ("::ffff:10.1.1.1", 4096),
        (FAR, 1232),
        ("2a00::1", 1232),
        ("::ffff:8.8.8.8", 1232),
    ],
)
def test_how_much_fits_over_udp_depends_on_where_the_client_is(client: str, most: int) -> None:
    ask = Asking(picture_of(*many(400)), udp_bytes=None)
    size = len(ask(f"_http._tcp.{WEB}", "SRV", payload=8192, client=client).to_wire())
    assert most - 80 < size <= most


@pytest.mark.parametrize("order", [(HERE, FAR, HERE, FAR), (FAR, HERE, FAR, HERE)])
@pytest.mark.parametrize(
    ("count", "far"),
    [(12, (12, False, 12)), (16, (16, False, 0)), (30, (18, True, 0))],  # records, truncated, addresses of targets
)
def test_no_client_gets_an_answer_cached_for_another_size(
    order: tuple[str, ...], count: int, far: tuple[int, bool, int]
) -> None:
    ask = Asking(picture_of(*many(count)), udp_bytes=None)
    for client in order:
        said = ask(f"_http._tcp.{WEB}", "SRV", payload=4096, client=client)
        shown = len(targets_of(said)), bool(said.flags & dns.flags.TC), len(said.additional)
        assert shown == (far if client == FAR else (count, False, count))


@pytest.mark.long
def test_srv_over_tcp_has_as_many_of_ten_thousand_as_fit() -> None:
    assert 900 < len(asking(*many(10_000)).texts("_http._tcp.web.service.hq.internal.", "SRV", tcp=True)) < 2_000


def test_cached_answers_last_until_their_own_service_changes() -> None:
    ask = asking(*THREE, known("db-1", "db"))
    ask(WEB)
    kept = len(ask.responder._kept)
    ask.pictured.put(known("db-1", "db", host="10.0.0.9"))
    assert len(ask.responder._kept) == kept == 1
    ask.pictured.put(known("web-1", host="10.0.0.7"))
    assert ask.responder._kept == {}
    assert ask.texts(WEB) == ["10.0.0.2", "10.0.0.7"]


def test_services_whose_id_is_no_label_have_no_name_and_are_counted() -> None:
    ask = asking(known("a", "Web"), known("b", "shop.v2"), known("c", "fine"))
    assert (ask.code(WEB), ask.code("fine.service.hq.internal.")) == ("NXDOMAIN", "NOERROR")
    assert ask.responder._zone.unnamed_services == 2


def test_the_serial_of_the_zone_grows_with_each_change() -> None:
    ask = asking(*THREE)

    def serial() -> int:
        return int(ask("hq.internal.", "SOA").answer[0][0].serial)

    before = serial()
    ask.pictured.put(known("web-1", host="10.0.0.9"))
    assert serial() == before + 1


def test_names_are_parsed_from_right_to_left() -> None:
    asked = parse_name([b"_http", b"_tcp", b"v", b"k", b"label", b"r1", b"rev", b"web", b"service", *ZONE], ZONE)
    assert (asked.kind, asked.service, asked.port, asked.revision, asked.labels) == (
        NameKind.SERVICE,
        "web",
        "http",
        "r1",
        (("k", "v"),),
    )


def test_a_query_in_another_case_shares_the_cached_answer() -> None:
    ask = asking(*many(1_000))
    ask(WEB)
    query = wire.read_query(dns.message.make_query("wEb.SERVICE.hq.internal.", "A").to_wire())
    zone = ask.responder._zone
    assert zone.answer(query) is zone.answer(query)
    assert len(ask("WEB.service.hq.internal.").answer[0]) == MOST_ADDRESSES


def test_queries_for_invented_names_are_not_cached() -> None:
    ask = asking(*THREE)
    for number in range(200):
        ask(f"x{number}.tier.label.web.service.hq.internal.")
        ask(f"x{number}.service.hq.internal.")
    assert ask.responder._zone._answers_kept == 0
    ask(WEB)
    ask(WEB, "AAAA")
    assert ask.responder._zone._answers_kept == 2
    ask.pictured.put(known("web-1", host="10.0.0.9"))
    assert ask.responder._zone._answers_kept == 0


@given(st.lists(st.tuples(st.sampled_from(["east", "west"]), st.booleans(), st.integers(0, 3)), max_size=30))
def test_knowledge_counts_the_instances_of_each_location(steps: list[tuple[str, bool, int]]) -> None:
    pictured = picture_of(heard=["east", "west"])
    for cluster, is_there, number in steps:
        key = (cluster, f"web-{number}")
        if is_there:
            pictured.put(known(f"web-{number}", cluster=cluster))
        elif key in pictured.picture.instances("web"):
            pictured.drop(key)
    for location in ("east", "west"):
        found = any(key[0] == location for key in pictured.picture.instances("web"))
        wanted = Knowledge.PRESENT if found else Knowledge.ABSENT
        assert pictured.picture.knowledge("web", location) is wanted
