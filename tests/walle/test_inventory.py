"""The names and addresses of a machine come from the inventory, not from its owner. Over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from tests.support.walle.guarded import Guarded, guarded
from walle.work.book import HOST, WalleTransaction
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    HOST_STATUS_READY,
    OPERATION_KIND_REBOOT,
    Host,
    Location,
    Machine,
)
from wallepb.v1.project_pb2 import Project

ME = "web-uploader"


@pytest.fixture
async def walle(tmp_path: Path) -> AsyncIterator[Guarded]:
    """Projects `web` and `more` of web-uploader, and `prod` of somebody else."""
    async with guarded(tmp_path) as made:
        for project, owner in (("web", ME), ("more", ME), ("prod", "somebody")):
            await done(made, "admin", pb.CreateProjectRequest(project=Project(id=project, owners=[owner])))
        yield made


async def done(walle: Guarded, who: str, order: Message) -> None:
    status, answer = await walle.call(who, order)
    assert (status, answer.keys() - {"changes"}) == (200, set()), (order, answer)


async def refused(walle: Guarded, who: str, order: Message, why: str) -> None:
    status, answer = await walle.call(who, order)
    assert status >= 400, order
    assert why in answer["message"]


def imported(*machines: Machine) -> pb.ImportMachinesRequest:
    return pb.ImportMachinesRequest(machines=machines)


def machine(name: str, *projects: str, **more: Any) -> Machine:
    return Machine(name=name, project=projects, **more)


def added(host: str, project: str = "web", **more: Any) -> pb.AddHostRequest:
    return pb.AddHostRequest(host=host, project=project, state=HOST_STATE_FREE, **more)


FULL = machine(
    "lab-1",
    "web",
    inventory=100500,
    bmc="10.7.0.1",
    address=["10.1.0.1", "2001:db8::1"],
    location=Location(dc="ams", rack="r1", switch="s1"),
)


@pytest.mark.parametrize("named", ["lab-1", "100500"])
async def test_an_owner_adds_a_machine_by_name_or_number_and_the_inventory_says_the_rest(
    walle: Guarded, named: str
) -> None:
    await done(walle, "lab-operator", imported(FULL))
    await done(walle, ME, added(named))
    host = walle.walle.of("lab-1")
    assert (host.inventory, host.bmc, list(host.address)) == (100500, "10.7.0.1", ["10.1.0.1", "2001:db8::1"])
    assert (host.location, host.listed, host.project) == (FULL.location, True, "web")
    await refused(walle, ME, added("lab-1"), "already exists")


async def test_an_owner_cannot_add_any_other_machine_or_field(walle: Guarded) -> None:
    await done(walle, "admin", imported(machine("prod-1", "prod", inventory=7), machine("any-1", "w*")))
    for host in ("prod-1", "7", "nowhere-1", "100500"):
        await refused(walle, ME, added(host), "is not in the inventory, or not for project web: an operator")
    for word in (
        {"bmc": "10.7.0.9"},
        {"address": ["10.7.0.9"]},
        {"inventory": 9},
        {"location": Location(rack="r9")},
    ):
        assert await walle.status(ME, added("any-1", **word)) == 403, word
    assert await walle.status(ME, added("any-1", "prod")) == 403
    await done(walle, ME, added("any-1"))
    assert sorted(walle.walle.server.automaton.hosts) == ["any-1"]


@pytest.mark.parametrize("who", [ME, "web-admin", "agent/lab-1", "lab-operator", "lab-admin"])
async def test_only_a_caller_whose_scope_has_a_machine_imports_or_removes_it(walle: Guarded, who: str) -> None:
    await done(walle, "admin", imported(machine("prod-1")))
    for order in (imported(machine("prod-1", "web")), pb.RemoveMachineRequest(machine="prod-1")):
        assert await walle.status(who, order) == 403
    assert await walle.status(who, imported(machine("lab-2"), machine("prod-2"))) == 403
    assert list(walle.walle.server.automaton.machines) == ["prod-1"], "all of a call, or nothing"
    assert await walle.status(who, imported(machine("lab-2"))) == (200 if who.startswith("lab-") else 403)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"bmc": "10.7.0.1"}, "address 10.7.0.1"),
        ({"bmc": "10.7.0.1:8443"}, "address 10.7.0.1"),
        ({"bmc": "[::ffff:10.7.0.1]"}, "address 10.7.0.1"),
        ({"bmc": "10.1.0.1"}, "address 10.1.0.1"),
        ({"bmc": "[2001:DB8::1]:443"}, "address 2001:db8::1"),
        ({"address": ["10.7.0.1"]}, "address 10.7.0.1"),
        ({"address": ["2001:db8:0::1"]}, "address 2001:db8::1"),
        ({"inventory": 100500}, "inventory number 100500"),
    ],
)
async def test_an_address_and_a_number_belong_to_one_machine_only(
    walle: Guarded, other: dict[str, Any], what: str
) -> None:
    """Else a reset of the one is a reset of the other."""
    await done(walle, "admin", imported(FULL))
    why = f"machine lab-2: {what} belongs to lab-1"
    await refused(walle, "admin", imported(machine("lab-2", **other)), why)
    await refused(walle, "admin", added("lab-2", **other), why)
    both = imported(machine("lab-3", bmc="10.7.0.3"), machine("lab-4", bmc="10.7.0.3:443"))
    await refused(walle, "admin", both, "machine lab-4: address 10.7.0.3 belongs to lab-3")
    assert list(walle.walle.server.automaton.machines) == ["lab-1"]


async def test_the_owner_of_an_address_is_told_only_to_callers_that_cover_its_machine(walle: Guarded) -> None:
    """A dry run for a whole network would tell which machine is where."""
    await done(walle, "admin", imported(machine("prod-1", bmc="10.7.0.1"), machine("lab-1", bmc="10.7.0.2")))
    for order in (
        imported(machine("lab-2", bmc="10.7.0.1")),
        pb.ImportMachinesRequest(machines=[machine("lab-2", bmc="10.7.0.1")], dry_run=True),
        added("lab-2", bmc="10.7.0.1"),
    ):
        await refused(walle, "lab-operator", order, "address 10.7.0.1 belongs to another machine")
    await refused(walle, "lab-operator", imported(machine("lab-2", bmc="10.7.0.2")), "10.7.0.2 belongs to lab-1")


async def test_a_number_does_not_reveal_the_name_of_a_machine_out_of_reach(walle: Guarded) -> None:
    await done(walle, "admin", imported(machine("prod-1", "prod", inventory=7)))
    await done(walle, "admin", added("prod-1", "prod"))
    for order in (
        added("7"),
        added("prod-1"),
        added("7", "prod"),
        pb.SetHostStateRequest(host="7", status=HOST_STATUS_READY),
        pb.StartOperationRequest(host="7", kind=OPERATION_KIND_REBOOT),
        pb.CancelOperationRequest(host="7"),
        pb.ChangeHostRequest(host="7", change=pb.HOST_CHANGE_PREPARE),
    ):
        status, answer = await walle.call(ME, order)
        named = order.host == "prod-1"
        assert (status in (403, 404), "prod-1" in answer["message"]) == (True, named), (order, answer)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"bmc": "-oProxyCommand=x"}, "machines[0].bmc"),
        ({"bmc": "ada@10.7.0.1"}, "machines[0].bmc"),
        ({"address": ["ns.example"]}, "machines[0].address"),
        ({"project": ["-x"]}, "machines[0].project"),
        ({"location": Location(rack="r\n1")}, "machines[0].location"),
    ],
)
async def test_a_bad_field_of_a_machine_is_named(walle: Guarded, bad: dict[str, Any], field: str) -> None:
    await refused(walle, "admin", imported(Machine(name="lab-1", **bad)), field)


async def test_an_import_also_changes_the_host_and_can_be_repeated(walle: Guarded) -> None:
    await done(walle, "admin", imported(FULL))
    await done(walle, ME, added("lab-1"))
    moved = machine("lab-1", "web", bmc="10.7.0.2", location=Location(rack="r2"))
    for _ in range(2):
        await done(walle, "lab-operator", imported(moved))
        host = walle.walle.of("lab-1")
        assert (host.bmc, host.location.rack, host.inventory, list(host.address)) == ("10.7.0.2", "r2", 0, [])
    await refused(walle, "admin", pb.RemoveMachineRequest(machine="lab-1"), "is a host: remove that first")
    await done(walle, ME, pb.ChangeHostRequest(host="lab-1", change=pb.HOST_CHANGE_REMOVE))
    await done(walle, "admin", pb.RemoveMachineRequest(machine="lab-1"))
    await refused(walle, ME, added("lab-1"), "is not in the inventory")


async def test_an_owner_moves_a_host_only_where_the_inventory_permits_it(walle: Guarded) -> None:
    await done(walle, "admin", imported(machine("lab-1", "web")))
    await done(walle, ME, added("lab-1"))
    move = pb.ChangeHostRequest(host="lab-1", change=pb.HOST_CHANGE_MOVE, project="more")
    await refused(walle, ME, move, "not for project more")
    await done(walle, "lab-operator", move)
    assert list(walle.walle.server.automaton.machines["lab-1"].project) == ["web", "more"]


async def test_an_operator_who_adds_a_host_imports_it(walle: Guarded) -> None:
    await done(walle, "lab-operator", added("lab-1", bmc="10.7.0.1"))
    assert walle.walle.server.automaton.machines["lab-1"] == machine("lab-1", "web", bmc="10.7.0.1")
    assert await walle.status("lab-operator", added("prod-1", bmc="10.7.0.2")) == 403


async def test_a_number_beyond_all_bounds_is_no_host(walle: Guarded) -> None:
    """Python refuses to read it, which was an internal error."""
    assert await walle.status(ME, pb.GetHostRequest(host="9" * 5000)) == 404
    assert await walle.status(ME, added("9" * 5000)) == 400


async def test_addresses_are_shown_to_those_who_may_import_them(walle: Guarded) -> None:
    await done(walle, "admin", imported(FULL, machine("prod-1", "prod", bmc="10.7.0.9")))
    for who, names in ((ME, ["lab-1"]), ("lab-operator", ["lab-1"]), ("admin", ["lab-1", "prod-1"]), ("web-admin", [])):
        _, answer = await walle.call(who, pb.ListMachinesRequest())
        assert [one["name"] for one in answer.get("machines", [])] == names
        assert any("bmc" in one for one in answer.get("machines", [])) is (who in ("lab-operator", "admin"))


async def test_nothing_is_done_to_a_host_that_an_older_version_added(walle: Guarded) -> None:
    def tamper(book: WalleTransaction) -> None:
        assert book.get(HOST, "lab-1") is None
        old = Host(name="lab-1", project="web", bmc="10.7.0.1", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_READY)
        book.put(HOST, "lab-1", old)

    await walle.walle.server.automaton.storing.transact(tamper)
    for order in (
        pb.StartOperationRequest(host="lab-1", kind=OPERATION_KIND_REBOOT),
        pb.SetHostStateRequest(host="lab-1", state=HOST_STATE_MAINTENANCE),
        pb.ChangeHostRequest(host="lab-1", change=pb.HOST_CHANGE_REMOVE),
    ):
        await refused(walle, ME, order, "is not in the inventory: an operator")
    report = pb.HostChecks(host="lab-1", check=[pb.CheckReport(name="ssh", failing=True)])
    assert await walle.status("lab-operator", pb.ReportChecksRequest(hosts=[report])) == 200
    await walle.walle.until(lambda: len(walle.walle.of("lab-1").check) == 1, "the check is stored")
    _, answer = await walle.call(ME, pb.GetHostRequest(host="lab-1"))
    assert "is not in the inventory" in answer["blocked"]
    _, answer = await walle.call(ME, pb.GetProjectRequest(project="web"))
    assert "1 host is not in the inventory" in str(answer["warnings"])
    await done(walle, "lab-operator", imported(machine("lab-1", "web")))
    assert (walle.walle.of("lab-1").bmc, walle.walle.of("lab-1").listed) == ("", True)
    await walle.walle.until(lambda: walle.walle.of("lab-1").HasField("operation"), "its repair begins")


async def test_a_fresh_project_shows_the_limits_that_are_in_force(walle: Guarded) -> None:
    _, answer = await walle.call(ME, pb.GetLimitsRequest(project="web"))
    shown = {one["counter"]: one["pair"] for one in answer["usage"]}
    assert shown == dict.fromkeys(
        ("UNREACHABLE", "dead", "disk", "dns-fixes", "firmware", "link", "memory", "ssh"), "1d:10"
    )


async def test_a_tenth_of_a_project_on_probation_is_a_warning(walle: Guarded) -> None:
    def store(book: WalleTransaction) -> None:
        assert book.get(HOST, "web-1") is None
        book.put(HOST, "web-1", Host(name="web-1", project="web", state=HOST_STATE_PROBATION))

    await walle.walle.server.automaton.storing.transact(store)
    _, answer = await walle.call(ME, pb.GetProjectRequest(project="web"))
    assert "1 of 1 hosts on probation" in str(answer["warnings"])
