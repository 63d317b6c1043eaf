"""A store that was restored: all fuses are out, nothing is collected, and what it has forgotten counts as busy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from store.etcd import EtcdConfig, EtcdStore
from store.keys import Keys
from store.port import Write
from storepb.v1 import store_pb2
from tests.support import etcd_backup
from tests.support.etcd import OwnEtcd
from tests.support.reserved_port import kept_ports
from tests.support.walle.fake_cms import FakeCms, fake_cms
from tests.support.walle.running import LastingStore, Running, running
from walle.approval.protocol import Request
from walle.approval.tasks import AHEAD_MS, is_ahead, new_id
from walle.fuses.fuse import Automation, switch_of
from walle.work import default_cms as default
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import OPERATION_KIND_REBOOT, STAGE_APPROVAL, VERDICT_IN_PROCESS
from wallepb.v1.project_pb2 import SCENARIO_KIND_REBOOT, Cms, DefaultCmsTasks, Fuse, Project, Restored, UnknownTask

ON = pb.SwitchAutomationRequest(on=True, reason="looked at it")


async def replace_epoch(store: LastingStore) -> None:
    """Replace the epoch, as a process does that finds another history."""
    keys = Keys("/walle/v1/")
    old, _ = await store.get(keys.epoch)
    assert old is not None
    theirs = store_pb2.EpochRecord.FromString(old.value)
    new = store_pb2.EpochRecord(epoch="another", predecessor=[*theirs.predecessor, theirs.epoch])
    await store.commit((), (Write((), ((keys.epoch, new.SerializeToString()),)),), 5.0)


def is_out(walle: Running, owner: str) -> bool:
    fuse = walle.server.automaton.fuses.get(owner) or Fuse()
    return all(switch_of(fuse, one).off for one in Automation)


def tasks_of(walle: Running) -> list[UnknownTask]:
    """Tasks that nobody has looked at."""
    return list((walle.server.automaton.restored.get("web") or Restored()).task)


async def switch_on(walle: Running) -> None:
    for project in ("", "web"):
        order = pb.SwitchAutomationRequest(project=project)
        order.MergeFrom(ON)
        await walle.call(order)


async def prepared(walle: Running, cms: FakeCms) -> None:
    await walle.project(Project(id="web", cms=[Cms(url=cms.url, version="v1.4")]))
    for name in ("h1", "h2"):
        await walle.host(name)


@pytest.mark.long
async def test_after_a_restore_fuses_are_out_and_hosts_of_forgotten_tasks_are_busy_until_somebody_looked() -> None:
    store, lost = LastingStore(), "walle-test.lost-0-0"
    with fake_cms() as cms:
        async with running(store, term_s=5.0) as walle:
            await prepared(walle, cms)
            cms.tasks[lost] = {"id": lost, "hosts": ["h1"], "status": "ok"}
            await replace_epoch(store)
            await walle.until(lambda: is_out(walle, "web") and is_out(walle, "global"), "all fuses are out")
            await walle.until(lambda: bool(walle.server.automaton.restored["web"].task), "the task is found")
            (warning,) = [one for one in (await shown(walle))["warnings"] if lost in one]
            assert "h1" in warning
            assert "release-tasks" in warning
            await walle.call(pb.OpenEpochRequest(reason="looked at the hosts"))
            await switch_on(walle)
            for name in ("h1", "h2"):
                await walle.report(name, "UNREACHABLE")
            await walle.until(lambda: walle.of("h2").HasField("operation"), "what is known is healed")
            await walle.until(lambda: bool(walle.of("h1").check), "the check of the other one is known")
            blocked = (await walle.call(pb.GetHostRequest(host="h1")))["blocked"]
            assert lost in blocked
            refused = await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT), 400)
            assert lost in refused["message"]
            for _ in range(3):
                await walle.server.automaton._look_at_tasks("web")
            assert lost in cms.tasks, "nothing is collected before somebody looked"
            assert not walle.of("h1").HasField("operation")
            await walle.call(pb.ReleaseTasksRequest(project="web", reason="its reboot is over"))
            await walle.until(lambda: walle.of("h1").HasField("operation"), "it is healed, too")
            for _ in range(2):
                await walle.server.automaton._look_at_tasks("web")
            assert lost not in cms.tasks


async def shown(walle: Running) -> dict[str, Any]:
    answer: dict[str, Any] = await walle.call(pb.GetProjectRequest(project="web"))
    return answer


@pytest.mark.long
async def test_while_a_cms_has_not_listed_its_tasks_since_the_restore_nothing_automatic_begins() -> None:
    store = LastingStore()
    with fake_cms() as cms:
        async with running(store, term_s=5.0) as walle:
            await prepared(walle, cms)
            cms.raw = (500, b"{}")
            await replace_epoch(store)
            await walle.until(lambda: is_out(walle, "web"), "the fuse is out")
            await walle.call(pb.OpenEpochRequest(reason="looked at the hosts"))
            await switch_on(walle)
            await walle.report("h2", "UNREACHABLE")
            await walle.until(lambda: bool(walle.of("h2").check), "the check is known")
            answer = await walle.call(pb.GetHostRequest(host="h2"))
            assert "has not listed its tasks" in answer["blocked"]
            automaton = walle.server.automaton
            await walle.until(
                lambda: not automaton._collecting.may_try("web", cms.url, automaton.ledger.now().ms),
                "its failure is noted",
            )
            cms.raw = None
            walle.server.automaton._collecting.forget("web")  # its pause, up to a minute, passes
            await walle.server.automaton._look_at_tasks("web")
            await walle.report("h2", "ssh")
            await walle.until(lambda: walle.of("h2").HasField("operation"), "it is healed")


@pytest.mark.long
async def test_planned_work_is_refused_on_hosts_of_forgotten_tasks_until_somebody_looked() -> None:
    store, lost = LastingStore(), "walle-test.lost-0-0"
    with fake_cms() as cms:
        async with running(store) as walle:
            await prepared(walle, cms)
            cms.tasks[lost] = {"id": lost, "hosts": ["h1"], "status": "in-process"}
            await replace_epoch(store)
            await walle.until(lambda: bool(tasks_of(walle)), "the task is found")
            await walle.call(pb.OpenEpochRequest(reason="looked at the hosts"))
            wanted = pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_REBOOT, ticket="T-1", hosts=["h2", "h1"])
            refused = await walle.call(wanted, 400)
            assert lost in refused["message"]
            assert "`walle projects release-tasks web -m WHY`" in refused["message"]
            await walle.call(pb.ReleaseTasksRequest(project="web", reason="its reboot is over"))
            await walle.call(wanted)


@pytest.mark.long
async def test_after_a_restore_while_no_process_ran_newer_tasks_in_a_cms_put_out_the_fuses_of_its_projects() -> None:
    store = LastingStore()
    with fake_cms() as cms, fake_cms() as another:
        async with running(store) as walle:
            await prepared(walle, cms)
            await walle.project(Project(id="db", cms=[Cms(url=another.url, version="v1.4")]))
            await walle.until(lambda: "." in walle.server.automaton.world.installation, "the store has its word")
            ours, now_ms = walle.server.automaton.world.installation, walle.server.automaton.ledger.now().ms
            old, later = (f"walle-{ours}.{new_id(ms)}-0-0" for ms in (now_ms, now_ms + 2 * AHEAD_MS))
        cms.tasks = {one: {"id": one, "hosts": ["h1"], "status": "ok"} for one in (old, later)}
        async with running(store, name="walle-2") as walle:
            await walle.until(lambda: is_out(walle, "web"), "its fuse is out")
            await walle.until(lambda: len(tasks_of(walle)) == 2, "both tasks are kept")
            await walle.server.automaton._look_at_tasks("db")
            assert not is_out(walle, "db"), "one CMS's word, which may be forged, stops nobody else's projects"
            assert not is_out(walle, "global")
            seen = await shown(walle)
            assert any("newer than anything in this store" in one for one in seen["warnings"])
            assert len(seen["restored"]["task"]) == 2
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: bool(walle.of("h1").check), "the check is known")
            assert "before the store was restored" in (await walle.call(pb.GetHostRequest(host="h1")))["blocked"]
            await walle.call(pb.ReleaseTasksRequest(project="web", reason="looked"))
            await switch_on(walle)
            for _ in range(2):
                await walle.server.automaton._look_at_tasks("web")
            assert not is_out(walle, "web"), "what was looked at is not said again"
            assert cms.tasks.keys().isdisjoint({old, later})


@pytest.mark.long
async def test_a_task_that_was_left_over_is_collected_and_puts_no_fuse_out() -> None:
    store = LastingStore()
    with fake_cms() as cms:
        async with running(store) as walle:
            await prepared(walle, cms)
            left = f"walle-test.{new_id(walle.server.automaton.ledger.now().ms)}-0-0"
        cms.tasks[left] = {"id": left, "hosts": ["h1"], "status": "ok"}
        async with running(store, name="walle-2") as walle:
            for _ in range(2):
                await walle.server.automaton._look_at_tasks("web")
            assert left not in cms.tasks
            assert not is_out(walle, "web")
            assert "restored" not in await shown(walle)


def test_only_tasks_of_this_installation_tell_the_time_of_their_operation() -> None:
    task = f"walle-one.{new_id(1_000_000)}-2-1~3"
    assert is_ahead("one", task, 1_000_000 - AHEAD_MS - 1)
    assert not is_ahead("one", task, 1_000_000 - AHEAD_MS)
    assert not is_ahead("other", task, 0)
    assert not is_ahead("one", "walle-one.0123456789ab-0-0", 0)
    assert not is_ahead("one", "walle-one.lost-0-0", 0)


def test_a_task_id_without_the_word_of_this_store_shows_nothing() -> None:
    assert is_ahead("one.5f0c", f"walle-one.5f0c.{new_id(1_000_000)}-2-1", 0)
    for forged in ("walle-one.", "walle-one.6f0c.", "walle-two.5f0c."):
        assert not is_ahead("one.5f0c", f"{forged}{new_id(1_000_000)}-2-1", 0)


@pytest.mark.long
async def test_a_forged_task_puts_no_fuse_out_and_two_installations_leave_each_others_tasks_alone() -> None:
    store, other = LastingStore(), LastingStore()
    with fake_cms() as cms:
        async with running(store) as walle, running(other) as another:
            for one in (walle, another):
                await one.project(Project(id="web", cms=[Cms(url=cms.url, version="v1.4")]))
                await one.until(lambda one=one: "." in one.server.automaton.world.installation, "it has its word")  # type: ignore[misc]
            words = {one.server.automaton.world.installation for one in (walle, another)}
            assert len(words) == 2
            now_ms = walle.server.automaton.ledger.now().ms
            forged = f"walle-test.{new_id(now_ms + 2 * AHEAD_MS)}-0-0"
            theirs = f"walle-{another.server.automaton.world.installation}.{new_id(now_ms)}-0-0"
            cms.tasks = {one: {"id": one, "hosts": ["h9"], "status": "ok"} for one in (forged, theirs)}
            for _ in range(3):
                await walle.server.automaton._look_at_tasks("web")
            assert not is_out(walle, "web")
            assert list(cms.tasks) == [theirs]
            word = walle.server.automaton.world.installation
        async with running(store, name="walle-2") as walle:
            await walle.until(lambda: walle.server.automaton.world.installation == word, "the store keeps its word")


def test_hosts_of_forgotten_tasks_take_room_in_the_default_cms() -> None:
    request = Request(id="t", hosts=("h9",), action="reboot", issuer="wall-e")
    answer = default.create(DefaultCmsTasks(), request, 2, {"h1", "h2"})
    assert answer.verdict == VERDICT_IN_PROCESS
    assert "h1, h2" in answer.message


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_a_real_etcd_restored_from_an_older_snapshot_holds_wall_e_back(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    with fake_cms(verdict="in-process") as cms:
        async with running(EtcdStore(EtcdConfig((etcd.endpoint,))), term_s=5.0) as walle:
            await prepared(walle, cms)
            await asyncio.to_thread(etcd_backup.save, etcd, tmp_path / "snapshot")
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: walle.of("h1").operation.stage == STAGE_APPROVAL and bool(cms.tasks), "it asks")
            (lost,) = cms.tasks
            await etcd.stop()
            await asyncio.to_thread(etcd_backup.restore, etcd, tmp_path / "snapshot")
            await etcd.start()
            await walle.until(lambda: is_out(walle, "web") and is_out(walle, "global"), "all fuses are out", 60)
            await walle.until(lambda: bool(walle.server.automaton.restored["web"].task), "the task is found")
            assert not walle.of("h1").HasField("operation"), "the backup is from before it"
            assert not walle.server.controller.is_open
            assert lost in cms.tasks
