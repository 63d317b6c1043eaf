"""Which specification a running revision acknowledges, and which part of an allocation restarts it."""

from __future__ import annotations

import pytest

from hqclient.allocations import restarting_part
from hqpb.v1 import instance_pb2 as model
from instancectl.containers.workshop import Blueprint, blueprints
from instancectl.reports import conditions
from instancectl.wanted.desired import Desired, container_digest, former_container_digest

READY, INSTALLED = model.REVISION_TARGET_READY, model.REVISION_TARGET_INSTALLED


def allocation() -> model.ResourceAllocation:
    made = model.ResourceAllocation(host="web-1", cpu_millicores=500, memory_bytes=1 << 20, network_bytes_per_second=9)
    made.port.add(name="http", number=8080)
    made.disk.add(name="data", path="/disk", size_bytes=5, storage_class="ssd")
    return made


def desired(version: int) -> Desired:
    revisions = (
        model.InstanceRevision(id="r1", target=READY, container=[model.Container(name="main")]),
        model.InstanceRevision(id="r2", target=INSTALLED),
    )
    return Desired("i-1", "node-1", revisions, allocation(), uid=1, version=version)


def test_a_running_revision_acknowledges_the_spec_it_was_started_from() -> None:
    wanted = desired(5)
    stage = conditions.RunningRevision(wanted.ready_key, spec_version=4)
    found = conditions.statuses(wanted, lambda key: conditions.INSTALLED, stage, {}, 0.0)
    assert {name: status.spec_version for name, status in found.items()} == {"r1": 4, "r2": 5}


@pytest.mark.parametrize("change", ["network", "disk size", "storage class"])
def test_some_fields_of_an_allocation_do_not_restart_a_container(change: str) -> None:
    other = allocation()
    if change == "network":
        other.network_bytes_per_second = 10
    elif change == "disk size":
        other.disk[0].size_bytes = 6
    else:
        other.disk[0].storage_class = "hdd"
    assert restarting_part(other) == restarting_part(allocation())


@pytest.mark.parametrize("change", ["host", "port", "disk path", "cpu", "memory"])
def test_other_fields_of_an_allocation_restart_a_container(change: str) -> None:
    other = allocation()
    match change:
        case "host":
            other.host = "web-2"
        case "port":
            other.port[0].number = 8081
        case "disk path":
            other.disk[0].path = "/other"
        case "cpu":
            other.cpu_millicores = 501
        case "memory":
            other.memory_bytes = 1 << 21
    container = model.Container(name="main")
    assert container_digest(container, other) != container_digest(container, allocation())


def test_a_container_started_by_an_earlier_version_is_known_by_its_digest() -> None:
    wanted = desired(5)
    assert wanted.ready_key is not None
    blueprint: Blueprint = blueprints(wanted.ready_key, wanted.revisions[0], wanted)["main"]
    assert blueprint.is_origin_of(former_container_digest(model.Container(name="main"), allocation()))
    assert blueprint.is_origin_of(blueprint.digest)
    assert not blueprint.is_origin_of("another")
