"""`walle hosts import` as people type it, over a running Wall-E; and pages and filters of lists of hosts."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.walle.running import Running, running
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, HOST_STATE_MAINTENANCE, Machine
from wallepb.v1.project_pb2 import Project

WALLE = str(Path(sys.executable).parent / "walle")
COUNT = 120  # three calls


@pytest.fixture
async def walle() -> AsyncIterator[Running]:
    async with running() as one:
        await one.project(Project(id="web"))
        await one.project(Project(id="db"))
        yield one


async def typed(walle: Running, command: str, code: int = 0, stdin: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *(WALLE, *shlex.split(command)),
        env=os.environ | {"WALLE_SERVER": (await walle.server.listening).grpc},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate(stdin.encode()))[0].decode()
    assert process.returncode == code, output[-500:]
    return output


def csv_of(count: int, rack: str = "r1") -> str:
    rows = [f"h{n:03},{n + 1},10.7.{n // 250}.{n % 250},{rack},free" for n in range(count)]
    return "\n".join(["name,inventory,bmc,rack,state", *rows])


@pytest.mark.long
async def test_a_file_is_compared_checked_and_imported_and_again_changes_nothing(walle: Running) -> None:
    command = "hosts import - --project web"
    shown = await typed(walle, f"{command} --dry-run", stdin=csv_of(COUNT))
    assert "+ h000 in web\n    inventory: - -> 1\n    bmc: - -> 10.7.0.0\n    rack: - -> r1\n" in shown
    assert f"{COUNT} hosts would be imported: {COUNT} new, 0 changed, 0 as they were" in shown
    assert not walle.server.automaton.hosts
    await typed(walle, command, stdin=csv_of(COUNT))
    host = walle.of("h007")
    assert (host.project, host.state, host.inventory, host.bmc) == ("web", HOST_STATE_FREE, 8, "10.7.0.7")
    assert len(walle.server.automaton.hosts) == COUNT
    again = await typed(walle, f"{command} --dry-run", stdin=csv_of(COUNT))
    assert again == f"{COUNT} hosts would be imported: 0 new, 0 changed, {COUNT} as they were\n"
    moved = await typed(walle, command, stdin="name,rack\nh007,r2")
    assert moved == "~ h007\n    rack: r1 -> r2\n1 hosts imported: 0 new, 1 changed, 0 as they were\n"
    assert (walle.of("h007").location.rack, walle.of("h007").bmc) == ("r2", "10.7.0.7")


@pytest.mark.long
async def test_hosts_of_many_projects_are_imported_in_as_many_calls_as_it_takes(walle: Running) -> None:
    projects = [f"p{n}" for n in range(30)]
    for project in projects:
        await walle.project(Project(id=project))
    rows = [f"h{n:03},{projects[n % 30]},free" for n in range(COUNT)]
    shown = await typed(walle, "hosts import -", stdin="\n".join(["name,project,state", *rows]))
    assert f"{COUNT} hosts imported: {COUNT} new, 0 changed, 0 as they were" in shown
    assert walle.of("h119").project == "p29"


@pytest.mark.parametrize(("projects", "status"), [(10, 200), (11, 400)])
async def test_an_import_too_large_for_one_transaction_is_refused_also_as_a_dry_run(
    walle: Running, projects: int, status: int
) -> None:
    for number in range(projects):
        await walle.project(Project(id=f"p{number}"))
    machines = [Machine(name=f"h{n}", project=[f"p{n % projects}"]) for n in range(50)]
    hosts = [pb.AddHostRequest(host=one.name, project=one.project[0], state=HOST_STATE_FREE) for one in machines]
    for dry_run in (True, False):
        order = pb.ImportMachinesRequest(machines=machines, hosts=hosts, dry_run=dry_run)
        await walle.call(order, status=status)
    assert len(walle.server.automaton.hosts) == (50 if status == 200 else 0)


@pytest.mark.parametrize(
    ("row", "code", "fault"),
    [
        ("h060,9999,10.7.0.1,web", 4, "row 62: machine h060: address 10.7.0.1 belongs to old"),
        ("h060,7,,web", 4, "row 62: machine h060: inventory number 7 belongs to old"),
        ("h060,9999,1 2,web", 1, "row 62: bmc: "),
        ("h060,9999,,nowhere", 3, "row 62: host h060: project nowhere does not exist"),
        (
            "old,7,10.7.0.1,db",
            4,
            "row 62: host old is in project web: move it with `walle hosts switch-project old db`",
        ),
    ],
)
async def test_one_bad_row_is_named_and_nothing_is_imported(walle: Running, row: str, code: int, fault: str) -> None:
    await walle.call(pb.AddHostRequest(host="old", project="web", inventory=7, bmc="10.7.0.1", state=HOST_STATE_FREE))
    rows = [f"h{n:03},,,web" for n in range(60)]
    file = "\n".join(["name,inventory,bmc,project", *rows, row])
    shown = await typed(walle, "hosts import -", code=code, stdin=file)
    assert fault in shown
    assert len(walle.server.automaton.hosts) == 1


async def test_hosts_of_an_import_must_be_among_its_machines_and_have_no_fields_of_their_own(walle: Running) -> None:
    machine = Machine(name="h1", project=["web"])
    for host in (
        pb.AddHostRequest(host="h2", project="web"),
        pb.AddHostRequest(host="h1", project="web", bmc="10.7.0.9"),
        pb.AddHostRequest(host="h1", project="web", state=HOST_STATE_MAINTENANCE),
    ):
        await walle.call(pb.ImportMachinesRequest(machines=[machine], hosts=[host]), status=400)
    assert not walle.server.automaton.machines


@pytest.mark.long
async def test_hosts_are_listed_in_pages_and_by_filters(walle: Running) -> None:
    machines = [Machine(name=f"h{n}", project=["web"], location={"dc": f"dc{n % 2}"}) for n in range(7)]
    hosts = [pb.AddHostRequest(host=one.name, project="web", state=HOST_STATE_FREE) for one in machines]
    await walle.call(pb.ImportMachinesRequest(machines=machines, hosts=hosts))
    names, token = list[str](), ""
    while True:
        page = await walle.call(pb.ListHostsRequest(page_size=3, page_token=token, names=["h*"]))
        names += [one["host"]["name"] for one in page["hosts"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert names == [f"h{n}" for n in range(7)]
    await walle.call(pb.ListHostsRequest(page_size=1001), status=400)
    await walle.report("h3", "ssh")
    await walle.until(lambda: bool(walle.of("h3").check), "the check is known")
    for where, expected in (
        ({"dc": "dc1"}, ["h1", "h3", "h5"]),
        ({"names": ["h2", "*6"]}, ["h2", "h6"]),
        ({"check": "ssh"}, ["h3"]),
        ({"state": HOST_STATE_MAINTENANCE}, []),
        ({"state": HOST_STATE_FREE, "dc": "dc0", "names": ["h4"]}, ["h4"]),
    ):
        shown = await walle.call(pb.ListHostsRequest(**where))
        assert sorted(one["host"]["name"] for one in shown.get("hosts", [])) == expected, where
