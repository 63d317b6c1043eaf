"""The commands of the documents that Wall-E was designed from, typed as they stand there but for the program's name."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cms.ledger.limits import Site
from cms.sites import parse_sites
from hqcli.exits import Exit
from tests.support.walle.fake_cms import fake_cms
from tests.support.walle.running import Running, running
from walle.fuses.fuse import Automation, switch_of
from walle.fuses.limits import format_limit
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, OPERATION_KIND_PREPARE
from wallepb.v1.project_pb2 import Project

pytestmark = pytest.mark.long

WALLE = str(Path(sys.executable).parent / "walle")
URL = "http://cms.example.net/project/web"
Typed = Callable[[str, int], Awaitable[str]]


@pytest.fixture
async def walle() -> AsyncIterator[Running]:
    async with running() as one:
        await one.project(Project(id="web"))
        yield one


@pytest.fixture
async def typed(walle: Running) -> Typed:
    address = (await walle.server.listening).grpc

    async def run(command: str, code: int) -> str:
        process = await asyncio.create_subprocess_exec(
            *(WALLE, *shlex.split(command)),
            env=os.environ | {"WALLE_SERVER": address},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert process.returncode == code, output
        return output

    return run


def cms_of(walle: Running) -> list[tuple[str, str, str, int]]:
    return [
        (one.url, one.version, one.tvm_app_id, one.max_busy_hosts) for one in walle.server.automaton.projects["web"].cms
    ]


async def test_the_cms_of_a_project_is_replaced_and_another_one_is_added(walle: Running, typed: Typed) -> None:
    await typed(f"projects modify-project-cms replace web --cms {URL} -v v1.4 --tvm-app-id 7", 0)
    assert cms_of(walle) == [(URL, "v1.4", "7", 0)]
    await typed(f"projects modify-project-cms add web --cms {URL}-2 -v v1.1 --tvm-app-id 8", 0)
    assert cms_of(walle) == [(URL, "v1.4", "7", 0), (f"{URL}-2", "v1.1", "8", 0)]
    same = await typed(f"projects modify-project-cms add web --cms {URL} -v v1.0", 1)
    assert "each URL once" in same
    spelled = "HTTP://CMS.Example.net:80/project/web/"
    assert "each URL once" in await typed(f"projects modify-project-cms add web --cms {spelled} -v v1.0", 1)
    await typed(f"projects modify-project-cms replace web --cms {spelled} -v v1.4", 0)
    assert cms_of(walle) == [(URL, "v1.4", "", 0)]
    await typed("projects modify-project-cms replace web --cms default --max-busy-hosts 3", 0)
    assert cms_of(walle) == [("default", "v1.0", "", 3)]


async def test_a_wait_for_refused_work_ends_with_the_exit_code_of_a_refusal_and_the_words_of_the_cms(
    walle: Running, typed: Typed
) -> None:
    with fake_cms(dry_verdict="rejected", message="the last copy") as cms:
        await typed(f"projects modify-project-cms replace web --cms {cms.url} -v v1.4", 0)
        await walle.host("h1")
        said = await typed("hosts run reboot h1 --wait 20s -m 'it hangs'", Exit.REFUSED)
        assert cms.url in said
        assert "the last copy" in said


async def test_the_reason_of_an_emergency_stop_is_shown_wherever_it_concerns_somebody(
    walle: Running, typed: Typed
) -> None:
    await walle.host("h1")
    await typed("kill -m 'everything is red'", 0)
    for command in ("settings get", "projects get web", "projects automation enable web"):
        assert "everything is red" in await typed(command, 0), command
    assert "everything is red" in await typed("hosts run reboot h1", 0)
    assert "everything is red" in await typed("hosts get h1", 0)
    await typed("unkill -m over", 0)
    await typed("settings set disable_automation true -m 'power fails'", 0)
    assert "off for all projects" in await typed("projects automation enable web", 0)


async def test_the_default_cms_needs_a_number_of_hosts_and_it_is_at_least_one(walle: Running, typed: Typed) -> None:
    for number in ("", "--max-busy-hosts 0"):
        refused = await typed(f"projects modify-project-cms replace web --cms default {number}", 1)
        assert "max_busy_hosts of at least 1" in refused
    assert cms_of(walle) == [("default", "v1.0", "", 5)]


async def test_limits_are_set_per_check_with_pairs_of_period_and_count(walle: Running, typed: Typed) -> None:
    words = (
        "projects automation limits set web --dns-fixes 1d:5 --ssh 2h:5 -o disk 1d:10 -m 'set limits for dns and ssh'"
    )
    await typed(words, 0)
    project = walle.server.automaton.projects["web"]
    shown = {counter: format_limit(limit) for counter, limit in project.limits.items()}
    assert shown == {"dns-fixes": "1d:5", "ssh": "2h:5", "disk": "1d:10"}
    assert project.limits_reason == "set limits for dns and ssh"


async def test_automation_is_enabled_with_credits_for_an_hour(walle: Running, typed: Typed) -> None:
    await walle.call(pb.SwitchAutomationRequest(project="web", on=False, reason="too much is broken"))
    await typed("projects automation enable --credit-time 1h --unreachable 100 --ssh 100 web", 0)
    fuse, now_ms = walle.server.automaton.fuses["web"], walle.server.automaton.ledger.now().ms
    assert not any(switch_of(fuse, one).off for one in Automation)
    assert {credit.counter: credit.left for credit in fuse.credit} == {"UNREACHABLE": 100, "ssh": 100}
    assert all(3_500_000 < credit.until_ms - now_ms <= 3_600_000 for credit in fuse.credit)


async def test_fuses_that_went_out_everywhere_are_switched_on_by_a_setting(walle: Running, typed: Typed) -> None:
    await walle.call(pb.SwitchAutomationRequest(on=False, reason="too much is broken"))
    assert all(switch_of(walle.server.automaton.fuses["global"], one).off for one in Automation)
    await typed("settings set disable_automation false", 0)
    assert not any(switch_of(walle.server.automaton.fuses["global"], one).off for one in Automation)


async def test_the_sites_of_hosts_are_printed_in_the_form_that_the_cms_reads(walle: Running, typed: Typed) -> None:
    await typed("hosts add h1 --project web --dc ams-1 --rack 'r 1' --switch s1 -S free", 0)
    await typed("hosts add 10 --project web --rack 'yes' -S free", 0)
    await typed("hosts add h3 --project web -S free", 0)
    limits = "limits:\n  one-rack: {kind: rack, most: 1}\n"
    read = parse_sites(limits + await typed("hosts sites", 0))
    assert read.sites == {"h1": Site("ams-1", "r 1", "s1"), "10": Site(rack="yes")}
    assert list(read.by_name) == ["one-rack"]


async def test_an_exported_inventory_can_be_imported_again_and_hosts_are_added_by_their_number(
    walle: Running, typed: Typed, tmp_path: Path
) -> None:
    await typed("hosts add h1 --project web --inventory 100500 --bmc 10.7.0.1 --rack r1 -S free", 0)
    machines = "".join(f"- {{name: m{n}, inventory: {n}, project: [web]}}\n" for n in range(1, 60))
    (tmp_path / "many.yaml").write_text(f"machines:\n{machines}")
    assert "59 machines would be imported, 59 of" in await typed(f"inventory import {tmp_path}/many.yaml --dry-run", 0)
    assert "59 machines imported, 59 of them" in await typed(f"inventory import {tmp_path}/many.yaml", 0)
    assert "machine m7 removed" in await typed("inventory remove m7", 0)
    exported = await typed("inventory export", 0)
    (tmp_path / "all.yaml").write_text(exported.replace("10.7.0.1", "10.7.0.2"))
    assert "machine h1: changed\n59 machines imported, 1 of" in await typed(f"inventory import {tmp_path}/all.yaml", 0)
    assert walle.of("h1").bmc == "10.7.0.2"
    await typed("hosts add 42 --project web -S free", 0)
    assert walle.of("m42").inventory == 42
    assert "m42" in await typed("inventory list --project web", 0)
    (tmp_path / "bad.yaml").write_text("machines: [{name: m1, bcm: 10.7.0.1}]")
    assert "machines[0].bcm: unknown field; did you mean bmc?" in await typed(
        f"inventory import {tmp_path}/bad.yaml", 2
    )


async def test_hosts_are_added_free_and_prepared_later_by_their_inventory_number(walle: Running, typed: Typed) -> None:
    await typed("hosts add h1 --project web --inventory 100500 -S free", 0)
    assert walle.of("h1").state == HOST_STATE_FREE
    assert not walle.of("h1").HasField("operation")
    await typed("hosts prepare 100500 --ignore-cms", 0)
    await walle.until(lambda: len(walle.of("h1").history) == 1, "it is prepared")
    assert walle.of("h1").history[0].kind == OPERATION_KIND_PREPARE
