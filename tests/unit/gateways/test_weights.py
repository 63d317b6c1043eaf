"""Weights at the gateways: DNS, xDS and Consul say the same of the same instances."""

from __future__ import annotations

from collections import Counter

import pytest

from hqclient.discovery import KnownInstance
from tests.support.pictures import known, picture_of
from tests.unit.gateways.test_consul import Asking as AskingConsul
from tests.unit.gateways.test_dns_zone import WEB, asking
from tests.unit.gateways.test_xds import EDS, client
from xdspb.v1 import xds_pb2 as pb

SRV = "_http._tcp.web.service.hq.internal."


def weighed(*weights: int, cluster: str = "east") -> list[KnownInstance]:
    return [
        known(f"web-{n}", host=f"10.0.{n // 250}.{n % 250}", cluster=cluster, weight=weight)
        for n, weight in enumerate(weights)
    ]


def srv_weights(*weights: int) -> dict[str, int]:
    texts = asking(*weighed(*weights), heard=["east"]).texts(SRV, "SRV")
    return {text.split()[3].partition(".")[0]: int(text.split()[1]) for text in texts}


@pytest.mark.parametrize(
    ("weights", "shown"),
    [
        ((100, 100), [65_535, 65_535]),
        ((1, 99), [661, 65_535]),
        ((1, 1_000, 0), [65, 65_535]),
        ((0, 0), [65_535, 65_535]),
    ],
)
def test_the_largest_weight_becomes_the_largest_srv_weight(weights: tuple[int, ...], shown: list[int]) -> None:
    assert sorted(srv_weights(*weights).values()) == shown


def test_a_resting_instance_is_left_out_of_its_service_and_keeps_its_own_name() -> None:
    ask = asking(*weighed(100, 0), heard=["east"])
    assert ask.texts(WEB) == ["10.0.0.0"]
    assert ask.texts(f"web-1.inst.{WEB}") == ["10.0.0.1"]


def test_a_changed_weight_leaves_a_client_nearly_all_its_targets() -> None:
    def targets(*weights: int) -> set[str]:
        ask = asking(*weighed(*weights), heard=["east"])
        return {text.split()[3] for text in ask.texts(SRV, "SRV", client="10.9.9.9")}

    before, after = targets(*[100] * 200), targets(*[100] * 199, 1_000)
    assert len(before) < 200
    assert len(before - after) <= 1


def localities(*instances: KnownInstance, place: str = "") -> list[tuple[int, str, str, int, list[int]]]:
    [assignment] = client(*instances).wants_all("web", place)[EDS]
    assert isinstance(assignment, pb.ClusterLoadAssignment)
    return [
        (
            one.priority,
            one.locality.zone,
            one.locality.sub_zone,
            one.load_balancing_weight.value,
            [endpoint.load_balancing_weight.value for endpoint in one.lb_endpoints],
        )
        for one in assignment.endpoints
    ]


def test_each_weight_of_a_location_is_a_locality_as_grpc_ignores_weights_of_endpoints() -> None:
    assert localities(*weighed(100, 100, 1, 0)) == [
        (0, "east", "weight-1", 1, [1]),
        (0, "east", "", 200, [100, 100]),
    ]


def test_if_all_instances_rest_they_have_equal_weights() -> None:
    assert localities(*weighed(0, 0)) == [(0, "east", "", 2, [1, 1])]


def test_a_location_where_all_instances_rest_leaves_calls_to_the_others() -> None:
    there = known("web-9", host="10.9.0.9", cluster="west")
    assert localities(*weighed(0, 0), there, place="east") == [(0, "west", "", 100, [100])]


async def consul(*weights: int, path: str = "health/service/web") -> list[tuple[str, str, dict[str, int]]]:
    ask = AskingConsul(picture_of(*weighed(*weights), heard=["east"]))
    return [
        (entry["Service"]["ID"], entry["Checks"][0]["Status"], entry["Service"]["Weights"])
        for entry in await ask.json(path)
    ]


async def test_consul_shows_weights_and_a_resting_instance_as_a_warning() -> None:
    assert await consul(1, 0) == [
        ("web-0", "passing", {"Passing": 1, "Warning": 1}),
        ("web-1", "warning", {"Passing": 1, "Warning": 0}),
    ]
    assert [id_ for id_, *_ in await consul(1, 0, path="health/service/web?passing")] == ["web-0"]


async def test_in_consul_all_instances_pass_if_all_rest() -> None:
    found = await consul(0, 0, path="health/service/web?passing")
    assert Counter(status for _, status, _ in found) == {"passing": 2}


async def test_a_resting_instance_passes_again_when_the_last_other_one_goes() -> None:
    pictured = picture_of(*weighed(100, 0), heard=["east"])
    ask = AskingConsul(pictured)
    assert [entry["Service"]["ID"] for entry in await ask.json("health/service/web?passing")] == ["web-0"]
    pictured.drop(("east", "web-0"))
    assert [entry["Service"]["ID"] for entry in await ask.json("health/service/web?passing")] == ["web-1"]
